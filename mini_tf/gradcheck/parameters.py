"""Parameters of mini_tf's layers, where a function uses layers. Nothing is imported for a file that does not."""

import inspect
import sys
from collections.abc import Sequence
from typing import Any

from mini_tf.gradcheck.adapters import signature_of
from mini_tf.gradcheck.errors import Refused
from mini_tf.places import codes_inside


def is_layer(x: Any) -> bool:
    """True for a layer or a model of mini_tf, or one's own subclass"""
    module = sys.modules.get("mini_tf.layers.layer")
    return module is not None and isinstance(x, module.Layer)


def variables_of(f: Any) -> dict[str, Any]:
    """{name: value} of the variables that a function uses: of its file, and of the functions around it"""
    if not inspect.isfunction(f):
        return {}
    f = inspect.unwrap(f)
    names = [name for code in codes_inside(f.__code__) for name in code.co_names if name in f.__globals__]
    return {**{name: f.__globals__[name] for name in names}, **inspect.getclosurevars(f).nonlocals}


def parameters_of(f: Any, inputs: Sequence[Any], params: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """({name: Parameter} to check, {name: Parameter} of the others) that `params` gives, or that are in layers.

    Layers are looked for where f has them: f itself, the layer whose method it is, its inputs, and what its text names.
    """
    names, given = params, {}
    if isinstance(params, dict):
        names, given = (), {name: p for name, p in params.items() if not isinstance(p, str)}
    for name, p in given.items():
        if not (hasattr(p, "data") and hasattr(p, "grad")):
            raise Refused(f"params: {name} is of type {type(p).__name__}, expected a Parameter, or a name in text")
    f = getattr(f, "func", f)
    arguments = dict(zip(signature_of(f).names, inputs))
    owners = {"": f, "self": getattr(f, "__self__", None), **arguments, **variables_of(f)}
    layers = {name: one for name, one in owners.items() if is_layer(one)}
    every = {id(p): (name, p, True) for name, p in given.items()}                # {id: (name, Parameter, asked)}
    for name, layer in layers.items():
        for own, p in layer.parameters().items():
            full = f"{name}.{own}" if name not in ("", "self") and len(layers) > 1 else own
            every.setdefault(id(p), (full, p, params is None or full in names or own in names))
    checked = {name: p for name, p, asked in every.values() if asked and getattr(p, "trainable", True)}
    return checked, {f"{name}, fixed": p for name, p, _ in every.values() if checked.get(name) is not p}

"""Parameters of mini_tf's layers, where a function uses layers. Nothing is imported for a file that does not."""

import inspect
import sys
from collections.abc import Sequence
from typing import Any

from mini_tf.gradcheck.adapters import argument_names
from mini_tf.gradcheck.errors import Refused


def is_layer(x: Any) -> bool:
    """True for a layer or a model of mini_tf, or one's own subclass"""
    module = sys.modules.get("mini_tf.layers.layer")
    return module is not None and isinstance(x, module.Layer)


def parameters_of(f: Any, inputs: Sequence[Any], params: Any = None) -> tuple[dict[str, Any], list[Any]]:
    """({name: Parameter} to check, all Parameters): of f, of the layer whose method it is, of layers among the inputs,
    and of the layers that a function's text names; to check are those that `params` gives or names, if it is there
    """
    given = params if isinstance(params, dict) else {f"parameter {k}": p for k, p in enumerate(params or ())}
    names = () if isinstance(params, dict) else given.values()
    given = {name: p for name, p in given.items() if not isinstance(p, str)}
    for name, p in given.items():
        if not (hasattr(p, "data") and hasattr(p, "grad")):
            raise Refused(f"params: {name} is of type {type(p).__name__}, expected a Parameter, or a name in text")
    f = getattr(f, "func", f)
    owners = {"": f, "self": getattr(f, "__self__", None)} | dict(zip(argument_names(f), inputs))
    if inspect.isfunction(f):
        variables = inspect.getclosurevars(f)
        owners |= variables.globals | variables.nonlocals
    layers = {name: one for name, one in owners.items() if is_layer(one)}
    found = {}                                           # {id: (name, Parameter)}: each once
    for name, layer in layers.items():
        for own, p in layer.parameters().items():
            found.setdefault(id(p), (f"{name}.{own}" if name not in ("", "self") and len(layers) > 1 else own, p))
    every = [*found.values(), *((name, p) for name, p in given.items() if id(p) not in found)]
    checked = {n: p for n, p in found.values() if params is None or n in names or n.rpartition(".")[2] in names} | given
    return {n: p for n, p in checked.items() if getattr(p, "trainable", True)}, [p for _, p in every]

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


def parameters_of(f: Any, inputs: Sequence[Any], params: Any = None, every: bool = False) -> dict[str, Any]:
    """{name: Parameter}: those given; or those of f, of the layer whose method it is, of layers among the inputs, and
    of the layers that a function's text names

    every: of these layers all, whether or not `params` names them
    """
    chosen = params if isinstance(params, dict) else {f"parameter {k}": p for k, p in enumerate(params or ())}
    chosen = {name: p for name, p in chosen.items() if not isinstance(p, str)}
    for name, p in chosen.items():
        if not (hasattr(p, "data") and hasattr(p, "grad")):
            raise Refused(f"params: {name} is of type {type(p).__name__}, expected a Parameter, or a name in text")
    names = params if isinstance(params, (list, tuple)) and params and not chosen else None
    if params is not None and not every and names is None:
        return chosen
    f = getattr(f, "func", f)
    owners = {"": f, "self": getattr(f, "__self__", None)} | dict(zip(argument_names(f), inputs))
    if inspect.isfunction(f):
        variables = inspect.getclosurevars(f)
        owners |= variables.globals | variables.nonlocals
    layers = {name: one for name, one in owners.items() if is_layer(one)}
    named = {f"{name}.{own}" if name not in ("", "self") and len(layers) > 1 else own: p
             for name, one in layers.items() for own, p in one.parameters().items()}     # fmt: skip
    first = {id(p): name for name, p in reversed(named.items())}         # each once
    found = {name: p for name, p in named.items() if first[id(p)] == name}
    if names is not None:
        found = {n: p for n, p in found.items() if every or n in names or n.rpartition(".")[2] in names}
    return found | {name: p for name, p in chosen.items() if not any(p is q for q in found.values())}

"""Other people's ways to write a backward, brought to y, backward = f(…).

    out, cache = affine_forward(x, w, b)                 a pair of functions; the second is found by its name
    dx, dw, db = affine_backward(dout, cache)
    h, c, backward = lstm_step(x, h, c)                  several outputs, and backward(dh, dc)
    net.forward(x); net.backward(dout)                   an object that keeps what it needs, its weights and gradients
    net.loss(x, y); net.backward()                       the same, of a model that begins with its loss
    loss, dW = svm_loss(W, x, y)                         a loss that comes with its gradients

Weights may also be in a dict, a list, a tuple or an object that a function is given, grads in one like it (`in_order`);
or they are variables of its file (`variables.py`).
`in_contract` gives a Brought, which is called as any op is: see `brought.py`.
"""

import copy
import inspect
import re
from collections.abc import Collection, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_ours
from mini_tf.gradcheck.measuring.brought import (
    CACHE,
    Brought,
    Machine,
    Pair,
    Several,
    WithContext,
    WithGradients,
    WithGraph,
    WithMode,
    backward_of,
    forward_of,
    graph_of,
)
from mini_tf.gradcheck.measuring.naming import LEARNED, is_gradient_name, is_upstream
from mini_tf.gradcheck.measuring.returned import by_their_names, has_numbers_only, loss_and_gradients, parameters_of
from mini_tf.gradcheck.measuring.stored import (
    FORWARD,
    earlier_gradients,
    gradient_kept,
    is_floating,
    reached,
    stored_arrays,
    ways_in,
)
from mini_tf.gradcheck.measuring.variables import arrays_named_in
from mini_tf.trace import keeps_contract

import numpy as np

BACKWARDS = {"forward": ("backward", "back", "backprop", "bwd"), "fwd": ("bwd", "bprop"), "fw": ("bw",)}
BACK = re.compile(r"back|bwd|bprop|bw$")
VALUES = "value", "loss", "cost", "fn", "compute_loss", "compute_cost", "evaluate"       # of a loss, as methods
AGAIN = "gradient", "gradients", "grad", "grads", "compute_gradients", "compute_gradient", "get_gradients"


def in_contract(f: Any, inputs: Sequence[Any]) -> Any:
    """f itself if it keeps y, backward = f(…) or is in no style known here, else a Brought of it.

    f may be an object with forward and backward, its method forward, a pair (forward, backward), a class with static
    forward(ctx, …) and backward(ctx, …), or a function whose partner is found by its name: see `partner`.
    """
    return f if isinstance(f, Brought) else _with_variables(_in_style(f, inputs), inputs)


def _in_style(f, inputs):
    if isinstance(f, SimpleNamespace) and all(callable(getattr(f, name, None)) for name in ("forward", "backward")):
        return _in_style((f.forward, f.backward), inputs)                # functions, not methods
    if isinstance(f, (tuple, list)) and len(f) == 2 and all(map(callable, f)):
        f = [g if hasattr(g, "__name__") or not inspect.ismethod(g.__call__) else g.__call__ for g in f]
        owners = {id(getattr(g, "__self__", None)): getattr(g, "__self__", None) for g in f}
        owner = owners.popitem()[1] if len(owners) == 1 else None
        own = owner is not None and not inspect.isclass(owner) and not inspect.ismodule(owner)
        return Machine(owner, *(g.__name__ for g in f)) if own else Pair(*f)
    owner = getattr(f, "__self__", None)
    if inspect.isclass(f) and is_static(f) and _takes_all(f.forward, inputs):
        return Pair(f.forward, f.backward)
    if inspect.isclass(f):
        return WithContext(f) if is_static(f) else f
    if inspect.isclass(owner) and f.__name__ == "apply" and is_static(owner) and _runs(WithContext(owner), inputs):
        return WithContext(owner)
    if is_machine(f):
        alone = len(inputs) > 1 == len(parameters_of(getattr(f, forward_of(f)))) and callable(f)
        if keeps_contract_itself(f, inputs):
            return WithGraph(f.__call__, f) if _keeps_arrays(f) else f
        return Machine(f, "__call__" if alone else None)
    if has_loss(f) and not callable(f):
        return in_contract(f.loss, inputs)
    if (pair := value_and_gradient(f)) and not is_ours(f):
        return Machine(f, *pair)
    if is_machine(owner) and getattr(f, "__name__", "") in (*FORWARD, "__call__"):
        return Machine(owner)
    if not callable(f) or is_ours(f):
        return f
    if not hasattr(f, "__name__") and inspect.isfunction(inspect.getattr_static(type(f), "__call__")):   # an object
        f, owner = f.__call__, f
    found = partner(f)
    says_forward = any(word in f.__name__.lower() for word in FORWARD) if found else False
    if says_forward:
        return Pair(f, found)
    a_method = owner is not None and not inspect.ismodule(owner) and not inspect.isclass(owner)
    goes_back = a_method and way_back(owner, f) not in (None, *_names_in(f))         # train_step calls its backward
    try:
        trial = getattr(copy.deepcopy(owner), f.__name__) if a_method else f
        given = copy.deepcopy(list(inputs))
        result = trial(*given)
    except FAILURES:                                     # the check itself will say what is wrong
        return Machine(owner, f.__name__, way_back(owner, f)) if goes_back else f
    if graph_of(result):
        return WithGraph(f, owner if a_method else None)
    if not keeps_contract(result) and not found and not goes_back and (option := mode_of(f, inputs)):
        return WithMode(f, option)
    if keeps_contract(result) and a_method and _keeps_arrays(owner):
        return WithGraph(f, owner)
    if keeps_contract(result):
        kinds = np.ndarray, np.floating, float           # of y, and of a loss beside it
        several = isinstance(result[0], (tuple, list)) and all(isinstance(y, kinds) for y in result[0])
        several = several or has_numbers_only(result[0])                 # rows of a table, in plain lists
        return Several(f) if several or any(map(ways_in, inputs)) else f
    if isinstance(result, tuple) and len(result) > 2 and callable(result[-1]):
        return Several(f)
    if found:
        return Pair(f, found)
    result = loss_and_gradients(result) or result
    if not isinstance(result, tuple):
        kept = [gradient_kept(x, way) for x in given for way in ways_in(x)]
        owner_keeps = a_method and not goes_back and is_single(result)   # loss = net.train_step(x, t), net.dW
        kept += earlier_gradients(trial.__self__, stored_arrays(trial.__self__)) if owner_keeps else []
        if is_single(result) and any(g is not None for g in kept):
            return WithGradients(f, owner if owner_keeps else None)
        return Machine(owner, f.__name__, way_back(owner, f)) if goes_back else f
    gradients = result[1] if len(result) == 2 else result[1:]
    shapes = {reached(x, way).shape for x in inputs for way in ([()] if is_floating(x) else ways_in(x))}
    shapes |= {() for x in inputs if isinstance(x, float)}
    if is_single(result[0]) and is_gradient(gradients, shapes):
        return WithGradients(f, owner if a_method else None)
    return f


def _keeps_arrays(x):
    """True for somebody's object with arrays of its own, which are not given as Parameters"""
    return not is_ours(x) and not callable(getattr(x, "parameters", None)) and bool(stored_arrays(x))


def numbers_with_gradients(f: Any, inputs: Sequence[Any]) -> list[Any]:
    """The inputs, with an array without axes for a number, b = 0.4, if a gradient that is called db comes back"""
    names = argument_names(f, len(inputs)) if isinstance(f, Brought) else []
    if not any(isinstance(x, float) for x in inputs[: len(names)]) or not _runs(f, inputs):
        return list(inputs)
    said = f.came if isinstance(f.came, dict) else [name for name in f.returned if name not in names]
    return [np.array(x) if isinstance(x, float) and any(is_gradient_name(one, name) for one in said) else x
            for name, x in zip(names, inputs)]           # fmt: skip


def _runs(brought, inputs):
    """Whether forward and backward raise nothing"""
    try:
        y, backward = brought(*copy.deepcopy(list(inputs)))
        backward(np.ones_like(y) if np.ndim(y) else 1.0)
    except FAILURES:
        return False
    return True


def _with_variables(f, inputs):
    """f, or a Brought whose parameters are variables of f's file: those whose gradients come back"""
    if isinstance(f, Brought) and f.its_object is not None:
        f.build(inputs)
        f.leave_out_buffers(inputs)
        f.find_gradients(inputs)
    if isinstance(f, Brought):
        candidates = [f]
    else:
        candidates = [Several(f), WithGradients(f)] if inspect.isfunction(f) and not is_ours(f) else []
    for brought in candidates:
        brought.is_given(inputs)
        found = {} if brought.parameters else arrays_named_in(brought.written_forward, brought.written_backward)
        given = {id(x) for x in inputs}
        found = {name: p for name, p in found.items() if id(p.variables[p.ways[0][0]]) not in given}
        if found and _take_up(brought, found, inputs):
            return brought
    return f


def _take_up(brought, found, inputs):
    """Whether some of the variables found have gradients; they, and what else is learned, become parameters."""
    brought.keeps(found)
    if not _runs(brought, inputs):                       # the check itself will say what is wrong
        brought.keeps({})
        return False
    have_one = [name for name, p in found.items() if p.grad is not None]
    for p in found.values():
        p.grad = None
    learned = {name: p for name, p in found.items() if name in have_one or LEARNED.match(str(p.ways[0][-1]))}
    brought.keeps(learned if have_one else {})
    return bool(have_one)


def is_static(cls: type) -> bool:
    """True for a class with static forward(ctx, …) and backward(ctx, …)."""
    return all(isinstance(inspect.getattr_static(cls, name, None), staticmethod) for name in ("forward", "backward"))


def _takes_all(forward, inputs):
    """True for a function that takes as much as it is given, so without a ctx before it"""
    needed = [p for p in parameters_of(forward) if p.default is p.empty]
    return len(needed) == len(inputs) and not CACHE.search(needed[0].name)


def is_machine(x: Any) -> bool:
    """True for an object with forward (or a call) and backward, which is no layer of mini_tf and no class."""
    if inspect.isclass(x) or inspect.ismodule(x) or inspect.isroutine(x) or x is None or is_ours(x):
        return False
    return backward_of(x) is not None and forward_of(x) is not None


def has_loss(x: Any) -> bool:
    """True for an object whose method loss gives a loss and its gradients."""
    return not (inspect.isclass(x) or inspect.ismodule(x) or is_ours(x)) and callable(getattr(x, "loss", None))


def keeps_contract_itself(machine: Any, inputs: Sequence[Any]) -> bool:
    """True for an object whose call gives y, backward."""
    if not callable(machine):
        return False
    try:
        result = copy.deepcopy(machine)(*copy.deepcopy(list(inputs)))
    except FAILURES:
        return False
    return keeps_contract(result)


def _names_in(method):
    """The names that a method uses"""
    return getattr(getattr(method, "__func__", None), "__code__", SimpleNamespace(co_names=())).co_names


def value_and_gradient(x: Any) -> tuple[str, str] | None:
    """("value", "grad") of an object whose methods of such names take the same; or None"""
    return None if inspect.isfunction(x) or inspect.isclass(x) else has_value_and_gradient(type(x))


def has_value_and_gradient(cls: type) -> tuple[str, str] | None:
    """("value", "grad") of a class whose methods of such names take the same; or None"""
    for name in (*VALUES, *["__call__"] * ("__call__" in dir(cls))):
        method = getattr(cls, name, None)
        if inspect.isfunction(method):
            again = _gradient_after(cls, method)
            if again:
                return name, again
    return None


def _gradient_after(x, method):
    """The name of another method of an object or a class that takes the same, and gives the gradients; or None"""
    names = [p.name for p in parameters_of(method)]
    return next((name for name in AGAIN if name != method.__name__ and callable(g := getattr(x, name, None))
                 and [p.name for p in parameters_of(g)] == names), None)             # fmt: skip


def way_back(owner: Any, method: Any) -> str | None:
    """The name of the method that goes back after that one; also of gradient(x, t), after loss(x, t)"""
    return backward_of(owner) or _gradient_after(owner, method)


def is_gradient(x: Any, shapes: Collection[tuple[int, ...]] = ()) -> bool:
    """True for what may be gradients: floating arrays, or a tuple, list or dict of them.

    shapes: those of what has a gradient. Other numbers are wrong gradients if they have such a shape; a single number,
    () is the shape of which, may be a right one
    """
    x = by_their_names(x, ())
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, (tuple, list)):
        return any(map(is_gradient, x)) and all(g is None or is_gradient(g) or np.shape(g) in shapes for g in x)
    return is_floating(x) and x.ndim > 0


def is_single(x: Any) -> bool:
    """True for a number, or an array without axes, as a loss is"""
    return isinstance(x, (int, float, np.generic)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def partner(forward: Any) -> FunctionType | None:
    """The function that goes back, found by its name beside `forward`: affine_backward for affine_forward or affine.

    dsigmoid(dy, a) is one, dsigmoid(a) is not: it gives the derivative.
    """
    name, beside = getattr(forward, "__name__", ""), getattr(inspect.unwrap(forward), "__globals__", {})
    names = []
    for word, others in BACKWARDS.items():
        if word in name.lower():
            names += [re.sub(word, other, name, flags=re.I) for other in others]
            names += [re.sub(word, other.capitalize(), name, flags=re.I) for other in others]
    names += [f"{name}_{word}" for word in ("backward", "back", "backprop", "bwd", "grad", "gradient")]
    names += [f"{word}_{name}" for word in ("backward", "back", "grad", "d")] + [f"d{name}"]
    names += [f"{name}{word}" for word in ("Backward", "Back", "Bwd", "Grad")]
    found = (beside.get(other) for other in names if other != name)
    return next((g for g in found if inspect.isfunction(g) and not _is_derivative(g)), None)


def _is_derivative(g):
    """True for dsigmoid(a) and relu_grad(z), which are given nothing that is called dy, dout, g or the like"""
    return not BACK.search(g.__name__.lower()) and not any(is_upstream(p.name) for p in parameters_of(g))


def partner_wanted(name: str) -> str:
    """The name by which the backward of a function of that name would be found: "affine_backward"."""
    return name.replace("forward", "backward") if "forward" in name else f"{name}_backward"


def mode_of(f: Any, inputs: Sequence[Any]) -> str | None:
    """dzdy, of f(x, w, dzdy=None), which gives y without it, and the gradients with it"""
    behind = [p for p in parameters_of(f)[len(inputs) :] if p.default is None and is_upstream(p.name)]
    return behind[0].name if len(behind) == 1 else None


def argument_names(f: Any, count: int) -> list[str]:
    """The names of the first `count` arguments of f, from its signature."""
    try:
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    return [*names, *(f"input_{i}" for i in range(len(names), count))][:count]

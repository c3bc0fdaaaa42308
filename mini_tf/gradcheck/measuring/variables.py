"""Weights among the variables of a learner's file, or of the function around: read without being given.

    W = rng.standard_normal((4, 3))
    def forward(x): return x @ W, x
    def backward(dout, x): return dout @ W.T, x.T @ dout        # or global dW, or grads["W"] = …
"""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from mini_tf.gradcheck.measuring.naming import (
    gradient_of,
    in_this_case,
    is_gradient_name,
    keeps_gradients,
    may_be_a_weight,
)
from mini_tf.gradcheck.measuring.stored import (
    Stored,
    gradient_beside,
    gradient_inside,
    gradient_kept,
    gradients_apart,
    is_container,
    is_floating,
    members,
    reached,
    ways_in,
)
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np


class Variables:
    """What the names in a function stand for that are not its own: in its file, and in the functions around it.

    beside: other functions, which may have other functions around them
    """

    def __init__(self, function: Callable, *beside: Callable):
        function, *beside = (inspect.unwrap(getattr(g, "__func__", g)) for g in (function, *beside))
        self.function, self.file = function, getattr(function, "__globals__", {})
        self.around, waiting = {}, [*beside, function]   # {name: cell}, also of functions among them
        while waiting:
            g = waiting.pop()
            own = dict(zip(g.__code__.co_freevars, g.__closure__ or ())) if inspect.isfunction(g) else {}
            new = {name: cell for name, cell in own.items() if name not in self.around and _is_filled(cell)}
            self.around |= new
            waiting += [cell.cell_contents for cell in new.values()]

    def __contains__(self, name: str) -> bool:
        return name in self.around or name in self.file

    def __getitem__(self, name: str) -> Any:
        return self.around[name].cell_contents if name in self.around else self.file[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self.around:
            self.around[name].cell_contents = value
        else:
            self.file[name] = value


def _is_filled(cell):
    with suppress(ValueError):                           # a name that is not yet, or no longer, there
        return cell.cell_contents is not cell


class Variable(Stored):
    """A floating array among a file's variables, or in a dict, list or object there; `data` is what the file has."""

    def __init__(self, variables: Variables, way: Sequence[str | int]):
        self.variables, self.ways, self.grad = variables, [way], None
        self.shape = self.data.shape

    @property
    def data(self) -> Array:
        first, *others = self.ways[0]
        return reached(self.variables[first], others)

    @data.setter
    def data(self, array: Array) -> None:
        *holders, last = self.ways[0]
        holder = reached(self.variables[holders[0]], holders[1:]) if holders else self.variables
        if holders and not isinstance(holder, (dict, list)):
            setattr(holder, last, array)
        else:
            holder[last] = array

    def gradient_in(self, kept: dict[str, Any], returned: dict[str, Any]) -> Array | float | None:
        """The gradient that was returned by name, or is kept in another variable; None if there is none."""
        (first, *inner), last = self.ways[0], self.ways[0][-1]
        numbers = "_".join(str(step) for step in inner if type(step) is int)
        kept_for_it = {said: g for said, g in kept.items() if not is_container(g) or (
            is_gradient_name(said, first) or keeps_gradients(said))}  # fmt: skip
        found = [gradient_kept(self.variables[first], inner)] if inner else []
        for those in (returned, kept_for_it):
            found += [gradient_inside(g, inner) for g in those.values() if inner and is_container(g)]
            named = {said: g for said, g in those.items() if inner or is_container(g) or in_this_case(said, first)}
            found += [gradient_of(f"{last}{numbers}", named), gradient_beside(named, last)]
        found.sort(key=lambda g: np.shape(g) != self.data.shape if isinstance(g, np.ndarray) else True)
        return next((g for g in found if isinstance(g, (np.ndarray, np.generic, float))), None)


def named_in(functions: Sequence[Any], variables: Variables) -> dict[str, Any]:
    """{name: value} of the variables that functions name, and what they call in their file"""
    waiting, found = list(functions), {}
    while waiting:
        g = waiting.pop()
        g = inspect.unwrap(getattr(g, "__func__", g))
        if not inspect.isfunction(g) or g.__globals__ is not variables.file:
            continue
        names = [name for code in codes_inside(g.__code__) for name in code.co_names]
        own = dict(zip(g.__code__.co_freevars, g.__closure__ or ()))
        for name in (*names, *(name for name, cell in own.items() if variables.around.get(name) is cell)):
            if name in variables and name not in found:
                found[name] = variables[name]
                waiting += vars(found[name]).values() if inspect.isclass(found[name]) else [found[name]]
    return found


def arrays_named_in(function: Callable, *beside: Callable) -> dict[str, Variable]:
    """{"W": Variable, "params.b": Variable} of the floating arrays among a function's variables; of W and dW, only W

    beside: other functions, in whose variables gradients may be
    """
    variables, found = Variables(function, *beside), {}
    for name, x in named_in([function], variables).items():
        ways = [()] if is_floating(x) else ways_in(x)
        for way in ways:
            if not (way and _is_fixed(reached(x, way[:-1]))):
                found[".".join(map(str, (name, *way)))] = Variable(variables, (name, *way))
    lasts = {p.ways[0][-1] for p in found.values()}
    return {name: p for name, p in found.items() if not any(_is_kept_for(p.ways[0], last) for last in lasts)}


def _is_fixed(x):
    """True for a tuple and a frozen dataclass, which cannot be given other arrays"""
    return isinstance(x, tuple) or getattr(getattr(x, "__dataclass_params__", None), "frozen", False)


def _is_kept_for(way, last):
    """True for the gradient of `last`: dW, or grads.W"""
    *holders, own = way
    inside = any(keeps_gradients(holder) for holder in holders)
    return is_gradient_name(own, last) and (inside or own != last and not may_be_a_weight(own, last))


def gradients_named_in(functions: Sequence[Any], weights: dict[str, Variable]) -> list[str]:
    """The names of variables that keep gradients: dW of W, or a dict grads"""
    ways = [p.ways[0] for p in weights.values()]
    named = named_in(functions, next(iter(weights.values())).variables)
    others = {name: x for name, x in named.items() if name not in {way[0] for way in ways}}
    return [name for name, x in others.items() if keeps_gradients(name) and (isinstance(x, dict) or members(x))
            or any(is_gradient_name(name, way[-1]) for way in ways)]  # fmt: skip


@contextmanager
def keeping(weights: dict[str, Variable], names: Sequence[str]) -> Iterator[Callable[[], dict[str, Any]]]:
    """Inside the block, variables that keep gradients begin with zeros; call what it gives for what was kept in them.

    names: those variables. They and objects with weights are afterwards as they were before.
    """
    variables = next((p.variables for p in weights.values()), {})
    before, inside = {name: variables[name] for name in names}, {}
    for p in weights.values():
        first, *inner = p.ways[0]
        inside.setdefault(first, []).extend([inner] if inner else [])
    try:
        for name, x in before.items():
            variables[name] = _with_zeros(copy.deepcopy(x))
        with ExitStack() as stack:
            for name, ways in inside.items():
                stack.enter_context(gradients_apart(variables[name], ways))
            yield lambda: {name: variables[name] for name in names}
    finally:
        for name, x in before.items():
            variables[name] = x


def _with_zeros(x):
    if is_floating(x):
        x[...] = 0
    elif is_container(x):
        for way in ways_in(x):
            reached(x, way)[...] = 0
    return x

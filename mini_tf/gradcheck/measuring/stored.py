"""Arrays in somebody's objects, dicts, lists and tuples: found, exchanged, and where their gradients are."""

import copy
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from mini_tf.gradcheck.measuring.naming import (
    BEHIND,
    GRADIENTS,
    LEARNED,
    gradient_of,
    is_gradient_name,
    may_be_a_weight,
    plain,
)
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np

FORWARD = ("forward", "fwd", "fprop", "fw")              # what methods may be called, beside __call__
BACKWARD = ("backward", "bwd", "bprop", "backprop", "back", "bw")
DEEPEST = 4              # of dicts and lists that a function is given, those inside others
NAMES = 3                # of one list or dict in an object, self.params and self.field.params, are followed


def is_floating(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


class Stored:
    """An array in an object, checked as a Parameter is.

    ways    the ways to it, several if it has several names: attributes, keys and indices, ("layers", 0, "W")
    shape   as it was given, where data may be larger
    """

    trainable = True

    def __init__(self, data: Array, way: tuple[str | int, ...]):
        self.data, self.grad, self.ways, self.shape = data, None, [way], data.shape

    def put(self, machine: Any) -> None:
        """Give the machine this array's data."""
        for *way, last in self.ways:
            holder = reached(machine, way)
            if isinstance(holder, (dict, list)):
                holder[last] = self.data
            else:
                setattr(holder, last, self.data)

    def gradient_in(self, machine: Any, returned: dict[str, Any]) -> Array | float | None:
        """The gradient that the machine keeps for this array, or returned by name; None if there is none."""
        found = [_gradient_at(machine, way) for way in self.ways]
        if len(self.ways[0]) == 1 or isinstance(reached(machine, self.ways[0][:-1]), dict):
            found.append(gradient_of(self.ways[0][-1], returned))
        if isinstance(self.ways[0][-1], int):            # nabla_w, for self.weights
            shapes = [np.shape(x) for x in reached(machine, self.ways[0][:-1])]
            lists = [g for g in returned.values() if isinstance(g, list) and [np.shape(one) for one in g] == shapes]
            found += [lists[0][self.ways[0][-1]]] if lists else []
        return next((g for g in found if isinstance(g, (np.ndarray, np.generic, float))), None)


def _gradient_at(machine, way):
    """The gradient beside the array at the end of the way, or None."""
    *way, last = way
    if isinstance(last, int) and not way:                # of a list or tuple by itself there is nothing beside
        return None
    if isinstance(last, int):                            # weights[i] and dweights[i]
        *way, listed = way
        beside = gradient_beside(members(reached(machine, way)), listed)
        return beside[last] if isinstance(beside, (list, dict)) and beside else None
    holders = [way, way[:-1]] if way else [way]          # self.W and self.dW; self.params["W"] and self.grads["W"]
    around = [members(reached(machine, holder)) for holder in holders]
    found = (gradient_beside(those, last, weights) for weights in (False, True) for those in around)
    found = next((g for g in found if g is not None), None)
    if found is None and way:
        read = _read_on(machine, way)
        found = next((g for name, g in around[0].items() if _is_its_gradient(name, around[0], read)), None)
    return found


def _is_its_gradient(name, those, read=()):
    """True for grad among members that have one other array: self.W.grad, beside self.W.data

    read: the names that the forward reads; params["g"] may be a weight
    """
    return plain(name) in BEHIND and name not in read and len(_not_gradients(those)) == 1


def _not_gradients(those):
    """The names of the floating arrays among members that are not called grad, or g"""
    return [name for name, x in those.items() if is_floating(x) and plain(name) not in BEHIND]


def gradient_beside(those: dict[str | int, Any], name: str | int, weights: bool = True) -> Any:
    """The gradient of `name` among members {name: value}, or in a dict of gradients among them.

    weights: with False, none that may be another weight, such as Wg
    """
    beside = {said: value for said, value in those.items() if plain(said) != plain(name)}
    found = gradient_of(name, {said: g for said, g in beside.items() if weights or not may_be_a_weight(said, name)})
    dicts = [value for said, value in those.items()
             if isinstance(value, dict) and (GRADIENTS.search(plain(said)) or plain(said) == "g")]  # fmt: skip
    return next((g for g in [found, *(gradient_of(name, value) for value in dicts)] if g is not None), None)


def stored_arrays(machine: Any) -> dict[str, Stored]:
    """{name: Stored} of the floating arrays in an object, in the objects it holds, and in its lists and dicts.

    What is named as another's gradient is left out, and what begins with "_"; so are masks of zeros and
    ones, or of zeros and what dropout divides by.
    """
    found, seen = {}, Counter()

    def is_gradient(name, those, read):
        x = those[name]
        others = {other: y for other, y in those.items() if is_floating(y) and plain(name) != plain(other)}
        if those is not members(machine) and _is_its_gradient(name, those, read):
            return True
        return any(is_gradient_name(name, other) and not (may_be_a_weight(name, other) and (name in read or (
            is_floating(x) and x.shape != y.shape))) for other, y in others.items())  # fmt: skip

    def walk(x, way, read):
        if is_floating(x):
            if id(x) in found:
                found[id(x)].ways.append(way)            # one array with two names
            elif x.size and (LEARNED.match(str(way[-1]) if way else "") or not (len(np.unique(x)) == 2 and 0 in x)):
                found[id(x)] = Stored(x, way)
            return
        if seen[id(x)] >= NAMES or len(way) > 6:
            return
        seen[id(x)] += 1
        those, read = members(x), read | _read_in_forward(type(x))
        for name, value in those.items():
            if not _keeps_gradients(name, value) and not is_gradient(name, those, read) and str(name)[:1] != "_":
                walk(value, (*way, name), read)

    walk(machine, (), frozenset())
    for p in found.values():
        p.ways.sort(key=len)                             # the shortest gives it its name
    return {".".join(map(str, p.ways[0])): p for p in found.values()}


def _keeps_gradients(name, x):
    """True for dicts of gradients, or of what the backward needs: self.grads, self.cache"""
    return isinstance(x, dict) and bool(GRADIENTS.search(plain(name)) or "cache" in plain(name))


def _read_on(machine, way):
    """The names that the forwards of the objects on a way read"""
    return set().union(*(_read_in_forward(type(reached(machine, way[:k]))) for k in range(len(way) + 1)))


@lru_cache(1000)
def _read_in_forward(cls):
    """The names of attributes and keys in the forward of a class, and in the methods that it calls"""
    everything = [one for base in reversed(cls.__mro__) for one in vars(base).items()]
    methods = {name: g for name, g in everything if inspect.isfunction(g)}
    waiting, found, seen = [name for name in (*FORWARD, "__call__") if name in methods], set(), set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for code in codes_inside(methods[name].__code__):
            found |= {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
        waiting += found & methods.keys() - seen - {*waiting}
    return frozenset(found)


def members(x: Any) -> dict[str | int, Any]:
    """{name or index: value} of a dict, a list, or the attributes of somebody's object; of a tuple, its objects"""
    if isinstance(x, dict):
        return x
    if isinstance(x, list):
        return dict(enumerate(x))
    if isinstance(x, tuple):                             # which cannot be given other arrays: it may be a cache
        return {k: part for k, part in enumerate(x) if not isinstance(part, (np.ndarray, dict, list, tuple))}
    module = type(x).__module__.partition(".")[0]
    if module in ("builtins", "numpy", "mini_tf", "random", "functools") or not hasattr(x, "__dict__"):
        return {}
    return vars(x)


def reached(machine: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        machine = machine[step] if isinstance(machine, (dict, list, tuple)) else getattr(machine, step)
    return machine


def with_parameters(machine: Any, parameters: dict[str, Stored], earlier: Sequence[Array] | None = None) -> Any:
    """A copy of the object with the parameters' data in place of its arrays; gradients of earlier runs become zero.

    earlier: those gradients, if they are known
    """
    copies = {}                                          # {id: copy}, as copy.deepcopy notes them
    own = copy.deepcopy(machine, copies)
    for p in parameters.values():
        p.put(own)
    for g in earlier_gradients(machine, parameters) if earlier is None else earlier:
        copies[id(g)][...] = 0
    _let_sizes_follow(own, parameters)
    return own


def _let_sizes_follow(machine, parameters):
    """self.hidden = 5 becomes 7 where all axes of 5 have become 7: a backward may begin with np.zeros(self.hidden)."""
    sizes = {pair for p in parameters.values() for pair in zip(p.shape, p.data.shape)}
    changed = {given: now for given, now in sizes if given != now}
    once = Counter(given for given, _ in sizes)
    ways = {way[:k] for p in parameters.values() for way in p.ways for k in range(len(way))} if changed else ()
    for own in [members(reached(machine, way)) for way in ways]:
        own |= {name: changed[x] for name, x in own.items() if type(x) is int and x in changed and once[x] == 1}


def earlier_gradients(machine: Any, parameters: dict[str, Stored]) -> list[Array]:
    """The gradients that an object has already: arrays of zeros, or what an earlier backward has left."""
    found = [_gradient_at(machine, way) for p in parameters.values() for way in p.ways]
    return [g for g in found if is_floating(g)]


def is_container(x: Any) -> bool:
    return isinstance(x, (tuple, list, dict)) or bool(members(x))


def gradient_inside(gradients: Any, way: Sequence[str | int]) -> Any:
    """The gradient at the end of a way, ("layers", 0, "W"), among gradients that are kept as the arrays are, or None"""
    for step in way:
        if not isinstance(gradients, (list, tuple)) and (those := members(gradients)):
            gradients = those[step] if step in those else gradient_of(step, those)
        else:
            is_there = isinstance(gradients, (list, tuple)) and isinstance(step, int) and step < len(gradients)
            gradients = gradients[step] if is_there else None
    return gradients


def gradient_kept(x: Any, way: tuple[str | int, ...]) -> Array | float | None:
    """A copy of the gradient that an object or dict keeps beside the array at the end of the way, or None"""
    found = _gradient_at(x, way)
    return np.copy(found) if isinstance(found, (np.ndarray, np.generic, float)) else None


def forget_gradients(inputs: Sequence[Any], inside: Sequence[list]) -> None:
    """Make zero what objects among the inputs keep as gradients, from earlier runs. inside: the ways to their arrays"""
    for x, ways in zip(inputs, inside or ()):
        for way in ways if not isinstance(x, (dict, list, tuple)) else ():
            if is_floating(g := _gradient_at(x, way)):
                g[...] = 0


@contextmanager
def gradients_apart(x: Any, ways: Sequence[Sequence[str | int]]) -> Iterator[None]:
    """Inside the block, an object, dict or list has no gradients of earlier runs; afterwards it has those of before.

    ways: to its arrays
    """
    holders = [reached(x, way[:k]) for way in ways for k in range(len(way))]
    holders += [part for own in holders for name, part in members(own).items() if _keeps_gradients(name, part)]
    known = [(members(own), dict(members(own))) for own in holders if not isinstance(own, (list, tuple))]
    arrays = [(g, g.copy()) for g in (_gradient_at(x, way) for way in ways) if is_floating(g)]
    try:
        for g, _ in arrays:
            g[...] = 0
        yield
    finally:
        for those, before in known:
            those.clear()
            those |= before
        for g, before in arrays:
            g[...] = before


def ways_in(x: Any, depth: int = 0) -> list[tuple[str | int, ...]]:
    """The ways to the floating arrays in a dict, list, tuple, or somebody's object: [("W",), ("layers", 0, "W")]"""
    if depth > DEEPEST or is_floating(x):
        return []
    parts = dict(enumerate(x)) if isinstance(x, tuple) else members(x)
    known = {} if isinstance(x, (dict, list, tuple)) else parts          # of an object, not its gradients
    own = _not_gradients(known)
    parts = [(key, part) for key, part in parts.items() if isinstance(key, (str, int)) and not str(key).startswith("_")
             and not _is_its_gradient(key, known) and not (key in known and _keeps_gradients(key, part))
             and not any(key != name and is_gradient_name(key, name) for name in own)]  # fmt: skip
    return [(key, *way) for key, part in parts for way in ([()] if is_floating(part) else ways_in(part, depth + 1))]


def packed(x: Any, arrays: dict[tuple[str | int, ...], Array]) -> Any:
    """A dict, list, tuple or object like x, with other arrays: {way: array}"""
    if () in arrays:
        return arrays[()]
    if not arrays:
        return x
    steps = dict.fromkeys(way[0] for way in arrays)
    parts = {step: {way[1:]: array for way, array in arrays.items() if way[0] == step} for step in steps}
    if isinstance(x, (list, tuple)):
        listed = [packed(part, parts[k]) if k in parts else part for k, part in enumerate(x)]
        named = hasattr(x, "_fields")                    # a NamedTuple
        return listed if isinstance(x, list) else type(x)(*listed) if named else tuple(listed)
    other = x.copy() if isinstance(x, dict) else copy.deepcopy(x)        # an object may keep things, and change them
    members(other).update({key: packed(members(x)[key], those) for key, those in parts.items()})
    return other

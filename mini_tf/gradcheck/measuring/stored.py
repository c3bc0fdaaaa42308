"""Arrays in somebody's objects, dicts, lists and tuples: found, exchanged, and where their gradients are."""

import copy
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CellType, FunctionType
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.naming import (
    BEHIND,
    LEARNED,
    gradient_of,
    is_gradient_name,
    keeps_gradients,
    may_be_a_weight,
    plain,
)
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np

FORWARD = ("forward", "fwd", "fprop", "fw")              # what methods may be called, beside __call__
BACKWARD = ("backward", "bwd", "bprop", "backprop", "back", "bw")
GO_FORWARD = re.compile(r"forward|fwd|fprop|vorw(ä|ae)rts|avant|adelante|avanti|propagate$|propager$", re.I)
GO_BACK = re.compile(r"back|bwd|bprop|r(ü|ue)ck|retropr|atr(á|a)s|arri(è|e)re|indietro|pullback|vjp", re.I)
HOLDS_WEIGHTS = re.compile(r"_*(param|weight|bias|W|b|theta|layer|coef|intercept)", re.I)
VALUE = re.compile(r"_*(data|values?|val|v|array|arr|numpy|item)$")     # what a tensor may call its numbers
NEIGHBOURS = re.compile(r"_*(prev(ious)?|next|parent|below|above)(_layer)?$")          # other layers, in a chain
RETURNED = "()"          # in the place of a name: what comes back
DEEPEST = 4              # of dicts and lists that a function is given, those inside others
NAMES = 3                # of one list or dict in an object, self.params and self.field.params, are followed


def method_of(cls: type, usual: Sequence[str], like: re.Pattern[str]) -> str | None:
    """The name of a class's method that has one of the usual names or, if it has none, the shortest like them"""
    known = next((name for name in usual if callable(getattr(cls, name, None))), None)
    others = [name for name in dir(cls) if name[0] != "_" and like.search(name)]
    others = [name for name in others if like is GO_BACK or not GO_BACK.search(name)]
    return known or min((name for name in others if inspect.isroutine(getattr(cls, name))), key=len, default=None)


def is_floating(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


class Stored:
    """An array in an object, checked as a Parameter is.

    ways    the ways to it, several if it has several names: attributes, keys and indices, ("layers", 0, "W")
    shape   as it was given, where data may be larger
    shares  it is a view of another one's memory, or has one: a copy of the object has no views
    has_it_all_in  the names of others that have all its memory, as W1, b1, … have that of theta
    kept_at the way to its gradient, where that was measured (`whose.py`); turned: this is dWᵀ
    """

    trainable = True
    kept_at, turned, shares, has_it_all_in, is_kept_differently = (), False, False, (), False

    @property
    def is_returned(self) -> bool:
        """True if its gradient is the kept_at[1]-th of what comes back"""
        return self.kept_at[:1] == (RETURNED,)

    def __init__(self, data: Array, way: tuple[str | int, ...]):
        self.data, self.grad, self.ways, self.shape = data, None, [way], data.shape
        self.kind, self.with_it = type(data), vars(data) if type(data) is not np.ndarray else {}
        self.was_single = data.dtype == np.float32

    def put(self, machine: Any, data: Array) -> None:
        """Give the machine this array's data, as an array of the class that it had, and with what that had: its grad"""
        if self.kind is not np.ndarray:
            data = data.view(self.kind)
            vars(data).update({name: np.zeros_like(x, shape=data.shape) if is_floating(x) and x.shape == self.shape else
                               copy.copy(x) for name, x in self.with_it.items()})        # fmt: skip
        for *way, last in self.ways:
            _put(reached(machine, way), last, data)

    def gradient_in(self, machine: Any, returned: dict[str, Any]) -> Array | float | None:
        """The gradient that the machine keeps for this array, or returned by name; None if there is none."""
        if self.kept_at:
            return self.gradient_kept_in(machine)
        found = [_gradient_at(machine, way) for way in self.ways]
        way = self.ways[0]
        is_value = len(way) > 1 and len(_not_gradients(members(reached(machine, way[:-1])))) == 1
        if is_value and VALUE.match(str(way[-1])):       # grads["W"], of self.W.data
            found.append(_gradient_at(machine, way := way[:-1]))
        holder = members(reached(machine, way[:-1]))     # of Weights(W, b), returned in Weights(dW, db), or as a dict
        alone = len(way) == 1 or isinstance(reached(machine, way[:-1]), dict) or returned.keys() == holder.keys()
        name, by_name = _returned_for(way, returned, alone)
        if by_name is not None:                          # grads["W1"], before layers[0].dW
            found.insert(0 if name in returned else len(found), by_name)
            kept = [g for g in found if is_floating(g) and np.shape(g) == np.shape(by_name)] if name in returned else []
            self.is_kept_differently = not all(np.allclose(g, by_name, rtol=1e-9, atol=1e-300) for g in kept)
        if isinstance(self.ways[0][-1], int):            # nabla_w, for self.weights
            shapes = [np.shape(x) for x in reached(machine, self.ways[0][:-1])]
            lists = [g for g in returned.values() if isinstance(g, list) and [np.shape(one) for one in g] == shapes]
            found += [lists[0][self.ways[0][-1]]] if lists else []
        return next((g for g in found if isinstance(g, (np.ndarray, np.generic, float))), None)


    def gradient_kept_in(self, machine: Any) -> Array | None:
        """The array at kept_at, or None"""
        try:
            g = reached(machine, self.kept_at)
        except (AttributeError, LookupError, TypeError):
            return None
        return g.T if self.turned and isinstance(g, np.ndarray) else g


def _returned_for(way, returned, by_its_last):
    """(name, gradient) of what came back for the array at the end of a way: under "dense1.W" for self.dense1.W, in
    returned["dense1"]["W"], or, by_its_last, under "W" or "dW"; else (None, None)
    """
    for first in range(len(way) - 1):
        name = ".".join(map(str, way[first:]))
        inside = gradient_inside(returned, way[first:]) if way[first] in returned else None
        found = gradient_of(name, returned) if inside is None else inside
        if isinstance(found, (np.ndarray, np.generic, float)):
            return name if inside is None else way[first], found
    return (way[-1], gradient_of(way[-1], returned)) if by_its_last else (None, None)


def _gradient_at(machine, way):
    """The gradient beside the array at the end of the way, or None."""
    if type(x := reached(machine, way)) is not np.ndarray and is_floating(x):            # an array that has a gradient
        return getattr(x, "grad", None)
    *way, last = way
    if isinstance(last, int) and not way:                # of a list or tuple by itself there is nothing beside
        return None
    if isinstance(last, int):                            # weights[i] and dweights[i]
        *way, listed = way
        those, many = members(reached(machine, way)), len(reached(machine, (*way, listed)))
        lists = [g for said, g in those.items() if isinstance(g, list) and len(g) == many and keeps_gradients(said)]
        found = [gradient_beside(those, listed), *lists[: len(lists) == 1]]      # dweights; grads, of params
        return next((g[last] for g in found if isinstance(g, (list, dict)) and g), None)
    holders = [way, way[:-1]] if way else [way]          # self.W and self.dW; self.params["W"] and self.grads["W"]
    around = [members(reached(machine, holder)) for holder in holders]
    found = (gradient_beside(those, last, weights) for weights in (False, True) for those in around)
    found = next((g for g in found if g is not None), None)
    if found is None:
        found = next((g for holder in holders for g in _computed(reached(machine, holder), last)), None)
    if found is None and (way or method_of(type(machine), FORWARD, GO_FORWARD) is None):         # W.grad, of a tensor
        read = _read_on(machine, way)
        found = next((g for name, g in around[0].items() if _is_its_gradient(name, around[0], read)), None)
    return found


def _computed(owner, name):
    """The gradients of `name` that a property of an object's class computes"""
    for said in _properties(type(owner)):
        if plain(said) != plain(name) and is_gradient_name(said, name) and not may_be_a_weight(said, name):
            with suppress(*FAILURES):                    # before the backward, there may be none
                yield getattr(owner, said)


@lru_cache(1000)
def _properties(cls):
    return [name for name, _ in inspect.getmembers_static(cls, lambda x: isinstance(x, property))]


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
    holders = [members(x) for said, x in those.items() if not isinstance(x, (list, tuple)) and keeps_gradients(said)]
    inside = (gradient_of(name, holder) for holder in holders)
    return next((g for g in [found, *inside] if g is not None), None)


def stored_arrays(machine: Any, private: bool = False) -> dict[str, Stored]:
    """{name: Stored} of the floating arrays in an object, in the objects it holds, and in its lists and dicts.

    What is named as another's gradient is left out; so are masks of zeros and ones, or of zeros and what dropout
    divides by, and arrays in dicts, lists and tuples whose names begin with "_", unless `private`.
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
            no_weight = _keeps_gradients(name, value) or (_is_private(name, value) and not private)
            no_weight = no_weight or NEIGHBOURS.match(str(name))
            if not no_weight and not is_gradient(name, those, read):
                walk(value, (*way, name), read)

    walk(machine, (), frozenset())
    for p in found.values():
        p.ways.sort(key=len)                             # the shortest gives it its name
    found = {".".join(map(str, p.ways[0])): p for p in found.values()}
    for p in found.values():
        views = {name: q for name, q in found.items() if q is not p and np.may_share_memory(p.data, q.data)}
        p.shares = bool(views)
        p.has_it_all_in = tuple(views) if sum(q.data.size for q in views.values()) == p.data.size else ()
    return found


def _is_private(name, x):
    """True for _saved and the like: dicts, lists and tuples with arrays, unless they are called _params or _weights"""
    holds = isinstance(x, (dict, list, tuple)) and any(map(is_floating, x.values() if isinstance(x, dict) else x))
    return str(name)[:1] == "_" and holds and not HOLDS_WEIGHTS.match(str(name))


def _keeps_gradients(name, x):
    """True for dicts, lists and objects with gradients, or with what the backward needs: self.grads, self.cache"""
    holds = isinstance(x, (dict, list)) or (bool(members(x)) and not callable(x))
    return holds and (keeps_gradients(name) or "cache" in plain(name))


def _read_on(machine, way):
    """The names that the forwards of the objects on a way read"""
    return set().union(*(_read_in_forward(type(reached(machine, way[:k]))) for k in range(len(way) + 1)))


@lru_cache(1000)
def _read_in_forward(cls):
    """The names of attributes and keys in the forward of a class, and in the methods that it calls"""
    everything = [one for base in reversed(cls.__mro__) for one in vars(base).items()]
    methods = {name: g for name, g in everything if inspect.isfunction(g)}
    named = {*FORWARD, "__call__", method_of(cls, FORWARD, GO_FORWARD)}
    waiting, found, seen = [name for name in named if name in methods], set(), set()
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
    if isinstance(x, list) or is_array_of_objects(x):
        return dict(enumerate(x))
    if isinstance(x, tuple):                             # which cannot be given other arrays: it may be a cache
        return {k: part for k, part in enumerate(x) if not isinstance(part, (np.ndarray, dict, list, tuple))}
    module = type(x).__module__.partition(".")[0]
    if module in ("builtins", "numpy", "mini_tf", "random", "functools") or inspect.isclass(x):
        return {}
    slots = [name for cls in type(x).__mro__ for name in list_of(vars(cls).get("__slots__", ()))]
    own = vars(x) if hasattr(x, "__dict__") else {}
    return {name: getattr(x, name) for name in slots if hasattr(x, name)} | own if slots else own


def parts_of(x: Any) -> dict[str | int, Any]:
    """`members`, and the parts of a tuple, by their names if they have such"""
    return x._asdict() if fields_of(x) else dict(enumerate(x)) if isinstance(x, tuple) else members(x)


def list_of(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def fields_of(x: Any) -> tuple[str, ...]:
    """The names of the parts of a NamedTuple; () of others"""
    return getattr(x, "_fields", ()) if isinstance(x, tuple) else ()


def is_array_of_objects(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1


def reached(machine: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        by_name = isinstance(step, str) and not isinstance(machine, dict)
        machine = getattr(machine, step) if by_name else machine[step]
    return machine


def copy_of(machine: Any, copies: dict[int, Any] | None = None) -> Any:
    """A deep copy of an object; functions that it keeps, such as those on a tape, work on the copy, too.

    copies: {id: copy} of all that was copied, as copy.deepcopy notes them
    """
    copies = {} if copies is None else copies
    own = copy.deepcopy(machine, copies)
    for x in list(copies.get(id(copies), ())):           # all that was copied: deepcopy keeps it there
        if isinstance(x, np.ndarray) and type(x) is not np.ndarray:      # NumPy copies the numbers only, not x.grad
            vars(copies[id(x)]).update(copy.deepcopy(vars(x), copies))
    for holder, name, x in _kept_in(own):
        if (other := _working_on(copies, x)) is not x:
            _put(holder, name, other)
    return own


def _kept_in(machine):
    """[(holder, name, what it is)] of all that an object keeps, and what that keeps"""
    found, waiting, seen = [], [machine], set()
    while waiting:
        holder = waiting.pop()
        if id(holder) not in seen and not is_floating(holder):
            seen.add(id(holder))
            those = members(holder)
            found += [(holder, name, x) for name, x in those.items() if not isinstance(holder, tuple)]
            waiting += those.values()
    return found


def _working_on(copies, x):
    """A function with copies of what it has in its closure, or a tuple with such; x itself if there is nothing of it"""
    if isinstance(x, tuple):
        parts = [_working_on(copies, part) for part in x]
        if all(part is one for part, one in zip(parts, x)):
            return x
        return x._make(parts) if fields_of(x) else tuple(parts)
    cells = x.__closure__ or () if isinstance(x, FunctionType) else ()
    others = tuple(_with_a_copy(copies, cell) for cell in cells)
    if all(other is cell for other, cell in zip(others, cells)):
        return x
    other = FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, others)
    other.__kwdefaults__ = x.__kwdefaults__
    return other


def _with_a_copy(copies, cell):
    """A cell of a closure with the copy of what is in this one, or this one if nothing is, or no copy was made"""
    try:
        x = cell.cell_contents
    except ValueError:
        return cell
    other = copies.get(id(x), x)
    return cell if other is x else CellType(other)


def _put(holder, name, x):
    if isinstance(holder, (dict, list)) or is_array_of_objects(holder):
        holder[name] = x
    else:
        setattr(holder, name, x)


def with_parameters(
    machine: Any, parameters: dict[str, Stored], earlier: Sequence[Array] | None = None, may_change_them: bool = False
) -> Any:
    """A copy of the object with the parameters' data in place of its arrays; gradients of earlier runs become zero.

    earlier          those gradients, if they are known
    may_change_them  copies of the data are put, since what is called may make a step of training
    """
    copies = {}
    own = copy_of(machine, copies)
    for p in parameters.values():
        p.put(own, p.data.copy() if may_change_them else p.data)
    for g in earlier_gradients(machine, parameters) if earlier is None else earlier:
        if id(g) in copies:
            copies[id(g)][...] = 0
    _let_sizes_follow(own, parameters)
    _let_precision_follow(own, parameters)
    return own


def _let_precision_follow(machine, parameters):
    """Other arrays in float32, such as buffers, become float64 where those of the parameters have."""
    if not any(p.was_single and p.data.dtype == np.float64 for p in parameters.values()):
        return
    for holder, name, x in _kept_in(machine):
        if type(x) is np.ndarray and x.dtype == np.float32:
            _put(holder, name, x.astype(np.float64))


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
    found += [p.gradient_kept_in(machine) for p in parameters.values() if p.kept_at and not p.is_returned]
    return [g for g in found if is_floating(g)]


def is_container(x: Any) -> bool:
    return isinstance(x, (tuple, list, dict)) or bool(members(x))


def gradient_inside(gradients: Any, way: Sequence[str | int], arrays: Any = None) -> Any:
    """The gradient at the end of a way, ("layers", 0, "W"), among gradients that are kept as the arrays are, or None

    arrays: what the way leads through; a NamedTuple's gradients may come in a plain tuple
    """
    for step in way:
        fields = fields_of(arrays)
        arrays = None if arrays is None else reached(arrays, [step])
        if fields_of(gradients):
            gradients = gradients._asdict()
        if not isinstance(gradients, (list, tuple)) and (those := members(gradients)):
            gradients = those[step] if step in those else gradient_of(step, those)
        else:
            place = fields.index(step) if step in fields else step
            is_there = isinstance(gradients, (list, tuple)) and isinstance(place, int) and place < len(gradients)
            gradients = gradients[place] if is_there else None
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
    parts = parts_of(x)
    plain_container = isinstance(x, (dict, list, tuple)) or is_array_of_objects(x)
    known = {} if plain_container else parts             # of an object, not its gradients
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
    if fields_of(x):
        return x._replace(**{name: packed(getattr(x, name), those) for name, those in parts.items()})
    if isinstance(x, (list, tuple)) or is_array_of_objects(x):
        listed = [packed(part, parts[k]) if k in parts else part for k, part in enumerate(x)]
        return tuple(listed) if isinstance(x, tuple) else listed if isinstance(x, list) else array_of_objects(listed)
    other = x.copy() if isinstance(x, dict) else copy.deepcopy(x)        # an object may keep things, and change them
    members(other).update({key: packed(members(x)[key], those) for key, those in parts.items()})
    return other


def array_of_objects(parts: Sequence[Any]) -> np.ndarray:
    """One axis of what stands in a list, arrays as they are"""
    array = np.empty(len(parts), dtype=object)
    for k, part in enumerate(parts):
        array[k] = part
    return array

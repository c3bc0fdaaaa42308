"""Whose gradient an array in somebody's object is, where its name does not tell: measured.

    self._w, self._gain        the weights
    self._gw, self._ggain      after the backward: the slopes of Σ dy·y say which is whose

A right gradient is recognized by its slopes along random directions. Of a wrong one nothing can be recognized; but
where the others stand, beside their weights, in the same list or under names made in the same way, it stands, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.naming import in_this_case, is_gradient_name, says_gradient
from mini_tf.gradcheck.measuring.stored import RETURNED, Stored, is_floating, parts_of
from mini_tf.types import Array

import numpy as np

DIRECTIONS = 3
STEP = 1e-4              # times max(1, |x|), in each direction
CLOSE = 1e-5             # relative to |gradient|·|direction|
DEEPEST = 6              # of objects, dicts and lists inside others
MANY = 10_000            # entries of a list

Way = tuple[str | int, ...]


def find_kept_gradients(
    parameters: Mapping[str, Stored], machine: Any, before: Any, came: Sequence[Any], y_of: Callable[[], Array],
    dy: Array | float,
) -> None:  # fmt: skip
    """Note at each parameter without a gradient, in kept_at, the way to the array that is its gradient.

    machine   the object after its backward; before: as it was before it; came: what came back
    y_of      gives y, of the parameters' data
    dy        what the backward was given
    """
    old = [x for _, x in _arrays_in(before)]
    used = [p.grad for p in parameters.values() if p.grad is not None]
    known = [p.data for p in parameters.values()]
    candidates = {
        way: x for way, x in [*_arrays_in(machine), *_arrays_in(list(came), (RETURNED,))]
        if not any(_same(x, one) for one in [*old, *used, *known]) and np.isfinite(x).all() and x.any()
    }  # fmt: skip
    wanted = {name: p for name, p in parameters.items() if p.grad is None and p.data.size}
    slopes = {name: _slopes(p.data, y_of, dy) for name, p in wanted.items()}
    wanted = {name: p for name, p in wanted.items() if slopes[name].any()}       # those that y depends on
    for name, p in wanted.items():
        others = [q.ways[0][-1] for q in wanted.values() if q is not p]
        fitting = {way: x for way, x in candidates.items() if not _is_anothers(way[-1], p.ways[0][-1], others)}
        found = next(_recognized(slopes[name], p.data, fitting), None)
        if found:
            p.kept_at, p.turned = found
            del candidates[p.kept_at]
    ways = {name: p.kept_at for name, p in wanted.items() if p.kept_at}
    candidates = {way: x for way, x in candidates.items() if way[0] == RETURNED or not any(_same(x, g) for g in came)}
    for p in [p for p in wanted.values() if not p.kept_at]:
        like = [one for name, way in ways.items() for one in _in_the_same_place(p.ways[0], way, wanted[name].ways[0])]
        beside = [way for way in candidates if way[:-1] in {way[:-1] for way in ways.values()} and _may_be_one(way)]
        fitting = [way for way in like if way in candidates] or beside
        fitting = [way for way in dict.fromkeys(fitting) if candidates[way].shape == p.data.shape]
        if len(fitting) == 1:
            p.kept_at = fitting[0]
            del candidates[p.kept_at]


def _may_be_one(way):
    """True for what is given back, and for what is called gw, d_w or grad"""
    return way[0] == RETURNED or str(way[-1]).strip("_")[:1] in ("d", "g", "∂") or says_gradient(way[-1])


def _arrays_in(x: Any, way: Way = (), seen: frozenset[int] = frozenset()) -> Iterator[tuple[Way, Array]]:
    """(way, array) of the floating arrays in an object, and in the objects, dicts, lists and tuples there"""
    if is_floating(x):
        yield way, x
    elif id(x) not in seen and len(way) <= DEEPEST:
        for name, part in parts_of(x).items():
            if isinstance(name, str) or (isinstance(name, int) and name < MANY):         # and no id(W)
                yield from _arrays_in(part, (*way, name), seen | {id(x)})


def _same(x, y):
    return x.shape == np.shape(y) and np.array_equal(x, y)


def _directions(x):
    return np.random.default_rng(0).standard_normal((DIRECTIONS, *x.shape))


def _slopes(x, y_of, dy):
    """The slopes of Σ dy·y along the directions of x; 0 where y cannot be computed"""
    given, h = x.copy(), STEP * max(1.0, float(np.abs(x).max()))

    def phi(step, direction):
        x[...] = given + step * direction
        return float((y_of() * dy).sum())

    try:
        return np.array([(8 * (phi(h, v) - phi(-h, v)) - (phi(2 * h, v) - phi(-2 * h, v))) / (12 * h)
                         for v in _directions(given)])  # fmt: skip
    except FAILURES:
        return np.zeros(DIRECTIONS)
    finally:
        x[...] = given


def _recognized(slopes, x, candidates):
    """(way, whether it is transposed) of the candidates that are the gradient of x; a square one is not transposed"""
    directions = _directions(x)
    for way, g in candidates.items():
        for one, turned in ((g, False), (g.T, True)):
            if one.shape == x.shape and not (turned and g.shape == x.shape):
                off = [abs(float((one * v).sum()) - slope) for v, slope in zip(directions, slopes)]
                if all(d <= CLOSE * np.linalg.norm(one) * np.linalg.norm(v) for d, v in zip(off, directions)):
                    yield way, turned


def _is_anothers(last, own, others):
    """Whether an array's name says that it is the gradient of another parameter: grads["keys"], or grads[1] of two"""
    if isinstance(last, int):
        return isinstance(own, int) and last != own
    named = [name for name in others if name != own and is_gradient_name(last, name) and in_this_case(last, name)]
    return bool(named) and not is_gradient_name(last, own)


def _in_the_same_place(way: Way, kept_at: Way, beside: Way) -> Iterator[Way]:
    """Where the gradient of what is at `way` would be, if that of what is `beside` is kept_at

    Of W.v, with b.d for b.v: W.d. Of params[1], with gs[0] for params[0]: gs[1]. Of W, with g_b for b: g_W. Of a, with
    B for b: A.
    """
    if len(way) == len(kept_at) == len(beside):
        yield tuple(own if kept == other else kept for own, kept, other in zip(way, kept_at, beside))
    own, last = str(beside[-1]), str(kept_at[-1])
    if last == own.swapcase():
        yield (*kept_at[:-1], str(way[-1]).swapcase())
    if own in last:
        yield (*kept_at[:-1], last.replace(own, str(way[-1])) if last != own else way[-1])

"""Constants that guard: tiny ones against log 0 and 1/0, and bounds of gradients that would explode.

    loss = −log(p + 1e-12), dz = p − t        is right where p is far above 10⁻¹², and meant for nothing else
    np.clip(dW, -5, 5, out=dW)                is what its author wants

So a point where one of them decides cannot show that a gradient is wrong. Whether a tiny constant decides what y is, is
seen from y itself: it changes as the constant does.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.brought import Brought
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.stored import parts_of
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.measuring.variables import Variables, named_in
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np

TINY = 1e-5              # the largest such constant
DEEPEST = 6              # of objects in others
Functions = list[FunctionType]


def influence_of_guards(subject: Subject, dy: Array | float) -> float:
    """How much Σ dy·y changes, relative to Σ |dy·y|, if tiny constants in f's code, defaults and options are doubled"""
    y = np.asarray(subject.forward()[0])
    options = {name: number for name, number in subject.options().items() if _is_tiny(number)}
    try:
        with _doubled(functions_of(subject.f)):
            terms = [np.asarray(subject.forward()[0]) - y]
        for name, number in options.items():
            with subject.with_option(name, 2 * number):
                terms.append(np.asarray(subject.forward()[0]) - y)
    except FAILURES:
        return np.inf
    return max(float(np.abs(dy * term).sum()) for term in terms) / max(float(np.abs(dy * y).sum()), 1e-300)


def is_clipped(evidence: Evidence) -> bool:
    """Whether all wrong entries are some number of the code, ±5, and the slopes lie beyond: np.clip(dW, -5, 5)"""
    numbers = {abs(x) for g in functions_of(evidence.subject.f) for code in codes_inside(g.__code__)
               for x in code.co_consts if type(x) in (int, float)}                       # fmt: skip
    numbers |= {abs(x) for x in evidence.subject.options().values()}
    for name in evidence.wrong:
        wrong = evidence.wrong_entries(name)
        g, slopes = evidence.gradients[name][wrong], evidence.slopes[name][wrong]
        if not g.size or np.ptp(np.abs(g)) or abs(g[0]) not in numbers or not (slopes / g > 1).all():
            return False
    return bool(evidence.wrong)


def functions_of(f: Any) -> Functions:
    """The learner's functions that f is made of: itself, what it names in its file, methods of objects that it has"""
    first = [f.written_forward, f.written_backward] if isinstance(f, Brought) else [f]
    owners = [getattr(f, "its_object", None), *(getattr(g, "__self__", None) for g in first)]
    classes = {cls for owner in owners for held in _objects_in(owner) for cls in type(held).__mro__}
    methods = [g for cls in classes for g in vars(cls).values()]
    found = set()
    for g in [*first, *methods]:
        g = inspect.unwrap(getattr(g, "__func__", g))
        if inspect.isfunction(g) and g not in found and is_theirs(g):
            others = named_in([g], Variables(g)).values()
            more = [h for x in others for h in (vars(x).values() if inspect.isclass(x) else [x])]
            found |= {h for h in [g, *(getattr(h, "__func__", h) for h in more)] if inspect.isfunction(h)}
    return [g for g in found if is_theirs(g)]


def _objects_in(x: Any, depth: int = 0) -> Iterator[Any]:
    if x is not None and depth <= DEEPEST:
        yield x
        for part in parts_of(x).values():
            if not isinstance(part, (np.ndarray, int, float, str)):
                yield from _objects_in(part, depth + 1)


def _is_tiny(x):
    return isinstance(x, float) and (0 < abs(x) <= TINY or 0 < abs(1 - x) <= TINY)


def _twice(x):
    """2·10⁻¹² for 10⁻¹², and 1 − 2·10⁻⁷ for 1 − 10⁻⁷; code and tuples with such numbers, too"""
    if isinstance(x, CodeType):
        return x.replace(co_consts=tuple(map(_twice, x.co_consts)))
    if isinstance(x, tuple):
        return tuple(map(_twice, x))
    if not _is_tiny(x):
        return x
    return 2 * x if abs(x) <= TINY else 2 * x - 1


@contextmanager
def _doubled(functions: Functions) -> Iterator[None]:
    """Inside the block, tiny constants and defaults of the functions are twice as large."""
    before = [(g, g.__code__, g.__defaults__, g.__kwdefaults__) for g in functions]
    try:
        for g, code, defaults, by_name in before:
            g.__code__, g.__defaults__ = _twice(code), _twice(defaults)
            g.__kwdefaults__ = by_name and {name: _twice(x) for name, x in by_name.items()}
        yield
    finally:
        for g, code, defaults, by_name in before:
            g.__code__, g.__defaults__, g.__kwdefaults__ = code, defaults, by_name

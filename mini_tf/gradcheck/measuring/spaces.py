"""The namespaces of a learner's files: of f's own, and of those that it uses."""

import inspect
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

from mini_tf.gradcheck.measuring.authors import is_their_file, is_theirs
from mini_tf.gradcheck.measuring.brought import Brought
from mini_tf.gradcheck.measuring.variables import Variables


def namespaces(f: Any) -> list[dict[str, Any]]:
    """The globals of f's file, and of the learner's other files that it uses."""
    found, waiting = [], [inspect.unwrap(g) for g in functions_of(f)]
    around = [cell.cell_contents for g in waiting for cell in Variables(g).around.values()]
    around = [x for x in around if isinstance(x, ModuleType)]            # of a lambda
    waiting += _functions_among(around)
    while waiting:
        space = getattr(waiting.pop(), "__globals__", None)
        if space is None or any(space is other for other in found):
            continue
        found.append(space)
        waiting += _functions_among(list(space.values()))
    return found


def _functions_among(values):
    """The learner's functions among values, in their classes and in their modules"""
    for value in values:
        if inspect.isfunction(value) and is_theirs(value):
            yield inspect.unwrap(value)
        elif inspect.isclass(value) and is_theirs(value):
            methods = (getattr(g, "__func__", g) for g in vars(value).values())          # static ones, too
            yield from filter(inspect.isfunction, methods)
        elif isinstance(value, ModuleType) and is_their_file(getattr(value, "__file__", None)):
            yield from _functions_among([x for x in vars(value).values() if not isinstance(x, ModuleType)])


def functions_of(f: Any) -> list[FunctionType]:
    """The plain functions that the learner wrote as f."""
    found = [f.written_forward, f.written_backward] if isinstance(f, Brought) else [f]
    found = [g.func if isinstance(g, partial) else g for g in found]
    found = [getattr(g, "__func__", g) for g in found]
    return [g for g in found if inspect.isfunction(g) and is_theirs(g)]

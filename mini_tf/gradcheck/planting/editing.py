"""Planting a bug: a function whose source has one small edit, for every caller, as long as a block lasts.

    with planted(Edit(ops.tanh, "1 - y * y", "1 - y")):
        ...
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mini_tf import kernels
from mini_tf.gradcheck.source import compiled, running_as, source_of
from mini_tf.gradcheck.verdict import turn


class Edit(NamedTuple):
    """What can be planted, as can a `Bug`: in the source of target (of a class, its __call__), find becomes replace."""

    target: Callable
    find: str
    replace: str


@contextmanager
def planted(bug: Edit) -> Iterator[None]:
    """Inside the block, every caller of bug.target runs it with bug.find replaced by bug.replace.

    The function object stays the same and gets the edited code. So every module, class and closure that holds it has
    the bug at once, and loses it at the end of the block, even after an exception.
    Raises ValueError unless `find` occurs exactly once in the source, if the source is not available, and if the edit
    changes the number of lines, because the line numbers below it would be wrong.
    """
    find, replace = bug.find, bug.replace
    with turn, kernels.reference_only():                 # an op's twin would not have the bug
        source, at = _place(bug.target, find)
        function, text = source.function, source.file.text
        if find.count("\n") != replace.count("\n"):
            raise ValueError(f"{function.__qualname__}: {find!r} and {replace!r} must have the same number of lines")
        wrong = text[:at] + replace + text[at + len(find) :]
        with running_as({function: compiled(function, wrong, text)}), _shown_as(source.path, wrong):
            yield


def place_of_edit(bug: Edit) -> tuple[str, int]:
    """(file, line) of what is edited"""
    source, at = _place(bug.target, bug.find)
    return source.path, source.file.line_of(at)


def _place(target, find):
    """(Source of the function, position of `find` in its file), which must be unique within the function"""
    source = source_of(target)
    start, end = source.file.starts[source.node.lineno - 1], source.file.starts[source.node.end_lineno]
    times = source.file.text.count(find, start, end)
    if times != 1:
        raise ValueError(f"{source.function.__qualname__}: {find!r} occurs {times} times in its source, expected once")
    return source, source.file.text.index(find, start)


@contextmanager
def _shown_as(path, text):
    """Inside the block, inspect, tracebacks and all that read source files by linecache read this text of the file."""
    linecache.checkcache(path)
    before = linecache.cache.get(path)
    try:
        if before is not None:                           # with its size and date, so that it counts as current
            linecache.cache[path] = *before[:2], text.splitlines(keepends=True), path
        yield
    finally:
        if before is not None:
            linecache.cache[path] = before

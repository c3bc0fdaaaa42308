"""Planting a bug, or the repair of one: a function whose source has a small edit, as long as a block lasts.

    with planted(Bug(ops.tanh, "tanh: 1 − y", "1 - y * y", "1 - y")):
        ...
"""

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FunctionType
from typing import Any, NamedTuple
from warnings import catch_warnings

from mini_tf import kernels
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.report import Change
from mini_tf.gradcheck.source import Unavailable, compiled, running_as, source_of
from mini_tf.gradcheck.verdict import check_lock
from mini_tf.places import place


class Bug(NamedTuple):
    """A change to plant: in the source of `target` (of a class, its __call__), `find` becomes `replace`."""

    target: Callable[..., Any]
    name: str
    find: str
    replace: str
    about: str = ""          # what is wrong, where the name does not say it
    shown_by: str = ""       # the example whose check has to find it, unless the name begins with the example's

    @property
    def example(self) -> str:
        """The entry of EXAMPLES whose check has to find the bug"""
        return self.shown_by or self.name.partition(":")[0]


@contextmanager
def planted(bug: Bug) -> Iterator[tuple[str, int]]:
    """Inside the block, every caller of bug.target runs it with bug.find replaced by bug.replace.

    Yields (file, line) of what is edited. The function object stays the same and gets the edited code. So every module,
    class and closure that holds it has the bug at once, and loses it at the end of the block, even after an exception.
    Raises ValueError unless `find` occurs exactly once in the source, and if the source is not available.
    """
    on_purpose = catch_warnings(action="ignore", category=kernels.FormulaEdited)
    with check_lock, kernels.reference_only(), on_purpose:     # an op's twin would not have the bug
        source = source_of(bug.target)
        text, start = source.file.text, source.file.starts[source.node.lineno - 1]
        if (times := text.count(bug.find, start, source.file.span(source.node)[1])) != 1:
            name = source.function.__qualname__
            raise ValueError(f"{name}: {bug.find!r} occurs {times} times in its source, expected once")
        at = text.index(bug.find, start)
        wrong = text[:at] + bug.replace + text[at + len(bug.find) :]
        with running_as({source.function: compiled(source.function, wrong)}), _shown_as(source.path, wrong):
            yield source.path, source.file.line_of(at)


@contextmanager
def repaired(changes: Sequence[Change], run: Callable[[], Any]) -> Iterator[tuple[str, int]]:
    """Inside the block, the functions that run() calls have these changes of a Report.

    Yields (file, line) of the first. Raises ValueError or SyntaxError if one cannot be made within its line.
    """
    functions = functions_that_run(run)
    with ExitStack() as stack:                           # each in the text that the one before has left
        places = [stack.enter_context(planted(_edit(change, functions))) for change in changes]
        yield places[0][0], changes[0].line


def _edit(change: Change, functions: Sequence[FunctionType]) -> Bug:
    for function in functions:
        with suppress(Unavailable):
            source = source_of(function)
            inside = source.node.lineno <= change.line <= (source.node.end_lineno or 0)
            if not inside or place(source.path, change.line) != change.place:
                continue
            *above, now = source.file.lines[source.node.lineno - 1 : change.line]        # so that it is found once
            right = now.replace(change.before, "pass" if change.after.startswith("(without") else change.after)
            if right != now:
                return Bug(function, change.kind, "\n".join([*above, now]), "\n".join([*above, right]))
    raise ValueError(f"{change.place} is no line that can be changed")


@contextmanager
def _shown_as(path: str, text: str) -> Iterator[None]:
    """Inside the block, inspect, tracebacks and all that read source files by linecache read this text of the file."""
    before = linecache.cache[path]                       # there, as the source was read
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path        # no date: not read again
    try:
        yield
    finally:
        linecache.cache[path] = before

"""Making the changes that a report found, as long as a block lasts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FunctionType
from typing import Any

from mini_tf.gradcheck.planting.editing import Bug, planted
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.report import Change
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.places import place


@contextmanager
def repaired(changes: Sequence[Change], run: Callable[[], Any]) -> Iterator[tuple[str, int]]:
    """Inside the block, the functions that run() calls have these changes of a Report.

    Yields (file, line) of the first. Raises ValueError or SyntaxError if one cannot be made within a line of them.
    """
    functions, edits = functions_that_run(run), list[Bug]()
    with ExitStack() as stack:
        for change in changes:                           # each in the text that the one before has left
            edits.append(_edit(change, functions))
            stack.enter_context(planted(edits[-1]))
        yield edits[0].target.__code__.co_filename, changes[0].line


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

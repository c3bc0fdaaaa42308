"""Has an iteration come to its end?  A loop that a `break` leaves once nothing changes any more may run out of rounds.

Where Newton's method has not converged, f is not the function that its backward differentiates (by the implicit
function theorem, say), and measured slopes are those of something else.
"""

import ast
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from mini_tf.gradcheck.measuring.authors import is_their_file


def loops_run(run: Callable[[], Any]) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """(loops that a break has left, loops that have come to their last round) while run() runs, as (file, line).

    Of the learner's for-loops that have a break.
    """
    broken, exhausted = set(), set()

    def follow(frame, event, _):
        path = frame.f_code.co_filename
        if not is_their_file(path) or not (loops := _loops_with_break(path)):
            return None
        last = frame.f_lineno

        def see(frame, event, _):
            nonlocal last
            line = None if event == "return" else frame.f_lineno
            for loop in loops:
                if last in loop and line not in loop:
                    (exhausted if last == loop.start else broken).add((path, loop.start))
            last = last if line is None else line
            return see

        return see

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        run()
    finally:
        sys.settrace(before)
    return broken, exhausted


@lru_cache(100)
def _loops_with_break(path):
    """[range of lines] of the for-loops of a file that have a break of their own"""
    try:
        tree = ast.parse(Path(path).read_text())
    except (OSError, SyntaxError, ValueError):           # typed at a prompt
        return []
    loops = [one for one in ast.walk(tree) if isinstance(one, ast.For) and any(map(_breaks, one.body))]
    return [range(loop.lineno, loop.end_lineno + 1) for loop in loops]


def _breaks(statement):
    """True if a statement inside a loop has a break that leaves this loop."""
    if isinstance(statement, (ast.For, ast.While, ast.FunctionDef)):
        return False
    return isinstance(statement, ast.Break) or any(map(_breaks, ast.iter_child_nodes(statement)))

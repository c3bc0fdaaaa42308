"""The author's functions that run in a check: found by watching one run, with their sources."""

import gc
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.source import functions_sharing_code
from mini_tf.places import codes_inside, is_theirs

OURS = Path(__file__).parents[1]
MACHINERY = [OURS / name for name in ("gradcheck", "kernels", "parallel", "trace.py", "backend.py", "ops/op.py")]


@cache
def _is_formula(path: str) -> bool:
    """True for a file of mini_tf with formulas and layers, not with what runs them"""
    return Path(path).is_relative_to(OURS) and not any(Path(path).is_relative_to(one) for one in MACHINERY)


def functions_that_run(run: Callable[[], object], without: Collection[FunctionType] = ()) -> list[FunctionType]:
    """The functions that run() calls, each with those inside it: the author's; if there are none, mini_tf's formulas.

    A function inside another that has run, too, is found in that one. without: functions that are left out
    """
    functions_sharing_code.cache_clear()                                  # by now, there may be more
    codes = codes_that_run(run)
    theirs = [code for code in codes if is_theirs(code.co_filename)]
    formulas = [code for code in codes if _is_formula(code.co_filename)]
    chosen = theirs or [code for code in formulas if not code.co_qualname.startswith("Arguments.")]
    chosen = [code for code in chosen if not code.co_name.startswith("<") or code.co_name == "<lambda>"]
    inner = {id(one) for code in chosen for one in codes_inside(code)[1:]}
    outer = [code for code in chosen if id(code) not in inner]
    found = {one.__code__: one for one in gc.get_referrers(*outer) if isinstance(one, FunctionType)} if outer else {}
    return [found[code] for code in outer if code in found and found[code] not in without]


def codes_that_run(run: Callable[[], object]) -> list[CodeType]:
    """The code objects of all functions that run() calls, in the order in which they are first called"""
    codes: dict[CodeType, None] = {}

    def watch(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            codes.setdefault(frame.f_code)

    sys.setprofile(watch)
    try:
        with suppress(*FAILURES):
            run()
    finally:
        sys.setprofile(None)
    return [*codes]

"""Running a function of a backward, or a forward, with other code: a change that is tried."""

import ast
import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.brought import Brought
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.spaces import functions_of, namespaces
from mini_tf.gradcheck.measuring.variables import Variables
from mini_tf.gradcheck.planting.editing import function_of, rebuilt, running_as, source_of
from mini_tf.gradcheck.reasons.endless import interrupted_after
from mini_tf.gradcheck.reasons.theirs import Part, following
from mini_tf.types import Array

import numpy as np

ENOUGH = 10_000          # lines, of a changed function with a while-loop
LONGEST = 3.0            # seconds of a run with a change; longer, if one without is slow


def made_right(evidence: Evidence, part: Part, code: CodeType) -> set[str]:
    """Names of the gradients that agree with the measured slopes when part.runs runs this code; none if y changes."""
    gradients = gradients_with(evidence, part, code)
    if gradients is None:
        return set()
    try:
        return {name for name in evidence.slopes if evidence.agrees(name, gradients.get(name))}
    except FAILURES:                                     # most changes make no sense
        return set()


def gradients_with(
    evidence: Evidence, part: Part, code: CodeType, dy_must_stay: bool = False
) -> dict[str, Array] | None:
    """{name: gradient} when part.runs runs this code, for `evidence.another_dy`.

    None if that fails, changes y, or writes into dy where the backward does not, or where dy_must_stay.
    """
    subject, dy = evidence.subject, evidence.another_dy
    if isinstance(subject.f, Brought):
        subject.f.goes_back_once = True
    evidence.back_to_the_point()
    for p in subject.params.values():
        p.grad = None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), interrupted_after(LONGEST + 20 * evidence.seconds):
            warnings.simplefilter("ignore")
            if part.runs is function_of(evidence.backward) and not isinstance(subject.f, Brought):
                with _ending(part.runs, code):
                    gradients = subject.named(rebuilt(function_of(subject.forward()[1]), code)(dy))
            else:
                with running_as(part.runs, code), _ending(part.runs, code):
                    y, backward = subject.forward()
                    if not np.array_equal(y, evidence.y):
                        return None
                    gradients = subject.named(backward(dy))
        must_stay = dy_must_stay or evidence.dy_stays
        return None if must_stay and not np.array_equal(dy, evidence.dy) else gradients      # dx = dy; dx += …
    except FAILURES:                                     # most changes make no sense
        return None
    finally:
        evidence.back_to_the_point()
        if isinstance(subject.f, Brought):
            subject.f.goes_back_once = False


@contextmanager
def kept_as_it_is(evidence: Evidence) -> Iterator[None]:
    """Inside the block, nothing writes into the arrays of the learner's files and around f, target and the like.

    A change such as `target -= r` would do so for all that are tried after it. Not where f itself writes into one.
    """
    functions, f = functions_of(evidence.subject.f), evidence.subject.f
    values = [x for space in namespaces(f) for x in space.values()]
    values += [cell.cell_contents for g in functions for cell in Variables(g).around.values()]
    arrays = [x for x in values if isinstance(x, np.ndarray) and x.flags.writeable]
    own = [x for x in evidence.everything.values() if isinstance(x, np.ndarray)]
    arrays = [x for x in arrays if not any(np.may_share_memory(x, one) for one in own)]

    def write(flag):
        for x in arrays:
            x.flags.writeable = flag

    write(False)
    try:
        evidence.back_to_the_point()
        evidence.subject.run(evidence.another_dy)
    except FAILURES:
        write(True)
    finally:
        evidence.back_to_the_point()
    try:
        yield
    finally:
        write(True)


@contextmanager
def _ending(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Inside the block, this code may run so many lines, if it has a while-loop, which a change may make endless."""
    if not has_while(function):
        yield
        return
    lines = itertools.count()

    def see(frame, _):
        if next(lines) > ENOUGH:
            raise RuntimeError(f"{frame.f_code.co_name} does not end")

    with following(code, see):
        yield


@cache
def has_while(function: FunctionType) -> bool:
    """True if a function has a while-loop, which a change may make endless."""
    return any(isinstance(one, ast.While) for one in ast.walk(source_of(function)[1]))

"""The first wrong step of a model, and why: its ops and layers are checked one by one, in backward order."""

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.judge import judged, seems_right
from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.elsewhere import arrays_of
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.stored import ways_in
from mini_tf.gradcheck.measuring.subject import Subject, is_float, is_zeros_and_ones, told
from mini_tf.gradcheck.planting.editing import function_of, is_current, source_of
from mini_tf.gradcheck.reasons.alone import alone, is_understood
from mini_tf.gradcheck.reasons.diagnosis import diagnose
from mini_tf.gradcheck.reasons.factors import the_factor
from mini_tf.gradcheck.reasons.feeding import feeds_a_right_one, of_all_wrong_ones
from mini_tf.gradcheck.reasons.inside import (
    about_inside,
    first_wrong,
    measured_inside,
    right_after,
    told_inside,
)
from mini_tf.gradcheck.reasons.lines import (
    calls_what_it_was_handed,
    changed_in_place,
    dropped,
    kept_and_changed,
    kept_by_the_forward,
    lines_of,
    lines_of_all,
    never_run,
    shared_objects,
    suspects,
    unused,
)
from mini_tf.gradcheck.reasons.order import right_when_summed
from mini_tf.gradcheck.reasons.reached import (
    explained_by_factors,
    forms_kept,
    is_right_where_reached,
    right_in_the_model,
)
from mini_tf.gradcheck.reasons.repair import find_repair
from mini_tf.gradcheck.reasons.running import kept_as_it_is
from mini_tf.gradcheck.reasons.theirs import calls_in, functions_of_call, functions_of_steps, parts_of
from mini_tf.gradcheck.report import Report
from mini_tf.gradcheck.verdicts import FAIL, NOT_TESTED, WRONG
from mini_tf.trace import place, source_line

import numpy as np

RIGHT = "right"
FAILED = "a reason could not be looked for"
CONTAINS, AFTER = "contains the wrong one", "after it, not looked at"
ALONE = re.compile(r"the (forward|backward) raised |^y (is|has) |expected an array")         # of a call that cannot run
SHAPE = re.compile(r"^d\S+ has shape ")
EXCHANGED = re.compile(r"^d\S+ and d\S+ are exchanged")
PATH_MISSING = re.compile(r"the gradient through (.+?): (?:that is|both are) missing")
VARIABLE = re.compile(r"(\w+) \(line")
UNPACKS = re.compile(r"  \w+(, \w+)+ = [\w.]+$")
ZEROS = re.compile(r"= *(0|0\.0|np\.zeros(_like)?\(.*\))$")
MANY = 12                # lines: more are no help
BUDGET = 300             # entries measured of each tensor of a step


@dataclass
class Step:
    """One call of an op or a layer, and what the check says of its backward."""

    name: str
    line: str                # the line that called its forward
    place: str               # where its backward is defined
    status: str
    words: list = field(default_factory=list, repr=False)            # what is wrong, if this is the wrong step
    diagnoses: list = field(default_factory=list, repr=False)        # … of each gradient: see Report.words_of
    called: str = "called"   # what happens in that line
    repair: list = field(default_factory=list, repr=False)           # the change: see Report.repair


def first_wrong_step(subject: Subject, seed: int) -> list[Step]:
    """The steps of subject.f in the order in which their backwards ended; [] if it calls none.

    Every call of an op, a layer, or a method that keeps the contract is a step, and so are the learner's own functions
    and objects (`theirs.py`). A layer ends after the ops inside it,
    so the first wrong step is the innermost. Each is checked by itself, on the inputs that it had in the model and with
    a random dy of its own, so that errors of other steps do not matter. Steps after the first wrong one are not
    checked.

    All entries are measured of those steps only that do not seem right at a quick look. If none of them is wrong, there
    is a second quick look, with another dy: what both miss is hardly ever more than a very small mistake.
    A call that ran in the model and does not run by itself is left out: it needs what the model has done before. One
    that is wrong by itself only, as for a matrix that is not symmetric, is right: see `reached.py`.
    """
    calls = calls_in(subject)
    inner = sorted((call for call in calls if call.ended is not None), key=lambda call: call.ended)
    wrong, report, left_out = _first_wrong(subject, calls, inner, seed)
    subject.helpers = [g for call in left_out for g in functions_of_call(call)]
    inner, steps = [call for call in inner if call not in left_out], []
    for k, call in enumerate(inner):
        if wrong is None or k < inner.index(wrong):
            steps.append(_step(call, RIGHT))
        elif call is wrong:
            steps.append(_step(call, WRONG, report.explain().splitlines()[1:], which=_which(call, calls)))
            steps[-1].repair = report.repair
            steps[-1].diagnoses = [report.words_of(t) for t in report.tensors if t.diagnosis]
        else:
            steps.append(_step(call, CONTAINS if call in wrong.parents else AFTER))
    raised = next((call for call in calls if call.error is not None), None)
    if wrong is None and raised is not None:             # all steps before it are right
        f, inputs, params = alone(raised)
        with judged(f, inputs, params, raised.name, seed, BUDGET) as (report, _, _):
            right = report.verdict != FAIL               # by itself: then it was given what belongs to another call
        words = [] if right else [f"it raised {told(raised.error, raised.backward)}"]
        steps.append(_step(raised, RIGHT if right else WRONG, words))
    return steps


def _first_wrong(subject, calls, inner, seed):
    """(the first call that is wrong or None, its Report with reasons, those that do not run by themselves)

    calls   of a run of the subject; inner: those of them that are to be looked at, in this order
    A function of which one call is wrong, and another right in the model only, is no step: its dA may be m times the
    gradient, for m examples. Its lines are then looked at with those of the whole.
    """
    right, left_out, in_the_model_only = [], [], set()
    for look in range(2):
        for call in inner:
            if call in right or call in left_out:
                continue
            if not is_understood(call):
                left_out.append(call)
                continue
            f, inputs, params = alone(call)
            has_gradients = any(is_float(x) or ways_in(x) for x in inputs) or any(p.trainable for p in params.values())
            if not has_gradients or seems_right(f, inputs, params, seed + look):
                continue
            with judged(f, inputs, params, call.name, seed, BUDGET) as (report, own, evidence):
                status = _status(subject, calls, call, report, seed)
                if status == WRONG and evidence is not None and _is_right_but_for_what_it_adds(own, evidence):
                    left_out.append(call)
                    continue
                alike = [other for other in inner if functions_of_call(other) == functions_of_call(call)]
                if status == WRONG and evidence is not None and (
                    in_the_model_only.intersection(map(id, alike)) or _has_another_scale(subject, call, evidence, seed)
                ):
                    left_out += alike
                    continue
                if status != WRONG and report.verdict == FAIL and evidence is not None:
                    in_the_model_only.add(id(call))
                forms = forms_kept(subject, calls, call, seed) if status == WRONG else {}
                if evidence is not None:
                    evidence.siblings = _with_other_masks(call, inner)
                if status == WRONG and not forms:
                    _add_reasons_to_a_step(report, own, evidence, left_out)
            if forms:
                with judged(f, inputs, params, call.name, seed, BUDGET, forms=forms) as (report, own, evidence):
                    _add_reasons_to_a_step(report, own, evidence, left_out)
                notes = [f"{name} is always {form} here, so that is how it was checked" for name, form in forms.items()]
                report.notes += notes
            if status == WRONG:
                return call, report, left_out
            (right if status == RIGHT else left_out).append(call)
    return None, None, left_out


def _is_right_but_for_what_it_adds(own, evidence):
    """Whether a layer's gradients of its weights are wrong only by what they have without dy: a penalty on its weights,
    whose own loss is added elsewhere
    """
    if not evidence.wrong or not {*evidence.wrong} <= own.params.keys():
        return False
    try:
        alone = own.run(0 * evidence.another_dy)
    except FAILURES:
        return False
    added = {name: np.asarray(alone[name]) for name in evidence.wrong if alone.get(name) is not None}
    return len(added) == len(evidence.wrong) and all(
        g.any() and evidence.agrees(name, evidence.gradients[name] - g) for name, g in added.items()
    )


def _has_another_scale(subject, call, evidence, seed):
    """Whether a step only counts in another unit than dy: what is wrong is right but for a size, and some of it is
    right in the model, or such factors do not explain what is wrong there.

    Where dA stands for m times the gradient, for all m examples, dW is divided by m, and dA_prev is not.
    """
    factors = [the_factor(evidence, name) for name in evidence.wrong]
    written = functions_of_call(call)
    if not (written and all(map(is_theirs, written))) or not factors:
        return False
    if None in factors or {*evidence.slopes} - {*evidence.wrong, *evidence.right}:
        return False
    shapes = [x.shape for x in evidence.everything.values() if isinstance(x, np.ndarray)]
    sizes = {size for shape in shapes for size in (*shape, *np.cumprod(shape))}
    if not all(np.isclose([abs(c), 1 / abs(c)], [[size] for size in sizes]).any() for c in factors):
        return False
    there = right_in_the_model(subject, call, seed)
    return any(map(there.get, evidence.wrong)) or (bool(evidence.right) and not explained_by_factors(subject, seed))


def _with_other_masks(call, calls):
    """[{name: array}] of what another call of the same function was given, whose mask has zeros and ones, where that of
    this call has only one of them: at the end of a batch of sentences all may be padding
    """
    own = arrays_of(Subject(*alone(call)))
    plain = [name for name, x in own.items() if x.size > 1 and (not x.any() or (x == 1).all())]
    for other in calls if plain else ():
        if other is call or functions_of_call(other) != functions_of_call(call):
            continue
        arrays = arrays_of(Subject(*alone(other)))
        if any(is_zeros_and_ones(arrays[name]) for name in plain if name in arrays):
            return [arrays]
    return []


def _status(subject, calls, call, report, seed):
    """RIGHT or WRONG; NOT_TESTED if the call, by itself, is not what it is in the model.

    report: of the call by itself
    """
    if any(map(ALONE.search, report.findings)):
        return NOT_TESTED
    if report.verdict != FAIL or not all(map(SHAPE.search, report.findings)):
        return WRONG if report.verdict == FAIL else RIGHT
    if not report.findings and is_right_where_reached(subject, calls, call, seed):
        return RIGHT
    there = right_in_the_model(subject, call, seed)
    of_another_shape = {finding.partition(" ")[0].removeprefix("d") for finding in report.findings}
    wrong = {t.name for t in report.tensors if t.verdict == FAIL} | of_another_shape
    if there and all(there.values()) and wrong <= there.keys():
        return RIGHT
    at_its_inputs = {t.name for t in report.tensors if t.comparisons and t.comparisons[0].wrong}
    return NOT_TESTED if any(map(there.get, at_its_inputs)) else WRONG


def _add_reasons_to_a_step(report, own, evidence, left_out):
    """`add_reasons`, without the notes of the check: those of the whole say more. own: the step's Subject"""
    own.helpers, report.notes = [g for other in left_out for g in functions_of_call(other)], []
    add_reasons(report, evidence)


def add_reasons(report: Report, evidence: Evidence | None) -> None:
    """Add suspected lines, a diagnosis and a repair to the report of a wrong function without a wrong step inside."""
    misfits = [] if evidence is None else [name for name in evidence.subject.tensors if name not in evidence.gradients]
    if evidence is not None and any("wrote into" in finding for finding in report.findings):
        report.notes += changed_in_place(evidence)
    if evidence is None or not (evidence.wrong or misfits):
        return                                           # only a promise was broken
    evidence.back_to_the_point()
    current = is_current(evidence.backward)
    inside, lines, first, first_lines, common, shared = {}, set(), "", set(), set(), []
    if current and (evidence.wrong or evidence.gradients):
        with _all_the_same(report, evidence):
            path = function_of(evidence.backward).__code__.co_filename   # dot may be the gradient behind a sigmoid
            inside = {name: inner for name, inner in measured_inside(evidence).items()
                      if inner.right or not feeds_a_right_one(evidence, (path, inner.states[0][0]))}     # fmt: skip
        with _all_the_same(report, evidence):
            known = right_after(evidence, inside)
            report.suspects, report.suspects_are_sharp = suspects(evidence, misfits, known)
            lines = {*map(_number, report.suspects)}
            first = first_wrong(inside, lines) if _names_say_what_is_meant(evidence, inside) else ""
            report.inside = about_inside(evidence, inside, first)
            first_lines = lines_of(evidence, first, known) & lines
            common = lines_of_all(evidence, known)
        for look in (unused, dropped, kept_and_changed, never_run):
            with _all_the_same(report, evidence):
                report.notes += look(evidence)
        with _all_the_same(report, evidence):
            shared = shared_objects(evidence)
            report.notes += shared
    with _all_the_same(report, evidence):
        report.notes += right_when_summed(evidence, misfits)
    with _all_the_same(report, evidence):
        for name, words in diagnose(evidence).items():
            report.tensor(name).diagnosis, report.tensor(name).perhaps = words
    if current:
        likely_lines = [of_all_wrong_ones(evidence), first_lines & common, lines & common, first_lines, lines]
        if first in told_inside(evidence, inside):       # up to there, all is right
            report.suspects = _narrowed(report.suspects, first_lines | kept_by_the_forward(evidence))
        with _all_the_same(report, evidence):
            told = " ".join(t.diagnosis for t in report.tensors)
            lost = {name for path in PATH_MISSING.findall(told) for name in VARIABLE.findall(path)}
            missing = [name for name, inner in inside.items() if inner.right and inner.of in lost]
            with kept_as_it_is(evidence):
                found = find_repair(evidence, likely_lines, inside, missing)
            repair, report.made_right, report.other_repair, report.repairs_together = found
            all_of_them = {*report.made_right} >= {*evidence.wrong, *misfits}
            exchanged = sum(EXCHANGED.search(t.diagnosis) is not None for t in report.tensors) > 1
            report.repair = repair if all_of_them else []
            elsewhere = bool(repair and report.suspects) and _number(repair[0]) not in map(_number, report.suspects)
            elsewhere = elsewhere or _leaves_one_that_is_wrong_alike(report)
            report.repair_in_part = [] if all_of_them or exchanged or elsewhere else repair      # words say it better
            report.repair_of_a_step = bool(repair) and _is_in_a_step(evidence, repair[0])
            report.has_helpers = any(not part.is_forward for part in parts_of(evidence)[1:])
    nowhere = all(map(ZEROS.search, report.suspects))    # what should be added there stands in no line
    too_many = len(report.suspects) > MANY
    if nowhere or too_many or shared or (current and calls_what_it_was_handed(evidence)):
        report.suspects = []


def _leaves_one_that_is_wrong_alike(report):
    """True if what makes db right leaves dX wrong, of which the words say the same as of db: there is one cause"""
    told = [t for t in report.tensors if t.diagnosis]
    mended = {t.diagnosis for t in told if t.name in report.made_right}
    return any(t.diagnosis in mended for t in told if t.name not in report.made_right)


def _names_say_what_is_meant(evidence, inside):
    """False for a loss inside which no gradient is right by its name: dlpt may be multiplied by weights later"""
    return bool(np.ndim(evidence.dy)) or any(inner.right for inner in told_inside(evidence, inside).values())


def _narrowed(suspects, numbers):
    """The suspected lines with these numbers, if there are such; without what unpacks a cache, if others are left"""
    found = [line for line in suspects if _number(line) in numbers] or suspects
    return [line for line in found if not UNPACKS.search(line)] or found


def _number(line):
    return int(line.partition("  ")[0].rpartition(":")[2])


def _is_in_a_step(evidence, where):
    """True if a place, "net.py:12", is in a function that is a step of the subject."""
    for function in functions_of_steps(evidence.subject):
        with suppress(UserError):
            _, node = source_of(function)
            path = function.__code__.co_filename
            if where in (place(path, line) for line in range(node.lineno, node.end_lineno + 1)):
                return True
    return False


@contextmanager
def _all_the_same(report, evidence):
    """If one reason cannot be looked for, a note says so, and the others are looked for all the same."""
    try:
        yield
    except FAILURES as error:
        report.notes.append(f"{FAILED}: {told(error, evidence.subject.f)}")


def _step(call, status, words=(), which=""):
    line = (call.line or "the checker") + which
    called = "whose forward is called" if isinstance(call.f, tuple) else "called"        # of a pair of functions
    return Step(call.name, line, source_line(call.backward, call.f), status, list(words), called=called)


def _which(call, calls):
    """ " (call 2 of 3)" if the same line calls the same thing several times, as in a loop; "" if it does not"""
    same = [other for other in calls if (other.name, other.line) == (call.name, call.line)]
    return f" (call {1 + same.index(call)} of {len(same)})" if len(same) > 1 else ""

"""The verdict: a gradient compared with measured slopes, at two points, and where a quick look finds more.

    given      the point that came
    generic    nothing is 0 or 1 there, and no two rows are alike
    far        eight points with other signs and sizes, where one random direction is tried

A gradient is wrong where it misses the measured slope by more than the measurement's uncertainty. Entries within a step
of a kink have no slope: they are set aside, and counted.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock

from mini_tf.gradcheck.errors import FAILURES, Broken, Refused
from mini_tf.gradcheck.measure.directions import COUNT, agrees, contradicts, find_wrong_entries, judge_directions
from mini_tf.gradcheck.measure.evidence import CERTAIN, Evidence
from mini_tf.gradcheck.measure.points import blind_spots, far, generic, near, random_dy, with_an_empty_row
from mini_tf.gradcheck.measure.precision import check_precision
from mini_tf.gradcheck.measure.promises import check_backward, check_forward, check_tensors, place_of, raised
from mini_tf.gradcheck.measure.rounding import is_clipped, is_unsteady, tiny_constant
from mini_tf.gradcheck.measure.slopes import (
    EXACT,
    STAIRS,
    TREMBLE,
    Phi,
    long_slope,
    slopes_of_entries,
    sweep,
    watched_relus,
)
from mini_tf.gradcheck.report import FAIL, Comparison, Report
from mini_tf.gradcheck.subject import Subject

import numpy as np

FAR_POINTS = 8           # looked at quickly
BUDGET = 2000            # entries measured of one tensor; of a larger one, a random choice, and random directions
LARGE = 25_000           # entries of all tensors, from which on fewer of each are measured, so that time does not grow
LEAST = 50               # … but so many: the directions, which see all entries, remain
# An entry is judged if its slope is known to CERTAIN, a part of the tensor's largest slope, or else
NOISE = 1e-9             # if it is known to this part of φ, and your gradient there is either zero, as far as one can
FAINT = 1e-4             # tell (below this part of the uncertainty: right), or off by more than the uncertainty (wrong)
CLIPPED = "at another point, the gradient is clipped: beyond a bound in the code, that bound comes back"

turn = RLock()           # one check at a time: it puts other arrays into parameters, and other code into functions


@contextmanager
def judged(
    make: Callable[[], Subject], name: str | None = None, seed: int = 0, budget: int | None = None
) -> Iterator[tuple[Report, Subject | None, Evidence | None, Evidence | None]]:  # fmt: skip
    """Give (report, subject, evidence, other); inside the block the subject is in float64, to be measured further.

    make      gives the Subject; what it raises becomes the report's verdict
    evidence  from the point at which gradients are wrong, or None if nothing could run; other: from another point
    """
    rng = np.random.default_rng((seed, 1))               # a caller who draws inputs from `seed` must not get dy = x
    report, subject, found = Report(name or "f"), None, [None, None]
    with turn, watched_relus() as patterns:
        try:
            subject = make()
            report.name = name or subject.name
        except Refused as refused:
            report.refusals.append(str(refused))
        except FAILURES as error:
            report.refusals.append(raised("the function", error))
        if subject is None:
            yield report, None, None, None
            return
        with subject.in_float64():
            try:
                _judge(subject, report, patterns, rng, found, seed, budget)
            except Broken as broken:
                report.findings.append(str(broken))
            except Refused as refused:
                report.refusals.append(str(refused))
            report.findings, report.notes = (list(dict.fromkeys(some)) for some in (report.findings, report.notes))
            report.blind = {n: value for n, value in report.blind.items() if n in {t.name for t in report.tensors}}
            yield report, subject, *found


def _judge(subject, report, patterns, rng, found, seed, budget):
    """Add all verdicts to the report; found becomes [evidence, that of another point]."""
    report.findings += check_tensors(subject, subject.names)
    _say_where(report, subject)
    try:
        subject.prepare(lambda y, backward: random_dy(y, np.random.default_rng(0), backward))
    except (Refused, Broken):
        raise
    except FAILURES as error:
        raise Refused(raised("it", error) + subject.adapter.order) from error
    report.refusals += subject.refusals
    report.findings += check_tensors(subject, subject.weights)
    report.notes += subject.notes
    if subject.data:
        report.notes.append(f"{', '.join(subject.data)}: no gradient came back; taken as data")
    if subject.adapter.unfollowed:
        n = subject.adapter.unfollowed
        those = "the last output is" if n == 1 else f"the last {n} outputs are"
        report.notes.append(f"{those} not followed: the backward goes back from the first")
    report.blind = blind_spots(subject.tensors)
    budget = budget or _usual_budget(subject)
    evidence = found[0] = check_point("given", subject, report, patterns, rng, budget)
    check_precision(evidence, report, rng)
    _check_twins(evidence, report, rng)
    note = tiny_constant(evidence)
    forgiven = [note] if note else []
    if _move_to_generic_point(subject, report, rng):
        with np.errstate(all="ignore"):                  # log(0) at a point that nobody asked for needs no warning
            other = check_point("generic", subject, report, patterns, rng, budget)
            found[:] = [other, evidence] if other.wrong and not evidence.wrong else [evidence, other]
            if other.wrong:
                clipped = not evidence.wrong and is_clipped(other)
                forgiven.append(CLIPPED if clipped else tiny_constant(other))
            elsewhere = _look_around(other, report, seed, budget) if report.verdict != FAIL else None
        if elsewhere:
            found[:] = [elsewhere, other]
    wrong_points = sum(1 for one in found if one is not None and one.wrong)
    if wrong_points and len(list(filter(None, forgiven))) == wrong_points and not report.findings:
        _forgive(report, forgiven)
        found[0].wrong = []
    if report.verdict != FAIL:
        _try_empty_rows(subject, report, patterns, rng, budget)
    found[0].back_to_the_point()


def _say_where(report, subject):
    """Where the backward is written"""
    with suppress(*FAILURES), subject.restored():
        _, backward = subject.forward()
        report.place = place_of(backward.of)


def _forgive(report, notes):
    """What a tiny constant explains is no mistake: the verdict becomes PASS, with a note."""
    report.notes += [note for note in notes if note][:1]
    for t in report.tensors:
        for c in t.comparisons:
            if c.wrong:
                c.wrong_entries, c.error = 0, 0.0
                c.directions = None


def _usual_budget(subject):
    """How many entries of each tensor are measured, if nobody says"""
    total = sum(x.size for x in subject.tensors.values())
    return max(min(BUDGET, BUDGET * LARGE // max(total, 1)), LEAST)


def check_point(
    point: str, subject: Subject, report: Report, patterns: list[bytes], rng: np.random.Generator, budget: int,
) -> Evidence:  # fmt: skip
    """Judge all gradients at the subject's point, add that to the report, and give the Evidence."""
    y, backward = check_forward(subject)
    dy = random_dy(y, rng, backward)
    gradients, findings, notes = check_backward(subject, backward, dy)
    evidence = Evidence(subject, y, backward, dy, gradients, patterns)
    report.findings += findings
    report.notes += notes
    phi = Phi(subject, dy, patterns, STAIRS if point == "far" else (TREMBLE,))
    for name, x in subject.tensors.items():
        if name not in gradients:
            if f"y does not depend on {name}" not in notes:
                evidence.misfits.append(name)
            continue
        if x.size:
            comparison = _compare(point, phi, x, gradients[name], rng, budget, evidence, name)
            report.tensor(name, x.shape).comparisons.append(comparison)
            (evidence.wrong if comparison.wrong else evidence.right).append(name)
    for name in evidence.wrong or evidence.right[:1]:
        x, comparison = subject.tensors[name], report.tensor(name).comparisons[-1]
        comparison.sweep = sweep(phi, x, int(np.ravel_multi_index(comparison.index, x.shape)))
    return evidence


def _compare(point, phi, x, gradient, rng, budget, evidence, name):
    """The Comparison of the gradient of x with φ's slopes; the evidence gets the slopes, and how well each is known"""
    sampled = x.size > budget + COUNT                    # a direction takes as long as an entry
    entries = np.sort(rng.choice(x.size, budget, replace=False)) if sampled else np.arange(x.size)
    directions = judge_directions(phi, x, gradient, rng) if sampled else None
    if sampled and directions.wrong:
        entries = np.union1d(entries, find_wrong_entries(phi, x, gradient))
    found = slopes_of_entries(phi, x, entries)
    size = np.abs(found.slope[~found.kink]).max(initial=0)
    uncertainty = np.maximum(found.uncertainty, max(EXACT * size, np.finfo(float).tiny))
    yours = gradient.reshape(-1)[entries]
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(yours - found.slope)
        zero = (found.uncertainty <= NOISE * phi.size) & ((np.abs(yours) <= FAINT * uncertainty) | (off > uncertainty))
        known = ~found.kink & ((found.uncertainty <= CERTAIN * size) | zero)
        error = np.where(known, off / uncertainty, 0.0)
    error[~np.isfinite(yours)] = np.inf
    worst = int(error.argmax())

    slopes, tolerances = np.full((2, x.size), np.nan)
    slopes[entries], tolerances[entries] = np.where(known, found.slope, np.nan), uncertainty
    evidence.slopes[name] = slopes.reshape(x.shape)
    evidence.tolerances[name] = np.nan_to_num(tolerances).reshape(x.shape)
    return Comparison(
        point, x.size, judged=int(known.sum()), set_aside=int(found.kink.sum()),
        below_noise=int((~known & ~found.kink).sum()), wrong_entries=int((error > 1).sum()), error=float(error[worst]),
        index=tuple(int(i) for i in np.unravel_index(entries[worst], x.shape)), yours=float(yours[worst]),
        measured=float(found.slope[worst]), uncertainty=float(uncertainty[worst]), directions=directions,
        gradient=np.copy(gradient), slopes=evidence.slopes[name],
    )  # fmt: skip


def _check_twins(evidence, report, rng):
    """The twins of mini_tf's ops that ran, beside their formulas"""
    if "mini_tf.ops.op" in sys.modules:                  # else no op has run
        from mini_tf.gradcheck.measure.twins import check_twins

        check_twins(evidence, report, rng)


def _move_to_generic_point(subject, report, rng):
    """Move the subject to a generic point. False if f is not defined there."""
    given = dict(subject.tensors)
    for another in (generic, near):
        for name, x in given.items():
            subject.replace(name, another(x, rng))
        if subject.is_defined():
            return True
    for name, x in given.items():
        subject.replace(name, x)
    report.notes.append("checked at the given point only: at a generic one the forward fails or is not finite")
    return False


def _look_around(evidence, report, seed, budget):
    """Look at a few far points; the Evidence at the first where gradients are wrong, added to the report, or None.

    Points where hardly anything is left of y, as of a GELU far below 0, would show rounding only.
    """
    rng, subject, patterns = np.random.default_rng((seed, 4)), evidence.subject, evidence.patterns
    before, least = dict(subject.tensors), FAINT * np.abs(evidence.y).max(initial=0)
    for _ in range(FAR_POINTS):
        for name, x in before.items():
            subject.replace(name, far(x, rng))
        if not _seems_wrong(subject, patterns, least, rng):
            continue
        trial, found = Report(report.name), None
        with suppress(Broken, Refused):
            found = check_point("far", subject, trial, patterns, rng, budget)
        if found is None or not found.wrong:
            continue
        worst = {t.name: t.comparisons[-1] for t in trial.tensors}
        if is_unsteady(found, worst, before) or tiny_constant(found, anywhere=True) or _is_in_stairs(found, worst):
            continue
        if is_clipped(found):
            report.notes += [CLIPPED] if CLIPPED not in report.notes else []
            continue
        for t in trial.tensors:
            report.tensor(t.name, t.shape).comparisons += t.comparisons
        return found
    for name, x in before.items():
        subject.replace(name, x)
    return None


def _seems_wrong(subject, patterns, least, rng):
    """Whether one random direction contradicts the gradients here. False where f does not run or y is not finite."""
    try:
        with np.errstate(all="ignore"):
            y, backward = subject.forward()
            if not least <= np.abs(y).max(initial=0) < np.inf:
                return False
            dy = random_dy(y, rng, backward)
            phi = Phi(subject, dy, patterns, spacings=())
            gradients = subject.run(dy)
            fit = [n for n, x in subject.tensors.items() if np.shape(gradients.get(n)) == x.shape]
            fit = {name: np.asarray(gradients[name]) for name in fit}
            return bool(fit) and contradicts(phi, fit, rng)
    except FAILURES:
        return False


def _is_in_stairs(evidence, comparisons):
    """Whether a long step in a wrong entry agrees better with the gradient than the short one that contradicts it.

    Of log(1 − σ(36)) hardly a digit is left: 1 − σ(36) is two units in the last place of 1. So the function computed
    goes in steps, and its slopes over short differences are 0 or large, not those of the formula.
    """
    phi = Phi(evidence.subject, evidence.dy, evidence.patterns, spacings=())
    for name in evidence.wrong:
        x, c = evidence.subject.tensors[name], comparisons[name]
        long = long_slope(phi, x, int(np.ravel_multi_index(c.index, x.shape)))
        if not abs(c.yours - long) >= abs(c.yours - c.measured) / 2:
            return True
    return False


def seems_right(subject: Subject, patterns: list[bytes], seed: int = 0) -> bool:
    """True if a quick look at the given point shows nothing wrong; inside `subject.in_float64()`

    False means only that one has to look more closely.
    """
    rng = np.random.default_rng((seed, 2))
    try:
        subject.prepare(lambda y, backward: random_dy(y, rng, backward))
        if check_tensors(subject, subject.tensors):
            return False
        y, backward = check_forward(subject)
        dy = random_dy(y, rng, backward)
        gradients, findings, _ = check_backward(subject, backward, dy)
        if findings or not gradients:
            return False
        phi = Phi(subject, dy, patterns)
        return all(agrees(phi, subject.tensors[name], g, rng) for name, g in gradients.items())
    except (*FAILURES, Broken, Refused):
        return False


def _try_empty_rows(subject, report, patterns, rng, budget):
    """Try each mask with an empty row; add a note if the gradients are then wrong or not finite."""
    for name, given in subject.masks.items():
        mask = with_an_empty_row(given)
        if mask is given:
            continue
        subject.replace(name, mask)
        wrong = "the forward fails or gives NaN"
        if subject.is_defined():
            trial = Report(report.name)
            with suppress(Broken, Refused):
                check_point("empty rows", subject, trial, patterns, rng, budget)
            wrong = "the gradients are wrong" if trial.verdict == FAIL else None
        if wrong:
            report.notes.append(
                f"right for the {name} you gave; but with an empty row in it, all False, {wrong}; such a row (a query "
                "that sees no key, a history without words) should give zeros, forward and backward"
            )
        subject.replace(name, given)


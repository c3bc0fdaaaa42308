"""The verdict: a gradient compared with measured slopes, at two points, and where a quick look finds more."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from mini_tf.checks import check_whole
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.directions import COUNT, agrees, contradicts, find_wrong_entries, judge_directions
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.guards import influence_of_guards, is_clipped
from mini_tf.gradcheck.measuring.iterations import loops_run
from mini_tf.gradcheck.measuring.points import blind_spots, far, generic, near, random_dy, with_an_empty_row
from mini_tf.gradcheck.measuring.precision import check_precision
from mini_tf.gradcheck.measuring.promises import Broken, check_backward, check_forward, check_inputs
from mini_tf.gradcheck.measuring.single import float32_as_float64
from mini_tf.gradcheck.measuring.slopes import (
    EXACT,
    STAIRS,
    STEPS,
    TREMBLE,
    Phi,
    long_slope,
    slopes_of_entries,
    sweep,
    watched_relus,
)
from mini_tf.gradcheck.measuring.spaces import namespaces
from mini_tf.gradcheck.measuring.subject import Subject, name_of
from mini_tf.gradcheck.measuring.twins import check_twins
from mini_tf.gradcheck.report import Comparison, Report
from mini_tf.gradcheck.turns import turn
from mini_tf.gradcheck.verdicts import FAIL
from mini_tf.trace import source_line

import numpy as np

FAR_POINTS = 8           # looked at quickly
BUDGET = 2000            # entries measured of one tensor; of a larger one, a random choice, and random directions
LARGE = 25_000           # entries of all tensors, from which on fewer of each are measured, so that time does not grow
LEAST = 50               # … but so many: the directions, which see all entries, remain
CERTAIN = 1e-4           # an entry is judged if its slope is known to this part of the tensor's largest slope, or else
NOISE = 1e-9             # if it is known to this part of φ, and your gradient there is either zero, as far as one can
FAINT = 1e-4             # tell (below this part of the uncertainty: right), or off by more than the uncertainty (wrong)
STEADY = 1e-3            # relative error by rounding, of y and of gradients, at a far point
STAIR = 10               # times what rounding has changed φ by, that may be the height of a stair
NEGLIGIBLE = 1e-10       # part of φ that tiny constants may decide; and how many times as much as at
MORE = 10                # the generic point
ON_THE_WAY = 16          # places between that point and the one before at which y is looked at


def judge(
    f: Any, inputs: Sequence[Any], params: dict | list | None, name: str | None = None, seed: int = 0,
    budget: int | None = None,
) -> Report:  # fmt: skip
    """The Report with all verdicts but no reasons. The arguments are gradcheck's, with the inputs as a list."""
    with judged(f, inputs, params, name, seed, budget) as (report, _, _):
        return report


def seems_right(f: Any, inputs: Sequence[Any], params: dict | list | None, seed: int = 0) -> bool:
    """True if a quick look at the given point shows nothing wrong: a hundredth of the work of `judge`.

    The arguments are gradcheck's. False means only that one has to look more closely.
    """
    rng = np.random.default_rng((seed, 2))
    with turn, watched_relus() as patterns:
        subject = Subject(f, inputs, params)
        with subject.in_float64(), suppress(Broken):
            if check_inputs(subject):
                return False
            y, backward = check_forward(subject)
            dy = random_dy(y, rng, backward)
            gradients, missing, findings, _ = check_backward(subject, backward, dy)
            if missing or findings:
                return False
            phi = Phi(subject, dy, patterns)
            return all(agrees(phi, subject.tensors[name], np.asarray(g), rng) for name, g in gradients.items())
    return False


@contextmanager
def judged(
    f: Any, inputs: Sequence[Any], params: dict | list | None, name: str | None = None, seed: int = 0,
    budget: int | None = None, by_name: Collection[str] = (), forms: Mapping[str, str] | None = None,
) -> Iterator[tuple[Report, Subject, Evidence | None]]:  # fmt: skip
    """Give (report, subject, evidence); inside the block the subject is in float64, so that more can be measured.

    evidence is from a far point if only that shows wrong gradients, else from the generic one if that does, else from
    the given one; None if nothing could run.
    by_name   names of the inputs that were given by name; forms: {name: form} of matrices: see `Subject`
    Raises UserError for a seed below 0 and for a budget below 1.
    """
    if budget is not None:
        check_whole(budget=budget)
    check_whole(0, seed=seed)
    rng = np.random.default_rng((seed, 1))               # a caller who draws inputs from `seed` must not get dy = x
    with turn, watched_relus() as patterns:
        subject = Subject(f, inputs, params, by_name)
        subject.forms = dict(forms or {})
        budget = _usual_budget(subject) if budget is None else budget
        report, evidence = Report(name or name_of(subject.f)), None
        spaces = namespaces(subject.f) if any(getattr(x, "dtype", None) == np.float32 for x in subject.given) else ()
        with subject.in_float64(), float32_as_float64(spaces) as as_it_is:
            try:
                report.findings += check_inputs(subject)
                report.blind = blind_spots(subject.tensors)
                evidence = _check_point("given", subject, report, patterns, rng, budget)
                check_precision(evidence, report, rng, as_it_is)
                check_twins(evidence, report, rng)
                if _move_to_generic_point(subject, report, rng):
                    generic_evidence = _check_point("generic", subject, report, patterns, rng, budget)
                    given, evidence.other_point = evidence.everything, generic_evidence.everything
                    if generic_evidence.wrong:
                        evidence, generic_evidence.other_point = generic_evidence, given
                    with np.errstate(all="ignore"):      # log(0) at a point that nobody asked for needs no warning
                        found = _look_around(generic_evidence, report, seed, budget) if report.verdict != FAIL else None
                    if found:
                        evidence, found.other_point = found, generic_evidence.everything
                    if report.verdict != FAIL:
                        _try_empty_rows(subject, report, patterns, rng, budget)
            except Broken as broken:
                report.findings.append(str(broken))
                evidence = evidence or broken.evidence
            report.findings = list(dict.fromkeys(report.findings))   # both points may have the same
            report.notes = list(dict.fromkeys(report.notes))
            tensors = {t.name for t in report.tensors}   # not what the forward overwrites
            report.blind = {name: value for name, value in report.blind.items() if name in tensors}
            yield report, subject, evidence


def _usual_budget(subject):
    """How many entries of each tensor are measured, if nobody says."""
    total = sum(x.size for x in subject.tensors.values())
    return max(min(BUDGET, BUDGET * LARGE // max(total, 1)), LEAST)


def _check_point(point, subject, report, patterns, rng, budget):
    """Judge all gradients at the subject's point, add that to the report, and give the Evidence."""
    y, backward = check_forward(subject)
    report.place = source_line(backward)
    dy = random_dy(y, rng, backward)
    evidence = Evidence(subject, y, backward, dy, {}, patterns)
    try:
        gradients, missing, findings, notes = check_backward(subject, backward, dy)
    except Broken as broken:
        broken.evidence = evidence
        raise
    evidence.gradients = gradients
    report.findings += findings
    report.notes += notes
    for name, x in missing.items():
        report.tensor(name, x.shape)                     # without a comparison: NOT TESTED
    phi = Phi(subject, dy, patterns, STAIRS if point == "far" else (TREMBLE,))
    for name, x in subject.tensors.items():
        if x.size and name in gradients:
            comparison, evidence.slopes[name] = _compare(point, phi, x, np.asarray(gradients[name]), rng, budget)
            report.tensor(name, x.shape).comparisons.append(comparison)
            (evidence.wrong if comparison.wrong else evidence.right).append(name)
    for name in evidence.wrong or evidence.right[:1]:
        x, comparison = subject.tensors[name], report.tensor(name).comparisons[-1]
        comparison.sweep = sweep(phi, x, int(np.ravel_multi_index(comparison.index, x.shape)))
    return evidence


def _compare(point, phi, x, gradient, rng, budget):
    """(Comparison, slopes): the gradient of x against the slopes of φ, an array like x, NaN where not known."""
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

    slopes, errors = np.full((2, x.size), np.nan)
    slopes[entries], errors[entries] = np.where(known, found.slope, np.nan), np.where(known, error, np.nan)
    return Comparison(
        point, x.size, judged=int(known.sum()), set_aside=int(found.kink.sum()),
        below_noise=int((~known & ~found.kink).sum()), wrong_entries=int((error > 1).sum()), error=float(error[worst]),
        index=tuple(int(i) for i in np.unravel_index(entries[worst], x.shape)), yours=float(yours[worst]),
        measured=float(found.slope[worst]), uncertainty=float(uncertainty[worst]), directions=directions,
        errors=errors.reshape(x.shape),
    ), slopes.reshape(x.shape)  # fmt: skip


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

    There the subject stays; if there is none, it returns to the evidence's point. Points where hardly anything is left
    of y, as of a GELU far below 0, would show rounding only.
    """
    rng, subject, patterns = np.random.default_rng((seed, 4)), evidence.subject, evidence.patterns
    before, least = dict(subject.tensors), FAINT * np.abs(evidence.y).max(initial=0)
    for _ in range(FAR_POINTS):
        for name, x in before.items():
            subject.replace(name, far(x, rng))
        if not _seems_wrong(subject, patterns, least, rng):
            continue
        trial, found = Report(report.name), None
        with suppress(Broken):
            found = _check_point("far", subject, trial, patterns, rng, budget)
        if found is None or not found.wrong or _is_unsteady(found, trial, before) or _is_guarded(found, before):
            continue
        if is_clipped(found):
            note = "at a far point, the gradient is clipped: beyond a bound in the code, that bound comes back"
            report.notes += [note] if note not in report.notes else []
            continue
        if not (_is_in_stairs(found, trial) or _has_not_converged(found, before)):
            for t in trial.tensors:
                report.tensor(t.name, t.shape).comparisons += t.comparisons
            return found
    evidence.back_to_the_point()
    return None


def _seems_wrong(subject, patterns, least, rng):
    """Whether one random direction contradicts the gradients here. False where f does not run or y is not finite."""
    try:
        with np.errstate(all="ignore"):
            y = subject.forward()[0]
            if not least <= np.abs(y).max(initial=0) < np.inf:
                return False
            dy = random_dy(y, rng)
            phi = Phi(subject, dy, patterns, spacings=())
            gradients, tensors = subject.run(dy), subject.tensors
            fit = {name: np.asarray(gradients[name]) for name, x in tensors.items() if _fits(gradients.get(name), x)}
            return bool(fit) and contradicts(phi, fit, rng)
    except FAILURES:
        return False


def _is_guarded(evidence, before):
    """Whether a tiny constant counts for more in y here than at the point `before`, {name: array}: log(p + 10⁻¹²)"""
    subject, here = evidence.subject, dict(evidence.subject.tensors)
    with np.errstate(all="ignore"):
        now = influence_of_guards(subject, evidence.dy)
        if now <= NEGLIGIBLE:
            return False
        try:
            for name, x in before.items():
                subject.replace(name, x)
            return now > MORE * influence_of_guards(subject, evidence.dy)
        finally:
            for name, x in here.items():
                subject.replace(name, x)


def _is_in_stairs(evidence, report):
    """Whether a long step in a wrong entry agrees better with the gradient than the short one that contradicts it.

    Of log(1 − σ(36)) hardly a digit is left: 1 − σ(36) is two units in the last place of 1. So the computed function
    goes in stairs, and its slopes over short steps are 0 or large, not those of the formula.
    """
    phi = Phi(evidence.subject, evidence.dy, evidence.patterns, spacings=())
    for name in evidence.wrong:
        x, worst = evidence.subject.tensors[name], report.tensor(name).comparisons[-1]
        long = long_slope(phi, x, int(np.ravel_multi_index(worst.index, x.shape)))
        if not abs(worst.yours - long) >= abs(worst.yours - worst.measured) / 2:
            return True
    return False


def _is_unsteady(evidence, report, before):
    """Whether float64 has too few digits here, or on the way from the point `before`, {name: array}.

    Of (exp(r) − 1)/r hardly a digit is left at r = 10⁻¹⁵. At 10⁻²⁵ it is 0, in longer floats, too: so places on the way
    are looked at. log(1 − σ(34)) has digits enough, but its slope has none: it goes in stairs, higher than what wrong
    entries are off by over a step. False where f does not run in longer floats, and where they are no longer.
    """
    subject, here = evidence.subject, dict(evidence.subject.tensors)
    try:
        with np.errstate(all="ignore"):
            with subject.in_dtype(np.longdouble):
                longer = subject.run(np.longdouble(evidence.dy))
                y = np.asarray(subject.forward()[0], dtype=float)
            if not all(_are_close(evidence.gradients[name], longer[name]) for name in evidence.wrong):
                return True
            lost = float(np.abs((y - evidence.y) * evidence.dy).sum())
            worst = [(here[name], report.tensor(name).comparisons[-1]) for name in evidence.wrong]
            if any(STAIR * lost > STEPS[0] * max(1, abs(x[c.index])) * abs(c.yours - c.measured) for x, c in worst):
                return True
            for part in np.linspace(0, 1, ON_THE_WAY, endpoint=False):
                for name, x in here.items():
                    subject.replace(name, x + part * (before[name] - x))
                y = subject.forward()[0]
                with subject.in_dtype(np.longdouble):
                    if not _are_close(y, subject.forward()[0]):
                        return True
    except FAILURES:
        return False
    finally:
        evidence.back_to_the_point()
    return False


def _are_close(x, y):
    y = np.asarray(y, dtype=float)
    return bool(np.allclose(x, y, rtol=STEADY, atol=EXACT * np.abs(y).max(initial=0), equal_nan=True))


def _has_not_converged(evidence, before):
    """Whether an iteration of f that a break ended at the point `before`, {name: array}, runs out of rounds here."""
    subject = evidence.subject
    _, exhausted = loops_run(subject.forward)
    for name, x in before.items():
        subject.replace(name, x)
    broken, never = loops_run(subject.forward)
    evidence.back_to_the_point()
    return bool(exhausted & broken - never)


def _fits(gradient, x):
    return gradient is not None and np.shape(gradient) == x.shape


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
            with suppress(Broken):
                _check_point("empty rows", subject, trial, patterns, rng, budget)
            wrong = "the gradients are wrong" if trial.verdict == FAIL else None
        if wrong:
            report.notes.append(
                f"right for the {name} you gave; but with an empty row in it, all False, {wrong}; such a row (a query "
                "that sees no key, a history without words) should give zeros, forward and backward"
            )
        subject.replace(name, given)

"""The verdict: a gradient compared with measured slopes, at the points of `points.py`.

A gradient is wrong where it misses the measured slope by more than the measurement's uncertainty. Entries within a step
of a kink have no slope: they are set aside, and counted.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from mini_tf.gradcheck.errors import FAILURES, Broken, Refused
from mini_tf.gradcheck.measure.directions import COUNT, find_wrong_entries, glance, judge_directions
from mini_tf.gradcheck.measure.evidence import FAINT, Evidence
from mini_tf.gradcheck.measure.excuses import CLIPPED, excuse, has_digits
from mini_tf.gradcheck.measure.points import blind_spots, far, generic, random_dy
from mini_tf.gradcheck.measure.precision import check_precision
from mini_tf.gradcheck.measure.promises import check_backward, check_forward, check_tensors, place_of, raised
from mini_tf.gradcheck.measure.slopes import Phi, sweep, watched_relus
from mini_tf.gradcheck.needs import settle
from mini_tf.gradcheck.report import FAIL, Comparison, Report
from mini_tf.gradcheck.subject import Subject
from mini_tf.types import Array

import numpy as np

FAR_POINTS = 8           # looked at quickly
BUDGET = 2000            # entries measured of one tensor; of a larger one, a random choice, and random directions
LARGE = 25_000           # entries of all tensors, from which on fewer of each are measured, so that time does not grow
LEAST = 50               # … but so many: the directions, which see all entries, remain

Judged = tuple[Report, Subject | None, Evidence | None, Evidence | None]
check_lock = RLock()     # one check at a time: it puts other arrays into parameters, and other code into functions


@contextmanager
def judged(make: Callable[[], Subject], name: str | None, seed: int, budget: int | None) -> Iterator[Judged]:
    """Give (report, subject, evidence, other); inside the block the subject can be measured further.

    make      gives the Subject; what it raises becomes the report's verdict
    evidence  from the point at which gradients are wrong, or None if nothing could run; other: from another point
    """
    report, subject = Report(name or "f"), None
    found: list[Evidence | None] = [None, None]
    with check_lock, watched_relus() as patterns:
        try:
            subject = make()
            report.name = name or subject.adapter.name
            _judge(subject, report, patterns, found, seed, budget or 0)
        except Broken as broken:
            report.findings.append(str(broken))
        except Refused as refused:
            report.refusals.append(str(refused))
        except FAILURES as error:
            order = subject.adapter.order if subject else ""
            report.refusals.append(raised("it" if subject else "the function", error) + order)
        report.place = place_of(subject.backward) if subject else ""
        report.findings, report.notes = (list(dict.fromkeys(some)) for some in (report.findings, report.notes))
        yield report, subject, found[0], found[1]


def _judge(subject: Subject, report: Report, patterns: list[bytes], found: list[Any], seed: int, budget: int) -> None:
    """Add all verdicts to the report; found becomes [evidence, that of another point]."""
    rng = np.random.default_rng((seed, 1))               # a caller who draws inputs from `seed` must not get dy = x
    settle(subject, np.random.default_rng(0))
    report.findings += check_tensors(subject.tensors)
    report.refusals += subject.refusals
    report.notes += subject.notes
    if n := subject.adapter.unfollowed:
        those = "the last output is" if n == 1 else f"the last {n} outputs are"
        report.notes.append(f"{those} not followed: the backward goes back from the first")
    total = sum(x.size for x in subject.tensors.values())
    budget = budget or max(min(BUDGET, BUDGET * LARGE // max(total, 1)), LEAST)
    evidence = found[0] = check_point("given", subject, report, patterns, rng, budget)
    report.blind = blind_spots({name: subject.tensors[name] for name in evidence.comparisons})
    check_precision(evidence, report, rng)
    if "mini_tf.ops.op" in sys.modules:                  # else no op has run
        from mini_tf.gradcheck.measure.twins import check_twins

        check_twins(evidence, report, rng)
    if _move_to_generic_point(evidence, report, rng):
        with np.errstate(all="ignore"):                  # log(0) at a point that nobody asked for needs no warning
            other = check_point("generic", subject, report, patterns, rng, budget)
            found[:] = [other, evidence] if other.wrong and not evidence.wrong else [evidence, other]
            if report.verdict != FAIL and not other.single and (elsewhere := _look_around(other, report, seed, budget)):
                found[:] = [elsewhere, other]
    found[0].back_to_the_point()


def check_point(
    point: str, subject: Subject, report: Report, patterns: list[bytes], rng: np.random.Generator, budget: int,
) -> Evidence:  # fmt: skip
    """Judge all gradients at the subject's point, add that to the report, and give the Evidence."""
    y, backward = check_forward(subject)
    dy = random_dy(y, rng, backward)
    gradients, findings, notes, misfits = check_backward(subject, backward, dy)
    evidence = Evidence(subject, y, backward, dy, gradients, patterns, misfits=misfits)
    report.findings += findings
    report.notes += notes
    phi = Phi(subject, dy, patterns)
    for name in gradients:
        x = subject.tensors[name]
        if x.size:
            c = evidence.comparisons[name] = _compare(point, evidence, name, phi, rng, budget)
            report.tensor(name, x.shape).comparisons.append(c)
    for name in evidence.wrong or evidence.right[:1]:
        x, c = subject.tensors[name], evidence.comparisons[name]
        c.sweep = sweep(phi, x, int(np.ravel_multi_index(c.index, x.shape)))
    if evidence.wrong and (note := excuse(evidence, point)):
        if not any(one.startswith(note.partition(":")[0]) for one in report.notes):
            report.notes.append(note)
        for c in [evidence.comparisons[name] for name in evidence.wrong]:
            c.wrong_entries, c.error, c.directions = 0, 0.0, None
    return evidence


def _compare(point: str, evidence: Evidence, name: str, phi: Phi, rng: np.random.Generator, budget: int) -> Comparison:
    """The Comparison of a gradient with φ's slopes, which the evidence gets, too"""
    x, gradient, directions = evidence.subject.tensors[name], evidence.gradients[name], None
    entries = np.arange(x.size)
    if x.size > budget + COUNT:                          # a direction takes as long as an entry
        entries = np.sort(rng.choice(x.size, budget, replace=False))
        directions = judge_directions(phi, x, gradient, rng)
        if directions.wrong:
            entries = np.union1d(entries, find_wrong_entries(phi, x, gradient))
    found, known = evidence.measure(name, phi, entries, gradient)
    yours = gradient.reshape(-1)[entries]
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(yours - found.slope)
        error = np.where(known, off / found.uncertainty, 0.0)
    error[~np.isfinite(yours)] = off[~np.isfinite(yours)] = np.inf
    worst = int(np.lexsort((error, np.where(error > 1, off, 0)))[-1])    # of those that are wrong, the one farthest off
    return Comparison(
        point, x.size, judged=int(known.sum()), set_aside=int(found.kink.sum()),
        below_noise=int((~known & ~found.kink).sum()), wrong_entries=int((error > 1).sum()), error=float(error[worst]),
        index=tuple(int(i) for i in np.unravel_index(entries[worst], x.shape)), yours=float(yours[worst]),
        measured=float(found.slope[worst]), uncertainty=float(found.uncertainty[worst]), directions=directions,
        gradient=np.copy(gradient), slopes=evidence.slopes[name],
    )  # fmt: skip


def _move_to_generic_point(evidence: Evidence, report: Report, rng: np.random.Generator) -> bool:
    """Move the subject to a generic point. False if f is not defined there."""
    subject, y = evidence.subject, np.nan
    subject.arrays |= {name: generic(x, rng) for name, x in subject.tensors.items()}
    with suppress(*FAILURES), np.errstate(all="ignore"), subject.on_copies():
        y = subject.forward()[0]
    if np.isfinite(y).all():
        return True
    evidence.back_to_the_point()
    report.notes.append("checked at the given point only: at a random one the forward fails or is not finite")
    return False


def _look_around(evidence: Evidence, report: Report, seed: int, budget: int) -> Evidence | None:
    """Look at a few far points; the Evidence at the first where gradients are wrong, added to the report, or None.

    Points where hardly anything is left of y, as of a GELU far below 0, would show rounding only.
    """
    rng, subject, patterns = np.random.default_rng((seed, 4)), evidence.subject, evidence.patterns
    before, least = subject.tensors, FAINT * np.abs(evidence.y).max(initial=0)
    for _ in range(FAR_POINTS):
        subject.arrays |= {name: far(x, rng) for name, x in before.items()}
        trial, found = Report(report.name), None
        with suppress(*FAILURES):
            y, backward = subject.forward()
            if least <= np.abs(y).max(initial=0) < np.inf and _glance(subject, y, backward, patterns, rng) is False:
                found = check_point("far", subject, trial, patterns, rng, budget)
        if found is not None and found.wrong and has_digits(found, before):
            for name, c in found.comparisons.items():
                report.tensor(name).comparisons.append(c)
            return found
        report.notes += [note for note in trial.notes if note == CLIPPED]
    evidence.back_to_the_point()
    return None


def _glance(subject: Subject, y: Array, backward: Any, patterns: list[bytes], rng: np.random.Generator) -> bool | None:
    """Whether one random direction agrees with the gradients that fit; None if it does not tell"""
    dy = random_dy(y, rng, backward)
    came = {n: np.asarray(g) for n, g in subject.run(dy).items()}
    fit = {n: came[n] for n, x in subject.tensors.items() if came[n].shape == x.shape and came[n].dtype != object}
    return glance(Phi(subject, dy, patterns), fit, rng) if fit else None


def seems_right(make: Callable[[], Subject], seed: int) -> bool:
    """True if a quick look at make()'s point shows nothing wrong; False: one has to look more closely"""
    rng = np.random.default_rng((seed, 2))
    with suppress(*FAILURES), watched_relus() as patterns:
        subject = make()
        settle(subject, rng)
        findings = check_tensors(subject.tensors)
        y, backward = check_forward(subject)
        findings += check_backward(subject, backward, random_dy(y, rng, backward))[1]
        return not findings and bool(_glance(subject, y, backward, patterns, rng))
    return False

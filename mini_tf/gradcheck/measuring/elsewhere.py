"""The same function at other points: other numbers, and other sizes.

What explains a wrong gradient at one point may do so by chance: 8 is T, and B·T, and the number of words that count. So
every explanation is tried again at the other of the two points, and with arrays of other sizes.
"""

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, Evidence
from mini_tf.gradcheck.measuring.points import random_dy
from mini_tf.gradcheck.measuring.slopes import Phi
from mini_tf.gradcheck.measuring.subject import Subject, is_float, kind_of
from mini_tf.types import Array

import numpy as np

ENTRIES = 60             # measured of each tensor; all, if its gradient is wrong and that is affordable
LARGEST = 20_000         # entries in all; a larger subject is not made larger still


def elsewhere(evidence: Evidence, seed: int = 0) -> list[Evidence]:
    """[Evidence at the other point, if there is one, and at a larger one, if f takes larger arrays]"""
    if evidence.others is None:
        rng = np.random.default_rng((seed, 2))
        try:
            evidence.back_to_the_point()
            points = [evidence.other_point, larger(evidence.subject, rng)]
            found = (_evidence_at(evidence, arrays, rng) for arrays in points if arrays)
            evidence.others = [other for other in found if other is not None]
        finally:
            evidence.back_to_the_point()
    return evidence.others


def larger(subject: Subject, rng: np.random.Generator) -> dict[str, Array]:
    """{name: array} with as many sizes changed as f accepts, one after the other; {} if it accepts none.

    All axes of one size grow together: they may have to be equal. Every size becomes another one. A size with which the
    backward fails, though it runs at the given one, stays: it may be the number of things that f spells out.
    """
    given = {name: x for name, x in (dict(zip(subject.names, subject.inputs)) | subject.tensors).items() if _shaped(x)}
    sizes = sorted({size for x in given.values() for size in x.shape if size > 1})
    if not sizes or sum(x.size for x in given.values()) > LARGEST:
        return {}
    grown, runs = {}, _runs_back(subject)
    for size in sizes:
        for more in (size + 1, 2 * size):
            if more not in grown.values() and _accepted(subject, _grown(given, grown | {size: more}, rng), runs):
                grown[size] = more
                break
    arrays = _grown(given, grown, rng) if grown else {}
    for name, x in given.items():
        subject.replace(name, x)
    return arrays


def _grown(given, grown, rng):
    return {name: _enlarged(x, [grown.get(size, size) for size in x.shape], rng) for name, x in given.items()}


def _enlarged(x, shape, rng):
    """x repeated until it has that shape; floats are multiplied by factors from 0.6 to 1, so that all differ."""
    wide = np.pad(x, [(0, n - size) for n, size in zip(shape, x.shape)], mode="wrap")
    return wide * rng.uniform(0.6, 1.0, wide.shape) if is_float(x) else wide


def _accepted(subject, arrays, runs_back):
    for name, x in arrays.items():
        subject.replace(name, x)
    return subject.is_defined() and _runs_back(subject) >= runs_back


def _runs_back(subject):
    """True if the backward gives gradients here, right or wrong."""
    try:
        with np.errstate(all="ignore"):
            y = np.asarray(subject.forward()[0])
            return bool(subject.run(np.ones(y.shape) if y.ndim else 1.0))
    except FAILURES:
        return False


def _evidence_at(evidence, arrays, rng):
    """The Evidence at those arrays, some entries of each tensor measured; None if f does not run there."""
    subject = evidence.subject
    for name, x in arrays.items():
        subject.replace(name, x)
    try:
        with np.errstate(all="ignore"):
            y, backward = subject.forward()
            y = np.asarray(y)
            found = Evidence(subject, y, backward, random_dy(y, rng), {}, evidence.patterns)
            found.others = []
            phi = Phi(subject, found.dy, evidence.patterns)
            for name, x in subject.tensors.items():
                all_of_them = name in evidence.wrong and x.size <= AFFORDABLE
                entries = rng.choice(x.size, x.size if all_of_them else min(x.size, ENTRIES), replace=False)
                found.measure(name, phi, entries)
            found.gradients = _gradients(subject, found.dy)
        found.wrong = [name for name in found.slopes if not found.agrees(name, found.gradients.get(name))]
        found.right = [name for name in found.slopes if name not in found.wrong]
        return found
    except FAILURES:
        return None


def _gradients(subject, dy):
    try:
        return {name: np.asarray(g) for name, g in subject.run(dy).items() if g is not None}
    except FAILURES:                                    # a wrong backward may fail with other sizes
        return {}


def _shaped(x):
    return kind_of(x) in ("f", "b", "i", "u") and np.ndim(x) > 0

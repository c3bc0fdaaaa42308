"""The same function at other sizes: a reason that is one by chance, 3 for 3 rows, does not hold there.

Each size that occurs in the shapes is made larger, wherever it occurs, and all are doubled; of square arrays, one axis.
Where the forward then runs, the slopes are measured there, too.
"""

from itertools import islice

from mini_tf.gradcheck.errors import FAILURES, Broken, Refused
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.points import generic, random_dy
from mini_tf.gradcheck.measure.slopes import Phi
from mini_tf.types import Array

import numpy as np

ENTRIES, LEAST = 30, 3   # measured of all tensors together, and of each


def other_sizes(evidence: Evidence) -> list[Evidence]:
    """Evidence of the same subject at up to four other sizes; the subject is then back at its point."""
    shapes = [np.shape(x) for x in evidence.everything.values()]
    every, first = [size for shape in shapes for size in shape if size > 1], {shape[0] for shape in shapes if shape}
    sizes = sorted({*every}, key=lambda size: (size not in first, -every.count(size)))   # a batch is most often free
    squares = [{(name, axis): size + 1} for name, x in evidence.everything.items() if len({*x.shape}) < x.ndim
               for axis, size in enumerate(x.shape)]     # fmt: skip
    found = []
    for changes, most in (([{size: 2 * size for size in sizes}], 1), (squares, 1), ([{s: s + 1} for s in sizes], 2)):
        found += islice(filter(None, (_measured(evidence, change) for change in changes)), most)
    evidence.back_to_the_point()
    return found


def _measured(evidence, change):
    """The Evidence with other sizes; None if the function does not run like that"""
    subject, rng = evidence.subject, np.random.default_rng(7)
    given = {name: _resized(name, x, change, rng) for name, x in evidence.everything.items()}
    try:
        with np.errstate(all="ignore"):
            subject.arrays |= given
            y, backward = subject.forward()
            y = np.copy(y)
            dy = random_dy(y, rng, backward)
            if not np.isfinite(y).all() or any(np.shape(g) != subject.tensors[n].shape for n, g in backward(dy).items()
                                               if n in subject.tensors and n not in evidence.misfits):  # fmt: skip
                return None
            point = Evidence(subject, y, backward, dy, {}, evidence.patterns)
            phi = Phi(subject, dy, evidence.patterns)
            share = max(LEAST, ENTRIES // len(subject.tensors))
            for name, x in subject.tensors.items():
                point.measure(name, phi, np.sort(rng.choice(x.size, min(x.size, share), replace=False)))
        return point
    except (*FAILURES, Broken, Refused):
        return None


def _resized(name: str, x: Array, change: dict, rng: np.random.Generator) -> Array:
    """x with axes of other sizes: its entries again, floating ones a little different"""
    for axis, size in enumerate(np.shape(x)):
        if new := change.get((name, axis), change.get(size)):
            x = np.take(x, np.arange(new) % size, axis)
    return generic(x, rng) if x.dtype.kind == "f" else np.array(x)

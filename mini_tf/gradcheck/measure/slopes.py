"""Slopes of φ by finite differences, each with its uncertainty.

φ(x) = Σ dy·y(x) is one number, and the right dx is its slope in each entry of x. The measured slope is Richardson's,

    (4·D(h/2) − D(h))/3,   D(h) = (φ(x + h) − φ(x − h))/2h,

whose error is of order h⁴. Its uncertainty is |D(h) − D(h/2)|, which is of order h², plus rounding. That is three times
its distance from D(h/2). Where the second derivative jumps, as that of ELU at 0, twice that distance is its error.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.subject import Subject
from mini_tf.types import Array

import numpy as np

STEPS = 3e-4, 3e-5, 3e-6, 3e-7       # h, times max(1, |x|): a smaller one if a larger one meets a kink or a bend
LONG = 0.1                           # where rounding makes stairs of φ, over many of them
FINE = 1e-7                          # a slope known this well, relative to the tensor's largest, needs no smaller step
ROUNDING = 4e-15                     # rounding error of one value of φ, relative to Σ |dy·y|
TREMBLE = 1e-10                      # spacing of the points that measure the noise of φ, times max(1, |x|)
FEW = 5                              # entries; of fewer, the noise is measured three times
STAIRS = TREMBLE, 1e-8, 1e-6, 1e-4   # where φ may go in stairs, as log(1 − σ(30)) does; there it need not be so smooth
EXACT = 3e-11                        # the least uncertainty, relative to the largest slope of the tensor
SWEEP = 10.0 ** np.arange(-1, -13, -1)

RECTIFIED = {"relu": 0, "residual_relu": 1}              # which input of the op goes through ReLU


class Phi:
    """φ as a function of the subject's arrays, which the caller changes in place.

    phi() gives (φ, pattern): the on/off pattern of all ReLUs, which differs if a step has switched one.
    noise is how much rounding may change one value of φ, or how high its stairs are, where hardly a digit is left: of
    the rounding inside f what shows at these spacings of points, times max(1, |x|).
    """

    def __init__(
        self, subject: Subject, dy: Array | float, patterns: list[bytes], spacings: Sequence[float] = (TREMBLE,)
    ):  # fmt: skip
        self.subject, self.dy, self.patterns = subject, dy, patterns
        self.size = float(np.abs(np.asarray(subject.forward()[0]) * dy).sum())           # Σ |dy·y|
        self.noise = max([ROUNDING * self.size, *(6 * self.tremor(spacing) for spacing in spacings)])

    def __call__(self) -> tuple[float, bytes]:
        self.patterns.clear()
        try:
            y = np.asarray(self.subject.forward()[0])
        except FAILURES:                                # the step has left the domain of f
            return np.nan, b""
        return float((y * self.dy).sum()), b"".join(self.patterns)

    def tremor(self, spacing: float = TREMBLE) -> float:
        """The noise of φ: its scatter on a stretch so short that φ is smooth there but for the rounding inside f.

        Third differences of eight points: 0 for a smooth function; for scatter σ, of size σ·√(6!)/3!.
        Source: Moré, Wild 2011, Estimating Computational Noise, SIAM J. Sci. Comput. 33(3)
        """
        tensors, rng, worst = self.subject.tensors, np.random.default_rng(0), 0.0
        few = sum(x.size for x in tensors.values()) < FEW
        for _ in range(3 if few else 1):
            steps = {}                                   # each entry's own: one that is a whole number of units in the
            for name, x in tensors.items():              # last place of what is added to x would show nothing
                size = rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1, 1], x.shape)
                steps[name] = spacing * np.maximum(1, np.abs(x)) * size
            phi_at = _all_moved(self, steps)
            scatter = np.abs(np.diff([phi_at(k)[0] for k in range(8)], 3))
            worst = max(worst, float(scatter.max(initial=0, where=np.isfinite(scatter))))
        return worst * math.factorial(3) / math.sqrt(math.factorial(6))


@contextmanager
def watched_relus() -> Iterator[list[bytes]]:
    """Yield a list to which every ReLU of mini_tf adds its on/off pattern inside the block, where formulas run."""
    patterns = []
    if "mini_tf.ops.op" not in sys.modules:              # somebody's own file, which uses nothing of mini_tf
        yield patterns
        return
    from mini_tf.backend import to_host
    from mini_tf.kernels import reference_only
    from mini_tf.ops.op import watching

    def watch(op, run, *inputs, **options):
        if op.name in RECTIFIED:
            patterns.append(np.packbits(np.atleast_1d(to_host(inputs[RECTIFIED[op.name]]) > 0)).tobytes())
        return run(*inputs, **options)

    with reference_only(), watching(watch):
        yield patterns


@dataclass
class Slopes:
    """Measured slopes of φ, one for each of some entries or directions."""

    slope: np.ndarray
    uncertainty: np.ndarray
    kink: np.ndarray                 # bool: not measurable, a kink is too near

    def __setitem__(self, where, other):
        self.slope[where], self.uncertainty[where], self.kink[where] = other.slope, other.uncertainty, other.kink


def slopes_of_entries(phi: Callable[[], tuple[float, bytes]], x: Array, entries: Array) -> Slopes:
    """The slopes of φ in the given entries of x (indices into x.reshape(-1)). x is changed and restored."""
    flat, centre = x.reshape(-1), phi()

    def at_step(entries, step):
        return _collect(
            _slope(_moved(phi, flat, i, 1.0), centre, step * max(1.0, abs(flat[i])), phi.noise) for i in entries
        )

    return _measured(at_step, entries, STEPS, phi.noise)


def slopes_along(phi: Phi, x: Array, directions: Array) -> Slopes:
    """The slopes of φ along directions (k, x.size), in each of which all entries of x move together."""
    flat, centre = x.reshape(-1), phi()
    shorter = max(1.0, x.size**0.5 / 10)                 # the more entries move, the shorter the step of each

    def at_step(directions, step):
        return _collect(_slope(_moved(phi, flat, slice(None), v), centre, step, phi.noise) for v in directions)

    return _measured(at_step, directions, [step / shorter for step in STEPS], phi.noise)


def _measured(at_step, which, steps, noise):
    """The slopes of the entries or directions `which`, again at shorter steps where a longer one leaves them unclear.

    Where rounding is most of the uncertainty, a shorter step would only add to it.
    """
    found = at_step(which, steps[0])
    for step in steps[1:]:
        wanted = max(FINE * np.abs(found.slope[~found.kink]).max(initial=0), 2 * noise / steps[0])
        unclear = np.flatnonzero(found.kink | (found.uncertainty > wanted))
        _keep_better(found, unclear, at_step(which[unclear], step))
    return found


def slope_of_all(phi: Phi, directions: dict[str, Array]) -> tuple[float, float]:
    """(slope, its uncertainty) of φ as tensors move together, each along its direction; uncertainty ∞ at a kink."""
    phi_at, centre, best = _all_moved(phi, directions), phi(), (0.0, np.inf)
    shorter = max(1.0, sum(v.size for v in directions.values()) ** 0.5 / 10)
    for step in STEPS[1:3]:
        slope, uncertainty, kink = _slope(phi_at, centre, step / shorter, phi.noise)
        if not kink and uncertainty < best[1]:
            best = slope, uncertainty
    return best


def long_slope(phi: Phi, x: Array, entry: int) -> float:
    """φ's difference over a long step in one entry, per unit: roughly the slope, even of stairs"""
    flat = x.reshape(-1)
    at, step = _moved(phi, flat, entry, 1.0), LONG * max(1.0, abs(flat[entry]))
    with np.errstate(all="ignore"):
        return (at(step)[0] - at(-step)[0]) / (2 * step)


def sweep(phi: Phi, x: Array, entry: int) -> Array:
    """D(h), the central difference in one entry, for every h of SWEEP (times max(1, |x|))."""
    flat = x.reshape(-1)
    at = _moved(phi, flat, entry, 1.0)
    steps = SWEEP * max(1.0, abs(flat[entry]))
    with np.errstate(all="ignore"):
        return np.array([(at(h)[0] - at(-h)[0]) / (2 * h) for h in steps])


def _moved(phi, flat, where, direction):
    """φ as a function of the distance by which the entries `where` of flat move along the direction."""
    x = np.copy(flat[where])

    def phi_at(distance):
        flat[where] = x + distance * direction
        try:
            return phi()
        finally:
            flat[where] = x

    return phi_at


def _all_moved(phi, directions):
    """φ as a function of the distance by which each of several tensors moves along its direction, {name: array}."""
    tensors = {name: phi.subject.tensors[name] for name in directions}
    before = {name: x.copy() for name, x in tensors.items()}

    def phi_at(distance):
        for name, x in tensors.items():
            x[...] = before[name] + distance * directions[name]
        try:
            return phi()
        finally:
            for name, x in tensors.items():
                x[...] = before[name]

    return phi_at


def _slope(phi_at, centre, h, noise):
    """(slope, its uncertainty, whether there is a kink within h) at distance 0"""
    with np.errstate(all="ignore"):                      # a step may leave the domain of f: then φ is NaN
        points = [phi_at(distance) for distance in (h, -h, h / 2, -h / 2)]
    (right, left, right_half, left_half), (phi_0, pattern) = [value for value, _ in points], centre
    if not np.isfinite([right, left, right_half, left_half]).all():
        return 0.0, np.inf, True
    coarse, fine = (right - left) / (2 * h), (right_half - left_half) / h
    slope = (4 * fine - coarse) / 3
    rounding = noise / h
    # The difference of the slopes on the two sides: for a smooth function, half as large at half the step.
    bend, bend_half = abs(right - 2 * phi_0 + left) / h, abs(right_half - 2 * phi_0 + left_half) / (h / 2)
    switched = any(other != pattern for _, other in points)
    return slope, abs(coarse - fine) + rounding, switched or bend_half > 0.7 * bend + 10 * rounding


def _collect(triples):
    slope, uncertainty, kink = np.array(list(triples), dtype=float).reshape(-1, 3).T.copy()
    return Slopes(slope, uncertainty, kink.astype(bool))


def _keep_better(found, where, trial):
    """Replace the slopes at `where` by those of the trial that meet no kink and are known better."""
    better = ~trial.kink & (found.kink[where] | (trial.uncertainty < found.uncertainty[where]))
    found[where[better]] = Slopes(trial.slope[better], trial.uncertainty[better], trial.kink[better])

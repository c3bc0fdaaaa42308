"""Slopes of φ by finite differences, each with its uncertainty.

φ(x) = Σ dy·y(x), with a random dy, is one number, and the right dx is its slope in each entry of x. (With dy = 1, that
of softmax is 0, and a wrong one often is, too.) The measured slope is Richardson's,

    (4·D(h/2) − D(h))/3,   D(h) = (φ(x + h) − φ(x − h))/2h,

whose error is of order h⁴. Its uncertainty is |D(h) − D(h/2)|, which is of order h², plus rounding. That is three times
its distance from D(h/2). Where the second derivative jumps, as that of ELU at 0, twice that distance is its error.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.subject import Subject
from mini_tf.types import Array

import numpy as np

STEPS = 3e-4, 3e-5, 3e-6, 3e-7       # h, times max(1, |x|): a smaller one if a larger one meets a kink or a bend
BEND = 0.7                           # times the bend at h: one as large at h/2 is a kink
FINE = 1e-7                          # a slope known this well, relative to the tensor's largest, needs no smaller step
ROUNDING = 4e-15                     # rounding error of one value of φ, relative to Σ |dy·y|
SPACING = 1e-10                      # of the points that measure the noise of φ, times max(1, |x|)
NARROW, LEAST = 1e-9, 1.2e-7         # noise relative to Σ |dy·y|, above which there is float32 inside f: then at least
LONG = 3e-2, 3e-3                    # so much, and slopes are measured by longer steps, too
EXACT = 3e-11                        # the least uncertainty, relative to the largest slope of the tensor
SWEEP = 10.0 ** np.arange(-1, -13, -1)

RECTIFIED = {"relu": 0, "residual_relu": 1}              # which input of the op goes through ReLU
Value = tuple[float, bytes]                              # φ, and the on/off pattern of all ReLUs
Line = Callable[[float], Value]                          # φ at a distance from the point


class Phi:
    """φ as a function of the subject's arrays, which the caller changes in place.

    phi() gives (φ, pattern): the on/off pattern of all ReLUs, which differs if a step has switched one.
    noise is how much rounding may change one value of φ: by what φ scatters.
    """

    def __init__(self, subject: Subject, dy: Array | float, patterns: list[bytes]):
        self.subject = subject
        self.dy = dy
        self.patterns = patterns
        y = np.asarray(subject.forward()[0])
        self.size: float = float(np.abs(y * dy).sum())   # Σ |dy·y|
        self.noise: float = max(ROUNDING * self.size, 6 * self.scatter())
        narrow = self.noise > NARROW * self.size or np.array_equal(y, y.astype(np.float32))
        self.single: bool = subject.adapter.may_be_single and bool(narrow)
        self.noise = max(self.noise, LEAST * self.size) if self.single else self.noise

    def __call__(self) -> Value:
        self.patterns.clear()
        try:
            y = np.asarray(self.subject.forward()[0])
        except FAILURES:                                # the step has left the domain of f
            return np.nan, b""
        return float((y * self.dy).sum()), b"".join(self.patterns)

    def scatter(self) -> float:
        """The scatter of φ on a stretch so short that φ is smooth there but for the rounding inside f.

        Third differences of eight points: 0 for a smooth function; for scatter σ, of size σ·√(6!)/3!.
        Source: Moré, Wild 2011, Estimating Computational Noise, SIAM J. Sci. Comput. 33(3)
        """
        spacing = SPACING * (1e4 if self.subject.adapter.may_be_single else 1)           # float32 does not see 1e-10
        rng, moves = np.random.default_rng(0), []        # each entry has a step of its own: one that is a whole number
        for x in self.subject.tensors.values():          # of units in the last place would show nothing
            steps = rng.uniform(0.5, 1.5, x.shape) * rng.choice([-1, 1], x.shape)
            moves.append((x, ..., spacing * np.maximum(1, np.abs(x)) * steps))
        phi_at = moved(self, moves)
        third = np.abs(np.diff([phi_at(k)[0] for k in range(8)], 3))
        worst = float(third.max(initial=0, where=np.isfinite(third)))
        return worst * math.factorial(3) / math.sqrt(math.factorial(6))


@contextmanager
def watched_relus() -> Iterator[list[bytes]]:
    """Yield a list to which every ReLU of mini_tf adds its on/off pattern inside the block, where formulas run."""
    patterns: list[bytes] = []
    if "mini_tf.ops.op" not in sys.modules:              # somebody's own file, which uses nothing of mini_tf
        yield patterns
        return
    from mini_tf.backend import to_host
    from mini_tf.kernels import reference_only
    from mini_tf.ops.op import watching

    def watch(op: Any, run: Callable[..., Any], /, *inputs: Any, **options: Any) -> Any:
        if op.name in RECTIFIED:
            patterns.append(np.packbits(np.atleast_1d(to_host(inputs[RECTIFIED[op.name]]) > 0)).tobytes())
        return run(*inputs, **options)

    with reference_only(), watching(watch):
        yield patterns


@dataclass
class Slopes:
    """Measured slopes of φ, one for each of some entries or directions."""

    slope: Array
    uncertainty: Array
    kink: Array                      # bool: not measurable, a kink is too near; its uncertainty is infinite


def slopes_of_entries(phi: Phi, x: Array, entries: Array) -> Slopes:
    """The slopes of φ in the given entries of x (indices into x.reshape(-1)). x is changed and restored."""
    flat = x.reshape(-1)
    sizes = np.maximum(1.0, np.abs(flat[entries]))
    return _measured(phi, [moved(phi, [(flat, i, 1.0)]) for i in entries], sizes)


def measured_slopes(subject: Subject, dy: Array | float, entries: dict[str, Array]) -> dict[str, Slopes]:
    """{name: Slopes} of φ = Σ dy·y in some entries of the subject's tensors, {name: flat indices}."""
    with watched_relus() as patterns:
        phi = Phi(subject, np.asarray(dy, dtype=float), patterns)
        return {name: slopes_of_entries(phi, subject.tensors[name], chosen) for name, chosen in entries.items()}


def slopes_along(phi: Phi, directions: Sequence[Sequence[tuple[Array, Array]]]) -> Slopes:
    """The slopes of φ along directions [(x, v), …], in each of which all entries of some arrays move together."""
    lines = [moved(phi, [(x, ..., v) for x, v in one]) for one in directions]
    counts = np.array([sum(v.size for _, v in one) for one in directions])
    return _measured(phi, lines, 1 / np.maximum(1.0, counts**0.5 / 10))          # of more entries, each moves less


def sweep(phi: Phi, x: Array, entry: int) -> Array:
    """D(h), the central difference in one entry, for every h of SWEEP (times max(1, |x|))."""
    flat = x.reshape(-1)
    at, steps = moved(phi, [(flat, entry, 1.0)]), SWEEP * max(1.0, abs(flat[entry]))
    with np.errstate(all="ignore"):
        return np.array([(at(h)[0] - at(-h)[0]) / (2 * h) for h in steps])


def moved(phi: Callable[[], Any], moves: Sequence[tuple[Array, Any, Any]]) -> Callable[[float], Any]:
    """φ as a function of how far parts of arrays move along a direction: moves [(array, where, direction)]"""
    before = [np.copy(x[where]) for x, where, _ in moves]

    def phi_at(distance: float) -> Any:
        for (x, where, direction), start in zip(moves, before):
            x[where] = start + distance * direction
        try:
            return phi()
        finally:
            for (x, where, _), start in zip(moves, before):
                x[where] = start

    return phi_at


def _measured(phi: Phi, lines: Sequence[Line], sizes: Array) -> Slopes:
    """The slopes of φ along lines, functions of a distance; sizes: factors of the steps along them

    A shorter step is tried where a longer one leaves a slope unclear. Where rounding is most of the uncertainty, it
    would only add to it.
    """
    slope, uncertainty = np.zeros(len(lines)), np.full(len(lines), np.inf)
    steps = (LONG if phi.single else ()) + STEPS
    unclear, centre = [*range(len(lines))], phi()
    for step in steps:
        for i in unclear:
            found, unsure = _slope(lines[i], centre, step * sizes[i], phi.noise)
            if unsure < uncertainty[i]:
                slope[i], uncertainty[i] = found, unsure
        wanted = np.maximum(FINE * np.abs(slope).max(initial=0), 2 * phi.noise / (steps[0] * sizes))
        unclear = np.flatnonzero(uncertainty > wanted).tolist()
    return Slopes(slope, uncertainty, np.isinf(uncertainty))


def _slope(phi_at: Line, centre: Value, h: float, noise: float) -> tuple[float, float]:
    """(slope, its uncertainty, ∞ if there is a kink within h) at distance 0"""
    with np.errstate(all="ignore"):                      # a step may leave the domain of f: then φ is NaN
        points = [phi_at(distance) for distance in (h, -h, h / 2, -h / 2)]
    (right, left, right_half, left_half), (phi_0, pattern) = [value for value, _ in points], centre
    if not np.isfinite([right, left, right_half, left_half]).all() or any(other != pattern for _, other in points):
        return 0.0, np.inf
    coarse, fine = (right - left) / (2 * h), (right_half - left_half) / h
    rounding = noise / h
    # The difference of the slopes on the two sides: for a smooth function, half as large at half the step.
    bend, bend_half = abs(right - 2 * phi_0 + left) / h, abs(right_half - 2 * phi_0 + left_half) / (h / 2)
    if bend_half > BEND * bend + 10 * rounding:
        return 0.0, np.inf
    return (4 * fine - coarse) / 3, abs(coarse - fine) + rounding

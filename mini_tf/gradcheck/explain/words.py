"""What a wrong gradient is, in words: a factor, a transpose, one gradient in the place of another, some entries.

Each pattern is a sentence that the judge's own tolerance confirms, at both points and at other sizes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.paths import missing_path
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.report import entry, listed
from mini_tf.types import Array

import numpy as np

FEW = 3                  # candidates for a factor that are named
TENSORS = 4              # of a function with more wrong gradients, only the first get words


def sentences(evidence: Evidence, others: Sequence[Evidence]) -> dict[str, str]:
    """{tensor: what is wrong with its gradient, in a sentence}; others: evidence from other points and sizes"""
    points = [point for point in (evidence, *others) if _with_gradients(point)]
    evidence.back_to_the_point()
    found = _exchanged(points)
    for name in evidence.wrong[:TENSORS]:
        if name not in found:
            found[name] = next((words for pattern in PATTERNS if (words := pattern(points, name))), "")
    return {name: words for name, words in found.items() if words}


def _with_gradients(point):
    """Whether the gradients that come back at a point are known there; of other sizes they are taken now"""
    if not point.gradients:
        try:
            point.back_to_the_point()
            came = point.subject.run(point.dy_again())
            fitting = [n for n, slopes in point.slopes.items() if np.shape(came.get(n)) == slopes.shape]
            point.gradients = {n: np.asarray(came[n]) for n in fitting}
        except FAILURES:
            return False
    return True


def _pairs(points, name) -> Iterator[tuple[Evidence, Array, Array]]:
    """(point, your gradient, the measured one) where both are known"""
    for point in points:
        if name in point.gradients and name in point.slopes:
            yield point, point.gradients[name], point.slopes[name]


def _all_fit(points, name, change: Callable[[Evidence, Array], Array]) -> bool:
    """Whether, at every point, the gradient is right once it is changed"""
    fits = []
    for point, yours, _ in _pairs(points, name):
        try:
            fits.append(point.fits(name, np.asarray(change(point, yours), dtype=float)))
        except FAILURES:
            return False
    return bool(fits) and all(fits)


def _exchanged(points):
    """Two gradients that have changed places"""
    found, wrong = {}, points[0].wrong
    for a, b in combinations([name for name in wrong if name in points[0].gradients], 2):
        if all(_all_fit(points, one, partial(_gradient_of, other)) for one, other in ((a, b), (b, a))):
            found |= {a: f"d{a} and d{b} are exchanged.", b: f"d{a} and d{b} are exchanged."}
    return found


def _gradient_of(name, point, _):
    return point.gradients[name]


def _not_a_number(points, name):
    bad = ~np.isfinite(points[0].gradients[name])
    if not bad.any():
        return ""
    return f"{'All' if bad.all() else np.count_nonzero(bad)} of its {bad.size} entries are not finite."


def _zero(points, name):
    if all(not yours.any() for _, yours, _ in _pairs(points, name)):
        return "It is zero everywhere: nothing comes back."
    return ""


def _factor(points, name):
    """One number times the right gradient: every size, number in scope and power of them that fits at all points"""
    factors = []
    for point, yours, right in _pairs(points, name):
        known = ~np.isnan(right)
        c = float(yours[known] @ right[known] / max(float(right[known] @ right[known]), 1e-300))
        tolerance = point.tolerances[name] * max(1.0, abs(c)) * 4 + 1e-9 * point.size(name)
        if not c or not (np.abs(yours - c * right)[known] <= tolerance[known]).all():
            return ""
        factors.append(c)
    if not factors or abs(factors[0] - 1) < 1e-6:
        return ""
    if all(abs(c + 1) < 1e-5 for c in factors):
        return "It has the wrong sign."
    names = [text for text, values in _numbers(points, name) if np.allclose(factors, values, rtol=1e-5, atol=0)]
    if names:
        return f"It is the right one times {listed(names[:FEW]).replace(' and ', ' or ')}."
    if np.ptp(factors) <= 1e-5 * abs(factors[0]):
        return f"It is the right one times {factors[0]:.5g}."
    return "It is the right one times one number, which is another at other points."


def _numbers(points, name) -> Iterator[tuple[str, list[float]]]:
    """(text, its value at each point) of sizes, counts and numbers, of their reciprocals and roots"""
    points = [point for point, *_ in _pairs(points, name)]
    atoms = [(f"{k:g}", [float(k)] * len(points)) for k in (2, 3)]
    first = _arrays(points[0])
    for other, x in first.items():
        if isinstance(x, np.ndarray):
            for axis in range(x.ndim):
                sizes = [float(_arrays(p)[other].shape[axis]) for p in points]
                atoms.append((f"{x.shape[axis]} (axis {axis} of {other})", sizes))
            if x.ndim > 1:
                rows = [_arrays(p)[other].size / _arrays(p)[other].shape[-1] for p in points]
                atoms.append((f"{x.size // x.shape[-1]} (rows of {other})", rows))
            if x.dtype.kind in "bi" and x.size:
                atoms.append((f"{np.count_nonzero(x)} (entries of {other} that are not 0)",
                              [float(np.count_nonzero(_arrays(p)[other])) for p in points]))       # fmt: skip
    options = {**points[0].subject.options, **dict(zip(points[0].subject.names, points[0].subject.given))}
    atoms += [(f"{n} = {x:g}", [float(x)] * len(points)) for n, x in options.items() if type(x) in (int, float) and x]
    for text, values in atoms:
        yield text, values
        yield f"1/{text}", [1 / v for v in values if v] or values
        yield f"√{text}", [abs(v) ** 0.5 for v in values]
        yield f"1/√{text}", [abs(v) ** -0.5 for v in values if v] or values


def _arrays(point):
    """All arrays that f is given, constants by name, too"""
    return {n: x for n, x in point.subject.options.items() if isinstance(x, np.ndarray)} | point.everything


def _transposed(points, name):
    square = points[0].gradients[name]
    if square.ndim < 2:
        return ""
    return "It is transposed." if _all_fit(points, name, lambda _, g: g.swapaxes(-1, -2)) else ""


def _some_entries(points, name):
    """Right in most entries: those of one row, column or other slice, of a mask, or of ids that occur more than once"""
    for point, yours, right in list(_pairs(points, name))[:1]:
        with np.errstate(invalid="ignore"):
            wrong = np.abs(yours - right) > point.tolerances[name]
        if not wrong.any() or np.count_nonzero(wrong) > 0.8 * wrong.size:
            return ""
        for other, x in _arrays(point).items():
            if not isinstance(x, np.ndarray) or x.dtype.kind not in "bi":
                continue
            if x.dtype.kind == "b":
                for value, says in ((False, "is False"), (True, "is True")):
                    if _marks(x == value, wrong):
                        return f"It is wrong exactly where {other} {says}."
            elif wrong.ndim > 1 and x.size and x.min() >= 0 and x.max() < wrong.shape[0]:
                counts = np.bincount(x.ravel(), minlength=wrong.shape[0])
                rows = wrong.any(tuple(range(1, wrong.ndim)))
                if rows.any() and not rows[counts < 2].any():
                    return f"It is wrong only for ids in {other} that occur more than once: each time has to count."
        for axis in range(wrong.ndim):
            lines = np.flatnonzero(wrong.any(tuple(a for a in range(wrong.ndim) if a != axis)))
            if len(lines) == 1 and wrong.shape[axis] > 1:
                where = [":"] * wrong.ndim
                where[axis] = str(lines[0])
                return f"It is wrong only in [{', '.join(where)}]."
        if np.count_nonzero(wrong) == 1:
            return f"It is wrong only in the entry {entry(np.argwhere(wrong)[0])}."
    return ""


def _marks(mask, wrong):
    """Whether a mask, as wide as the gradient's first axes or broadcast to it, is where it is wrong"""
    for one in (mask, mask.reshape(*mask.shape, *[1] * max(wrong.ndim - mask.ndim, 0))):
        try:
            if np.array_equal(np.broadcast_to(one, wrong.shape) & True, wrong) and wrong.any():
                return True
        except ValueError:
            continue
    return False


def _path(points, name):
    words = missing_path(points[0], name)
    if not words:
        return ""
    confirmed = [missing_path(point, name) for point in points[1:2]]
    return words if all(one == words for one in confirmed) else ""


def _constant(points, name):
    """Right up to a number that is the same in every entry"""
    for point, yours, right in _pairs(points, name):
        off = (yours - right)[~np.isnan(right)]
        slack = 1e-6 * np.abs(off).max(initial=0) + np.nanmax(point.tolerances[name])
        if off.size < 3 or (np.abs(off - off.mean()) > slack).any():
            return ""
    return "It is right but for one number, the same in all entries."


PATTERNS = (_not_a_number, _zero, _factor, _transposed, _path, _constant, _some_entries)

"""What is wrong with a gradient, in words: a factor, a transpose, a missing path, a mask, repeated ids.

A sentence holds at both points, and at other sizes, within the judge's own tolerance.
"""

from collections.abc import Iterator, Sequence

from mini_tf.gradcheck.explain.paths import missing_paths
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.wording import listed
from mini_tf.types import Array

import numpy as np

FEW = 3                  # candidates for a factor that are named
TENSORS = 4              # of a function with more wrong gradients, only the first get words


def sentences(evidence: Evidence, others: Sequence[Evidence]) -> dict[str, tuple[str, bool]]:
    """{tensor: (what is wrong with its gradient, in a sentence; whether it is a path)}

    others: evidence from other points and sizes
    """
    points = [evidence, *others]
    names = [name for name in evidence.wrong[:TENSORS] if np.isfinite(evidence.gradients[name]).all()]
    found = {name: _factor(points, name) or _transposed(points, name) for name in names}
    rest = [name for name in names if not found[name]]
    paths = missing_paths(points, rest)
    found |= {name: paths.get(name) or _entries(evidence, name) for name in rest}
    return {name: (words, name in paths) for name, words in found.items() if words}


def _pairs(points: Sequence[Evidence], name: str) -> Iterator[tuple[Evidence, Array, Array]]:
    """(point, your gradient, the measured one) where both are known"""
    for point in points:
        yours, right = point.gradients.get(name), point.slopes.get(name)
        if yours is not None and right is not None and np.shape(yours) == right.shape:
            yield point, yours, right


def _factor(points: Sequence[Evidence], name: str) -> str:
    """One number times the right gradient, and the sizes that it may be at all points, or their roots"""
    factors = []
    for point, yours, right in _pairs(points, name):
        known = ~np.isnan(right)
        c = float(yours[known] @ right[known] / max(float(right[known] @ right[known]), 1e-300))
        tolerance = point.tolerances[name] * max(1.0, abs(c)) * 4 + 1e-9 * point.size(name)
        if not (np.abs(yours - c * right)[known] <= tolerance[known]).all():
            return ""
        factors.append(c)
    if not any(factors):
        return "It is zero everywhere: nothing comes back."
    if abs(factors[0] - 1) < 1e-6:
        return ""
    if np.allclose(factors, -1, rtol=1e-5):
        return "It has the wrong sign."
    numbers = _numbers([point for point, *_ in _pairs(points, name)])
    if names := [text for text, values in numbers if np.allclose(factors, values, rtol=1e-5, atol=0)]:
        return f"It is the right one times {listed(names[:FEW]).replace(' and ', ' or ')}."
    if np.ptp(factors) <= 1e-5 * abs(factors[0]):
        return f"It is the right one times {factors[0]:.5g}."
    return "It is the right one times one number, which is another at other points."


def _numbers(points: Sequence[Evidence]) -> Iterator[tuple[str, Array]]:
    """(text, its value at each point) of sizes, 2 and 3, of their reciprocals and roots"""
    sizes: dict[str, list[float]] = {"2": [2], "3": [3]}
    for name, x in points[0].everything.items():
        same = [point.everything[name] for point in points]
        sizes |= {f"{x.shape[axis]} (axis {axis} of {name})": [y.shape[axis] for y in same] for axis in range(x.ndim)}
        if x.ndim > 2:
            sizes[f"{x.size // x.shape[-1]} (rows of {name})"] = [y.size / y.shape[-1] for y in same]
    for text, size in sizes.items():
        values = np.array(size, float)
        yield from [(text, values), (f"1/{text}", 1 / values)]
        yield from [(f"√{text}", np.sqrt(values)), (f"1/√{text}", 1 / np.sqrt(values))]


def _transposed(points: Sequence[Evidence], name: str) -> str:
    pairs = [(point, yours) for point, yours, _ in _pairs(points, name)]
    turned = all(yours.ndim > 1 and point.fits(name, yours.swapaxes(-1, -2)) for point, yours in pairs)
    return "It is transposed." if turned else ""


def _entries(point: Evidence, name: str) -> str:
    """Whether only entries of a mask, or rows of ids that occur more than once, are wrong"""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(point.gradients[name] - point.slopes[name]) > point.tolerances[name]
    for other, x in point.everything.items():
        if x.dtype == bool and x.shape == wrong.shape and (np.array_equal(x, wrong) or np.array_equal(~x, wrong)):
            return f"It is wrong exactly where {other} is {bool(x[wrong][0])}."
        if x.dtype.kind in "iu" and wrong.ndim > 1 and x.size and 0 <= x.min() <= x.max() < len(wrong):
            once = np.bincount(x.ravel(), minlength=len(wrong)) < 2
            if wrong.any() and not wrong[once].any():
                return f"It is wrong only for ids in {other} that occur more than once: each time has to count."
    return ""

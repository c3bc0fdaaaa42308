"""The points at which a gradient is checked: the one given, a generic one, and a quick look at eight far ones.

Where γ = 1 and β = 0, a backward that forgets them is right by luck. At the generic point nothing is 0 or 1, and no two
rows are alike. (Masks stay as they are.) Far ones take branches that those two may not take: a column that ReLU clips
as a whole, an error beyond a Huber loss's δ.
"""

from mini_tf.types import Array, Backward

import numpy as np

SMALL = 0.1              # smaller tensors than this are scaled up: their effect could be too faint to measure


def generic(x: Array, rng: np.random.Generator) -> Array:
    """A generic array with the shape of x, its signs and, unless that is tiny, its size.

    Entries shrink by random factors from 0.6 to 1, so zeros (padding) stay zeros, and what was positive or a
    probability is so still; where there are both signs, they are drawn anew. Where all entries are equal (γ = 1, a
    bias of 0) they are drawn anew.
    """
    if x.size and constant(x) is not None:
        sign = np.sign(x.flat[0])
        drawn = rng.uniform(0.5, 1.5, x.shape) if sign else rng.standard_normal(x.shape)
        return np.asarray(drawn * (sign or 1.0) * _size(x))
    rms = np.sqrt((x * x).mean()) if x.size else 1.0
    scale = max(1.0, _size(x) / rms) if rms < SMALL else 1.0
    both_signs = x.size and x.min() < 0 < x.max()
    signs = rng.choice([-1.0, 1.0], x.shape) if both_signs else 1.0
    return np.asarray(x * signs * rng.uniform(0.6, 1.0, x.shape) * scale)


def far(x: Array, rng: np.random.Generator) -> Array:
    """x with other sizes: entries of a tenth to thirty times, or none. Of two signs, one may be rare."""
    size = 10 ** rng.uniform(-1, 1.5, x.shape) if rng.random() < 0.5 else 1.0
    if not x.size or x.min() >= 0 or x.max() <= 0 or rng.random() < 0.25:
        return np.asarray(size * generic(x, rng))
    mostly = rng.choice([-1.0, 1.0]) * rng.choice([1.0, -1.0], x.shape, p=(0.9, 0.1))
    return np.asarray(size * mostly * np.abs(x))


def random_dy(y: Array | float, rng: np.random.Generator, backward: Backward | None = None) -> Array | float:
    """A random upstream gradient for y: normal; of a loss, a number near 1, and 1 if its backward takes no dloss"""
    if np.ndim(y):
        return rng.standard_normal(np.shape(y))
    return float(rng.uniform(0.5, 1.5)) if getattr(backward, "takes_dy", True) else 1.0


def constant(x: Array) -> float | None:
    """The number that all entries of x are equal to, or None."""
    return x.flat[0] if x.size and (x == x.flat[0]).all() else None


def blind_spots(tensors: dict[str, Array]) -> dict[str, float]:
    """{name: 0.0 or 1.0} of the tensors whose entries are all 0, or all 1: forgetting them there goes unnoticed."""
    values = {name: constant(x) for name, x in tensors.items()}
    return {name: float(value) for name, value in values.items() if value is not None and value in (0, 1)}


def _size(x: Array) -> float:
    """The size of entries that keeps x @ W about as large as x."""
    return min(0.7, x.shape[0] ** -0.5) if x.ndim > 1 else 0.7

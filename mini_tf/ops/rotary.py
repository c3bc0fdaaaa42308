"""Rotary positions: queries and keys are rotated by their positions, so that their products depend on the distance."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.types import Array, Backward


@op("x (…, T, m)")
def rotary(x: Array, first: int = 0, base: float = 10000.0, halves: bool = False) -> tuple[Array, Backward]:
    """(a′, b′) = (a·cos φ − b·sin φ, a·sin φ + b·cos φ),   φ = t·base^(−2i/m),   for each pair (a, b) of entries

    x (…, T, m)  →  y (…, T, m);   t = first, first + 1, … is the row's position, i = 0 … m/2 − 1 the pair's number
    dx: each pair of dy is turned back, by −φ: a backward multiplies by the transpose, which is a rotation's inverse.

    The pairs are neighbours, (x_2i, x_2i+1), or with `halves` (x_i, x_i+m/2); reordering the entries makes one of
    the other. The product of a query turned by φ_s and a key turned by φ_t is that of the query and the key turned by
    φ_t − φ_s: scores depend on positions only by the distance t − s, and nothing is added to the words' vectors.
    Raises ValueError for an odd m, and unless base is above 0.
    Source: Su et al. 2021, arXiv:2104.09864 (RoFormer)
    """
    xp = array_module(x)
    T, m = x.shape[-2:]
    if m % 2:
        raise ValueError(f"rotary: x has shape {x.shape}, expected an even last axis: its entries are turned in pairs")
    if base <= 0:
        raise ValueError(f"rotary: base is {base}, expected a number above 0")
    angle = (first + xp.arange(T))[:, None] * base ** (-2 * xp.arange(m // 2) / m)       # φ (T, m/2)
    cos, sin = xp.cos(angle).astype(x.dtype), xp.sin(angle).astype(x.dtype)

    def backward(dy: Array) -> Array:                    # keeps cos, sin
        return turned(dy, cos, -sin, halves)

    return turned(x, cos, sin, halves), backward


def turned(x: Array, cos: Array, sin: Array, halves: bool) -> Array:
    """Each pair (a, b) of x (…, T, m) turned by the angle whose cosine and sine these are, (T, m/2)"""
    m = x.shape[-1]
    first, second = (slice(m // 2), slice(m // 2, m)) if halves else (slice(0, m, 2), slice(1, m, 2))
    a, b = x[..., first], x[..., second]
    y = array_module(x).empty(x.shape, dtype=x.dtype)
    y[..., first] = a * cos - b * sin
    y[..., second] = a * sin + b * cos
    return y

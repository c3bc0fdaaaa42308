"""Softmax: from any numbers to probabilities."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.types import Array, Backward, Gradients

from numpy import broadcast_shapes  # only compares shapes, so it serves every array library


@op("z (…, k)")
def softmax(z: Array) -> tuple[Array, Backward]:
    """y_i = exp(z_i) / Σ_j exp(z_j) over the last axis

    z (…, k)  →  y (…, k), each row sums to 1; of no entries, k = 0, it is empty
    dz = y·(dy − Σ_j y_j·dy_j);   the Jacobian is   ∂y_i/∂z_j = y_i·(δ_ij − y_j),   and it is symmetric

    The largest z of a row is subtracted first. That changes nothing (it cancels) and keeps exp from overflowing.
    Source: ESE-2000 Lab 6, equation (13); CSCI 567 lecture 8
    """
    xp = array_module(z)
    e = xp.exp(z - largest(z))
    y = e / e.sum(-1, keepdims=True)

    def backward(dy: Array) -> Array:                    # keeps y
        return y * (dy - (y * dy).sum(-1, keepdims=True))

    return y, backward


@op("z (…, k), mask (*) bool")
def masked_softmax(z: Array, mask: Array) -> tuple[Array, Backward]:
    """y_i = exp(z_i) / Σ_{j allowed} exp(z_j), and 0 where not allowed: softmax over the allowed entries of each row

    z (…, k), mask bool, True where allowed, broadcast against z  →  y (…, k)
    dz = y·(dy − Σ_j y_j·dy_j), as for softmax: where y is 0, the gradient is 0 by itself;   None for the mask

    A row with nothing allowed is a row of zeros, forward and backward; it is never NaN. A score of −∞ counts as not
    allowed.
    Source: ESE-2000 Lab 6, future masking (Task 6.12). The lab prints "keep if j > i", which would keep the future;
    the mask that a causal model needs is True for j ≤ i.
    Raises ValueError for a mask that does not broadcast to z.
    """
    xp = array_module(z)
    try:
        fits = broadcast_shapes(mask.shape, z.shape) == z.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"masked_softmax: mask has shape {mask.shape}, expected one that broadcasts to z's {z.shape}")

    top = largest(xp.where(mask, z, -xp.inf))
    top = xp.where(top == -xp.inf, 0, top)               # a row with nothing allowed has −∞ here
    e = xp.exp(xp.where(mask, z - top, -xp.inf))
    total = e.sum(-1, keepdims=True)
    y = e / xp.where(total == 0, 1, total)

    def backward(dy: Array) -> Gradients:                # keeps y
        return y * (dy - (y * dy).sum(-1, keepdims=True)), None

    return y, backward


def largest(z: Array) -> Array:
    """max_j z_j of each row;  (…, k) → (…, 1).  0 for rows of no entries"""
    return z.max(-1, keepdims=True) if z.shape[-1] else z.sum(-1, keepdims=True)

"""From one vector per word to one vector per history."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.types import Array, Backward, Gradients


@op("x (…, T, n), mask (…, T) bool")
def mean_pool(x: Array, mask: Array | None = None) -> tuple[Array, Backward]:
    """y = mean over the words of a history, or over those where the mask is True

    x (…, T, n), mask (…, T) bool  →  y (…, n)
    dx = dy/count at every word that counts, 0 elsewhere;   None for the mask

    A history in which no word counts gets a vector of zeros. Raises ValueError for T = 0 without a mask.
    Source: ESE-2000 Lab 6, the readout of Task 6.5. The lab writes Φ(X)·1, which is the sum; the average that it means
    has the factor 1/T.
    """
    xp = array_module(x)
    if mask is None:
        if x.shape[-2] == 0:
            raise ValueError(f"mean_pool: x has shape {x.shape}, T = 0 words, expected at least one")
        weight = xp.full((x.shape[-2], 1), 1 / x.shape[-2], dtype=x.dtype)
    else:
        count = mask.sum(-1, keepdims=True)[..., None]
        weight = (mask[..., None] / xp.where(count == 0, 1, count)).astype(x.dtype)      # (…, T, 1)

    def backward(dy: Array) -> Gradients:                # keeps weight
        dx = dy[..., None, :] * weight                   # (…, T, n)
        return dx, None

    return (x * weight).sum(-2), backward


@op("x (…, T, n)")
def sum_pool(x: Array) -> tuple[Array, Backward]:
    """y = Σ over the words of a history

    x (…, T, n)  →  y (…, n)
    dx = dy at every word
    Source: CS685, composition functions
    """
    xp = array_module(x)
    shape = x.shape

    def backward(dy: Array) -> Array:                    # keeps shape
        return xp.broadcast_to(dy[..., None, :], shape).copy()       # (…, T, n)

    return x.sum(-2), backward

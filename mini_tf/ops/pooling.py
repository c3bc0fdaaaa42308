"""From one vector per word to one vector per history."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.types import Array, Backward, Gradients


@op("x (…, T, n), mask (…, T) bool")
def mean_pool(x: Array, mask: Array | None = None) -> tuple[Array, Backward]:
    """y = mean(x) over the words of a history, or over those where the mask is True

    x (…, T, n), mask (…, T) bool  →  y (…, n)
    dx = dy/count at every word that counts, 0 elsewhere;   None for the mask

    A history in which no word counts gets a vector of zeros. Raises ValueError for T = 0 without a mask.
    Source: ESE-2000 Lab 6, the readout of Task 6.5. The lab writes Φ(X)·1, which is the sum; the average that it means
    has the factor 1/T.
    """
    xp = array_module(x)
    if mask is None:
        T = _words(x, "mean_pool")
        weight = xp.full((T, 1), 1 / T, dtype=x.dtype)
    else:
        count = mask.sum(-1, keepdims=True)[..., None]
        weight = (mask[..., None] / xp.where(count == 0, 1, count)).astype(x.dtype)      # (…, T, 1)

    def backward(dy: Array) -> Gradients:                # keeps weight
        dx = dy[..., None, :] * weight                   # (…, T, n)
        return dx, None

    return (x * weight).sum(-2), backward


@op("x (…, T, n)")
def sum_pool(x: Array) -> tuple[Array, Backward]:
    """y = Σ_t x_t over the words of a history

    x (…, T, n)  →  y (…, n)
    dx = dy at every word
    Source: CS685, composition functions
    """
    xp = array_module(x)
    shape = x.shape

    def backward(dy: Array) -> Array:                    # keeps shape
        return xp.broadcast_to(dy[..., None, :], shape).copy()       # (…, T, n)

    return x.sum(-2), backward


@op("x (…, T, n)")
def max_pool(x: Array) -> tuple[Array, Backward]:
    """y = max_t x_t over the words of a history, each of the n entries for itself

    x (…, T, n)  →  y (…, n)
    dx = dy at the word whose entry is the largest, 0 at the others

    Of several words with the same largest entry, the first gets all of dy. The maximum has no derivative there; this is
    one of its subgradients. Raises ValueError for T = 0.
    Source: CSCI 567 and CS685, composition functions
    """
    xp = array_module(x)
    T = _words(x, "max_pool")
    first = x.argmax(-2)[..., None, :]                   # (…, 1, n): the word that has the largest entry

    def backward(dy: Array) -> Array:                    # keeps first
        return xp.where(xp.arange(T)[:, None] == first, dy[..., None, :], 0)         # (…, T, n)

    return x.max(-2), backward


@op("x (…, T, n)")
def product_pool(x: Array) -> tuple[Array, Backward]:
    """y = Π_t x_t over the words of a history, each of the n entries for itself

    x (…, T, n)  →  y (…, n)
    dx_t = dy·Π_{s<t} x_s·Π_{s>t} x_s, the products of the words before t and of those after it

    The two products need no division, so entries of 0 are no exception. Raises ValueError for T = 0.
    Source: CS685, composition functions (element-wise operations)
    """
    xp = array_module(x)
    _words(x, "product_pool")
    one = xp.ones_like(x[..., :1, :])
    before = xp.concatenate([one, xp.cumprod(x[..., :-1, :], -2)], -2)               # (…, T, n)
    after = xp.concatenate([xp.cumprod(x[..., :0:-1, :], -2)[..., ::-1, :], one], -2)

    def backward(dy: Array) -> Array:                    # keeps before, after
        return dy[..., None, :] * before * after         # (…, T, n)

    return before[..., -1, :] * x[..., -1, :], backward


def _words(x: Array, name: str) -> int:
    """T. Raises ValueError for 0."""
    T: int = x.shape[-2]
    if T == 0:
        raise ValueError(f"{name}: x has shape {x.shape}, T = 0 words, expected at least one")
    return T

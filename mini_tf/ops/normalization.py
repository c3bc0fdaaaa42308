"""Normalization: each row is brought to the same scale, and its gradient loses the part that would change the scale."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import sum_to
from mini_tf.types import Array, Backward, Gradients


@op("x (…, n), gamma (n), beta (n)")
def layer_norm(x: Array, gamma: Array, beta: Array, eps: float = 1e-5) -> tuple[Array, Backward]:
    """y = γ·x̂ + β,   x̂ = (x − μ)·r,   r = 1/√(σ² + ε);   μ and σ² are mean and variance over the last axis

    x (…, n), gamma (n,), beta (n,)  →  y (…, n)
    dx = r·g − r·mean(g) − r·x̂·mean(g·x̂),   g = dy·γ, the gradient of x̂;   x̂ is `normal`

        r·g               through x, in x − μ
        r·mean(g)         through μ, which each entry of the row moves:   ∂μ/∂x_j = 1/n
        r·x̂·mean(g·x̂)     through r, likewise:   ∂r/∂x_j = −r²·x̂_j/n

    dγ = Σ dy·x̂,   dβ = Σ dy,   from  y = γ·x̂ + β;   Σ over the leading axes

    Raises ValueError for n = 0: there is no mean of no entries.
    Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450; ESE-2000 Lab 6, Task 6.11
    """
    xp = array_module(x)
    if x.shape[-1] == 0:
        raise ValueError(f"layer_norm: x has shape {x.shape}, expected at least one entry in a row")
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / xp.sqrt((centred * centred).mean(-1, keepdims=True) + eps)           # (…, 1)
    normal = centred * r                                                        # x̂

    def backward(dy: Array) -> Gradients:                # keeps normal, r, gamma
        g = dy * gamma
        dx = r * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
        return dx, sum_to(dy * normal, gamma.shape), sum_to(dy, beta.shape)

    return gamma * normal + beta, backward


@op("x (…, n), gamma (n)")
def rms_norm(x: Array, gamma: Array, eps: float = 1e-5) -> tuple[Array, Backward]:
    """y = γ·x̂,   x̂ = x·r,   r = 1/√(mean(x²) + ε);   the mean over the last axis

    x (…, n), gamma (n,)  →  y (…, n)
    dx = r·g − r·x̂·mean(g·x̂),   dγ = Σ dy·x̂ over the leading axes;   g = dy·γ, the gradient of x̂;   x̂ is `normal`

    It is layer_norm without μ and β: as no mean is subtracted, the gradient has no term r·mean(g).
    Raises ValueError for n = 0: there is no mean of no entries.
    Source: Zhang, Sennrich 2019, arXiv:1910.07467
    """
    xp = array_module(x)
    if x.shape[-1] == 0:
        raise ValueError(f"rms_norm: x has shape {x.shape}, expected at least one entry in a row")
    r = 1 / xp.sqrt((x * x).mean(-1, keepdims=True) + eps)       # (…, 1)
    normal = x * r                                               # x̂

    def backward(dy: Array) -> Gradients:                # keeps normal, r, gamma
        g = dy * gamma
        dx = r * (g - normal * (g * normal).mean(-1, keepdims=True))
        return dx, sum_to(dy * normal, gamma.shape)

    return gamma * normal, backward

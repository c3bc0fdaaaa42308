"""Elementwise activations, the residual step that uses one of them, and the gate of SwiGLU."""

import math

from mini_tf.backend import array_module, erf
from mini_tf.ops.op import op
from mini_tf.types import Array, Backward, Gradients


@op("x (…)")
def relu(x: Array) -> tuple[Array, Backward]:
    """y = max(x, 0)

    x (…)  →  y (…)
    dx = dy where x > 0, else 0;   at the kink, too, the gradient is taken to be 0
    """
    xp = array_module(x)
    on = x > 0

    def backward(dy: Array) -> Array:                    # keeps on
        return dy * on

    return xp.maximum(x, 0), backward


@op("x (…), y (…)")
def residual_relu(x: Array, y: Array) -> tuple[Array, Backward]:
    """z = x + max(y, 0),   the residual step of the lab's transformer:   X_ℓ = X_{ℓ−1} + σ(Σ_h Y_ℓ^h)

    x (…), y (…)  →  z (…)
    dx = dz,   dy = dz where y > 0, else 0.  Whatever y is, the gradient reaches x by the skip connection.
    Source: ESE-2000 Lab 6, equation (15)
    """
    xp = array_module(x)
    on = y > 0

    def backward(dz: Array) -> Gradients:                # keeps on
        return dz, dz * on

    return x + xp.maximum(y, 0), backward


@op("x (…)")
def tanh(x: Array) -> tuple[Array, Backward]:
    """y = tanh(x)

    x (…)  →  y (…)
    dx = dy·(1 − y²)
    """
    xp = array_module(x)
    y = xp.tanh(x)

    def backward(dy: Array) -> Array:                    # keeps y
        return dy * (1 - y * y)

    return y, backward


@op("x (…)")
def sigmoid(x: Array) -> tuple[Array, Backward]:
    """y = 1 / (1 + exp(−x)), computed as (1 + tanh(x/2)) / 2, which cannot overflow

    x (…)  →  y (…)
    dx = dy·y·(1 − y)
    """
    xp = array_module(x)
    y = 0.5 * (1 + xp.tanh(0.5 * x))

    def backward(dy: Array) -> Array:                    # keeps y
        return dy * y * (1 - y)

    return y, backward


@op("x (…)")
def gelu(x: Array, approximate: bool = False) -> tuple[Array, Backward]:
    """y = x·Φ(x),   Φ(x) = ½·(1 + erf(x/√2)), the standard normal distribution function

    x (…)  →  y (…)
    dx = dy·(Φ(x) + x·φ(x)),   φ(x) = exp(−x²/2)/√(2π)

    With `approximate`:   Φ(x) = ½·(1 + tanh u),   u = √(2/π)·(x + 0.044715·x³),
    and φ is its derivative,   φ(x) = ½·(1 − tanh² u)·u′
    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415; CMU 10-417 HW3a, question 2
    """
    xp = array_module(x)
    if approximate:
        slope, cubic = math.sqrt(2 / math.pi), 0.044715
        tanh_u = xp.tanh(slope * (x + cubic * x * x * x))
        Phi = 0.5 * (1 + tanh_u)
    else:
        Phi = 0.5 * (1 + erf(x * math.sqrt(0.5)))

    def backward(dy: Array) -> Array:                    # keeps x, Phi (and tanh_u)
        if approximate:
            phi = 0.5 * (1 - tanh_u * tanh_u) * slope * (1 + 3 * cubic * x * x)
        else:
            phi = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (Phi + x * phi)

    return x * Phi, backward


@op("x (…)")
def silu(x: Array) -> tuple[Array, Backward]:
    """y = x·σ(x),   σ(x) = 1/(1 + exp(−x)), the sigmoid

    x (…)  →  y (…)
    dx = dy·σ(x)·(1 + x·(1 − σ(x)))

    Like gelu it is smooth, near x for large x, near 0 for very negative x; its minimum is −0.28.
    Source: Hendrycks, Gimpel 2016, arXiv:1606.08415; as "swish" in Ramachandran, Zoph, Le 2017, arXiv:1710.05941
    """
    s, _ = sigmoid(x)

    def backward(dy: Array) -> Array:                    # keeps x, s
        return dy * (s * (1 + x * (1 - s)))

    return x * s, backward


@op("gate (…), x (…)")
def swiglu(gate: Array, x: Array) -> tuple[Array, Backward]:
    """y = silu(gate)·x, entry by entry: the gate decides how much of x passes

    gate (…), x (…)  →  y (…)
    dx = dy·silu(gate),   dgate = dy·x·silu′(gate):   each factor's gradient is multiplied by the other factor
    Source: Shazeer 2020, arXiv:2002.05202
    """
    opened, silu_backward = silu(gate)

    def backward(dy: Array) -> Gradients:                # keeps gate, x, opened
        return silu_backward(dy * x), dy * opened

    return opened * x, backward

"""What an optimizer computes: formulas without a backward.

As ops they check their arguments, may have twins, and can be watched. Unlike other ops, `adam` writes into its arrays.
"""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.types import Array


@op("p (…), g (…), m (…), v (…)")
def adam(
    p: Array, g: Array, m: Array, v: Array, t: int, learning_rate: float, betas: tuple[float, float], eps: float,
    decay: float,
) -> None:  # fmt: skip
    """The t-th step of Adam, in place in p, m and v:   p ← decay·p − α·m̂/(√v̂ + ε), the rest as in class Adam

    p, g, m, v (…)  →  None
    Raises ValueError unless t ≥ 1, 0 ≤ β < 1 for both, and ε ≥ 0.
    """
    beta1, beta2 = betas
    if not (t >= 1 and 0 <= beta1 < 1 and 0 <= beta2 < 1 and eps >= 0):
        raise ValueError(f"adam: t is {t}, betas {betas} and eps {eps}, expected t ≥ 1, 0 ≤ β < 1 and ε ≥ 0")
    m *= beta1
    m += (1 - beta1) * g
    v *= beta2
    v += (1 - beta2) * g * g
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    p *= decay
    p -= learning_rate * m_hat / (array_module(v).sqrt(v_hat) + eps)


@op("g (…)")
def sum_of_squares(g: Array) -> float:
    """Σ g² over all entries, a float"""
    return float((g * g).sum())

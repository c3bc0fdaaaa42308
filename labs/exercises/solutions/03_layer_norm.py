"""Exercise 3: layer norm, where one number takes three paths

Layer norm brings each row to mean 0 and variance 1, and then applies a scale γ and a shift β that are learned:

    μ = mean(x),   σ² = mean((x − μ)²),   r = 1/√(σ² + ε)          over the last axis: one of each for a row
    x̂ = (x − μ)·r,   y = γ·x̂ + β                                   x (…, n), γ (n,), β (n,)  →  y (…, n)

Change one x_j, and the change reaches y along three paths: x_j appears in its own x̂_j, it moves μ, and it moves r; and
μ and r belong to the whole row. A backward that forgets one of these paths is nearly right, trains almost as well, and
is the classic bug.

You will understand: how to follow each path by itself and add them up, and why the result has two means in it.

    mini-tf gradcheck labs/exercises/03_layer_norm.py::layer_norm
"""

import numpy as np


def layer_norm(x, gamma, beta, eps=1e-5):
    """y = γ·x̂ + β,   x̂ = (x − μ)·r,   r = 1/√(σ² + ε)

    Example: x (2, 3, 5), gamma (5,), beta (5,)
    """
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps)           # (…, 1)
    normal = centred * r                                                        # x̂ (…, n)
    y = gamma * normal + beta
    leading = tuple(range(x.ndim - 1))                   # the axes of "…": gamma and beta serve every row of them

    def backward(dy):                                    # keeps normal, r, gamma
        # ∂y_i/∂β_i = 1 and ∂y_i/∂γ_i = x̂_i, in every row: sums over all rows.
        dbeta = dy.sum(leading)                          # (n,)
        dgamma = (dy * normal).sum(leading)              # (n,)

        # ∂y_i/∂x̂_i = γ_i, and x̂_i moves no other y.
        dnormal = dy * gamma                             # (…, n)

        # With g = dnormal, the three paths to x_j:
        #     directly     r·g_j
        #     through μ    Σ_i g_i·(−r)·(1/n)                      =  −r·mean(g)
        #     through r    Σ_i g_i·(x_i − μ)·(−r³·(x_j − μ)/n)     =  −r·x̂_j·mean(g·x̂):   x̂_i and x̂_j take an r each
        # (σ² has no term for μ: ∂σ²/∂μ = −2·mean(x − μ), and that is 0.)
        mean_g = dnormal.mean(-1, keepdims=True)                                # (…, 1)
        mean_g_normal = (dnormal * normal).mean(-1, keepdims=True)              # (…, 1)
        dx = r * (dnormal - mean_g - normal * mean_g_normal)                    # (…, n)
        return dx, dgamma, dbeta

    return y, backward


# To think about
#
# a) γ = 1 and dy is all ones. What is dx? How could you have known that without calculating anything?
# b) Double every x of a row. What happens to y, and what to dx? (Leave ε out of it.) A row with a large spread is
#    moved less by the same gradient: is that good?


# Answers
#
# a) Zero. With γ = 1 the sum of a row of y is Σ x̂ + Σ β, and Σ x̂ is 0 whatever x is. In the formula g is 1, mean(g)
#    is 1 and mean(g·x̂) is 0. (This is why the checker never asks with dy = 1.)
# b) y stays: μ and σ double too. dx is halved, because r is. It has to be: the same change in y now takes a step in x
#    twice as long, so the loss rises half as fast along it. A row that has grown large is steady, for good or ill: it
#    is not thrown about by one batch, and it takes many to turn it.

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
        # Hint 1: To warm up: the same β_i is added in every row, so every row contributes to dβ_i.
        # Hint 2: That is a sum over the axes `leading`.
        dbeta = ...                                      # (n,)

        # Hint 1: The same γ_i multiplies x̂_i in every row: what is ∂y_i/∂γ_i there?
        # Hint 2: Sum over `leading` again.
        dgamma = ...                                     # (n,)

        # Hint 1: One step back, from y to x̂: y_i = γ_i·x̂_i + β_i.
        # Hint 2: x̂_i moves y_i alone. How fast?
        dnormal = ...                                    # (…, n)

        # Hint 1: From x̂ to x, along three paths. Write g for dnormal, and think of one row. The direct path is
        #         x̂_j = (x_j − μ)·r with μ and r held fixed:   r·g_j
        # Hint 2: Through μ: x_j moves μ by ∂μ/∂x_j = 1/n, and μ moves every x̂_i by −r. Sum over i.
        # Hint 3: Through r: every x̂_i = (x_i − μ)·r moves with r, and r moves with x_j:
        #         ∂r/∂x_j = −r³·(x_j − μ)/n
        #     (from r = (σ² + ε)^(−1/2) and ∂σ²/∂x_j = 2·(x_j − μ)/n: why is there no term for μ in σ²?)
        #     Sum over i, then write it with x̂ wherever (x − μ)·r stands.
        # Hint 4: Every sum over i divided by n is a mean over the row: .mean(-1, keepdims=True). Factor out r.
        dx = ...                                         # (…, n)
        return dx, dgamma, dbeta

    return y, backward


# To think about
#
# a) γ = 1 and dy is all ones. What is dx? How could you have known that without calculating anything?
# b) Double every x of a row. What happens to y, and what to dx? (Leave ε out of it.) A row with a large spread is
#    moved less by the same gradient: is that good?

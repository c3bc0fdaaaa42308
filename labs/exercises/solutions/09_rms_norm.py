"""Exercise 9: RMS norm, or one number that a whole row shares

The norm of today's models leaves out what layer norm subtracts. It divides each row by the size of its entries, the
root of the mean of their squares, and multiplies by a scale γ that is learned:

    r = 1/√(mean(x²) + ε)                               over the last axis: one number for a row
    x̂ = x·r,   y = γ·x̂                                  x (…, n), γ (n,)  →  y (…, n)

The row's r is computed from all n entries of the row, and used by all n. On the way back it is one more variable: it
collects a gradient of its own, dr, from every place that used it, and passes it on to every entry that made it.

You will understand: how to go back step by step through a number in the middle, instead of adding up paths by hand, and
why this gradient never points along x.

    mini-tf gradcheck labs/exercises/09_rms_norm.py::rms_norm
"""

import numpy as np


def rms_norm(x, gamma, eps=1e-5):
    """y = γ·x̂,   x̂ = x·r,   r = 1/√(mean(x²) + ε)

    Example: x (2, 3, 5), gamma (5,)
    """
    n = x.shape[-1]
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)       # (…, 1)
    normal = x * r                                               # x̂ (…, n)
    y = gamma * normal
    leading = tuple(range(x.ndim - 1))                   # the axes of "…": gamma serves every row of them

    def backward(dy):                                    # keeps x, normal, r, gamma
        # ∂y_i/∂γ_i = x̂_i, in every row: a sum over all rows.
        dgamma = (dy * normal).sum(leading)              # (n,)

        # ∂y_i/∂x̂_i = γ_i, and x̂_i moves no other y.
        dnormal = dy * gamma                             # (…, n)

        # x̂_i = x_i·r: r moves every x̂_i of its row, by x_i.
        dr = (dnormal * x).sum(-1, keepdims=True)        # (…, 1)

        # x_j was used twice: in x̂_j = x_j·r, and in r, where ∂r/∂x_j = −½·(mean(x²) + ε)^(−3/2)·2·x_j/n = −r³·x_j/n.
        dx = r * dnormal - dr * r**3 * x / n             # (…, n)
        return dx, dgamma

    return y, backward


# To think about
#
# a) Double every x of a row. What happens to y? (Leave ε out of it.) What does that say about Σ_j x_j·dx_j, the slope
#    of the loss along x itself? Find it in your formula.
# b) Put dr into dx, and write it with x̂ and a mean. Which term of layer norm's dx (exercise 3) is not there, and why?
# c) Layer norm is x − mean(x), followed by an RMS norm. So how do you get layer norm's dx from a call of this backward?


# Answers
#
# a) Nothing: the mean of the squares is four times as large, r is half, and x̂ is the same. Along x the loss does not
#    change, so Σ_j x_j·dx_j = 0. In the formula: Σ_j x_j·r·g_j = r·dr with g = dnormal, and Σ_j dr·r³·x_j²/n =
#    dr·r³·mean(x²) = r·dr, because mean(x²) = 1/r². A step against the gradient turns a row, and hardly stretches it.
# b) dr = Σ_i g_i·x_i = n·mean(g·x̂)/r, so dx = r·(g − x̂·mean(g·x̂)). The −mean(g) is not there: it came back through μ,
#    and there is no μ.
# c) With dc, what this backward gives for c = x − mean(x):   dx = dc − mean(dc), since x_j is in its own c_j, and in
#    each of the n means with a factor −1/n. The mean is subtracted on the way up, and again on the way down.

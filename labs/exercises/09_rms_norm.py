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
        # Hint 1: The same γ_i multiplies x̂_i in every row: what is ∂y_i/∂γ_i there?
        # Hint 2: Sum over `leading`.
        dgamma = ...                                     # (n,)

        # Hint 1: One step back, from y to x̂: y_i = γ_i·x̂_i.
        # Hint 2: x̂_i moves y_i alone. How fast?
        dnormal = ...                                    # (…, n)

        # Hint 1: Now x̂_i = x_i·r. Take r as a variable, as if x were fixed: how fast does x̂_i change with it?
        # Hint 2: All n entries of the row use the same r, so its gradient is a sum over the last axis; keepdims=True
        #     keeps it (…, 1).
        dr = ...                                         # (…, 1)

        # Hint 1: x_j was used twice. First in x̂_j = x_j·r, with r held fixed.
        # Hint 2: Then in r = (mean(x²) + ε)^(−1/2): the derivative of the power, times that of mean(x²), which is
        #     2·x_j/n. Write it as a power of r, times x_j/n.
        # Hint 3: dx is the sum of both: dnormal times the slope of the first, and dr times that of the second.
        dx = ...                                         # (…, n)
        return dx, dgamma

    return y, backward


# To think about
#
# a) Double every x of a row. What happens to y? (Leave ε out of it.) What does that say about Σ_j x_j·dx_j, the slope
#    of the loss along x itself? Find it in your formula.
# b) Put dr into dx, and write it with x̂ and a mean. Which term of layer norm's dx (exercise 3) is not there, and why?
# c) Layer norm is x − mean(x), followed by an RMS norm. So how do you get layer norm's dx from a call of this backward?

"""Exercise 4: a residual block, and its two paths back

A block of a transformer does not replace its input, it adds something to it:

    a = x·W + b,   y = x + max(a, 0)               x (N, n), W (n, n), b (n,)  →  y (N, n)

So x reaches the loss along two paths: the skip connection, on which nothing happens to it, and the branch, through W
and the ReLU. What x gets back is the sum of what comes back along both.

You will understand: the three gradients of a linear map, which you will meet in every layer; what a ReLU lets through;
and why a network of a hundred such blocks can be trained at all.

    mini-tf gradcheck labs/exercises/04_residual_block.py::residual_block
"""

import numpy as np


def residual_block(x, W, b):
    """y = x + max(x·W + b, 0)

    Example: x (5, 4), W (4, 4), b (4,)
    """
    a = x @ W + b                                        # (N, n)
    on = a > 0                                           # where the ReLU lets through
    y = x + np.maximum(a, 0)

    def backward(dy):                                    # keeps x, W, on
        # ReLU: y = a where it was on, slope 1; 0 where it was off, slope 0.
        da = dy * on                                     # (N, n)

        # a_kj = Σ_i x_ki·W_ij + b_j, so ∂a_kj/∂W_ij = x_ki and dW_ij = Σ_k x_ki·da_kj = (xᵀ·da)_ij;   db_j = Σ_k da_kj.
        dW = x.T @ da                                    # (n, n)
        db = da.sum(0)                                   # (n,)

        # The branch: dx_ki = Σ_j da_kj·W_ij = (da·Wᵀ)_ki. The skip: y = x + …, slope 1, dy as it is. Add both.
        dx = dy + da @ W.T                               # (N, n)
        return dx, dW, db

    return y, backward


# To think about
#
# a) W = 0 and b = 0. What are y and dx? What reaches the bottom of 100 such blocks, and what would without the skip?
# b) For one j, a_kj is negative in all rows k. What are dW[:, j] and db[j]? How could this unit ever wake up again?


# Answers
#
# a) a = 0, nothing is on (the kink counts as off), so y = x and dx = dy. Through 100 of them dy arrives unchanged;
#    without the skip, dx = da·Wᵀ = 0 after a single one. (Nor does any W learn here: da is 0. With a small random W
#    instead, y is nearly x, dx nearly dy, and the blocks do learn.)
# b) Both zero: it was off for every row. Its own W and b cannot wake it; another x can: from other rows, or when the
#    blocks below it change.

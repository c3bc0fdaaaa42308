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
        # Hint 1: Back through the ReLU. Where it was on, it passed a unchanged: what is its slope there?
        # Hint 2: Where it was off, it gave 0, whatever a was. `on` is True or False, which multiply like 1 and 0.
        da = ...                                         # (N, n)

        # Hint 1: Back through the linear map, which is a_kj = Σ_i x_ki·W_ij + b_j for row k. W_ij multiplied x_ki in
        #     every row k, and affected only a_kj. So dW_ij is a sum over k of x_ki times what?
        # Hint 2: Which product of two matrices is that? Follow the indices: W is square, so shapes cannot tell.
        dW = ...                                         # (n, n)

        # Hint 1: b_j was added in every row, so every row contributes to db_j.
        # Hint 2: The shape is (n,): which axis goes?
        db = ...                                         # (n,)

        # Hint 1: Back to x, along both paths. The branch: W_ij multiplied x_ki for every j, so sum over j. That is a
        #     product of two matrices again; follow the indices.
        # Hint 2: And then the skip.
        dx = ...                                         # (N, n)
        return dx, dW, db

    return y, backward


# To think about
#
# a) W = 0 and b = 0. What are y and dx? What reaches the bottom of 100 such blocks, and what would without the skip?
# b) For one j, a_kj is negative in all rows k. What are dW[:, j] and db[j]? How could this unit ever wake up again?

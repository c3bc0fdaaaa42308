"""Exercise 6: attention, put together from what you have

Every query looks at all keys. A score says how well they match; softmax turns a query's scores into weights; and the
query gets the mean of the values with these weights:

    S = Q·Kᵀ/√m,   A = softmax(S) over the keys,   y = A·V

    query (…, Tq, m), key (…, Tk, m), value (…, Tk, d)  →  S and A (…, Tq, Tk),  y (…, Tq, d)

"…" may be batch and heads: the last two axes are matrices, and @ multiplies a pair of matrices for each index before.

You will understand: that the most famous gradient in the field is two products of matrices (exercise 4) and one
softmax (exercise 1) between them, walked backwards; and that there is little room for error once the shapes are written
down.

Softmax is given here, with its backward.

    mini-tf gradcheck labs/exercises/06_attention.py::attention
"""

import numpy as np


def softmax(z):
    """y_i = exp(z_i) / Σ_j exp(z_j) over the last axis: exercise 1, solved"""
    e = np.exp(z - z.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return y, lambda dy: y * (dy - (y * dy).sum(-1, keepdims=True))


def transpose(x):
    """The last two axes exchanged: (…, i, j) → (…, j, i)"""
    return x.swapaxes(-1, -2)


def attention(query, key, value):
    """y = softmax(Q·Kᵀ/√m)·V

    Example: query (2, 4, 3), key (2, 5, 3), value (2, 5, 6)
    """
    scale = 1 / query.shape[-1] ** 0.5
    scores = scale * (query @ transpose(key))            # (…, Tq, Tk)
    A, softmax_backward = softmax(scores)                # (…, Tq, Tk)
    y = A @ value                                        # (…, Tq, d)

    def backward(dy):                                    # keeps query, key, value, A
        # Walk the three lines of the forward from the last to the first.
        #
        # 1. y = A·V is a product, and both factors get something back. For the left one it is done here; check that its
        #    shape is that of A, and do it for the right one.
        dA = dy @ transpose(value)                       # (…, Tq, d) times (…, d, Tk) gives (…, Tq, Tk)
        dvalue = ...                                     # (…, Tk, d)

        # 2. A = softmax(S). No new derivation: the softmax above has handed you a function for this step.
        dscores = ...                                    # (…, Tq, Tk)

        # 3. S = scale·Q·Kᵀ. Once more a product with two factors: dscores plays the part that dy had in step 1, query
        #    the part of A, and transpose(key) the part of value. What comes back to transpose(key) is (…, m, Tk); key
        #    itself wants (…, Tk, m). And where does scale go?
        dquery = ...                                     # (…, Tq, m)
        dkey = ...                                       # (…, Tk, m)
        return dquery, dkey, dvalue

    return y, backward


# To think about
#
# a) All keys are the same vector. What is A? What is dquery, and could you have said so without the formula?
# b) Without 1/√m, entries of Q and K of size 1 make scores of size √m. What does softmax do with a row of scores like
#    (30, −12, 5, …), and what is left of dscores?

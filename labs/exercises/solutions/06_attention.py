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
        # Walk the three lines of the forward from the last to the first. The last, y = A·V, is a product, and both
        # factors get something back. For the left one it is done here; check that its shape is that of A:
        #     dA_qk = Σ_d dy_qd·V_kd = (dy·Vᵀ)_qk
        dA = dy @ transpose(value)                       # (…, Tq, d) times (…, d, Tk) gives (…, Tq, Tk)

        # The right one: dV_kd = Σ_q A_qk·dy_qd = (Aᵀ·dy)_kd
        dvalue = transpose(A) @ dy                       # (…, Tk, d)

        # A = softmax(S): row by row, its own backward.
        dscores = softmax_backward(dA)                   # (…, Tq, Tk)

        # S = scale·Q·Kᵀ:   dQ = scale·dS·(Kᵀ)ᵀ,   d(Kᵀ) = scale·Qᵀ·dS, and dK is its transpose, scale·dSᵀ·Q.
        # scale multiplies S, so it multiplies what comes back to both.
        dquery = scale * (dscores @ key)                 # (…, Tq, m)
        dkey = scale * (transpose(dscores) @ query)      # (…, Tk, m)
        return dquery, dkey, dvalue

    return y, backward


# To think about
#
# a) All keys are the same vector. What is A? What is dquery, and could you have said so without the formula?
# b) Without 1/√m, entries of Q and K of size 1 make scores of size √m. What does softmax do with a row of scores like
#    (30, −12, 5, …), and what is left of dscores?


# Answers
#
# a) Uniform: all scores of a query are equal. dquery = 0: moving a query moves all its scores by the same number, which
#    softmax does not see. In the formula: a row of dscores sums to 0 (exercise 1, b), and all rows of key are equal.
# b) It gives nearly all weight to the largest. A is nearly 0 or nearly 1, and A·(dA − Σ A·dA) is nearly 0 either way: a
#    query that has made up its mind by chance hardly learns any more. The factor keeps scores near size 1, whatever m.

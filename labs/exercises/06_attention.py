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

        # Hint 1: The right factor: V_kd was multiplied by A_qk for every query q, and affected only y_qd.
        # Hint 2: So dV_kd is a sum over q. The indices say which of the two is transposed, and the shapes agree: A is
        #     (…, Tq, Tk), and dy is (…, Tq, d).
        dvalue = ...                                     # (…, Tk, d)

        # Hint 1: One line further back, A = softmax(S). This needs no new derivation.
        # Hint 2: softmax has handed you a function for this step.
        dscores = ...                                    # (…, Tq, Tk)

        # Hint 1: Once more a product with two factors, S = scale·Q·Kᵀ: dscores plays the part that dy had above,
        #     query the part of A, and transpose(key) the part of value.
        # Hint 2: And where does scale go?
        dquery = ...                                     # (…, Tq, m)

        # Hint 1: What comes back to transpose(key), as to the right factor, is (…, m, Tk).
        # Hint 2: key itself wants (…, Tk, m), and scale.
        dkey = ...                                       # (…, Tk, m)
        return dquery, dkey, dvalue

    return y, backward


# To think about
#
# a) All keys are the same vector. What is A? What is dquery, and could you have said so without the formula?
# b) Without 1/√m, entries of Q and K of size 1 make scores of size √m. What does softmax do with a row of scores like
#    (30, −12, 5, …), and what is left of dscores?

"""The blanks of lab 03d: a step of attention over a recurrent encoder, multiplicative and additive, backward."""

from _blanks import Blank, gradients

import numpy as np


def arguments(*shapes):
    """h (6,), z (5, 4), and parameters of these shapes"""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in ((6,), (5, 4), *shapes)]


BLANKS = [
    Blank("multiplicative.backward", [
        "context = A·z: the gradient of A_j is the product of dcontext and z_j. softmax_backward makes ds of it.",
        "s_j = z_j·q: dq is the sum of all ds_j·z_j, one product of a vector and a matrix.",
        "z_j was used twice: as a value, with the weight A_j, and as a key, with the gradient ds_j. Two np.outer.",
        "q = h·W is a linear layer of one row: return dh (k,), dz (S, d) and dW (k, d).",
    ], gradients(lambda f: (f, *arguments((6, 4))), "multiplicative")),
    Blank("additive.backward", [
        "Up to ds it is the multiplicative one's.",
        "s = H·v: dH is the outer product of ds and v, and dv = ds·H. The slope of tanh is 1 − H².",
        "h·W was added to each row of z·U, so its gradient is the sum over the rows.",
        "z was used as a value and in z·U. Return dh (k,), dz (S, d), dW (k, d), dU (d, d) and dv (d,).",
    ], gradients(lambda f: (f, *arguments((6, 4), (4, 4), (4,))), "additive")),
]  # fmt: skip

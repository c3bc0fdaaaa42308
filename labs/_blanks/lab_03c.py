"""The blanks of lab 03c: a step of an LSTM and of a GRU, backward, and backpropagation through time for any step."""

from functools import partial

from _blanks import Blank, gradients

import numpy as np


def arguments(parts, columns, T=None):
    """x (2, 4), or (2, T, 4), state (parts, 2, 3), Wx, Wh, b"""
    rng = np.random.default_rng(0)
    x = (2, 4) if T is None else (2, T, 4)
    return [rng.standard_normal(shape) for shape in (x, (parts, 2, 3), (4, columns), (3, columns), (columns,))]


def plain_step(x, state, Wx, Wh, b):
    """A step for through_time, without f: state ← x·Wx + state·Wh + b"""
    (h,) = state

    def backward(dstate):
        (da,) = dstate
        return da @ Wx.T, (da @ Wh.T)[None], x.T @ da, h.T @ da, da.sum(0)

    return (x @ Wx + h @ Wh + b)[None], backward


BLANKS = [
    Blank("lstm_step.backward", [
        "dstate has the gradients of the next h and of the next c. h was made from c, so first c gets what h passes "
        "on: dh·o times tanh's slope, 1 − tanh_c². All of this is entry by entry.",
        "c_t = f·c + i·g is a sum of two products: df is dc·c, with the old c. Which are di, dg, and the gradient of "
        "the old c itself? And do comes from h = o·tanh_c.",
        "Through the slopes: σ has the slope σ·(1 − σ), tanh 1 − g². Put the four side by side in the order of the "
        "columns of Wx: i, f, g, o.",
        "a = x·Wx + h·Wh + b is a linear layer: return dx, dstate (2, B, k), dWx, dWh and db.",
    ], gradients(lambda f: (f, *arguments(2, 12)), "lstm_step")),
    Blank("through_time.backward", [
        "From the last step to the first. A step's state gets what comes from above, dstates[:, :, t], plus what the "
        "step after it sent back; the last step has none after it.",
        "backwards[t] returns the gradient of the word, of the state before, and of each of the weights.",
        "All steps share the weights, so their gradients add up. The state's gradient that is left at the end is that "
        "of the state given at the start.",
    ], gradients(lambda f: (partial(f, plain_step), *arguments(1, 3, T=3)), "through_time")),
    Blank("gru_step.backward", [
        "h_t = z·h + (1 − z)·g: the gradients of z, of g, and the first part of the old h's, are read off this line.",
        "g = tanh(a_g + r·u_g): its slope is 1 − g². a_g and u_g differ by the factor r, and r itself gets da_g·u_g.",
        "r and z depend on sums a + u, so for them da and du are the same. Both times: the columns r, z, g, side by "
        "side.",
        "da goes to x, Wx and b, du to h and Wh. The old h was used twice, in z·h and in h·Wh. Return dx, dstate "
        "(1, B, k), dWx, dWh and db.",
    ], gradients(lambda f: (f, *arguments(1, 9)), "gru_step")),
]  # fmt: skip

"""The blanks of lab 12: the backwards of RMSNorm, rotary positions, SwiGLU, and of heads that share keys and values."""

from _blanks import Blank, gradients

import numpy as np

rng = np.random.default_rng(0)


def inputs(*shapes):
    return [rng.standard_normal(shape) for shape in shapes]


BLANKS = [
    Blank("rms_norm.backward", [
        "First from y to x̂: g = dy·γ. γ served every word, so dγ is the sum of dy·x̂ over axes 0 and 1.",
        "Then from x̂ to x by the map above, with g in the place of δx: the mean is over the last axis, "
        "keepdims=True.",
        "Return dx and dgamma.",
    ], gradients(lambda f: (f, *inputs((2, 3, 6), (6,))))),
    Blank("rotary.backward", [
        "Forward multiplied each pair by R_φ, so the gradient is multiplied by its transpose.",
        "The transpose of a rotation is the rotation back. You have a function for that.",
    ], gradients(lambda f: (f, *inputs((2, 5, 4))))),
    Blank("swiglu.backward", [
        "y is a product, entry by entry: x gets dy times the other factor, and so does silu(gate).",
        "From silu(gate) to gate: one factor more, silu′, of which sigma is known from the forward.",
        "Return dgate and dx, in the order of the arguments.",
    ], gradients(lambda f: (f, *inputs((3, 4), (3, 4))))),
    Blank("grouped_attention.backward", [
        "attention_backward(dY) returns the gradients of query, of the H repeated keys and values, and two that are "
        "None.",
        "Key g was used by H/G neighbouring heads: its gradient is the sum of theirs.",
        "A reshape from (H, T, m) to (G, H // G, T, m) puts the heads of a group into an axis of its own.",
    ], gradients(lambda f: (f, *inputs((4, 5, 3), (2, 5, 3), (2, 5, 3))))),
]  # fmt: skip

"""The blanks of lab 03: backpropagation through time, the contribution of each step, and a gradient over d steps."""

from _blanks import Blank, both, gradients, same
from mini_tf import ops

import numpy as np


def network(B, T, n, k, seed):
    """x, h_0, Wx, Wh, b"""
    rng = np.random.default_rng(seed)
    shapes = (B, T, n), (B, k), (n, k), (k, k), (k,)
    return [0.7 * rng.standard_normal(shape) for shape in shapes]


def step_by_step(x, h_0, Wx, Wh, b, dh):
    """The contributions by a network of one step after the other, each with a Wh of its own"""
    state, backwards = h_0, []
    for t in range(x.shape[1]):
        h, backward = ops.rnn(x[:, t : t + 1], state, Wx, Wh, b)
        state, backwards = h[:, 0], [*backwards, backward]
    later, parts = 0, []
    for t in reversed(range(x.shape[1])):
        _, later, _, part, _ = backwards[t]((dh[:, t] + later)[:, None])
        parts = [part, *parts]
    return np.sqrt(np.sum(np.square(parts), axis=(1, 2))), np.sum(parts, axis=0)


def by_jacobians(slopes, Wh, v):
    """The gradients by the product of the Jacobians, made for each text and each d from its first factor"""
    texts, T, k = slopes.shape
    reached = np.zeros((T + 1, texts, k))
    for text in range(texts):
        for d in range(T + 1):
            product = np.eye(k)
            for t in range(T - d, T):
                product = product @ Wh @ np.diag(slopes[text, t])
            reached[d, text] = product @ v[text]
    return reached


def case(B, T, n, k, seed):
    """Arguments of contributions"""
    return *network(B, T, n, k, seed), np.random.default_rng(seed + 1).standard_normal((B, T, k))


def slopes_case(B, T, k, seed):
    """Arguments of gradient_over_steps"""
    rng = np.random.default_rng(seed)
    return rng.random((B, T, k)), rng.standard_normal((k, k)), rng.standard_normal((B, k))


BLANKS = [
    Blank("rnn_by_hand.backward", [
        "Go from step 3 to step 1. The gradient of h_t is dh[:, t − 1], from its own prediction, plus what step t + 1 "
        "sends back; there is no step 4.",
        "Through f: da_t is the gradient of h_t times slope(h_t), entry by entry.",
        "h_{t−1} went into step t through Wh, so it gets back da_t times Wh, transposed.",
        "Wx, Wh and b are the same at each step: add up x_tᵀ·da_t, h_{t−1}ᵀ·da_t and da_t. b was added to each of "
        "the B texts, so db sums over them, too. dx has a step axis: np.stack(…, axis=1).",
    ], both(
        gradients(lambda function: (function, *network(2, 3, 4, 3, 0), "tanh"), "rnn_by_hand, tanh"),
        gradients(lambda function: (function, *network(2, 3, 4, 3, 1), "relu"), "rnn_by_hand, relu"),
    )),
    Blank("contributions", [
        "It is rnn_by_hand.backward as a loop over t, from the last step to the first, for the gradient of Wh alone.",
        "h has h_1 … h_T, but step t multiplies h_{t−1}: put h_0 in front and leave out the last state.",
        "tanh has the slope 1 − h². The gradient of h_t is dh[:, t] plus what step t + 1 sent back, at first 0.",
        "Keep the norm of each part and the sum of all parts. The norms belong in the order of the steps, and the loop "
        "finds the last one first.",
    ], same(step_by_step, case(1, 4, 3, 2, 5), case(3, 2, 2, 4, 6))),
    Blank("gradient_over_steps", [
        "v_0 is v. Each v_{d+1} comes from v_d: a list that grows at its end.",
        "The gradient enters at the last step, so the slopes of the last step are used first.",
        "A diagonal matrix scales the entries of a row: v·D is v times the slopes, entry by entry. Then comes Wh, "
        "transposed.",
    ], same(by_jacobians, slopes_case(2, 4, 3, 7), slopes_case(1, 1, 2, 8))),
]  # fmt: skip

"""The blanks of lab 03b: the gradient of the loss at each step, windows, false histories, reading one word."""

from _blanks import Blank, both, gradients, same
from mini_tf import ops

import numpy as np

WORDS = np.arange(12).reshape(2, 6)


def readout_case(function):
    """The loss of two texts of three steps, in the form that the gradient checker needs: following gets no gradient"""
    rng = np.random.default_rng(0)
    following = np.array([[1, 4, 0], [3, 3, 2]])
    h, U, b_2 = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5)), rng.standard_normal(5)
    return (lambda h, U, b_2: function(h, U, b_2, following)), h, U, b_2


def one_by_one(rows, T, padding):
    """The windows, word by word"""
    windows = []
    for row in rows.tolist():
        for end in range(len(row)):
            seen = row[max(end - T, 0) : end + 1]
            windows.append([padding] * (T + 1 - len(seen)) + seen)
    return np.array(windows)


def kept_by_distance(windows, d, other):
    """The words at distances 1 … d before the last one, and that one, from windows"""
    history = windows.shape[1] - 1
    distance = np.arange(history, -1, -1)                # of each column from the last one
    return np.where(distance <= d, windows, np.concatenate([other, windows[:, -1:]], axis=1))


def leaves_windows_alone(function):
    """A check: the windows are unchanged afterwards"""
    windows = WORDS.copy()
    function(windows, 2, -WORDS[:, :5])
    if not np.array_equal(windows, WORDS):
        print("FAIL  forgotten: it changed its windows, expected a new array")
        return False
    return True


def by_rnn(x, state, Wx, Wh, b, U, b_2):
    h, _ = ops.rnn(x[None, None], state[None], Wx, Wh, b)
    return h[0, 0], np.einsum("k,kc->c", h[0, 0], U) + b_2


def weights(n, k, c, seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in ((n,), (k,), (n, k), (k, k), (k,), (k, c), (c,))]


BLANKS = [
    Blank("step_losses.backward", [
        "The gradient of −ln π(word) with respect to the scores is π minus the one-hot vector of the word.",
        "Each step has its own loss, so its row of π − y is scaled by its entry of dJ: dJ[..., None].",
        "The scores are h·U + b_2, a linear layer: dh is the gradient of the scores times U, transposed.",
        "U and b_2 are used in all texts and all steps, so dU and db_2 sum over both axes; np.einsum does it with "
        "btk,btc->kc.",
    ], gradients(readout_case, "step_losses")),
    Blank("windows_of", [
        "The first word of a row has nothing before it: put T ids of padding in front of each row.",
        "Then there is one window of T + 1 words for each word of the row, shifted by one place each.",
        "A loop over the places will do, or np.lib.stride_tricks.sliding_window_view, which gives all at once.",
    ], same(one_by_one, (WORDS, 2, 99), (WORDS, 9, 0), (WORDS[:1], 1, 7))),
    Blank("forgotten", [
        "Work on a copy, or the windows are wrong for the next d.",
        "The last column is the word to predict. It stays, and so do the d words before it.",
        "So all but the last d + 1 columns come from other, which has the same columns but for the last.",
    ], both(leaves_windows_alone, same(kept_by_distance, *((WORDS, d, -WORDS[:, :5]) for d in (2, 0, 5))))),
    Blank("read_one", [
        "Two lines: the formulas at the beginning of section 3.",
        "The old state and the new word go into one sum, with the bias, and through tanh.",
        "The scores are computed from the new state, not from the old one.",
    ], same(by_rnn, weights(3, 4, 5, 0), weights(2, 2, 3, 1))),
]  # fmt: skip

"""The blanks of lab 04b, attention from scratch: each step's backward."""

from _blanks import Blank, gradients

import numpy as np

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 3, 4))                       # (B, T, n)

BLANKS = [
    Blank("mean_of_words.backward", [
        "Every word contributes to y in the same way, so every word gets the same gradient.",
        "y = (1/T)·Σ_t x_t. By how much does an entry of y change if that entry of one x_t grows by 1?",
        "dy is (B, n), and what you return has X's shape, (B, T, n): the same row T times.",
    ], gradients(lambda f: (f, X))),
    Blank("weighted_mean.backward", [
        "Two things go into y: the words and their weights. Return dX (B, T, n) and ds (T,).",
        "For dX, the mean's backward with w_t instead of 1/T.",
        "For dw_t: by how much does the loss change if w_t grows? y changes by x_t, in every text of the batch.",
        "From dw to ds is softmax's backward: each dw_t is compared with the weighted mean of all dw.",
    ], gradients(lambda f: (f, X, rng.standard_normal(3)))),
    Blank("look_up.backward", [
        "Go through the forward from its last line to its first: y = Σ A_t·v_t, then the softmax, then the scores.",
        "dvalues is as in the weighted mean, with a weight for each text and word; dA_t is v_t·dy.",
        "softmax_backward turns dA into the gradient of what softmax was given, which is β·S, not S.",
        "S_t = q·k_t is a product: q's gradient is made of the keys, and a key's of q. Neither forgets β. And β's own "
        "gradient is a sum over all scores of all texts, in an array of shape (1,).",
    ], gradients(lambda f: (f, rng.standard_normal((2, 4)), rng.standard_normal((2, 3, 4)), X, np.array([1.5])))),
    Blank("one_head.backward", [
        "Y = A·V is a product of matrices: which two gradients does it send back?",
        "softmax_backward gives the gradient of what softmax was given. That was scale·Q·Kᵀ: where does scale go?",
        "From dS to dQ and dK as for any product; the transposes have to make the shapes fit.",
        "X was multiplied by Wq, by Wk and by Wv. Each use sends something back to X, and they add up; the matrices' "
        "gradients are sums over all texts and words.",
    ], gradients(lambda f: (f, X, *rng.standard_normal((3, 4, 3))))),
    Blank("heads.backward", [
        "together (B, T, H·m) was multiplied by W: first its two gradients.",
        "Head h made its own columns of `together`, so it gets its own columns of that gradient: backwards[h] is the "
        "function that knows the rest.",
        "All heads have read the same X: their dX add up. Their matrices are columns of Wq, Wk and Wv: side by side.",
    ], gradients(lambda f: (lambda X, Wq, Wk, Wv, W: f(X, Wq, Wk, Wv, W, 2), X, *rng.standard_normal((3, 4, 6)),
                            rng.standard_normal((6, 4))))),
]  # fmt: skip

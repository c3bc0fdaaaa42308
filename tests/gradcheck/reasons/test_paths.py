"""One of several paths is missing, or there too often: the words say which."""

import inspect
import re
from functools import cache

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest

rng = np.random.default_rng(3)


def standardized(x, gamma):
    """What the standard deviation gives back is forgotten."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    std = np.sqrt(variance + 1e-5)
    x_hat = centred / std

    def backward(dy):
        dcentred = dy * gamma / std
        return dcentred - dcentred.mean(-1, keepdims=True), (dy * x_hat).sum(0)

    return x_hat * gamma, backward


def two_constants(x, gamma):
    """Neither the mean nor the standard deviation gives anything back."""
    mean = x.mean(-1, keepdims=True)
    std = np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    x_hat = (x - mean) / std

    def backward(dy):
        return dy * gamma / std, (dy * x_hat).sum(0)

    return x_hat * gamma, backward


def focal(z, target, sharpness=2.0):
    """Weights that depend on z are taken for constants."""
    p = 1 / (1 + np.exp(-z))
    p_true = np.where(target == 1, p, 1 - p)
    weight = (1 - p_true) ** sharpness
    loss = -(weight * np.log(p_true)).mean()

    def backward(dloss):
        dp_true = -weight / p_true / len(z)
        return dloss * np.where(target == 1, dp_true, -dp_true) * p * (1 - p)

    return loss, backward


def gated(x, W, V):
    """The gate's gradient is subtracted."""
    a = x @ W
    gate = 1 / (1 + np.exp(-(x @ V)))

    def backward(dy):
        da, dz = dy * gate, dy * a * gate * (1 - gate)
        return dy + da @ W.T - dz @ V.T, x.T @ da, x.T @ dz

    return x + a * gate, backward


def scaled(x, W):
    """Both terms should have the factor 1/4."""
    hidden = x @ W
    energy = 0.25 * (hidden * hidden).sum(-1)

    def backward(dy):
        return dy[:, None] + (2 * dy[:, None] * hidden) @ W.T, x.T @ (dy[:, None] * hidden) / 2

    return energy + x.sum(-1), backward


def recurrent(xs, h, U, W):
    """Each step gets the gradient of its own output only, not what comes from the next step."""
    states = [h]
    for x in xs:
        h = np.tanh(x @ U + states[-1] @ W)
        states.append(h)
    y = np.stack(states[1:])

    def backward(dy):
        dxs, dU, dW = np.zeros_like(xs), np.zeros_like(U), np.zeros_like(W)
        for t in reversed(range(len(xs))):
            dz = dy[t] * (1 - states[t + 1] ** 2)
            dxs[t] = dz @ U.T
            dU += xs[t].T @ dz
            dW += states[t].T @ dz
        return dxs, dz @ W.T, dU, dW

    return y, backward


def squared(x):
    """One of two equal factors is taken for a constant: nobody can say which."""
    z = x.mean(-1)
    left, right = np.tanh(z), np.tanh(z)

    def backward(dy):
        dz = (dy * right * (1 - left**2))[:, None] / x.shape[-1]
        return np.broadcast_to(dz, x.shape) + dy[:, None]

    return left * right + x.sum(-1), backward


def filtered(x, decay):
    """An array is filled step by step, and what comes from the next step is forgotten."""
    h = np.zeros(len(x))
    h[0] = x[0]
    for t in range(1, len(x)):
        h[t] = decay * h[t - 1] + x[t]

    def backward(dy):
        return 2 * dy * h, 2 * (dy[1:] * h[1:] * h[:-1]).sum()

    return h * h, backward


GIVEN = {
    filtered: (rng.normal(size=5), np.array(0.7)),
    standardized: (rng.normal(size=(4, 5)), rng.normal(size=5)),
    two_constants: (rng.normal(size=(4, 5)), rng.normal(size=5)),
    focal: (rng.normal(size=8), rng.integers(0, 2, 8)),
    gated: (rng.normal(size=(4, 5)), rng.normal(size=(5, 5)), rng.normal(size=(5, 5))),
    scaled: (rng.normal(size=(4, 5)), rng.normal(size=(5, 3))),
    recurrent: (rng.normal(size=(4, 2, 3)), rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), rng.normal(size=(5, 5))),
    squared: (rng.normal(size=(4, 3)),),
}


@cache
def report(f):
    return gradcheck(f, *GIVEN[f])


@pytest.mark.parametrize(
    ("f", "name", "words", "set_there"),
    [
        (standardized, "x", "the gradient through variance (line {}) and std (line {}): that is missing", "variance std"),
        (two_constants, "x", "the gradient through mean (line {}) and through std (line {}): both are missing", "mean std"),
        (focal, "z", "the gradient through weight (line {}): that is missing", "weight"),
        (gated, "x", "the gradient through gate (line {}): that has the wrong sign", "gate"),
        (scaled, "x", "the gradient through hidden (line {}) and energy (line {}): that counts 4 times", "hidden energy"),
        (recurrent, "xs", "the gradient of states[-1] from line {} (h = np.tanh(x @ U + states[-1] @ W)): that is missing", "h"),
        (squared, "x", "the gradient through left (line {}) or, the same, right (line {}): that is missing", "left right"),
        (filtered, "decay", "the gradient of h[t - 1] from line {} (h[t] = decay * h[t - 1] + x[t]): that is missing", "t"),
    ],
)  # fmt: skip
def test_the_path_is_named(f, name, words, set_there):
    lines = [line_of(f, variable) for variable in set_there.split()]
    assert f"It is right but for {words.format(*lines)}" in report(f).tensor(name).diagnosis


def line_of(f, variable):
    """The number of the line that assigns to a variable of f"""
    lines, first = inspect.getsourcelines(f)
    return next(n for n, line in enumerate(lines, first) if re.search(rf"\b{variable}\b.* = ", line))


def test_of_two_places_in_a_line_it_says_which():
    def f(x, k):
        ext = x[1:] - x[:-1]
        pull = k * (ext + 0.7 * ext**3)

        def backward(dy):
            dext, dx = dy * k * (1 + 0.7 * ext**2), np.zeros_like(x)
            dx[1:] += dext
            dx[:-1] -= dext
            return dx, dy * (ext + 0.7 * ext**3)

        return pull, backward

    words = gradcheck(f, rng.normal(size=5), rng.normal(size=4)).tensor("x").diagnosis
    assert "the gradient of the second ext in line" in words
    assert "(pull = k * (ext + 0.7 * ext**3)): that counts 0.3333 times" in words


def test_words_that_are_said_again_are_named():
    found = report(recurrent)
    assert "Only the first of the 4" in found.tensor("h").diagnosis
    assert found.explain().count("→ The same as for dxs.") == 2         # not as for dh, which stands between


def test_one_wrong_entry_of_two_is_a_multiple_of_any_path():
    def f(raw, x):
        rate, keep = 1 / (1 + np.exp(-raw))
        y = np.tanh(rate * x[1:]) + keep * (x[1:] - x[:-1]) + (1 - keep) * 0.7 * x[:-1]

        def backward(dy):
            drate = (dy * (1 - np.tanh(rate * x[1:]) ** 2) * x[1:]).sum()
            dkeep = (dy * (x[1:] - x[:-1] - x[:-1])).sum()               # 0.7 is forgotten
            dx = np.zeros_like(x)
            dx[1:] = dy * ((1 - np.tanh(rate * x[1:]) ** 2) * rate + keep)
            dx[:-1] += dy * (0.7 * (1 - keep) - keep)
            return np.array([drate * rate * (1 - rate), dkeep * keep * (1 - keep)]), dx

        return y, backward

    report = gradcheck(f, rng.normal(size=2), rng.normal(size=6))
    assert report.tensor("raw").verdict == "FAIL"
    assert report.tensor("x").verdict == "PASS"
    assert "counts" not in report.explain()

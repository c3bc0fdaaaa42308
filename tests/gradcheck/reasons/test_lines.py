"""The listed lines reach into helpers, and to what the forward keeps."""

from mini_tf.gradcheck import gradcheck

import numpy as np

rng = np.random.default_rng(9)
x, W, V = rng.normal(size=(6, 4)), rng.normal(size=4), rng.normal(size=(4, 3))


def pairwise(x, W, V):
    """A factorization machine. In the pairs' gradient of V, the squares are forgotten."""

    def pairs():
        s = x @ V
        q = x**2 @ V**2

        def back(d):
            ds = d[:, None] * s
            dq = -0.5 * d[:, None] * np.ones_like(q)
            gx = ds @ V.T + 2 * x * (dq @ (V**2).T)
            gV = x.T @ ds
            return gx, gV

        return 0.5 * (s**2 - q).sum(axis=1), back

    of_pairs, pairs_back = pairs()

    def backward(dy):
        gx, gV = pairs_back(dy)
        return gx + np.outer(dy, W), x.T @ dy, gV

    return x @ W + of_pairs, backward


def test_of_a_helper_inside_the_forward_those_lines_are_listed_that_the_wrong_gradient_comes_from():
    report = gradcheck(pairwise, x, W, V)
    codes = [line.partition("  ")[2] for line in report.suspects]
    assert "gV = x.T @ ds" in codes
    assert not [code for code in codes if code.startswith(("gx = ", "dq = "))]           # dx is right


def test_the_forward_of_a_helper_has_paths_too():
    assert "It is right but for the gradient through q (line " in gradcheck(pairwise, x, W, V).tensor("V").diagnosis


def pairwise_of_one_power(x, W, V):
    """The same, with another mistake: V where V² belongs."""

    def pairs():
        s = x @ V
        q = x**2 @ V**2

        def back(d):
            ds = d[:, None] * s
            dq = -0.5 * d[:, None] * np.ones_like(q)
            return ds @ V.T + 2 * x * (dq @ V.T), x.T @ ds + 2 * V * (x.T**2 @ dq)

        return 0.5 * (s**2 - q).sum(axis=1), back

    of_pairs, pairs_back = pairs()

    def backward(dy):
        gx, gV = pairs_back(dy)
        return gx + np.outer(dy, W), x.T @ dy, gV

    return x @ W + of_pairs, backward


def test_a_square_that_is_transposed_keeps_its_parentheses():
    repair = gradcheck(pairwise_of_one_power, x, W, V).repair
    assert repair[1] == "V**2 belongs where V is"
    assert "(V**2).T" in repair[3]


def decayed_forward(x, decay):
    states, h = [], np.zeros(x.shape[1])
    for t in range(len(x)):
        h = np.tanh(decay * h + x[t])
        states.append((h, t))                            # h is the new state: the backward needs the one before, too
    return np.array([h for h, _ in states]), (states, decay)


def decayed_backward(dy, cache):
    states, decay = cache
    dx, ddecay, dh = np.zeros_like(dy), np.zeros_like(decay), np.zeros(dy.shape[1])
    for h, t in reversed(states):
        dz = (dy[t] + dh) * (1 - h**2)
        dx[t] = dz
        ddecay += dz * h
        dh = dz * decay
    return dx, ddecay


def test_the_line_that_keeps_another_array_is_listed():
    report = gradcheck((decayed_forward, decayed_backward), rng.normal(size=(5, 3)), rng.normal(size=3))
    assert report.suspects_are_sharp
    assert "states.append((h, t))" in [line.partition("  ")[2] for line in report.suspects]
    assert not [line for line in report.suspects if "(states, decay)" in line]           # the same names on both sides


smooth = lambda w: np.sqrt(w**2 + 0.3)                   # noqa: E731
slope_of_smooth = lambda w: np.sign(w)                   # noqa: E731   as if it were |w|


def penalty(w):
    value = 0.2 * smooth(w).sum() + 0.15 * (w**2).sum()
    grad = 0.2 * slope_of_smooth(w) + 0.3 * w
    return value, grad


def test_lambdas_of_the_file_are_among_the_lines():
    def loss(w, x):
        value, dw = penalty(w)
        residual = x @ w - 1
        return 0.5 * residual @ residual + value, (x.T @ residual + dw, np.outer(residual, w))

    report = gradcheck(loss, W, x)
    assert not report
    assert any("np.sign(w)" in line for line in report.suspects), report

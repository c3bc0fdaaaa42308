"""Which gradients a line feeds is measured: through helpers, closures, functions inside a backward, and loops."""

from mini_tf.gradcheck import gradcheck

import numpy as np

R = np.random.default_rng(5).standard_normal


def codes(report):
    return [line.partition("  ")[2] for line in report.suspects]


def two_results(x, W, V):
    """Of b's path, the factor of the exponential's inside is lost; a's is right, and comes from the same helper."""
    a, b = x @ W, x @ V
    e = np.exp(-0.5 * b**2 / (1 + a**2))

    def inner(da, db):
        dW = x.T @ da
        dV = x.T @ db
        return da @ W.T + db @ V.T, dW, dV

    def backward(dy):
        da = dy * e * b**2 * a / (1 + a**2) ** 2
        db = np.sin(dy) * e
        dx, dW, dV = inner(da, db)
        return dx, dW, dV

    return e, backward


def test_a_line_before_a_helper_of_several_results():
    """By the text, the right dW seems to depend on db, too: both are given to the helper."""
    found = codes(gradcheck(two_results, R((5, 4)), R((4, 3)), R((4, 3))))
    assert "db = np.sin(dy) * e" in found
    assert "da = dy * e * b**2 * a / (1 + a**2) ** 2" not in found
    assert "dW = x.T @ da" not in found


def states_of(y, A, c):
    states = [np.ones(len(c))]
    for t in range(len(y)):
        states.append(np.tanh(A @ states[-1] + A.T @ (c * y[t])))
    return states


def filtered(y, A, c):
    """A filter over time, whose backward has functions inside it; of A's gradient, the half is lost."""
    states = states_of(y, A, c)

    def backward(dh):
        dy, dA, dc = np.zeros_like(y), np.zeros_like(A), np.zeros_like(c)

        def step_backward(t, dh):
            nonlocal dA, dc
            dz = dh * (1 - states[t + 1] ** 2)
            dA += np.outer(dz, states[t]) + np.outer(c * y[t], dz) * np.cos(dz)
            dinput = A @ dz
            dy[t] = dinput @ c
            dc += dinput * y[t]
            return A.T @ dz

        for t in reversed(range(len(y))):
            dh = step_backward(t, dh)
        return dy, dA, dc

    return states[-1], backward


def test_lines_of_a_function_inside_the_backward_that_writes_into_nonlocals():
    report = gradcheck(filtered, R(4), 0.5 * R((3, 3)), R(3))
    assert {t.name: t.verdict for t in report.tensors} == {"y": "PASS", "A": "FAIL", "c": "PASS"}
    found = codes(report)
    assert "dA += np.outer(dz, states[t]) + np.outer(c * y[t], dz) * np.cos(dz)" in found
    assert not [code for code in found if code.startswith(("dinput", "dc", "dy[t]"))]


def signed(y, A, c):
    states = states_of(y, A, c)

    def backward(dh):
        dy, dA, dc = np.zeros_like(y), np.zeros_like(A), np.zeros_like(c)

        def step_backward(t, dh):
            nonlocal dA, dc
            dz = dh * (1 - states[t + 1] ** 2)
            dA += np.outer(dz, states[t]) - np.outer(c * y[t], dz)       # the sign is wrong
            dinput = A @ dz
            dy[t] = dinput @ c
            dc += dinput * y[t]
            return A.T @ dz

        for t in reversed(range(len(y))):
            dh = step_backward(t, dh)
        return dy, dA, dc

    return states[-1], backward


def test_a_change_of_a_function_inside_the_backward():
    report = gradcheck(signed, R(4), 0.5 * R((3, 3)), R(3))
    assert report.repair[1] == "a sign is wrong"
    assert report.repair[3] == "dA += np.outer(dz, states[t]) + np.outer(c * y[t], dz)"


def test_a_result_that_is_dropped_is_listed():
    """The gradient that the helper gives back for the state is not handed on."""

    def carried(x, W, b):
        hs = [np.zeros(3)]
        for one in x:
            hs.append(np.tanh(W @ hs[-1] * np.cos(hs[-1]).sum() + one + b))

        def backward(dh):
            dx, dW, db, more = np.zeros_like(x), np.zeros_like(W), np.zeros_like(b), np.zeros_like(W)
            for t in reversed(range(len(x))):
                dh, _, dx[t], db = step_back(t, dh, db)
            return dx, dW + more, db

        def step_back(t, dh, db):
            h = hs[t]
            dz = dh * (1 - hs[t + 1] ** 2)
            c = np.cos(h).sum()
            back = W.T @ dz * c - (dz @ (W @ h)) * np.sin(h)
            return back, np.outer(dz, h) * c, dz, db + dz

        return hs[-1], backward

    report = gradcheck(carried, R((4, 3)), 0.5 * R((3, 3)), R(3))
    assert [t.name for t in report.tensors if t.verdict == "FAIL"] == ["W"]
    assert report.repair or "dh, _, dx[t], db = step_back(t, dh, db)" in codes(report)


def turned(v, x):
    """A rotation's two numbers: of the angle's gradient, the factor 2 of one term is forgotten."""
    angle = np.sqrt(v @ v)
    B = (1 - np.cos(angle)) / angle**2

    def backward(dy):
        dB, dangle = (dy * x).sum(), (dy * x**2).sum()
        dangle += dB * (np.sin(angle) / angle**2 - (1 - np.cos(angle)) / angle**3)       # 2 * (1 − cos)
        return dangle * v / angle, dy * B + 2 * dy * angle * x

    return B * x + angle * x**2, backward


def test_no_number_is_called_a_multiple_of_a_path_that_it_is_only_here():
    """Through one number, angle, any wrong gradient of v is a multiple of the path."""
    drawn = np.random.default_rng(5).standard_normal
    report = gradcheck(turned, drawn(3), drawn(4))
    assert report.verdict == "FAIL"
    assert "the gradient through B" not in report.explain()


def spline(x, at):
    basis = np.sin(at)
    y = np.tanh(x * basis)

    def backward(dy):
        dbasis = np.cos(at)                              # the derivative of basis, and no gradient
        dz = dy * (1 - np.tanh(x * basis) ** 2)
        dother = np.cos(dz[::-1]) + 0.3 * dz.max()       # wrong in every way
        dat = (dother - dother.mean()) * dbasis
        return dz * basis, dat

    return y, backward


def test_a_local_derivative_is_not_said_to_be_a_wrong_gradient():
    text = gradcheck(spline, R(4), R(4)).explain()
    assert "dat = (dother - dother.mean()) * dbasis" in text
    assert "dbasis is not the gradient" not in text


def ragged(x):
    return x * 2, [x, x[:1]]


def ragged_backward(dy, kept):
    return 2 * dy


def through_ragged(x):
    y, kept = ragged(x)
    return np.sin(y), lambda dy: ragged_backward(dy * np.sin(y), kept)            # the cosine belongs there


def test_reasons_are_looked_for_whatever_a_step_gives():
    assert "could not be looked for" not in gradcheck(through_ragged, R(4)).explain()

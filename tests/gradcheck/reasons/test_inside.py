"""Gradients inside a backward, measured in the forward's variables."""

import inspect

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judged
from mini_tf.gradcheck.reasons.inside import about_inside, first_wrong, measured_inside

import numpy as np
import pytest

rng = np.random.default_rng(5)
X, W = rng.normal(size=(4, 3)), rng.normal(size=(3, 5))


def gated(x, W):
    """dg lacks the slope of tanh."""
    z = x @ W
    g = np.tanh(z)
    s = 1 / (1 + np.exp(-g))
    y = s * z

    def backward(dy):
        ds = dy * z
        dg = ds * s * (1 - s)
        dz = dg + dy * s
        return dz @ W.T, x.T @ dz

    return y, backward


def masked(x, W):
    """da is right, then becomes dz by a wrong mask."""
    z = x @ W
    a = np.maximum(z, 0)

    def backward(dy):
        da = 2 * dy * a
        da[z > 0.5] = 0
        return da @ W.T, x.T @ da

    return a * a, backward


class Layer:
    """The hidden gradient lacks a factor; what the forward keeps in self is measured, too."""

    def __init__(self):
        self.W = W.copy()

    def forward(self, x):
        self.x = x
        self.h = np.tanh(x @ self.W)
        return (self.h**3).sum(axis=1)

    def backward(self, dout):
        dh = dout[:, None] * 3 * self.h
        dz = dh * (1 - self.h**2)
        self.dW = self.x.T @ dz
        return dz @ self.W.T


def looped(x, W):
    """h is another one in every pass of the loop: dh is not compared with it."""
    h, kept = np.zeros((4, 5)), []
    for t in range(3):
        h = np.tanh(h + x[t] @ W)
        kept.append(h)

    def backward(dy):
        dx, dW, dh = np.zeros_like(x), np.zeros_like(W), dy
        for t in reversed(range(3)):
            dz = dh * (1 - kept[t])
            dx[t], dW = dz @ W.T, dW + x[t].T @ dz
            dh = dz
        return dx, dW

    return h, backward


def inside(f, *inputs):
    """{name: numbers of the lines after which it is right}"""
    with judged(f, inputs, None) as (_, _, evidence):
        evidence.back_to_the_point()
        found = measured_inside(evidence)
        return {name: [line for line, _ in inner.right] for name, inner in found.items()}


def line_of(f, text):
    lines, first = inspect.getsourcelines(f)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_gradients_inside_are_compared_with_slopes_in_the_forwards_variables():
    found = inside(gated, X, W)
    assert found["ds"] == [line_of(gated, "ds = ")]
    assert found["dg"] == [line_of(gated, "dg = ")]
    assert found["dz"] == []


def test_of_a_variable_that_changes_the_state_counts_in_which_it_is_right():
    found = inside(masked, X, W)
    assert found["da"] == [line_of(masked, "da = ")]
    report = gradcheck(masked, X, W)
    assert report.repair[0].endswith(f":{line_of(masked, 'da[z')}"), report


def test_what_is_kept_in_an_object_is_measured():
    found = inside(Layer(), X)
    assert found["dh"] == []


def two_paths(x, W):
    """dz comes back on two paths: the first alone is not the gradient of z. The mistake is in the second."""
    z = x @ W
    a, b = np.tanh(z), np.sin(z)

    def backward(dy):
        dz = dy * (1 - a**2)
        second = dy * np.cos(z) * 1.5
        total = dz + second
        return total @ W.T, x.T @ total

    return a + b, backward


def test_what_comes_back_on_one_path_is_not_called_wrong():
    assert "dz" not in inside(two_paths, X, W)


def test_what_a_loop_sets_is_not_measured():
    found = inside(looped, rng.normal(size=(3, 4, 3)), W)
    assert set(found) <= {"dx", "dW"}


def test_lines_before_a_right_variable_are_not_suspected():
    report = gradcheck(gated, X, W)
    suspected = [line.partition("  ")[2] for line in report.suspects]
    assert "dz = dg + dy * s" in suspected
    assert not any("ds" in line.partition("=")[0] or "dg" in line.partition("=")[0] for line in suspected)
    assert "(1 - g" in report.repair[3]                  # dg·(1 − g²), in the line of dz


@pytest.mark.parametrize(("f", "inputs", "expected"), [
    (gated, (X, W), "Measured inside: ds and dg are right; dz is wrong, if it is meant as the gradient of z."),
    (looped, (rng.normal(size=(3, 4, 3)), W), ""),
])  # fmt: skip
def test_the_report_says_what_was_measured(f, inputs, expected):
    with judged(f, inputs, None) as (_, _, evidence):
        evidence.back_to_the_point()
        found = measured_inside(evidence)
        first = first_wrong(found, {line_of(f, "dz = ")})
        assert about_inside(evidence, found, first) == expected


def test_where_no_change_is_found_the_report_has_the_sentence():
    def two_wrong(x, W):
        z = x @ W
        u = np.sin(z)
        v = u * z

        def backward(dy):
            dv = dy * np.exp(v)
            du = dv * z * 1.7 + u * 0.3
            dz = du * np.cos(z) + dv * u
            return dz @ W.T, x.T @ dz

        return np.exp(v), backward

    report = gradcheck(two_wrong, X, W)
    assert not report.repair
    assert "Measured inside: dv is right; du is wrong, if it is meant as the gradient of u." in report.explain()
    assert report.as_dict()["inside"] == report.inside

"""The first wrong step among the learner's own functions and objects."""

from functools import partial

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.reasons.theirs import calls_in, is_theirs

import numpy as np
import pytest

WRONG = set()            # names of the functions whose backward is wrong


def factor(name):
    return 2.0 if name in WRONG else 1.0


@pytest.fixture(autouse=True)
def all_right():
    WRONG.clear()


def affine_forward(x, w):
    return x @ w, (x, w)


def affine_backward(dout, cache):
    x, w = cache
    return dout @ w.T, factor("affine") * (x.T @ dout)


def tanh(x):
    y = np.tanh(x)
    return y, lambda dy: factor("tanh") * dy * (1 - y * y)


def split(x):
    """Two outputs."""
    half = x.shape[1] // 2

    def backward(da, db):
        return np.concatenate([da, factor("split") * db], axis=1)

    return x[:, :half], x[:, half:], backward


class Scale:
    def __init__(self, n):
        self.g = np.linspace(0.5, 1.5, n)
        self.dg = None

    def forward(self, x):
        self.x = x
        return x * self.g

    def backward(self, dout):
        self.dg = (dout * self.x).sum(0)
        return factor("Scale") * dout * self.g


class Net:
    def __init__(self, rng):
        self.w1, self.w2 = rng.standard_normal((4, 6)), rng.standard_normal((3, 3))
        self.scale = Scale(3)

    def forward(self, x):
        h, self.cache1 = affine_forward(x, self.w1)
        a, b, self.back_split = split(h)
        a, self.back_tanh = tanh(a)
        y, self.cache2 = affine_forward(self.scale.forward(a * b), self.w2)
        self.a, self.b = a, b
        return y

    def backward(self, dout):
        ds, self.dw2 = affine_backward(dout, self.cache2)
        dab = self.scale.backward(ds)
        dh = self.back_split(self.back_tanh(dab * self.b), dab * self.a)
        dx, self.dw1 = affine_backward(dh, self.cache1)
        return dx * factor("Net")


def test_all_right(rng):
    assert gradcheck(Net(rng), rng.standard_normal((2, 4)))


@pytest.mark.parametrize(
    ("name", "step"),
    [("affine", "affine_backward"), ("tanh", "tanh"), ("split", "split"), ("Scale", "Scale")],
)
def test_the_first_wrong_step_is_named_in_the_learners_own_names(name, step, rng):
    WRONG.add(name)
    report = gradcheck(Net(rng), rng.standard_normal((2, 4)))
    assert report.verdict == "FAIL"
    assert report.wrong_step.name == step
    assert "test_theirs.py:" in report.wrong_step.line
    assert "test_theirs.py:" in report.wrong_step.place


def test_if_all_steps_are_right_the_mistake_is_in_how_they_are_joined(rng):
    WRONG.add("Net")
    report = gradcheck(Net(rng), rng.standard_normal((2, 4)))
    assert report.wrong_step is None
    assert "Its 5 steps are right by themselves: the mistake is in the function's own lines, or in" in report.explain()


def test_uses_of_one_function_on_one_line_are_told_apart(rng):
    def twice(x):
        y, back = tanh(x)
        pairs = [tanh(y) for _ in range(2)]
        return sum(z for z, _ in pairs), lambda dy: back(sum(b(dy) for _, b in pairs))

    WRONG.add("tanh")
    x = rng.standard_normal((2, 3))
    assert [call.name for call in calls_in(Subject(twice, [x], None))] == ["tanh"] * 3
    assert gradcheck(twice, x).wrong_step.line.endswith("(call 1 of 2)")


def test_nothing_stays_patched(rng):
    functions = affine_forward, affine_backward, tanh, Scale.forward, Scale.backward
    WRONG.add("tanh")
    net = Net(rng)
    gradcheck(net, rng.standard_normal((2, 4)))
    assert functions == (affine_forward, affine_backward, tanh, Scale.forward, Scale.backward)
    assert vars(net.scale).keys() == {"g", "dg"}


def test_whose_code_it_is():
    assert is_theirs(tanh)
    assert is_theirs(Scale)
    assert not is_theirs(partial(gradcheck).func)
    assert not is_theirs(np.linspace.__wrapped__ if hasattr(np.linspace, "__wrapped__") else np.ma.average)

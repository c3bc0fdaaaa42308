"""The first wrong step among the learner's own functions and objects."""

from functools import partial

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.reasons.theirs import calls_in

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
    assert "Its 5 steps are right by themselves: the mistake is in the function's own lines" in report.explain()


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


class Keep:
    """ctx"""


class Square:
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, dout):
        return factor("Square") * 2 * dout * ctx.x


class SumOfSquares:
    """A static class that calls others."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.inner, ctx.again, ctx.w = Keep(), Keep(), w
        ctx.s = Square.forward(ctx.inner, x)
        return Square.forward(ctx.again, ctx.s @ w)

    @staticmethod
    def backward(ctx, dout):
        dz = Square.backward(ctx.again, dout)
        return Square.backward(ctx.inner, dz @ ctx.w.T), factor("SumOfSquares") * ctx.s.T @ dz


def test_static_classes_are_steps(rng):
    x, w = rng.standard_normal((2, 3)), rng.standard_normal((3, 4))
    assert gradcheck(SumOfSquares, x, w)
    WRONG.add("Square")
    assert gradcheck(SumOfSquares, x, w).wrong_step.name == "Square"
    WRONG.clear()
    WRONG.add("SumOfSquares")
    report = gradcheck(SumOfSquares, x, w)
    assert report.wrong_step is None
    assert [step.status for step in report.steps] == ["right", "right"]
    assert isinstance(vars(Square)["forward"], staticmethod)
    assert "tracer" not in vars(Square)["forward"].__func__.__code__.co_freevars         # its own again


class Cell:
    """Its gradients are there only after zero_grad, which the model calls after its forward."""

    def __init__(self, rng):
        self.W = rng.standard_normal((3, 3))

    def zero_grad(self):
        self.W_grad = np.zeros_like(self.W)

    def forward(self, h):
        y = np.tanh(h @ self.W)
        return y, (h, y)

    def backward(self, dy, cache):
        h, y = cache
        dz = dy * (1 - y * y)
        self.W_grad += factor("Cell") * (h.T @ dz)
        return dz @ self.W.T


class Recurrent:
    def __init__(self, rng):
        self.cell = Cell(rng)

    def forward(self, h):
        self.caches = []
        for _ in range(3):
            h, cache = self.cell.forward(h)
            self.caches.append(cache)
        return h

    def backward(self, dout):
        self.cell.zero_grad()
        for cache in reversed(self.caches):
            dout = self.cell.backward(dout, cache)
        return factor("Recurrent") * dout


def test_gradients_that_are_set_to_zero_after_the_forward(rng):
    x = rng.standard_normal((2, 3))
    assert gradcheck(Recurrent(rng), x)
    WRONG.add("Recurrent")
    assert gradcheck(Recurrent(rng), x).wrong_step is None
    WRONG.add("Cell")
    assert gradcheck(Recurrent(rng), x).wrong_step.name == "Cell"


class Late(Cell):
    """What the model gives to it between the forward and the backward."""

    def backward(self, dy, cache):
        return super().backward(dy, cache) * self.late


class Between(Recurrent):
    def __init__(self, rng):
        self.cell = Late(rng)

    def backward(self, dout):
        self.cell.late = factor("Between")
        return super().backward(dout)


def test_a_step_that_does_not_run_by_itself_is_not_accused(rng):
    x = rng.standard_normal((2, 3))
    assert gradcheck(Between(rng), x)
    WRONG.add("Between")
    report = gradcheck(Between(rng), x)
    assert not report
    assert report.wrong_step is None
    assert "raised" not in report.explain()

"""Arrays in somebody's objects: all of them are found, whatever holds them and whatever they are called."""

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest


def R(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


class Scale:
    """A layer whose weights are called g and b; once its gradient of g was asked for, it may be twice as large."""

    def __init__(self, factor=1.0):
        self.params, self.grads, self.factor = {"g": R(3), "b": R(3) + 1}, {}, factor

    def forward(self, x):
        self.x = x
        return x * self.params["g"] + self.params["b"]

    def backward(self, dy):
        self.grads["g"], self.grads["b"] = self.factor * (dy * self.x).sum(0), dy.sum(0)
        return dy * self.params["g"]


class Stack:
    """Its layers are in a tuple."""

    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy


def test_a_weight_may_be_called_g():
    layer = Scale()
    assert verdicts(gradcheck(layer, R(4, 3))) == {"x": "PASS", "params.g": "PASS", "params.b": "PASS"}
    assert verdicts(gradcheck(Scale(2.0), R(4, 3)))["params.g"] == "FAIL"
    layer.forward(R(4, 3))                               # and it is no gradient of b from an earlier run
    assert verdicts(gradcheck(layer, R(4, 3)))["params.g"] == "PASS"


def test_layers_in_a_tuple():
    right = gradcheck(Stack(Scale(), Scale()), R(4, 3))
    names = [f"layers.{k}.params.{name}" for k in (0, 1) for name in "gb"]
    assert verdicts(right) == dict.fromkeys(["x", *names], "PASS")
    wrong = gradcheck(Stack(Scale(), Scale(2.0)), R(4, 3))
    assert verdicts(wrong) == dict.fromkeys(["x", *names], "PASS") | {"layers.1.params.g": "FAIL"}
    assert wrong.wrong_step.name == "Scale"


class Padded:
    """What the backward returns is a part of an array that is named as the gradient of one that the object keeps."""

    def __init__(self, first):
        self.W, self.first = R(3), first

    def forward(self, x):
        self.xp = np.pad(x, 1)
        return sum(self.xp[i : i + len(x)] * self.W[i] for i in range(3))

    def backward(self, dy):
        dxp, self.dW = np.zeros_like(self.xp), np.zeros(3)
        for i in range(3):
            self.dW[i] = (dy * self.xp[i : i + len(dy)]).sum()
            dxp[i : i + len(dy)] += dy * self.W[i]
        return dxp[self.first : self.first + len(dy)]


def test_a_part_of_a_gradient_of_what_the_object_keeps():
    for again in range(2):                               # the second time the object has been used already
        layer = Padded(1)
        if again:
            layer.forward(R(5))
        assert verdicts(gradcheck(layer, R(5))) == {"x": "PASS", "W": "PASS"}
        layer.first = 0
        assert verdicts(gradcheck(layer, R(5))) == {"x": "FAIL", "W": "PASS"}


class Noisy:
    def __init__(self):
        self.W, self.eps = R(3), R(4, 3)

    def forward(self, x):
        self.x = x
        return x * self.W + self.eps * np.exp(x)

    def backward(self, dy):
        self.dW = (dy * self.x).sum(0)
        return dy * (self.W + self.eps * np.exp(self.x))


def test_noise_and_targets_are_not_learned():
    report = gradcheck(Noisy(), R(4, 3))
    assert report.verdict == "PASS"
    assert "the backward returns no gradient of eps: not checked" in report.notes


class Called:
    """Its methods are __call__ and back."""

    def __init__(self, factor=1.0):
        self.W, self.factor = R(3, 2), factor

    def __call__(self, x):
        self.x = x
        return np.tanh(x @ self.W)

    def back(self, dy):
        dz = dy * (1 - np.tanh(self.x @ self.W) ** 2)
        self.dW = self.x.T @ dz
        return self.factor * dz @ self.W.T


class Short:
    """Its methods are fwd and bwd, and it has one of the others inside."""

    def __init__(self, factor=1.0):
        self.inner = Called(factor)

    def fwd(self, x):
        return 2 * self.inner(x)

    def bwd(self, dy):
        return self.inner.back(2 * dy)


@pytest.mark.parametrize(("make", "name"), [(Called, "W"), (Short, "inner.W")])
def test_other_names_of_forward_and_backward(make, name):
    assert verdicts(gradcheck(make(), R(4, 3))) == {"x": "PASS", name: "PASS"}
    assert verdicts(gradcheck(make(2.0), R(4, 3))) == {"x": "FAIL", name: "PASS"}


def test_objects_with_such_methods_are_steps():
    assert gradcheck(Short(2.0), R(4, 3)).wrong_step.name == "Called"

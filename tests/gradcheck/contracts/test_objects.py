"""Objects with forward and backward, whose weights and gradients are attributes, in dicts, in lists, in objects inside."""


import numpy as np
import pytest

from . import check, edited, judge, normal, verdicts


class Linear:
    def __init__(self):
        self.W, self.b = normal((4, 3)), np.zeros(3)
        self.dW = self.db = None

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dy):
        self.dW, self.db = self.x.T @ dy, dy.sum(axis=0)
        return dy @ self.W.T


def test_attributes():
    layer, x = Linear(), normal((5, 4))
    check(Linear, lambda cls: judge(cls(), x), "x W b",
          ("self.x.T @ dy, dy.sum(axis=0)", "2 * self.x.T @ dy, dy.sum(axis=0)", "W"),
          ("dy.sum(axis=0)", "dy.sum()", "db has shape (), expected (3,) as b has"),
          ("dy @ self.W.T", "dy @ self.W.T * (self.x > 0)", "x"))        # fmt: skip
    for f in ((layer.forward, layer.backward), (layer.forward, Linear.backward.__get__(layer))):
        assert verdicts(judge(f, x)) == dict.fromkeys(["x", "W", "b"], "PASS")


def test_the_object_stays_as_it_is():
    layer = Linear()
    W, before = layer.W, layer.W.copy()
    assert judge(layer, normal((5, 4)))
    assert vars(layer).keys() == {"W", "b", "dW", "db"}
    assert layer.W is W
    assert layer.dW is None
    assert np.array_equal(W, before)


class Adds(Linear):
    """Gradients add up, from one backward to the next."""

    def __init__(self):
        self.W, self.b = normal((4, 3), 3)
        self.W_grad, self.grad_b = np.zeros((4, 3)), np.zeros(3)

    def backward(self, dy):
        self.W_grad += self.x.T @ dy
        self.grad_b += dy.sum(axis=0)
        return dy @ self.W.T


def test_gradients_that_add_up_even_if_the_object_has_run_before():
    x = normal((5, 4))

    def used(cls):
        layer = cls()
        layer.forward(x)
        layer.backward(normal((5, 3)))
        report, kept = judge(layer, x), layer.W_grad.copy()
        assert np.array_equal(layer.W_grad, kept)
        return report

    check(Adds, used, "x W b", ("self.grad_b += dy", "self.grad_b += 2 * dy", "b"), ("self.grad_b += dy.sum(axis=0)", "pass", "b"))


class Affine:
    """deep-learning-from-scratch's second volume: weights and gradients in two lists"""

    def __init__(self):
        self.params = normal((4, 3), 3)
        self.grads = [np.zeros_like(p) for p in self.params]

    def forward(self, x):
        W, b = self.params
        self.x = x
        return x @ W + b

    def backward(self, dout):
        W, b = self.params
        self.grads[0][...] = self.x.T @ dout
        self.grads[1][...] = np.sum(dout, axis=0)
        return dout @ W.T


def test_params_and_grads_in_lists():
    check(Affine, lambda cls: judge(cls(), normal((5, 4))), "x params.0 params.1",
          ("self.x.T @ dout", "self.x.T @ dout / len(dout)", "params.0"), ("np.sum(dout, axis=0)", "dout[0]", "params.1"))   # fmt: skip
    new = edited(Affine, "self.grads[0][...] = self.x.T @ dout", "self.grads = [self.x.T @ dout, None]",
                 "self.grads[1][...]", "self.grads[1]")  # fmt: skip
    assert verdicts(judge(new(), normal((5, 4)))) == dict.fromkeys(["x", "params.0", "params.1"], "PASS")


class AffineLayer:
    """deep-learning-from-scratch's first volume"""

    def __init__(self, W, b):
        self.W, self.b = W, b
        self.x = self.dW = self.db = None

    def forward(self, x):
        self.x = x
        return np.dot(x, self.W) + self.b

    def backward(self, dout):
        dx = np.dot(dout, self.W.T)
        self.dW = np.dot(self.x.T, dout)
        self.db = np.sum(dout, axis=0)
        return dx


class Relu:
    def forward(self, x):
        self.mask = x <= 0
        out = x.copy()
        out[self.mask] = 0
        return out

    def backward(self, dout):
        dout = dout.copy()
        dout[self.mask] = 0
        return dout


class Sequential:
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy


def test_layers_inside():
    names = "x layers.0.W layers.0.b layers.2.params.0 layers.2.params.1"

    def call(cls):
        inner = AffineLayer(*normal((3, 3), 3, seed=8))
        last = cls()
        last.params = normal((3, 3), 3, seed=9)
        last.grads = [np.zeros((3, 3)), np.zeros(3)]
        return judge(Sequential(inner, Relu(), last), normal((5, 3)))

    check(Affine, call, names, ("np.sum(dout, axis=0)", "np.mean(dout, axis=0)", "layers.2.params.1"),
          ("dout @ W.T", "dout @ W", "x layers.0.W layers.0.b"))         # fmt: skip


class Parameter:
    def __init__(self, data):
        self.data, self.grad = data, np.zeros_like(data)


class OfParameters:
    def __init__(self):
        self.weight, self.bias = map(Parameter, normal((4, 3), 3))
        self.xp = np                                     # a module cannot be copied

    def forward(self, x):
        self.x = x
        return x @ self.weight.data + self.bias.data

    def backward(self, dy):
        self.weight.grad += self.x.T @ dy
        self.bias.grad = dy.sum(axis=0)
        return dy @ self.weight.data.T


class InDicts:
    def __init__(self):
        W1, W2 = normal((4, 5), (5, 3))
        self.params, self.grads = {"W1": W1, "W2": W2}, {}

    def forward(self, X):
        self.cache = X, np.maximum(X @ self.params["W1"], 0)
        return self.cache[1] @ self.params["W2"]

    def backward(self, dout):
        X, h = self.cache
        dh = dout @ self.params["W2"].T * (h > 0)
        self.grads["dW2"], self.grads["W1"] = h.T @ dout, X.T @ dh


@pytest.mark.parametrize(("cls", "judged", "bug"), [
    (OfParameters, "x weight.data bias.data", ("self.x.T @ dy", "self.x.T @ dy * 2", "weight.data")),
    (InDicts, "params.W1 params.W2", (" * (h > 0)", "", "params.W1")),
])  # fmt: skip
def test_other_places_for_weights(cls, judged, bug):
    check(cls, lambda cls: judge(cls(), normal((5, 4))), judged, bug)


class Several(Linear):
    """Its gradients come back after that of x, named in the `return`."""

    def backward(self, dy):
        dx, dW, db = dy @ self.W.T, self.x.T @ dy, dy.sum(axis=0)
        return dx, dW, db


class WeightsOnly(Several):
    def backward(self, dy):
        dW, db = self.x.T @ dy, dy.sum(axis=0)
        return dW, db


def test_gradients_named_in_the_return():
    bug = "dy.sum(axis=0)", "dy.sum(axis=0) / 2", "b"
    check(Several, lambda cls: judge(cls(), normal((5, 4))), "x W b", bug, ("dy @ self.W.T", "dy @ self.W.T / 2", "x"))
    check(WeightsOnly, lambda cls: judge(cls(), normal((5, 4))), "W b", bug)


class Cell:
    """Two outputs, h and c, and no cache: the object keeps what it needs."""

    def __init__(self):
        self.W = normal((3, 3))

    def forward(self, h, c):
        self.c, self.kept = np.tanh(c + h @ self.W), (h, c)
        return h * self.c, self.c

    def backward(self, dh, dc):
        h, _ = self.kept
        dz = (dc + dh * h) * (1 - self.c**2)
        self.dW = h.T @ dz
        return dh * self.c + dz @ self.W.T, dz


class Model:
    """Its forward is called loss, and its backward takes nothing."""

    def __init__(self):
        self.layer = Linear()

    def loss(self, x, target):
        self.error = self.layer.forward(x) - target
        return (self.error**2).sum()

    def back(self):
        self.layer.backward(2 * self.error)


def test_several_outputs_and_methods_of_other_names():
    check(Cell, lambda cls: judge(cls(), *normal((5, 3), (5, 3))), "h c W", ("dc + dh * h", "dh * h", "h c W"))
    inputs = normal((5, 4), (5, 3))
    check(Model, lambda cls: judge(cls(), *inputs, methods=("loss", "back")), "layer.W layer.b", ("2 * self.error", "self.error", "layer.W layer.b"))
    assert judge(Model(), *inputs, methods=("forward", "back")).refusals == ["Model has no method 'forward'"]


def test_chosen_weights():
    net = Sequential(AffineLayer(*normal((4, 4), 4)), Linear())
    assert [*verdicts(judge(net, normal((5, 4)), params=["layers.1.W"]))] == ["x", "layers.1.W"]
    assert [*verdicts(judge(net, normal((5, 4)), params={"V": "layers.1.W"}))] == ["x", "V"]


class LayerDense:
    """Neural networks from scratch: what comes out, and what goes back, is kept."""

    def __init__(self):
        self.weights, self.biases = normal((4, 3), (1, 3))

    def forward(self, inputs):
        self.inputs = inputs
        self.output = np.dot(inputs, self.weights) + self.biases

    def backward(self, dvalues):
        self.dweights = np.dot(self.inputs.T, dvalues)
        self.dbiases = np.sum(dvalues, axis=0, keepdims=True)
        self.dinputs = np.dot(dvalues, self.weights.T)


class Checked(LayerDense):
    def forward(self, inputs):
        super().forward(inputs)
        return self.output


def test_a_forward_and_a_backward_that_return_nothing():
    report = judge(LayerDense(), normal((5, 4)))
    assert "the forward returned None, expected y. If it keeps it, give an object that returns it" in report.refusals[0]
    assert verdicts(judge(Checked(), normal((5, 4)))) == {"weights": "PASS", "biases": "PASS"}
    names = dict.fromkeys(["inputs", "weights", "biases"], "PASS")
    assert verdicts(judge(Checked(), normal((5, 4)), grads={"inputs": "dinputs"})) == names


class OverTime:
    """A list of inputs, and a list of their gradients"""

    def __init__(self):
        self.W = normal((3, 3))

    def forward(self, xs):
        self.xs, h, self.hs = xs, np.zeros(3), []
        for x in xs:
            h = np.tanh(x + h @ self.W)
            self.hs.append(h)
        return h

    def backward(self, dh):
        dxs, self.dW = [], np.zeros_like(self.W)
        for t in reversed(range(len(self.xs))):
            dz = dh * (1 - self.hs[t] ** 2)
            dxs.insert(0, dz)
            self.dW += np.outer(self.hs[t - 1], dz) if t else 0
            dh = dz @ self.W.T
        return dxs


def test_a_list_of_inputs():
    check(OverTime, lambda cls: judge(cls(), [*normal((3, 3))]), "W xs.0 xs.1 xs.2", ("dh = dz @ self.W.T", "dh = dz", "W xs.0 xs.1"))


class Stepping:
    """Its backward changes the weights at once."""

    def __init__(self):
        self.W, self.U, self.h = normal((4, 3), (3, 3), (5, 3))

    def forward(self, x):
        self.x, self.before = x, self.h
        self.h = np.tanh(x @ self.W + self.h @ self.U)
        return self.h

    def backward(self, dh, learning_rate=0.1):
        dz = dh * (1 - self.h**2)
        self.dW, self.dU = self.x.T @ dz, self.before.T @ dz
        dx = dz @ self.W.T
        self.W -= learning_rate * self.dW
        self.U = self.U - learning_rate * self.dU
        return dx


def test_a_state_and_a_step_of_training_in_the_backward():
    def call(cls):
        net = cls()
        report, W = judge(net, normal((5, 4)), constants=["h"]), normal((4, 3), (3, 3))[0]
        assert np.array_equal(net.W, W)
        return report

    check(Stepping, call, "x W U", ("dx = dz @ self.W.T\n        self.W -= learning_rate * self.dW", "self.W -= learning_rate * self.dW\n        dx = dz @ self.W.T", "x"))
    assert call(Stepping).notes == []
    assert "y depends on it. Constant? constants=['h']" in judge(Stepping(), normal((5, 4))).refusals[0]

"""More ways to keep weights and to give gradients back: each right one passes, and each wrong gradient fails."""

from dataclasses import dataclass

from mini_tf.gradcheck.judge import judge

import numpy as np
import pytest

from .test_anybodys_style import verdicts


class BuiltLater:
    """As Keras' layers: weights come into being in the first call."""

    def __init__(self, off):
        self.weights, self.grads, self.built, self.off = {}, {}, False, off

    def __call__(self, inputs):
        if not self.built:
            rng, self.built = np.random.default_rng(3), True
            self.weights |= {"kernel": rng.standard_normal((3, 3)), "scale": rng.standard_normal(3)}
        self.last = inputs, inputs @ self.weights["kernel"]
        return self.last[1] * self.weights["scale"]

    def backward(self, upstream):
        inputs, product = self.last
        d = upstream * self.weights["scale"]
        self.grads = {"kernel": inputs.T @ d, "scale": self.off * (upstream * product).sum(0)}
        return d @ self.weights["kernel"].T


class RemembersItsState:
    """An RNN's state is made in the first call, too, and is no weight: it is another one after each call."""

    def __init__(self, W):
        self.W, self.h = W, None

    def forward(self, x):
        self.before = np.zeros_like(x) if self.h is None else self.h
        self.x, self.h = x, np.tanh(x @ self.W + self.before)
        return self.h

    def backward(self, dh):
        d = dh * (1 - self.h**2)
        self.dW = self.x.T @ d
        return d @ self.W.T


def of_static_methods(off):
    class Squared:
        @staticmethod
        def forward(x, w):
            return np.mean(w * x**2), (x, w)

        @staticmethod
        def backward(cache, dloss=1.0):
            x, w = cache
            return dloss * 2 * w * x / x.size, off * dloss * x**2 / x.size

    return Squared


class Value:
    def __init__(self, data, parents=(), back=None):
        self.data, self.grad, self.parents, self.back = data, np.zeros_like(data), parents, back

    def __matmul__(self, other):
        out = Value(self.data @ other.data, (self, other))

        def back():
            self.grad += out.grad @ other.data.T
            other.grad += self.data.T @ out.grad

        out.back = back
        return out

    def times(self, other, off):
        out = Value(self.data * other.data, (self, other))

        def back():
            self.grad += other.data * out.grad
            other.grad += off * self.data * out.grad

        out.back = back
        return out


def on_values(off):
    def product(x, W, t):
        x, W, t = Value(x), Value(W), Value(t)
        first = x @ W
        y = first.times(t, off)

        def backward(dy):
            y.grad += dy                                 # a second call adds to what the first has left
            first.grad = np.zeros_like(first.data)
            y.back()
            first.back()
            return x.grad, W.grad, t.grad

        return y.data, backward

    return product


class Tensor:
    def __init__(self, data):
        self.data, self.grad = data, None


class AllInAList:
    """What comes back are the gradients of all parameters, and none of X, which has the shape of one of them."""

    def __init__(self, W, b, off):
        self.W, self.b, self.off = Tensor(W), Tensor(b), off

    def loss(self, X):
        e = X @ self.W.data + self.b.data
        self.W.grad, self.b.grad = X.T @ e, self.off * e.sum(0)
        return 0.5 * (e**2).sum(), [p.grad for p in (self.W, self.b)]


class Nested:
    """As Haiku: {"linear": {"w": …}} of weights, and of gradients"""

    def __init__(self, W, b, off):
        self.params, self.off = {"linear": {"w": W, "b": b}}, off

    def loss(self, x, y):
        p = self.params["linear"]
        e = x @ p["w"] + p["b"] - y
        return 0.5 * (e**2).sum(), {"linear": {"w": x.T @ e, "b": self.off * e.sum(0)}}


class Dense:
    def __init__(self, W, b):
        self.weights, self.biases = W, b

    def forward(self, x):
        self.x, self.output = x, x @ self.weights + self.biases

    def backward(self, d):
        self.dweights, self.dbiases = self.x.T @ d, d.sum(0)


class Dotted:
    """What comes back under "dense.biases" is wrong; what the layer keeps is not."""

    def __init__(self, W, b, off):
        self.dense, self.off = Dense(W, b), off

    def loss(self, x, y):
        self.dense.forward(x)
        e = self.dense.output - y
        self.dense.backward(e)
        return 0.5 * (e**2).sum(), {"dense.weights": self.dense.dweights, "dense.biases": self.off * self.dense.dbiases}


class Shared:
    def __init__(self, value):
        self._value = value


class OfShared:
    """As Theano's shared variables: self.b._value, whose gradient is self.grads["b"]"""

    def __init__(self, W, b, off):
        self.W, self.b, self.off, self.grads = Shared(W), Shared(b), off, {}

    def fprop(self, x):
        self.x = x
        return x @ self.W._value + self.b._value

    def bprop(self, d):
        self.grads = {"W": self.x.T @ d, "b": self.off * d.sum(0)}
        return d @ self.W._value.T


def lazily(off):
    def affine(x, W, b):
        def backward(dy):
            yield dy @ W.T
            yield x.T @ dy
            yield off * dy.sum(0)

        return x @ W + b, backward

    return affine


def with_an_optional_bias(off):
    def linear(x, weight, bias=None):
        y = x @ weight if bias is None else x @ weight + bias
        return y, lambda dy: (dy @ weight.T, off * x.T @ dy, None if bias is None else dy.sum(0))

    return linear


def in_single_precision(off):
    def standardized(x, gain):
        mean = x.mean(-1, keepdims=True, dtype=np.float32)
        d = x - mean

        def backward(dy):
            g = np.asarray(dy, dtype=np.float32) * gain
            return g - g.mean(-1, keepdims=True), off * (dy * d).sum(0)

        return np.asarray(d * gain, dtype=np.float32), backward

    return standardized


single = np.float32


def for_single_precision_only(off):
    def scaled(x, gain):
        assert x.dtype == gain.dtype == single
        return x * gain, lambda dy: (dy.astype(single) * gain, off * (dy * x).sum(0, dtype=single))

    return scaled


class TapeOfClosures:
    """Each step of the tape writes into the object that it has in its closure."""

    def __init__(self, W, gain, off):
        self.params, self.grads, self.off = {"W": W, "gain": gain}, {}, off

    def forward(self, x):
        W, gain = self.params["W"], self.params["gain"]
        h = x @ W

        def back_through_gain(dy):
            self.grads["gain"] = self.off * (dy * h).sum(0)
            return dy * gain

        def back_through_product(dy):
            self.grads["W"] = x.T @ dy
            return dy @ W.T

        self.tape = {"rules": [back_through_product], "last": (back_through_gain, None)}
        return h * gain

    def backward(self, dy):
        return self.tape["rules"][0](self.tape["last"][0](dy))


class Weight(np.ndarray):
    """An array with its gradient, which NumPy's copies of it do not have."""

    def __new__(cls, numbers):
        weight = np.array(numbers).view(cls)
        weight.grad = np.zeros(weight.shape)
        return weight

    def __array_finalize__(self, other):
        self.grad = None


class OfWeights:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = Weight(W), Weight(b), off

    def forward(self, x):
        self.x = x
        return x @ np.asarray(self.W) + np.asarray(self.b)

    def backward(self, dy):
        self.W.grad += self.x.T @ dy
        self.b.grad += self.off * dy.sum(0)
        return dy @ np.asarray(self.W).T


@dataclass
class Factors:
    item: np.ndarray
    user: np.ndarray


class Factorization:
    """The gradients come back in an object of the class that the weights are in."""

    def __init__(self, W, U, off):
        self.factors, self.off = Factors(W, U), off

    def loss(self, ratings):
        item, user = self.factors.item, self.factors.user
        error = user @ item.T - ratings
        return 0.5 * (error**2).sum(), Factors(error.T @ user, self.off * error @ item)


class Asked:
    """Nothing is computed before somebody asks for a gradient."""

    def __init__(self, W, b, off):
        self._W, self._b, self._off = W, b, off

    W, b = (property(lambda self, name=name: getattr(self, name)) for name in ("_W", "_b"))
    grad_W = property(lambda self: self._x.T @ self._dy)
    grad_b = property(lambda self: self._off * self._dy.sum(0))

    def forward(self, x):
        self._x = x
        return x @ self._W + self._b

    def backward(self, dy):
        self._dy = dy
        return dy @ self._W.T


class Spring:
    """Buffers in float32, made once, into which every step writes."""

    def __init__(self, stiffness, off):
        self.stiffness, self.off = stiffness.astype(single), off
        self.place, self.seen = np.zeros(stiffness.size, single), np.zeros((3, stiffness.size), single)

    def forward(self, start):
        self.place[:] = start
        for step in range(3):
            self.seen[step] = self.place
            self.place -= single(0.1) * self.stiffness * np.sin(self.place)
        return self.place

    def backward(self, dy):
        dy, self.stiffness_grad = dy.astype(single), np.zeros_like(self.stiffness)
        for place in self.seen[::-1]:
            self.stiffness_grad -= self.off * single(0.1) * dy * np.sin(place)
            dy = dy - single(0.1) * dy * self.stiffness * np.cos(place)
        return dy


def with_a_penalty(off):
    def scores(x, W):
        y = x @ W

        def backward(dys):
            dy, dpenalty = dys
            return dy @ W.T, x.T @ dy + off * 2 * dpenalty * W

        return (y, (W**2).sum()), backward

    return scores


def made(off, rng):
    """{style: (f, inputs, the tensors that are judged, the one that is doubled)}"""
    x, W, b, t = (rng.standard_normal(shape) for shape in ((3, 3), (3, 3), 3, (3, 3)))
    return {
        "weights of the first call": (BuiltLater(off), [x], "inputs weights.kernel weights.scale", "weights.scale"),
        "a state of the first call": (RemembersItsState(W), [x], "x W", None),
        "static methods without a ctx": (of_static_methods(off), [x, W], "x w", "w"),
        "a tape that adds up": (on_values(off), [x, W, t], "x W t", "t"),
        "gradients of all parameters in a list": (AllInAList(W, b, off), [x], "W.data b.data", "b.data"),
        "dicts of dicts": (Nested(W, b, off), [x, t], "params.linear.w params.linear.b", "params.linear.b"),
        "dotted names": (Dotted(W, b, off), [x, t], "dense.weights dense.biases", "dense.biases"),
        "shared variables": (OfShared(W, b, off), [x], "x W._value b._value", "b._value"),
        "a generator of gradients": (lazily(off), [x, W, b], "x W b", "b"),
        "None of an optional bias": (with_an_optional_bias(off), [x, W], "x weight", "weight"),
        "float32 by its name": (in_single_precision(off), [x.astype(np.float32), b.astype(np.float32)], "x gain", "gain"),
        "float32 only": (for_single_precision_only(off), [x.astype("f"), b.astype("f")], "x gain", "gain"),
        "weights with a gradient": (OfWeights(W, b, off), [x], "x W b", "b"),
        "gradients in a dataclass": (Factorization(W, t, off), [x], "factors.item factors.user", "factors.user"),
        "gradients that are asked for": (Asked(W, b, off), [x], "x _W _b", "_b"),
        "buffers in float32": (Spring(b, off), [t[0].astype("f")], "start stiffness", "stiffness"),
        "a number beside an array": (with_a_penalty(off), [x, W], "x W", "W"),
        "a tape of closures": (TapeOfClosures(W, b, off), [x], "x params.W params.gain", "params.gain"),
    }


@pytest.mark.parametrize("style", [*made(1, np.random.default_rng(0))])
def test_right_gradients_pass_and_a_wrong_one_fails(style, rng):
    f, inputs, names, doubled = made(1, rng)[style]
    report = judge(f, inputs, None)
    assert verdicts(report) == dict.fromkeys(names.split(), "PASS"), report
    assert report.verdict == "PASS", report
    if doubled:
        f, inputs, *_ = made(2, rng)[style]
        report = judge(f, inputs, None)
        assert verdicts(report) == dict.fromkeys(names.split(), "PASS") | {doubled: "FAIL"}, report


def test_float32_is_float32_again_afterwards(rng):
    before = in_single_precision.__globals__["np"]
    judge(in_single_precision(1), [rng.standard_normal((3, 3), np.float32), rng.standard_normal(3, np.float32)], None)
    assert in_single_precision.__globals__["np"] is before
    assert np.float32(1).dtype == "float32"


def test_a_backward_that_changes_what_was_kept_is_still_a_mistake(rng):
    def loss(z):
        p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)

        def backward(dloss):
            p[:, 0] -= 1                                 # again in each call
            return dloss * p

        return -np.log(p[:, 0]).sum(), backward

    report = judge(loss, [rng.standard_normal((4, 3))], None)
    assert any("called a second time" in finding for finding in report.findings)

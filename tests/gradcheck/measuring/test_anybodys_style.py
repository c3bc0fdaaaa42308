"""A layer in the styles of many people. Right, all its gradients pass; with one of them doubled, this one fails.

`off` is what that gradient is multiplied by. Nothing may be skipped in silence: the tests say which tensors are judged.
"""

from collections import namedtuple
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judge

import numpy as np
import pytest


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


class Weights(NamedTuple):
    kernel: np.ndarray
    shift: np.ndarray


Gradients = namedtuple("Gradients", "shift kernel")      # in another order


@dataclass
class Both:
    kernel: np.ndarray
    shift: np.ndarray


def squares(x, W, b, t):
    """½ Σ (xW + b − t)², and what comes back to xW + b"""
    e = x @ W + b - t
    return 0.5 * (e**2).sum(), e


def nt_loss(off):
    def loss(p, x, t):
        value, e = squares(x, p.kernel, p.shift, t)
        return value, Gradients(kernel=x.T @ e, shift=off * e.sum(0))

    return loss


def dc_loss(off):
    def loss(p, x, t):
        value, e = squares(x, p.kernel, p.shift, t)
        return value, Both(shift=off * e.sum(0), kernel=x.T @ e)

    return loss


def dict_loss(off):
    def loss(beta, offset, x, t):
        value, e = squares(x, beta, offset, t)
        return {"fitted": e + t, "value": value, "gradient": {"offset": off * e.sum(0), "beta": x.T @ e}, "df": 2}

    return loss


def pairs_loss(off):
    def loss(W, b, x, t):
        value, e = squares(x, W, b, t)
        return value, [("b", off * e.sum(0)), ("W", x.T @ e)]

    return loss


def as_objects(arrays):
    box = np.empty(len(arrays), dtype=object)
    for k, array in enumerate(arrays):
        box[k] = array
    return box


def objects_loss(off):
    def loss(params, x, t):
        W, b = params
        value, e = squares(x, W, b, t)
        return value, as_objects([x.T @ e, off * e.sum(0)])

    return loss


def quotients(off):
    def layer(x, W, b):
        def backward(dy):
            return {"dL/db": dy.sum(0), "dL/dW": off * x.T @ dy, "dL/dx": dy @ W.T}

        return x @ W + b, backward

    return layer


def by_words(off):
    def layer(x, W, b):
        def backward(d_loss_d_y):
            return {
                "d_loss_d_W": off * x.T @ d_loss_d_y, "d_loss_d_b": d_loss_d_y.sum(0), "d_loss_d_x": d_loss_d_y @ W.T,
            }  # fmt: skip

        return x @ W + b, backward

    return layer


def greek(θ, β, ξ):
    δ = ξ @ θ + β
    return 0.5 * (δ**2).sum(), {"∂ξ": δ @ θ.T, "∂β": δ.sum(0), "∂θ": ξ.T @ δ}


class Schicht:
    def __init__(self, W, b, off):
        self.gewichte, self.schwelle, self.off = W, b, off

    def vorwaerts(self, x):
        self.x = x
        return x @ self.gewichte - self.schwelle

    def rueckwaerts(self, fehler):
        self.ableitung_gewichte = self.x.T @ fehler
        self.ableitung_schwelle = -self.off * fehler.sum(0)
        return fehler @ self.gewichte.T


class DenseLayer:
    def __init__(self, W, b, off):
        self._weightMatrix, self._biasVector, self.off = W, b, off
        self._weightMatrixGradient = self._biasVectorGradient = None

    def forwardPropagate(self, x):
        self._lastInput = x
        return x @ self._weightMatrix + self._biasVector

    def backPropagate(self, outputGradient):
        self._weightMatrixGradient = self._lastInput.T @ outputGradient
        self._biasVectorGradient = self.off * outputGradient.sum(0)
        return outputGradient @ self._weightMatrix.T


class Slots:
    __slots__ = ("_w", "_offset", "_g1", "_g2", "_kept", "off")

    def __init__(self, W, b, off):
        self._w, self._offset, self.off = W, b, off

    def forward(self, x):
        self._kept = x
        return x @ self._w + self._offset

    def backward(self, dy):
        self._g1, self._g2 = self.off * self._kept.T @ dy, dy.sum(0)
        return dy @ self._w.T


class Letters:
    def __init__(self, W, b, off):
        self.a, self.b, self.off = W, b, off

    def f(self, x):
        self.x = x
        return x @ self.a + self.b

    def g(self, e):
        self.A, self.B = self.x.T @ e, self.off * e.sum(0)
        return e @ self.a.T


class Param:
    def __init__(self, value):
        self.v, self.d, self.m = value, np.zeros_like(value), np.zeros_like(value)


class Params:
    def __init__(self, W, b, off):
        self.weight, self.offset, self.off = Param(W), Param(b), off

    def forward(self, x):
        self.x = x
        return x @ self.weight.v + self.offset.v

    def backward(self, dy):
        self.weight.d, self.offset.d = self.x.T @ dy, self.off * dy.sum(0)
        return dy @ self.weight.v.T


class Lists:
    def __init__(self, W, b, off):
        self.params, self.off = [W, b], off
        self.grads = [np.zeros_like(p) for p in self.params]

    def forward(self, x):
        self.x = x
        return x @ self.params[0] + self.params[1]

    def backward(self, dy):
        self.grads[0][...], self.grads[1][...] = self.x.T @ dy, self.off * dy.sum(0)
        return dy @ self.params[0].T


class Held:
    def __init__(self, W, b, off):
        self.kernel, self.shift, self.off = W, b, off
        self.gradients = SimpleNamespace(kernel=None, shift=None)

    def forward(self, x):
        self.x = x
        return x @ self.kernel + self.shift

    def backward(self, dy):
        self.gradients = SimpleNamespace(kernel=self.x.T @ dy, shift=self.off * dy.sum(0))
        return dy @ self.kernel.T


class Buffers:
    def __init__(self, W, b, off):
        self.w, self.b, self.off = W, b, off
        self.out, self.grad_of_w, self.grad_of_b = np.empty((len(W), len(b))), np.empty_like(W), np.empty_like(b)

    def forward(self, x):
        self.x = x
        np.matmul(x, self.w, out=self.out)
        self.out += self.b
        return self.out

    def backward(self, dy):
        np.matmul(self.x.T, dy, out=self.grad_of_w)
        np.sum(self.off * dy, axis=0, out=self.grad_of_b)
        return dy @ self.w.T


class Learned(np.ndarray):
    def __array_finalize__(self, obj):
        self.grad = getattr(obj, "grad", None)


class WithGrad:
    def __init__(self, W, b, off):
        self.A, self.c, self.off = W.view(Learned), b.view(Learned), off

    def forward(self, x):
        self.x = x
        return x @ np.asarray(self.A) + np.asarray(self.c)

    def backward(self, g):
        self.A.grad, self.c.grad = self.x.T @ g, self.off * g.sum(0)
        return g @ np.asarray(self.A).T


def generated(off):
    def steps(x, W, b):
        g = yield x @ W + b
        yield g @ W.T, x.T @ g, off * g.sum(0)

    def layer(x, W, b):
        running = steps(x, W, b)
        return next(running), running.send

    return layer


def affine(x, W, b):
    return x @ W + b


def forward(x, W, b):
    return x @ W + b, (x, W)


def bwd(off):
    def backward(res, ct):
        x, W = res
        return ct @ W.T, x.T @ ct, off * ct.sum(0)

    return backward


def by_name_only(off):
    def backward(*, saved, d_out):
        x, W = saved
        return d_out @ W.T, x.T @ d_out, off * d_out.sum(0)

    return backward


def stuff_first(off):
    def backward(these, e):                              # names that say nothing: e has no two parts
        x, W = these
        return e @ W.T, x.T @ e, off * e.sum(0)

    return backward


def inputs_first(off):
    def backward(x, W, b, up):
        return up @ W.T, x.T @ up, off * up.sum(0)

    return backward


def filling(off):
    def backward(x, xb, W, Wb, b, bb, yb):
        xb += yb @ W.T
        Wb += x.T @ yb
        bb += off * yb.sum(0)

    return backward


def two_modes(off):
    def layer(x, W, b, dzdy=None):
        if dzdy is None:
            return x @ W + b
        return dzdy @ W.T, x.T @ dzdy, off * dzdy.sum(0)

    return layer


def one_vector(off):
    def layer(x, W, b):
        def backward(dy):
            return np.concatenate([(dy @ W.T).ravel(), (x.T @ dy).ravel(), off * dy.sum(0)])

        return x @ W + b, backward

    return layer


def with_none(off):
    def layer(x, W, mask, b):
        return x @ W + b, lambda dy: (dy @ W.T, x.T @ dy, None, off * dy.sum(0))

    return layer


class Tensor:
    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, np.zeros_like(data), parents

    def backward(self, g):
        self.grad = self.grad + g
        for parent, of in self.parents:
            parent.backward(of(g))


class Graph:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = Tensor(W), Tensor(b), off

    def __call__(self, x):
        W, b = self.W, self.b
        return Tensor(x @ W.data + b.data, ((W, lambda g: x.T @ g), (b, lambda g: self.off * g.sum(0))))


class Remembers(np.ndarray):
    def backward(self, dy):
        return self.goes_back(np.asarray(dy))


def tracked(off):
    def layer(x, W, b):
        y = (x @ W + b).view(Remembers)
        y.goes_back = lambda dy: {"b": off * dy.sum(0), "W": x.T @ dy, "x": dy @ W.T}
        return y

    return layer


class LossAndGradient:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = W, b, off

    def loss(self, x, t):
        return squares(x, self.W, self.b, t)[0]

    def gradient(self, x, t):
        _, e = squares(x, self.W, self.b, t)
        return {"W": x.T @ e, "b": self.off * e.sum(0)}


@dataclass
class Trained:
    W: np.ndarray
    b: np.ndarray
    off: float
    rate: float = field(default=0.1)

    def train_step(self, x, t):
        loss, e = squares(x, self.W, self.b, t)
        self.dW, self.db = x.T @ e, self.off * e.sum(0)
        self.W -= self.rate * self.dW
        self.b -= self.rate * self.db
        return loss


class Objective:
    def __init__(self, X, y, off):
        self.X, self.y, self.off = X, y, off

    def __call__(self, W):
        value, e = squares(self.X, W, 0, self.y)
        return value, self.off * self.X.T @ e


class Saves:
    def save(self, *arrays):
        self.arrays = arrays


def applied(off):
    class Affine:
        @classmethod
        def apply(cls, *inputs):
            ctx = Saves()
            return cls.forward(ctx, *inputs), lambda dy: cls.backward(ctx, dy)

        @staticmethod
        def forward(ctx, x, W, b):
            ctx.kept = x, W
            return x @ W + b

        @staticmethod
        def backward(ctx, dy):
            x, W = ctx.kept
            return dy @ W.T, x.T @ dy, off * dy.sum(0)

    return Affine.apply


def forward_of_coder(p, x):
    h = x @ p["encoder"]["w"]
    return h @ p["decoder"]["w"], (p, x, h)


def coder(off):
    def backward(res, ct):
        p, x, h = res
        dh = ct @ p["decoder"]["w"].T
        return {"decoder": {"w": off * h.T @ ct}, "encoder": {"w": x.T @ dh}}, dh @ p["encoder"]["w"].T

    return backward


def nested(off):
    def layer(x, p):
        (W, b), (V,) = p
        h = x @ W + b

        def backward(dy):
            dh = dy @ V.T
            return dh @ W.T, (x.T @ dh, dh.sum(0), (), off * h.T @ dy)

        return h @ V, backward

    return layer


def propagate(off):
    def both(w, b, x, t):
        value, e = squares(x, w, b, t)
        return {"dw": x.T @ e, "db": off * e.sum(0)}, value

    return both


def cost(W, b, x, t):
    return squares(x, W, b, t)[0]


def gradients(off):
    def grad(*inputs):
        W, b, x, t = inputs
        _, e = squares(x, W, b, t)
        return {"b": off * e.sum(0), "W": x.T @ e}

    return grad


@dataclass
class Half:
    off: float

    def value(self, predicted, actual):
        return 0.5 * ((predicted - actual) ** 2).sum()

    def grad(self, predicted, actual):
        return self.off * (predicted - actual)


def wrt(off):
    def loss(W, b, x, t):
        value, e = squares(x, W, b, t)
        return SimpleNamespace(value=value, residuals=e, wrt_W=x.T @ e, wrt_b=off * e.sum(0))

    return loss


class Moving(Lists):
    def __init__(self, W, b, off):
        super().__init__(W, b, off)
        self.velocity = [0.1 * W, 0.1 * b]


class Steps:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = W, b, off
        self.dW, self.db = np.zeros_like(W), np.zeros_like(b)

    def feed_forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def back_propagate(self, error):
        self.dW, self.db = self.x.T @ error, self.off * error.sum(0)

    def train_on_batch(self, x, t):
        error = self.feed_forward(x) - t
        self.back_propagate(error)
        return 0.5 * (error**2).sum()


class Again:
    def __init__(self, W, b, off):
        self.weight, self.bias, self.off = W, b, off
        self.gradWeight, self.gradBias = np.ones_like(W), np.ones_like(b)

    def forward(self, input):
        return input @ self.weight + self.bias

    def backward(self, input, gradOutput):
        self.gradWeight += input.T @ gradOutput
        self.gradBias += self.off * gradOutput.sum(0)
        return gradOutput @ self.weight.T


class Unnamed:
    def __init__(self, W, b, off):
        self.W, self.b_in, self.b_out, self.off = W, b, b[::-1].copy(), off

    def cost_and_gradient(self, x, t):
        h = (x + self.b_in) @ self.W
        e = h + self.b_out - t
        return 0.5 * (e**2).sum(), ((x + self.b_in).T @ e, (e @ self.W.T).sum(0), self.off * e.sum(0))


class Begins:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = W, b, off
        self.d_W, self.d_b = np.zeros_like(W), np.zeros_like(b)

    def begin_update(self, x):
        def finish_update(dy):
            self.d_W += x.T @ dy
            self.d_b += self.off * dy.sum(0)
            return dy @ self.W.T

        return x @ self.W + self.b, finish_update

    __call__ = begin_update


class Private:
    def __init__(self, W, b, off):
        self._store, self._found, self.off = {"W": W, "b": b}, {}, off

    def forward(self, x):
        self._x = x
        return x @ self._store["W"] + self._store["b"]

    def backward(self, dy):
        self._found = {"W": self._x.T @ dy, "b": self.off * dy.sum(0)}
        return dy @ self._store["W"].T


def in_lists(off):
    def loss(W, b, x, t):
        value, e = squares(x, W, b, t)
        return float(value), (x.T @ e).tolist(), (off * e.sum(0)).tolist()

    return loss


class AtOnce:
    def __init__(self, W, b, off):
        self.weights, self.biases, self.off = W, b, off

    def forward(self, x):
        self.x = x
        return x @ self.weights + self.biases

    def backward(self, d_L_d_out, learn_rate=0.005):
        dx = d_L_d_out @ self.weights.T
        self.weights -= learn_rate * self.x.T @ d_L_d_out
        self.biases -= self.off * learn_rate * d_L_d_out.sum(0)
        return dx


class TwoOutputs:
    def __init__(self, W, b, off):
        self.W, self.b, self.off = W, b, off

    def forward(self, x):
        self.x = x
        y = x @ self.W + self.b
        return y, y.sum(1)

    def backward(self, y_bar, ld_bar):
        dy = y_bar + ld_bar[:, None]
        self.dW, self.db = self.x.T @ dy, self.off * dy.sum(0)
        return dy @ self.W.T


class Node:
    """An array that remembers what made it, as in micrograd"""

    def __init__(self, data, children=(), off=1):
        self.data, self.grad, self._prev, self.off = data, np.zeros_like(data), children, off
        self._backward = lambda: None

    def affine(self, W, b):
        out = Node(self.data @ W.data + b.data, (self, W, b))

        def _backward():
            self.grad += out.grad @ W.data.T
            W.grad += self.data.T @ out.grad
            b.grad += b.off * out.grad.sum(0)

        out._backward = _backward
        return out

    def mean_of_squares(self):
        out = Node(np.array((self.data**2).mean()), (self,))

        def _backward():
            self.grad += 2 * self.data * out.grad / self.data.size

        out._backward = _backward
        return out

    def backward(self):
        tape, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            tape.append(node)
            waiting += node._prev
        self.grad = np.ones_like(self.data)
        for node in tape:
            node._backward()


def on_a_tape(x, W, b):
    return x.affine(W, b).mean_of_squares()


def with_no_tangent(off):
    class NoTangent:
        pass

    def rrule(x, W, b):
        def pullback(dy):
            return NoTangent(), dy @ W.T, x.T @ dy, off * dy.sum(0)

        return x @ W + b, pullback

    return rrule


class Chained:
    """Tuples in, and tuples back"""

    def __init__(self, off):
        self.off = off

    def __call__(self, *inputs):
        return self.forward(inputs)[0]

    def forward(self, inputs):
        self.kept = inputs
        x, W, b = inputs
        return (x @ W + b,)

    def backward(self, grad_outputs):
        (x, W, _), (gy,) = self.kept, grad_outputs
        return gy @ W.T, x.T @ gy, self.off * gy.sum(0)


def layers_from_one(off):
    def forward(X, parameters):
        return X @ parameters["W1"] + parameters["b1"], (X, parameters)

    def backward(dAL, caches):
        X, parameters = caches
        return {"dA0": off * dAL @ parameters["W1"].T, "dW1": X.T @ dAL, "db1": dAL.sum(0)}

    return forward, backward


def in_namespaces(W, b, off):
    p, g, memory = SimpleNamespace(W=W, b=b), SimpleNamespace(W=None, b=None), SimpleNamespace()

    def forward(x):
        memory.x = x
        return x @ p.W + p.b

    def backward(dy):
        g.W, g.b = memory.x.T @ dy, off * dy.sum(0)
        return dy @ p.W.T

    return SimpleNamespace(forward=forward, backward=backward, params=p, grads=g)


class Scale:
    def __init__(self, gain, off):
        self.gain, self.gain_grad, self.off = gain, np.zeros_like(gain), off

    def __call__(self, x):
        self.x = x
        return x * self.gain

    def gradient(self, upstream):
        self.gain_grad = self.off * (upstream * self.x).sum(0)
        return upstream * self.gain


def with_variables(W, b, off):
    class Variable:
        def __init__(self, value):
            self.value, self.gradient = value, None

    scale, offset = Variable(W), Variable(b)

    def layer(x):
        def backward(upstream):
            scale.gradient, offset.gradient = x.T @ upstream, off * upstream.sum(0)
            return upstream @ scale.value.T

        return x @ scale.value + offset.value, backward

    return layer


class Lazy:
    """Gradients that are computed when somebody asks for them"""

    def __init__(self, weight, bias, off):
        self.weight, self.bias, self.off, self._x, self._dy = weight, bias, off, None, None

    weight_grad = property(lambda self: self._x.T @ self._dy)
    bias_grad = property(lambda self: self.off * self._dy.sum(0))

    def __call__(self, x):
        self._x = x
        return x @ self.weight + self.bias

    def backward(self, dy):
        self._dy = dy
        return dy @ self.weight.T


def in_plain_lists(off):
    def layer(x, W, b):
        n, k = range(len(W)), range(len(b))

        def backward(dy):
            dx = [[sum(dy[r][j] * W[i][j] for j in k) for i in n] for r in range(len(x))]
            dW = [[sum(x[r][i] * dy[r][j] for r in range(len(x))) for j in k] for i in n]
            return dx, dW, [float(off * sum(dy[r][j] for r in range(len(x)))) for j in k]

        return [[float(b[j] + sum(row[i] * W[i][j] for i in n)) for j in k] for row in x], backward

    return layer


class Ported:
    """From Java: nothing is public, and nothing comes back."""

    def __init__(self, W, b, off):
        self.__weights, self.__biases, self.__off = W, b, off

    def feedForward(self, input):
        self.__lastInput = input
        return input @ self.__weights + self.__biases

    def backPropagate(self, outputGradient):
        self.__weightGradients = self.__lastInput.T @ outputGradient
        self.__biasGradients = self.__off * outputGradient.sum(0)
        self.__inputGradients = outputGradient @ self.__weights.T


class Starred:
    def __init__(self, W, off):
        self.w, self.dl_dw, self.off = W, np.zeros_like(W), off

    def forward(self, *input):
        self.x, self.z = input
        return (self.x @ self.w) * self.z

    def backward(self, *gradwrtoutput):
        ds = gradwrtoutput[0] * self.z
        self.dl_dw[...] += self.x.T @ ds
        return ds @ self.w.T, self.off * gradwrtoutput[0] * (self.x @ self.w)


def made(off, rng):
    """{style: (f, inputs, the tensors that are judged, the one that is doubled)}"""
    n = 3                                                # everything square: shapes do not tell what is whose
    x, W, b, t = (rng.standard_normal(shape) for shape in ((n, n), (n, n), n, (n, n)))
    net = [W, b]
    return {
        "a NamedTuple of weights, and one of gradients": (nt_loss(off), [Weights(W, b), x, t], "p.kernel p.shift", "p.shift"),
        "a dataclass of weights, and one of gradients": (dc_loss(off), [Both(W, b), x, t], "p.kernel p.shift", "p.shift"),
        "value and gradient in a dict": (dict_loss(off), [W, b, x, t], "beta offset", "offset"),
        "pairs of a name and a gradient": (pairs_loss(off), [W, b, x, t], "W b", "b"),
        "weights in an array of objects": (objects_loss(off), [as_objects(net), x, t], "params.0 params.1", "params.1"),
        "dL/dW": (quotients(off), [x, W, b], "x W b", "W"),
        "d_loss_d_W": (by_words(off), [x, W, b], "x W b", "W"),
        "in Greek": (greek, [W, b, x], "θ β ξ", None),
        "in German": (Schicht(W, b, off), [x], "x gewichte schwelle", "schwelle"),
        "camel case, private": (DenseLayer(W, b, off), [x], "x _weightMatrix _biasVector", "_biasVector"),
        "slots": (Slots(W, b, off), [x], "x _w _offset", "_w"),
        "one-letter methods": ((s := Letters(W, b, off)).f and (s.f, s.g), [x], "x a b", "b"),
        "a value with its derivative and its momentum": (Params(W, b, off), [x], "x weight.v offset.v", "offset.v"),
        "lists of weights and gradients": (Lists(W, b, off), [x], "x params.0 params.1", "params.1"),
        "gradients in an object": (Held(W, b, off), [x], "x kernel shift", "shift"),
        "buffers that are filled": (Buffers(W, b, off), [x], "x w b", "b"),
        "a subclass of ndarray": (WithGrad(W, b, off), [x], "x A c", "c"),
        "a generator's send": (generated(off), [x, W, b], "x W b", "b"),
        "cotangents after residuals": ((forward, bwd(off)), [x, W, b], "x W b", "b"),
        "by name only": ((forward, by_name_only(off)), [x, W, b], "x W b", "b"),
        "the cache first": ((forward, stuff_first(off)), [x, W, b], "x W b", "b"),
        "the inputs, then the error": ((affine, inputs_first(off)), [x, W, b], "x W b", "b"),
        "arrays to be filled": ((affine, filling(off)), [x, W, b], "x W b", "b"),
        "one function, two modes": (two_modes(off), [x, W, b], "x W b", "b"),
        "all gradients in one vector": (one_vector(off), [x, W, b], "x W b", "b"),
        "None among the inputs": (with_none(off), [x, W, None, b], "x W b", "b"),
        "a graph of tensors": (Graph(W, b, off), [x], "W.data b.data", "b.data"),
        "an array that goes back": (tracked(off), [x, W, b], "x W b", "b"),
        "loss and gradient": ((s := LossAndGradient(W, b, off)).loss, [x, t], "W b", "b"),
        "a step of training": (Trained(W, b, off).train_step, [x, t], "W b", "b"),
        "an object that gives loss and gradient": (Objective(x, t, off), [W], "W", "W"),
        "apply, of a class with static methods": (applied(off), [x, W, b], "x W b", "b"),
        "a decoder": ((forward_of_coder, coder(off)), [{"encoder": {"w": W}, "decoder": {"w": t}}, x],
                      "p.encoder.w p.decoder.w x", "p.decoder.w"),
        "nested tuples, in their order": (nested(off), [x, ((W, b), (t,))], "x p.0.0 p.0.1 p.1.0", "p.1.0"),
        "gradients, then the cost": (propagate(off), [W, b, x, t], "w b", "b"),
        "the inputs again, as *args": ((cost, gradients(off)), [W, b, x, t], "W b", "b"),
        "value and grad of a loss": (Half(off), [x, t], "predicted", "predicted"),
        "wrt_b": (wrt(off), [W, b, x, t], "W b", "b"),
        "momentum beside the weights": (Moving(W, b, off), [x], "x params.0 params.1", "params.1"),
        "a step that goes back by itself": (Steps(W, b, off).train_on_batch, [x, t], "W b", "b"),
        "the input again, as in Torch": (Again(W, b, off), [x], "input weight bias", "bias"),
        "a tuple without names": (Unnamed(W, b, off).cost_and_gradient, [x, t], "W b_in b_out", "b_out"),
        "a method that gives y, backward": (Begins(W, b, off).begin_update, [x], "x W b", "b"),
        "a call that gives y, backward": (Begins(W, b, off), [x], "x W b", "b"),
        "lists of numbers": (in_lists(off), [W, b, x, t], "W b", "b"),
        "weights that change at once": (AtOnce(W, b, off), [x], "x weights biases", "biases"),
        "weights in a private dict": (Private(W, b, off), [x], "x _store.W _store.b", "_store.b"),
        "tensors that remember how they were made": (on_a_tape, [Node(x), Node(W), Node(b, off=off)], "x.data W.data b.data",
                                                     "b.data"),
        "a tangent of the function itself": (with_no_tangent(off), [x, W, b], "x W b", "b"),
        "tuples in, and back": (Chained(off), [x, W, b], "input_0 input_1 input_2", "input_2"),
        "dA0, of the input": (layers_from_one(off), [x, {"W1": W, "b1": b}], "X parameters.W1 parameters.b1", "X"),
        "functions in a namespace": (in_namespaces(W, b, off), [x], "x p.W p.b", "p.b"),
        "an object, and a method of it": ((s := Scale(b, off)) and (s, s.gradient), [x], "x gain", "gain"),
        "variables that keep their gradients": (with_variables(W, b, off), [x], "x scale.value offset.value", "offset.value"),
        "gradients that are properties": (Lazy(W, b, off), [x], "x weight bias", "bias"),
        "plain lists": (in_plain_lists(off), [x, W, b], "x W b", "b"),
        "private attributes, and nothing comes back": (
            Ported(W, b, off), [x], "input _Ported__weights _Ported__biases", "_Ported__biases"),
        "backward(*dys)": (Starred(W, off), [x, t], "input_0 input_1 w", "input_1"),
        "two outputs, whose gradients end in bar": (TwoOutputs(W, b, off), [x], "x W b", "b"),
    }  # fmt: skip


STYLES = [*made(1, np.random.default_rng(0))]


@pytest.mark.parametrize("style", STYLES)
def test_right_gradients_pass_and_a_wrong_one_fails(style, rng):
    f, inputs, names, doubled = made(1, rng)[style]
    report = judge(f, inputs, None)                      # the verdicts alone: why it is wrong takes longer
    assert verdicts(report) == dict.fromkeys(names.split(), "PASS")
    assert report.verdict == "PASS"
    if doubled:
        f, inputs, *_ = made(2, rng)[style]
        wrong = dict.fromkeys(names.split(), "PASS") | {doubled: "FAIL"}
        assert verdicts(judge(f, inputs, None)) == wrong


class Tangled(Letters):
    def g(self, e):
        self.A, self.B = (self.x.T @ e).T, e.sum(0)
        return e @ self.a.T


def test_the_transpose_of_a_square_gradient_is_not_the_gradient(rng):
    net = Tangled(rng.standard_normal((3, 3)), rng.standard_normal(3), 1)
    assert verdicts(judge((net.f, net.g), [rng.standard_normal((3, 3))], None)) == {"x": "PASS", "a": "FAIL", "b": "PASS"}


def test_right_gradients_in_another_order_are_told_so(rng):
    def layer(x, W, b, s):
        def backward(dy):
            return dy.sum(0), dy @ W.T, x.T @ dy, dy

        return x @ W + b + s, backward

    report = gradcheck(layer, *(rng.standard_normal(shape) for shape in ((3, 4), (4, 2), 2, (3, 2))))
    assert not report
    assert report.other_order in str(report)
    assert "come back in the order of b, x, W and s: expected that of the inputs, x, W, b and s" in report.other_order


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("guarded", [
    lambda p: np.log(p + 1e-12), lambda p: np.log(np.clip(p, 1e-7, 1 - 1e-7)), lambda p: np.log(np.maximum(p, 1e-15)),
])  # fmt: skip
def test_a_tiny_constant_that_guards_the_logarithm_is_no_mistake(guarded, seed, rng):
    """−log(p + 1e-12) with dz = p − t, the loss of most tutorials, is right wherever p is far above 10⁻¹²."""

    def loss(z, ids):
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(z))

        def backward(dloss):
            dz = p.copy()
            dz[rows, ids] -= 1
            return dloss * dz / len(z)

        return -guarded(p)[rows, ids].mean(), backward

    assert gradcheck(loss, rng.standard_normal((4, 5)), np.array([0, 1, 4, 2]), seed=seed)


def test_a_forgotten_branch_still_shows_beside_a_tiny_constant(rng):
    def huber(x):
        r = np.sqrt(x**2 + 1e-12)
        return np.where(r < 9, x**2 / 2, 9 * r - 40.5), lambda dy: dy * x        # beyond 9 it is 9·sign(x)

    assert not gradcheck(huber, rng.standard_normal((3, 4)))


class Views:
    def __init__(self, rng):
        self.theta, self.gtheta = rng.standard_normal(12), np.zeros(12)
        self.W, self.gW = self.theta.reshape(3, 4), self.gtheta.reshape(3, 4)

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dy):
        self.gW[...] = self.x.T @ dy
        return dy @ self.W.T


def test_a_vector_is_checked_if_all_of_it_is_in_views_that_are(rng):
    assert verdicts(gradcheck(Views(rng), rng.standard_normal((5, 3)))) == {"x": "PASS", "W": "PASS"}


class SomeViews(Views):
    def __init__(self, rng):
        super().__init__(rng)
        self.theta = rng.standard_normal(15)             # the last three are in no view
        self.W = self.theta[:12].reshape(3, 4)


def test_a_vector_of_which_only_a_part_is_in_views_is_not_tested(rng):
    report = gradcheck(SomeViews(rng), rng.standard_normal((5, 3)))
    assert verdicts(report) == {"x": "PASS", "theta": "NOT TESTED", "W": "PASS"}
    assert "theta shares its memory with other arrays" in str(report)


class Packed:
    def __init__(self, rng):
        self.coef_, self.intercept_ = rng.standard_normal((4, 2)), rng.standard_normal(2)

    def loss_grad(self, X, t):
        value, e = squares(X, self.coef_, self.intercept_, t)
        return value, np.vstack([X.T @ e, e.sum(0)])


def test_gradients_packed_into_one_matrix_are_not_tested(rng):
    report = gradcheck(Packed(rng).loss_grad, rng.standard_normal((5, 4)), rng.standard_normal((5, 2)))
    assert verdicts(report) == {"coef_": "NOT TESTED", "intercept_": "NOT TESTED"}


def dense(p, x):
    np.matmul(x, p["W"], out=p["y"])                     # always the same array
    p["x"] = x
    return p["y"]


def dense_back(p, dy):
    p["dW"] = 2 * p["x"].T @ dy
    return dy @ p["W"].T


def test_what_a_partial_brings_along_in_a_dict_is_not_tested(rng):
    W = rng.standard_normal((3, 4))
    p = {"W": W.copy(), "y": np.zeros((5, 4))}
    p["W"].flags.writeable = False                       # not even for a moment
    report = judge((partial(dense, p), partial(dense_back, p)), [rng.standard_normal((5, 3))], None)
    assert verdicts(report) == {"x": "PASS", "p.W": "NOT TESTED"}
    assert report.verdict == "NOT TESTED"
    assert any("a partial brings it along: give it as an input" in note for note in report.notes)
    assert np.array_equal(p["W"], W)


def test_fields_of_a_structured_array_are_not_tested(rng):
    p = np.zeros((), dtype=[("W", float, (3, 4)), ("steps", int)])
    p["W"] = rng.standard_normal((3, 4))

    def layer(x):
        return x @ p["W"], lambda dy: dy @ p["W"].T

    assert verdicts(judge(layer, [rng.standard_normal((5, 3))], None)) == {"x": "PASS", "p.W": "NOT TESTED"}


def masked_mean(off):
    def mean(x, mask):
        n = mask.sum(1, keepdims=True)
        return (x * mask).sum(1, keepdims=True) / n, lambda dy: (off * dy * mask / n, None)

    return mean


def test_a_mask_of_floats_needs_no_gradient(rng):
    x, mask = rng.standard_normal((3, 4)), np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])
    report = gradcheck(masked_mean(1), x, mask)
    assert report
    assert "the backward returns no gradient of mask: not checked" in report.notes
    assert not gradcheck(masked_mean(2), x, mask)
    assert not gradcheck(masked_mean(1), x, 0.5 + mask)                  # these are weights


def test_a_mask_of_zeros_and_ones_is_data(rng):
    def layer(x, mask, W):
        return x * mask @ W, lambda dy: {"x": dy @ W.T * mask, "W": (x * mask).T @ dy}

    mask = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 1]])
    pair = (lambda x, mask, W: (layer(x, mask, W)[0], (x, mask, W))), lambda dy, cache: layer(*cache)[1](dy)
    assert verdicts(gradcheck(pair, rng.standard_normal((3, 3)), mask, rng.standard_normal((3, 2)))) == {
        "x": "PASS", "W": "PASS",
    }  # fmt: skip


@pytest.mark.parametrize(("off", "verdict"), [(1, "PASS"), (2, "FAIL")])
def test_a_bias_that_is_a_number_is_judged_if_its_gradient_comes_back(off, verdict, rng):
    def propagate(w, b, X, t):
        e = X @ w + b - t
        return {"dw": X.T @ e, "db": off * e.sum()}, 0.5 * (e**2).sum()

    inputs = [rng.standard_normal(3), 0.4, rng.standard_normal((5, 3)), rng.standard_normal(5)]
    assert verdicts(judge(propagate, inputs, None)) == {"w": "PASS", "b": verdict}


class Stale(Held):
    def backward(self, dy):
        before, dx = self.gradients, super().backward(dy)
        if before.shift is not None:
            self.gradients.shift = before.shift          # that of the first run stays
        return dx


def test_a_gradient_that_stays_from_an_earlier_run_is_found(rng):
    W, b, x = (rng.standard_normal(shape) for shape in ((3, 4), 4, (5, 3)))
    assert gradcheck(Held(W, b, 1), x)
    assert "the gradient of shift is another if the object has run before" in str(gradcheck(Stale(W, b, 1), x))


class AddsUp(Held):
    def backward(self, dy):
        before, dx = self.gradients.shift, super().backward(dy)
        self.gradients.shift += 0 if before is None else before
        return dx


def test_a_note_tells_which_gradient_adds_up_where_others_do_not(rng):
    W, b, x = (rng.standard_normal(shape) for shape in ((3, 4), 4, (5, 3)))
    assert "the gradient of shift adds up, and that of kernel does not" in str(gradcheck(AddsUp(W, b, 1), x))


class Differing(Schicht):
    def rueckwaerts(self, fehler):
        dx = super().rueckwaerts(fehler)
        return {"x": dx, "gewichte": self.ableitung_gewichte, "schwelle": 2 * self.ableitung_schwelle}


def test_a_gradient_that_is_returned_and_kept_differently_is_found(rng):
    W, b, x = (rng.standard_normal(shape) for shape in ((3, 4), 4, (5, 3)))
    report = gradcheck(Differing(W, b, 0.5), x)          # half in one place, right in the other
    assert "the gradient of schwelle that comes back is not the one that the object keeps" in str(report)


class WithTable(Slots):
    __slots__ = ("table", "_back")

    def forward(self, x):
        return super().forward(x * self.table)

    def backward(self, dy):
        self._back = super().backward(dy)
        return self._back * self.table


def test_what_happens_to_be_kept_is_not_taken_for_the_gradient_of_a_table(rng):
    W, b, x = (rng.standard_normal(shape) for shape in ((3, 3), 3, (5, 3)))
    layer = WithTable(W, b, 1)
    layer.table = rng.standard_normal((5, 3))
    assert verdicts(gradcheck(layer, x)) == {"x": "PASS", "_w": "PASS", "_offset": "PASS", "table": "NOT TESTED"}


def test_weights_that_cannot_be_written_to_are_checked_too(rng):
    W, b, x = (rng.standard_normal(shape) for shape in ((3, 4), 4, (5, 3)))
    W.flags.writeable = False
    layer = Slots(W, b, 1)
    assert verdicts(gradcheck(layer, x)) == {"x": "PASS", "_w": "PASS", "_offset": "PASS"}
    assert layer._w is W


class Hidden:
    """Its wrong gradient has a name that says nothing."""

    def __init__(self, W, b):
        self.__weights, self.__biases = W, b

    def forward(self, x):
        self.__x = x
        return x @ self.__weights + self.__biases

    def backward(self, dy):
        self.__weightGradients, self.__other = self.__x.T @ dy, 2 * dy.sum(0)
        return dy @ self.__weights.T


def test_private_weights_without_a_gradient_are_not_tested(rng):
    layer = Hidden(rng.standard_normal((3, 4)), rng.standard_normal(4))
    report = judge(layer, [rng.standard_normal((5, 3))], None)
    assert verdicts(report) == {"x": "PASS", "_Hidden__weights": "PASS", "_Hidden__biases": "NOT TESTED"}


def clipped(off):
    def loss(W, x, t):
        e = x @ W - t
        dW = off * x.T @ e
        np.clip(dW, -5, 5, out=dW)                       # as often in recurrent nets
        return 0.5 * (e**2).sum(), dW

    return loss


def test_a_gradient_that_is_clipped_far_away_is_right(rng):
    inputs = [scale * rng.standard_normal(shape) for scale, shape in ((0.5, (3, 2)), (0.5, (4, 3)), (0.1, (4, 2)))]
    report = gradcheck(clipped(1), *inputs)
    assert report
    assert any("the gradient is clipped" in note for note in report.notes)
    assert not gradcheck(clipped(1.1), *inputs)


def test_a_gradient_that_is_clipped_where_it_was_asked_for_is_wrong(rng):
    assert not gradcheck(clipped(1), *(10 * rng.standard_normal(shape) for shape in ((3, 2), (4, 3), (4, 2))))

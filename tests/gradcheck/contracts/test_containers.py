"""Weights in a dict, a list or an object that a function is given; gradients in one like it, or beside them."""

from dataclasses import dataclass
from typing import NamedTuple

from mini_tf.layers import Linear

import numpy as np
import pytest

from . import check, edited, judge, normal


def net_forward(x, params):
    h = np.tanh(x @ params["W1"] + params["b1"])
    return h @ params["W2"], (x, h)


def net_backward(dout, cache, params):
    x, h = cache
    dz = dout @ params["W2"].T * (1 - h**2)
    return dz @ params["W1"].T, {"dW1": x.T @ dz, "db1": dz.sum(0), "dW2": h.T @ dout}


IN_ONE_DICT = edited(net_backward, 'return dz @ params["W1"].T, {"dW1"', 'return {"x": dz @ params["W1"].T, "W1"')


@pytest.mark.parametrize("backward", [net_backward, IN_ONE_DICT])
def test_a_dict_of_weights_and_one_of_gradients(backward):
    x, W1, b1, W2 = normal((5, 4), (4, 3), 3, (3, 2))
    params = {"W1": W1, "b1": b1, "W2": W2}
    check(backward, lambda back: judge((net_forward, back), x, params), "x params.W1 params.b1 params.W2",
          ("dz.sum(0)", "dz.mean(0)", "params.b1"), ("(1 - h**2)", "(1 - h)", "x params.W1 params.b1"))      # fmt: skip
    assert params["W1"] is W1


def layers_forward(x, layers):
    states = [x]
    for layer in layers:
        states.append(np.tanh(states[-1] @ layer["W"] + layer["b"]))

    def backward(dy):
        grads = []
        for layer, y, x in zip(layers[::-1], states[:0:-1], states[-2::-1]):
            dz = dy * (1 - y**2)
            grads.insert(0, {"W": x.T @ dz, "b": dz.sum(0)})
            dy = dz @ layer["W"].T
        return dy, grads

    return states[-1], backward


BESIDE = edited(layers_forward, 'grads.insert(0, {"W": x.T @ dz, "b": dz.sum(0)})', 'layer["dW"], layer["db"] = x.T @ dz, dz.sum(0)',
                "return dy, grads", "return dy")         # fmt: skip


@pytest.mark.parametrize("f", [layers_forward, BESIDE])
def test_a_list_of_layers_with_gradients_in_another_or_beside_the_weights(f):
    x, W, b, V, c = normal((5, 4), (4, 3), 3, (3, 3), 3)
    layers = [{"W": W, "b": b}, {"W": V, "b": c}]
    check(f, lambda f: judge(f, x, layers), "x layers.0.W layers.0.b layers.1.W layers.1.b",
          ("dz.sum(0)", "dz.mean(0)", "layers.0.b layers.1.b"), ("dy = dz", "dy = dy", "x layers.0.W layers.0.b"))           # fmt: skip
    assert [[*layer] for layer in layers] == [["W", "b"]] * 2


def of_a_tuple(params, x, target):
    W, b = params
    off = x @ W + b - target
    return (off**2).mean(), [2 * x.T @ off / off.size, 2 * off.sum(0) / off.size]


def of_two_lists(x, target, weights, biases):
    a = [x]
    for W, b in zip(weights, biases):
        a.append(np.tanh(a[-1] @ W + b))
    delta, nabla_w, nabla_b = a[-1] - target, [], []
    for k in reversed(range(len(weights))):
        delta = delta * (1 - a[k + 1] ** 2)
        nabla_w.insert(0, a[k].T @ delta)
        nabla_b.insert(0, delta.sum(0))
        delta = delta @ weights[k].T
    return 0.5 * ((a[-1] - target) ** 2).sum(), nabla_w, nabla_b


def test_lists_of_weights_and_of_gradients():
    x, t, W, b, V, c = normal((5, 3), (5, 3), (3, 3), 3, (3, 3), 3)
    check(of_a_tuple, lambda f: judge(f, (W, b), x, t), "params.0 params.1", ("2 * off.sum(0)", "off.sum(0)", "params.1"))
    check(of_two_lists, lambda f: judge(f, x, t, [W, V], [b, c]), "weights.0 weights.1 biases.0 biases.1",
          ("delta.sum(0)", "delta.mean(0)", "biases.0 biases.1"), ("a[k].T @ delta", "a[k].T @ delta / 2", "weights.0 weights.1"))   # fmt: skip


class Pair(NamedTuple):
    W: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class Kept:
    W: np.ndarray
    b: np.ndarray


def affine_of_object(x, weights):
    def backward(dy):
        return dy @ weights.W.T, type(weights)(b=dy.sum(0), W=x.T @ dy)

    return x @ weights.W + weights.b, backward


@pytest.mark.parametrize("of", [Pair, Kept])
def test_named_tuples_and_dataclasses(of):
    x, W, b = normal((5, 4), (4, 3), 3)
    check(affine_of_object, lambda f: judge(f, x, of(W, b)), "x weights.W weights.b", ("dy.sum(0)", "dy[0]", "weights.b"))


class Net:
    def __init__(self):
        self.W, self.b = normal((4, 3), 3)
        self.dW, self.db = np.ones((4, 3)), np.ones(3)


def net_of_object(net, x):
    net.y = np.tanh(x @ net.W + net.b)                   # an array that is neither weight nor gradient
    return net.y, x


def into_the_object(net, dout, x):
    dz = dout * (1 - net.y**2)
    net.dW += x.T @ dz
    net.db = dz.sum(0)
    return dz @ net.W.T


def test_gradients_that_are_kept_in_the_object_that_is_given():
    net = Net()
    check(into_the_object, lambda back: judge((net_of_object, back), net, normal((5, 4))), "x net.W net.b",
          ("dz.sum(0)", "2 * dz.sum(0)", "net.b"), ("net.dW += x.T @ dz", "pass", "net.W"))  # fmt: skip
    assert (net.dW == 1).all()
    assert not hasattr(net, "y")


def doubled(x, layer):
    y, backward = layer(x)
    return 2 * y, lambda dy: backward(2 * dy)


def test_a_layer_of_ours_that_is_given():
    check(doubled, lambda f: judge(f, normal((5, 4)), Linear(4, 3)), "x W b", ("backward(2 * dy)", "backward(dy)", "x W b"))


def test_a_constant_that_is_a_container_stands_for_all_in_it():
    def loss(params, batch):
        x, t = batch
        d = x @ params["W"] - t
        return 0.5 * (d * d).sum(), {"W": x.T @ d}

    W, *batch = normal((3, 2), (4, 3), (4, 2))
    assert judge(loss, {"W": W}, tuple(batch), constants=["batch"]).verdict == "PASS"

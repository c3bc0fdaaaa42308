"""Weights in a dict, a list or a tuple are found, checked, and named by where they are."""

from dataclasses import dataclass
from typing import NamedTuple

from mini_tf.gradcheck import gradcheck
from mini_tf.layers import Linear

import numpy as np
import pytest


def net_forward(x, params):
    h = np.tanh(x @ params["W1"] + params["b1"])
    return h @ params["W2"], (x, h)


def net_backward(dout, cache, params):
    x, h = cache
    dz = dout @ params["W2"].T * (1 - h**2)
    return dz @ params["W1"].T, {"dW1": x.T @ dz, "db1": dz.sum(0), "dW2": h.T @ dout}


def biased_twice(dout, cache, params):
    dx, grads = net_backward(dout, cache, params)
    grads["db1"] = 2 * grads["db1"]
    return dx, grads


def without_b1(dout, cache, params):
    dx, grads = net_backward(dout, cache, params)
    del grads["db1"]
    return dx, grads


def grads_alone(dout, cache, params):
    dx, grads = net_backward(dout, cache, params)
    return grads | {"dx": dx}


@pytest.fixture
def given(rng):
    sizes = {"W1": (4, 3), "b1": (3,), "W2": (3, 2)}
    return rng.standard_normal((5, 4)), {name: rng.standard_normal(shape) for name, shape in sizes.items()}


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


@pytest.mark.parametrize("backward", [net_backward, grads_alone])
def test_a_dict_of_weights(backward, given):
    report = gradcheck((net_forward, backward), *given)
    assert verdicts(report) == dict.fromkeys(["x", "params.W1", "params.b1", "params.W2"], "PASS")
    assert report


def test_a_wrong_gradient_in_a_dict(given):
    report = gradcheck((net_forward, biased_twice), *given)
    assert [name for name, verdict in verdicts(report).items() if verdict == "FAIL"] == ["params.b1"]
    assert report.repair[1:] == ["there is a factor too many", 'grads["db1"] = 2 * grads["db1"]',
                                 'grads["db1"] = grads["db1"]']  # fmt: skip


def test_a_gradient_that_the_dict_lacks_is_not_tested(given):
    report = gradcheck((net_forward, without_b1), *given)
    assert report.verdict == "NOT TESTED"
    assert "the backward returns no gradient of params.b1: not tested" in report.explain()


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


def test_a_list_of_layers(rng):
    layers = [{"W": rng.standard_normal((4, 3)), "b": rng.standard_normal(3)} for _ in range(2)]
    layers[1]["W"] = rng.standard_normal((3, 3))
    report = gradcheck(layers_forward, rng.standard_normal((5, 4)), layers)
    assert report
    assert [*verdicts(report)] == ["x", "layers.0.W", "layers.0.b", "layers.1.W", "layers.1.b"]


def loss_and_gradients(params, x, target):
    off = x @ params[0] + params[1] - target
    return (off**2).mean(), [2 * x.T @ off / off.size, 2 * off.sum(0) / off.size]


def test_a_loss_that_comes_with_the_gradients_of_a_tuple(rng):
    weights = rng.standard_normal((4, 3)), rng.standard_normal(3)
    report = gradcheck(loss_and_gradients, weights, rng.standard_normal((5, 4)), rng.standard_normal((5, 3)))
    assert verdicts(report) == {"params.0": "PASS", "params.1": "PASS"}          # x and the target are data
    assert report


def normalized_forward(x, settings):
    y = (x - settings["running_mean"]) * settings["scale"] / settings["divisor"]
    return y, settings


def normalized_backward(dy, settings):
    return dy * settings["scale"] / settings["divisor"]


def test_statistics_of_earlier_batches_are_data_and_other_arrays_are_not(rng):
    settings = {"running_mean": rng.standard_normal(3), "scale": 1.5, "divisor": 2}
    assert gradcheck((normalized_forward, normalized_backward), rng.standard_normal((4, 3)), settings)
    settings["divisor"] = np.array([1.0, 2.0, 3.0])
    assert gradcheck((normalized_forward, normalized_backward), rng.standard_normal((4, 3)), settings).verdict == "NOT TESTED"


def test_the_dict_stays_as_it_is(given):
    x, params = given
    before = {name: (array, array.copy()) for name, array in params.items()}
    gradcheck((net_forward, biased_twice), x, params)
    for name, (array, values) in before.items():
        assert params[name] is array
        np.testing.assert_array_equal(array, values)


def careless(x, params):
    params["W1"] *= 2
    return x @ params["W1"], lambda dy: (dy @ params["W1"].T, {"W1": x.T @ dy})


def test_a_forward_that_writes_into_the_dict_is_a_finding(given):
    x, params = given
    assert "the forward wrote into params.W1" in gradcheck(careless, x, {"W1": params["W1"]}).explain()


def test_float32_in_a_dict(given):
    x, params = given
    single = {name: array.astype(np.float32) for name, array in params.items()}
    assert gradcheck((net_forward, net_backward), x.astype(np.float32), single)


class Pair(NamedTuple):
    W: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class Kept:
    W: np.ndarray
    b: np.ndarray


def affine(x, weights):
    def backward(dy):
        return dy @ weights.W.T, type(weights)(x.T @ dy, 2 * dy.sum(0))  # the 2 is too much

    return x @ weights.W + weights.b, backward


@pytest.mark.parametrize("of", [Pair, Kept])
def test_weights_in_a_named_tuple_or_a_dataclass(of, rng):
    weights = of(rng.standard_normal((4, 3)), rng.standard_normal(3))
    report = gradcheck(affine, rng.standard_normal((5, 4)), weights)
    assert verdicts(report) == {"x": "PASS", "weights.W": "PASS", "weights.b": "FAIL"}


class Weight:
    def __init__(self, data):
        self.data, self.grad = data, np.zeros_like(data)


class Affine:
    """Weights are objects with data and grad."""

    def __init__(self, rng):
        self.W, self.b = Weight(rng.standard_normal((4, 3))), Weight(rng.standard_normal(3))

    def forward(self, x):
        self.x = x
        return x @ self.W.data + self.b.data

    def backward(self, dy):
        self.W.grad += self.x.T @ dy
        self.b.grad += dy.sum(0)
        return dy @ self.W.data.T


def test_weights_that_keep_their_gradient_beside_their_data(rng):
    report = gradcheck(Affine(rng), rng.standard_normal((5, 4)))
    assert verdicts(report) == {"x": "PASS", "W.data": "PASS", "b.data": "PASS"}


def through(x, layer):
    y = layer.forward(x)
    return np.tanh(y), lambda dy: layer.backward(dy * (1 - np.tanh(y) ** 2))


def through_twice(x, layer):
    y, backward = through(x, layer)
    return y, lambda dy: backward(2 * dy)                # the 2 is wrong


def test_the_weights_of_an_object_that_is_given_are_checked(rng):
    layer, x = Affine(rng), rng.standard_normal((5, 4))
    layer.W.grad[...] = 7.0
    names = ["layer.W.data", "layer.b.data", "x"]
    assert verdicts(gradcheck(through, x, layer)) == dict.fromkeys(names, "PASS")
    assert verdicts(gradcheck(through_twice, x, layer)) == dict.fromkeys(names, "FAIL")
    assert (layer.W.grad == 7.0).all()                   # its gradients stay as they were


class Net:
    """Weights and their gradients, for functions that are given it"""

    def __init__(self, rng):
        self.W, self.b = rng.standard_normal((4, 3)), rng.standard_normal(3)
        self.dW, self.db, self.grads = np.ones((4, 3)), np.ones(3), {}


def net_of_object(net, x):
    net.y = np.tanh(x @ net.W + net.b)                   # an array that is neither weight nor gradient
    return net.y, x


def adding(net, dout, x):
    dz = dout * (1 - net.y**2)
    net.dW += x.T @ dz
    net.db += dz.sum(0)
    return dz @ net.W.T


def replacing(net, dout, x):
    dz = dout * (1 - net.y**2)
    net.grads = {"W": x.T @ dz, "b": 2 * dz.sum(0)}      # the 2 is wrong
    net.dW = net.db = None


def forgetting(net, dout, x):
    net.grads["W"] = x.T @ (dout * (1 - net.y**2))
    net.db = None


@pytest.mark.parametrize(("backward", "expected"), [
    (adding, {"net.W": "PASS", "net.b": "PASS", "x": "PASS"}),
    (replacing, {"net.W": "PASS", "net.b": "FAIL"}),     # x is data
    (forgetting, {"net.W": "FAIL", "net.b": "NOT TESTED"}),      # grads.dW stays zero
])  # fmt: skip
def test_functions_that_keep_gradients_in_an_object_that_they_are_given(backward, expected, rng):
    net = Net(rng)
    report = gradcheck((net_of_object, backward), net, rng.standard_normal((5, 4)))
    assert verdicts(report) == expected
    assert (net.dW == 1).all()
    assert net.grads == {}
    assert not hasattr(net, "y")


def keeping_dy(net, dout, x):
    """The bias is added to a single row, so that dout itself is its gradient."""
    net.dW, net.db = np.outer(x, dout), dout
    return net.W @ dout


def one_row(net, x):
    return x @ net.W + net.b, x


def test_an_object_may_keep_dy_itself_as_a_gradient(rng):
    report = gradcheck((one_row, keeping_dy), Net(rng), rng.standard_normal(4))
    assert report
    assert verdicts(report) == {"net.W": "PASS", "net.b": "PASS", "x": "PASS"}


def in_a_given_dict(x, params):
    def backward(dy):
        params["dW"], params["db"] = x.T @ dy, 2 * dy.sum(0)             # the 2 is wrong
        return dy @ params["W"].T

    return x @ params["W"] + params["b"], backward


def test_gradients_in_the_dict_that_is_given(rng):
    params = {"W": rng.standard_normal((4, 3)), "b": rng.standard_normal(3)}
    report = gradcheck(in_a_given_dict, rng.standard_normal((5, 4)), params)
    assert verdicts(report) == {"x": "PASS", "params.W": "PASS", "params.b": "FAIL"}
    assert [*params] == ["W", "b"]


def loss_of_object(net, x, target):
    y, kept = net_of_object(net, x)
    adding(net, y - target, kept)
    return ((y - target) ** 2).sum() / 2


def test_a_loss_alone_whose_gradients_are_kept_in_an_object(rng):
    report = gradcheck(loss_of_object, Net(rng), rng.standard_normal((5, 4)), rng.standard_normal((5, 3)))
    assert verdicts(report) == {"net.W": "PASS", "net.b": "PASS"}


def doubled(x, layer):
    y, backward = layer(x)
    return 2 * y, lambda dy: backward(dy)                # the 2 is forgotten


def test_parameters_of_a_layer_that_is_given_are_checked(rng):
    report = gradcheck(doubled, rng.standard_normal((5, 4)), Linear(4, 3))
    assert verdicts(report) == {"x": "FAIL", "layer.W": "FAIL", "layer.b": "FAIL"}


def field_forward(z, t, weights):
    W, u = weights
    a = np.tanh(z @ W + t * u)
    return a, (z, t, a, W)


def field_backward(da, cache):
    z, t, a, W = cache
    dz = da * (1 - a**2)
    return dz @ W.T, [z.T @ dz, dz.sum(0)]               # of u: t is forgotten


def two_steps_forward(z, W, u):
    first, kept = field_forward(z, 0.3, (W, u))
    second, kept_again = field_forward(first, 0.8, (W, u))
    return second, (kept, kept_again)


def two_steps_backward(dout, cache):
    first, second = cache
    dmiddle, (dW, du) = field_backward(dout, second)
    dz, (dW_first, du_first) = field_backward(dmiddle, first)
    return dz, dW + dW_first, du + du_first


def test_a_step_that_is_given_a_tuple_of_weights_is_checked_with_them(rng):
    shapes = (4, 3), (3, 3), (3,)
    report = gradcheck((two_steps_forward, two_steps_backward), *map(rng.standard_normal, shapes))
    assert report.wrong_step.name == "field_backward"
    assert report.wrong_step.repair[1] == "a factor is missing, t"

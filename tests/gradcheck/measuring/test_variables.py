"""Weights that nobody is given, because they are variables of the file, or of the function around, are checked."""

from dataclasses import dataclass

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judge

import numpy as np
import pytest

_rng = np.random.default_rng(3)
W1, b1 = _rng.standard_normal((4, 5)), _rng.standard_normal(5)
W2, b2 = _rng.standard_normal((5, 3)), _rng.standard_normal(3)
dW1 = db1 = dW2 = db2 = None
grads = {"dW2": np.full((5, 3), 7.0)}
params = {"W1": W1.copy(), "b1": b1.copy(), "W2": W2.copy(), "b2": b2.copy()}
layers = [{"W": W1.copy(), "b": b1.copy()}, {"W": W2.copy(), "b": b2.copy()}]
WEIGHTS = ["W1", "b1", "W2", "b2"]
FACTOR = 1.0             # the tests that look for wrong gradients make db1 wrong by it


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


@pytest.fixture
def x(rng):
    return rng.standard_normal((6, 4))


def forward(x):
    h = np.tanh(x @ W1 + b1)
    return h @ W2 + b2, (x, h)


def returned(dout, cache):
    x, h = cache
    dz = dout @ W2.T * (1 - h**2)
    dW1, dW2 = x.T @ dz, h.T @ dout
    db1, db2 = FACTOR * dz.sum(0), dout.sum(0)
    return dz @ W1.T, dW1, dW2, db1, db2


def returned_without_names(dout, cache):
    x, h = cache
    dz = dout @ W2.T * (1 - h**2)
    return dz @ W1.T, x.T @ dz, FACTOR * dz.sum(0), h.T @ dout, dout.sum(0)


def kept_in_variables(dout, cache):
    global dW1, db1, dW2, db2
    dx, dW1, dW2, db1, db2 = returned(dout, cache)
    return dx


def added_to_a_dict(dout, cache):
    dx, grads["dW1"], dW2, grads["db1"], grads["db2"] = returned(dout, cache)
    grads["dW2"] += dW2
    return dx


def returned_in_a_dict(dout, cache):
    dx, *gradients = returned(dout, cache)
    return dx, dict(zip(["W1", "W2", "b1", "b2"], gradients))


BACKWARDS = [returned, returned_without_names, kept_in_variables, added_to_a_dict, returned_in_a_dict]


@pytest.mark.parametrize("backward", BACKWARDS)
def test_right_and_wrong_gradients(backward, x, monkeypatch):
    assert verdicts(gradcheck((forward, backward), x)) == dict.fromkeys(["x", *WEIGHTS], "PASS")
    monkeypatch.setattr("tests.gradcheck.measuring.test_variables.FACTOR", 2.0)
    report = gradcheck((forward, backward), x)
    assert verdicts(report) == dict.fromkeys(["x", *WEIGHTS], "PASS") | {"b1": "FAIL"}


def test_the_variables_stay_as_they_are(x):
    before = [(W1, W1.copy()), (grads["dW2"], np.full((5, 3), 7.0))]
    for backward in BACKWARDS:
        gradcheck((forward, backward), x)
    for array, numbers in before:
        np.testing.assert_array_equal(array, numbers)
    assert W1 is before[0][0]
    assert W1.dtype == np.float64
    assert dW1 is None
    assert [*grads] == ["dW2"]
    assert grads["dW2"] is before[1][0]


def without_b1(dout, cache):
    dx, dW1, dW2, _, db2 = returned(dout, cache)
    return dx, dW1, dW2, db2


def test_what_has_no_gradient_where_others_have_one_is_not_tested(x):
    report = gradcheck((forward, without_b1), x)
    assert verdicts(report) == dict.fromkeys(["x", *WEIGHTS], "PASS") | {"b1": "NOT TESTED"}
    assert "no gradient of b1 was found: not tested" in report.explain()


def of_data_alone(dout, cache):
    return returned(dout, cache)[0]


def test_where_no_variable_has_a_gradient_weights_are_not_tested(x):
    report = gradcheck((forward, of_data_alone), x)
    assert verdicts(report) == {"x": "PASS"} | dict.fromkeys(WEIGHTS, "NOT TESTED")
    assert report.verdict == "NOT TESTED"
    assert "no gradient of W1, b1, W2, b2 was found, which forward is not given, but reads: not tested" in report.explain()


def with_a_dict(x):
    h = np.tanh(x @ params["W1"] + params["b1"])

    def backward(dy):
        dz = dy @ params["W2"].T * (1 - h**2)
        dW2, db2 = h.T @ dy, dy.sum(0)
        return dz @ params["W1"].T, {"W1": x.T @ dz, "b1": dz.sum(0), "W2": dW2, "b2": db2}

    return h @ params["W2"] + params["b2"], backward


def loss_of_a_dict(x, target):
    y, backward = with_a_dict(x)
    _, gradients = backward(FACTOR * (y - target))
    return ((y - target) ** 2).sum() / 2, gradients


def test_a_dict_of_weights(x, rng, monkeypatch):
    names = [f"params.{name}" for name in WEIGHTS]
    assert verdicts(gradcheck(with_a_dict, x)) == dict.fromkeys(["x", *names], "PASS")
    target = rng.standard_normal((6, 3))
    assert verdicts(gradcheck(loss_of_a_dict, x, target)) == dict.fromkeys(names, "PASS")
    monkeypatch.setattr("tests.gradcheck.measuring.test_variables.FACTOR", 2.0)
    assert verdicts(gradcheck(loss_of_a_dict, x, target)) == dict.fromkeys(names, "FAIL")


def through_layers(x):
    caches = []
    for layer in layers:
        caches.append((x, layer["W"]))
        x = x @ layer["W"] + layer["b"]
    return x, caches


def through_layers_backward(dout, caches):
    gradients = []
    for x, W in reversed(caches):
        gradients.insert(0, {"dW": x.T @ dout, "db": dout.sum(0) / 2})   # halved: wrong
        dout = dout @ W.T
    return dout, gradients


def test_a_list_of_layers(x):
    report = gradcheck((through_layers, through_layers_backward), x)
    assert verdicts(report) == {"x": "PASS", "layers.0.W": "PASS", "layers.0.b": "FAIL", "layers.1.W": "PASS",
                                "layers.1.b": "FAIL"}  # fmt: skip


def character_loss(inputs, targets, h_before):
    """A recurrent network's loss and gradients; the last state comes with them."""
    hs, dlogits, loss = [h_before], [], 0.0
    for one, target in zip(inputs, targets):
        hs.append(np.tanh(W1[one] + W3 @ hs[-1] + b1))
        p = np.exp(hs[-1] @ W2)
        p /= p.sum()
        loss -= np.log(p[target])
        dlogits.append(p - np.eye(3)[target])
    dW1, dW3, dW2, db1 = np.zeros_like(W1), np.zeros_like(W3), np.zeros_like(W2), np.zeros_like(b1)
    dnext = np.zeros(5)
    for t in reversed(range(len(inputs))):
        dW2 += np.outer(hs[t + 1], dlogits[t])
        dz = (W2 @ dlogits[t] + dnext) * (1 - hs[t + 1] ** 2)
        dW1[inputs[t]] += dz
        dW3 += np.outer(dz, hs[t])
        db1 += dz
        dnext = FACTOR * W3.T @ dz
    return loss, dW1, dW3, dW2, db1, hs[len(inputs)]


W3 = _rng.standard_normal((5, 5))


def test_a_loss_that_comes_with_gradients_and_a_state(rng, monkeypatch):
    names = ["W1", "W3", "b1", "W2"]
    given = [0, 3, 1, 3], [2, 0, 1, 1], rng.standard_normal(5)
    report = gradcheck(character_loss, *given)
    assert verdicts(report) == dict.fromkeys(names, "PASS")
    assert "the backward returns no gradient of h_before: not checked" in report.explain()
    monkeypatch.setattr("tests.gradcheck.measuring.test_variables.FACTOR", 0.0)
    assert verdicts(judge(character_loss, given, None)) == dict.fromkeys(names, "FAIL") | {"W2": "PASS"}


def test_a_wrong_line_is_mended(x):
    W = _rng.standard_normal((4, 3))

    def f(x):
        y = np.tanh(x @ W)

        def backward(dy):
            dz = dy * (1 - y)
            dx, dW = dz @ W.T, x.T @ dz
            return dx, dW

        return y, backward

    report = gradcheck(f, x)
    assert verdicts(report) == {"x": "FAIL", "W": "FAIL"}
    assert report.repair[3] == "dz = dy * (1 - y**2)"


def step(x):
    def backward(dy):
        dW1 = 2 * x.T @ dy                               # the 2 is wrong
        return dy @ W1.T, dW1

    return x @ W1, backward


def test_the_first_wrong_step_is_one_with_weights_of_its_own(x):
    def f(x):
        y, back = step(x)

        def backward(dy):
            dx, dW1 = back(dy * (1 - np.tanh(y) ** 2))
            return dx, dW1

        return np.tanh(y), backward

    report = gradcheck(f, x)
    assert verdicts(report) == {"x": "PASS", "W1": "FAIL"}
    assert report.wrong_step.name == "step"


@dataclass(frozen=True)
class Fixed:
    W: np.ndarray


FIXED = Fixed(W1.copy())


def with_fixed(x):
    def backward(dy):
        dW = x.T @ dy
        return dy @ FIXED.W.T, dW

    return x @ FIXED.W, backward


def test_weights_that_cannot_be_exchanged_are_not_looked_for(x):
    report = gradcheck(with_fixed, x)
    assert "backward gave 2 gradients, too many: expected 1, one for each of x" in report.explain()


class Bag:
    def __init__(self):
        self.W, self.grads = W1.copy(), {"W": np.full((4, 5), 7.0)}


BAG = Bag()


def with_an_object(x):
    def backward(dy):
        BAG.grads["W"] = FACTOR * x.T @ dy
        return dy @ BAG.W.T

    return x @ BAG.W, backward


def test_an_object_among_the_variables(x, monkeypatch):
    before, kept = BAG.W, BAG.grads["W"]
    assert verdicts(gradcheck(with_an_object, x)) == {"x": "PASS", "BAG.W": "PASS"}
    monkeypatch.setattr("tests.gradcheck.measuring.test_variables.FACTOR", 2.0)
    assert verdicts(gradcheck(with_an_object, x)) == {"x": "PASS", "BAG.W": "FAIL"}
    assert BAG.W is before
    assert BAG.grads["W"] is kept
    assert (kept == 7.0).all()


def test_other_names_of_an_object_that_is_given(x):
    """The backward is not given the object: it has it from the function around it."""
    net = Bag()

    def forward(net, x):
        return x @ net.W, x

    def backward(dout, x):
        net.grads["W"] = x.T @ dout
        return dout @ net.W.T

    report = gradcheck((forward, backward), net, x)
    assert verdicts(report) == {"net.W": "PASS", "x": "PASS"}
    assert (net.grads["W"] == 7.0).all()


def test_weights_that_a_lambda_brings_along_are_data(x):
    W = np.ones((4, 2))
    assert verdicts(gradcheck(lambda x: (x @ W, lambda dy: dy @ W.T), x)) == {"x": "PASS"}


def beside_the_weights(x):
    """The gradients are put into the dicts that have the weights."""
    states = [x]
    for layer in layers:
        states.append(states[-1] @ layer["W"] + layer["b"])

    def backward(dy):
        for layer, before in zip(layers[::-1], states[-2::-1]):
            layer["dW"], layer["db"] = before.T @ dy, FACTOR * dy.sum(0)
            dy = dy @ layer["W"].T
        return dy

    return states[-1], backward


def test_gradients_in_the_dicts_of_the_weights(x, monkeypatch):
    names = [f"layers.{k}.{name}" for k in (0, 1) for name in "Wb"]
    assert verdicts(gradcheck(beside_the_weights, x)) == dict.fromkeys(["x", *names], "PASS")
    monkeypatch.setattr("tests.gradcheck.measuring.test_variables.FACTOR", 2.0)
    assert verdicts(gradcheck(beside_the_weights, x)) == dict.fromkeys(["x", *names], "PASS") | {
        "layers.0.b": "FAIL", "layers.1.b": "FAIL",
    }  # fmt: skip
    assert [[*layer] for layer in layers] == [["W", "b"]] * 2

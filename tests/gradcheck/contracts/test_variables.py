"""Weights that are variables of a file are named: params=[…]. Their gradients are, too, in the `return`, or beside them."""

from mini_tf.gradcheck import judge

import numpy as np
import pytest

from . import check, normal, verdicts

hidden_size, vocab_size = 5, 4
Wxh, Whh, Why, bh, by = normal((5, 4), (5, 5), (4, 5), (5, 1), (4, 1))
dWxh = None
params = {"W": normal((4, 3)), "b": normal(3)}
grads = {"W": np.full((4, 3), 7.0)}


def lossFun(inputs, targets, hprev):
    """min-char-rnn's, by Andrej Karpathy (BSD License)"""
    xs, hs, ys, ps = {}, {}, {}, {}
    hs[-1] = np.copy(hprev)
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((vocab_size, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]) + bh)
        ys[t] = np.dot(Why, hs[t]) + by
        ps[t] = np.exp(ys[t]) / np.sum(np.exp(ys[t]))
        loss += -np.log(ps[t][targets[t], 0])
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dbh, dby = np.zeros_like(bh), np.zeros_like(by)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dby += dy
        dh = np.dot(Why.T, dy) + dhnext
        dhraw = (1 - hs[t] * hs[t]) * dh
        dbh += dhraw
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    for dparam in [dWxh, dWhh, dWhy, dbh, dby]:
        np.clip(dparam, -5, 5, out=dparam)
    return loss, dWxh, dWhh, dWhy, dbh, dby, hs[len(inputs) - 1]


@pytest.mark.exhaustive
def test_min_char_rnn():
    names = ["Wxh", "Whh", "Why", "bh", "by"]
    before = Wxh.copy()
    check(lossFun, lambda f: judge(f, [0, 3, 1], [3, 1, 2], 0.1 * normal((5, 1)), params=names), " ".join(names),
          ("dhnext = np.dot(Whh.T, dhraw)", "dhnext = np.dot(Whh, dhraw)", "Wxh Whh bh"),
          ("dby += dy", "dby = dy", "by"), ("dWhy += np.dot(dy, hs[t].T)", "pass", "Why"))   # fmt: skip
    report = judge(lossFun, [0, 3, 1], [3, 1, 2], 0.1 * normal((5, 1)), params=names)
    assert "hprev: no gradient came back; taken as data" in report.notes
    assert np.array_equal(Wxh, before)


def kept_in_a_variable_forward(x):
    return x @ Wxh, x


def kept_in_a_variable_backward(dout, x):
    global dWxh
    dWxh = x.T @ dout
    return dout @ Wxh.T


def test_a_gradient_that_is_kept_in_a_variable():
    def call(back):
        return judge((kept_in_a_variable_forward, back), normal((3, 5)), params=["Wxh"])

    assert verdicts(call(kept_in_a_variable_backward)) == {"x": "PASS", "Wxh": "PASS"}
    assert dWxh is None


def with_a_dict(x):
    def backward(dy):
        grads["W"] = x.T @ dy
        grads["b"] = dy.sum(axis=0)
        return dy @ params["W"].T

    return x @ params["W"] + params["b"], backward


def test_a_dict_of_weights_among_the_variables():
    W, kept = params["W"], grads["W"]
    check(with_a_dict, lambda f: judge(f, normal((5, 4)), params={"W": "params.W", "b": "params.b"}), "x W b",
          ("dy.sum(axis=0)", "dy.sum(axis=1)", "db has shape (5,), expected (3,) as b has"), ("x.T @ dy", "x.T @ dy / 5", "W"))      # fmt: skip
    assert params["W"] is W
    assert grads == {"W": kept}
    assert (kept == 7).all()


def returned_with_dx(x):
    def backward(dy):
        dx, dWxh = dy @ Wxh.T, x.T @ dy
        return dx, dWxh

    return x @ Wxh, backward


def test_a_gradient_too_many_is_that_of_a_variable_to_name():
    report = judge(returned_with_dx, normal((3, 5)))
    assert report.refusals == ["2 gradients came back, and the inputs are x: if one is that of a variable of the file, "
                               "name it, params=['Wxh']; others are given as inputs"]                # fmt: skip
    check(returned_with_dx, lambda f: judge(f, normal((3, 5)), params=["Wxh"]), "x Wxh", ("x.T @ dy", "2 * x.T @ dy", "Wxh"))


def of_x_alone(x):
    return x @ Wxh, lambda dy: dy @ Wxh.T


def test_a_variable_that_params_names_needs_a_gradient():
    assert judge(of_x_alone, normal((3, 5))).verdict == "PASS"
    assert judge(of_x_alone, normal((3, 5)), params=["Wxh"]).verdict == "NOT TESTED"

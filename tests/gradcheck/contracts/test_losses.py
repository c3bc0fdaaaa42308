"""loss, grads = f(…)"""

import numpy as np
import pytest

from . import check, edited, judge, normal

LABELS = np.array([0, 2, 1, 1, 0])


def svm_loss_vectorized(W, X, y, reg):
    scores = X.dot(W)
    rows = np.arange(X.shape[0])
    margins = np.maximum(0, scores - scores[rows, y][:, None] + 1)
    margins[rows, y] = 0
    loss = margins.sum() / X.shape[0] + reg * np.sum(W * W)
    binary = (margins > 0).astype(float)
    binary[rows, y] = -binary.sum(axis=1)
    dW = X.T.dot(binary) / X.shape[0] + 2 * reg * W
    return loss, dW


def test_the_first_floating_inputs_get_the_gradients_and_the_others_are_data():
    inputs = normal((4, 3), (5, 4))
    check(svm_loss_vectorized, lambda f: judge(f, *inputs, LABELS, 0.1), "W",
          ("+ 2 * reg * W", "+ reg * W", "W"), ("/ X.shape[0] + 2", "+ 2", "W"))          # fmt: skip
    assert judge(svm_loss_vectorized, *inputs, LABELS, 0.1).notes == ["X: no gradient came back; taken as data"]


def softmax_loss(x, y):
    shifted = x - x.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    N = x.shape[0]
    dx = np.exp(log_probs)
    dx[np.arange(N), y] -= 1
    dx /= N
    return -log_probs[np.arange(N), y].mean(), dx


def test_one_gradient_beside_the_loss():
    check(softmax_loss, lambda f: judge(f, normal((5, 3)), LABELS), "x", ("dx /= N", "pass", "x"), ("] -= 1", "] -= 2", "x"))


def nothing_named(W, b, X, Y):
    e = X @ W + b - Y
    return 0.5 * (e**2).sum(), (X.T @ e, e.sum(axis=0))


def in_a_dict(X, Y, W, b):
    e = X @ W + b - Y
    return 0.5 * (e**2).sum(), {"b": e.sum(axis=0), "W": X.T @ e}


def named_in_the_return(X, Y, W, b):
    e = X @ W + b - Y
    dW, grad_b = X.T @ e, e.sum(axis=0)
    return 0.5 * (e**2).sum(), dW, grad_b


ONE_AFTER_ANOTHER = edited(nothing_named, "(X.T @ e, e.sum(axis=0))", "X.T @ e, e.sum(axis=0)")
IN_A_LIST = edited(nothing_named, "(X.T @ e, e.sum(axis=0))", "[X.T @ e, e.sum(axis=0)]")


@pytest.mark.parametrize("f", [nothing_named, ONE_AFTER_ANOTHER, IN_A_LIST, in_a_dict, named_in_the_return])
def test_gradients_by_position_or_by_name(f):
    X, Y, W, b = normal((3, 3), (3, 3), (3, 3), 3)
    inputs = (X, Y, W, b) if f in (in_a_dict, named_in_the_return) else (W, b, X, Y)
    check(f, lambda f: judge(f, *inputs), "W b", ("e.sum(axis=0)", "e.mean(axis=0)", "b"), ("X.T @ e", "X @ e", "W"))


def propagate(w, b, X, Y):
    """Logistic regression; b is a number."""
    m = X.shape[1]
    A = 1 / (1 + np.exp(-(w.T @ X + b)))
    cost = -(Y * np.log(A) + (1 - Y) * np.log(1 - A)).sum() / m
    dw = X @ (A - Y).T / m
    db = (A - Y).sum() / m
    return cost, {"dw": dw, "db": db}


@pytest.mark.parametrize("b", [0.0, 0.3, np.float64(0.3), np.array(0.3)])
def test_a_bias_that_is_a_number(b):
    w, X = normal((2, 1), (2, 5))
    bug = "(A - Y).sum() / m\n    return", "(A - Y).sum()\n    return", "b"
    check(propagate, lambda f: judge(f, w, b, X, (LABELS > 0) * 1.0), "w b", bug)
    in_a_row = edited(propagate, '{"dw": dw, "db": db}', "dw, db")
    assert judge(in_a_row, w, b, X, (LABELS > 0) * 1.0).verdict == "PASS"
    assert judge(edited(in_a_row, bug[0], bug[1]), w, b, X, (LABELS > 0) * 1.0).verdict == "FAIL"


class TwoLayerNet:
    """cs231n's: weights in self.params, gradients in a dict beside the loss."""

    def __init__(self, reg=0.1):
        W1, b1, W2, b2 = normal((4, 6), 6, (6, 3), 3)
        self.params, self.reg = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}, reg

    def loss(self, X, y=None):
        W1, b1, W2, b2 = (self.params[name] for name in ("W1", "b1", "W2", "b2"))
        hidden = np.maximum(0, X @ W1 + b1)
        scores = hidden @ W2 + b2
        if y is None:
            return scores
        loss, dscores = softmax_loss(scores, y)
        loss += 0.5 * self.reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
        grads = {}
        grads["W2"] = hidden.T @ dscores + self.reg * W2
        grads["b2"] = dscores.sum(axis=0)
        dhidden = dscores @ W2.T * (hidden > 0)
        grads["W1"] = X.T @ dhidden + self.reg * W1
        grads["b1"] = dhidden.sum(axis=0)
        return loss, grads


def test_a_method_that_gives_its_loss_and_a_dict():
    check(TwoLayerNet, lambda cls: judge(cls().loss, normal((5, 4)), LABELS), "params.W1 params.b1 params.W2 params.b2",
          (" * (hidden > 0)", "", "params.W1 params.b1"), ("+ self.reg * W1\n", "+ 2 * self.reg * W1\n", "params.W1"),
          ('grads["b2"] = dscores.sum(axis=0)', 'grads["b2"] = dscores.sum()',
           "dparams.b2 has shape (), expected (3,) as params.b2 has"))   # fmt: skip

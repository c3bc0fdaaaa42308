"""What comes back belongs to what its name says, whatever else the name may look like."""

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judge
from mini_tf.gradcheck.measuring.naming import is_upstream
from mini_tf.gradcheck.measuring.returned import returned_names

import numpy as np
import pytest

rng = np.random.default_rng(3)
filters, W1, S1 = rng.standard_normal((2, 3)), rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
table = rng.standard_normal((5, 3))


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


@pytest.mark.parametrize("name", ["dimgs", "dim_", "dout", "dens_x", "grad", "d", "g"])
def test_names_of_gradients(name):
    assert is_upstream(name) == (name != "dim_")


@pytest.mark.parametrize("name", ["dim", "dims", "dimension", "data", "dictionary", "den", "dist", "depth"])
def test_names_of_other_things(name):
    assert not is_upstream(name)


def filtered(imgs):
    return imgs @ filters.T, imgs


def filtered_backward(dy, imgs):
    dimgs, dfilters = dy @ filters, dy.T @ imgs
    return dimgs, dfilters


def half_wrong_backward(dy, imgs):
    dimgs, dfilters = 2 * dy @ filters, dy.T @ imgs
    return dimgs, dfilters


def test_dimgs_is_a_gradient():
    """It begins as "dim" does."""
    imgs = rng.standard_normal((4, 3))
    assert verdicts(gradcheck((filtered, filtered_backward), imgs)) == {"imgs": "PASS", "filters": "PASS"}
    assert verdicts(gradcheck((filtered, half_wrong_backward), imgs)) == {"imgs": "FAIL", "filters": "PASS"}


def mixed(x):
    y = np.tanh(x @ W1 + x[::-1] @ S1)

    def back(dy):
        dz = dy * (1 - y * y)
        dW1, dS1 = x.T @ dz, x[::-1].T @ dz
        return dz @ W1.T + (dz @ S1.T)[::-1], dW1, dS1

    return y, back


def test_names_come_before_places():
    """Two weights of the same shape, of which the file's order is another than that of what comes back"""
    assert verdicts(gradcheck(mixed, rng.standard_normal((4, 3)))) == {"x": "PASS", "S1": "PASS", "W1": "PASS"}


def mean_loss(ids):
    """Its gradients are divided where they are returned."""
    dtable = np.zeros_like(table)
    for i in ids:
        dtable[i] += np.cos(table[i])
    return np.sin(table[ids]).sum() / len(ids), dtable / len(ids)


def test_a_multiple_of_a_gradient_has_its_name():
    assert verdicts(gradcheck(mean_loss, [0, 3, 3, 1])) == {"table": "PASS"}


def several(dW, db, dg, W, n, x):
    return dW / n, -db, 2 * dg, dW + 0.1 * W, x / n, x.T @ dg, dW[0], W.T


def test_names_of_expressions():
    assert returned_names(several) == ["dW", "db", "dg", "dW", "x / n", "x.T @ dg", "dW", "W"]


class Cell:
    def __init__(self):
        self.W, self.grads = rng.standard_normal((3, 3)), {}


def recurrent_loss(cell, xs, state, factor=1.0):
    """loss, gradients and the last state, of two arrays, which is no gradient of the first one"""
    h, c = state
    kept, loss = [], 0.0
    for x in xs:
        kept.append((h, c))
        h, c = np.tanh(x + h @ cell.W), c + h
        loss += (h * h).sum() / 2 + (c * c).sum() / 2
    grads, dh_next, dc = {"W": np.zeros_like(cell.W)}, np.zeros_like(h), np.zeros_like(c)
    after = [h for h, _ in kept[1:]] + [h]
    sums = [c for _, c in kept[1:]] + [c]
    for new, total, (before, _) in zip(after[::-1], sums[::-1], kept[::-1]):
        dc = dc + total
        dz = (new + dh_next) * (1 - new * new)
        grads["W"] += factor * np.outer(before, dz)
        dh_next = cell.W @ dz + dc
    return loss, grads, (h, c)


def test_a_last_state_in_a_tuple_is_no_gradient_of_the_first():
    xs, state = [rng.standard_normal(3) for _ in range(3)], (rng.standard_normal(3), rng.standard_normal(3))
    report = gradcheck(recurrent_loss, Cell(), xs, state)
    assert verdicts(report)["cell.W"] == "PASS", report
    assert report.verdict == "PASS"
    assert "the backward returns no gradient of xs.0, xs.1, xs.2, state.0, state.1: not checked" in report.notes
    report = judge(lambda c, x, s: recurrent_loss(c, x, s, 2.0), [Cell(), xs, state], None)
    assert verdicts(report)["c.W"] == "FAIL"

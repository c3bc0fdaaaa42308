"""y, backward = f(x, W)"""

from typing import NamedTuple

import numpy as np
import pytest

from . import check, edited, judge, normal


def affine(x, W, b):
    def backward(dy):
        dx = dy @ W.T
        return dx, x.T @ dy, dy.sum(axis=0)

    return x @ W + b, backward


def test_gradients_come_back_in_the_order_of_the_inputs():
    inputs = normal((5, 4), (4, 3), 3)
    check(affine, lambda f: judge(f, *inputs), "x W b",
          ("dy @ W.T", "2 * dy @ W.T", "x"), ("dy.sum(axis=0)", "dy.mean(axis=0)", "b"),
          ("x.T @ dy, dy.sum(axis=0)", "dy.sum(axis=0), x.T @ dy", "dW has shape (3,), expected (4, 3) as W has"))     # fmt: skip


def test_by_position_even_where_names_say_otherwise():
    """dW and dx are exchanged: what comes first belongs to x, whatever it is called."""
    exchanged = edited(affine, "return dx, x.T @ dy,", "dW = x.T @ dy; return dW, dx,")
    assert [t.verdict for t in judge(exchanged, *normal((4, 4), (4, 4), 4)).tensors] == ["FAIL", "FAIL", "PASS"]


def embedding(table, ids):
    def backward(dy):
        dtable = np.zeros_like(table)
        np.add.at(dtable, ids, dy)
        return dtable, None

    return table[ids], backward


def test_ids_get_none_or_nothing():
    for f in (embedding, edited(embedding, "return dtable, None", "return dtable")):
        check(f, lambda f: judge(f, normal((6, 3)), np.array([2, 0, 2, 5])), "table",
              ("np.add.at(dtable, ids, dy)", "dtable[ids] += dy", "table"))      # fmt: skip


def linear(x, weight, mask=None, bias=None):
    y = x @ weight
    if mask is not None:
        y = y * mask
    if bias is not None:
        y = y + bias

    def backward(dy):
        dz = dy if mask is None else dy * mask
        return dz @ weight.T, x.T @ dz, None, None if bias is None else dy.sum(0)

    return y, backward


def test_optional_arrays_that_are_left_out_come_back_as_none():
    x, W, b = normal((5, 4), (4, 3), 3)
    bug = "x.T @ dz", "x.T @ dy * 2", "weight"
    check(linear, lambda f: judge(f, x, W), "x weight", bug)
    check(linear, lambda f: judge(f, x, W, None, b), "x weight bias", bug)
    check(linear, lambda f: judge(f, x, W, mask=np.array([1.0, 0, 2])), "x weight", ("dy * mask", "dy", "x weight"))


def scaled(x, factor=1.0, *, shift=0.0):
    return factor * x + shift, lambda dy: factor * dy


def test_options_by_name_are_constants():
    x = normal((5, 4))
    check(scaled, lambda f: judge(f, x, factor=2.5, shift=1.0), "x", ("lambda dy: factor * dy", "lambda dy: dy", "x"))
    f = edited(scaled, "factor * dy", "(factor * dy, dy * x)")           # the gradient of a constant may come back, too
    check(f, lambda f: judge(f, x, factor=normal((5, 4), seed=8)), "x", ("factor * dy, dy * x", "dy, dy * x", "x"))


def sine_and_square(x):
    def backward(dsine, dsquare):
        return dsine * np.cos(x) + dsquare * 2 * x

    return np.sin(x), x * x, backward


def test_several_outputs_are_all_followed():
    check(sine_and_square, lambda f: judge(f, normal((3, 4))), "x",
          ("dsquare * 2 * x", "dsquare * x", "x"), ("dsine * np.cos(x) + ", "", "x"))        # fmt: skip


def attention_weights_for_show(q, k, v):
    e = np.exp(q @ k.T / np.sqrt(q.shape[-1]))
    a = e / e.sum(-1, keepdims=True)

    def backward(dy):
        da, dv = dy @ v.T, a.T @ dy
        ds = a * (da - (da * a).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
        return ds @ k, ds.T @ q, dv

    return a @ v, a, backward


def test_a_backward_that_takes_one_dy_goes_back_from_the_first_output():
    inputs = normal((5, 4), (6, 4), (6, 3))
    check(attention_weights_for_show, lambda f: judge(f, *inputs), "q k v",
          ("- (da * a).sum(-1, keepdims=True)", "- da.sum(-1, keepdims=True)", "q k"))       # fmt: skip
    report = judge(attention_weights_for_show, *inputs)
    assert report.notes == ["the last output is not followed: the backward goes back from the first"]


def cross_entropy(z, labels):
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(labels))

    def backward(dloss=1.0):
        dz = p.copy()
        dz[rows, labels] -= 1
        return dloss * dz / len(labels)

    return -np.log(p[rows, labels]).mean(), backward


def test_a_loss_whose_backward_takes_dloss_or_nothing():
    inputs = normal((4, 5)), np.array([0, 4, 1, 1])
    check(cross_entropy, lambda f: judge(f, *inputs), "z", (" / len(labels)", "", "z"), ("dloss * dz", "dz", "z"))
    assert judge(edited(cross_entropy, "dloss=1.0", "", "dloss * dz", "dz"), *inputs).verdict == "PASS"


class Gradients(NamedTuple):
    W: np.ndarray
    x: np.ndarray


def by_name(x, W):
    return x @ W, lambda dy: {"dW": x.T @ dy, "grad_x": dy @ W.T}


def by_field(x, W):
    return x @ W, lambda dy: Gradients(x=dy @ W.T, W=x.T @ dy)


@pytest.mark.parametrize("f", [by_name, by_field])
def test_gradients_in_a_dict_and_in_a_named_tuple(f):
    check(f, lambda f: judge(f, *normal((3, 3), (3, 3))), "x W", ("x.T @ dy", "x @ dy", "W"))


class Layer:
    """A method that gives y, backward; gradients add up beside the weights."""

    def __init__(self):
        self.W, self.b = normal((4, 3), 3)
        self.d_W, self.d_b = np.zeros((4, 3)), np.zeros(3)

    def begin_update(self, x):
        def finish_update(dy):
            self.d_W += x.T @ dy
            self.d_b += dy.sum(0)
            return dy @ self.W.T

        return x @ self.W + self.b, finish_update

    __call__ = begin_update


@pytest.mark.parametrize("of", [lambda layer: layer, lambda layer: layer.begin_update])
def test_a_method_or_an_object_that_gives_y_and_backward(of):
    check(Layer, lambda cls: judge(of(cls()), normal((5, 4))), "x W b",
          ("dy.sum(0)", "dy.mean(0)", "b"), ("self.d_W += x.T @ dy", "pass", "W"))           # fmt: skip

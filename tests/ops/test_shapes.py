"""Errors name the op, the argument, what was given and what was expected."""

from mini_tf import ops
from mini_tf.ops import updates
from mini_tf.ops.shapes import sum_to
from tests.strict import strict

import numpy as np
import pytest

x, W, b = np.zeros((2, 3, 4)), np.zeros((4, 5)), np.zeros(5)

BAD = {
    "W does not fit x": (lambda: ops.linear(x, np.zeros((3, 5))), r"linear: W has shape \(3, 5\), expected \(in, out\) with in = 4 as in x"),
    "b does not fit W": (lambda: ops.linear(x, W, np.zeros(4)), r"linear: b has shape \(4,\), expected \(out,\) with out = 5 as in W"),
    "W has too many axes": (lambda: ops.linear(x, x), r"linear: W has shape \(2, 3, 4\), expected \(in, out\)"),
    "x is a scalar": (lambda: ops.linear(np.float64(1), W), r"linear: x has shape \(\), expected \(…, in\)"),
    "x is integer": (lambda: ops.relu(np.arange(3)), r"relu: x has dtype int64, expected a floating dtype; try x.astype"),
    "x is a list": (lambda: ops.relu([1.0]), r"relu: expected a NumPy or CuPy array, got list"),
    "gamma does not fit": (lambda: ops.layer_norm(x, np.ones(3), np.zeros(4)), r"layer_norm: gamma has shape \(3,\), expected \(n,\) with n = 4"),
    "keys of another width": (lambda: ops.attention(x, np.zeros((2, 3, 5)), x), r"attention: key has shape \(2, 3, 5\), .* m = 4 as in query"),
    "values of another length": (lambda: ops.attention(x, x, np.zeros((2, 9, 4))), r"attention: value has shape \(2, 9, 4\), .*Tk = 3 as in key"),
    "mask of integers": (lambda: ops.masked_softmax(x, np.ones((3, 4), int)), r"mask has dtype int64, expected a boolean dtype; try mask != 0"),
    "mask that does not broadcast": (lambda: ops.masked_softmax(x, np.ones((3, 5), bool)), r"mask has shape \(3, 5\), expected one that broadcasts"),
    "mask that is larger": (lambda: ops.masked_softmax(x, np.ones((7, 2, 3, 4), bool)), r"mask has shape .* broadcasts to z's \(2, 3, 4\)"),
    "an id too large": (lambda: ops.embedding(W, np.array([1, 4])), r"embedding: ids has the id 4, expected ids from 0 to 3"),
    "an id below zero": (lambda: ops.embedding(W, np.array([-2, 1])), r"embedding: ids has the id -2"),
    "ids that are floating": (lambda: ops.embedding(W, np.array([1.0])), r"embedding: ids has dtype float64, expected an integer"),
    "a target too large": (lambda: ops.cross_entropy(W, np.array([0, 1, 2, 5])), r"cross_entropy: targets has the id 5, expected ids from 0 to 4"),
    "targets of another shape": (lambda: ops.cross_entropy(x, np.array([0, 1])), r"cross_entropy: targets has shape \(2,\), expected \(…,\) with … = \(2, 3\)"),
    "no target counts": (lambda: ops.cross_entropy(W, np.zeros(4, int), ignore=0), r"cross_entropy: none of the 4 targets counts"),
    "unequal shapes": (lambda: ops.mse(x, W), r"mse: target has shape \(4, 5\)"),
    "nothing to compare": (lambda: ops.mse(np.zeros((0, 3)), np.zeros((0, 3))), r"mse: prediction has shape \(0, 3\), expected at least one"),
    "heads that do not fit": (
        lambda: ops.grouped_attention(np.ones((3, 2, 4)), np.ones((2, 2, 4)), np.ones((2, 2, 4))),
        "grouped_attention: query has 3 heads and key 2, expected a multiple of key's",
    ),
    "an odd number to turn": (lambda: ops.rotary(np.ones((2, 3))), r"rotary: x has shape \(2, 3\), expected an even last axis"),
    "a row of nothing to scale": (lambda: ops.rms_norm(np.zeros((2, 0)), np.ones(0)), r"rms_norm: x has shape \(2, 0\), expected at le"),
    "a row of nothing": (lambda: ops.layer_norm(np.zeros((2, 0)), np.ones(0), np.zeros(0)), r"layer_norm: x has shape \(2, 0\), expected at least one entry"),
    "a mean of nothing": (lambda: ops.mean_pool(np.zeros((2, 0, 3))), r"mean_pool: x has shape \(2, 0, 3\), T = 0 words, expected at least one"),
    "a maximum of nothing": (lambda: ops.max_pool(np.zeros((2, 0, 3))), r"max_pool: x has shape \(2, 0, 3\), T = 0 words, expected at least one"),
    "a product of nothing": (lambda: ops.product_pool(np.zeros((2, 0, 3))), r"product_pool: x has shape \(2, 0, 3\), T = 0 words"),
    "a vocabulary of nothing": (lambda: ops.cross_entropy(np.zeros((2, 0)), np.array([0, 0])), r"cross_entropy: targets has the id 0, .*0 words"),
    "beta of 1": (lambda: updates.adam(b, b, b, b, 1, 0.1, (0.9, 1.0), 1e-8, 1.0), r"adam: t is 1, betas \(0.9, 1.0\) and eps 1e-08, expected t ≥ 1"),
    "step 0": (lambda: updates.adam(b, b, b, b, 0, 0.1, (0.9, 0.99), 1e-8, 1.0), r"adam: t is 0"),
    "rate of 1": (lambda: ops.dropout(b, b == 0, 1.0), r"dropout: rate is 1.0, expected 0 ≤ rate < 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    call, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_numbers_of_numpy_are_arrays(number):
    y, backward = ops.relu(number(2))
    assert (y, backward(number(3))) == (2, 3)
    assert ops.mse(number(3), number(1))[0] == 4


def test_mixed_devices_are_named():
    with pytest.raises(TypeError, match="linear: x is on the cpu and W on the strict"):
        ops.linear(x, strict(W))


def test_sum_to_undoes_a_broadcast(rng):
    g = rng.standard_normal((2, 3, 4))
    for shape in [(2, 3, 4), (3, 4), (4,), (1,), (), (2, 1, 4), (1, 4), (3, 1)]:
        undone = sum_to(g, shape)
        assert undone.shape == shape
        # <g, broadcast(a)> = <sum_to(g), a> is what "undoing" means
        a = rng.standard_normal(shape)
        assert (g * np.broadcast_to(a, g.shape)).sum() == pytest.approx((undone * a).sum())

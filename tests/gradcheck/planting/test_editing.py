"""Planted edits keep their places in the file, are everywhere, and are gone afterwards."""

import linecache

from mini_tf import layers, ops
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import Bug, planted
from mini_tf.gradcheck.source import function_of, source_of
from mini_tf.layers import Parameter
from mini_tf.ops.attention import softmax
from mini_tf.places import codes_inside

import numpy as np
import pytest

ON_ONE_LINE = (lambda x: x), (lambda x: x)


def test_the_bug_is_everywhere_and_gone_even_after_an_error(rng):
    z, dy = rng.standard_normal((2, 2, 5))
    right, before = ops.softmax(z)[1](dy), source_of(softmax).file.text
    edit = Bug(ops.softmax, "", "return y * (dy - (y * dy).sum(-1, keepdims=True))", "return dy")
    with pytest.raises(KeyError), planted(edit):
        assert softmax(z)[1](dy) is ops.softmax(z)[1](dy) is dy
        assert source_of(softmax).file.text == before.replace(edit.find, edit.replace, 1)
        with planted(Bug(softmax, "", "return dy", "return 2 * dy")):
            assert softmax(z)[1](dy).tolist() == (2 * dy).tolist()
        raise KeyError
    assert np.array_equal(ops.softmax(z)[1](dy), right)
    assert source_of(softmax).file.text == before


def test_the_edited_code_keeps_its_place():
    bug = next(bug for bug in BUGS if bug.name == "TransformerLayer: residual path forgotten")
    right = function_of(bug.target).__code__
    with planted(bug) as (path, line):
        wrong = function_of(bug.target).__code__
        assert bug.replace in linecache.getline(path, line)
    assert bug.find in linecache.getline(path, line)
    assert function_of(bug.target).__code__ is right
    assert {code.co_filename for code in codes_inside(wrong)} == {path}
    assert (wrong.co_firstlineno, wrong.co_qualname) == (right.co_firstlineno, right.co_qualname)


def test_methods_classes_layers_and_closures_can_be_edited():
    parameter, layer, factor = Parameter(np.zeros(2)), layers.PositionalEncoding(3, 4), 3.0
    with planted(Bug(Parameter.accumulate, "", "gradient if self.grad is None else self.grad + gradient", "2 * gradient")):
        parameter.accumulate(np.ones(2))
    assert parameter.grad.tolist() == [2, 2]
    for target in (layers.PositionalEncoding, layer, layer.__call__):
        with planted(Bug(target, "", "return x + P,", "return x - P,")):
            assert layer(np.zeros((1, 3, 4)))[0][0, 0, 0] == -1

    def scaled(x, shift=1.0, *, times=2):
        return factor * x + shift * times, lambda dy: dy * factor

    with planted(Bug(scaled, "", "lambda dy: dy * factor", "lambda dy: dy / factor")):
        y, backward = scaled(1.0)
    assert (y, backward(6.0), scaled(1.0)[1](6.0)) == (5, 2, 18)


@pytest.mark.parametrize(("target", "find", "replace", "message"), [
    (ops.tanh, "no such text", "", "occurs 0 times"),
    (ops.tanh, "y", "z", "occurs 1[0-9] times"),
    (np.sin, "x", "y", "no Python function"),
    (ON_ONE_LINE[0], "x", "y", "2 functions named <lambda>"),
    (eval(compile("lambda x: x", "<nowhere>", "eval")), "x", "y", "source of <lambda> is not available"),
])  # fmt: skip
def test_what_cannot_be_edited_says_why(target, find, replace, message):
    with pytest.raises(ValueError, match=message), planted(Bug(target, "", find, replace)):
        pass

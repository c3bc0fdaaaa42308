"""The planted bugs: each changes the gradients, and is gone afterwards."""

import inspect
from collections import Counter

from mini_tf import layers, ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import EXAMPLES
from mini_tf.gradcheck.judge import judge
from mini_tf.gradcheck.planting.bugs import BUGS, KINDS, MODEL
from mini_tf.gradcheck.planting.editing import (
    difference,
    edited,
    edited_line,
    function_of,
    outcome,
    planted,
    source_of,
)
from mini_tf.layers import Parameter
from mini_tf.models import LanguageTransformer
from mini_tf.ops.attention import softmax

import numpy as np
import pytest

BLIND = [bug for bug in BUGS if bug.blind_at_init]


def _named(bugs):
    return pytest.mark.parametrize("bug", bugs, ids=[bug.name for bug in bugs])


@_named(BUGS)
def test_every_bug_changes_gradients(bug, rng):
    """Backward against backward, no finite differences; that the checker finds them is in `reasons/test_diagnosis.py`."""
    f, inputs, params = EXAMPLES[bug.example](rng)
    right = outcome(f, inputs, params)
    with planted(bug):
        wrong = outcome(f, inputs, params)
    assert difference(right, wrong) > 1e-6
    assert difference(right, outcome(f, inputs, params)) == 0


@_named(BUGS)
def test_the_forward_stays_right(bug, rng):
    f, inputs, _ = EXAMPLES[bug.example](rng)
    right = f(*inputs)[0]
    with planted(bug):
        assert np.array_equal(f(*inputs)[0], right)


@_named(BLIND)
def test_a_bug_that_is_blind_at_init(bug, rng):
    inputs = [rng.standard_normal((2, 3, 4)), np.ones(4), np.zeros(4)]
    right = outcome(ops.layer_norm, inputs)
    with planted(bug):
        assert difference(right, outcome(ops.layer_norm, inputs)) < 1e-12
        report = judge(ops.layer_norm, inputs, {})
    assert {c.point for t in report.tensors for c in t.comparisons if c.wrong} == {"generic"}


def test_no_other_bug_of_layer_norm_is_blind_at_init(rng):
    inputs = [rng.standard_normal((2, 3, 4)), np.ones(4), np.zeros(4)]
    right = outcome(ops.layer_norm, inputs)
    for bug in BUGS:
        if bug.target is ops.layer_norm and not bug.blind_at_init:
            with planted(bug):
                assert difference(right, outcome(ops.layer_norm, inputs)) > 1e-6, bug.name


def test_what_the_list_holds():
    assert len(BUGS) >= 46
    assert max(Counter(bug.name for bug in BUGS).values()) == 1
    assert {bug.kind for bug in BUGS} == set(KINDS)
    assert {getattr(ops, name) for name in ops.__all__} <= {bug.target for bug in BUGS}      # every op
    assert all(bug.example in EXAMPLES for bug in BUGS)
    assert sum(bug.in_transformer for bug in BUGS) >= 12
    assert not any(bug.in_transformer for bug in BUGS if bug.target in (ops.rnn, ops.gelu, ops.mse))


def test_many_bugs_show_in_the_whole_transformer(rng):
    f, inputs, params = EXAMPLES[MODEL](rng)
    right = outcome(f, inputs, params)
    shown = set()
    for bug in BUGS:
        if bug.in_transformer:
            with planted(bug):
                try:
                    differs = difference(right, outcome(f, inputs, params)) > 1e-6
                except ValueError:                       # some edits need square shapes
                    differs = False
            shown |= {bug.target.__qualname__} if differs else set()
    assert len(shown) >= 12


def test_the_bug_is_everywhere_and_gone_even_after_an_error(rng):
    bug = next(bug for bug in BUGS if bug.name == "softmax: dy passed on")
    z = rng.standard_normal((2, 5))
    dy = rng.standard_normal((2, 5))
    right = ops.softmax(z)[1](dy)
    with pytest.raises(KeyError), planted(bug):
        assert softmax(z)[1](dy) is dy
        assert ops.softmax(z)[1](dy) is dy
        raise KeyError
    assert np.array_equal(ops.softmax(z)[1](dy), right)
    assert softmax is ops.softmax


@pytest.mark.parametrize("name", ["linear: sign of dx", "TransformerLayer: residual path forgotten", "Parameter: overwrites"])
def test_the_edited_code_keeps_its_place(name):
    bug = next(bug for bug in BUGS if bug.name == name)
    file, line = bug.place
    with open(file, encoding="utf-8") as source:
        assert bug.find in source.read().splitlines()[line - 1]
    wrong = edited(bug.target, bug.find, bug.replace)
    target = function_of(bug.target)
    for code in (wrong.__code__, *(c for c in wrong.__code__.co_consts if inspect.iscode(c))):
        assert code.co_filename == target.__code__.co_filename
    assert wrong.__code__.co_firstlineno == target.__code__.co_firstlineno
    assert wrong.__qualname__ == wrong.__code__.co_qualname == target.__qualname__
    assert wrong.__globals__ is target.__globals__


def test_an_error_in_edited_code_shows_the_line_of_the_file(rng):
    wrong = edited(ops.tanh, "1 - y * y", "1 / 0")
    with pytest.raises(ZeroDivisionError) as error:
        wrong(rng.standard_normal(3))[1](1.0)
    assert (error.traceback[-1].path.as_posix(), error.traceback[-1].lineno + 1) == edited_line(ops.tanh, "1 - y * y")


def test_methods_classes_and_layers_can_be_edited(rng):
    find, replace = "gradient if self.grad is None else self.grad + gradient", "2 * gradient"
    parameter = Parameter(np.zeros(2))
    edited(Parameter.accumulate, find, replace)(parameter, np.ones(2))
    assert parameter.grad.tolist() == [2, 2]
    layer = layers.PositionalEncoding(3, 4)
    for target in (layers.PositionalEncoding, layer, layer.__call__):
        assert edited(target, "return x + P,", "return x - P,")(layer, np.zeros((1, 3, 4)))[0][0, 0, 0] == -1
    assert edited(LanguageTransformer.head, "return self.A(Phi)", "return 1") is not LanguageTransformer.head


def test_closures_and_defaults_are_kept():
    factor = 3.0

    def scaled(x, shift=1.0, *, times=2):
        return factor * x + shift * times, lambda dy: dy * factor

    wrong = edited(scaled, "lambda dy: dy * factor", "lambda dy: dy / factor")
    y, backward = wrong(1.0)
    assert y == 5
    assert backward(6.0) == 2


@pytest.mark.parametrize(
    ("target", "find", "replace", "message"),
    [
        (ops.tanh, "no such text", "", "occurs 0 times"),
        (ops.tanh, "y", "z", "occurs 1[0-9] times"),
        (ops.tanh, "1 - y * y", "1 -\ny * y", "same number of lines"),
        (np.sin, "x", "y", "no Python function"),
        (3, "x", "y", "no Python function"),
        (eval(compile("lambda x: x", "<nowhere>", "eval")), "x", "y", "source is not available"),
    ],
)
def test_what_cannot_be_edited_says_why(target, find, replace, message):
    with pytest.raises(UserError, match=message):
        edited(target, find, replace)


def test_two_lambdas_on_one_line_cannot_be_told_apart():
    first, _ = (lambda x: x), (lambda x: x)
    with pytest.raises(UserError, match="2 functions of that name"):
        source_of(first)


def test_the_difference_of_outcomes():
    one = [np.ones(2), None, np.zeros(3)]
    assert difference(one, one) == 0
    assert difference(one, [np.ones(2), None, np.full(3, 1e-4)]) == pytest.approx(0.1)
    assert difference(one, [np.ones(3), None, np.zeros(3)]) == np.inf
    assert difference(one, [np.ones(2), np.ones(()), np.zeros(3)]) == np.inf
    assert difference(one, [np.full(2, np.nan), None, np.zeros(3)]) == np.inf

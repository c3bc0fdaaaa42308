"""The self-test: every op's mutants are caught, and a checker that misses bugs is found out."""

from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import EXAMPLES, gradcheck, self_test
from mini_tf.gradcheck.planting.editing import source_of
from mini_tf.gradcheck.planting.mutations import mutations
from mini_tf.layers import LayerNorm, Linear

import numpy as np
import pytest

OPS = [name for name in EXAMPLES if name.split(",")[0] in ops.__all__]
LAYERS = ["Linear", "LayerNorm", "Embedding", "MultiHeadAttention, causal", "TransformerLayer", "Dropout, training"]
SELFTEST = "mini_tf.gradcheck.planting.selftest.judge"


@pytest.mark.parametrize("name", OPS + LAYERS)
def test_no_mutant_of_an_op_or_a_layer_is_missed(name, rng):
    f, inputs, params = EXAMPLES[name](rng)
    result = self_test(f, *inputs, params=params)
    assert result, result
    assert len(result.caught) >= 3


def test_a_blind_checker_is_found_out(rng, monkeypatch):
    monkeypatch.setattr(SELFTEST, lambda *args, **kwargs: True)
    result = self_test(ops.tanh, rng.standard_normal((2, 3)))
    assert not result
    assert not result.caught
    assert len(result.missed) >= 10
    missed = next(m for m in result.missed if m.after == "return dy * (1 - y)")
    assert missed.mutation == "a factor dropped"
    assert missed.before == "return dy * (1 - y * y)"
    assert missed.found == "the check passed"
    words = result.explain()
    assert "tanh: 0 of " in words
    assert f"MISSED: a factor dropped, activations.py:{missed.line}" in words
    assert "right    return dy * (1 - y * y)" in words
    assert "planted  return dy * (1 - y)" in words
    with open(missed.file, encoding="utf-8") as source:
        assert missed.before in source.read().splitlines()[missed.line - 1]


def test_a_checker_that_looks_at_the_first_gradient_alone_misses_the_others(rng, monkeypatch):
    def first_only(f, inputs, *_, **__):
        x, *others = inputs

        def of_first(x):
            y, backward = f(x, *others)
            return y, lambda dy: backward(dy)[0]

        return gradcheck(of_first, x)

    monkeypatch.setattr(SELFTEST, first_only)
    result = self_test(ops.linear, rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal(4))
    assert not result
    assert any("-dx" in m.after for m in result.caught)
    assert any("-dW" in m.after for m in result.missed)


def test_a_mutant_that_computes_the_same_is_equivalent(rng):
    def same_twice(x):
        half = 0.5 * x + 0.5 * x

        def backward(dy):
            zero = 0 * dy
            return dy * np.ones_like(half) + zero

        return half, backward

    result = self_test(same_twice, rng.standard_normal((2, 3)))
    assert result
    assert {m.after for m in result.equivalent} >= {"return dy * np.ones_like(half)", "return dy + zero"}
    assert all(m.found == "gives the right gradients" for m in result.equivalent)


def test_what_never_ran_is_listed(rng):
    result = self_test(ops.gelu, rng.standard_normal((2, 3)))
    tanh_only = [m for m in result.equivalent if "tanh_u" in m.before]
    assert len(tanh_only) > 5
    assert all(m.found == "did not run on these inputs" for m in tanh_only)
    assert "Did not run on these inputs" in result.explain()


def test_blind_inputs_are_found_out(rng, monkeypatch):
    """At γ = 1 a forgotten γ changes nothing: a checker that looks only at the given point cannot see it."""

    def at_the_point(f, inputs, *_, **__):
        gradients = [g(np.random.default_rng(0).standard_normal((2, 4))) for _, g in (f(*inputs), ops.layer_norm(*inputs))]
        return all(np.allclose(a, b) for a, b in zip(*gradients))

    monkeypatch.setattr(SELFTEST, at_the_point)
    result = self_test(ops.layer_norm, rng.standard_normal((2, 4)), np.ones(4), np.zeros(4))
    assert "g = dy" in [m.after for m in result.missed]


def test_every_kind_of_mutation_is_there(rng):
    names = set()
    for example in (*OPS, *LAYERS):
        f, inputs, _ = EXAMPLES[example](rng)
        names |= {m.name for m in mutations(*source_of(f(*inputs)[1]), {"y": "an input"})}
    assert names >= {
        "a factor dropped", "a gradient doubled", "a gradient zero", "a sign flipped", "a statement dropped",
        "a term dropped", "a transpose left out", "an axis changed", "an order reversed", "repeated ids dropped",
        "replaced, not accumulated", "sum for mean, or mean for sum", "two gradients swapped", "written into an input",
        "written into dy",
    }  # fmt: skip


def _rewritten(f, *inputs):
    return [(m.name, m.after) for m in mutations(*source_of(f(*inputs)[1]))]


def test_other_styles_of_backward():
    class Square:
        def __call__(self, x):
            self.x = x
            return x * x, self.backward

        def backward(self, dy):
            """Its state is in the object."""
            return np.sum(2 * self.x[None] * dy, axis=0) + 0 * self.x.T.T

    def matrix(x):
        def backward(dy):
            dx = np.zeros_like(x)
            np.add.at(dx, [0, 0], dy.transpose(
                0, 1
            ))                                           # a formula over several lines
            k = 2
            while k:
                k -= 1                                   # changed, it might never end
            return dx  # é ≠ e

        return x, backward

    assert ("an axis changed", "return np.sum(2 * self.x[None] * dy, axis=-1) + 0 * self.x.T.T") in _rewritten(Square(), np.ones(2))
    assert ("a transpose left out", "return np.sum(2 * self.x[None] * dy, axis=0) + 0 * self.x.T") in _rewritten(Square(), np.ones(2))
    assert self_test(Square(), np.array([1.0, 2.0, 3.0]))
    written = _rewritten(matrix, np.ones((2, 2)))
    assert ("repeated ids dropped", "dx[[0, 0]] += dy.transpose( 0, 1 )") in written
    assert ("a transpose left out", "np.add.at(dx, [0, 0], dy)") in written
    assert not any("k" in after.split() for _, after in written)
    assert ("a sign flipped", "return -dx") in written


def test_layers_keep_their_parameters(rng):
    layer = LayerNorm(4)
    gamma, grad = layer.gamma.data, np.ones(4, np.float32)
    layer.gamma.grad = grad
    inputs = rng.standard_normal((2, 4)).astype(np.float32)
    before = inputs.copy()
    assert self_test(layer, inputs, params=layer.parameters()).caught
    assert layer.gamma.data is gamma
    assert gamma.tolist() == [1] * 4
    assert layer.gamma.grad is grad
    assert grad.tolist() == [1] * 4
    assert np.array_equal(inputs, before)


def test_a_layer_that_does_not_accumulate_is_caught(rng):
    layer = Linear(3, 2, rng)
    result = self_test(layer, rng.standard_normal((4, 3)), params=list(layer.parameters().values()))
    assert "self.W.grad = dW" in [m.after for m in result.caught if m.mutation == "replaced, not accumulated"]


def test_it_starts_from_a_right_backward(rng):
    with pytest.raises(UserError, match="starts from a backward that passes"):
        self_test(lambda x: (2 * x, lambda dy: dy), rng.standard_normal(3))


def test_missing_source_is_reported(rng):
    made = {}
    exec("def double(x):\n    return 2 * x, lambda dy: 2 * dy", made)
    with pytest.raises(UserError, match="source is not available"):
        self_test(made["double"], rng.standard_normal(3))
    with pytest.raises(UserError, match="no Python function"):
        self_test(lambda x: (np.positive(x), np.positive), rng.standard_normal(3))


def test_nothing_to_plant_is_not_a_pass(rng, monkeypatch):
    monkeypatch.setattr("mini_tf.gradcheck.planting.selftest.mutations", lambda *args: [])
    result = self_test(ops.tanh, rng.standard_normal(3))
    assert not result
    assert "nothing is known" in result.explain()

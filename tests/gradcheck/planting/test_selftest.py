"""The self-test: every op's mutants are caught, and a checker that misses bugs is found out."""

from types import SimpleNamespace

from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.selftest import MOST, mutants, self_test
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.places import place
from tests.cases import cases

import numpy as np
import pytest

CHECKED = ["linear, square", "residual_relu", "sigmoid", "masked_softmax", "layer_norm", "attention, causal", "rnn",
           "embedding", "mean_pool", "cross_entropy, smoothed", "copied", "mse", "Linear", "Dropout, training"]


@pytest.mark.parametrize("name", cases(CHECKED[::5], [name for name in CHECKED if name not in CHECKED[::5]]))
def test_no_mutant_of_an_op_or_a_layer_is_missed(name, rng):
    f, inputs, params = EXAMPLES[name](rng)
    result = self_test(f, *inputs, params=params)
    assert result, result
    assert 4 <= len(result.caught) <= MOST


def test_a_blind_checker_is_found_out(rng, monkeypatch):
    monkeypatch.setattr("mini_tf.gradcheck.selftest.judge", lambda *args, **options: SimpleNamespace(verdict="PASS"))
    result = self_test(ops.tanh, rng.standard_normal((2, 3)))
    assert not result
    assert len(result.missed) >= 10 > len(result.caught) == 0
    missed = next(m for m in result.missed if m.after == "return dy * (1 - y)")
    assert f"MISSED: {place(ops.__path__[0] + '/activations.py', missed.line)}\n    right    return dy * (1 - y * y)\n    planted  {missed.after}" in str(result)


def test_a_mutant_that_computes_the_same_or_raises_does_not_count(rng):
    def same_twice(x):
        def backward(dy):
            zero = 0 * dy
            return dy * np.ones_like(x) + zero

        return 0.5 * x + 0.5 * x, backward

    result = self_test(same_twice, rng.standard_normal((2, 3)))
    assert result
    assert {m.after for m in result.harmless} >= {"return dy * np.ones_like(x)", "return dy + zero"}
    assert any(m.after == "return dy @ np.ones_like(x) + zero" for m in mutants(source_of(same_twice(0)[1])))
    assert all("@" not in m.after for m in [*result.caught, *result.missed, *result.harmless])


def test_what_never_ran_is_listed(rng):
    result = self_test(ops.gelu, rng.standard_normal((2, 3)))
    assert len(result.harmless) > 5
    assert all("tanh" in m.before or "cubic" in m.before for m in result.harmless)
    assert f"make no difference on these inputs: mini_tf/ops/activations.py:{result.harmless[0].line}" in str(result)


class Affine:
    def __init__(self, rng):
        self.W, self.b = rng.standard_normal((3, 4)), rng.standard_normal(4)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dy):
        self.dW, self.db = self.x.T @ dy, dy.sum(axis=0)
        return dy @ self.W.T


SCALED = (
    lambda x, s: (x * s, (x, s)),
    lambda dy, cache: {"dx": dy * cache[1], "ds": (dy * cache[0]).sum(0)},
)


def cubed(x):
    return x**3, lambda dy: dy * 3 * x**2


@pytest.mark.parametrize(("f", "shapes", "caught"), [
    (Affine(np.random.default_rng(0)), [(5, 3)], {"return dy", "self.dW, self.db = 2 * (self.x.T @ dy), dy.sum(axis=0)"}),
    (SCALED, [(5, 3), 3], {'lambda dy, cache: {"dx": dy * cache[1], "ds": -1 * (dy * cache[0]).sum(0)}'}),
    (cubed, [3], {"lambda dy: dy * 3", "lambda dy: -1 * (dy * 3 * x**2)"}),
], ids=["object", "pair", "lambda"])  # fmt: skip
def test_every_contract_has_a_self_test(f, shapes, caught, rng):
    result = self_test(f, *map(rng.standard_normal, shapes))
    assert result, result
    assert {m.after for m in result.caught} >= caught


def test_it_starts_from_a_right_backward_with_a_source(rng, monkeypatch):
    with pytest.raises(UserError, match="starts from a backward that passes"):
        self_test(lambda x: (2 * x, lambda dy: dy), rng.standard_normal(3))
    with pytest.raises(UserError, match="this loss comes with its gradients"):
        self_test(lambda w: ((w * w).sum(), 2 * w), rng.standard_normal(3))
    made = {}
    exec("def double(x):\n    return 2 * x, lambda dy: 2 * dy", made)
    with pytest.raises(Unavailable, match="source of double.* is not available"):
        self_test(made["double"], rng.standard_normal(3))
    monkeypatch.setattr("mini_tf.gradcheck.selftest.mutants", lambda *args: [])
    assert not self_test(ops.tanh, rng.standard_normal(3))               # nothing planted is not a pass


def test_every_kind_of_mutant(monkeypatch):
    def backward(dy, layer, x):
        dW = np.sum(dy - x.T @ dy, axis=0)
        for t in reversed(range(3)):
            dW[t] += dy.mean(1) / x[1:]
        np.add.at(dW, [0, 0], dy.transpose(
            0, 1
        ))                                               # a formula over several lines
        while layer:
            layer -= 1                                   # changed, it might never end
        layer.accumulate(dW)
        layer.dV = dW
        return dy, dW  # é ≠ e

    assert len(mutants(source_of(backward))) <= MOST
    monkeypatch.setattr("mini_tf.gradcheck.selftest.MOST", 1000)
    made = {(m.kind.name, m.after) for m in mutants(source_of(backward))}
    assert made >= {
        ("DROPPED", "dW = np.sum(x.T @ dy, axis=0)"), ("DROPPED", "dW = np.sum(dy - x @ dy, axis=0)"),
        ("OPERATION", "dW = np.mean(dy - x.T @ dy, axis=0)"), ("AXIS", "dW = np.sum(dy - x.T @ dy, axis=-1)"),
        ("ORDER", "dW = np.sum(dy - dy @ x.T, axis=0)"), ("STATEMENT", "(without this line)"),
        ("ASSIGNMENT", "dW[t] = dy.mean(1) / x[1:]"), ("INDEX", "dW[t] += dy.mean(1) / x[:]"),
        ("ASSIGNMENT", "layer.dV += dW"),
        ("VALUE", "dW[t] += dy.mean(2) / x[1:]"), ("FACTOR", "layer.dV = 2 * dW"),
        ("FACTOR", "return dy, -1 * dW"), ("ORDER", "return dW, dy"),
    }  # fmt: skip
    assert any(after.startswith("for t in range(3):") for _, after in made)
    assert not any(after.startswith("layer ") for _, after in made)

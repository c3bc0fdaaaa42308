"""What a step says of a model's health: gradient norms, updates, dead ReLUs; and what is worth a sentence."""

import math

from mini_tf import ops
from mini_tf.layers import FeedForward, Layer, Parameter
from mini_tf.training import SGD, Training
from mini_tf.training.health import Health, complaints, layer_of, layers_of
from tests import tiny
from tests.cases import cases

import numpy as np
import pytest


class TwoLayers(Layer):
    """Feed-forward layers with ReLUs, one after the other; loss = mean of y"""

    def __init__(self, rng):
        self.layers = [FeedForward(3, 4, rng, dtype=np.float64), FeedForward(3, 5, rng, dtype=np.float64)]
        self.scale = Parameter(np.ones(3))

    def loss(self, x, rng=None):
        h, first_backward = self.layers[0](x)
        y, second_backward = self.layers[1](h)

        def backward():
            self.scale.accumulate((np.full_like(y, 1 / y.size) * y).sum(0))
            first_backward(second_backward(np.full_like(y, 1 / y.size) * self.scale.data))

        return (y * self.scale.data).mean(), backward


def test_a_row_has_the_norms_the_update_and_the_dead_relus(rng):
    model = TwoLayers(rng)
    model.layers[0].inner.b.data[:] = [-99, 0, 0, 1]     # the first is dead, whatever comes
    x = rng.standard_normal((7, 3))
    first, second = ((x @ model.layers[0].inner.W.data + model.layers[0].inner.b.data).max(0) <= 0,
                     (model.layers[0](x)[0] @ model.layers[1].inner.W.data).max(0) <= 0)  # fmt: skip
    training = Training(model, iter([x]), SGD(0.1))
    before = {name: p.data.copy() for name, p in training.parameters.items()}
    training.one_step(observe=True)
    gradients = {name: (before[name] - p.data) / 0.1 for name, p in training.parameters.items()}
    row = training.health
    assert row["gradient_norm"] == pytest.approx(np.sqrt(sum((g**2).sum() for g in gradients.values())))
    for layer in ("layers.0", "layers.1", "scale"):
        inside = sum((g**2).sum() for name, g in gradients.items() if name.startswith(layer))
        assert row[f"gradient_norm {layer}"] == pytest.approx(np.sqrt(inside))
    change = np.sqrt(sum(((0.1 * g) ** 2).sum() for g in gradients.values()))
    assert row["update_ratio"] == pytest.approx(change / np.sqrt(sum((p**2).sum() for p in before.values())))
    assert first[0]
    assert row["dead_relus"] == (first.sum() + second.sum()) / 9
    assert list(layers_of(row)) == ["layers.0", "layers.1", "scale"]


def test_the_update_of_a_large_parameter_is_measured_on_some_entries(rng):
    large, small = Parameter(rng.standard_normal((700, 500))), Parameter(rng.standard_normal(5))
    parameters = {"large": large, "small": small}
    health, before = Health(parameters), {name: p.data.copy() for name, p in parameters.items()}
    large.data += 1e-3 * rng.standard_normal((700, 500))
    small.data += 0.1
    norms = [math.sqrt(sum((x**2).sum() for x in xs)) for xs in (
        [p.data - before[name] for name, p in parameters.items()], before.values())]  # fmt: skip
    assert health.row({})["update_ratio"] == pytest.approx(norms[0] / norms[1], rel=0.02)
    assert sum(x.size for x in health.before.values()) <= 100_005


@pytest.mark.parametrize("op", ["relu", "residual_relu", "rnn"])
def test_relus_are_dead_if_they_are_0_in_the_whole_batch(op, rng):
    health = Health({})
    a = rng.standard_normal((2, 5, 4))
    a[..., 1] = -abs(a[..., 1])
    a[..., 3] = 0
    with health.watching_relus():
        if op == "relu":
            ops.relu(a)
        elif op == "residual_relu":
            ops.residual_relu(np.ones_like(a), a)
        else:
            zeros = np.zeros((4, 4))
            ops.rnn(a, np.zeros((2, 4)), np.eye(4), zeros, np.zeros(4), activation="relu")
            ops.rnn(a, np.zeros((2, 4)), np.eye(4), zeros, np.zeros(4))              # tanh does not count
        ops.gelu(a)
    assert health.row({})["dead_relus"] == 2 / 4


def test_observing_changes_nothing(tmp_path):
    tiny.train("quick", tmp_path / "a", every=3)
    tiny.train("quick", tmp_path / "b", every=12)        # measured, and so observed, once
    one, other = (tiny.contents(tmp_path / name)["metrics.csv"][-1] for name in "ab")
    assert {k: v for k, v in one.items() if k != "train_loss"} == {k: v for k, v in other.items() if k != "train_loss"}


@pytest.mark.parametrize("name", tiny.NAMES)
def test_every_row_of_every_training_has_the_same_columns(name, tmp_path):
    tiny.train(name, tmp_path / "run")
    rows = tiny.contents(tmp_path / "run")["metrics.csv"]
    assert all(float(row["gradient_norm"]) > 0 and 0 < float(row["update_ratio"]) < 1 for row in rows)
    squares = [sum(float(norm) ** 2 for norm in layers_of(row).values()) for row in rows]
    np.testing.assert_allclose(np.sqrt(squares), [float(row["gradient_norm"]) for row in rows], rtol=1e-6)
    assert (tmp_path / "run" / "gradient_flow.png").exists()


@pytest.mark.parametrize("name", cases(["recurrent"], ["quick", "translate", "classify"]))
def test_the_flow_of_the_gradient_is_drawn(name, tmp_path):
    tiny.train(name, tmp_path / "run", pictures=True)
    assert (tmp_path / "run" / "gradient_flow.png").read_bytes()[:4] == b"\x89PNG"


def test_layers_are_named_by_their_numbers():
    names = {"trunk.layers.0.attention.query.W": "trunk.layers.0", "blocks.12.inner.b": "blocks.12",
             "model.recurrent.Wx": "model.recurrent", "A": "A", "encoder.embedding.table": "encoder.embedding"}  # fmt: skip
    assert {name: layer_of(name) for name in names} == names


def row(**changes):
    fine = {"gradient_norm": 1.0, "update_ratio": 1e-3, "dead_relus": 0.2,
            "gradient_norm layers.0": 0.5, "gradient_norm layers.1": 0.6, "gradient_norm embedding": 1e-9}  # fmt: skip
    return fine | changes


def test_what_is_worth_a_sentence():
    fine = [row() for _ in range(4)]
    assert complaints(fine) == {}
    assert complaints([*fine, row(dead_relus="")]) == {}
    assert "its norm is 1e-05 in layers.0, 0.6 in layers.1" in complaints([*fine, row(**{"gradient_norm layers.0": 1e-5})])["vanishes"]
    assert "its norm is 150, its median so far 1" in complaints([*fine, row(gradient_norm=150.0)])["explodes"]
    assert complaints([row(), row(gradient_norm=150.0)]) == {}                       # too early to say what is usual
    assert complaints([*fine, row(dead_relus=0.95)])["dead"].startswith("95% of the ReLUs are 0")
    assert "changes the weights by 20%" in complaints([*fine, row(update_ratio=0.2)])["update"]
    assert complaints([{"step": 7, "validation_loss": 1.0}]) == {}                   # a row without observations

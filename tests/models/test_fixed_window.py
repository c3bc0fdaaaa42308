"""The fixed-window model: its formula, its compositions, training, bad input."""

import math

from mini_tf import ops
from mini_tf.decoding import generate, greedy
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.examples import generic
from mini_tf.layers.embedding import ABSENT
from mini_tf.models import FixedWindowModel
from mini_tf.models.fixed_window import COMPOSITIONS
from mini_tf.training import Adam, RandomWindows, Training, fit

import numpy as np
import pytest

c, n, T, k = 7, 3, 4, 5


def make(rng, **options):
    model = FixedWindowModel(rng.standard_normal((c, n)), **{"T": T, "k": k} | options)
    generic(model, rng)
    return model


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("train_embeddings", [True, False])
def test_gradients(composition, activation, train_embeddings, rng):
    model = make(rng, composition=composition, activation=activation, train_embeddings=train_embeddings)
    batch = rng.integers(0, c, (3, T + 1))
    report = gradcheck(lambda: model.loss(batch), params=model.parameters())
    assert report
    assert ("embedding.table" in {t.name for t in report.tensors}) == train_embeddings


def test_the_formula(rng):
    model = make(rng)
    p = {name: parameter.data for name, parameter in model.parameters().items()}
    ids = rng.integers(0, c, (2, T))
    e = np.concatenate([p["embedding.table"][ids[:, t]] for t in range(T)], axis=1)
    expected = np.tanh(e @ p["hidden.W"] + p["hidden.b"]) @ p["readout.W"] + p["readout.b"]
    np.testing.assert_allclose(model.logits(ids), expected)


def test_further_hidden_layers(rng):
    model = make(rng, hidden_layers=3, composition="maximum")
    p = {name: parameter.data for name, parameter in model.parameters().items()}
    ids = rng.integers(0, c, (2, T))
    h = p["embedding.table"][ids].max(1)
    for name in ("hidden", "further.0", "further.1"):
        h = np.tanh(h @ p[f"{name}.W"] + p[f"{name}.b"])
    np.testing.assert_allclose(model.logits(ids), h @ p["readout.W"] + p["readout.b"])
    batch = rng.integers(0, c, (3, T + 1))
    assert gradcheck(lambda: model.loss(batch), params=model.parameters())
    assert make(rng).parameters().keys() == make(rng, hidden_layers=1).parameters().keys()


def test_the_product_of_a_shorter_history_is_0(rng):
    model = make(rng, composition="product")
    np.testing.assert_array_equal(model.logits(np.array([[1, 2, 3]])), model.logits(np.array([[4]])))


def test_only_concatenation_keeps_word_order(rng):
    ids, moved = np.array([[0, 1, 2, 3]]), np.array([[2, 0, 3, 1]])
    for composition in COMPOSITIONS.keys() - {"concatenation"}:
        model = make(rng, composition=composition)
        np.testing.assert_allclose(model.logits(ids), model.logits(moved), rtol=1e-12)
    model = make(rng)
    assert not np.allclose(model.logits(ids), model.logits(moved))


def test_a_one_hot_vector_times_the_table_is_a_row_of_it(rng):
    """Its gradient, too, is that of looking up the row."""
    table, ids = rng.standard_normal((c, n)), np.array([[2, 0, 2], [6, 2, 1]])
    one_hot = np.eye(c)[ids]                             # (2, 3, c)
    by_product, product_backward = ops.linear(one_hot, table)
    by_look_up, look_up_backward = ops.embedding(table, ids)
    np.testing.assert_array_equal(by_product, by_look_up)
    dx = rng.standard_normal((2, 3, n))
    np.testing.assert_allclose(product_backward(dx)[1], look_up_backward(dx)[0])


def test_only_concatenation_learns_a_text_that_needs_word_order(rng):
    text = np.tile([0, 1, 2, 1, 0, 3], 50)               # after 0 1 comes 2, after 2 1 comes 0
    losses = {}
    for composition in ("concatenation", "sum"):
        model = FixedWindowModel(rng.standard_normal((c, n)), T=2, k=16, composition=composition)
        assert float(model.loss(text[:3][None])[0]) == pytest.approx(math.log(c))
        fit(Training(model, RandomWindows(text, 2, 32, rng), Adam(0.02)), steps=150, validate=lambda: 0)
        losses[composition] = -model.log_probabilities(text, 2).mean()
    assert losses["concatenation"] < 0.02
    assert losses["sum"] == pytest.approx(math.log(2), abs=0.03)         # 0 1 or 1 0, 1 2 or 2 1, 0 3 or 3 0?


def test_log_probabilities_are_those_of_the_logits(rng):
    model = make(rng)
    ids = rng.integers(0, c, 300)
    log_p = model.log_probabilities(ids)
    assert log_p.shape == (300,)
    for t in (0, 1, 3, 4, 150, 299):
        history = ids[max(t - T, 0) : t]
        padded = np.concatenate([np.full(T - len(history), ABSENT), history])
        z = model.logits(padded[None])[0]
        assert log_p[t] == pytest.approx(z[ids[t]] - np.log(np.exp(z).sum()))
    for start in (2, 4, 77, 300):
        np.testing.assert_allclose(model.log_probabilities(ids, start), log_p[start:])
    loss = float(model.next_word_loss(ids[:5][None]))
    assert loss == pytest.approx(-log_p[4])


def test_it_writes_from_prompts_of_any_length(rng):
    model = make(rng)
    for length in (0, 1, T, T + 3):
        assert len(list(generate(model, rng.integers(0, c, length), 5, greedy))) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"T": 0}, "T is 0, expected a whole number of at least 1"),
        ({"k": 1.5}, "k is 1.5, expected a whole number"),
        ({"dropout": 1.0}, "dropout is 1.0, expected 0 ≤ dropout < 1"),
        ({"composition": "bag"}, "composition 'bag' is unknown, expected one of concatenation, sum, mean, maximum, product"),
        ({"hidden_layers": 0}, "hidden_layers is 0, expected a whole number of at least 1"),
        ({"activation": "step"}, "activation 'step' is unknown, expected one of tanh, relu"),
    ],
)
def test_bad_options(options, message, rng):
    with pytest.raises(UserError, match=message):
        make(rng, **options)


def test_bad_input(rng):
    model = make(rng)
    with pytest.raises(ValueError, match=r"windows have shape \(2, 3\), expected \(B, 5\)"):
        model.loss(np.zeros((2, 3), dtype=int))
    with pytest.raises(ValueError, match=r"histories of 5 words, expected at most T = 4"):
        model.logits(np.zeros((1, 5), dtype=int))
    with pytest.raises(UserError, match=r"id 7, expected ids from 0 to 6"):
        model.log_probabilities(np.array([7]))
    model.readout.W.data[0, 0] = np.nan
    with pytest.raises(UserError, match=r"not numbers \(NaN\).*train again"):
        model.log_probabilities(np.arange(5))
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        list(generate(model, [1], 1, greedy))

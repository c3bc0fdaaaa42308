"""The transformer that copies: its formula, its gradients, what a softmax alone cannot do, bad input."""

import itertools
import math

from mini_tf.decoding import generate, greedy
from mini_tf.errors import UserError
from mini_tf.experiment import PointerTransformer
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.examples import generic
from mini_tf.metrics import log_softmax_at
from mini_tf.training import Adam, Training, fit
from tests.cases import cases

import numpy as np
import pytest

c, n, T = 9, 4, 6


def make(rng, **options):
    model = PointerTransformer(
        rng.standard_normal((c, n)), rng.integers(0, 9, c), **{"T": T, "L": 2, "H": 2, "m": 3, "f": 5} | options
    )
    generic(model, rng)
    return model


@pytest.mark.parametrize(("dropout", "L"), cases([(0.3, 0)], [(0.0, 1), (0.3, 1)]))
def test_gradients(dropout, L, rng):
    model = make(rng, L=L, dropout=dropout)
    batch = rng.integers(0, c, (2, T + 1))
    assert gradcheck(lambda: model.loss(batch, np.random.default_rng(1)), params=model.parameters())
    assert gradcheck(lambda: model.loss(batch[:, :3]), params=model.parameters())        # shorter windows, too


def test_probabilities_sum_to_1_and_give_the_loss(rng):
    model = make(rng)
    ids = rng.integers(0, c, (2, T + 1))
    log_p = model.logits_after_each(ids[:, :-1])         # (2, T, c)
    np.testing.assert_allclose(np.exp(log_p).sum(-1), 1)
    of_words = np.take_along_axis(log_p, ids[:, 1:, None], -1)
    assert float(model.loss(ids)[0]) == pytest.approx(-of_words.mean())


def test_the_formula_at_the_last_word(rng):
    """p = g·softmax(h·Eᵀ + b) + (1 − g)·(where the pointer points), written out."""
    model = make(rng)
    ids = np.array([[3, 1, 3, 7]])
    h = model.trunk(ids)[0][0]
    p = {name: parameter.data for name, parameter in model.parameters().items()}
    own = np.exp(h[-1] @ p["trunk.embedding.table"].T + p["b"])
    scores = np.exp((h[-1] @ p["query.W"]) @ (h @ p["key.W"]).T / math.sqrt(3))
    g = 1 / (1 + np.exp(-(h[-1] @ p["gate.W"] + p["gate.b"])))
    expected = g * own / own.sum()
    for j in range(4):
        expected[ids[0, j]] += (1 - g[0]) * scores[j] / scores.sum()
    np.testing.assert_allclose(np.exp(model.logits(ids))[0], expected)


def test_log_probabilities_are_those_of_the_windows(rng):
    model = make(rng)
    ids = rng.integers(0, c, 40)
    log_p = model.log_probabilities(ids)
    assert log_p.shape == (40,)
    assert log_p[0] == pytest.approx(log_softmax_at(model.b.data, ids[0]))
    for t in range(1, T):                                # the first windows begin with the text
        assert log_p[t] == pytest.approx(model.logits(ids[None, :t])[0, ids[t]]), t
    for start, t in itertools.product((0, 1, 5, 17), (17, 30, 39)):
        histories = [ids[None, t - reach : t] for reach in range(T // 2, T + 1)]
        possible = [model.logits(history)[0, ids[t]] for history in histories]
        assert np.isclose(model.log_probabilities(ids, start)[t - start], possible).any()
    with pytest.raises(UserError, match="the text has 6 words, expected more than T = 6"):
        model.mean_loss(ids[:T])


def test_an_untrained_model_knows_the_frequencies(rng):
    counts = np.array([8, 0, 3])
    model = PointerTransformer(np.zeros((3, 4)), counts, T=2, L=0)
    expected = (counts + 0.5) / 12.5
    np.testing.assert_allclose(np.exp(model.logits(np.zeros((1, 0), dtype=int)))[0], expected)
    g = 1 / (1 + math.exp(-2))
    np.testing.assert_allclose(np.exp(model.logits(np.array([[1]])))[0], g * expected + (1 - g) * np.eye(3)[1])
    without = PointerTransformer(np.zeros((3, 4)), T=2, L=0)
    np.testing.assert_allclose(np.exp(without.b.data), 1 / 3)
    assert "b" not in {name for name, p in model.parameters().items() if p.trainable}


def test_it_copies_words_that_it_never_saw(rng):
    """Every text repeats one word. The readout alone cannot predict a word that it was never trained on."""
    size = 300

    def batches():
        while True:
            yield np.repeat(rng.integers(0, 280, (32, 1)), 7, axis=1)

    model = PointerTransformer(rng.standard_normal((size, 16)) / 4, T=6, L=1, H=2, m=8, f=16, dropout=0.0)
    fit(Training(model, batches(), Adam(0.01)), steps=80, validate=lambda: 0)
    unseen = np.arange(290, 300)
    p = np.exp(model.logits(np.repeat(unseen[:, None], 3, axis=1)))[np.arange(10), unseen]
    h, _ = model.trunk(np.repeat(unseen[:, None], 3, axis=1))
    own = np.exp(log_softmax_at(model.readout(h[:, -1])[0], unseen))
    assert p.min() > 0.95
    assert own.max() < 0.5
    assert list(generate(model, [295], 3, greedy)) == [295] * 3


def test_the_order_of_the_words_matters(rng):
    """Distance alone is enough: two histories of the same words, ending in the same one, give different h."""
    model = make(rng)
    one, other = (model.trunk(np.array([ids]))[0][0, -1] for ids in ([1, 2, 3, 4], [2, 3, 1, 4]))
    assert not np.allclose(one, other)


def test_a_future_word_changes_nothing(rng):
    model = make(rng)
    ids = rng.integers(0, c, (1, T))
    changed = ids.copy()
    changed[0, -1] = (ids[0, -1] + 1) % c
    np.testing.assert_array_equal(model.trunk(changed)[0][:, :-1], model.trunk(ids)[0][:, :-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"T": 0}, "T is 0, expected a whole number of at least 1"),
        ({"L": -1}, "L is -1, expected a whole number of at least 0"),
        ({"f": 2.5}, "f is 2.5, expected a whole number"),
        ({"dropout": 0.7}, "dropout is 0.7, expected 0 ≤ dropout < 0.667"),
    ],
)
def test_bad_options(options, message, rng):
    with pytest.raises(UserError, match=message):
        make(rng, **options)


def test_bad_input(rng):
    with pytest.raises(UserError, match=r"frequencies have shape \(2,\), expected \(9,\)"):
        PointerTransformer(np.zeros((c, 4)), np.zeros(2))
    model = make(rng)
    with pytest.raises(ValueError, match=r"windows have shape \(2, 8\), expected \(B, 2 to 7\)"):
        model.loss(np.zeros((2, T + 2), dtype=int))
    with pytest.raises(ValueError, match="ids has the id -1, expected no absent words"):
        model.loss(np.full((1, T + 1), -1))
    with pytest.raises(ValueError, match=r"histories of 7 words, expected at most T = 6"):
        model.logits(np.zeros((1, T + 1), dtype=int))
    with pytest.raises(UserError, match=r"id 9, expected ids from 0 to 8"):
        model.log_probabilities(np.array([1, 9]))


@pytest.mark.parametrize("name", ["trunk.layers.0.attention.query.W", "trunk.embedding.table", "query.W", "key.W", "gate.W", "gate.b"])
def test_weights_that_are_not_numbers(name, rng):
    model = make(rng)
    model.parameters()[name].data[...] = np.nan
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        model.log_probabilities(np.arange(5))
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        list(generate(model, [1], 1, greedy))

"""The baselines that a model is compared with, and the figures of a classifier."""

import math

from mini_tf.errors import UserError
from mini_tf.metrics import (
    accuracy,
    confusion,
    log_frequencies,
    log_softmax_at,
    perplexity,
    uniform_cross_entropy,
    unigram_cross_entropy,
)

import numpy as np
import pytest


def test_a_uniform_guess_among_c_words_has_perplexity_c():
    assert uniform_cross_entropy(14_295) == pytest.approx(9.568, abs=5e-4)
    assert perplexity(uniform_cross_entropy(50)) == pytest.approx(50)


def test_a_perplexity_beyond_all_floats_is_infinite():
    assert perplexity(800) == perplexity(math.inf) == math.inf
    assert perplexity(709) == pytest.approx(8.2e307, rel=0.01)


def test_without_words_there_is_no_baseline():
    for c in (0, -1, 2.5):
        with pytest.raises(UserError, match="c is .*, expected a whole number of at least 1"):
            uniform_cross_entropy(c)
    for train, test in (([], [0]), ([0], [])):
        with pytest.raises(UserError, match="expected at least one in each"):
            unigram_cross_entropy(np.array(train, int), np.array(test, int), 3)


def test_unigram_by_hand():
    # 4 words, "0" three times and "1" once; D = 0.5 taken from both kinds gives 2·0.5/4 to share among c = 4
    p = [2.5 / 4 + 0.25 / 4, 0.5 / 4 + 0.25 / 4, 0.25 / 4, 0.25 / 4]
    assert sum(p) == pytest.approx(1)
    for word in range(4):
        loss = unigram_cross_entropy(np.array([0, 0, 1, 0]), np.array([word]), 4, discount=0.5)
        assert loss == pytest.approx(-math.log(p[word]))


def test_unigram_on_the_labs_test_words_is_6_06(lab_corpus):
    _, vocabulary, ids = lab_corpus
    cut = int(0.9 * len(ids))
    assert unigram_cross_entropy(ids[:cut], ids[cut:], len(vocabulary)) == pytest.approx(6.06, abs=0.01)


def test_log_softmax_at_words(rng):
    logits, words = rng.standard_normal((2, 3, 5)), rng.integers(0, 5, (2, 3))
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = np.log(np.take_along_axis(p, words[..., None], -1)[..., 0])
    np.testing.assert_allclose(log_softmax_at(logits, words), expected)
    far = log_softmax_at(np.array([[1000.0, 0.0]], dtype=np.float32), np.array([1]))
    assert far == pytest.approx(-1000)                   # where the probability itself underflows to 0
    for infinite in ([[np.inf, 0.0]], [[-np.inf, -np.inf]]):
        with pytest.raises(UserError, match="largest logit of a word is infinite"):
            log_softmax_at(np.array(infinite), np.array([1]))
    logits[1, 2, 3] = np.nan
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        log_softmax_at(logits, words)


def test_log_frequencies():
    np.testing.assert_allclose(np.exp(log_frequencies(np.array([3, 0]), 2)), [3.5 / 4, 0.5 / 4])
    np.testing.assert_allclose(np.exp(log_frequencies(None, 4)), 0.25)
    with pytest.raises(UserError, match=r"shape \(2,\), expected \(3,\)"):
        log_frequencies(np.zeros(2), 3)


def test_accuracy_is_the_share_of_right_predictions():
    assert accuracy([0, 1, 2, 1], [0, 1, 1, 1]) == 0.75
    assert accuracy(np.zeros(3), np.ones(3)) == 0
    for predicted, labels in (([0, 1], [0]), ([[0, 1]], [0, 1]), ([], [])):
        with pytest.raises(UserError, match=r"accuracy: predicted has shape .* expected the same shape, and at least"):
            accuracy(predicted, labels)


def test_confusion_has_a_row_for_each_true_class(rng):
    assert confusion([1, 1, 0, 2], [0, 1, 0, 1], 4).tolist() == [[1, 1, 0, 0], [0, 1, 1, 0], [0] * 4, [0] * 4]
    assert confusion([], [], 2).tolist() == [[0, 0], [0, 0]]
    predicted, labels = rng.integers(0, 5, (2, 200))
    counted = confusion(predicted, labels, 5)
    assert counted.dtype == np.int64
    np.testing.assert_array_equal(counted.sum(1), np.bincount(labels))
    np.testing.assert_array_equal(counted.sum(0), np.bincount(predicted))
    assert counted.trace() / 200 == accuracy(predicted, labels)


@pytest.mark.parametrize(
    ("predicted", "labels", "message"),
    [
        ([0, 3], [0, 1], r"predicted: entry 1 is 3, expected classes from 0 to 2"),
        ([0, 1], [-1, 1], r"labels: entry 0 is -1, expected classes from 0 to 2"),
        ([0, 1], [0.0, 1.0], r"labels: shape \(2,\) and dtype float64, expected integers in one row"),
        ([[0, 1]], [0, 1], r"predicted: shape \(1, 2\)"),
        ([0, 1], [0], r"there are 2 predictions and 1 labels"),
    ],
)
def test_confusion_of_what_does_not_fit(predicted, labels, message):
    with pytest.raises(UserError, match=message):
        confusion(predicted, labels, 3)

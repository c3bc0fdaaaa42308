"""The baselines that a model is held against."""

import math

from mini_tf.metrics import perplexity, uniform_cross_entropy, unigram_cross_entropy

import numpy as np
import pytest


def test_a_uniform_guess_among_c_words_has_perplexity_c():
    assert uniform_cross_entropy(14_295) == pytest.approx(9.568, abs=5e-4)
    assert perplexity(uniform_cross_entropy(50)) == pytest.approx(50)


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

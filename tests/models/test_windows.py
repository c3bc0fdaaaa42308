"""Losses of a causal transformer on windows side by side."""

from mini_tf.errors import UserError
from mini_tf.metrics import log_softmax_at, mean_of
from mini_tf.models import Llama

import numpy as np
import pytest

c, T = 9, 4


@pytest.fixture
def model(rng):
    return Llama(rng.standard_normal((c, 6)).astype("f4"), T=T, L=1, H=1, m=6, f=5)


def test_each_word_is_predicted_from_those_before_it_in_its_window(model, rng):
    ids, seen = rng.integers(0, c, 3 * T + 2), []
    parts = model.window_loss_parts(ids, on_batch=lambda done, of: seen.append((done, of)))
    expected = []
    for first in range(T, 3 * T, T):                     # of the window's predictions; the last two words are left out
        for place in range(first, first + T):
            logits = model.logits(ids[None, first - 1 : place])
            expected.append(-log_softmax_at(logits, ids[place : place + 1])[0])
    np.testing.assert_allclose(mean_of(parts), np.mean(expected), rtol=1e-5)
    assert seen == [(2 * T, 2 * T)]


def test_fewer_words_come_in_evenly_spaced_windows(model, rng):
    ids = rng.integers(0, c, 101 * T)
    some, of_all = (mean_of(model.window_loss_parts(ids, most)) for most in (40 * T, None))
    windows = ids[T - 1 :][np.arange(100)[:, None] * T + np.arange(T + 1)]
    chosen = np.linspace(0, 99, 40).astype(int)
    np.testing.assert_allclose(some, model.loss(windows[chosen])[0], rtol=1e-5)
    np.testing.assert_allclose(of_all, model.loss(windows)[0], rtol=1e-5)


def test_a_text_without_a_whole_window_is_refused(model, rng):
    with pytest.raises(UserError, match="expected more than"):
        model.window_loss_parts(rng.integers(0, c, 2 * T - 1))

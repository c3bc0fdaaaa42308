"""Choosing the next word, and writing word by word."""

from functools import partial

from mini_tf.decoding import continuations, generate, greedy, sample
from mini_tf.errors import UserError
from mini_tf.models import TextModel
from tests.strict import strict

import numpy as np
import pytest
from scipy.special import softmax

LOGITS = np.array([0.0, 2.0, 1.0, -1.0])


def _frequencies(rng, draws=40_000, **options):
    return np.bincount(sample(np.tile(LOGITS, (draws, 1)), rng, **options), minlength=4) / draws


def test_greedy_takes_the_most_probable(rng):
    assert greedy(np.array([[0.0, 3.0, 1.0], [2.0, -1.0, 0.0]])).tolist() == [1, 0]


def test_samples_follow_the_probabilities(rng):
    np.testing.assert_allclose(_frequencies(rng), softmax(LOGITS), atol=0.01)


def test_temperature_sharpens_and_flattens(rng):
    np.testing.assert_allclose(_frequencies(rng, temperature=0.5), softmax(LOGITS / 0.5), atol=0.01)
    np.testing.assert_allclose(_frequencies(rng, temperature=50), 0.25, atol=0.02)
    assert (sample(np.tile(LOGITS, (100, 1)), rng, temperature=1e-3) == 1).all()


@pytest.mark.parametrize("temperature", [1e-3, 1e-300, 1e-310, 5e-324])
@pytest.mark.parametrize("top_k", [None, 2])
def test_at_the_smallest_temperatures_the_most_probable_word_is_left(temperature, top_k, rng):
    logits = np.concatenate([LOGITS, [-np.inf]])
    for shift in (0, -1000, 1e9):
        assert (sample(np.tile(logits + shift, (50, 1)), rng, temperature, top_k) == 1).all()
    assert set(sample(np.tile([0.0, 3.0, 3.0], (100, 1)), rng, temperature, top_k)) == {1, 2}


def test_at_the_largest_temperature_all_words_are_alike_but_impossible_ones(rng):
    frequencies = np.bincount(sample(np.tile([0.0, 2.0, -np.inf, 9.0], (9_000, 1)), rng, temperature=1e308)) / 9_000
    np.testing.assert_allclose(frequencies, [1 / 3, 1 / 3, 0, 1 / 3], atol=0.02)


def test_top_k_keeps_the_k_most_probable(rng):
    frequencies = _frequencies(rng, top_k=2)
    np.testing.assert_allclose(frequencies, [0, *softmax(LOGITS[[1, 2]]), 0], atol=0.01)
    assert (sample(np.tile(LOGITS, (50, 1)), rng, top_k=1) == 1).all()
    np.testing.assert_allclose(_frequencies(rng, top_k=99), softmax(LOGITS), atol=0.01)


def test_top_p_keeps_the_fewest_words_whose_probabilities_suffice(rng):
    p = softmax(LOGITS)
    order = np.argsort(-p)
    for kept in (1, 2, 3):
        least = p[order[:kept]].sum()
        for top_p in (least - 1e-3, least - p[order[kept - 1]] + 1e-3):
            expected = np.where(np.isin(np.arange(len(p)), order[:kept]), p, 0)
            np.testing.assert_allclose(_frequencies(rng, top_p=top_p), expected / expected.sum(), atol=0.01)
    np.testing.assert_allclose(_frequencies(rng, top_p=1), p, atol=0.01)
    assert set(sample(np.tile(LOGITS, (500, 1)), rng, temperature=0.1, top_p=0.9)) == {order[0]}     # at this temperature


@pytest.mark.parametrize("top_p", [0, -0.1, 1.1, float("nan"), "most", True])
def test_top_p_is_a_share(top_p, rng):
    with pytest.raises(UserError, match="top_p is .*, expected more than 0 and at most 1"):
        sample(LOGITS, rng, top_p=top_p)


def test_words_of_probability_0_are_never_chosen():
    class Extreme:
        def random(self, shape):
            return np.full(shape, self.u)

    for u in (0.0, 1 - 2**-53):
        source = Extreme()
        source.u = u
        chosen = sample(np.array([[-np.inf, 0.0, 0.0, -np.inf]]), source)
        assert chosen[0] in (1, 2)


def test_the_same_seed_chooses_the_same_words():
    logits = np.random.default_rng(0).standard_normal((20, 9))
    a, b = (sample(logits, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_logits_on_a_device_come_to_the_host(rng):
    assert greedy(strict(LOGITS[None])).tolist() == [1]
    assert sample(strict(LOGITS[None]), rng, top_k=1).tolist() == [1]


def test_bad_settings_are_named(rng):
    for temperature in (0, -1, float("nan"), float("inf"), 10**400, "1", None, True):
        with pytest.raises(UserError, match="temperature is .*expected a number above 0"):
            sample(LOGITS[None], rng, temperature=temperature)
    for top_k in (0, -1, 2.5, float("nan"), "2", True):
        with pytest.raises(UserError, match="top_k is .*, expected a whole number of at least 1"):
            sample(LOGITS[None], rng, top_k=top_k)
    assert sample(LOGITS[None], rng, top_k=10**30) in range(4)


def test_how_many_words_is_checked():
    for words in (-1, 2.5, "3"):
        with pytest.raises(UserError, match="words is .*, expected a whole number of at least 0"):
            list(generate(Counting(), [1], words, greedy))
    assert list(generate(Counting(), [1], 0, greedy)) == []
    for most in (0, -1, 2.5):
        with pytest.raises(UserError, match="most is .*, expected a whole number of at least 1"):
            continuations(Counting(), [1], most)
    assert len(continuations(Counting(), [1], 99)[0]) == 10


@pytest.mark.parametrize("row", [[np.inf, 0.0], [np.inf, -np.inf], [-np.inf, -np.inf]])
def test_logits_without_a_finite_maximum_are_refused(row, rng):
    with pytest.raises(UserError, match="largest logit of a word is infinite"):
        sample(np.array([[0.0, 0.0], row]), rng)


class Counting(TextModel):
    """A model that always predicts the id after the last one, and records the histories that it gets."""

    T, c = 4, 10

    def __init__(self):
        self.seen = []

    def logits(self, histories):
        self.seen.append(histories[0].tolist())
        last = histories[0, -1] if histories.shape[1] else -1
        return np.eye(self.c)[[(last + 1) % self.c]]


def test_generation_moves_the_history_along():
    model = Counting()
    assert list(generate(model, [5], 6, greedy)) == [6, 7, 8, 9, 0, 1]
    assert model.seen == [[5], [5, 6], [5, 6, 7], [5, 6, 7, 8], [6, 7, 8, 9], [7, 8, 9, 0]]


def test_long_prompts_use_their_last_words_and_empty_ones_work():
    model = Counting()
    assert list(generate(model, range(9), 1, greedy)) == [9]
    assert model.seen == [[5, 6, 7, 8]]
    assert list(generate(model, [], 2, partial(sample, rng=np.random.default_rng(0), top_k=1))) == [0, 1]


def test_bad_prompts_and_nan_logits_are_refused():
    class Model(TextModel):
        T, c = 2, 4

        def logits(self, histories):
            return np.zeros((1, 4))

    for prompt in ([1.7], [[1]], "words"):
        with pytest.raises(UserError, match="the prompt: ids have shape .*, expected integers in one row: try"):
            list(generate(Model(), prompt, 1, greedy))
        with pytest.raises(UserError, match="the prompt: ids have shape"):
            continuations(Model(), prompt)
    for prompt in ([10], [-1], [2**40], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(UserError, match="the prompt: word 0 has the id .*, expected ids from 0 to 9"):
            list(generate(Counting(), prompt, 1, greedy))
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        sample(np.array([[0.0, np.nan]]), np.random.default_rng(0))
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        greedy(np.array([[0.0, np.nan]]))

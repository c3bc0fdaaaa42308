"""Counting models: the formulas by brute force, probabilities that sum to 1, known numbers, bad input."""

import itertools
import math
from collections import Counter
from functools import cache

from mini_tf.decoding import continuations, generate, greedy, sample
from mini_tf.errors import UserError
from mini_tf.metrics import unigram_cross_entropy
from mini_tf.models import NGramModel, markov_chain
from mini_tf.models.ngram import SMOOTHINGS

import numpy as np
import pytest

SUNNY, RAINY = 0, 1
c = 5
TEXT = np.array([0, 1, 2, 0, 1, 3, 0, 1, 2, 2, 0, 3, 1, 0, 1, 2, 0, 0, 1])      # the word 4 never occurs


def test_the_weather_of_the_lecture():
    pi, A = markov_chain([[SUNNY, SUNNY, RAINY, RAINY, RAINY], [RAINY, SUNNY, SUNNY, SUNNY, RAINY]], 2)
    assert pi.tolist() == [0.5, 0.5]
    assert A.tolist() == [[3 / 5, 2 / 5], [1 / 3, 2 / 3]]


def test_a_state_that_is_never_left_has_a_uniform_row():
    pi, A = markov_chain([[0, 1], [0, 1], [0, 2]], 3)
    assert pi.tolist() == [1, 0, 0]
    np.testing.assert_allclose(A, [[0, 2 / 3, 1 / 3], [1 / 3] * 3, [1 / 3] * 3])


# The textbook's definitions in plain Python, which share nothing with the model's arrays.


@cache
def counted(text, k):
    return Counter(tuple(text[t : t + k]) for t in range(len(text) - k + 1))


@cache
def company(text, k):
    """How many distinct words precede each k-gram."""
    return Counter(gram[1:] for gram in counted(text, k + 1))


def after(counts, h):
    return {gram[-1]: n for gram, n in counts.items() if gram[:-1] == h}


def brute_force(smoothing, text, order, h, w, discount=0.75, k=1.0, backoff=0.4):
    """p(w | h) for a history h of at most order − 1 words, as in the textbook."""
    n = len(h) + 1
    if smoothing == "maximum-likelihood":
        follows = after(counted(text, n), h)
        return follows.get(w, 0) / sum(follows.values()) if follows else brute_force(smoothing, text, order, h[1:], w)
    if smoothing == "add-k":
        follows = after(counted(text, n), h) if n == order else {}
        return (follows.get(w, 0) + k) / (sum(follows.values()) + k * c)
    if smoothing == "stupid-backoff":

        def score(h, w):
            follows = after(counted(text, len(h) + 1), h)
            if w in follows:
                return follows[w] / sum(follows.values())
            return backoff * (score(h[1:], w) if h else 1 / c)

        return score(h, w) / sum(score(h, v) for v in range(c))

    def taken(n, counts):
        if smoothing == "kneser-ney":
            return discount
        N = Counter(counts.values())
        i = min(n, 3)
        Y = N[1] / (N[1] + 2 * N[2]) if N[1] else 0
        D = i - (i + 1) * Y * N[i + 1] / N[i] if N[1] and N[i] else 0
        return D if 0 < D <= i else discount

    def p(h):
        n = len(h) + 1
        lower = p(h[1:]) if h else 1 / c
        counts = counted(text, n) if n == order else company(text, n)
        follows = after(counts, h)
        total = sum(follows.values())
        if not total:
            return lower
        rest = sum(taken(n, counts) for n in follows.values()) / total
        seen = (follows[w] - taken(follows[w], counts)) / total if w in follows else 0
        return seen + rest * lower

    return p(h)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_smoothing_is_the_textbooks(smoothing, order):
    model = NGramModel(order, c, smoothing, k=0.3).fit(TEXT)
    for h in itertools.product(range(c), repeat=order - 1):
        expected = [brute_force(smoothing, tuple(TEXT), order, h, w, k=0.3) for w in range(c)]
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(model.logits([h])[0], np.log(expected), atol=1e-12)


def test_modified_discounts_are_estimated_where_they_can_be():
    """TEXT is too short for three estimates; at order 4 of this one all three differ, from `discount` too."""
    text = np.random.default_rng(0).choice(c, 300, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    model = NGramModel(4, c, "modified-kneser-ney").fit(text)
    for h in [tuple(text[t : t + 3]) for t in range(0, 290, 40)]:
        expected = [brute_force("modified-kneser-ney", tuple(text), 4, h, w) for w in range(c)]
        np.testing.assert_allclose(np.exp(model.logits([h])[0]), expected, atol=1e-12)
    assert not np.allclose(model.levels[3].rest, NGramModel(4, c).fit(text).levels[3].rest)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", range(1, 8))
def test_probabilities_sum_to_1_after_any_history(smoothing, order, rng):
    size = 12
    text = rng.zipf(1.4, 400) % (size - 1)               # the last word never occurs
    model = NGramModel(order, size, smoothing).fit(text)
    histories = [text[t : t + order - 1] for t in (0, 50, 399 - order)]          # seen; the last one ends the text
    histories += [rng.integers(0, size, length) for length in range(9)]         # too short, unseen, too long
    histories += [np.full(order, size - 1)]
    p = np.exp(np.concatenate([model.logits([h]) for h in histories]))
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-12)
    if smoothing != "maximum-likelihood":
        assert p.min() > 0


@pytest.mark.parametrize("smoothing", [s for s in SMOOTHINGS if s != "maximum-likelihood"])
def test_a_text_at_once_is_its_words_one_by_one(smoothing, rng):
    text, other = rng.integers(0, c, 200), rng.integers(0, c, 40)
    model = NGramModel(3, c, smoothing).fit(text)
    expected = [model.logits([other[:t]])[0, other[t]] for t in range(len(other))]
    np.testing.assert_allclose(model.log_probabilities(other), expected, atol=1e-12)
    for start in (0, 1, 2, 17, 40):
        np.testing.assert_allclose(model.log_probabilities(other, start), expected[start:], atol=1e-12)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_what_a_word_is_before_anything_is_counted(smoothing):
    """p_0 is where every smoothing ends: it gives the unseen word its share, and probabilities still sum to 1."""
    p_0 = np.array([0.1, 0.1, 0.1, 0.1, 0.6])
    told, uniform = (NGramModel(3, c, smoothing, p_0=p).fit(TEXT) for p in (p_0, None))
    for history in ([], [0, 1], [3, 3], [4, 4]):
        with np.errstate(divide="ignore"):
            p, q = (np.exp(model.logits([history]))[0] for model in (told, uniform))
        assert p.sum() == pytest.approx(1)
        assert smoothing == "maximum-likelihood" or p[4] > q[4]
    np.testing.assert_array_equal(p_0, [0.1, 0.1, 0.1, 0.1, 0.6])          # not written into


def test_order_1_is_the_unigram_baseline(rng):
    train, test = rng.integers(0, 50, 90), rng.integers(0, 60, 300)
    ours = -NGramModel(1, 60).fit(train).log_probabilities(test).mean()
    assert ours == pytest.approx(unigram_cross_entropy(train, test, 60), rel=1e-12)


def test_the_bar_on_the_labs_corpus(lab_corpus):
    """Figures of other programs, for orders 1, 2, 3, 5 with a single discount of 0.9: 6.06, 5.17, 5.05, 5.07."""
    _, vocabulary, ids = lab_corpus
    first_test = int(0.9 * len(ids))

    def cross_entropy(order, **options):
        model = NGramModel(order, len(vocabulary), **options).fit(ids[:first_test])
        return -model.log_probabilities(ids, first_test).mean()

    ours = [cross_entropy(order, discount=0.9) for order in (1, 2, 3, 5)]
    assert ours == pytest.approx([6.06, 5.17, 5.05, 5.07], abs=6e-3)
    assert cross_entropy(3, smoothing="modified-kneser-ney") < 5.04


def test_matched_counts_known_words_from_the_right(rng):
    model = NGramModel(3, c).fit([0, 1, 2, 3])
    assert model.matched(np.array([0, 1, 2, 0, 2, 3, 4, 3])).tolist() == [1, 2, 3, 1, 1, 2, 0, 1]
    assert model.matched(np.array([1, 2, 3]), start=2).tolist() == [3]
    assert model.grams == [4, 3, 2]


def test_top_continuations_are_shares_of_counts():
    model = NGramModel(3, c, "maximum-likelihood").fit(TEXT)
    words, p = continuations(model, [2, 0, 1], 3)       # longer than the order: 0, 1 is followed by 2, 3, 2, 2
    assert words.tolist()[:2] == [2, 3]
    np.testing.assert_allclose(p, [3 / 4, 1 / 4, 0], atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_it_writes_what_it_has_counted(order, rng):
    model = NGramModel(order, c, "maximum-likelihood").fit(TEXT)
    written = list(generate(model, [0, 1], 300, lambda logits: sample(logits, rng)))
    known = counted(tuple(TEXT), order)
    grams = counted((0, 1, *written), order)
    assert set(grams) <= set(known) or order == 4        # at order 4, the model backs off after the text's end
    assert 4 not in written
    assert len(set(written)) > 1


def test_order_1_forgets_its_history():
    model = NGramModel(1, c).fit(TEXT)
    assert list(generate(model, [3, 2], 3, greedy)) == [0, 0, 0]


def test_a_text_shorter_than_the_order():
    model = NGramModel(7, c).fit([1, 2])
    assert model.grams == [2, 1, 0, 0, 0, 0, 0]
    p = np.exp(model.logits([[3, 3, 1]]))
    assert p.sum() == pytest.approx(1)
    assert p.argmax() == 2
    assert np.isfinite(model.log_probabilities([1, 2, 3, 4, 1, 2, 0, 0])).all()


def test_words_and_histories_never_seen_have_a_probability():
    for smoothing in SMOOTHINGS:
        if smoothing != "maximum-likelihood":
            model = NGramModel(3, c, smoothing).fit(TEXT)
            assert np.isfinite(model.log_probabilities([4, 4, 4, 0, 4])).all()


def test_maximum_likelihood_says_which_words_are_impossible():
    model = NGramModel(2, c, "maximum-likelihood").fit(TEXT)
    with pytest.raises(UserError, match=r"2 of 4 words have probability 0, the first is word 2; .*kneser-ney"):
        model.log_probabilities([0, 1, 4, 0, 4], start=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NGramModel(0, c), r"order is 0, expected a whole number of at least 1"),
        (lambda: NGramModel(8, c), r"order is 8, expected at most 7"),
        (lambda: NGramModel(2.0, c), r"order is 2.0, expected a whole number"),
        (lambda: NGramModel(2, 0), r"size is 0, expected a whole number of at least 1"),
        (lambda: NGramModel(2, c, "katz"), r"smoothing 'katz' is unknown, expected one of maximum-likelihood, add-k"),
        (lambda: NGramModel(2, c, discount=0), r"discount is 0, expected a number from 1e-06 to 1: at 0, words that were not seen would be impossible"),
        (lambda: NGramModel(2, c, discount=math.nan), r"discount is nan"),
        (lambda: NGramModel(2, c, p_0=np.ones(c)), r"sum 5.0; expected 5 probabilities above 0 that sum to 1"),
        (lambda: NGramModel(2, c, p_0=np.ones(2) / 2), r"p_0 has shape \(2,\)"),
        (lambda: NGramModel(2, c, k=-1), r"k is -1, expected a number from 1e-06 to 1e\+06"),
        (lambda: NGramModel(2, c, k=math.inf), r"k is inf"),
        (lambda: NGramModel(2, c, discount=1e-200), r"discount is 1e-200, expected"),
        (lambda: NGramModel(2, c, discount="a"), r"discount is 'a', expected"),
        (lambda: NGramModel(True, c), r"order is True"),
        (lambda: NGramModel(2, "5"), r"size is '5', expected a whole number"),
        (lambda: NGramModel(2, c, ["add-k"]), r"smoothing \['add-k'\] is unknown"),
        (lambda: NGramModel(2, c).fit(TEXT).log_probabilities([1], 1.0), r"start is 1.0, expected a whole number"),
        (lambda: markov_chain([[0]], 0), r"size is 0, expected a whole number"),
        (lambda: NGramModel(2, c).fit([]), r"the training text is empty"),
        (lambda: NGramModel(2, c).fit([[1, 2]]), r"ids have shape \(1, 2\)"),
        (lambda: NGramModel(2, c).fit([0.5]), r"dtype float64, expected integers"),
        (lambda: NGramModel(2, c).fit([0, 7]), r"word 1 has the id 7, expected ids from 0 to 4"),
        (lambda: NGramModel(2, c).fit([0, -1]), r"word 1 has the id -1"),
        (lambda: NGramModel(2, c).log_probabilities([1]), r"has counted nothing yet; call fit"),
        (lambda: NGramModel(2, c).fit(TEXT).log_probabilities([1], 2), r"start is 2, expected 0 to 1"),
        (lambda: NGramModel(2, c).fit(TEXT).logits([[9]]), r"id 9, expected ids from 0 to 4"),
        (lambda: markov_chain([], 2), r"there is no sequence"),
        (lambda: markov_chain([[0, 1], []], 2), r"a sequence is empty"),
        (lambda: markov_chain([[0, 2]], 2), r"id 2, expected ids from 0 to 1"),
    ],
)
def test_bad_input_gets_a_sentence(make, message):
    with pytest.raises(UserError, match=message):
        make()

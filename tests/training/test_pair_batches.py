"""Batches of sentence pairs: padding, rounds, and positions that can be restored."""

import json

from mini_tf.errors import UserError
from mini_tf.text import EOS, SOS
from mini_tf.training import PairBatches, SentenceBatch, sentence_batch

import numpy as np
import pytest


def some_pairs(rng, count=60, longest=9):
    """Sources and targets; each pair is known by the first id of its source."""
    sources = [np.r_[100 + i, rng.integers(3, 50, rng.integers(0, longest))] for i in range(count)]
    return sources, [rng.integers(3, 50, rng.integers(0, longest)) for _ in range(count)]


def same(one, other):
    np.testing.assert_array_equal(one.source, other.source)
    np.testing.assert_array_equal(one.target, other.target)


def test_a_batch_by_hand():
    batch = sentence_batch([np.array([5, 6, 7]), [8]], [np.array([9]), np.array([4, 3])])
    np.testing.assert_array_equal(batch.source, [[5, 6, 7], [8, -1, -1]])
    np.testing.assert_array_equal(batch.target, [[SOS, 9, EOS, -1], [SOS, 4, 3, EOS]])
    assert batch.source.dtype == batch.target.dtype == np.int64
    assert len(batch) == 2
    assert np.size(batch) == batch.size == (3 + 1) + (2 + 3)             # words read, and words and [EOS] predicted
    empty = sentence_batch([[5]], [[]])
    np.testing.assert_array_equal(empty.target, [[SOS, EOS]])
    assert empty.size == 2


def test_a_batch_cannot_be_changed():
    with pytest.raises(AttributeError):
        SentenceBatch(np.zeros((1, 1)), np.zeros((1, 2))).source = None


@pytest.mark.parametrize("words", [1, 12, 50, 10_000])
def test_every_pair_is_in_one_batch_of_a_round(rng, words):
    sources, targets = some_pairs(rng)
    batches = PairBatches(sources, targets, words)
    for _ in range(3):
        seen = []
        for _ in range(len(batches)):
            batch = next(batches)
            assert len(batch) == 1 or max(batch.source.shape[1], batch.target.shape[1]) * len(batch) <= words
            for source, target in zip(batch.source, batch.target):
                i = source[0] - 100
                seen.append(i)
                np.testing.assert_array_equal(source[source != -1], sources[i])
                np.testing.assert_array_equal(target[target != -1], [SOS, *targets[i], EOS])
        assert sorted(seen) == list(range(len(sources)))


def test_batches_are_full_and_of_similar_length(rng):
    batches = PairBatches(*some_pairs(rng, count=2000), words=200)
    round_ = [next(batches) for _ in range(len(batches))]
    ids = sum((batch.target != -1).sum() for batch in round_)
    assert ids > 0.97 * sum(batch.target.size for batch in round_)       # hardly any padding
    assert np.median([max(batch.source.shape[1], batch.target.shape[1]) * len(batch) for batch in round_]) > 180
    lengths = [batch.target.shape[1] for batch in round_]
    assert lengths != sorted(lengths)                                    # short and long batches in random order


def test_each_round_puts_other_pairs_together(rng):
    batches = PairBatches(*some_pairs(rng, longest=2), words=30)
    rounds = [{frozenset(next(batches).source[:, 0].tolist()) for _ in range(len(batches))} for _ in range(2)]
    assert rounds[0] != rounds[1]


def test_the_seed_decides(rng):
    pairs = some_pairs(rng)
    one, same_seed, other = (PairBatches(*pairs, 40, seed) for seed in (1, 1, 2))
    firsts = [[next(batches).source[0, 0] for _ in range(8)] for batches in (one, same_seed, other)]
    assert firsts[0] == firsts[1] != firsts[2]
    same(next(PairBatches(*pairs, 40, np.random.default_rng(1))), next(PairBatches(*pairs, 40, 1)))


@pytest.mark.parametrize("done", ["none", "some", "a round", "more"])
def test_a_position_is_restored(rng, done):
    pairs = some_pairs(rng)
    batches = PairBatches(*pairs, words=40, seed=5)
    for _ in range({"none": 0, "some": 3, "a round": len(batches), "more": len(batches) + 2}[done]):
        next(batches)
    state = json.loads(json.dumps(batches.state()))
    again = PairBatches(*pairs, words=40, seed=6)
    again.restore(state)
    assert len(again) == len(batches)
    for _ in range(2 * len(batches)):
        same(next(again), next(batches))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PairBatches([], [], 10), "there are no sources, expected at least one"),
        (lambda: PairBatches([[3]], [[3], [4]], 10), "there are 1 sources and 2 targets, expected one target for each"),
        (lambda: PairBatches([[3]], [[3]], 0), "words is 0, expected at least 1"),
        (lambda: PairBatches([[3], []], [[3], [4]], 10), "source 1 has no words, expected at least one"),
        (lambda: sentence_batch([], []), "there are no sources"),
        (lambda: sentence_batch([[3], [4]], [[3]]), "there are 2 sources and 1 targets"),
        (lambda: sentence_batch([[]], [[3]]), "source 0 has no words"),
    ],
)
def test_bad_pairs_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()

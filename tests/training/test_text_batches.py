"""Batches of texts with labels: padding, rounds, and positions that can be restored."""

import json

from mini_tf.errors import UserError
from mini_tf.training.text_batches import TextBatch, TextBatches, texts_in_order

import numpy as np
import pytest


def some_texts(rng, count=60, longest=9):
    """Texts and labels; each text is known by its first id."""
    texts = [np.r_[100 + i, rng.integers(3, 50, rng.integers(0, longest))] for i in range(count)]
    return texts, rng.integers(0, 3, count)


def same(one, other):
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.labels, other.labels)


def test_a_batch_by_hand():
    (batch, numbers), = texts_in_order([np.array([5, 6, 7]), [8]], [1, 0], 10)
    np.testing.assert_array_equal(numbers, [1, 0])
    np.testing.assert_array_equal(batch.ids, [[8, -1, -1], [5, 6, 7]])
    np.testing.assert_array_equal(batch.labels, [0, 1])
    assert batch.ids.dtype == batch.labels.dtype == np.int64
    assert len(batch) == 2
    assert np.size(batch) == batch.size == 4
    with pytest.raises(AttributeError):
        TextBatch(batch.ids, batch.labels).ids = None


@pytest.mark.parametrize("words", [1, 12, 50, 10_000])
def test_every_text_is_in_one_batch_of_a_round(rng, words):
    texts, labels = some_texts(rng)
    batches = TextBatches(texts, labels, words)
    for _ in range(3):
        seen = []
        for _ in range(len(batches)):
            batch = next(batches)
            assert len(batch) == 1 or batch.ids.size <= words
            for ids, label in zip(batch.ids, batch.labels):
                i = ids[0] - 100
                seen.append(i)
                np.testing.assert_array_equal(ids[ids != -1], texts[i])
                assert label == labels[i]
        assert sorted(seen) == list(range(len(texts)))


@pytest.mark.parametrize("words", [1, 12, 10_000])
def test_all_texts_in_order(rng, words):
    texts, labels = some_texts(rng)
    found = texts_in_order(texts, labels, words)
    assert sorted(np.concatenate([numbers for _, numbers in found])) == list(range(len(texts)))
    lengths = [len(texts[i]) for _, numbers in found for i in numbers]
    assert lengths == sorted(lengths)
    for batch, numbers in found:
        assert len(batch) == 1 or batch.ids.size <= words
        assert (batch.ids[:, 0] - 100 == numbers).all()
        assert (batch.labels == labels[numbers]).all()


def test_batches_are_full_and_of_similar_length(rng):
    batches = TextBatches(*some_texts(rng, count=2000), words=200)
    round_ = [next(batches) for _ in range(len(batches))]
    assert sum(batch.size for batch in round_) > 0.97 * sum(batch.ids.size for batch in round_)
    assert np.median([batch.ids.size for batch in round_]) > 180
    lengths = [batch.ids.shape[1] for batch in round_]
    assert lengths != sorted(lengths)                                    # short and long batches in random order


def test_each_round_puts_other_texts_together(rng):
    batches = TextBatches(*some_texts(rng, longest=2), words=30)
    rounds = [{frozenset(next(batches).ids[:, 0].tolist()) for _ in range(len(batches))} for _ in range(2)]
    assert rounds[0] != rounds[1]


def test_the_seed_decides(rng):
    texts = some_texts(rng)
    firsts = [[next(batches).ids[0, 0] for _ in range(8)] for batches in (TextBatches(*texts, 40, seed) for seed in (1, 1, 2))]
    assert firsts[0] == firsts[1] != firsts[2]


@pytest.mark.parametrize("done", ["none", "some", "a round", "more"])
def test_a_position_is_restored(rng, done):
    texts = some_texts(rng)
    batches = TextBatches(*texts, words=40, seed=5)
    for _ in range({"none": 0, "some": 3, "a round": len(batches), "more": len(batches) + 2}[done]):
        next(batches)
    state = json.loads(json.dumps(batches.state()))
    again = TextBatches(*texts, words=40, seed=6)
    again.restore(state)
    for _ in range(2 * len(batches)):
        same(next(again), next(batches))


@pytest.mark.parametrize("make", [TextBatches, texts_in_order])
@pytest.mark.parametrize(
    ("texts", "labels", "words", "message"),
    [
        ([], [], 10, "there are no texts, expected at least one"),
        ([[3]], [0, 1], 10, "there are 1 texts and 2 labels, expected one label for each text"),
        ([[3], []], [0, 1], 10, "text 1 has no words, expected at least one"),
    ],
)
def test_bad_texts_are_named(make, texts, labels, words, message):
    with pytest.raises(UserError, match=message):
        make(texts, labels, words)


def test_batches_without_words():
    with pytest.raises(UserError, match="words is 0, expected at least 1"):
        TextBatches([[3]], [0], 0)

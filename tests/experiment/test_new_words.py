"""NewWords: which words are replaced by new ones, how often, and which never."""

from mini_tf.experiment.new_words import NewWords, word_shape

import numpy as np
import pytest

WORDS = ["ROMEO", "JULIET", "PROSPERO", "Verona", "Milan", "love", "the", "sea", "isle", ",", "I"]
COUNTS = np.array([1, 4, 0, 1, 0, 2, 100, 0, 0, 50, 9])
NEVER = {w for w, count in zip(WORDS, COUNTS) if count == 0}


def test_shapes():
    assert [word_shape(w) for w in ["ROMEO", "Romeo", "romeo", "I", "a", ",", "\n", "3rd", "o'er", "WARWICK'S"]] == [
        0, 1, 2, 1, 2, 3, 3, 3, 2, 0,
    ]  # fmt: skip


def test_rare_words_become_new_ones_of_their_shape(rng):
    ids = np.tile(np.arange(len(WORDS)), (4000, 1))
    changed = NewWords(COUNTS, WORDS, share=0.6)(ids, rng)
    assert changed.shape == ids.shape
    share = (changed != ids).mean(0)
    expected = {"ROMEO": 0.6, "JULIET": 0.15, "Verona": 0.6, "love": 0.3, "the": 0.006, "I": 0.067}
    for i, word in enumerate(WORDS):
        assert share[i] == pytest.approx(expected.get(word, 0), abs=0.03), word          # "," has no stand-in
        if 0 < COUNTS[i] < 1000 and word != ",":
            assert share[i] > 0, word
        became = {WORDS[j] for j in np.unique(changed[:, i])} - {word}
        assert became <= {v for v in NEVER if word_shape(v) == word_shape(word)}, word
    assert {WORDS[j] for j in np.unique(changed[:, 5])} == {"love", "sea", "isle"}


def test_a_word_is_the_same_new_word_everywhere_in_its_window(rng):
    ids = np.tile([0, 5, 0, 6, 5, 0], (500, 1))
    changed = NewWords(COUNTS, WORDS)(ids, rng)
    assert (changed[:, 0] == changed[:, 2]).all()
    assert (changed[:, 0] == changed[:, 5]).all()
    assert (changed[:, 1] == changed[:, 4]).all()
    assert len(np.unique(changed[:, 1])) == 3            # but not the same in all windows
    assert ids[0].tolist() == [0, 5, 0, 6, 5, 0]         # the text itself is not changed


def test_if_all_words_occur_in_training_nothing_changes(rng):
    ids = rng.integers(0, len(WORDS), (20, 7))
    np.testing.assert_array_equal(NewWords(COUNTS + 1, WORDS)(ids, rng), ids)


def test_the_same_seed_changes_the_same_words():
    ids = np.random.default_rng(1).integers(0, len(WORDS), (20, 7))
    one, two = (NewWords(COUNTS, WORDS)(ids, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)

"""Batches of sentence pairs, of similar length so that little of them is padding.

`PairBatches` has a position, like the windows in `training/batches.py`: .state() and .restore(state).
"""

from dataclasses import dataclass

from mini_tf.errors import UserError
from mini_tf.layers.embedding import ABSENT
from mini_tf.text.sentences import EOS, SOS, padded

import numpy as np


@dataclass(frozen=True, eq=False)
class SentenceBatch:
    """B sentences and their translations, as ids; the longest of the B have S and U words.

    source  (B, S) int64: the words, then ABSENT (−1) up to the longest
    target  (B, U + 2) int64: [SOS], the words, [EOS], then ABSENT

    len(batch) is B. batch.size, which is np.size(batch), is the number of words: those of the sources, and all that
    the model predicts, the words of the targets and [EOS].
    """

    source: np.ndarray
    target: np.ndarray

    def __len__(self):
        return len(self.source)

    @property
    def size(self):
        # A target's inputs, from [SOS] on, are as many as its outputs, up to [EOS]: one less than it has ids.
        return int((self.source != ABSENT).sum() + (self.target != ABSENT).sum()) - len(self)


def sentence_batch(sources, targets):
    """A SentenceBatch of sentences and their translations: sources, targets are lists of arrays of ids.

    [SOS] and [EOS] are added to the targets here. A target may be empty.
    Raises UserError for no pairs, for lists of unequal length, and for a source without words.
    """
    _check_pairs(sources, targets)
    return SentenceBatch(padded(sources), padded([[SOS, *ids, EOS] for ids in targets]))


class PairBatches:
    """An endless iterator over SentenceBatches; in each round every pair is in exactly one batch.

    sources, targets  lists of arrays of ids: sentences, and their translations
    words             the most that a batch has, padding included: max(S, U + 2)·B ≤ words; a longer pair is alone
    seed              of the order, an integer or a NumPy Generator

    A round sorts the pairs by the lengths of target and source, in random order where these are equal, cuts them into
    batches and gives these in random order. len(batches) is the number of batches of this round, `rounds` the number of
    rounds that are done.
    Raises UserError as `sentence_batch`, and for words < 1.
    """

    def __init__(self, sources, targets, words, seed=0):
        _check_pairs(sources, targets)
        if words < 1:
            raise UserError(f"words is {words}, expected at least 1: the most words in a batch, e.g. 2000")
        self.sources, self.targets, self.words = sources, targets, words
        self.lengths = _lengths(sources, targets)
        self.rng = np.random.default_rng(seed)
        self.rounds_before = 0
        self._new_round()

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.batches)

    @property
    def rounds(self):
        return self.rounds_before + (self.position == len(self.batches))

    def __next__(self):
        if self.position == len(self.batches):
            self.rounds_before += 1
            self._new_round()
        some = self.batches[self.position]
        self.position += 1
        return sentence_batch([self.sources[i] for i in some], [self.targets[i] for i in some])

    def _new_round(self):
        self.before_round, self.position = self.rng.bit_generator.state, 0
        source, target = self.lengths.T
        order = np.lexsort((self.rng.permutation(len(source)), source, target))      # by target, then source
        batches = _cut(order, self.lengths, self.words)
        self.batches = [batches[i] for i in self.rng.permutation(len(batches))]

    def state(self):
        """The position: the generator's state before this round and now, the batches and the rounds done."""
        return {
            "round": self.before_round, "position": self.position, "rounds": self.rounds_before,
            "rng": self.rng.bit_generator.state,
        }  # fmt: skip

    def restore(self, state):
        self.rng.bit_generator.state = state["round"]
        self._new_round()
        self.position, self.rounds_before = state["position"], state["rounds"]
        self.rng.bit_generator.state = state["rng"]


def batches_in_order(sources, targets, words):
    """All pairs once, in SentenceBatches of at most `words` words, padding included, short sentences first."""
    lengths = _lengths(sources, targets)
    parts = _cut(np.lexsort(lengths.T), lengths, words)
    return [sentence_batch([sources[i] for i in part], [targets[i] for i in part]) for part in parts]


def _lengths(sources, targets):
    """(pairs, 2): what a batch has of each, the words of the source, and of the target with [SOS] and [EOS]"""
    return np.array([[len(source), len(target) + 2] for source, target in zip(sources, targets)])


def _cut(order, lengths, words):
    """The pairs in that order, as arrays of their numbers: each as many as fit into a batch of `words`."""
    cuts, longest = [0], 0
    for i, length in enumerate(lengths[order].max(1).tolist()):
        longest = max(longest, length)
        if i > cuts[-1] and longest * (i + 1 - cuts[-1]) > words:
            cuts.append(i)
            longest = length
    return np.split(order, cuts[1:])


def _check_pairs(sources, targets):
    if len(sources) != len(targets):
        raise UserError(f"there are {len(sources):,} sources and {len(targets):,} targets, expected as many: pairs")
    if not len(sources):
        raise UserError("there are no sentence pairs, expected at least one")
    empty = next((i for i, ids in enumerate(sources) if not len(ids)), None)
    if empty is not None:
        raise UserError(f"source {empty} has no words, expected at least one: leave the pair out")

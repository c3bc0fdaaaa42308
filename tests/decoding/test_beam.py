"""Beam search beside greedy decoding, brute force, and HW3a's rules in plain loops."""

import itertools
import math

from mini_tf.decoding import beam_search, translations
from mini_tf.errors import UserError
from mini_tf.text.sentences import EOS, SOS, UNK, padded

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

LONGEST = 4


class TableWriter:
    """A writer whose next word depends on all words so far: each history has logits of its own, drawn at random.

    It keeps the histories itself, as a model keeps its memory, so wrong calls of `choose` show.
    """

    def __init__(self, sentences, c, seed=0, end=0.0):
        self.sentences, self.c, self.seed, self.end = sentences, c, seed, end
        self.histories = [[()] for _ in range(sentences)]
        self.number = np.arange(sentences)               # which sentence is in which place

    def logits(self, sentence, history):
        z = 2 * np.random.default_rng([self.seed, sentence, *history]).standard_normal(self.c)
        z[EOS] += self.end * len(history)
        return z

    def read(self, words):
        self.histories = [[(*h, int(w)) for h, w in zip(of, row)] for of, row in zip(self.histories, words)]
        assert [len(of) for of in self.histories] == [words.shape[1]] * len(words)
        return np.array([[self.logits(s, h) for h in of] for s, of in zip(self.number, self.histories)])

    def choose(self, sentences, hypotheses):
        self.histories = [[self.histories[s][k] for k in row] for s, row in zip(sentences, hypotheses)]
        self.number = self.number[sentences]


def log_p(writer, sentence, history, never=()):
    z = writer.logits(sentence, history)
    result = z - np.log(np.exp(z).sum())
    result[list(never)] = -np.inf
    return result


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def best_of_all(writer, sentence, longest, alpha=0.0, never=()):
    """(score, words, ended) of the best sentence, found by trying all of them."""
    best = (-math.inf, (), False)
    for length in range(1, longest + 1):
        for words in itertools.product(range(writer.c), repeat=length):
            if EOS in words[:-1] or (words[-1] != EOS and length < longest):
                continue
            total = sum(log_p(writer, sentence, (SOS, *words[:k]), never)[w] for k, w in enumerate(words))
            ended = words[-1] == EOS
            best = max(best, (total / penalty(length, alpha), words[: len(words) - ended], ended))
    return best


def by_the_rules(writer, sentence, beam, longest, alpha=0.0):
    """(score, words, ended) by HW3a's rules, with lists and loops, and without stopping early."""
    live, finals = [(0.0, (SOS,))], []
    for length in range(1, longest + 1):
        continued = [(p + q, (*h, w)) for p, h in live for w, q in enumerate(log_p(writer, sentence, h))]
        chosen = sorted(continued, reverse=True)[:beam]
        ended = [(p / penalty(length, alpha), h[1:-1], True) for p, h in chosen if h[-1] == EOS]
        live = [(p, h) for p, h in chosen if h[-1] != EOS]
        finals, beam = finals + ended, beam - len(ended)
    return max(finals + [(p / penalty(longest, alpha), h[1:], False) for p, h in live])


def found(hypothesis):
    return hypothesis.score, tuple(hypothesis.words.tolist()), hypothesis.ended


def same(hypothesis, expected):
    score, words, ended = found(hypothesis)
    return (words, ended) == expected[1:] and score == pytest.approx(expected[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_the_best_of_all_sentences(seed, alpha):
    c = 4
    results = beam_search(TableWriter(3, c, seed), c, LONGEST, alpha, never=())
    wide = beam_search(Repeated(TableWriter(3, c, seed), c**LONGEST), c**LONGEST, LONGEST, alpha, never=())
    for sentence in range(3):
        assert same(wide[sentence], best_of_all(TableWriter(3, c, seed), sentence, LONGEST, alpha))
        assert results[sentence].score <= wide[sentence].score + 1e-12


class Repeated:
    """A writer with more words than another, all but the other's impossible: so a beam may be wider than the other's c."""

    def __init__(self, writer, c):
        self.writer, self.c, self.sentences = writer, c, writer.sentences
        self.choose = writer.choose

    def read(self, words):
        logits = self.writer.read(words)
        nothing = np.full((*logits.shape[:2], self.c - logits.shape[2]), -np.inf)
        return np.concatenate([logits, nothing], axis=2)


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_shrinking_beam_follows_the_rules_of_hw3a(beam, alpha):
    """Also: stopping early, when no live hypothesis can win, changes nothing."""
    some = 40
    results = beam_search(TableWriter(some, 6, end=0.1), beam, 6, alpha, never=())
    expected = [by_the_rules(TableWriter(some, 6, end=0.1), s, beam, 6, alpha) for s in range(some)]
    assert all(same(*pair) for pair in zip(results, expected))
    assert {ended for _, _, ended in expected} == {True, False}


def test_beam_one_is_greedy():
    for sentence, result in enumerate(beam_search(TableWriter(30, 8, end=0.5), 1, 9, never=())):
        writer, words = TableWriter(30, 8, end=0.5), (SOS,)
        while len(words) < 10 and (len(words) == 1 or words[-1] != EOS):
            words = (*words, int(writer.logits(sentence, words).argmax()))
        assert (SOS, *result.words, *[EOS] * result.ended) == words


def test_a_wider_beam_can_find_what_greedy_misses():
    """HW3a's picture: "the cat is" is found greedily with 0.30, "the red fox" has 0.36."""
    tree = {(): {3: 0.6, 4: 0.4}, (3,): {5: 0.5, 6: 0.5}, (4,): {5: 0.1, 6: 0.9}}

    class Tree(TableWriter):
        def logits(self, sentence, history):
            p = np.full(7, 1e-9)
            for word, share in tree.get(history[1:], {EOS: 1.0}).items():
                p[word] = share
            return np.log(p / p.sum())

    greedy, wide = (beam_search(Tree(1, 7), beam, 4)[0] for beam in (1, 2))
    assert (math.exp(greedy.log_probability), math.exp(wide.log_probability)) == pytest.approx((0.30, 0.36), rel=1e-6)
    assert greedy.words.tolist() == [3, 5]
    assert wide.words.tolist() == [4, 6]


def test_a_length_penalty_prefers_longer_sentences():
    lengths = [
        sum(len(h.words) for h in beam_search(TableWriter(60, 5, end=0.4), 4, 10, alpha)) for alpha in (0.0, 1.0, 3.0)
    ]
    assert lengths[0] < lengths[1] < lengths[2]


def test_words_that_are_never_written():
    for hypothesis in beam_search(TableWriter(50, 5), 3, LONGEST):
        assert not {SOS, UNK} & set(hypothesis.words.tolist())
    expected = best_of_all(TableWriter(1, 4), 0, LONGEST, never=(SOS, UNK))
    wide = beam_search(Repeated(TableWriter(1, 4), 100), 100, LONGEST, never=(SOS, UNK))
    assert same(wide[0], expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beam": 0}, "beam is 0, expected a whole number of at least 1"), ({"beam": 2.5}, "beam is 2.5"),
        ({"beam": 6}, "at most the size of the vocabulary, 5"),
        ({"longest": 0}, "longest is 0"), ({"length_penalty": -1.0}, "length_penalty is -1.0, expected 0 to 10"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"), ({"length_penalty": 1e300}, r"is 1e\+300"),
        ({"length_penalty": "1"}, "length_penalty is '1'"),
    ],
)  # fmt: skip
def test_wrong_options(wrong, message):
    options = {"beam": 2, "longest": 3} | wrong
    with pytest.raises(UserError, match=message):
        beam_search(TableWriter(1, 5), **options)


# With a model -------------------------------------------------------------------------------------------------------


@pytest.fixture
def sources():
    rng = np.random.default_rng(1)
    return [rng.integers(3, 9, length) for length in (3, 1, 7, 5, 5, 2, 7)]


@pytest.mark.parametrize("beam", [1, 4])
def test_memory_gives_what_reading_everything_anew_gives(reverser, sources, beam):
    class Anew:
        """A writer that remembers nothing but the words."""

        def __init__(self, source):
            self.source, self.sentences, self.words = source, len(source), np.zeros((len(source), 1, 0), int)

        def read(self, words):
            self.words = np.concatenate([self.words, words[:, :, None]], axis=2)
            columns = [reverser.logits(self.source, self.words[:, k])[:, -1] for k in range(words.shape[1])]
            return np.stack(columns, axis=1)

        def choose(self, sentences, hypotheses):
            self.source, self.words = self.source[sentences], self.words[sentences[:, None], hypotheses]

    source = padded(sources)
    remembered, anew = (beam_search(writer, beam, reverser.T) for writer in (reverser.writer(source), Anew(source)))
    for ours, expected in zip(remembered, anew):
        assert same(ours, found(expected))


@pytest.mark.parametrize("beam", [1, 3, 9])
def test_a_translation_does_not_depend_on_its_batch(reverser, sources, beam):
    together = translations(reverser, sources, beam, 0.6)
    assert len({len(h.words) for h in together}) > 1
    for batch in (1, 2, 3):
        assert [found(h)[1:] for h in translations(reverser, sources, beam, 0.6, batch)] == [found(h)[1:] for h in together]
    done = []
    backwards = translations(reverser, sources[::-1], beam, 0.6, 2, on_batch=lambda *counts: done.append(counts))
    assert [found(h)[1:] for h in backwards] == [found(h)[1:] for h in together[::-1]]
    assert done == [(2, 7), (4, 7), (6, 7), (7, 7)]


def test_two_cores_find_what_one_finds(reverser, sources):
    with threadpool_limits(1, "blas"):
        one = [found(h) for h in translations(reverser, sources, 3, 0.6, 2)]
    with threadpool_limits(2, "blas"):
        two = translations(reverser, sources, 3, 0.6, 2)
    assert all(map(same, two, one))


def test_sentences_that_are_empty_or_too_long(reverser, sources):
    nothing, something = translations(reverser, [np.zeros(0, int), sources[0]], 2)
    assert len(nothing.words) == 0
    assert found(something)[1:] == found(translations(reverser, sources[:1], 2)[0])[1:]
    assert translations(reverser, []) == []
    with pytest.raises(UserError, match="has 10 words, expected at most T = 9"):
        translations(reverser, [np.full(10, 3)])

"""Any settings, any logits and any prompts: the right word, or an error that says what to change."""

from functools import partial

from mini_tf.decoding import beam_search, continuations, generate, greedy, sample
from mini_tf.errors import UserError
from mini_tf.models import GPT, NGramModel, RecurrentModel
from mini_tf.text import Vocabulary, spaced, tokenize

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=80)
TEXT = "To be, or not to be:\nthat is the question.\nשלום, мир — ½ o'er-hang\n"
VOCABULARY = Vocabulary(tokenize(TEXT))
c = len(VOCABULARY)
E = np.random.default_rng(0).standard_normal((c, 4))
MODELS = [
    GPT(E, T=4, L=1, H=1, m=2, f=4),
    RecurrentModel(E, T=4, k=3),
    NGramModel(3, c).fit(VOCABULARY.encode(tokenize(TEXT))),
]
NUMBERS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
LOGITS = st.lists(st.floats(), min_size=1, max_size=6)


@FEW
@given(LOGITS, NUMBERS, st.none() | NUMBERS)
@example([0.0, 1.0], 1e-310, None)
@example([0.0, -np.inf], 5e-324, 1)
@example([1e308, -1e308], 1e308, None)
def test_a_word_that_can_be_chosen_or_an_error(logits, temperature, top_k):
    row = np.array([logits])
    try:
        chosen = sample(row, np.random.default_rng(0), temperature, top_k)[0]
    except UserError:
        return
    assert row[0, chosen] > -np.inf
    if top_k == 1 or temperature < 1e-320:
        assert row[0, chosen] == row.max()
    assert row[0, greedy(row)[0]] == row.max()


@FEW
@given(st.text(max_size=20) | st.lists(st.sampled_from(VOCABULARY.words), max_size=9).map(" ".join),
       st.sampled_from(MODELS), st.integers(0, 9), st.integers(0, 99))
def test_any_prompt_is_continued(prompt, model, words, seed):
    ids = VOCABULARY.encode(tokenize(prompt), unknown="skip")
    written = list(generate(model, ids, words, partial(sample, rng=np.random.default_rng(seed))))
    assert len(written) == words
    text = "".join(spaced(VOCABULARY.words[i] for i in [*ids, *written]))
    assert VOCABULARY.encode(tokenize(text)).tolist() == [*ids, *written]
    best, p = continuations(model, ids, c)
    assert sorted(best) == list(range(c))
    assert p.sum() == pytest.approx(1)


@FEW
@given(st.lists(NUMBERS, max_size=4) | NUMBERS, st.sampled_from(MODELS), NUMBERS, NUMBERS)
def test_prompts_and_numbers_of_any_kind(prompt, model, words, most):
    if type(words) is int:
        words = min(words, 5)
    for write in (lambda: list(generate(model, prompt, words, greedy)), lambda: continuations(model, prompt, most)):
        try:
            write()
        except UserError:
            continue
        assert all(id in range(c) for id in prompt)


class Writer:
    """Always the same logits"""

    def __init__(self, sentences, logits):
        self.sentences, self.row = sentences, np.array(logits)

    def read(self, words):
        return np.broadcast_to(self.row, (*words.shape, len(self.row)))

    def choose(self, sentences, hypotheses):
        pass


@FEW
@given(st.lists(st.floats(-50, 50), min_size=4, max_size=7), st.integers(1, 3), NUMBERS, NUMBERS, NUMBERS)
@example([0.0, 1.0, 2.0, 3.0], 1, 2, 3, 1e300)
def test_beam_search_with_any_settings(logits, sentences, beam, longest, length_penalty):
    if type(longest) is int:
        longest = min(longest, 6)
    try:
        found = beam_search(Writer(sentences, logits), beam, longest, length_penalty)
    except UserError:
        return
    assert len(found) == sentences
    for hypothesis in found:
        assert len(hypothesis.words) <= longest
        assert not {0, 2} & set(hypothesis.words.tolist())
        assert np.isfinite(hypothesis.score)

"""What a model reads, and which word's loss sends gradient to which word."""

from mini_tf.errors import UserError
from mini_tf.explore.readings import gradients_between_words, reading
from mini_tf.models import (
    Classifier,
    FixedWindowModel,
    MaskedWordModel,
    NGramModel,
    RecurrentModel,
    RecurrentTranslator,
)
from mini_tf.text import CharacterVocabulary, Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SPECIAL, SentenceVocabulary
from mini_tf.trace import trace
from tests.explore.conftest import TEXT, WORDS, tiny_model, tiny_reading

import numpy as np
import pytest


def test_a_text_is_read_as_it_is():
    read = tiny_reading()
    assert read.words == ["the", "cat", "sat", "on", "the"]
    assert read.asked == ["cat", "sat", "on", "the", "mat"]
    assert read.batch.shape == (1, 6)
    assert read.notes == []
    assert read.text == TEXT
    assert read.run() > 0


def test_a_text_that_is_too_long_is_cut_and_that_is_said():
    read = tiny_reading(" ".join(WORDS))
    assert read.batch.shape == (1, 8)
    assert f"{len(WORDS)} words" in read.notes[0]
    assert "T = 7" in read.notes[0]


def test_unknown_words_are_left_out_and_that_is_said():
    read = tiny_reading("the purple cat sat")
    assert read.words == ["the", "cat"]
    assert read.notes == ["Left out, because the model does not know them: purple."]


@pytest.mark.parametrize(("text", "message"), [
    ("", "no words"), ("  '", "no words"), ("purple", "knows no word"), ("cat", "expected 2"), ("cat purple", "expected 2"),
])  # fmt: skip
def test_a_text_without_enough_words_is_one_sentence(text, message):
    with pytest.raises(UserError, match=message):
        tiny_reading(text)


def test_a_model_that_needs_t_words_gets_absent_ones():
    read = tiny_reading("the cat sat", readout="vec")
    assert read.batch.shape == (1, 8)
    assert read.batch[0, :5].tolist() == [-1] * 5
    assert read.words[-2:] == ["the", "cat"]
    assert "absent ones, ·, come first" in read.notes[0]
    assert np.isfinite(read.run())


def test_a_model_reads_the_tokens_of_its_own_vocabulary():
    model = tiny_model(readout="vec")
    vocabulary = CharacterVocabulary("abcdefghijklmnopqrstuvwxyz "[-model.c :])
    read = reading(model, vocabulary, "y z")
    assert read.words[-2:] == ["y", " "]
    assert read.asked[-1:] == ["z"]
    assert read.text == "y z"
    with pytest.raises(UserError, match="has 1 known character, expected 2"):
        reading(model, vocabulary, "z")


def test_all_kinds_of_models_can_be_read(rng):
    table = rng.standard_normal((len(WORDS), 8)).astype(np.float32)
    words = Vocabulary(WORDS)
    for model in (FixedWindowModel(table, T=4, k=5), RecurrentModel(table, T=6, k=5)):
        assert np.isfinite(reading(model, words, TEXT).run())
    classes = ClassVocabulary.of([*SPECIAL, *WORDS])
    classes.classes = ("bad", "good")
    table = rng.standard_normal((len(classes), 8)).astype(np.float32)
    read = reading(Classifier(table, classes=2, T=9, L=1, H=2, m=3), classes, TEXT)
    assert read.asked[0] in ("bad", "good")
    assert np.isfinite(read.run())
    masked = Vocabulary(["[MASK]", "\n", *WORDS])
    table = rng.standard_normal((len(masked), 8)).astype(np.float32)
    read = reading(MaskedWordModel(table, T=9, L=1, H=2, m=3, f=6), masked, "the cat sat to my hat")
    assert len(read.asked) == 1
    assert np.isfinite(read.run())
    with pytest.raises(UserError, match="no backward"):
        reading(NGramModel(2, len(WORDS)), words, TEXT)


@pytest.mark.parametrize("attention", ["multiplicative", "additive", "none"])
def test_a_recurrent_translator_reads_a_sentence(attention):
    words = SentenceVocabulary.of([*SPECIAL, *WORDS], [])
    model = RecurrentTranslator(len(words), len(words), attention=attention, n=8, k=6, T=9)
    read = reading(model, (words, words), "the cat sat")
    assert read.words == ["the", "cat", "sat"]
    assert read.asked[-1] == "[EOS]"
    assert np.isfinite(read.run())
    assert all(p.grad is not None for p in model.parameters().values())


def test_gradients_between_words_are_those_of_each_words_own_loss():
    read = tiny_reading()
    found = dict(gradients_between_words(read.model, read.batch, read.words))
    assert list(found) == ["into layer 1", "into layer 2", "out of layer 2"]
    T, model = len(read.words), tiny_model()
    model.T = T
    for t in range(T):                                   # the loss of word t alone, by hand: from the logits on
        with trace() as calls:
            Phi, trunk_backward = model.trunk(read.batch[:, :-1])
            logits, head_backward = model.A(Phi)
            z = logits[0, t].astype(float)
            p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            p[read.batch[0, t + 1]] -= 1
            dlogits = np.zeros_like(logits)
            dlogits[0, t] = p
            trunk_backward(head_backward(dlogits))
        layers = [call for call in calls if call.name == "TransformerLayer"]
        for number, call in enumerate(layers, 1):
            expected = np.sqrt((call.gradients[0].astype(float) ** 2).sum(-1))
            np.testing.assert_allclose(found[f"into layer {number}"][t], expected, rtol=1e-4, atol=1e-7)
    for norms in found.values():
        assert (np.triu(norms, 1) == 0).all()            # no gradient to later words: the mask
    assert np.count_nonzero(found["out of layer 2"]) == T            # each loss sees its own word's vector only


def test_one_loss_for_the_whole_text_gives_one_row():
    read = tiny_reading("the cat sat on the mat and saw", readout="vec")
    found = gradients_between_words(read.model, read.batch, read.words)
    assert [norms.shape for _, norms in found] == [(1, 7)] * 3

"""Sequence to sequence by recurrent networks: gradients, padding, and writing word by word."""

from mini_tf.decoding.beam import beam_search
from mini_tf.errors import UserError
from mini_tf.gradcheck import judge
from mini_tf.models.recurrent_translator import RecurrentTranslator
from mini_tf.text.sentences import EOS, SOS
from mini_tf.training.pair_batches import SentenceBatch
from tests.cases import cases

import numpy as np
import pytest

ABSENT = -1
SOURCE = np.array([[3, 4, 5, 3], [6, 2, ABSENT, ABSENT], [5, 6, 4, ABSENT]])
TARGET = np.array([[0, 3, 1, ABSENT, ABSENT], [0, 4, 5, 4, 1], [0, 2, 2, 1, ABSENT]])
KINDS = [(cell, attention) for cell in ("lstm", "gru") for attention in ("multiplicative", "additive", "none")]


def made(cell="lstm", attention="multiplicative", **options):
    return RecurrentTranslator(7, 7, **{"n": 4, "k": 6, "T": 6, "dtype": "float64"} | options, cell=cell, attention=attention)


@pytest.mark.parametrize(("cell", "attention", "L"), cases(
    [("gru", "additive", 1)], [("lstm", "additive", 1), ("gru", "multiplicative", 1), ("lstm", "multiplicative", 2), ("lstm", "none", 1)]
))  # fmt: skip
def test_gradients(cell, attention, L, rng):
    model = made(cell, attention, L=L, n=3, k=2, dropout=0.3)
    for parameter in model.parameters().values():        # away from 0, where attention would hardly depend on h
        parameter.data = rng.standard_normal(parameter.data.shape)
    batch = SentenceBatch(SOURCE[:2], TARGET[:2])
    report = judge(lambda: model.loss(batch, np.random.default_rng(1)), params=model.parameters())
    assert report.verdict == "PASS", report


@pytest.mark.parametrize(("cell", "attention"), KINDS)
def test_padding_changes_nothing(cell, attention):
    model = made(cell, attention)
    together = model.logits(SOURCE, TARGET[:, :-1])
    for text in range(len(SOURCE)):
        source, target = (ids[text][ids[text] != ABSENT][None] for ids in (SOURCE, TARGET[:, :-1]))
        np.testing.assert_allclose(model.logits(source, target)[0], together[text, : target.shape[1]], atol=1e-14)


@pytest.mark.parametrize(("cell", "attention"), KINDS)
def test_a_writer_scores_words_as_the_model_does(cell, attention):
    model = made(cell, attention, L=2)
    writer = model.writer(SOURCE)
    words = np.array([[0, 3, 4], [0, 5, 6], [0, 1, 2]])
    scores = [writer.read(words[:, t : t + 1])[:, 0] for t in range(3)]
    np.testing.assert_allclose(np.stack(scores, axis=1), model.logits(SOURCE, words), atol=1e-14)


def test_a_writer_goes_on_with_chosen_hypotheses():
    model = made()
    writer = model.writer(SOURCE)
    writer.read(np.zeros((3, 1), int))
    writer.choose(np.array([0, 2]), np.zeros((2, 2), int))               # two of each
    writer.read(np.array([[3, 4], [5, 6]]))
    writer.choose(np.array([1]), np.array([[1, 0]]))                     # of source 2: the one with 6, then that with 5
    scores = writer.read(np.array([[2, 2]]))
    for hypothesis, words in enumerate(([0, 6, 2], [0, 5, 2])):
        expected = model.logits(SOURCE[2:], np.array([words]))[0, -1]
        np.testing.assert_allclose(scores[0, hypothesis], expected, atol=1e-14)


def test_beam_search_finds_what_trying_all_sentences_finds():
    model, longest = made(), 3
    found = beam_search(model.writer(SOURCE[:1]), 7, longest, never=())
    best = (-np.inf, None)
    for words in np.ndindex(7, 7, 7):
        end = words.index(EOS) + 1 if EOS in words else longest
        logits = model.logits(SOURCE[:1], np.array([[SOS, *words[: end - 1]]]))[0]
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        best = max(best, (log_p[np.arange(end), words[:end]].sum(), words[:end]))
    assert found[0].log_probability == pytest.approx(best[0])
    assert tuple(found[0].words) == tuple(word for word in best[1] if word != EOS)


def test_without_attention_only_the_first_state_knows_the_source():
    model = made(attention="none")
    z, _ = model.encode(SOURCE[:1])
    first, _ = model.first(z)
    with_z, _, _ = model.decode(TARGET[:1, :-3], first, z, None)
    without, _, _ = model.decode(TARGET[:1, :-3], first, z * 0, None)
    np.testing.assert_array_equal(with_z, without)


@pytest.mark.parametrize("attention", ["multiplicative", "additive"])
def test_attention_weights_are_those_of_the_model(attention):
    model = made(attention=attention, k=4)
    source, target = SOURCE[0], TARGET[1, :-1]
    weights = model.attention_weights(source, target)
    assert {kind: A.shape for kind, A in weights.items()} == {"across": (1, 1, 4, 4)}
    np.testing.assert_allclose(weights["across"].sum(-1), 1)
    z, _ = model.encode(source[None])                    # once more, from the formula
    h = model.decoder[0](4**0.5 * model.target_table(target[None])[0], model.first(z)[0][0])[0][0]
    if attention == "multiplicative":
        scores = h[0] @ model.attention.query.W.data @ z[0].T
    else:
        hidden = (h[0] @ model.attention.query.W.data)[:, None] + z[0] @ model.attention.key.W.data
        scores = np.tanh(hidden) @ model.attention.v.data
    np.testing.assert_allclose(weights["across"][0, 0], np.exp(scores) / np.exp(scores).sum(-1, keepdims=True))


def test_without_attention_there_are_no_weights():
    assert made(attention="none").attention_weights(SOURCE[0], TARGET[0, :2]) == {}


def test_what_does_not_fit_is_refused():
    for options, words in (({"k": 5}, "k is 5, expected an even k"), ({"cell": "rnn"}, "cell 'rnn' is unknown"),
                           ({"attention": None}, "attention None is unknown"), ({"L": 0}, "L is 0")):
        with pytest.raises(UserError, match=words):
            RecurrentTranslator(7, 7, **{"n": 4, "k": 6, "T": 6} | options)
    with pytest.raises(ValueError, match="expected \\(B, words\\) with 1 to T = 6 words"):
        made().logits(np.zeros((1, 7), int), TARGET)

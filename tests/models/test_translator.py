"""The Translator: what sees what, what is tied, and what padding changes: nothing."""

from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.models import Translator
from mini_tf.text.sentences import EOS, SOS
from mini_tf.training import SentenceBatch, load_checkpoint, save_checkpoint, sentence_batch

import numpy as np
import pytest

SIZES = {"n": 8, "T": 7, "L": 2, "H": 2, "m": 4, "f": 12, "dtype": "float64"}


def translator(source_words=9, target_words=10, **options):
    """A Translator with random parameters, none of them 0 or 1."""
    made = Translator(source_words, target_words, **SIZES | options)
    rng = np.random.default_rng(3)
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.5
    return made


def sentences(rng, *lengths):
    return [rng.integers(3, 9, length) for length in lengths]


def gradients(model, batch):
    model.clear_gradients()
    loss, backward = model.loss(batch)
    backward()
    return float(loss), {name: parameter.grad for name, parameter in model.parameters().items()}


@pytest.mark.parametrize("options", [{}, {"norm": "after", "bias": True, "tied": "none"}])
def test_padding_changes_neither_loss_nor_gradient(rng, options):
    model = translator(**options)
    sources, targets = sentences(rng, 5, 2, 3), sentences(rng, 1, 4, 3)
    together, together_gradients = gradients(model, sentence_batch(sources, targets))
    losses, words, summed = [], [len(target) + 1 for target in targets], {}
    for source, target, count in zip(sources, targets, words):
        loss, alone = gradients(model, sentence_batch([source], [target]))
        losses.append(loss)
        for name, gradient in alone.items():
            summed[name] = summed.get(name, 0) + gradient * count / sum(words)
    assert together == pytest.approx(np.average(losses, weights=words), rel=1e-12)
    for name, gradient in together_gradients.items():
        np.testing.assert_allclose(gradient, summed[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_pair_of_nothing_but_padding_adds_nothing(rng):
    model, batch = translator(), sentence_batch(sentences(rng, 5, 2), sentences(rng, 1, 4))
    nothing = SentenceBatch(*(np.vstack([ids, np.full_like(ids[:1], -1)]) for ids in (batch.source, batch.target)))
    (loss, expected), (with_nothing, found) = gradients(model, batch), gradients(model, nothing)
    assert with_nothing == pytest.approx(loss, rel=1e-12)
    for name, gradient in found.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_word_sees_the_whole_source_but_no_later_word_of_its_own_sentence(rng):
    model = translator()
    (source,), (target,) = sentences(rng, 5), sentences(rng, 6)
    before = model.logits(source[None], target[None])
    changed = target.copy()
    changed[4] = 3 + (changed[4] - 2) % 6
    after = model.logits(source[None], changed[None])
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    assert (after[:, 4:] != before[:, 4:]).all()
    for place in range(5):
        other = source.copy()
        other[place] = 3 + (other[place] - 2) % 6
        assert (model.logits(other[None], target[None]) != before).all()


def test_attention_weights_are_those_of_the_model(rng):
    model = translator()
    (source,), (target,) = sentences(rng, 5), sentences(rng, 3)
    weights = model.attention_weights(source, target)
    assert {kind: A.shape for kind, A in weights.items()} == {
        "encoder": (2, 2, 5, 5), "decoder": (2, 2, 3, 3), "across": (2, 2, 3, 5),
    }  # fmt: skip
    for A in weights.values():
        np.testing.assert_allclose(A.sum(-1), 1)
    assert (np.triu(weights["decoder"], 1) == 0).all()
    # Layer 1's attention to the encoder, once more, from the formula
    layer = model.decoder.layers[0]
    Z, _ = model.encoder(source[None])
    x = model.decoder.embed(target[None])[0]
    x, _ = layer.branch(x, lambda x: layer.attention(x, np.tri(3, dtype=bool)), layer.attention_norm, None)
    across = layer.cross_attention
    Q, K = (across.split(product(y)[0])[0] for product, y in (
        (across.query, layer.cross_attention_norm(x)[0]), (across.key, Z)))  # fmt: skip
    scores = np.exp(Q @ K.swapaxes(1, 2) / 2)            # 1/√m
    np.testing.assert_allclose(weights["across"][0], scores / scores.sum(-1, keepdims=True))


def test_what_is_tied_is_one_parameter():
    count = {tied: len(translator(9, 9, tied=tied).parameters()) for tied in ("none", "readout", "all")}
    assert count["none"] == count["readout"] + 1 == count["all"] + 2
    model = translator(9, 9, tied="all")
    assert model.readout.table is model.encoder.embedding.table is model.decoder.embedding.table


def test_smoothing_and_dropout_are_for_training_only(rng):
    batch = sentence_batch(sentences(rng, 5, 2), sentences(rng, 1, 4))
    plain, smoothed, dropped = (translator(**options) for options in (
        {"smoothing": 0.0, "dropout": 0.0}, {"smoothing": 0.2, "dropout": 0.0}, {"smoothing": 0.0, "dropout": 0.5}))  # fmt: skip
    assert plain.loss(batch)[0] == smoothed.loss(batch)[0] == dropped.loss(batch)[0] == plain.loss(batch, rng)[0]
    log_p = [np.log(p / p.sum(-1, keepdims=True)) for p in [np.exp(plain.logits(batch.source, batch.target[:, :-1]))]][0]
    real = batch.target[:, 1:] >= 0
    expected = -(0.8 * np.take_along_axis(log_p, batch.target[:, 1:, None], -1)[..., 0] + 0.2 * log_p.mean(-1))[real].mean()
    assert smoothed.loss(batch, rng)[0] == pytest.approx(expected, rel=1e-12)
    assert dropped.loss(batch, np.random.default_rng(0))[0] != dropped.loss(batch, np.random.default_rng(1))[0]


def test_an_untrained_readout_guesses_evenly(rng):
    made = Translator(50, 60, n=64, T=9, tied="none")
    batch = sentence_batch(sentences(rng, 5), sentences(rng, 6))
    assert made.loss(batch)[0] == pytest.approx(np.log(60), rel=1e-6)


def test_a_checkpoint_gives_the_same_model(rng, tmp_path):
    model, (source,), (target,) = translator(tied="all", target_words=9, bias=True), sentences(rng, 5), sentences(rng, 3)
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == model.config
    np.testing.assert_array_equal(again.logits(source[None], target[None]), model.logits(source[None], target[None]))


@pytest.mark.exhaustive
def test_a_wrong_gradient_is_found_at_its_step(monkeypatch):
    """gradcheck of the whole model, with a backward that forgets what the encoder gets from attention's keys."""
    from mini_tf.layers import MultiHeadAttention

    right = MultiHeadAttention.across

    def wrong(self, x, z, mask=None, cache=None):
        y, backward = right(self, x, z, mask, cache)

        def forgetful(dy):
            dx, dz = backward(dy)
            return dx, dz if x is z else 0.5 * dz

        return y, forgetful

    model = translator(6, 8, n=4, T=4, L=1, m=2, f=5)
    batch = SentenceBatch(np.array([[3, 4, 5]]), np.array([[SOS, 6, 7, EOS]]))
    assert gradcheck(lambda: model.loss(batch), params=model.parameters(), budget=2)       # all entries: test_false_alarms.py
    monkeypatch.setattr(MultiHeadAttention, "across", wrong)
    report = gradcheck(lambda: model.loss(batch), params=model.parameters(), budget=2)
    assert not report
    assert report.wrong_step.name == "MultiHeadAttention.across"
    assert report.wrong_step.report.repair.before == "return dx, dz if x is z else 0.5 * dz"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 7}, "n is 7, expected an even n"), ({"norm": "twice"}, "norm 'twice' is unknown"),
        ({"tied": "all"}, "one vocabulary of both languages, got sizes 9 and"), ({"tied": True}, "tied True is unknown"),
        ({"smoothing": 1.0}, "0 ≤ smoothing < 1"), ({"dropout": -0.1}, "0 ≤ dropout"), ({"L": 0}, "L is 0"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options, message):
    with pytest.raises(UserError, match=message):
        Translator(9, 10, **SIZES | options)


def test_sentences_that_are_too_long(rng):
    model, (long,), (short,) = translator(), sentences(rng, 8), sentences(rng, 3)
    with pytest.raises(ValueError, match=r"shape \(1, 8\), expected \(B, at most T = 7\)"):
        model.loss(sentence_batch([long], [short]))
    with pytest.raises(ValueError, match=r"shape \(1, 9\)"):
        model.loss(sentence_batch([short], [long]))

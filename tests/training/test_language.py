"""From a preset to a training: it knows nothing of the test words, and every option takes effect."""

from dataclasses import replace
from itertools import islice

from mini_tf.experiment import NewWords
from mini_tf.metrics import log_frequencies
from mini_tf.training.language import prepare
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest

T, n = 8, 10
RANDOM = [name for name, preset in PRESETS.items() if getattr(preset, "vectors", None) == "random"]


@pytest.fixture(scope="module")
def text():
    """2,000 words, of which two occur in the test part only, and many once."""
    rng = np.random.default_rng(0)
    words = [f"w{i}x" for i in np.minimum(rng.zipf(1.3, 2000), 5000)]
    return " ".join([*words[:-4], "onlyhere", "w1x", "andthere", "onlyhere"])


def small(name):
    preset = PRESETS[name]
    return replace(preset, n=n, model=preset.model | {"T": T}, batch=4)


def test_training_knows_nothing_of_the_test_words(text):
    corpus = prepare(text, n, T, vectors="random")
    c = len(corpus.vocabulary)
    expected = log_frequencies(np.bincount(corpus.train, minlength=c), c)
    for name, bias in (("window", "readout.b"), ("recurrent", "readout.b"), ("pointer", "b")):
        parameters = small(name).new_model(corpus, 0).parameters()
        np.testing.assert_allclose(parameters[bias].data, expected, rtol=1e-5)


def test_vectors_from_the_training_words_know_no_others(text):
    corpus = prepare(text, n, T, vectors="training")
    occurs = np.isin(np.arange(len(corpus.vocabulary)), corpus.train)
    assert not corpus.embeddings[~occurs].any()
    assert np.abs(corpus.embeddings[occurs]).sum() > 1
    whole = prepare(text, n, T)
    assert not np.allclose(corpus.embeddings, whole.embeddings)


@pytest.mark.parametrize("name", RANDOM)
def test_weights_and_word_vectors_are_different_numbers(text, name):
    """Model and word vectors are drawn from one seed, but must not get the same numbers."""
    preset = small(name)
    corpus = prepare(text, n, T, vectors="random", seed=5)
    E = corpus.embeddings.reshape(-1)
    for parameter_name, parameter in preset.new_model(corpus, 5).parameters().items():
        W = parameter.data.reshape(-1)[: len(E)]
        if not parameter_name.endswith("embedding.table") and W.std() > 0 and len(W) > 50:
            assert abs(np.corrcoef(W, E[: len(W)])[0, 1]) < 0.5, parameter_name


def test_batches_are_the_presets(text):
    corpus = prepare(text, n, T, vectors="random")
    first, second = islice(small("recurrent").training_batches(corpus, [0]), 2)
    np.testing.assert_array_equal(first[:, -1], second[:, 0])            # goes on where it ended
    apart = np.concatenate(list(islice(small("pointer").training_batches(corpus, [0]), 30)))
    assert apart.shape == (120, T + 1)
    only_in_test = [corpus.vocabulary.index[word] for word in ("onlyhere", "andthere")]
    assert np.isin(apart, only_in_test).any()            # rare words have become new ones
    assert not np.isin(corpus.train, only_in_test).any()
    plain = np.concatenate(list(islice(small("window").training_batches(corpus, [0]), 30)))
    assert np.isin(plain, corpus.train).all()


def test_new_words_never_occur_in_training(text):
    corpus = prepare(text, n, T, vectors="random")
    counts = np.bincount(corpus.train, minlength=len(corpus.vocabulary))
    changed = NewWords(counts, corpus.vocabulary.words)(corpus.train[None, :200], np.random.default_rng(0))
    became = changed[changed != corpus.train[:200]]
    assert len(became)
    assert (counts[became] == 0).all()


def test_matrices_decay_and_the_rate_falls_as_the_preset_says(text):
    preset = replace(small("gpt"), weight_decay=0.1, last_rate=0.25)
    corpus = prepare(text, n, T, vectors="random")
    training = preset.training(preset.new_model(corpus, 0), corpus, 40, 0)
    assert (training.optimizer.weight_decay, training.schedule(40)) == (0.1, 0.25)
    matrices = {name for name, p in training.parameters.items() if p.data.ndim == 2}
    assert set(training.optimizer.only) == matrices < set(training.parameters)
    assert training.optimizer.decay("trunk.norm.gamma") == 1

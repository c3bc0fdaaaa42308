"""Models train the same on NumPy and on another array library; on a real GPU where there is one."""

from functools import partial

from mini_tf.decoding import generate, greedy, translations
from mini_tf.decoding.texts import attention_received, classify_table, classify_text, fill_gaps
from mini_tf.experiment import PointerTransformer
from mini_tf.models import (
    GPT,
    GPT2,
    Classifier,
    FixedWindowModel,
    LanguageTransformer,
    Llama,
    MaskedWordModel,
    OneAttention,
    RecurrentModel,
    Translator,
)
from mini_tf.text import Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.training import PairBatches, Training
from mini_tf.training.classification import log_probabilities
from mini_tf.training.masking import MaskedPassages
from mini_tf.training.optimizers import Adam, clip_gradients
from mini_tf.training.text_batches import TextBatches
from tests.strict import StrictArray, strict

import numpy as np
import pytest

MODELS = {
    "fixed window": partial(FixedWindowModel, T=5, k=4, dropout=0.3),
    "fixed window, sum": partial(FixedWindowModel, T=5, k=4, composition="sum", activation="relu"),
    "recurrent": partial(RecurrentModel, T=5, k=4, dropout=0.3),
    "recurrent, relu": partial(RecurrentModel, T=5, k=4, activation="relu"),
    "recurrent, lstm": partial(RecurrentModel, T=5, k=4, cell="lstm", L=2, dropout=0.3),
    "recurrent, gru": partial(RecurrentModel, T=5, k=4, cell="gru"),
    "GPT": partial(GPT, T=5, L=1, H=2, m=2, f=5, dropout=0.3),
    "GPT2": partial(GPT2, T=5, L=1, H=2, m=2, f=5, dropout=0.3),
    "Llama": partial(Llama, T=5, L=1, H=4, G=2, m=2, f=5),
    "Lab 6's": partial(LanguageTransformer, T=5, L=1, H=2, m=2, layer_norm=True, positions="geometric"),
    "pointer": partial(PointerTransformer, T=5, L=1, H=2, m=2, f=5, dropout=0.3),
    "one attention": partial(OneAttention, T=5, H=2),
}
CLASSIFIERS = {
    "attention": {"dropout": 0.3, "word_dropout": 0.2},
    "bag": {"L": 0, "positions": None},
    "[CLS], learned positions": {"pool": "first", "positions": "learned"},
    "causal": {"causal": True},
}
TEXTS = [np.array(ids) for ids in ([3, 4, 5, 6, 7], [8, 3], [5, 5, 4], [7])]
LABELS = [0, 2, 1, 1]


def trained(build, move):
    """(last loss, model) after three steps from the same start."""
    rng = np.random.default_rng(5)
    model = move(build(rng.standard_normal((9, 4))))
    optimizer = Adam(0.01)
    for _ in range(3):
        model.clear_gradients()
        loss, backward = model.loss(rng.integers(0, 9, (2, 6)), np.random.default_rng(0))
        backward()
        clip_gradients(model.parameters(), 0.5)
        optimizer.step(model.parameters())
    return float(loss), model


def made_strict(model):
    for parameter in model.parameters().values():
        parameter.data = strict(parameter.data)
    return model


def assert_same_parameters(device, host):
    for name, parameter in device.parameters().items():
        assert isinstance(parameter.data, StrictArray), name
        np.testing.assert_allclose(parameter.data.get(), host.parameters()[name].data, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_training_on_a_library_that_is_not_numpy(build):
    (loss, host), (strict_loss, device) = trained(build, lambda model: model), trained(build, made_strict)
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    assert_same_parameters(device, host)
    ids = np.random.default_rng(1).integers(0, 9, 30)
    np.testing.assert_allclose(device.log_probabilities(ids), host.log_probabilities(ids), rtol=1e-6)
    np.testing.assert_allclose(device.mean_loss(ids, 20), host.mean_loss(ids, 20), rtol=1e-6)
    assert list(generate(device, ids[:3], 8, greedy)) == list(generate(host, ids[:3], 8, greedy))


def trained_translator(move):
    """(last loss, model) of a translator after three steps."""
    model, rng = move(Translator(9, 9, n=8, T=6, L=1, H=2, m=4, f=8, dropout=0.2, dtype="float64")), np.random.default_rng(5)
    sources, targets = ([rng.integers(3, 9, length) for length in lengths] for lengths in ((4, 2, 5), (3, 4, 1)))
    training = Training(model, PairBatches(sources, targets, 12), Adam(0.01), clip=0.5, rng=np.random.default_rng(0))
    return [training.one_step()[0] for _ in range(3)][-1], model


def translated(model):
    return [found.words.tolist() for beam in (1, 3) for found in translations(model, TEXTS, beam, batch=3)]


def test_translating_on_a_library_that_is_not_numpy():
    (loss, host), (strict_loss, device) = trained_translator(lambda model: model), trained_translator(made_strict)
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    assert_same_parameters(device, host)
    assert translated(device) == translated(host)


def trained_on_texts(model, batches):
    """The last loss of three steps."""
    training = Training(model, batches, Adam(0.01), clip=0.5, rng=np.random.default_rng(0))
    return [training.one_step()[0] for _ in range(3)][-1]


def trained_classifier(options, move):
    """(last loss, model) of a classifier after three steps."""
    rng = np.random.default_rng(5)
    sizes = {"classes": 3, "T": 5, "L": 1, "H": 2, "m": 2, "f": 5, "k": 5}
    model = move(Classifier(rng.standard_normal((9, 4)), **sizes | options))
    return trained_on_texts(model, TextBatches(TEXTS, LABELS, 10)), model


def trained_masked_model(move):
    """(last loss, model) of a MaskedWordModel after three steps."""
    model = move(MaskedWordModel(np.random.default_rng(5).standard_normal((9, 4)), T=5, L=1, H=2, m=2, f=5, dropout=0.3))
    return trained_on_texts(model, MaskedPassages(TEXTS, 9, 10, 0.5)), model


def assert_classifies_alike(device, host):
    vocabulary = ClassVocabulary.of(["[SOS]", "[EOS]", "[UNK]", *"abcdef"])
    vocabulary.classes = ["x", "y", "z"]
    np.testing.assert_allclose(log_probabilities(device, TEXTS), log_probabilities(host, TEXTS), rtol=1e-6)
    (_, found), (_, expected) = (classify_text(model, vocabulary, "a b f b") for model in (device, host))
    for name in ("log_p", "chosen", "norm", "contribution"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, err_msg=name)
    seen, expected = (attention_received(model, TEXTS[0]) for model in (device, host))
    np.testing.assert_allclose(*([[0], [0]] if seen is expected is None else [seen, expected]), rtol=1e-6)
    examples = [("a b f", "x"), ("c", "z")]
    np.testing.assert_array_equal(*(classify_table(model, vocabulary, examples) for model in (device, host)))


def assert_fills_alike(device, host):
    vocabulary = Vocabulary(["[MASK]", *"abcdefg", "\n"])
    (filled, gaps), (expected, others) = (fill_gaps(model, vocabulary, "a ____ c ____") for model in (device, host))
    assert filled == expected
    for gap, other in zip(gaps, others):
        assert [word for word, _ in gap] == [word for word, _ in other]
        assert [p for _, p in gap] == pytest.approx([p for _, p in other], rel=1e-6)


@pytest.mark.parametrize("options", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifying_on_a_library_that_is_not_numpy(options):
    (loss, host), (strict_loss, device) = (trained_classifier(options, move) for move in (lambda model: model, made_strict))
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    assert_same_parameters(device, host)
    assert_classifies_alike(device, host)


def test_filling_on_a_library_that_is_not_numpy():
    (loss, host), (strict_loss, device) = trained_masked_model(lambda model: model), trained_masked_model(made_strict)
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    assert_same_parameters(device, host)
    assert_fills_alike(device, host)


@pytest.mark.gpu
@pytest.mark.parametrize("options", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifying_is_the_same_on_cpu_and_gpu(options):
    (loss, host), (gpu_loss, device) = (
        trained_classifier(options, move) for move in (lambda model: model, lambda model: model.to("gpu"))
    )
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    assert_classifies_alike(device, host)


@pytest.mark.gpu
def test_filling_is_the_same_on_cpu_and_gpu():
    (loss, host), (gpu_loss, device) = (
        trained_masked_model(move) for move in (lambda model: model, lambda model: model.to("gpu"))
    )
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    assert_fills_alike(device, host)


@pytest.mark.gpu
def test_translating_is_the_same_on_cpu_and_gpu():
    (loss, host), (gpu_loss, device) = trained_translator(lambda model: model), trained_translator(lambda model: model.to("gpu"))
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    assert translated(device) == translated(host)


@pytest.mark.gpu
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_training_is_the_same_on_cpu_and_gpu(build):
    (loss, host), (gpu_loss, device) = trained(build, lambda model: model), trained(build, lambda model: model.to("gpu"))
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    ids = np.random.default_rng(1).integers(0, 9, 30)
    np.testing.assert_allclose(device.log_probabilities(ids), host.log_probabilities(ids), rtol=1e-6)
    assert list(generate(device, ids[:3], 8, greedy)) == list(generate(host, ids[:3], 8, greedy))

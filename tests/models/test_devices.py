"""Models train the same on NumPy and on another array library; on a real GPU where there is one."""

from functools import partial

from mini_tf.decoding import generate, greedy, translations
from mini_tf.experiment import PointerTransformer
from mini_tf.models import GPT, FixedWindowModel, LanguageTransformer, RecurrentModel, Translator
from mini_tf.training import PairBatches, Training
from mini_tf.training.optimizers import Adam, clip_gradients
from tests.strict import StrictArray, strict

import numpy as np
import pytest

MODELS = {
    "fixed window": partial(FixedWindowModel, T=5, k=4, dropout=0.3),
    "fixed window, sum": partial(FixedWindowModel, T=5, k=4, composition="sum", activation="relu"),
    "recurrent": partial(RecurrentModel, T=5, k=4, dropout=0.3),
    "recurrent, relu": partial(RecurrentModel, T=5, k=4, activation="relu"),
    "GPT": partial(GPT, T=5, L=1, H=2, m=2, f=5, dropout=0.3),
    "Lab 6's": partial(LanguageTransformer, T=5, L=1, H=2, m=2, layer_norm=True, positions="geometric"),
    "pointer": partial(PointerTransformer, T=5, L=1, H=2, m=2, f=5, dropout=0.3),
}


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


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_training_on_a_library_that_is_not_numpy(build):
    (loss, host), (strict_loss, device) = trained(build, lambda model: model), trained(build, made_strict)
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    for name, parameter in device.parameters().items():
        assert isinstance(parameter.data, StrictArray), name
        np.testing.assert_allclose(parameter.data.get(), host.parameters()[name].data, rtol=1e-6, atol=1e-9)
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
    sources = [np.array(ids) for ids in ([3, 4, 5, 6, 7], [8, 3], [5, 5, 4], [7])]
    return [found.words.tolist() for beam in (1, 3) for found in translations(model, sources, beam, batch=3)]


def test_translating_on_a_library_that_is_not_numpy():
    (loss, host), (strict_loss, device) = trained_translator(lambda model: model), trained_translator(made_strict)
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    for name, parameter in device.parameters().items():
        np.testing.assert_allclose(parameter.data.get(), host.parameters()[name].data, rtol=1e-6, atol=1e-9)
    assert translated(device) == translated(host)


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

"""What a step of training launches on a GPU, and that it waits for nothing: counted on the strict array.

Each launch costs Python and the driver some microseconds, more than the arithmetic of a small model.
"""

from dataclasses import replace

from mini_tf.backend import to_host
from mini_tf.models import TextModel
from mini_tf.training import Adam, RandomWindows, Training
from mini_tf.training.registry import PRESETS
from tests.kernels.simulator import gpu_of_strict  # noqa: F401
from tests.strict import counting, strict

import numpy as np
import pytest

MOST = {"quick": 60, "gpt": 90, "lab": 140, "llama": 280}              # launches of forward and backward
DROPOUTS = {"quick": 0, "gpt": 5, "lab": 0, "llama": 0}              # in training each is three more: its mask, forward, backward
WORDS, T = 30, 5


def _model(name):
    """A small one: how many kernels are launched does not depend on sizes."""
    preset = PRESETS[name]
    preset = replace(preset, model=preset.model | {"T": T})
    table = np.random.default_rng(0).standard_normal((WORDS, preset.n), dtype=np.float32)
    return TextModel.registry[preset.model_class](table, **preset.model)


def _on_strict(model):
    for parameter in model.parameters().values():
        parameter.data = strict(parameter.data)
    return model


@pytest.mark.parametrize("name", MOST)
def test_launches(name, gpu_of_strict, capsys):  # noqa: F811
    model, windows, found = _on_strict(_model(name)), np.random.default_rng(1).integers(0, WORDS, (3, T + 1)), {}
    for rng in (None, np.random.default_rng(0)):
        model.clear_gradients()
        model.loss(windows, rng)                         # constants are sent once
        with counting() as forward:
            _, backward = model.loss(windows, rng)
        with counting() as counts:
            backward()
        found[rng is not None] = forward["launches"] + counts["launches"]
        assert forward["waits"] + counts["waits"] == 0
    with counting() as adam:
        Adam().step(model.parameters())
    with capsys.disabled():
        print(f" {name}: {forward['launches']} forward, {counts['launches']} backward, {forward['copies']} arrays sent", end="")
    assert found[False] <= MOST[name]
    assert found[True] <= MOST[name] + 3 * DROPOUTS[name]
    parameters = sum(parameter.trainable for parameter in model.parameters().values())
    assert adam["launches"] == 1 + 2 * parameters        # in the first step of all, its means become 0


@pytest.mark.parametrize("name", MOST)
def test_a_step_of_training_waits_for_nothing(name, gpu_of_strict):  # noqa: F811
    """Neither for its loss nor for its gradients' norm, which clips them; nor does it differ from one on the CPU."""
    late, host = (
        Training(model, RandomWindows(np.arange(200) % WORDS, T, 3), Adam(1e-3), clip=0.1, rng=np.random.default_rng(0))
        for model in (_on_strict(_model(name)), _model(name))
    )
    late.one_step(defer=True)
    with counting() as counts:
        late.one_step(defer=True)
    assert counts["waits"] == 0
    assert counts["launches"] <= MOST[name] + 3 * DROPOUTS[name] + 2     # the norm, and Adam
    late.settle()
    np.testing.assert_allclose(late.since["losses"], [host.one_step()[0] for _ in range(2)], rtol=1e-4)
    for key, parameter in late.parameters.items():
        np.testing.assert_allclose(to_host(parameter.data), host.parameters[key].data, rtol=1e-2, atol=1e-4, err_msg=key)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MOST)
def test_on_a_gpu_it_waits_for_nothing_either(name):
    import cupyx

    training = Training(
        _model(name).to("gpu"), RandomWindows(np.arange(200) % WORDS, T, 3), Adam(1e-3), clip=0.1,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    for _ in range(2):
        training.one_step(defer=True)
    with cupyx.allow_synchronize(False):                 # an error where CuPy waits
        training.one_step(defer=True)
    training.settle()

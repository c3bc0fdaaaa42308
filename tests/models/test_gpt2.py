"""GPT-2 by itself; that it is the published model, tests/pretrained/test_gpt2.py shows."""

from mini_tf.layers.linear import normal
from mini_tf.models import GPT2

import numpy as np
import pytest

c, n, T = 50, 64, 16
SIZES = {"T": T, "L": 8, "H": 4, "m": 16, "f": 256}


def table(rng):
    return normal(rng, (c, n), 0.02, np.float32)


def test_weights_start_as_published(rng):
    parameters = GPT2(table(rng), **SIZES).parameters()
    assert len(parameters) == 2 + 8 * 16 + 2
    for name, parameter in parameters.items():
        if name.endswith((".b", ".beta")):
            assert not parameter.data.any()
        elif name.endswith(".gamma"):
            assert (parameter.data == 1).all()
        else:
            last = name.endswith(("output.W", "outer.W"))
            np.testing.assert_allclose(parameter.data.std(), 0.02 / 4 if last else 0.02, rtol=0.1, err_msg=name)


def test_an_untrained_model_predicts_every_word_alike(rng):
    loss, _ = GPT2(table(rng), **SIZES).loss(rng.integers(0, c, (8, T + 1)))
    assert abs(loss - np.log(c)) < 0.05


@pytest.mark.parametrize("bias", [True, False])
def test_without_biases_none_is_learned(rng, bias):
    model = GPT2(table(rng), **SIZES, bias=bias)
    _, backward = model.loss(rng.integers(0, c, (2, T + 1)))
    backward()
    vectors = {name for name, p in model.parameters().items() if p.trainable and p.data.ndim == 1}
    assert any(name.endswith((".b", ".beta")) for name in vectors) == bias
    assert {name for name, p in model.parameters().items() if p.grad is None} == {
        name for name, p in model.parameters().items() if not p.trainable
    }
    weights = 12 * n * n * 8 + c * n + T * n + 17 * n
    biases = 8 * (4 * n + 5 * n) + 17 * n                # of products, and β
    assert model.parameter_count() == weights + bias * biases

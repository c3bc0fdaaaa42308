"""Whole steps with the twins for CuPy's arrays: the same loss and gradients, in how many launches."""

from dataclasses import replace

from mini_tf import kernels
from mini_tf.kernels import binding
from mini_tf.models import GPT, LanguageTransformer
from mini_tf.training.registry import PRESETS
from tests.kernels.simulator import simulated

import numpy as np
import pytest

SMALL = {"quick": {"T": 5, "m": 3}, "gpt": {"T": 5, "m": 3, "f": 10}, "lab": {"T": 5, "m": 3}}


@pytest.fixture
def launched(monkeypatch):
    """The names of the kernels launched, which run on the CPU"""
    names = simulated(monkeypatch)
    monkeypatch.setitem(binding.TWINS, "numpy", binding.TWINS["cupy"])
    return names


def model_of(name):
    """A small one: how many kernels are launched does not depend on sizes"""
    preset = PRESETS[name]
    preset = replace(preset, n=8, model=preset.model | SMALL[name])
    embeddings = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    return (GPT if preset.model_class == "GPT" else LanguageTransformer)(embeddings, seed=1, **preset.model)


def step(model, windows):
    """(loss, {name: gradient})"""
    model.clear_gradients()
    loss, backward = model.loss(windows, np.random.default_rng(3))
    backward()
    return loss, {name: p.grad for name, p in model.parameters().items() if p.trainable}


@pytest.mark.parametrize(("name", "launches"), [("quick", 46), ("gpt", 82), ("lab", 121)])
def test_a_step_is_the_same_in_few_launches(name, launches, launched, rng):
    """Not counted: what the layers add up themselves, and the optimizer."""
    model, windows = model_of(name), rng.integers(0, 20, (3, 6))
    with kernels.with_twins():
        loss, gradients = step(model, windows)
    assert len(launched) == launches
    with kernels.reference_only():
        loss_by_formula, by_formula = step(model, windows)
    assert len(launched) == launches                     # no twin ran
    assert float(loss) == pytest.approx(float(loss_by_formula), rel=1e-5)
    for key, gradient in by_formula.items():
        np.testing.assert_allclose(gradients[key], gradient, rtol=1e-3, atol=1e-5 * np.abs(gradient).max() + 1e-9)

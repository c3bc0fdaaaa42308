"""Which one runs: the twin or the plain formula."""

import subprocess
import sys

from mini_tf import kernels, layers, ops
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.kernels import cpu
from mini_tf.models import LanguageTransformer
from mini_tf.trace import replaced_ops, trace
from tests.strict import strict

import numpy as np
import pytest


@pytest.fixture
def runs(monkeypatch):
    """The names of the twins that were run."""
    names = []
    for name in ("softmax", "linear", "layer_norm", "attention"):
        twin = getattr(cpu, name)
        monkeypatch.setattr(cpu, name, lambda *a, twin=twin, name=name, **k: (names.append(name), twin(*a, **k))[1])
    return names


def x32(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_twins_take_float32_on_the_cpu(runs):
    kernels.softmax(x32(2, 3))
    assert runs == ["softmax"]
    for other in (x32(2, 3).astype(np.float64), x32(2, 3).astype(np.float16), strict(x32(2, 3))):
        kernels.softmax(other)
    kernels.linear(x32(2, 3), W=x32(3, 4).astype(np.float64))
    kernels.softmax(z=x32(2, 3).astype(np.float64))
    kernels.softmax(x32(2, 3).astype(">f4"))
    kernels.softmax(np.frombuffer(b"." + x32(2, 3).tobytes(), np.float32, offset=1).reshape(2, 3))       # unaligned
    assert runs == ["softmax"]
    ops.softmax(x32(2, 3))                               # an op is always the formula
    assert runs == ["softmax"]


def test_reference_only_can_be_nested_and_ends_with_an_error(runs):
    with kernels.reference_only():
        with kernels.reference_only():
            kernels.softmax(x32(2, 3))
        assert not kernels.switched_on()
        kernels.softmax(x32(2, 3))
    with pytest.raises(ZeroDivisionError), kernels.reference_only():
        raise ZeroDivisionError
    assert kernels.switched_on()
    assert runs == []


@pytest.mark.parametrize(("value", "on"), [("off", False), ("0", False), ("on", True), ("", True)])
def test_the_environment_switches_them_off(value, on):
    code = "from mini_tf import kernels; print(kernels.switched_on())"
    output = subprocess.run([sys.executable, "-c", code], env={"MINI_TF_KERNELS": value}, capture_output=True, text=True)
    assert output.stdout.strip() == str(on)


def test_traced_checked_and_planted_code_is_the_formula(runs):
    layer = layers.LayerNorm(3)
    with trace() as calls:
        layer(x32(2, 3))
    assert [call.name for call in calls] == ["LayerNorm", "layer_norm"]
    assert gradcheck(layers.Linear(3, 2, np.random.default_rng(0)), x32(2, 3))
    assert runs == []
    layer(x32(2, 3))
    assert runs == ["layer_norm"]


def test_a_planted_bug_is_not_hidden_by_a_twin():
    model = LanguageTransformer(x32(20, 8), T=4, L=1, H=2, m=4, layer_norm=True)
    windows = np.random.default_rng(1).integers(0, 20, (3, 5))

    def gradient():
        model.clear_gradients()
        _, backward = model.loss(windows)
        backward()
        return model.A.W.grad.copy(), model.layers[0].attention.value.W.grad.copy()

    model.A.W.data[...] = x32(32, 20)
    right = gradient()
    bug = next(bug for bug in BUGS if bug.target is ops.layer_norm)
    with planted(bug):
        wrong = gradient()
    assert np.abs(wrong[1] - right[1]).max() > 1e-2 * np.abs(right[1]).max()
    np.testing.assert_array_equal(gradient()[1], right[1])


@pytest.mark.parametrize("readout", ["average", "vec", "shared"])
def test_a_model_learns_the_same_with_and_without(readout):
    def losses():
        model = LanguageTransformer(x32(60, 8), T=6, L=2, H=2, m=4, layer_norm=True, causal=True, readout=readout,
                                    positions="geometric", scaled_attention=True, seed=3)  # fmt: skip
        batches, found = np.random.default_rng(1), []
        for _ in range(4):
            model.clear_gradients()
            loss, backward = model.loss(batches.integers(0, 60, (5, 7)))
            backward()
            for p in model.parameters().values():
                if p.trainable:
                    p.data -= np.float32(0.1) * p.grad
            found.append(float(loss))
        return found

    with_twins = losses()
    with kernels.reference_only():
        assert with_twins == pytest.approx(losses(), rel=1e-5)


def test_the_first_layers_dx_is_left_out_where_nothing_needs_it():
    """Fixed word vectors: the same gradients, and none for what the layer was given."""
    model = LanguageTransformer(x32(20, 8), T=4, L=1, H=2, m=4, causal=True)
    layer, x, dy = model.layers[0], x32(2, 4, 8), x32(2, 4, 8)
    gradients = []
    for needs_dx in (True, False):
        model.clear_gradients()
        _, backward = layer(x, None, needs_dx=needs_dx)
        dx = backward(dy)
        assert (dx is None) == (not needs_dx)
        gradients.append([p.grad for p in layer.parameters().values()])
    for one, other in zip(*gradients):
        np.testing.assert_array_equal(one, other)


def test_an_op_put_in_anothers_place_is_not_hidden_by_a_twin(runs):
    layer, given = layers.LayerNorm(3), []
    with replaced_ops(lambda name, op: lambda *inputs: (given.append(name), op(*inputs))[1]):
        layer(x32(2, 3))
    assert given == ["layer_norm"]
    assert runs == []

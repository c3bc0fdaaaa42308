"""Which one runs: the twin or the formula."""

import re
import subprocess
import sys

from mini_tf import kernels, layers, ops
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.models import LanguageTransformer
from mini_tf.ops import updates
from mini_tf.ops.op import replaced, watching
from mini_tf.trace import trace
from tests.strict import strict

import numpy as np
import pytest


def x32(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def has_twin(op, *inputs, **options):
    return op.implementation(inputs, options) is not op.formula


@pytest.fixture
def runs():
    """The names of the ops whose twins run."""
    names = []

    def watch(op, run, *inputs, **options):
        if has_twin(op, *inputs, **options):
            names.append(op.name)
        return run(*inputs, **options)

    with watching(watch):
        yield names


def test_twins_take_float32_on_the_cpu():
    assert has_twin(ops.softmax, x32(2, 3))
    assert has_twin(ops.softmax, z=x32(2, 3))
    assert has_twin(ops.embedding, x32(2, 3), np.array([1, 0], np.uint8))
    assert has_twin(ops.linear, x32(2, 3), x32(3, 4), b=None)
    for other in (x32(2, 3).astype(np.float64), strict(x32(2, 3)), x32(2, 3).astype(">f4")):
        assert not has_twin(ops.softmax, other)
    assert not has_twin(ops.linear, x32(2, 3), W=x32(3, 4).astype(np.float64))
    unaligned = np.frombuffer(b"." + x32(2, 3).tobytes(), np.float32, offset=1).reshape(2, 3)
    np.testing.assert_array_equal(ops.softmax(unaligned)[0], ops.softmax(x32(2, 3))[0])
    assert not has_twin(ops.tanh, x32(2, 3))             # tanh has no twin


def test_reference_only_can_be_nested_and_ends_with_an_error():
    with kernels.reference_only():
        with kernels.reference_only():
            assert not has_twin(ops.softmax, x32(2, 3))
        assert not kernels.switched_on()
        assert not has_twin(ops.softmax, x32(2, 3))
        with kernels.with_twins():
            assert has_twin(ops.softmax, x32(2, 3))
        assert not has_twin(ops.softmax, x32(2, 3))
    with pytest.raises(ZeroDivisionError), kernels.reference_only():
        raise ZeroDivisionError
    assert kernels.switched_on()


@pytest.mark.parametrize(("value", "on"), [("off", False), ("0", False), ("on", True), ("", True)])
def test_the_environment_switches_them_off(value, on):
    code = "from mini_tf import kernels; print(kernels.switched_on())"
    output = subprocess.run([sys.executable, "-c", code], env={"MINI_TF_KERNELS": value}, capture_output=True, text=True)
    assert output.stdout.strip() == str(on)


def test_a_trace_runs_the_formula(runs):
    layer = layers.LayerNorm(3)
    with trace() as calls:
        layer(x32(2, 3))
    assert [call.name for call in calls] == ["LayerNorm", "layer_norm"]
    assert runs == []
    layer(x32(2, 3))
    assert runs == ["layer_norm"]


def test_gradcheck_checks_the_formula_and_compares_the_twin_with_it():
    report = gradcheck(layers.Linear(3, 2, np.random.default_rng(0)), x32(2, 3))
    assert report
    assert report.twins == ["linear"]
    assert "compiled twins agree, in float32: linear" in report.explain()
    with kernels.reference_only():                       # the check runs them all the same
        assert gradcheck(ops.softmax, x32(2, 3)).twins == ["softmax"]
    assert gradcheck(ops.tanh, x32(2, 3)).twins == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda y, backward: (y, lambda dy: (backward(dy)[0], *backward(dy)[:0:-1])), "with the twins of layer_norm in mini_tf/kernels, dgamma at"),
        (lambda y, backward: (1.001 * y, backward), "y at"),
        (lambda y, backward: (y, lambda dy: (backward(dy)[0][:1], *backward(dy)[1:])), r"dx has shape \(1, 4\), expected the formula's \(5, 4\)"),
        (lambda y, backward: (y, lambda dy: 1 / 0), "with the twins of layer_norm, in float32, it raised ZeroDivisionError"),
    ],
    ids=["gradients swapped", "forward", "shape", "raises"],
)  # fmt: skip
def test_a_wrong_twin_is_found(wrong, message, monkeypatch, rng):
    from mini_tf.kernels import cpu

    right = cpu.layer_norm
    monkeypatch.setattr(cpu, "layer_norm", lambda *inputs, **options: wrong(*right(*inputs, **options)))
    report = gradcheck(ops.layer_norm, *(rng.standard_normal(shape) for shape in [(5, 4), 4, 4]))
    assert not report
    assert re.search(message, report.explain())


def test_a_planted_bug_is_not_hidden_by_a_twin():
    model = LanguageTransformer(x32(20, 8), T=4, L=1, H=2, m=4, layer_norm=True)
    windows = np.random.default_rng(1).integers(0, 20, (3, 5))

    def gradient():
        model.clear_gradients()
        _, backward = model.loss(windows)
        backward()
        return model.trunk.layers[0].attention.value.W.grad.copy()

    model.A.W.data[...] = x32(32, 20)
    right = gradient()
    bug = next(bug for bug in BUGS if bug.target is ops.layer_norm)
    with planted(bug):
        wrong = gradient()
    assert np.abs(wrong - right).max() > 1e-2 * np.abs(right).max()
    np.testing.assert_array_equal(gradient(), right)


@pytest.mark.parametrize("readout", ["average", "vec", "shared"])
def test_a_model_learns_the_same_with_and_without_twins(readout):
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


def test_a_replacement_is_not_hidden_by_a_twin(runs):
    def ones(x, gamma, beta):
        return np.ones_like(x), None

    with replaced({ops.layer_norm: ones}):
        assert (layers.LayerNorm(3)(x32(2, 3))[0] == 1).all()
    assert runs == []


@pytest.mark.exhaustive
def test_a_wrong_twin_of_adam_fails_the_whole_check(monkeypatch, capsys):
    from mini_tf.gradcheck import command, examples
    from mini_tf.gradcheck.examples import EXAMPLES
    from mini_tf.kernels import cpu

    right, few = cpu.adam, {name: EXAMPLES[name] for name in ("relu", "tanh")}
    monkeypatch.setattr(examples, "EXAMPLES", few)
    assert command.check_all(command.chosen([], [], 0), 0) == 0
    monkeypatch.setattr(cpu, "adam", lambda p, g, m, v, t, learning_rate, *rest: right(p, g, m, v, t, 2 * learning_rate, *rest))
    kernels.forget(updates.adam)
    try:
        assert command.check_all(command.chosen([], [], 0), 0) == 1
    finally:
        monkeypatch.undo()
        kernels.forget(updates.adam)
    assert "FAIL: with the twins of adam and sum_of_squares in mini_tf/kernels, p at [" in capsys.readouterr().out

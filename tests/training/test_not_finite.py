"""inf and nan are traced to the op that made them, wherever it is in a training step."""

import re
from pathlib import Path

from mini_tf import kernels, ops
from mini_tf.layers import Layer
from mini_tf.models import LanguageTransformer
from mini_tf.ops.op import watching
from mini_tf.training import Adam, RandomWindows, fit
from mini_tf.training.guard import NotFinite
from mini_tf.training.not_finite import finite, origin, spread
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from tests import tiny

import numpy as np
import pytest

OPTIMIZER = {"adam", "sum_of_squares"}
FAILS_AT = 5


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """{side: {preset: the ops whose forward, or backward, its training steps run, without twins}}"""
    found = {side: {name: {} for name in tiny.NAMES} for side in ("forward", "backward")}

    def count(op, run, *inputs, **options):
        def count_backward(*dy):
            found["backward"][name][op.name] = op
            return backward(*dy)

        if not in_a_step[0] or op.name in OPTIMIZER:
            return run(*inputs, **options)
        found["forward"][name][op.name] = op
        y, backward = run(*inputs, **options)
        return y, count_backward

    in_a_step, one_step = [False], Training.one_step

    def step(self, **options):
        in_a_step[0] = True
        try:
            return one_step(self, **options)
        finally:
            in_a_step[0] = False

    with pytest.MonkeyPatch.context() as patch, watching(count), kernels.reference_only():
        patch.setattr(Training, "one_step", step)
        for name in tiny.NAMES:
            tiny.train(name, tmp_path_factory.mktemp("used") / name, steps=1)
    return found


def too_large(y):
    """y·10⁷⁶, which is inf in float32; a tuple of arrays stays one."""
    if isinstance(y, tuple):
        return tuple(map(too_large, y))
    with np.errstate(all="ignore"):
        return y * np.float32(1e38) * np.float32(1e38) if y is not None else None


def train_with_overflow(name, op, side, folder, monkeypatch, twins):
    """Train until `op` overflows in the forward or the backward of a step; the message of NotFinite."""
    one_step, planted = Training.one_step, [False]

    def step(self, **options):
        planted[0] = self.step + 1 == FAILS_AT
        return one_step(self, **options)

    def plant(called, run, *inputs, **options):
        result = run(*inputs, **options)
        if called is not op or not planted[0]:
            return result
        y, backward = result
        return (too_large(y), backward) if side == "forward" else (y, lambda *dy: too_large(backward(*dy)))

    monkeypatch.setattr(Training, "one_step", step)
    reference = kernels.with_twins() if twins else kernels.reference_only()
    with watching(plant), reference, np.errstate(all="ignore"), pytest.raises(NotFinite) as error:
        tiny.train(name, folder)
    return str(error.value)


@pytest.mark.parametrize("side", ["forward", "backward"])
def test_an_overflow_in_any_op_is_found(side, used, tmp_path, monkeypatch):
    """In every op of every training, in the preset that calls it first."""
    first = {op_name: (name, op) for name in reversed(tiny.NAMES) for op_name, op in used[side][name].items()}
    assert len(first) > 12
    for op_name, (name, op) in first.items():
        with monkeypatch.context() as patch:
            message = train_with_overflow(name, op, side, tmp_path / op_name, patch, twins=False)
        what = "the backward of " if side == "backward" else ""
        assert f"The first numbers that are not finite came from {what}{op_name} (mini_tf/" in message, message
        assert f"at step {FAILS_AT}, expected a number" in message
        assert f"{FAILS_AT - 1}.safetensors" in message
        assert Run(tmp_path / op_name).states()[-1][0] == FAILS_AT - 1


def test_the_message_names_layer_line_and_ranges(tmp_path, monkeypatch):
    message = train_with_overflow("gpt", ops.gelu, "forward", tmp_path / "run", monkeypatch, twins=True)
    assert "the loss became nan at step 5" in message
    assert "came from gelu (mini_tf/layers/feed_forward.py:" in message
    assert "in the FeedForward trunk.layers.0.feed_forward), " in message
    assert "192 inf of 192 numbers, out of x between -" in message
    assert message.split(". ")[-2] == "Try a smaller learning rate"          # the preset clips already


def test_the_state_before_is_exact(tmp_path, monkeypatch):
    """Without the fault, the training goes on from there as if nothing had been."""
    tiny.train("recurrent", tmp_path / "whole")
    with monkeypatch.context() as patch:
        train_with_overflow("recurrent", ops.linear, "backward", tmp_path / "run", patch, twins=True)
    tiny.train("recurrent", tmp_path / "run")
    assert tiny.contents(tmp_path / "run") == tiny.contents(tmp_path / "whole")


def test_a_parameter_that_is_not_finite_already_is_named(tmp_path, monkeypatch):
    one_step = Training.one_step

    def step(self, **options):
        if self.step == 2:
            list(self.parameters.values())[-1].data[...] = np.nan
        return one_step(self, **options)

    monkeypatch.setattr(Training, "one_step", step)
    with pytest.raises(NotFinite, match=r"The parameter \S+ is not finite already: \d+ nan of"), np.errstate(all="ignore"):
        tiny.train("gpt", tmp_path / "run")


def test_a_healthy_step_has_no_origin(tmp_path):
    model, corpus, _ = tiny.train("quick", tmp_path / "run", steps=1)
    windows = corpus.train[:14].reshape(2, 7)
    assert origin(model, lambda: model.loss(windows)).startswith("All numbers of this step are finite")
    assert Path(tmp_path / "run" / "model.safetensors").exists()


def test_ranges():
    assert finite((np.ones(2), None, 3.0, "word", np.array([1, 2])))
    assert not finite((np.ones(2), float("nan")))
    assert spread(np.array([1.5, -2.0])) == "between -2 and 1.5"
    assert spread(np.array([1.0, np.nan, np.inf, -np.inf])) == "1 nan, 2 inf of 4 numbers, the others between 1 and 1"
    assert spread(np.zeros((0, 3))) == "empty"


@pytest.mark.parametrize("rate", [1e4, 1e8, 1e20])
def test_what_really_diverges_is_never_blamed_on_a_call_that_was_given_inf(rate):
    rng = np.random.default_rng(0)
    vectors, ids = rng.standard_normal((50, 16)).astype(np.float32), rng.integers(0, 50, 2000)
    model = LanguageTransformer(vectors, T=8, L=2, H=2, m=8, causal=True, readout="shared", seed=0)
    training = Training(model, RandomWindows(ids, 8, 8), Adam(rate))
    with pytest.raises(NotFinite) as error:
        fit(training, 60, lambda: 1.0)
    message = str(error.value)
    given = re.search(r"out of (.*?)\. (They|Try)", message)
    assert given is None or not re.search(r"\d (nan|inf)", given[1]), message
    assert re.search(r"came from|is not finite already|squares is too large", message)
    assert message.endswith("Try a smaller learning rate, or clip=1")


def test_lines_between_the_calls_are_named():
    class Squares(Layer):
        """h = (x·10²⁰)², which overflows between two ops; y = relu(h)"""

        def __call__(self, x):
            h, h_backward = ops.linear(x, np.eye(2, dtype=np.float32))
            y, y_backward = ops.relu(h * np.float32(1e20) * h * np.float32(1e20))
            return y, lambda dy: h_backward(y_backward(dy))[0]

        def loss(self, x, rng=None):
            y, backward = self(x)
            return y.sum(), lambda: backward(np.ones_like(y))

    model = Squares()
    message = origin(model, lambda: model.loss(np.ones((3, 2), np.float32)))
    assert "came from Squares (" in message
    assert "They arose in its own lines, before relu." in message

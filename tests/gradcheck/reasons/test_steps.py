"""The first wrong step of a whole model is the one where the bug was planted."""

import inspect

from mini_tf import layers, ops
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.examples import generic
from mini_tf.gradcheck.measuring.slopes import watched_relus
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import difference, function_of, outcome, planted
from mini_tf.gradcheck.reasons import repair, steps
from mini_tf.gradcheck.reasons.steps import first_wrong_step
from mini_tf.gradcheck.verdicts import WRONG
from mini_tf.layers.embedding import ABSENT
from mini_tf.models import LanguageTransformer

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def no_repair(monkeypatch):
    """These tests are about the steps; the search for the one change would take its seconds for each."""
    monkeypatch.setattr(repair, "SECONDS", 0.0)


HELPERS = {"sum_to", "accumulate", "walk_back"}            # not steps themselves: their callers are
CASES = [bug for bug in BUGS if bug.in_transformer]


def every_option(rng):
    """(f, inputs, params): a language transformer with every option on, dropout in training included."""
    table = rng.standard_normal((5, 4))
    model = LanguageTransformer(
        table, T=3, L=1, H=2, m=2, readout="shared", causal=True, layer_norm=True, positions="geometric",
        scaled_attention=True, train_embeddings=True, tied=True, dropout=0.3,
    )  # fmt: skip
    windows = rng.integers(0, 5, (2, 4))
    windows[0, 0] = ABSENT
    return (lambda: model.loss(windows, np.random.default_rng(0))), [], generic(model, rng)


@pytest.mark.parametrize("bug", CASES, ids=[bug.name for bug in CASES])
def test_the_first_wrong_step_is_the_planted_one(bug):
    f, inputs, params = every_option(np.random.default_rng(0))
    target = function_of(bug.target)
    if not changes_gradients(bug, f, inputs, params):
        pytest.skip("the edited line does not run in this model, or makes no difference there")
    with planted(bug), watched_relus():
        subject = Subject(f, inputs, params)
        with subject.in_float64():
            found = first_wrong_step(subject, seed=0)
    step = next(step for step in found if step.status == WRONG)
    if target.__name__ in HELPERS:
        assert step.name in ("linear", "layer_norm", "Linear", "Embedding", "TiedReadout")
        return
    assert step.name in {target.__name__, target.__qualname__, target.__qualname__.removesuffix(".__call__")}
    # The line that is named lies in the function that the bug was planted in.
    file, line = bug.place
    named_file, named_line = step.place.rsplit(":", 1)
    assert file.endswith(named_file)
    first = target.__code__.co_firstlineno
    last = first + len(inspect.getsourcelines(target)[0])
    assert first <= int(named_line) <= last
    assert first <= line <= last


def test_what_a_quick_look_misses_is_found_by_the_next(monkeypatch):
    look = steps.seems_right
    monkeypatch.setattr(steps, "seems_right", lambda f, inputs, params, seed: seed == 0 or look(f, inputs, params, seed))
    f, inputs, params = every_option(np.random.default_rng(0))
    with planted(next(bug for bug in CASES if bug.name == "layer_norm: γ forgotten")):
        assert gradcheck(f, *inputs, params=params).wrong_step.name == "layer_norm"


def changes_gradients(bug, f, inputs, params):
    """True if the bug makes a difference to the gradients of f."""
    right = outcome(f, inputs, params)
    with planted(bug):
        try:
            return difference(right, outcome(f, inputs, params)) > 1e-6
        except ValueError:                               # some edits need square arrays
            return True


def test_enough_of_the_suite_shows_in_the_model():
    """The skips above must stay few."""
    example = every_option(np.random.default_rng(0))
    shown = sum(changes_gradients(bug, *example) for bug in CASES)
    assert shown >= 80
    assert shown > 0.8 * len(CASES)


def test_steps_after_the_wrong_one_are_called_what_they_are(rng):
    bug = next(bug for bug in BUGS if bug.name == "layer_norm: γ forgotten")
    f, inputs, params = every_option(rng)
    with planted(bug):
        report = gradcheck(f, *inputs, params=params)
    names = [step.name for step in report.steps]
    first = names.index("layer_norm")
    assert [step.status for step in report.steps[:first]] == ["right"] * first
    assert report.steps[first].status == "WRONG"
    assert {step.status for step in report.steps[first + 1 :]} == {"contains the wrong one", "after it, not looked at"}
    around = {step.name for step in report.steps if step.status == "contains the wrong one"}
    assert around == {
        "LayerNorm", "TransformerLayer.after", "TransformerLayer.branch", "TransformerLayer", "Trunk.from_vectors", "Trunk",
        "LanguageTransformer.loss",
    }  # fmt: skip
    words = report.explain()
    assert "First wrong step, number" in words
    assert "gradient for gamma = 1. Perhaps gamma is forgotten" in words
    assert "written at mini_tf/ops/normalization.py" in words


def test_a_wrong_op_inside_an_op_is_named(rng):
    bug = next(bug for bug in BUGS if bug.name == "softmax: diagonal only")
    with planted(bug):
        report = gradcheck(ops.attention, *rng.standard_normal((3, 2, 4, 4)))
    assert report.wrong_step.name == "softmax"
    assert report.wrong_step.line.startswith("mini_tf/ops/attention.py")


def test_glue_between_right_steps(rng):
    """A function that joins right ops in a wrong way."""

    def two_ways(x, W):
        a, a_backward = ops.linear(x, W)
        y, y_backward = ops.residual_relu(x, a)

        def backward(dy):
            dx, da = y_backward(dy)
            _, dW, _ = a_backward(da)
            return dx, dW                                # the way back through W is left out

        return y, backward

    report = gradcheck(two_ways, rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 4)))
    assert not report
    assert report.wrong_step is None
    assert "Its 2 steps are right by themselves" in report.explain()
    assert "It lacks exactly what linear gives back" in report.explain()
    assert "is left out" in report.explain()


def test_a_model_whose_forward_fails_has_no_steps(rng):
    model = LanguageTransformer(rng.standard_normal((7, 4)), T=3, L=1, H=1, m=2, readout="shared", causal=True)
    report = gradcheck(lambda: model.loss(np.zeros((2, 9), int)), params=model.parameters())
    assert "the forward raised ValueError: LanguageTransformer: windows have shape (2, 9)" in report.explain()
    assert report.steps == []


def test_user_defined_layers_are_steps(rng):
    class Doubled(layers.Layer):
        def __init__(self):
            self.linear = layers.Linear(3, 3, rng, dtype=np.float64)

        def __call__(self, x):
            y, backward = self.linear(x)
            return 2 * y, backward                       # the 2 is forgotten on the way back

    class Model(layers.Layer):
        def __init__(self):
            self.first, self.second = Doubled(), layers.Linear(3, 2, rng, dtype=np.float64)

        def __call__(self, x):
            a, a_backward = self.first(x)
            y, y_backward = self.second(a)
            return y, lambda dy: a_backward(y_backward(dy))

    model = Model()
    report = gradcheck(model, rng.standard_normal((4, 3)), params=model.parameters())
    assert report.wrong_step.name == "Doubled"
    assert "2 × too small" in report.explain()


def test_fixed_embeddings_are_not_a_wrong_step(rng):
    """They have no gradient; the model's own way back is what is wrong."""
    model = LanguageTransformer(rng.standard_normal((7, 4)), T=3, L=1, H=1, m=2, readout="average")

    class Forgetful(layers.Trunk):
        def __call__(self, ids, rng=None, memory=None):
            x, backward = super().__call__(ids, rng)
            return x, lambda dx: None

    model.trunk.__class__ = Forgetful
    windows = np.array([[0, 1, 2, 3], [4, 5, 6, 0]])
    report = gradcheck(lambda: model.loss(windows), params=model.parameters())
    assert report.wrong_step.name == "Forgetful"


def test_after_a_wrong_parameter_nothing_is_called_fed_by_a_wrong_gradient(rng):
    bug = next(bug for bug in BUGS if bug.name == "Linear: bias forgotten")
    first, second = layers.Linear(3, 3, rng, dtype=np.float64), layers.Linear(3, 2, rng, dtype=np.float64)

    def both(x):
        a, a_backward = first(x)
        y, y_backward = second(a)
        return y, lambda dy: a_backward(y_backward(dy))

    params = {"1": first.W, "2": first.b, "3": second.W, "4": second.b}
    with planted(bug):
        report = gradcheck(both, rng.standard_normal((4, 3)), params=params)
    assert report.wrong_step.name == "Linear"
    assert {step.status for step in report.steps} == {"right", "WRONG", "after it, not looked at"}

"""A training that was stopped goes on, and ends as if it had never been stopped: to the last byte of every file."""

import os
import signal

from mini_tf.errors import Terminated
from mini_tf.models import FixedWindowModel
from mini_tf.training import Adam, RandomWindows, fit, load_training, save_training
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from tests import tiny

import numpy as np
import pytest


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """whole(name) → the files of a run of that preset that was never stopped"""
    kept = {}

    def train(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp("whole") / name
            tiny.train(name, folder)
            kept[name] = tiny.contents(folder)
        return kept[name]

    return train


def stopped_at(step, number, monkeypatch):
    """From here on, every training gets this signal in that step, and then no more."""
    one_step = Training.one_step

    def stops(self, *arguments, **options):
        if self.step + 1 == step:
            monkeypatch.setattr(Training, "one_step", one_step)
            os.kill(os.getpid(), number)
        return one_step(self, *arguments, **options)

    monkeypatch.setattr(Training, "one_step", stops)


@pytest.mark.parametrize("name", tiny.NAMES)
def test_a_run_that_was_stopped_twice_ends_like_one_that_was_not(name, whole, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    stopped_at(5, signal.SIGTERM, monkeypatch)
    with pytest.raises(Terminated):
        tiny.train(name, folder)
    assert [step for step, _ in Run(folder).states()] == [3, 5]
    stopped_at(7, signal.SIGINT, monkeypatch)            # Ctrl-C: tested, and written, but not finished
    *_, results = tiny.train(name, folder)
    assert results["stopped"] == "interrupted"
    assert results["steps"] == 7
    assert [step for step, _ in Run(folder).states()] == [6, 7]
    said = []
    tiny.train(name, folder, say=said.append)
    assert "going on after step 7" in said
    assert tiny.contents(folder) == whole(name)
    assert Run(folder).is_finished()


def test_a_run_that_was_interrupted_before_its_first_measurement(whole, tmp_path, monkeypatch):
    stopped_at(2, signal.SIGINT, monkeypatch)
    *_, results = tiny.train("gpt", tmp_path / "run")
    assert (results["stopped"], results["steps"]) == ("interrupted", 2)
    assert len(tiny.contents(tmp_path / "run")["metrics.csv"]) == 1
    tiny.train("gpt", tmp_path / "run")
    assert tiny.contents(tmp_path / "run") == whole("gpt")


def test_states_that_take_long_are_saved_seldom_but_when_it_matters(tmp_path, monkeypatch):
    """Of a large model, not after each measurement; but when a signal comes, and at the end."""
    clock, saved, save = [0.0], [], Run.save_state
    monkeypatch.setattr("mini_tf.training.runner.time.monotonic", lambda: clock[0])

    def slowly(self, training):
        clock[0] += 3                                    # seconds
        saved.append(training.step)
        save(self, training)

    monkeypatch.setattr(Run, "save_state", slowly)
    stopped_at(9, signal.SIGTERM, monkeypatch)
    with pytest.raises(Terminated):
        tiny.train("gpt", tmp_path / "run")              # measured after steps 3, 6, 9, 12
    assert saved == [3, 9]
    tiny.train("gpt", tmp_path / "run")
    assert saved == [3, 9, 12]
    saved.clear()
    monkeypatch.setattr(Run, "finished", lambda self, history: self.close())
    tiny.train("gpt", tmp_path / "whole")
    assert saved == [3, 12]


def test_fit_twice_is_fit_once(tmp_path):
    """In code, too: a training that is fitted on after fit left the best parameters in the model."""
    found = []
    for ends in ([12], [6, 12], [4, 8, 12]):
        losses, training = iter([3.0, 1.0, 2.0, 2.5, 0.5, 1.5]), new_training()
        for steps in ends:
            history = fit(training, steps, lambda losses=losses: next(losses), every=2)
            save_training(tmp_path / "state.safetensors", training)              # of the last step, not of the best
            training = load_training(tmp_path / "state.safetensors", new_training())
        last = training.model.readout.W.data.copy()
        training.take_best()
        best = training.model.readout.W.data
        found.append((history.best_step, best.tolist(), last.tolist(), [row["train_loss"] for row in history.rows]))
    assert found[0][0] == 10
    assert found[0][1] != found[0][2]
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_steps_after_fit_go_on_from_the_last_step(tmp_path):
    losses, training = iter([3.0, 1.0, 2.0]), new_training()
    fit(training, 6, lambda: next(losses), every=2)      # leaves the parameters of step 4 in the model
    whole = new_training()
    for _ in range(9):
        whole.one_step()
    for _ in range(3):
        training.one_step()
    np.testing.assert_array_equal(training.model.readout.W.data, whole.model.readout.W.data)
    save_training(tmp_path / "state.safetensors", training)
    again = load_training(tmp_path / "state.safetensors", new_training())
    np.testing.assert_array_equal(again.model.readout.W.data, whole.model.readout.W.data)


def test_other_files_among_the_states_do_no_harm(whole, tmp_path, monkeypatch):
    stopped_at(8, signal.SIGTERM, monkeypatch)
    with pytest.raises(Terminated):
        tiny.train("window", tmp_path / "run")
    for name in ("step-x.safetensors", "step-6.safetensors.bak", "notes.txt"):
        (tmp_path / "run" / "state" / name).write_text("")
    assert [step for step, _ in Run(tmp_path / "run").states()] == [6, 8]
    tiny.train("window", tmp_path / "run")
    assert tiny.contents(tmp_path / "run") == whole("window")


def new_training():
    model = FixedWindowModel(np.random.default_rng(1).standard_normal((9, 4)), T=2, k=3, seed=0)
    windows = RandomWindows(np.random.default_rng(2).integers(0, 9, 60), 2, 4)
    return Training(model, windows, Adam(0.05), clip=1.0)

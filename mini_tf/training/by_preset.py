"""Training by a preset, into a run folder: what all kinds of models share."""

import platform
from dataclasses import asdict, dataclass

import mini_tf
from mini_tf.backend import resolve_device
from mini_tf.errors import UserError
from mini_tf.progress import prepare_kernels, training_progress
from mini_tf.training.loop import Watcher, fit
from mini_tf.training.optimizers import Adam
from mini_tf.training.state import Schedule, Training

import numpy as np

KEPT_UP_TO = 3_000_000   # numbers to learn: of larger models no earlier moments are kept


@dataclass(frozen=True, kw_only=True)
class TrainingPreset:
    """The part of a preset that every kind of model has."""

    name: str
    description: str
    model: dict                  # options of the model
    learning_rate: float
    steps: int
    every: int                   # steps between measurements of the validation loss
    betas: tuple = (0.9, 0.98)   # of Adam
    clip: float | None = 1.0     # largest norm of all gradients together
    patience: int = 5            # stop after so many measurements without a new best one
    warm_up: int = 100           # steps in which the learning rate rises


def ready_to_train(preset, steps, device, say):
    """(device, steps): the device by its full name, and `steps`, or the preset's if it is None; kernels are compiled.

    Raises UserError for less than one step, and for a device that is not there.
    """
    device = resolve_device(device)
    steps = preset.steps if steps is None else steps
    if steps < 1:
        raise UserError(f"--steps is {steps}, expected at least 1")
    if device == "cpu":
        prepare_kernels(say)
    return device, steps


def introduce(model, options, device, say):
    """Say what is trained, with its options, a string; returns how many numbers there are to learn."""
    learned = model.numbers_to_learn()
    say(f"{type(model).__name__} {options}: {learned:,} numbers to learn, on the {device}")
    return learned


def listed(**options):
    """Options in a line: n=64 L=1 pool=mean"""
    return " ".join(f"{name}={value}" for name, value in options.items())


def random_vectors(c, n, seed):
    """Random word vectors (c, n) of variance 1, float32; the model draws its own numbers from the seed alone."""
    return np.random.default_rng([seed, 1]).standard_normal((c, n), dtype=np.float32)


def new_training(preset, model, batches, steps, seed):
    """The preset's Training of a model. Dropout has a generator of its own, derived from the seed."""
    return Training(
        model, batches, Adam(preset.learning_rate, preset.betas), Schedule(min(preset.warm_up, steps // 4), steps),
        preset.clip, rng=np.random.default_rng([seed, 3]),
    )  # fmt: skip


def train_into(run, training, model, preset, steps, validate, words_per_step, say):
    """`fit`, as the preset has it, with a progress bar, and a line for each measurement. Returns the History.

    The run folder gets the metrics, the best model so far, and two earlier moments of a model that is not too large.
    """
    keeps_moments = model.numbers_to_learn() <= KEPT_UP_TO
    if keeps_moments:
        run.save_moment(model, 0)

    def on_row(row, is_best):
        run.save_metrics(training.rows)
        if is_best:
            run.save_model(model)
        say(f"step {row['step']:>5}: training {row['train_loss']:.3f}, validation {row['validation_loss']:.3f}"
            f"{'' if is_best else '  (not better)'}")  # fmt: skip

    with training_progress(steps, words_per_step) as show_step:

        def on_step(step, loss):
            show_step(step, loss)
            if keeps_moments and step == steps // 10:
                run.save_moment(model, step)

        history = fit(training, steps, validate, preset.every, preset.patience, Watcher(on_step, on_row))
    say({"finished": "training finished", "interrupted": "interrupted: keeping the best model so far"}.get(
        history.stopped, "stopped early: the validation loss no longer falls"))  # fmt: skip
    return history


def about(preset, steps, seed, device, **numbers):
    """What config.json says of a run: all settings, some facts about the data, the versions."""
    settings = asdict(preset) | {"steps": steps, "seed": seed, "device": device}
    versions = {"mini_tf": mini_tf.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return {"settings": settings, **numbers, "versions": versions}


def how_it_went(history):
    """What results.json says of the training itself."""
    last = history.rows[-1]
    return {
        "steps": last["step"], "best_step": history.best_step, "stopped": history.stopped,
        "training_seconds": last["seconds"], "words_per_second": last["words_per_second"],
    }  # fmt: skip

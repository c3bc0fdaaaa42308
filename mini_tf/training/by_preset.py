"""Training by a preset, into a run folder: what all kinds of models share."""

import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import mini_tf
from mini_tf import kernels
from mini_tf.backend import resolve_device
from mini_tf.cores import blas_threads
from mini_tf.errors import UserError
from mini_tf.files import NotWritten
from mini_tf.gpu import tf32_is_on
from mini_tf.layers import Layer
from mini_tf.models.saved import SavedModel
from mini_tf.parallel import join
from mini_tf.parallel.alone import Ended
from mini_tf.progress import prepare_kernels, training_progress
from mini_tf.training.bands import as_text, band_of
from mini_tf.training.elsewhere import Elsewhere
from mini_tf.training.health import complaints
from mini_tf.training.loop import History, Watcher, fit
from mini_tf.training.optimizers import Adam
from mini_tf.training.run import Run
from mini_tf.training.state import NotFinite, Schedule, Training
from mini_tf.types import Array

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


def ready_to_train(
    preset: TrainingPreset, steps: int | None, device: str, say: Callable[[str], None]
) -> tuple[str, int]:
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


def introduce(model: Layer, options: str, device: str, say: Callable[[str], None]) -> int:
    """Say what is trained, with its options, a string; returns how many numbers there are to learn."""
    learned = model.numbers_to_learn()
    say(f"{type(model).__name__} {options}: {learned:,} numbers to learn, on the {device}")
    return learned


def listed(**options) -> str:
    """Options in a line: n=64 L=1 pool=mean"""
    return " ".join(f"{name}={value}" for name, value in options.items())


def random_vectors(c: int, n: int, seed: int) -> Array:
    """Random word vectors (c, n) of variance 1, float32; the model draws its own numbers from the seed alone."""
    return np.random.default_rng([seed, 1]).standard_normal((c, n), dtype=np.float32)


def new_training(preset: TrainingPreset, model: Layer, batches: Iterator[Any], steps: int, seed: int) -> Training:
    """The preset's Training of a model. Dropout has a generator of its own, derived from the seed."""
    return Training(
        model, batches, Adam(preset.learning_rate, preset.betas), Schedule(min(preset.warm_up, steps // 4), steps),
        preset.clip, rng=np.random.default_rng([seed, 3]), team=join(),
    )  # fmt: skip


def train_into(
    run: Run | Elsewhere, training: Training, model: SavedModel, preset: TrainingPreset, steps: int,
    validate: Callable[[], float], words_per_step: int, say: Callable[[str], None],
) -> History:  # fmt: skip
    """`fit`, as the preset has it, with a progress bar, and a line for each measurement. Returns the History.

    The run folder gets the metrics, the best model so far, the training's state after each measurement, and two earlier
    moments of a model that is not too large. If it has a state already, the training goes on from there.
    Of several processes, the first writes the files, while the others wait; at the end, they wait until it stops them.
    """
    keeps_moments, team = model.numbers_to_learn() <= KEPT_UP_TO, training.team
    found = run.restore(training, say)
    team.start_alike(training, found)
    if keeps_moments and training.step == 0:
        team.work_of_first(lambda: run.save_moment(model, 0), training)
    told, band = set(), band_of(run.settings)
    took, saved = 0.0, time.monotonic()                  # how long the last state took to save, and when that was

    def save_state():
        """Of a large model, which takes seconds, only as often as costs a twentieth of the time."""
        nonlocal took, saved
        if took > 2 and time.monotonic() - saved < 20 * took:
            return
        start = time.monotonic()
        run.save_state(training)
        saved = time.monotonic()
        took = saved - start

    def on_row(row, is_best):
        run.save_metrics(training.rows)
        if is_best:
            run.save_model(model)
        save_state()
        verdict = band and band.judge(row["validation_loss"], row["step"])
        say(f"step {row['step']:>5}: training {row['train_loss']:.3f}, validation {row['validation_loss']:.3f}"
            f"{', as usual' if verdict == 'inside' else ''}{'' if is_best else '  (not better)'}")  # fmt: skip
        if verdict in ("above", "below"):
            say(f"  {verdict} what is usual here: {as_text(band.limits(row['step']))}, over {band.seeds} seeds")
        for what, sentence in complaints(training.rows).items():
            if what not in told:
                say(f"  {sentence}")
                told.add(what)

    with training_progress(steps, words_per_step, training.step) as show_step:

        def on_step(step, loss):
            show_step(step, loss)
            if keeps_moments and step == steps // 10:
                team.work_of_first(lambda: run.save_moment(model, step), training)

        watcher = Watcher(
            on_step, on_row=lambda row, is_best: team.work_of_first(lambda: on_row(row, is_best), training),
            on_stop=lambda: team.work_of_first(lambda: run.save_state(training), training),
        )  # fmt: skip
        history = fit(training, steps, validate, preset.every, preset.patience, watcher)
    team.serve(training)
    if not team.first:
        return history
    if training.step not in dict(run.states()):
        run.save_state(training)                         # so that a kill from here on costs no training
    run.save_model(model)
    run.save_metrics(history.rows)
    run.save_gradient_flow(history.rows)
    say({
        "finished": "training finished", "early": "stopped early: the validation loss no longer falls",
        "interrupted": f"interrupted: keeping the best model so far; to go on with the training: {run.how_to_go_on()}",
    }[history.stopped])  # fmt: skip
    return history


@contextmanager
def kept_safe(run: Run | Elsewhere, training: Training, model: SavedModel) -> Iterator[None]:
    """Inside the block, in which a model is trained and tested, what is learned survives what goes wrong.

    If the run's folder cannot be written to any more, everything goes to another one, run.rescue, or else a new one in
    the system's folder for temporary files, where the training can go on. If a number is not finite, the state before
    that step is kept. The error that ends the block says how to go on.
    """
    try:
        try:
            yield
            training.team.stop_serving()
        except NotFinite as error:
            training.team.work_of_first(lambda: run.save_state(training), training)
            if not training.team.first:
                raise Ended from None                    # the first process says it
            raise NotFinite(f"{error}. The state before this step is kept: {run.states()[-1][1]}") from None
    except NotWritten as error:
        steps = [step for step, _ in run.states()]
        kept = f"the last state there is that of step {steps[-1]}" if steps else "no state is there"
        safe, failed = _rescued(run, training, model)
        if safe is None:
            raise UserError(f"{error}; {kept}. What was in memory, of step {training.step}, is lost: {failed}. "
                            f"Make room, and go on with {run.how_to_go_on()}") from None  # fmt: skip
        raise UserError(f"{error}; {kept}. What was in memory, of step {training.step}, is now in {safe}: go on with "
                        f"{run.how_to_go_on(safe)}") from None  # fmt: skip


def _rescued(run, training, model):
    """(folder, None) to which what is in memory was written, or (None, why it could not be written anywhere)"""
    places = [lambda: run.rescue] if run.rescue else []
    for place in [*places, lambda: tempfile.mkdtemp(prefix="mini-tf-rescue-")]:
        try:
            return run.copy_to(place(), training, model), None
        except (UserError, OSError) as error:
            failed = error
    return None, failed


def about(
    preset: TrainingPreset, steps: int, seed: int, device: str, data: str | list[tuple[str, ...]]
) -> dict[str, Any]:
    """What config.json says of a run before it begins: all settings, a hash of what it learns from, the machine.

    Raises UserError if several processes differ in the settings, the data, or the versions.
    """
    team, settings = join(), asdict(preset) | {"steps": steps, "seed": seed}
    machine = {
        "device": device, "processes": team.size, "threads": blas_threads(), "kernels": kernels.switched_on(),
        "mini_tf": mini_tf.__version__, "numpy": np.__version__, "python": platform.python_version(),
        "processor": platform.machine(),
    } | ({"tf32": True} if tf32_is_on() else {})  # fmt: skip
    config = {"settings": settings, "data": hash_of(data), "machine": machine}
    team.check_in(
        settings=settings, data=config["data"], sharded=team.sliced, mini_tf=mini_tf.__version__, numpy=np.__version__
    )
    return config


def hash_of(data: str | list[tuple[str, ...]]) -> str:
    """The sha256 of a text, or of tuples of texts: a run keeps it to know again what it learned from."""
    text = data if isinstance(data, str) else json.dumps(data)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def how_it_went(history: History) -> dict[str, float | str]:
    """What results.json says of the training itself."""
    last = history.rows[-1]
    return {
        "steps": last["step"], "best_step": history.best_step, "stopped": history.stopped,
        "training_seconds": last["seconds"], "words_per_second": last["words_per_second"],
    }  # fmt: skip

"""The runner: it trains a task's model, into a run folder."""

import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import mini_tf
from mini_tf import kernels
from mini_tf.backend import use_device
from mini_tf.cores import blas_threads
from mini_tf.errors import UserError
from mini_tf.files import NotWritten
from mini_tf.gpu import tf32_is_on
from mini_tf.machine import OutOfMemory
from mini_tf.parallel import join
from mini_tf.parallel.single_process import Ended
from mini_tf.progress import prepare_kernels, training_progress
from mini_tf.training.expected_loss import as_text, band_of
from mini_tf.training.guard import NotFinite
from mini_tf.training.health import complaints
from mini_tf.training.loop import History, Watcher, fit
from mini_tf.training.memory import check_memory
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from mini_tf.training.task import Task
from mini_tf.types import Say, silent

import numpy as np

MOMENTS_UP_TO = 3_000_000        # trainable parameters: of larger models no earlier moments are saved


def train(
    preset: Task, data: Any, run: Run, steps: int | None = None, seed: int = 0, device: str = "auto", say: Say = silent
) -> tuple[Any, Any, dict[str, Any]]:  # fmt: skip
    """Train the preset's model on the data, into the run folder. Returns (model, prepared data, results).

    results: see the `report` of each kind of task; of several processes, only rank 0 has them.
    Ctrl-C ends the training; the best model so far is kept and tested.
    """
    group, device, steps = join(), use_device(device), preset.steps if steps is None else steps
    if steps < 1:
        raise UserError(f"--steps is {steps}, expected at least 1")
    if device == "cpu":
        prepare_kernels(say)
    config = about(preset, steps, seed, device, data)
    run.begin(config, say)
    prepared = preset.prepare(data, seed, say)
    if device == "cpu":
        check_memory(preset.model_type, preset.model | preset.sizes(prepared), preset.words_in_batch())
    model = preset.new_model(prepared, seed).to(device)
    count = model.parameter_count()
    sizes = ({"n": preset.n} if hasattr(preset, "n") else {}) | preset.model
    options = " ".join(f"{name}={value}" for name, value in sizes.items())
    say(f"{type(model).__name__} {options}: {count:,} trainable parameters, on the {device}")
    facts = {name: of | {"parameters": count} for name, of in preset.facts(data, prepared).items()}
    run.save_config(config | facts, prepared.vocabulary)
    training, parts = preset.training(model, prepared, steps, seed), preset.loss_parts(model, prepared)
    with rescue_on_failure(run, training, model):
        history = fit_into(run, training, model, preset, steps, lambda: group.mean(parts), say)

        def report():
            save_trained(run, training, model, history, say)
            results = preset.report(run, model, prepared, seed)
            results = {"validation": history.best_validation_loss} | results | history.summary() | {"run": run.identity}
            draw_curves(run, preset, history, results)
            run.write_json("results.json", results)
            run.finished(history)
            return results

        results = group.run_on_rank_0(report, training)
    return model, prepared, results or {}


def draw_curves(run: Run, preset: Task, history: History, results: dict[str, Any]) -> None:
    """curves.png: the losses, with those of guessing and of the test part as lines"""
    noise = {"dropout": "dropout", "smoothing": "smoothed labels"}
    label = " and ".join(what for option, what in noise.items() if preset.model.get(option))
    lines = {name: results[name] for name in ("uniform", "unigram", "test") if name in results}
    run.save_figure("curves.png", "curves", history.rows, lines, unit=preset.unit,
                    training=f"training, with {label}" if label else "training")  # fmt: skip


def fit_into(
    run: Run, training: Training, model: Any, preset: Task, steps: int, validate: Callable[[], float], say: Say
) -> History:  # fmt: skip
    """`fit` with the preset's settings, a progress bar, and a line for each measurement. Returns the History.

    The run folder gets the metrics, the best model so far, the training's state after each measurement, and two earlier
    moments of a model that is not too large. If it has a state already, the training goes on from there.
    Of several processes, only rank 0 writes the files, while the others wait.
    """
    with_moments, group = model.parameter_count() <= MOMENTS_UP_TO, join()
    group.synchronize(training, run.restore(training, say))
    if with_moments and training.step == 0:
        group.run_on_rank_0(lambda: run.save_moment(model, 0), training)
    band, complained = band_of(run.settings), set()
    took, saved = 0.0, time.monotonic()                  # how long the last state took to save, and when that was

    def save_state():
        """A large model's state, which takes seconds, is saved so seldom that it costs a twentieth of the time."""
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
        loss, step, remarks = row["validation_loss"], row["step"], "" if is_best else "  (not better)"
        if band and (verdict := band.judge(loss, step)):
            where = "in the" if verdict == "inside" else f"{verdict} {as_text(band.limits(step))}, the"
            remarks = f", {where} expected range{remarks}"
        say(f"step {step:>5}: training loss {row['train_loss']:.3f}, validation loss {loss:.3f}{remarks}")
        for what, sentence in complaints(training.rows).items():
            if what not in complained:
                say(f"  {sentence}")
                complained.add(what)

    with training_progress(steps, training.batches.words, training.step) as show_step:

        def on_step(step, loss):
            show_step(step, loss)
            if with_moments and step == steps // 10:
                group.run_on_rank_0(lambda: run.save_moment(model, step), training)

        watcher = Watcher(
            on_step, on_row=lambda row, is_best: group.run_on_rank_0(lambda: on_row(row, is_best), training),
            on_stop=lambda: group.run_on_rank_0(lambda: run.save_state(training), training),
        )  # fmt: skip
        return fit(training, steps, validate, preset.every, preset.patience, watcher)


def save_trained(run: Run, training: Training, model: Any, history: History, say: Say) -> None:
    """Write the trained model, its last state and the metrics, and say how the training ended."""
    if training.step not in dict(run.states()):
        run.save_state(training)                         # so that a kill from here on costs no training
    run.save_model(model)
    run.save_metrics(history.rows)
    observed = [row for row in history.rows if row.get("update_ratio")]
    if observed:                                         # at least one measurement was before an interruption
        run.save_figure("gradient_flow.png", "gradient_flow", observed)
    say({
        "finished": "training finished", "early": "stopped early: the validation loss no longer falls",
        "interrupted": f"interrupted: keeping the best model so far; to go on with the training: {run.how_to_go_on()}",
    }[history.stopped])  # fmt: skip


@contextmanager
def rescue_on_failure(run: Run, training: Training, model: Any) -> Iterator[None]:
    """Inside the block, in which a model is trained and tested, no failure loses what it has learned.

    If the run's folder cannot be written to any more, everything goes to another one, run.rescue, or else a new one in
    the system's folder for temporary files, where the training can go on. If a number is not finite, the state before
    that step is kept. The error that ends the block says how to go on.
    """
    try:
        try:
            yield
        except NotFinite as error:
            join().run_on_rank_0(lambda: run.save_state(training), training)
            if not join().first:
                raise Ended from None                    # rank 0 says it
            raise NotFinite(f"{error}. The state before this step is kept: {run.states()[-1][1]}") from None
    except OutOfMemory as error:
        if not run.states():
            raise
        raise OutOfMemory(f"{error}. What is kept is the state of step {run.states()[-1][0]}: once there is more "
                          f"memory, {run.how_to_go_on()}") from None
    except NotWritten as error:
        steps = [step for step, _ in run.states()]
        kept = f"the last state there is that of step {steps[-1]}" if steps else "no state is there"
        raise UserError(f"{error}; {kept}. {_rescued(run, training, model)}") from None


def _rescued(run, training, model):
    """Write what is in memory to another folder. Returns a sentence about where it is, or why it is lost."""
    places = [lambda: run.rescue] if run.rescue else []
    for place in [*places, lambda: tempfile.mkdtemp(prefix="mini-tf-rescue-")]:
        try:
            folder = run.copy_to(place(), training, model)
            return (f"What was in memory, of step {training.step}, is now in {folder}: go on with "
                    f"{run.how_to_go_on(folder)}")  # fmt: skip
        except (UserError, OSError) as error:
            failed = error
    return (f"What was in memory, of step {training.step}, is lost: {failed}. Make room, and go on with "
            f"{run.how_to_go_on()}")  # fmt: skip


def about(preset: Task, steps: int, seed: int, device: str, data: Any) -> dict[str, Any]:
    """What config.json says of a run before it begins: all settings, a hash of what it learns from, the machine.

    Raises UserError if several processes differ in the settings, the data, or the versions.
    """
    group, settings = join(), asdict(preset) | {"steps": steps, "seed": seed}
    machine = {
        "device": device, "processes": group.size, "threads": blas_threads(), "kernels": kernels.switched_on(),
        "mini_tf": mini_tf.__version__, "numpy": np.__version__, "python": platform.python_version(),
        "processor": platform.machine(),
    } | ({"tf32": True} if tf32_is_on() else {})  # fmt: skip
    config = {"settings": settings, "data": hash_of(data), "machine": machine}
    group.check_equal(
        rows=getattr(preset, "batch", None), settings=settings, data=config["data"], sharded=group.sharded,
        mini_tf=mini_tf.__version__, numpy=np.__version__,
    )  # fmt: skip
    return config


def hash_of(data: str | list[tuple[str, ...]]) -> str:
    """The sha256 of a text, or of tuples of texts: by it a run that goes on recognises its data."""
    text = data if isinstance(data, str) else json.dumps(data)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

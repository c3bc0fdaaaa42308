"""One training loop for every model."""

import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from mini_tf import kernels
from mini_tf.checks import check_whole
from mini_tf.errors import Terminated
from mini_tf.machine import memory_said
from mini_tf.terminal import signals_to_end
from mini_tf.training.step import Training, nothing_yet

import numpy as np


@dataclass
class History:
    """What happened during training.

    rows       one dict per measurement: step, train_loss (mean since the last row), validation_loss, learning_rate,
               seconds (of training since the start), words_per_second (since the last row), and the columns of
               `Health` for the last step: "" in the row that an interruption adds
    best_step  the step whose parameters the model has now
    stopped    "finished", "early" (the validation loss had stopped falling) or "interrupted" (Ctrl-C)
    """

    rows: list = field(default_factory=list)
    best_step: int = 0
    stopped: str = "finished"

    @property
    def best_validation_loss(self) -> float:
        return min((row["validation_loss"] for row in self.rows), default=float("inf"))

    def summary(self) -> dict[str, float | str]:
        """The entries of results.json about the training itself"""
        last = self.rows[-1]
        return {
            "steps": last["step"], "best_step": self.best_step, "stopped": self.stopped,
            "training_seconds": last["seconds"], "words_per_second": last["words_per_second"],
        }  # fmt: skip


@dataclass(frozen=True)
class Watcher:
    """Callbacks that follow a training, for a progress bar or a run folder. The training can be saved in each.

    on_step  called as on_step(step, loss) after each step; on a GPU the loss may be that of some steps before
    on_row   called as on_row(row, is_best) after each measurement, with its row of the History
    on_stop  called as on_stop() when a signal stops the training
    """

    on_step: Callable = lambda step, loss: None
    on_row: Callable = lambda row, is_best: None
    on_stop: Callable = lambda: None


def fit(
    training: Training, steps: int, validate: Callable[[], float], every: int = 100, patience: int | None = None,
    watcher: Watcher | None = None,
) -> History:  # fmt: skip
    """Train until `steps` steps are done. Returns a History, and leaves the best parameters in the model.

    training    a Training: model, batches, optimizer; it may have done some of its steps already
    validate    a function without arguments that gives the validation loss; called every `every` steps
    patience    stop after so many measurements without a new best one; None: never
    watcher     a Watcher, called after each step and each measurement; None: a progress bar

    Ctrl-C ends the training after the current step: the History says "interrupted", with a last measurement that the
    Training itself does not keep, and the model gets the best parameters so far. SIGTERM ends it, too, and then the
    process, with Terminated; so does a closed terminal, by SIGHUP.
    Raises NotFinite as `Training.one_step`, and UserError for steps below 0, and every or patience below 1.
    """
    check_whole(0, steps=steps)
    check_whole(every=every, **({} if patience is None else {"patience": patience}))
    if watcher is None:
        from mini_tf.progress import training_progress  # here, because it loads rich

        with training_progress(steps, getattr(training.batches, "words", None), training.step) as on_step:
            return fit(training, steps, validate, every, patience, Watcher(on_step))
    training.begin()
    stopped = "early" if _patience_is_over(training, patience) else None
    last = None                                          # the measurement that an interruption adds
    with kernels.recycled_memory(), memory_said(), _noted_signals() as noted:
        while stopped is None and training.step < steps:
            to_measure = (training.step + 1) % every == 0 or training.step + 1 == steps
            loss, _ = training.one_step(observe=to_measure, defer=True)
            if to_measure:
                row = _row(training, training.measure(validate), training.health)
                training.rows.append(row)
                training.since = nothing_yet()
                is_best = training.measured(row["validation_loss"])
            watcher.on_step(training.step, loss)         # it may raise, and the training be saved: with this step's row
            if to_measure:
                watcher.on_row(row, is_best)
                if training.step < steps and _patience_is_over(training, patience):
                    stopped = "early"
            if number := training.agreed(noted[-1] if noted else None):
                watcher.on_stop()
                if number != signal.SIGINT:
                    raise Terminated(number)
                stopped = "interrupted"
                training.settle()
                if not to_measure:                       # this step was not observed
                    last = _row(training, training.measure(validate), dict.fromkeys(training.health, ""))
    if last and last["validation_loss"] < training.best[0]:
        best_step = training.step
    else:
        best_step = training.best[1]
        training.take_best()
    training.end()
    return History([*training.rows, *([last] if last else [])], best_step, stopped or "finished")


def _row(training, validation_loss, health):
    """A row of History.rows."""
    since = training.since
    return {
        "step": training.step,
        "train_loss": float(np.mean(since["losses"])),
        "validation_loss": float(validation_loss),
        "learning_rate": training.optimizer.learning_rate,
        "seconds": round(training.seconds, 3),
        "words_per_second": round(since["words"] / since["seconds"]),
        **health,
    }


def _patience_is_over(training, patience):
    """True if none of the last `patience` measurements was a new best one."""
    return patience is not None and sum(row["step"] > training.best[1] for row in training.rows) >= patience


@contextmanager
def _noted_signals():
    """Inside the block, the first Ctrl-C and the first signal that asks the process to end, such as SIGTERM, raise
    nothing: they are noted in the list that is yielded.

    So no update is left half done. A second signal acts as it did before. One that the process ignores stays ignored.
    """
    noted = []
    if threading.current_thread() is not threading.main_thread():        # only the main thread may handle signals
        yield noted
        return

    def note(number, _):
        noted.append(number)
        signal.signal(number, before[number])

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *signals_to_end())}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, note)
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

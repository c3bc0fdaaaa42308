"""One training loop for every model."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field

from mini_tf import kernels

import numpy as np


@dataclass
class History:
    """What happened during training.

    rows       one dict per measurement: step, train_loss (mean since the last row), validation_loss, learning_rate,
               seconds (of training since the start), words_per_second (read since the last row)
    best_step  the step whose parameters the model has now
    stopped    "finished", "early" (the validation loss had stopped falling) or "interrupted" (Ctrl-C)
    """

    rows: list = field(default_factory=list)
    best_step: int = 0
    stopped: str = "finished"

    @property
    def best_validation_loss(self):
        return min((row["validation_loss"] for row in self.rows), default=float("inf"))


@dataclass(frozen=True)
class Watcher:
    """Callbacks that follow a training, for a progress bar or a run folder.

    on_step  called as on_step(step, loss) after each step
    on_row   called as on_row(row, is_best) after each measurement, with its row of the History
    """

    on_step: Callable = lambda step, loss: None
    on_row: Callable = lambda row, is_best: None


def fit(training, steps, validate, every=100, patience=None, watcher=None):
    """Train until `steps` steps are done. Returns a History, and leaves the best parameters in the model.

    training    a Training: model, batches, optimizer; it may have done some of its steps already
    validate    a function without arguments that gives the validation loss; called every `every` steps
    patience    stop after so many measurements without a new best one; None: never
    watcher     a Watcher, told of each step and each measurement

    Ctrl-C ends the training after the current step: the History says "interrupted", and the model gets the best
    parameters so far. A loss that is not finite raises UserError.
    """
    watcher = watcher or Watcher()
    seconds = training.rows[-1]["seconds"] if training.rows else 0.0
    losses, words, clock, stopped = [], 0, time.perf_counter(), None
    with kernels.recycled_memory(), _interruptions() as interrupted:
        while stopped is None and training.step < steps:
            loss, words_read = training.one_step()
            losses.append(loss)
            words += words_read
            watcher.on_step(training.step, loss)
            if training.step == steps or interrupted():
                stopped = "interrupted" if interrupted() else "finished"
            elif training.step % every:
                continue

            elapsed = time.perf_counter() - clock
            seconds += elapsed
            row = {
                "step": training.step,
                "train_loss": float(np.mean(losses)),
                "validation_loss": float(validate()),
                "learning_rate": training.optimizer.learning_rate,
                "seconds": round(seconds, 3),
                "words_per_second": round(words / elapsed),
            }
            training.rows.append(row)
            is_best = training.measured(row["validation_loss"])
            watcher.on_row(row, is_best)
            since_best = sum(row["step"] > training.best[1] for row in training.rows)
            if stopped is None and since_best == patience:
                stopped = "early"
            losses, words, clock = [], 0, time.perf_counter()
    training.take_best()
    training.model.clear_gradients()
    return History(training.rows, training.best[1], stopped or "finished")


def mean_loss(model, ids, most=None, on_batch=None):
    """The mean loss of the words of `ids` from the T-th on, each predicted from the words before it: the lab's test.

    Cross-entropy in nats per word; mean squared error for the readout "average". How long the histories are depends on
    the model: see its mean_loss. With `most`, only so many words are measured: evenly spaced ones, or the first ones if
    the model reads the text from left to right. on_batch(done, of) is called after each batch.
    """
    return model.mean_loss(ids, most, on_batch)


@contextmanager
def _interruptions():
    """Inside the block, the first Ctrl-C raises nothing: the function that is yielded returns True from then on.

    So no update is ever left half done. A second Ctrl-C acts as usual.
    """
    noted = []

    def note(*_):
        noted.append(True)
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():        # only the main thread may handle signals
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(noted)
    finally:
        signal.signal(signal.SIGINT, before)

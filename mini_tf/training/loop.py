"""One training loop for every model."""

import math
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

from mini_tf import kernels
from mini_tf.errors import UserError
from mini_tf.training.optimizers import clip_gradients

import numpy as np


@dataclass
class History:
    """What happened during training.

    rows       one dict per measurement: step, train_loss (mean since the row before), validation_loss, learning_rate,
               seconds (of training since the start), words_per_second (read, since the row before)
    best_step  the step whose parameters the model has now
    stopped    "finished", "early" (the validation loss had stopped falling) or "interrupted" (Ctrl-C)
    """

    rows: list = field(default_factory=list)
    best_step: int = 0
    stopped: str = "finished"

    @property
    def best_validation_loss(self):
        return min((row["validation_loss"] for row in self.rows), default=math.inf)


def fit(
    model, batches, optimizer, *, steps, validate, every=100, patience=None, warm_up=0, decay=False, clip=None,
    rng=None, on_step=None, on_row=None,
):  # fmt: skip
    """Train a model: `steps` times loss, backward, step. Returns a History; the model has the best parameters seen.

    model       has .loss(batch, rng) → loss, backward, and .parameters()
    batches     an iterator of batches
    validate    a function without arguments that gives the validation loss; called every `every` steps
    patience    stop after so many measurements without a better one; None: never
    warm_up     the learning rate rises linearly over so many steps
    decay       then it falls along a half cosine to a twentieth at the last step
    clip        the most that the norm of all gradients together may be: see clip_gradients
    rng         a Generator for dropout
    on_step     called as on_step(step, loss) after each step, for a progress bar
    on_row      called as on_row(row, is_best) after each measurement

    Ctrl-C ends the training after the step under way: the History says "interrupted", and the model has the best
    parameters so far. A loss that is not a number raises UserError.
    """
    history, parameters, full_rate = History(), model.parameters(), optimizer.learning_rate
    if kernels.take(*(parameter.data for parameter in parameters.values())):
        from mini_tf.training.progress import prepare_kernels

        prepare_kernels()
    best, measurements_since_best, kept = math.inf, 0, {}
    losses, words, seconds, clock = [], 0, 0.0, time.perf_counter()
    with _interruptions() as interrupted:
        for step in range(1, steps + 1):
            batch = next(batches)
            optimizer.learning_rate = full_rate * _schedule(step, steps, warm_up, decay)
            model.clear_gradients()
            loss, backward = model.loss(batch, rng)
            backward()
            if clip is not None:
                clip_gradients(parameters, clip)
            optimizer.step(parameters)
            losses.append(_finite(float(loss), step))
            words += np.size(batch)
            if on_step:
                on_step(step, losses[-1])
            last = step == steps or interrupted()
            if step % every and not last:
                continue

            elapsed = time.perf_counter() - clock
            seconds += elapsed
            row = {
                "step": step,
                "train_loss": float(np.mean(losses)),
                "validation_loss": float(validate()),
                "learning_rate": optimizer.learning_rate,
                "seconds": round(seconds, 3),
                "words_per_second": round(words / elapsed),
            }
            history.rows.append(row)
            is_best = row["validation_loss"] < best
            if is_best:
                best, measurements_since_best, history.best_step = row["validation_loss"], 0, step
                if not last:
                    _copy(parameters, kept)
            else:
                measurements_since_best += 1
            if on_row:
                on_row(row, is_best)
            if last or measurements_since_best == patience:
                history.stopped = "interrupted" if interrupted() else "finished" if step == steps else "early"
                break
            losses, words, clock = [], 0, time.perf_counter()
    if history.rows and history.best_step != history.rows[-1]["step"]:
        for name, data in kept.items():
            parameters[name].data = data
    optimizer.learning_rate = full_rate
    model.clear_gradients()
    kernels.free_memory()
    return history


def mean_loss(model, ids, most=None, on_batch=None):
    """The mean loss of the words of `ids` from the T-th on, each predicted from the words before it: the lab's test.

    Cross-entropy in nats per word; mean squared error for the readout "average". How many words before it, the model
    says: see its mean_loss. With `most`, that many words are measured: evenly spaced ones, or the first, where a model
    reads a text from left to right. on_batch(done, of) is called after each batch.
    """
    return model.mean_loss(ids, most, on_batch)


def _schedule(step, steps, warm_up, decay):
    if step < warm_up:
        return step / warm_up
    if not decay:
        return 1.0
    share = (step - warm_up) / max(steps - warm_up, 1)
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share))


def _finite(loss, step):
    if not math.isfinite(loss):
        raise UserError(
            f"the loss became {loss} at step {step}, expected a number; try a smaller learning rate, or clip=1"
        )
    return loss


def _copy(parameters, kept):
    """Copy what is trained into the dict `kept`, into the arrays of the last copy where there are some."""
    for name, parameter in parameters.items():
        if not parameter.trainable:
            continue
        if name in kept:
            kept[name][...] = parameter.data
        else:
            kept[name] = parameter.data.copy()


@contextmanager
def _interruptions():
    """Within the block, Ctrl-C is not raised wherever it hits: it is noted, and the function given here tells.

    So no parameter is ever half-updated. A second Ctrl-C is an ordinary one.
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

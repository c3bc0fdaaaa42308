"""Steps on a GPU whose losses are read later, several at once.

Reading a number makes the host wait until the device has computed it, and the device wait until the host has found out
what to do next. So a step leaves its loss and its gradients' norm on the device, and several are read together. If one
of them is not finite, no step since has changed a parameter (`kernels/gpu/updates.py`): the training goes back to where
it was before that step, and that step is looked into, as it would have been at once on a processor.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from mini_tf.kernels.gpu import updates
from mini_tf.layers import clear_gradients
from mini_tf.ops.updates import adam, sum_of_squares
from mini_tf.training.guard import StepGuard, failure
from mini_tf.training.optimizers import Adam, with_gradient

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.step import Training

READ_EVERY = 16          # steps


@dataclass(frozen=True)
class Step:
    """A step whose loss has not been read yet."""

    batch: Any
    before: tuple                # see `guard.position`
    counts: dict                 # Adam's t of each parameter, before the step
    words: int                   # in the batch


class DeferredSteps:
    """The steps of a training since its losses were last read.

    last_loss  the last loss that was read; None at first
    """

    def __init__(self, training: "Training"):
        self.training = training
        self.steps: list[Step] = []
        self.last_loss: float | None = None
        self.record = updates.Record(next(iter(training.parameters.values())).data, READ_EVERY)

    def update(self, loss: Any, batch: Any, before: tuple, words: int) -> None:
        """Adam's step, unless a number is not finite; the loss and the gradients' norm stay on the device."""
        training, k = self.training, len(self.steps)
        optimizer, parameters = cast(Adam, training.optimizer), training.parameters
        self.steps.append(Step(batch, before, dict(optimizer.memory.get("t", {})), words))
        gradients: list[Any] = []
        for _, parameter, g in with_gradient(parameters):
            parameter.grad = updates.contiguous(g)       # once, for the norm and for the optimizer
            gradients.append(parameter.grad)
        updates.note(self.record, k, updates.contiguous(loss), gradients)
        optimizer.step(parameters, record=self.record, step=k, most=training.clip or 0.0)

    def read(self) -> None:
        """Read the steps' losses and norms; this waits for the device.

        Raises NotFinite for the first step whose numbers are not finite; the training is then as it was before it.
        """
        if not self.steps:
            return
        training, steps = self.training, self.steps
        numbers, self.steps = self.record.read()[: len(steps)], []
        good = np.isfinite(numbers).all(1)
        first_bad = len(steps) if good.all() else int(good.argmin())
        training.since["losses"] += numbers[:first_bad, 0].tolist()
        training.since["words"] += sum(step.words for step in steps[:first_bad])
        if first_bad:
            self.last_loss = float(numbers[first_bad - 1, 0])
        if first_bad == len(steps):
            return
        bad, (loss, square) = steps[first_bad], numbers[first_bad]
        training.step -= len(steps) - first_bad
        training.optimizer.memory["t"] = bad.counts
        self.record.begin_anew()
        what = f"the gradient's norm became {square**0.5}" if np.isfinite(loss) else f"the loss became {loss}"
        raise failure(training, what, bad.batch, bad.before)


def one_step(training: "Training") -> tuple[float | None, int]:
    """The same as `Training.one_step`, without waiting for the device. Returns (last loss that was read, words)."""
    steps = training.deferred = training.deferred or DeferredSteps(training)
    with StepGuard(training) as guard:
        batch = training.next_batch()
        clear_gradients(training.parameters)
        loss, backward = training.loss(batch)
        backward()
        training.count_step()
        steps.update(loss, batch, guard.before, np.size(batch))
        if steps.last_loss is None or len(steps.steps) == READ_EVERY:    # the first loss of all is shown at once
            steps.read()
    return steps.last_loss, np.size(batch)


def possible(training: "Training") -> bool:
    """True if the training's steps can be deferred: Adam's own, of one process, of float32 arrays on a GPU"""
    optimizer = training.optimizer
    if not training.can_defer or not isinstance(optimizer, Adam):
        return False
    if type(optimizer).update is not Adam.update or type(optimizer).step is not Adam.step:
        return False
    arrays = [parameter.data for parameter in training.parameters.values() if parameter.trainable]
    if not arrays or not all(updates.runs_for(op, arrays[0]) for op in (adam, sum_of_squares)):
        return False
    return all(p.dtype == np.float32 and p.flags.c_contiguous for p in arrays)

"""A training on several processes: each computes its share of every batch, and all make the same step."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mini_tf.backend import to_host
from mini_tf.layers import Layer
from mini_tf.parallel.buckets import GradientSums
from mini_tf.parallel.shares import loss_of_share, predictions, rows_of, weight_of
from mini_tf.training import not_finite
from mini_tf.training.health import Health
from mini_tf.training.step import Training
from mini_tf.types import Array, Backward

import numpy as np

if TYPE_CHECKING:
    from mini_tf.parallel.process_group import ProcessGroup

PER_EXAMPLE = {"model/carried"}      # in a training's state: arrays with a row for each example of a batch


class DistributedTraining(Training):
    """A Training of one of the processes of a group; each of them has such an object, with equal batches."""

    sums_class, can_defer = GradientSums, False

    def __init__(self, group: "ProcessGroup", model: Layer, *args, **options):
        super().__init__(model, *args, **options)
        self.group, self.sums = group, self.sums_class(group.comm, self.parameters)

    def share(self, batch: Any) -> tuple[slice, float]:
        """(rows, weight): this process's rows of the batch, and what part of the batch's predictions is in them.

        If there are none in them, the rows are one that another process has, too, with weight 0.
        Raises UserError for an array with fewer rows than there are processes.
        """
        if hasattr(batch, "shape"):
            self.group.check_rows(len(batch))
        rows, counts = rows_of(self.group.rank, self.group.size, len(batch)), predictions(batch)
        if counts[rows].sum():
            return rows, weight_of(rows, counts)
        some = int(counts.argmax())
        return slice(some, some + 1), 0.0

    def loss(self, batch: Any) -> tuple[float, Backward]:
        """The loss of the whole batch, and a backward that leaves the whole batch's gradients in the parameters."""
        rows, weight = self.share(batch)
        loss, backward = loss_of_share(self.model, batch, rows, self.rng)
        [loss] = self.group.sum([float(loss) * weight if weight else 0.0])

        def summed_backward():
            with self.sums.on_their_way():
                backward(weight)

        return loss, summed_backward

    def origin(self, batch: Any) -> str:
        """Where the numbers come from that are not finite: what the first process that finds it says."""
        rows, _ = self.share(batch)
        texts = self.group.all_gather(not_finite.origin(
            self.model, lambda: loss_of_share(self.model, batch, rows, self.rng), self.rng
        ))  # fmt: skip
        rank = next((rank for rank, text in enumerate(texts) if text != not_finite.NOTHING), 0)
        return f"On process {rank}: {texts[rank]}"

    def seen(self, health: Health, squares: dict[str, float]) -> None:
        health.alive = self.group.logical_or(health.alive)
        super().seen(health, squares)

    # A fit ---------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.group.busy = True
        super().begin()

    def measure(self, validate: Callable[[], float]) -> float:
        """The validation loss of rank 0, by which all stop at the same step."""
        loss = self.group.broadcast(super().measure(validate))
        self.group.check_equal_parameters(self.parameters)
        return loss

    def agreed(self, signal: int | None) -> int | None:
        return int(self.group.maximum(signal or 0)) or None

    def end(self) -> None:
        super().end()
        self.group.busy = False

    # Its state, which rank 0 writes: it asks the other processes for their parts ------------------------------------

    def carried_rows(self, name: str) -> Array:
        """This process's rows of an array of the model's state"""
        return to_host(self.model.state()[name])

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        arrays, numbers = super().state()
        for name in PER_EXAMPLE & arrays.keys():
            arrays[name] = np.concatenate(self.group.gather(self, "carried_rows", name.removeprefix("model/")))
        return arrays, numbers

    def restore(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        own = {name: arrays[name] for name in PER_EXAMPLE & arrays.keys()}
        own = {name: x[rows_of(self.group.rank, self.group.size, len(x))] for name, x in own.items()}
        super().restore(arrays | own, numbers)

"""What a training asks of the processes that it runs on, and the answers of a process that is alone."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.errors import UserError
from mini_tf.types import Array, Backward

import numpy as np

if TYPE_CHECKING:
    from mini_tf.layers import Layer, Parameter
    from mini_tf.training.state import Training


class Ended(UserError):
    """Another process has ended the training.

    failed: [(rank, exit code, text)] if the processes have met since; None if they have yet to
    """

    def __init__(self, failed: list[tuple[int, int, str]] | None = None):
        super().__init__("another process has ended the training")
        self.failed = failed


class Alone:
    """One process: its share of a batch is the batch. `Team` answers for several.

    rank, size, first    this process's number, how many there are, and whether it is the first one, number 0, which
                         alone writes files and speaks
    sliced               each process keeps the optimizer's memory of its slices only
    """

    rank, size, first, sliced = 0, 1, True, False
    preparing = busy = False         # before a training, in which all will meet; in a training

    # A step --------------------------------------------------------------------------------------------------------

    def loss(self, model: "Layer", batch: Any, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The loss of the whole batch, and a backward that leaves the whole batch's gradients in the parameters."""
        return model.loss(batch, rng)

    def check_rows(self, B: int) -> None:
        """Raises UserError if batches of B rows have too few for all processes."""

    def own_loss(self, model: "Layer", batch: Any, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """(loss, backward) of this process's share alone."""
        return model.loss(batch, rng)

    def updated_here(self, parameters: dict[str, "Parameter"]) -> dict[str, "Parameter"]:
        """Of {name: Parameter}, what this process updates, and their gradients: all of it, or slices."""
        return parameters

    def over_slices(self, numbers: dict[str, float]) -> dict[str, float]:
        """{name: number} of what is updated here, such as Σ g², added up over what is updated elsewhere"""
        return numbers

    def exchange(self, parameters: dict[str, "Parameter"]) -> None:
        """After the update: every process gets what the others have updated."""

    # Numbers of all processes --------------------------------------------------------------------------------------

    def sum(self, numbers: list[float]) -> list[float]:
        """The sum over the processes of a list of numbers: a list. All get the same."""
        return numbers

    def highest(self, number: float) -> float:
        """The highest of the processes' numbers."""
        return number

    def anywhere(self, masks: list[Array]) -> list[Array]:
        """A list of bool arrays, each True wherever it is True in one of the processes."""
        return masks

    def of_first(self, value: Any) -> Any:
        """The first process's value, which JSON can hold."""
        return value

    def everybody(self, value: Any) -> list[Any]:
        """The values of all processes, in the order of their numbers: a list"""
        return [value]

    def on_one_machine(self) -> bool:
        """Whether all processes are on the same machine."""
        return True

    def total(self, counts: Any) -> Any:
        """The sum of the processes' arrays or sparse matrices."""
        return counts

    def words_before(self, ids: Array, most: int) -> Array:
        """The last ids, `most` or as many as there are, before this process's part of a corpus."""
        return np.zeros(0, dtype=np.int64)

    def mean(self, parts: Sequence[Any], measure: Callable[[Any], tuple[float, int]]) -> float:
        """The mean loss of all parts, each process measuring some of them: measure(part) → (mean loss, predictions)"""
        total = count = 0
        for part in parts[self.rank :: self.size]:
            loss, predictions = measure(part)
            total, count = total + float(loss) * predictions, count + predictions
        total, count = self.sum([total, count])
        return total / count

    # Beginning, files and end --------------------------------------------------------------------------------------

    def check_in(self, **same) -> None:
        """Before the training: see that all processes are there, and that these values are the same on each.

        Raises UserError on all of them if not.
        """

    def start_alike(self, training: "Training", found: tuple[dict[str, Array], dict[str, Any]] | None = None) -> None:
        """Every process gets the first one's parameters, or the state (arrays, numbers) that it has found."""

    def check_alike(self, parameters: dict[str, "Parameter"]) -> None:
        """Raises UserError if the processes no longer have the same parameters."""

    def work_of_first(self, work: Callable[[], Any], training: "Training") -> Any:
        """Let the first process do work(), such as writing files, while the others wait, and send what it asks for."""
        return work()

    def serve(self, training: "Training") -> None:
        """On all but the first process: wait until it has done its work."""

    def stop_serving(self) -> None:
        """On the first process: its work is done, the others may go on."""

    def whole_memory(self, training: "Training") -> dict[str, dict[str, Any]]:
        """The optimizer's memory, {which: {name: array}}, of whole parameters."""
        return training.optimizer.memory

    def updates(self, training: "Training", name: str) -> bool:
        """Whether this process updates that parameter, or a slice of it."""
        return True

    def own_memory(self, training: "Training", name: str, array: Array) -> Array | None:
        """What this process keeps of the memory of a whole parameter; None if it keeps nothing."""
        return array

    def whole_state(self, training: "Training") -> dict[str, Array]:
        """training.model.state(), with the rows of all processes."""
        return training.model.state()

    def own_state(self, model: "Layer", state: dict[str, Array]) -> dict[str, Array]:
        """What this process keeps of a model's state: its rows."""
        return state


ALONE = Alone()

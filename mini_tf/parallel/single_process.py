"""The process group of a single process: what a training asks its group, and the answers where there is no other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.errors import UserError
from mini_tf.metrics import LossPart, mean_of
from mini_tf.types import Array

if TYPE_CHECKING:
    from mini_tf.training.step import Training


class Ended(UserError):
    """Another process has ended the training.

    failed: [(rank, exit code, text)] if the processes have met since; None if they have yet to
    """

    def __init__(self, failed: list[tuple[int, int, str]] | None = None):
        super().__init__("another process has ended the training")
        self.failed = failed


class SingleProcess:
    """This process alone, if mpiexec has not started several.

    rank, size  this process's number, and how many there are
    first       it has rank 0: only this process writes files and prints
    sharded     each process keeps the optimizer's memory of its shard only
    """

    rank, size, first, sharded = 0, 1, True, False
    preparing = busy = False         # before a training in which all processes meet; in one

    def training(self, *args, **options) -> "Training":
        """A Training whose steps all processes make together; here, half of a batch is for each of two cores."""
        from mini_tf.parallel.two_cores import TwoCoreTraining  # here, because it imports the models

        return TwoCoreTraining(*args, **options)

    def mean(self, parts: Sequence[LossPart]) -> float:
        """The mean loss of all parts, of which each process measures some."""
        return mean_of(parts)

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value, on every process; JSON has to be able to hold it."""
        return value

    def on_one_machine(self) -> bool:
        """Whether all processes are on the same machine."""
        return True

    def check_equal(self, rows: int | None = None, **same) -> None:
        """Before a training: raise UserError on all processes unless each has the same values.

        rows: in a batch; each process needs one
        """

    def synchronize(self, training: "Training", found: tuple[dict[str, Array], dict[str, Any]] | None) -> None:
        """Every process gets rank 0's parameters, or the state, (arrays, numbers), that rank 0 has found."""

    def run_on_rank_0(self, work: Callable[[], Any], training: "Training") -> Any:
        """work() on rank 0, such as writing files. The others wait, send what it asks for, and return None."""
        return work()


SINGLE = SingleProcess()

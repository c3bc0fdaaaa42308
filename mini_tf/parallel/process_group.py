"""Several processes that train one model together, connected by MPI."""

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.backend import to_device_of, to_host
from mini_tf.checks import first_difference
from mini_tf.errors import UserError
from mini_tf.layers import Parameter
from mini_tf.metrics import LossPart, sums_of
from mini_tf.parallel.single_process import Ended, SingleProcess
from mini_tf.types import Array

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from mini_tf.training.step import Training

LEFT = "ended, while the others went on"
WORK = 1                             # tag of rank 0's messages to the processes that wait for its work
PATIENCE = 1.5                       # seconds for which a failed process waits for the others


class ProcessGroup(SingleProcess):
    """The processes of an MPI communicator; each of them has such an object."""

    def __init__(self, comm: MPI.Intracomm, sharded: bool = False):
        self.comm, self.meetings, self.sharded = comm.Dup(), comm.Dup(), sharded
        self.rank, self.size, self.first = comm.rank, comm.size, comm.rank == 0
        self.serving = False                             # the others are waiting for the work of rank 0

    def training(self, *args, **options) -> "Training":
        from mini_tf.parallel.distributed import DistributedTraining  # here, because they import the models
        from mini_tf.parallel.sharded import ShardedTraining

        return (ShardedTraining if self.sharded else DistributedTraining)(self, *args, **options)

    # Numbers of all processes --------------------------------------------------------------------------------------

    def mean(self, parts: Sequence[LossPart]) -> float:
        total, predictions = self.sum(sums_of(parts[self.rank :: self.size]))
        return total / predictions

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """The sums of the processes' numbers."""
        return self._gathered(numbers).sum(0).tolist()

    def maximum(self, number: float) -> float:
        """The maximum of the processes' numbers."""
        return self._gathered([number]).max().item()

    def _gathered(self, numbers):
        """The numbers of all processes, in the order of their ranks: so all get the same sum, to the last bit."""
        gathered = np.empty((self.size, len(numbers)))
        self.comm.Allgather(np.array(numbers, dtype=np.float64), gathered)
        return gathered

    def logical_or(self, masks: list[Array]) -> list[Array]:
        """A list of bool arrays, each True wherever it is True in one of the processes."""
        return [np.any(of_all, axis=0) for of_all in zip(*self.all_gather([to_host(mask) for mask in masks]))]

    def broadcast(self, value: Any) -> Any:
        return self.all_gather(value)[0]

    def all_gather(self, value: Any) -> list[Any]:
        """The values of all processes, in the order of their ranks. Raises Ended if one of them has failed."""
        self._barrier(np.inf)
        found = self.meetings.allgather((None, False, value))
        if failed := failures(found):
            raise Ended(failed)
        return [value for *_, value in found]

    def on_one_machine(self) -> bool:
        return len(set(self.all_gather(MPI.Get_processor_name()))) == 1

    # Beginning and end ---------------------------------------------------------------------------------------------

    def check_equal(self, rows: int | None = None, **same) -> None:
        if rows is not None:
            self.check_rows(rows)
        gathered = self.all_gather(json.loads(json.dumps(same)))
        for name in same:
            for rank, theirs in enumerate(gathered):
                odd, here, there = first_difference(name, theirs[name], gathered[0][name])
                if here != there:
                    raise UserError(f"process {rank} has another {name} than process 0: "
                                    f"{f'{odd} is ' if odd != name else ''}{here} instead of {there}; start all with "
                                    "the same command, the same files and the same versions")  # fmt: skip

    def check_rows(self, B: int) -> None:
        """Raises UserError if batches of B rows have too few for all processes."""
        if self.size > B:
            raise UserError(f"a batch has {B} rows, too few for {self.size} processes, which need one each; start at "
                            f"most {B}, or take larger batches")  # fmt: skip

    def _barrier(self, patience):
        """Wait for all processes, at most this many seconds, without keeping the processor busy; True if all came."""
        start, request = time.monotonic(), self.meetings.Ibarrier()
        while not request.Test():
            waited = time.monotonic() - start
            if waited > patience:
                return False
            if waited > 1e-3:
                time.sleep(min(waited / 10, 0.02))
        return True

    def leave(self, failed: tuple[int, str] | None = None) -> list[tuple[int, int, str]] | None:
        """The end of this process's work: wait for the others, and return which have failed, [(rank, code, text)].

        failed: (exit code, text) of this process. The others may be waiting for it in the middle of a step, which
        nothing can interrupt. Then they do not come in time, and None is returned: all have to be aborted.
        """
        if self.serving:
            self._tell(["end"])
            self.serving = False
        if not self._barrier(PATIENCE if failed is not None and not self.preparing else np.inf):
            return None
        return failures(self.meetings.allgather((failed, True, None)))

    # Files, which only rank 0 writes --------------------------------------------------------------------------------

    def run_on_rank_0(self, work: Callable[[], Any], training: "Training") -> Any:
        if not self.first:
            return self._serve(training)
        self.serving = True                              # after an error in the work, `leave` tells the others
        result = work()
        self._tell(["go on"])
        self.serving = False
        return result

    def _serve(self, training):
        while True:
            while not self.meetings.iprobe(source=0, tag=WORK):
                time.sleep(2e-3)
            what, *rest = self.meetings.recv(source=0, tag=WORK)
            if what == "go on":
                return
            if what == "end":
                raise Ended
            self.meetings.gather(getattr(training, what)(*rest))

    def _tell(self, what):
        for rank in range(1, self.size):
            self.meetings.send(what, rank, WORK)

    def gather(self, training: "Training", *what: str) -> list[Any]:
        """On rank 0: [training.METHOD(*arguments) of each process]; what: METHOD, *arguments"""
        if not self.serving:
            raise RuntimeError("parts of this training's state are on other processes, which are not waiting: save it "
                               "inside group.run_on_rank_0")  # fmt: skip
        self._tell(what)
        method, *arguments = what
        return self.meetings.gather(getattr(training, method)(*arguments)) or []

    def synchronize(self, training: "Training", found: tuple[dict[str, Array], dict[str, Any]] | None) -> None:
        own, numbers = found or ({}, None)
        numbers = self.broadcast(numbers)
        self.preparing, self.busy = False, True
        if numbers is None:
            for parameter in training.parameters.values():
                parameter.data[...] = self._broadcast_array(parameter.data)
            return
        shapes = self.broadcast({name: (x.shape, x.dtype.str) for name, x in own.items()})
        arrays = {}
        for name, (shape, dtype) in shapes.items():
            arrays[name] = self._broadcast_array(own[name] if self.first else np.empty(shape, dtype))
        if not self.first:
            training.restore(arrays, numbers)

    def _broadcast_array(self, array):
        host = np.ascontiguousarray(to_host(array))
        self.comm.Bcast(host)
        return to_device_of(host, array)

    def check_equal_parameters(self, parameters: dict[str, Parameter]) -> None:
        """Raises UserError if the processes no longer have the same parameters."""
        sums = []
        for parameter in parameters.values():
            bits = np.ascontiguousarray(to_host(parameter.data)).reshape(-1).view(np.uint32)
            sums.append(int(bits.sum(dtype=np.uint64)))
        if len({tuple(of) for of in self.all_gather(sums)}) > 1:
            raise UserError("the processes no longer have the same parameters, although they began with the same and "
                            "made the same steps; is the memory of one machine at fault, or its network? --resume "
                            "goes on from the last state that was saved")  # fmt: skip


def failures(found: list[tuple[tuple[int, str] | None, bool, Any]]) -> list[tuple[int, int, str]]:
    """[(rank, exit code, text)] from a meeting's [(failure, has left, value)]: whoever leaves early has failed, too"""
    others_go_on = not all(left for _, left, _ in found)
    return [(rank, *(failure or (2, LEFT))) for rank, (failure, left, _) in enumerate(found)
            if failure or (left and others_go_on)]       # fmt: skip

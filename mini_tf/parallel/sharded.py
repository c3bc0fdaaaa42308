"""A sharded optimizer: its memory is divided among the processes.

Adam keeps two numbers for each number that is learned. Every process needs all parameters for its forward, and makes a
gradient for each of them; but it need not update all of them. So each bucket is cut into one slice for each process. A
process gets the summed gradient of its slices only (Reduce-scatter), updates these, with a memory of these, and sends
the new numbers to the others (Allgather). Adam works number by number, so the result is the same.
Source: Rajbhandari et al. 2020, arXiv:1910.02054, P_os
"""

from typing import Any

from mini_tf.backend import array_module, device_of, to_device_of, to_host
from mini_tf.layers import Parameter
from mini_tf.parallel.buckets import Bucket, GradientSums, slices_of
from mini_tf.parallel.distributed import DistributedTraining
from mini_tf.types import Array

import numpy as np
from mpi4py import MPI


class ShardedSums(GradientSums):
    """Adds up gradients over the processes, of which each gets the sum of its own slices only.

    own_slices      {name: slice} of the parameters of which this process has a slice
    slices          {name: Parameter} of these slices, flat, with their gradients
    with_gradient   the names of all parameters that have a gradient, on any process
    """

    all_sums = False

    def __init__(self, comm: MPI.Intracomm, parameters: dict[str, Parameter]):
        super().__init__(comm, parameters)
        own = [piece for bucket in self.buckets for piece in self.own(bucket)]
        self.own_slices = {name: slice(first, stop) for name, _, first, stop in own}
        self.slices: dict[str, Parameter] = {}
        self.with_gradient: list[str] = []
        for parameter in self.trained:                   # so that slices are views, which can be updated in place
            parameter.data = array_module(parameter.data).ascontiguousarray(parameter.data)

    def own(self, bucket: Bucket) -> list[tuple[str, Parameter, int, int]]:
        """[(name, parameter, first, stop)]: of which parameters this process has the numbers first … stop − 1"""
        mine, found = slices_of(self.comm.size, bucket.numbers)[self.comm.rank], []
        for name, parameter, start, end in zip(bucket.names, bucket.parameters, bucket.starts, bucket.starts[1:]):
            first, stop = max(mine.start, start) - start, min(mine.stop, end) - start
            if first < stop:
                found.append((name, parameter, first, stop))
        return found

    def _put_back(self, has_gradient):
        self.slices = {}
        for bucket, total in zip(self.buckets, self.totals):
            done = 0
            for name, parameter, first, stop in self.own(bucket):
                if has_gradient[parameter]:
                    piece = Parameter(parameter.data.reshape(-1)[first:stop])        # a view: updated in place
                    piece.grad = to_device_of(total[done : done + stop - first], parameter.data)
                    self.slices[name] = piece
                done += stop - first
        self.with_gradient = [name for bucket in self.buckets for name, p in zip(bucket.names, bucket.parameters)
                              if has_gradient[p]]  # fmt: skip

    def exchange(self) -> None:
        """Every process gets the slices of all others."""
        under_way = []
        for bucket in self.buckets:
            flat = bucket.packed([parameter.data for parameter in bucket.parameters])
            counts = [piece.stop - piece.start for piece in slices_of(self.comm.size, flat.size)]
            under_way.append((self.comm.Iallgatherv(MPI.IN_PLACE, [flat, counts]), flat))
        for bucket, (request, flat) in zip(self.buckets, under_way):
            request.Wait()
            for parameter, data in bucket.unpacked(flat):
                if len(bucket.names) > 1 or device_of(data) != device_of(parameter.data):
                    parameter.data[...] = to_device_of(data, parameter.data)      # else it is there already


class ShardedTraining(DistributedTraining):
    """A DistributedTraining of which each process keeps the optimizer's memory of its slices only."""

    sums_class = ShardedSums
    sums: ShardedSums

    @property
    def updated(self) -> dict[str, Parameter]:
        return self.sums.slices

    def squared_norms(self) -> dict[str, float]:
        names, own = self.sums.with_gradient, super().squared_norms()
        return dict(zip(names, self.group.sum([own.get(name, 0.0) for name in names])))

    def update(self) -> None:
        super().update()
        self.sums.exchange()

    def memory(self) -> dict[str, dict[str, Any]]:
        kinds: dict[str, dict[str, Any]] = {}            # which: {name: a number, or the dtype of an array}
        for theirs in self.group.gather(self, "memory_kinds"):
            for which, of in theirs.items():
                kinds.setdefault(which, {}).update(of)
        return {
            which: {
                name: FromAll(self, which, name, of[name]) if isinstance(of[name], str) else of[name]
                for name in self.parameters if name in of
            }
            for which, of in kinds.items()
        }  # fmt: skip

    def memory_kinds(self) -> dict[str, dict[str, Any]]:
        """Of this process's memory: {which: {name: a number, or the dtype of an array}}"""
        return {
            which: {name: x.dtype.str if np.ndim(x) else x for name, x in of.items()}
            for which, of in self.optimizer.memory.items()
        }

    def memory_slice(self, which: str, name: str) -> Array | None:
        """This process's slice of an array of the memory"""
        memory = self.optimizer.memory.get(which, {})
        return to_host(memory[name]) if name in memory else None

    def restore(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        own, slices = {}, self.sums.own_slices
        for path, x in arrays.items():
            name = path.split("/", 2)[-1]
            if not path.startswith("optimizer/"):
                own[path] = x
            elif name in slices:
                own[path] = x.reshape(-1)[slices[name]]
        counts = {
            which: {name: number for name, number in of.items() if name in slices}
            for which, of in numbers["counts"].items()
        }  # fmt: skip
        super().restore(own, numbers | {"counts": counts})


class FromAll:
    """An array of the optimizer's memory whose slices are on all processes: calling it fetches them."""

    def __init__(self, training: ShardedTraining, which: str, name: str, dtype: str):
        data = training.parameters[name].data
        self.shape, self.size, self.ndim, self.dtype = data.shape, data.size, data.ndim, np.dtype(dtype)
        self.fetch = lambda: training.group.gather(training, "memory_slice", which, name)

    def __call__(self) -> Array:
        return np.concatenate([piece for piece in self.fetch() if piece is not None]).reshape(self.shape)

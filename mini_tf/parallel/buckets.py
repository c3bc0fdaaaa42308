"""Adding up gradients over all processes, while the backward goes on.

A backward finishes the parameters one after the other, roughly in the reverse of their order in the model. They are
put into buckets in that order; as soon as the last gradient of a bucket is there, the bucket goes on its way, with a
call that does not wait (MPI's Iallreduce), and the backward goes on with the layers before it.
"""

import time
from contextlib import contextmanager

from mini_tf.backend import beside, to_host
from mini_tf.kernels.memory import empty

import numpy as np
from mpi4py import MPI

BUCKET = 1 << 18                     # numbers: small gradients share a message; larger ones have one of their own


class Bucket:
    """Parameters whose gradients travel in one message, side by side.

    names, parameters    of the bucket
    starts               where each one's numbers begin, and where the last one's end
    """

    def __init__(self, some):
        self.names, self.parameters = zip(*some)
        self.starts = np.cumsum([0, *(parameter.data.size for parameter in self.parameters)]).tolist()
        self.dtype = np.dtype(str(self.parameters[0].data.dtype))

    @property
    def numbers(self):
        return self.starts[-1]

    def packed(self, arrays):
        """The arrays, one for each parameter, as one flat host array: not copied, if there is one, and contiguous"""
        if len(arrays) == 1 and arrays[0] is not None:
            return np.ascontiguousarray(to_host(arrays[0])).reshape(-1)
        flat = empty((self.numbers,), self.dtype)
        for array, first, stop in zip(arrays, self.starts, self.starts[1:]):
            flat[first:stop] = 0 if array is None else to_host(array).reshape(-1)
        return flat

    def unpacked(self, flat):
        """[(parameter, its part of the flat array, in its shape)]"""
        parts = zip(self.parameters, self.starts, self.starts[1:])
        return [(p, flat[first:stop].reshape(p.data.shape)) for p, first, stop in parts]


def buckets_of(parameters):
    """Buckets of what is trained of {name: Parameter}, the last parameter first; one dtype in each."""
    buckets, some = [], []
    for name, parameter in reversed([item for item in parameters.items() if item[1].trainable]):
        full = sum(p.data.size for _, p in some) + parameter.data.size > BUCKET
        if some and (full or some[0][1].data.dtype != parameter.data.dtype):
            buckets.append(Bucket(some))
            some = []
        some.append((name, parameter))
    return [*buckets, Bucket(some)] if some else buckets


class GradientSums:
    """Adds up the gradients of {name: Parameter} over the processes of an MPI communicator.

    with sums.on_their_way():
        backward()                   # afterwards each parameter's gradient is the sum, on every process

    All processes send the same buckets in the same order, whatever the order in which their gradients come. How often
    a gradient is added to, before it is complete, is known from the step before; the first step sends all at its end. A
    gradient that is added to once more after it was sent is sent again.

    waited      seconds that the processes waited for the sums after their backwards, since the beginning
    """

    def __init__(self, comm, parameters):
        self.comm, self.buckets, self.waited = comm, buckets_of(parameters), 0.0
        self.trained = [p for bucket in self.buckets for p in bucket.parameters]
        self.bucket_of = [k for k, bucket in enumerate(self.buckets) for _ in bucket.parameters]
        self.expected = None                             # how often each gradient is added to; not known yet

    @contextmanager
    def on_their_way(self):
        self.added, self.late, self.under_way = [0] * len(self.trained), False, []
        self.missing = [0] * len(self.buckets)
        for k, number in zip(self.bucket_of, self.expected or []):
            self.missing[k] += number > 0
        for i, parameter in enumerate(self.trained):
            parameter.when_added = lambda i=i: self._one_more(i)
        try:
            yield
        finally:
            for parameter in self.trained:
                parameter.when_added = None
        self._finish()

    def _one_more(self, i):
        """Something was added to gradient i."""
        self.added[i] += 1
        if self.expected is None:
            return
        k = self.bucket_of[i]
        self.late |= k < len(self.under_way)
        if self.added[i] == self.expected[i]:
            self.missing[k] -= 1
        while len(self.under_way) < len(self.buckets) and not self.missing[len(self.under_way)]:
            self._send(self.buckets[len(self.under_way)])
        MPI.Request.Testall([request for request, *_ in self.under_way])         # MPI works only while it is called

    def _send(self, bucket):
        flat = bucket.packed([parameter.grad for parameter in bucket.parameters])
        self.under_way.append(self._start(flat))

    def _start(self, flat):
        """(request, sum): the sum is there when the request is done. `flat` must not change until then."""
        total = empty(flat.shape, flat.dtype)
        return self.comm.Iallreduce(flat, total), total, flat

    def _finish(self):
        """Send what is left, wait, and put the sums into the parameters."""
        start = time.perf_counter()
        while len(self.under_way) < len(self.buckets):
            self._send(self.buckets[len(self.under_way)])
        everywhere = np.array([number > 0 for number in self.added] + [self.late], dtype=np.int32)
        self.comm.Allreduce(MPI.IN_PLACE, everywhere, MPI.MAX)
        MPI.Request.Waitall([request for request, *_ in self.under_way])
        if everywhere[-1]:
            self.under_way = []
            for bucket in self.buckets:
                self._send(bucket)
            MPI.Request.Waitall([request for request, *_ in self.under_way])
        self._put_back(dict(zip(self.trained, everywhere)))
        self.expected, self.under_way = self.added, []
        self.waited += time.perf_counter() - start

    def _put_back(self, has_gradient):
        for bucket, (_, total, _) in zip(self.buckets, self.under_way):
            for parameter, gradient in bucket.unpacked(total):
                parameter.grad = beside(gradient, parameter.data) if has_gradient[parameter] else None

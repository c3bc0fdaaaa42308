"""Adding up gradients in buckets and pieces."""

from mini_tf.backend import to_host
from mini_tf.layers import Parameter
from mini_tf.parallel.shares import DrawsOfRows, cut, predictions, rows_of
from mini_tf.training.pair_batches import sentence_batch
from tests.parallel.mpi import needs_mpi, work
from tests.strict import StrictArray, strict

import numpy as np
import pytest


@needs_mpi
@pytest.mark.parametrize("piece", [16, 1000])
@pytest.mark.parametrize("kind", ["plain", "sharded", "strict"])
def test_sums_are_right_whatever_the_order_and_whatever_comes_late(kind, piece, tmp_path):
    """"strict" are arrays that are never converted to NumPy's by themselves, as those on a GPU."""
    work(3, "gradients", tmp_path, kind, piece)


@needs_mpi
def test_the_last_parameters_go_first_and_a_large_one_alone(monkeypatch):
    buckets = pytest.importorskip("mini_tf.parallel.buckets")
    monkeypatch.setattr(buckets, "BUCKET", 10)
    sizes = {"a": 4, "b": 100, "c": 5, "d": 5, "fixed": 1, "double": 2, "e": 1}
    parameters = {name: Parameter(np.zeros(size, np.float64 if name == "double" else np.float32), trainable=name != "fixed")
                  for name, size in sizes.items()}  # fmt: skip
    found = buckets.buckets_of(parameters)
    assert [bucket.names for bucket in found] == [("e",), ("double",), ("d", "c"), ("b",), ("a",)]
    assert found[2].starts == [0, 5, 10]


class FirstOfTwo:
    """The MPI communicator of the first of two processes, of which the other has no gradients but zeros.

    sent, filled: the arrays that MPI was given to read and to write
    """

    size, rank = 2, 0

    def __init__(self):
        self.sent, self.filled = {}, []

    def Isend(self, array, to, tag):
        assert to == 1
        self.sent[tag] = array
        return self

    def Irecv(self, array, source, tag):
        assert source == 1
        array[...] = 0 if tag % 2 == 0 else self.sent[tag - 1]       # a sum is what this process has sent before, + 0
        self.filled.append(array)
        return self

    def Allreduce(self, *_):
        pass

    def Test(self):
        return True


@needs_mpi
def test_a_cuda_aware_mpi_gets_the_devices_own_arrays(monkeypatch):
    buckets = pytest.importorskip("mini_tf.parallel.buckets")
    monkeypatch.setattr(buckets, "cuda_aware", lambda: True)
    sizes = {"a": (3, 4), "b": (2,), "c": (900, 1000)}
    parameters = {name: Parameter(strict(np.zeros(size, np.float32))) for name, size in sizes.items()}
    gradients = {name: np.random.default_rng(1).standard_normal(size, dtype=np.float32) for name, size in sizes.items()}
    comm = FirstOfTwo()
    sums = buckets.GradientSums(comm, parameters)
    for _ in range(2):
        comm.sent, comm.filled = {}, []
        with sums.on_their_way():
            for name, parameter in parameters.items():
                parameter.grad = None
                parameter.accumulate(strict(gradients[name]))
        assert len(comm.sent) == len(comm.filled) == 2 * 3           # c in two pieces; a and b share one
        assert all(isinstance(array, StrictArray) for array in [*comm.sent.values(), *comm.filled])
        for name, parameter in parameters.items():
            np.testing.assert_array_equal(to_host(parameter.grad), gradients[name])


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_rows_are_shared_out_once(size):
    for B in (1, 2, 7, 64, 65):
        rows = [np.arange(B)[rows_of(rank, size, B)] for rank in range(size)]
        np.testing.assert_array_equal(np.concatenate(rows), np.arange(B))
        assert max(map(len, rows)) - min(map(len, rows)) <= 1


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_draws_of_rows_are_rows_of_draws(generator):
    shapes = [(7, 3), (7,), (7, 2, 5), (7, 0)]
    for first, stop in ((0, 7), (0, 3), (3, 7), (6, 7)):
        whole, part = (np.random.Generator(generator(5)) for _ in range(2))
        whole.integers(5, size=3, dtype=np.uint32)           # leaves half a step over
        part.integers(5, size=3, dtype=np.uint32)
        draws = DrawsOfRows(part, slice(first, stop), 7)
        for shape in shapes:
            np.testing.assert_array_equal(draws.random((stop - first, *shape[1:])), whole.random(shape)[first:stop])
        np.testing.assert_array_equal(part.integers(9, size=5, dtype=np.uint32), whole.integers(9, size=5, dtype=np.uint32))
    with pytest.raises(ValueError, match=r"of shape \(3, 2\) were asked for, expected 1 rows"):
        draws.random((3, 2))


def test_a_cut_batch_keeps_its_padding():
    batch = sentence_batch([[3], [3, 4, 5]], [[6, 7, 8], []])
    part = cut(batch, slice(1, 2))
    assert part.source.shape == (1, 3)
    assert part.target.shape == (1, 5)
    np.testing.assert_array_equal(predictions(batch), [4, 1])
    np.testing.assert_array_equal(predictions(np.zeros((2, 5))), [1, 1])

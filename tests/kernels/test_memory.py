"""Buffers are reused: inside recycled_memory() only, and never while a view of them is alive."""

import gc
import os
import threading

from mini_tf import ops
from mini_tf.kernels import memory, recycled_memory

import numpy as np
import pytest

SHAPE = (300, 301)       # large enough to be recycled


def place(x):
    return x.__array_interface__["data"][0]


def free():
    return sum(map(len, memory._free.values()))


@pytest.fixture
def loop():
    with recycled_memory():
        yield
    assert not memory._free
    assert memory._kept == 0


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_without_glibc_malloc_is_left_as_it_is(monkeypatch, error):
    def no_such_library(name):
        raise error

    memory._keep_freed_memory.cache_clear()
    monkeypatch.setattr(memory.ctypes, "CDLL", no_such_library)
    with recycled_memory():
        assert memory.empty(SHAPE).shape == SHAPE
    memory._keep_freed_memory.cache_clear()


def test_outside_the_block_nothing_is_kept():
    x = memory.empty(SHAPE)
    assert x.base is None
    assert x.shape == SHAPE
    assert x.dtype == np.float32
    del x
    assert free() == 0


def test_a_free_buffer_is_reused(loop):
    x = memory.empty(SHAPE)
    where = place(x)
    assert x.shape == SHAPE
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert x.flags.writeable
    assert x.flags.aligned
    del x
    assert place(memory.empty(SHAPE)) == where
    assert place(memory.empty((301, 300))) == where      # another shape of the same size
    assert place(memory.empty((4 * 300 * 301,), bool)) == where


@pytest.mark.parametrize(
    "hold",
    [lambda x: x, lambda x: x[3:5], lambda x: x.T[1], lambda x: x.reshape(-1)[::7], lambda x: x.view(np.int32),
     lambda x: memoryview(x), lambda x: np.broadcast_to(x, (2, *x.shape)), lambda x: x[0, :0], lambda x: iter(x),
     lambda x: x.flat, lambda x: x.__array_interface__ and x.data, lambda x: np.lib.stride_tricks.as_strided(x, (2, 2))],
)  # fmt: skip
def test_a_buffer_with_a_live_view_is_not_reused(hold, loop):
    x = memory.empty(SHAPE)
    where, held = place(x), hold(x)
    del x
    assert place(memory.empty(SHAPE)) != where
    del held
    gc.collect(1)                                        # some are in reference cycles; all are young
    assert free() == 2


def test_an_array_outlives_the_loop():
    with recycled_memory():
        x = memory.empty(SHAPE)
        x[...] = 7
    y = memory.empty(SHAPE)
    y[...] = 8
    assert (x == 7).all()
    del x
    assert free() == 0


@pytest.mark.parametrize("shape", [SHAPE, (1 << 16,), (33, 65, 129)])
def test_large_arrays_start_with_a_cache_line(loop, shape):
    arrays = [memory.empty(shape) for _ in range(3)]
    assert [x.ctypes.data % 64 for x in arrays] == [0, 0, 0]


def test_small_arrays_are_left_to_malloc(loop):
    memory.empty((3, 4))
    assert free() == 0


def test_sizes_that_are_not_asked_for_again_do_not_pile_up(loop):
    """Free buffers stay below twice the most that was in use at a time."""
    sizes = [int(300 * 1.2**power) for power in range(25)]
    for rows in sizes:
        x = memory.empty((rows, 301))
        y = memory.empty((rows, 300))
    del x, y
    kept = sum(size * len(buffers) for size, buffers in memory._free.items())
    assert kept == memory._kept
    assert 0 < kept <= 2 * 3 * memory._rounded(4 * sizes[-1] * 301)      # while a third is made, two are held


def test_nearly_equal_sizes_share_buffers(loop):
    where = place(memory.empty((300, 300)))
    assert place(memory.empty((310, 300))) == where
    assert memory.empty((310, 300)).nbytes == 4 * 310 * 300
    for size in range(1, 5000):
        assert size <= memory._rounded(size) <= max(1.5 * size, size + 1)


def test_two_sizes_in_turns_are_both_kept(loop):
    places = []
    for _ in range(3):
        x, y = memory.empty((300, 300)), memory.empty((500, 300))
        places.append((place(x), place(y)))
        del x, y
    assert places[1] == places[2]


def test_when_memory_runs_out_free_buffers_are_given_back(loop, monkeypatch):
    memory.empty(SHAPE)
    assert free() == 1
    np_empty, calls = np.empty, []

    def no_memory_at_first(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise MemoryError
        return np_empty(*arguments)

    monkeypatch.setattr(np, "empty", no_memory_at_first)
    assert memory.empty((900, 301)).shape == (900, 301)
    monkeypatch.undo()
    assert len(calls) == 2
    assert set(memory._free) == {memory._rounded(4 * 900 * 301)}        # the other one is gone


def test_loops_may_be_nested():
    with recycled_memory():
        memory.empty(SHAPE)
        with recycled_memory():
            assert free() == 1
        assert free() == 1
    assert free() == 0


def test_threads_get_different_buffers(loop):
    wrong = []

    def work(number):
        for _ in range(300):
            x = memory.empty(SHAPE)
            x[...] = number
            if not (x == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert free() <= 2 * 4                               # the last one is held while the next is made


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_kernels_run_after_a_fork(loop):
    """Worker threads do not survive a fork, nor does the holder of a lock: the child has to make its own."""
    z = np.random.default_rng(0).standard_normal((400, 500), dtype=np.float32)
    y, _ = ops.softmax(z)
    with memory._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(ops.softmax(z)[0], y) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0

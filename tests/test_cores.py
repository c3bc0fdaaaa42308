"""Pieces of work side by side, each on one core."""

import threading
from contextlib import closing

from mini_tf import kernels, ops
from mini_tf.cores import all_at_once, blas_threads, side_by_side
from mini_tf.kernels.threads import one_core
from mini_tf.ops.op import watching

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("two_threads")


def test_results_come_in_order_from_two_threads_that_run_at_the_same_time():
    both = threading.Barrier(2, timeout=600)              # breaks unless two pieces meet here

    def work(piece):
        both.wait()
        return piece, blas_threads()

    assert list(side_by_side(work, range(6))) == [(piece, 1) for piece in range(6)]
    assert blas_threads() == 2


def test_an_exception_arrives_after_the_results_before_it():
    results, found = side_by_side(lambda piece: 6 // (3 - piece), range(9)), []
    with pytest.raises(ZeroDivisionError):
        found.extend(results)
    assert found == [2, 3, 6]
    assert blas_threads() == 2


def test_who_stops_reading_gives_blas_its_threads_back():
    with closing(side_by_side(abs, range(10))) as results:
        assert next(results) == 0
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_kernels_stay_switched_off_in_all_threads():
    with kernels.reference_only():
        assert list(side_by_side(lambda _: kernels.switched_on(), range(4))) == [False] * 4


def test_all_at_once():
    both = threading.Barrier(2, timeout=600)

    def work(piece):
        both.wait()
        return 2 * piece, blas_threads(), one_core.get(), kernels.switched_on()

    with kernels.reference_only():
        assert all_at_once(work, [3, 4]) == [(6, 1, True, False), (8, 1, True, False)]
    assert blas_threads() == 2
    assert not one_core.get()
    ended = []

    def failing(piece):
        if piece:
            raise ValueError("no")
        ended.append(piece)

    for pieces in ([0, 1], [1, 0]):
        with pytest.raises(ValueError, match="no"):
            all_at_once(failing, pieces)
    assert ended == [0, 0]
    assert blas_threads() == 2


@pytest.mark.parametrize("device", ["gpu:0", "cpu"])
def test_one_after_the_other_while_ops_are_watched_and_on_a_gpu(device):
    here, seen = threading.get_ident(), []

    def watcher(op, run, *inputs, **options):
        seen.append(op.name)
        return run(*inputs, **options)

    def work(piece):
        ops.softmax(np.ones((1, 2)))
        return threading.get_ident()

    if device == "cpu":
        with watching(watcher):
            threads = list(side_by_side(work, range(5)))
        assert seen == ["softmax"] * 5
    else:
        threads = list(side_by_side(work, range(5), device))
    assert threads == [here] * 5

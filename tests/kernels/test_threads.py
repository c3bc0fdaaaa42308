"""Dividing rows among threads."""

import subprocess
import sys

from mini_tf.kernels import threads

import numpy as np
import pytest


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 100])
def test_pieces_cover_every_row_once(rows, cores, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: cores)
    for numbers in (rows, 10**6):
        some = threads.pieces(rows, numbers)
        assert [row for first, stop in some for row in range(first, stop)] == list(range(rows))
        assert len(some) == (min(cores, max(rows, 1)) if numbers == 10**6 else 1)


def test_a_thread_with_one_core_has_one_piece(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    before = threads.one_core.set(True)
    assert threads.pieces(100, 10**6) == [(0, 100)]
    threads.one_core.reset(before)
    assert len(threads.pieces(100, 10**6)) == 3


def test_every_piece_runs():
    seen = np.zeros(10, int)

    def work(k, first, stop):
        seen[first:stop] += k + 1

    threads.in_parallel(work, [(0, 3), (3, 6), (6, 10)])
    assert seen.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_an_error_is_raised_after_all_pieces_have_ended(wrong):
    ended = []

    def work(k, first, stop):
        if k == wrong:
            raise ValueError("no")
        ended.append(k)

    with pytest.raises(ValueError, match="no"):
        threads.in_parallel(work, [(0, 1), (1, 2), (2, 3)])
    assert sorted(ended) == [k for k in range(3) if k != wrong]


def test_results_are_reproducible():
    """The number of threads changes only sums over rows, in the last digits; with a fixed number, nothing changes."""
    code = """
import hashlib, numpy as np
from mini_tf import ops
rng = np.random.default_rng(0)
x, dy = rng.standard_normal((2, 999, 301), dtype=np.float32)
gamma = rng.standard_normal((2, 301), dtype=np.float32)
y, backward = ops.layer_norm(x, *gamma)
dx, dgamma, _ = backward(dy)
z, _ = ops.cross_entropy(x, rng.integers(0, 301, 999))
print(*(hashlib.sha256(a.tobytes()).hexdigest() for a in (y, dx, z, dgamma)))
"""
    found = {}
    for cores in ("1", "2", "3", "3"):
        run = subprocess.run([sys.executable, "-c", code], env={"NUMBA_NUM_THREADS": cores}, capture_output=True, text=True)
        found.setdefault(cores, []).append(run.stdout.split())
    assert found["3"][0] == found["3"][1]
    assert len(found["3"][0]) == 4
    assert found["1"][0][:3] == found["2"][0][:3] == found["3"][0][:3]


def test_work_goes_on_while_python_shuts_down():
    """Once the main thread has ended, no task can be handed to a worker: the caller does all pieces itself."""
    code = """
import threading, numpy as np
from mini_tf import ops
def train():
    threading.main_thread().join()
    y, _ = ops.softmax(np.ones((512, 512), np.float32))
    print(float(y.sum()))
ops.softmax(np.ones((512, 512), np.float32))
threading.Thread(target=train).start()
"""
    run = subprocess.run([sys.executable, "-c", code], env={"NUMBA_NUM_THREADS": "3"}, capture_output=True, text=True)
    assert run.stdout == "512.0\n", run.stderr

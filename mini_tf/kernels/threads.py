"""Dividing the rows of a loop among the processor's cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar
from functools import cache

FOR_ONE_THREAD = 1 << 19  # up to this many numbers, one thread finishes before another would wake up

one_core = ContextVar("one_core", default=False)         # True in a thread that leaves the other cores to other threads


def thread_count() -> int:
    """The most threads to use: one for each core, or what NUMBA_NUM_THREADS says."""
    limit = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    return int(limit) if limit.isdecimal() else cores()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pieces(rows: int, numbers: int) -> list[tuple[int, int]]:
    """[(first, stop), …]: the rows in equal pieces, one per thread; one piece if there are too few numbers to share,
    or if this thread has one core.
    """
    parts = max(min(thread_count(), rows), 1) if numbers > FOR_ONE_THREAD and not one_core.get() else 1
    ends = [rows * k // parts for k in range(parts + 1)]
    return list(zip(ends[:-1], ends[1:]))


def in_parallel(work: Callable[[int, int, int], None], some_pieces: list[tuple[int, int]]) -> None:
    """Run work(k, first, stop) for all pieces in parallel: the last one here, the others in worker threads.

    The pieces do not depend on the threads' speed, so the result is the same every time. An error in a piece is raised
    after all have ended.
    """
    if len(some_pieces) == 1:
        work(0, *some_pieces[0])
        return
    *others, last = enumerate(some_pieces)
    waiting = []
    try:
        for k, piece in others:
            try:
                waiting.append(_workers().submit(work, k, *piece))
            except RuntimeError:                         # Python is shutting down and starts no more threads
                work(k, *piece)
        work(last[0], *last[1])
    finally:
        wait(waiting)                                    # after an error here, too: they still write into the arrays
    for future in waiting:
        future.result()


@cache
def _workers():
    return ThreadPoolExecutor(max(thread_count() - 1, 1), thread_name_prefix="mini_tf")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)     # threads do not survive a fork

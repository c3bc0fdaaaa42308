"""A loop's rows, shared out among the processor's cores."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

ALONE = 1 << 15          # numbers that one thread works through sooner than another one could be woken


def count():
    """How many threads there may be: all cores, or what NUMBA_NUM_THREADS says."""
    from numba import config

    return config.NUMBA_NUM_THREADS


def pieces(rows, numbers):
    """[(first, stop), …]: the rows in as many equal pieces as threads are worth having for so many numbers."""
    parts = max(min(count(), rows), 1) if numbers > ALONE else 1
    ends = [rows * k // parts for k in range(parts + 1)]
    return list(zip(ends[:-1], ends[1:]))


def share(work, some_pieces):
    """work(k, first, stop) for each piece, at the same time: the last here, the others in threads that wait for it.

    Which numbers a piece has does not depend on who is quicker, so the result is the same every time.
    """
    *others, last = enumerate(some_pieces)
    waiting = []
    try:
        for k, piece in others:
            try:
                waiting.append(_workers().submit(work, k, *piece))
            except RuntimeError:                         # Python is on its way out, and starts no more threads
                work(k, *piece)
        work(last[0], *last[1])
    finally:
        wait(waiting)                                    # whatever happens here, they still write into the arrays
    for future in waiting:
        future.result()


@cache
def _workers():
    return ThreadPoolExecutor(max(count() - 1, 1), thread_name_prefix="mini_tf")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)     # threads do not survive a fork

"""The machine's cores: products of small matrices gain little from a second core, two pieces of work gain most of it.

BLAS shares out each product, and waits for the slower core. Work that comes in independent pieces, such as sentences to
be translated, is done sooner if each core has pieces of its own.
"""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from mini_tf.kernels.threads import in_parallel, one_core
from mini_tf.ops.op import watched

from threadpoolctl import ThreadpoolController, threadpool_limits

X = TypeVar("X")
Y = TypeVar("Y")

on_one_core = threadpool_limits.wrap(limits=1, user_api="blas")          # a decorator


def blas_threads() -> int:
    """How many threads BLAS uses; the last digits of a result depend on it."""
    return max((library.num_threads for library in _blas().lib_controllers), default=1)


@cache
def _blas():
    """The BLAS libraries of this process. Finding them takes a thousand times as long as asking them something."""
    import scipy.linalg  # noqa: F401, SciPy has one of its own, and it is loaded by this

    return ThreadpoolController().select(user_api="blas")


def all_at_once(work: Callable[[X], Y], pieces: Sequence[X]) -> list[Y]:
    """[work(piece) for each piece]: all at the same time, each in a thread with one core.

    For work of milliseconds: unlike in `side_by_side`, the threads are there already. An error in a piece is raised
    after all have ended.
    """
    results: list[Any] = [None] * len(pieces)
    contexts = [copy_context() for _ in pieces]

    def on_one(k):
        one_core.set(True)
        results[k] = work(pieces[k])

    with _blas().limit(limits=1):
        in_parallel(lambda k, *_: contexts[k].run(on_one, k), [(k, k + 1) for k in range(len(pieces))])
    return results


def side_by_side(work: Callable[[X], Y], pieces: Sequence[X], device: str = "cpu") -> Generator[Y, None, None]:
    """The results of work(piece), in their order; as many pieces at a time as BLAS has threads, each on one core.

    One after the other on another device than "cpu", which is one for all, and while ops are watched or replaced:
    watchers see one call at a time.
    """
    threads = min(blas_threads(), len(pieces))
    if threads < 2 or device != "cpu" or watched():
        yield from map(work, pieces)
        return
    contexts = [copy_context() for _ in pieces]          # kernels may be switched off, in this thread only
    with _blas().limit(limits=1), ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda context, piece: context.run(work, piece), contexts, pieces)

"""Which processes train together, and how they end together."""

import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mini_tf.errors import UserError
from mini_tf.parallel.single_process import SINGLE, Ended, SingleProcess

# Environment variables set by mpiexec and other launchers: this process's rank, and the number of processes
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
HOW_TO_INSTALL = "pip install 'mini-tf[mpi]', which brings an mpiexec as well"

_group = SINGLE                      # of this process


def rank_given() -> int | None:
    """This process's rank, from the environment; None if no launcher has started several."""
    return next((int(os.environ[name]) for name in RANKS if os.environ.get(name, "").isdigit()), None)


def size_given() -> int | None:
    """How many processes mpiexec says it has started; None if it does not say."""
    return next((int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()), None)


def join(sharded: bool | None = None) -> SingleProcess:
    """The processes that train together with this one: a ProcessGroup if mpiexec started several, SINGLE if not.

    sharded: True, for each process to keep the optimizer's memory of its shard only; None: as before
    On all but rank 0, nothing is printed to the console from then on. Without mpiexec, MPI is not even imported.
    Raises UserError if there were several processes, but they cannot find each other.
    """
    global _group
    if _group is SINGLE and rank_given() is not None and size_given() != 1:
        MPI = _mpi()
        if MPI.COMM_WORLD.size > 1:
            from mini_tf.parallel.process_group import ProcessGroup  # it imports MPI

            _group = ProcessGroup(MPI.COMM_WORLD)
            sys.excepthook = _abort
            if not _group.first:
                from mini_tf.progress import console  # it imports rich

                console.quiet = True
    if _group is not SINGLE and sharded is not None:
        _group.sharded = sharded
    return _group


def _abort(kind, error, where):
    """An error that nothing has caught, outside `ending_together`: without this, the others would wait for ever."""
    _print(f"process {_group.rank}: {''.join(traceback.format_exception(kind, error, where)).strip()}")
    _group.comm.Abort(1)


def _mpi():
    """The module mpi4py.MPI. Raises UserError if it is not there, or is of another MPI than mpiexec."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:         # RuntimeError: mpi4py is there, but finds no MPI
        raise UserError(f"mpiexec started {size_given() or 'several'} processes, which cannot find each other: "
                        f"mpi4py cannot be loaded ({error}). Try {HOW_TO_INSTALL}") from None
    expected = size_given()
    if expected not in (None, MPI.COMM_WORLD.size):
        raise UserError(f"mpiexec started {expected} processes, but each of them sees {MPI.COMM_WORLD.size}: mpiexec "
                        f"and mpi4py are of different MPIs. mpi4py uses {mpi_version()}; take its mpiexec") from None
    return MPI


def mpi_version() -> str:
    """Which MPI mpi4py uses, in a few words"""
    from mpi4py import MPI  # an optional package

    words = MPI.Get_library_version().replace("\x00", "").split("\n")[0].split(",")[0]
    return " ".join(words.replace("Version:", "").split())


def mpi_here() -> tuple[str, str]:
    """(version of mpi4py or "missing", which MPI it uses or how to get one), for `mini-tf doctor`"""
    if find_spec("mpi4py") is None:
        return "missing", f"several processes can train together with it: {HOW_TO_INSTALL}"
    import mpi4py  # an optional package

    mpi4py.rc.initialize = rank_given() is not None      # only to be asked, MPI need not be started
    try:
        return mpi4py.__version__, f"{mpi_version()}; mpiexec: {shutil.which('mpiexec') or 'not found'}"
    except (ImportError, RuntimeError) as error:
        return mpi4py.__version__, f"finds no MPI ({error}); {HOW_TO_INSTALL}"


@contextmanager
def ending_together() -> Iterator[None]:
    """Inside the block, whatever ends one process ends all of them, with one message and one exit code.

    A failure is printed once: by the process that has failed, or by rank 0. If the others are in the middle
    of a step, which nothing but their end can interrupt, MPI aborts them.
    """
    try:
        yield
        failure = None
    except BaseException as error:
        if _group is SINGLE:
            raise
        failure = error
    if _group is not SINGLE:
        _leave(failure)


def _leave(failure):
    found = failure.failed if isinstance(failure, Ended) else None
    own = None if isinstance(failure, Ended) else _outcome(failure)
    if found is None:
        found = _group.leave(own)
    if found is None:
        code, text = own
        _print(f"process {_group.rank}: {text or f'ended with exit code {code}, while the others went on'}")
        _group.comm.Abort(code)
    texts = {text: rank for rank, _, text in reversed(found) if text}
    if found and found[0][0] == _group.rank:
        alike = len(texts) == 1 and len(found) == _group.size
        _print("\n".join(text if alike else f"process {rank}: {text}" for text, rank in reversed(texts.items())))
    sys.exit(max((code for _, code, _ in found), default=0))


def _outcome(failure):
    """(exit code, text) of what ended a process; None if it is done, and the others do not wait for it in a training"""
    if failure is None or (isinstance(failure, SystemExit) and not failure.code):
        return (1, "") if _group.preparing or _group.busy else None
    if isinstance(failure, SystemExit):
        code = failure.code if isinstance(failure.code, int) else int(failure.code is not None)
        return (code, failure.code if isinstance(failure.code, str) else "") if code else None
    if isinstance(failure, KeyboardInterrupt):
        return 130, ""
    if isinstance(failure, UserError):
        return 2, f"error: {failure}"
    return 1, "".join(traceback.format_exception(failure)).strip()


def _print(text):
    sys.stdout.flush()
    if text:
        print(text, file=sys.__stderr__, flush=True)

"""mini_tf: a transformer engine in NumPy and CuPy with every gradient written by hand.

Start reading at `mini_tf/ops/linear.py`; CONTRIBUTING.md has a map of the rest.
"""

import os

# Idle workers of OpenBLAS, NumPy's library for matrix products, busy-wait for 2²⁶ clock cycles, and keep the core from
# other threads meanwhile. Here they sleep after 2¹⁸ cycles, a tenth of a millisecond: long enough for one product to
# follow another. OpenBLAS reads the setting when it is loaded, so this comes before NumPy's import. A value that the
# user has set is left alone. mini_tf's own threads (kernels/threads.py) never busy-wait.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")

from importlib import import_module


def _share_cores():
    """Of several processes that mpiexec started on this machine, each gets as many threads as there are cores for it.

    This, too, is read when the libraries are loaded, and what the user has set is left alone.
    """
    processes = next((os.environ[name] for name in ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
                      if os.environ.get(name, "").isdigit()), None)  # fmt: skip
    if processes is None:
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for library in ("OPENBLAS", "NUMBA", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", str(max(1, cores // int(processes))))


_share_cores()

__version__ = "0.1.0"

__all__ = [
    "backend", "bleu", "data", "decoding", "experiment", "explore", "gradcheck", "kernels", "layers", "metrics",
    "models", "ops", "parallel", "text", "trace", "training",
]  # fmt: skip

TYPE_CHECKING = False                # as typing has it, whose import would take longer than all the rest
if TYPE_CHECKING:                    # for editors, which do not see what __getattr__ loads
    from mini_tf import (  # isort: skip
        backend, bleu, data, decoding, experiment, explore, gradcheck, kernels, layers, metrics, models, ops, parallel,
        text, trace, training,
    )  # fmt: skip


def __getattr__(name):
    """Load a submodule when it is first used, so that `import mini_tf` costs next to nothing."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__():
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

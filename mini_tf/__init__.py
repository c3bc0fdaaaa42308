"""mini_tf: a transformer engine in NumPy and CuPy with every gradient written by hand.

Start reading at `mini_tf/ops/linear.py`; the README has the way through the rest.
"""

import os

# Idle workers of OpenBLAS and of Numba's OpenMP pool busy-wait by default and take the cores from each
# other: a training step on two cores runs up to 1.7 times as long. Both libraries read these settings
# when they are loaded, so they are made here, before NumPy is. What the user has set is left alone.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from importlib import import_module

__version__ = "0.1.0"

__all__ = ["backend", "decoding", "gradcheck", "kernels", "layers", "metrics", "models", "ops", "text", "trace", "training"]


def __getattr__(name):
    """Submodules load when they are first asked for, so that `import mini_tf` costs next to nothing."""
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")

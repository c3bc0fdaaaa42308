"""Kernels: twins of the ops that a training step spends its time in, faster, with the same contract.

    y, backward = kernels.layer_norm(x, gamma, beta)     # as ops.layer_norm: same formula, same errors

The formula stands in `mini_tf/ops`; a twin does the same in fewer passes over memory, on all cores (`cpu.py`, for
NumPy's float32 arrays). Layers and models call the functions of this module: each is its twin where there is one for
the arrays, and the op itself otherwise: in float64, in which gradients are checked, and on a GPU. So what you read
in `mini_tf/ops` is what is checked, and what runs is held against it by the tests.

A twin keeps arrays where the op keeps what it has computed from them: leave inputs and outputs as they are until the
backward has run. If nobody but the backward holds a large input any more, its gradient takes its place; such a backward
runs once, and raises MemoryFreed when it is called again.

Whoever changes a formula and wants to train with it switches the twins off: `with reference_only():` in Python, or
MINI_TF_KERNELS=off in the environment. Tracing, gradcheck and planted bugs do so by themselves.
"""

import os
from contextlib import contextmanager

from mini_tf import ops
from mini_tf.kernels.memory import MemoryFreed, free_memory

from numpy import ndarray

__all__ = [
    "MemoryFreed", "attention", "cross_entropy", "dropout", "embedding", "free_memory", "gelu", "layer_norm", "linear",
    "masked_softmax", "every_loop", "reference_only", "relu", "residual_relu", "softmax", "switched_on", "take",
]  # fmt: skip

_off = 1 if os.environ.get("MINI_TF_KERNELS", "").lower() in ("off", "0", "no", "false") else 0


@contextmanager
def reference_only():
    """For the time of the block, the plain formulas of `mini_tf/ops` run, in all threads."""
    global _off
    _off += 1
    try:
        yield
    finally:
        _off -= 1


def switched_on():
    """Whether the twins are in use."""
    return not _off


def every_loop():
    """The loops that Numba compiles. loop.compile() makes one ready: half a second's work, once on a machine."""
    from mini_tf.kernels import compiling, cpu  # noqa: F401, its import is what makes the loops

    return list(compiling.LOOPS)


def take(*arrays):
    """Whether the CPU's kernels are switched on and made for these: NumPy's arrays, floating ones in float32.

    Arguments that are not arrays (None, numbers) are passed over.
    """
    return not _off and all(map(_fits, arrays))


def _fits(x):
    if type(x) is not ndarray:
        return not hasattr(x, "dtype")
    return x.dtype.char in "f?bhilqBHILQ" and x.dtype.isnative and x.flags.aligned


def _twin(name):
    """The function that is cpu.NAME for arrays that it takes, and ops.NAME for others."""

    def choose(*inputs, **options):
        if not take(*inputs, *options.values()):
            return getattr(ops, name)(*inputs, **options)
        from mini_tf.kernels import cpu  # here, because it loads Numba

        return getattr(cpu, name)(*inputs, **options)

    choose.__name__ = choose.__qualname__ = name
    choose.__doc__ = f"ops.{name}, or its twin in kernels/cpu.py where that takes the arrays."
    return choose


linear, relu, residual_relu, gelu = map(_twin, ("linear", "relu", "residual_relu", "gelu"))
softmax, masked_softmax, attention = map(_twin, ("softmax", "masked_softmax", "attention"))
cross_entropy, layer_norm, embedding, dropout = map(_twin, ("cross_entropy", "layer_norm", "embedding", "dropout"))

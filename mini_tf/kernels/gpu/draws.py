"""Dropout's masks, drawn on a GPU: the same bits that NumPy's generator draws on the host, without sending them.

NumPy's PCG64 is a linear congruential generator, s ← a·s + c mod 2¹²⁸. Its state after k steps is aᵏ·s + c·(1 + a + … +
aᵏ⁻¹), which takes log₂ k steps to compute: so each thread goes straight to its own place in the sequence.
Source: O'Neill 2014, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
Generation; Brown 1994, Random Number Generation with Arbitrary Strides
"""

from mini_tf import kernels
from mini_tf.backend import array_module, on_current_device
from mini_tf.kernels import binding
from mini_tf.kernels.gpu.launching import empty, launch
from mini_tf.types import Array

import numpy as np

THREADS, DRAWS = 256, 16     # in a block; that each makes, as in draws.cu
A = 0x2360ED051FC65DA44385DF649FCCF645           # a of PCG64


def keep(rng: np.random.Generator, x: Array, rate: float) -> Array | None:
    """rng.random(x.shape) >= rate, drawn where x is; None if that cannot be done there

    Afterwards the generator is where it would be if it had drawn the numbers.
    """
    if isinstance(x, np.ndarray) or kernels.formulas_only() or not on_current_device(x):
        return None
    if array_module(x).__name__ not in binding.TWINS:
        return None
    if type(rng) is not np.random.Generator or type(rng.bit_generator) is not np.random.PCG64:
        return None
    state = rng.bit_generator.state
    if state["has_uint32"] or not x.size:                # half of a step, which advance would forget
        return None
    on, wholes = empty(x.shape, bool), (state["state"]["state"], state["state"]["inc"], A)
    halves = [_signed(half) for whole in wholes for half in divmod(whole, 1 << 64)]
    launch("keep", -(-x.size // (THREADS * DRAWS)), THREADS, *halves, float(rate), x.size, on)
    rng.bit_generator.advance(x.size)
    return on


def _signed(bits):
    """64 bits as a long long, which kernels take"""
    return bits - (bits >> 63 << 64)

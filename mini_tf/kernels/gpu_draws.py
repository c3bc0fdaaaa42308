"""Dropout's masks, drawn on a GPU: the same bits that NumPy's generator draws on the host, without sending them.

NumPy's PCG64 is a linear congruential generator, s ← a·s + c mod 2¹²⁸. Its state after k steps is aᵏ·s + c·(1 + a + … +
aᵏ⁻¹), which takes log₂ k steps to compute: so each thread goes straight to its own place in the sequence.
Source: O'Neill 2014, PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
Generation; Brown 1994, Random Number Generation with Arbitrary Strides
"""

from mini_tf import kernels
from mini_tf.backend import array_module
from mini_tf.kernels import gpu_updates
from mini_tf.types import Array

import numpy as np

THREADS = 256            # in a block
DRAWS = 16               # that each thread makes, one after the other
A = 0x2360ED051FC65DA44385DF649FCCF645           # a of PCG64

SOURCE = f"""
struct Whole {{ unsigned long long high, low; }};        // of 128 bits

__device__ Whole product(Whole x, Whole y) {{
    Whole z;
    z.low = x.low * y.low;
    z.high = __umul64hi(x.low, y.low) + x.high * y.low + x.low * y.high;
    return z;
}}

__device__ Whole sum(Whole x, Whole y) {{
    Whole z;
    z.low = x.low + y.low;
    z.high = x.high + y.high + (z.low < x.low);
    return z;
}}

// on[i] = (draw i of the generator, a number in [0, 1)) ≥ rate
extern "C" __global__ void keep(unsigned long long state_high, unsigned long long state_low,
                                unsigned long long c_high, unsigned long long c_low,
                                unsigned long long a_high, unsigned long long a_low,
                                double rate, long long entries, bool *on) {{
    const long long first = {DRAWS} * (blockIdx.x * (long long){THREADS} + threadIdx.x);
    Whole s = {{state_high, state_low}};
    const Whole a = {{a_high, a_low}}, c = {{c_high, c_low}};
    Whole factor = a, added = c;                         // of 1, 2, 4, … steps at once
    for (long long steps = first; steps > 0; steps /= 2) {{
        if (steps % 2) s = sum(product(factor, s), added);
        added = sum(product(factor, added), added);
        factor = product(factor, factor);
    }}
    for (long long i = first; i < first + {DRAWS} && i < entries; i++) {{
        s = sum(product(a, s), c);
        const unsigned long long mixed = s.high ^ s.low;
        const int turn = s.high >> 58;
        const unsigned long long bits = mixed >> turn | mixed << (-turn & 63);
        on[i] = (bits >> 11) * (1.0 / 9007199254740992.0) >= rate;       // the upper 53 bits, times 2⁻⁵³
    }}
}}
"""


def keep(rng: np.random.Generator, x: Array, rate: float) -> Array | None:
    """rng.random(x.shape) >= rate, drawn where x is; None if that cannot be done there

    Afterwards the generator is where it would be if it had drawn the numbers.
    """
    if array_module(x).__name__ not in gpu_updates.LIBRARIES or kernels.formulas_only():
        return None
    if type(rng) is not np.random.Generator or type(rng.bit_generator) is not np.random.PCG64:
        return None
    state = rng.bit_generator.state
    if state["has_uint32"] or not x.size:                # half of a step, which advance would forget
        return None
    on = array_module(x).empty(x.shape, dtype=bool)
    wholes = state["state"]["state"], state["state"]["inc"], A
    numbers = [np.uint64(part) for whole in wholes for part in divmod(whole, 1 << 64)]
    blocks = -(-x.size // (THREADS * DRAWS))
    gpu_updates.launch("keep", blocks, THREADS, *numbers, np.float64(rate), np.int64(x.size), on)
    rng.bit_generator.advance(x.size)
    return on

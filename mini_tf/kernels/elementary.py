"""Elementary functions, for the loops of the CPU kernels: written so that loops over them are vectorized.

Two are written differently from what one expects, because their usual forms would prevent it: exp and maximum.
"""

import math

from mini_tf.kernels.compiling import FAST

import numpy as np
from numba import njit

f4, i4 = np.float32, np.int32
LOG2_E, SQRT_HALF, ROOT_2_PI = f4(math.log2(math.e)), f4(math.sqrt(0.5)), f4(math.sqrt(2 * math.pi))
LN_2_HIGH, LN_2_LOW = f4(0.693359375), f4(math.log(2) - 0.693359375)     # the first has few bits: k times it is exact
LOWEST = i4(-(2**31))
ZERO, HALF, ONE, TWO, THREE = f4(0), f4(0.5), f4(1), f4(2), f4(3)
GELU_SLOPE, GELU_CUBIC = f4(math.sqrt(2 / math.pi)), f4(0.044715)
MASKED = f4(-np.inf)         # the score of a masked word
# eʳ ≈ 1 + r + r²·(E0·r⁵ + E1·r⁴ + … + E5) for |r| ≤ ln 2/2, to 8e-8; Moshier's Cephes library
E0, E1, E2 = f4(1.9875691500e-4), f4(1.3981999507e-3), f4(8.3334519073e-3)
E3, E4, E5 = f4(4.1665795894e-2), f4(1.6666665459e-1), f4(5.0000001201e-1)
# erf ≈ 1 − (A1·s + … + A5·s⁵)·exp(−x²), s = 1/(1 + P·x), x ≥ 0, to 1.5e-7; Abramowitz, Stegun 1964, 7.1.26
P = f4(0.3275911)
A1, A2, A3, A4, A5 = f4(0.254829592), f4(-0.284496736), f4(1.421413741), f4(-1.453152027), f4(1.061405429)


@njit(inline="always", fastmath=FAST)
def exp(x):
    """eˣ = 2ᵏ·eʳ with k the integer nearest to x/ln 2. Below x = −87 the result is 0, above 88 it is e⁸⁸.

    math.exp would be a function call for each number. 2ᵏ is put together from the bits of a float32: its exponent,
    k + 127, stands above the lowest 23 bits.
    """
    limited = min(max(x, f4(-87)), f4(88))
    k = np.floor(limited * LOG2_E + HALF)
    r = limited - k * LN_2_HIGH - k * LN_2_LOW
    series = ((((E0 * r + E1) * r + E2) * r + E3) * r + E4) * r + E5
    power = i4((i4(k) + i4(127)) << i4(23)).view(np.float32)
    return ZERO if x < f4(-87) else (series * r * r + r + ONE) * power


@njit(inline="always", fastmath=FAST)
def tanh(x):
    return ONE - TWO / (exp(TWO * x) + ONE)


@njit(inline="always", fastmath=FAST)
def sigmoid(x):
    return ONE - ONE / (exp(x) + ONE)                    # exactly 0 for a very negative x, as by the formula


@njit(inline="always", fastmath=FAST)
def normal_distribution(x):
    """Φ(x) = ½·(1 + erf(x/√2)), and its derivative φ(x) = exp(−x²/2)/√(2π)"""
    bell = exp(-HALF * x * x)
    s = ONE / (ONE + P * abs(x) * SQRT_HALF)
    upper = HALF * ((((A5 * s + A4) * s + A3) * s + A2) * s + A1) * s * bell
    return upper if x < ZERO else ONE - upper, bell / ROOT_2_PI


@njit(inline="always", fastmath=FAST)
def distribution_by_tanh(x):
    """Φ(x) ≈ ½·(1 + tanh u), u = √(2/π)·(x + 0.044715·x³), and its derivative; see ops.gelu"""
    tanh_u = tanh(GELU_SLOPE * (x + GELU_CUBIC * x * x * x))
    return HALF * (ONE + tanh_u), HALF * (ONE - tanh_u * tanh_u) * GELU_SLOPE * (ONE + THREE * GELU_CUBIC * x * x)


@njit(inline="always")
def in_order(bits):
    """The bits of a float32 as an integer that is larger where the float is larger, and back again.

    As integers, the bits of positive floats are in order already; those of negative ones, apart from the sign, are in
    reverse order.
    """
    return i4(bits ^ ((bits >> i4(31)) & i4(0x7FFFFFFF)))


@njit(inline="always", fastmath=FAST)
def maximum(row):
    """max_j row_j, compared as integers: NaN, which has no order, keeps a maximum of floats from being vectorized."""
    bits = row.view(np.int32)
    largest = LOWEST
    for j in range(bits.size):
        largest = max(largest, in_order(bits[j]))
    return in_order(largest).view(np.float32)

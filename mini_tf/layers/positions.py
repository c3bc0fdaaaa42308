"""Positional encoding: tell the transformer where a word stands."""

from mini_tf import ops
from mini_tf.backend import constant_to_device_of, to_device_of
from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.layers.linear import normal
from mini_tf.ops.shapes import sum_to
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


def positional_encoding(T: int, n: int, frequencies: ArrayLike) -> Array:
    """P (T, n):  P_{t,2i−1} = cos(2π·α_i·t/T),   P_{t,2i} = sin(2π·α_i·t/T),   columns from 1, t from 0,   i = 1 … n/2

    frequencies: the n/2 numbers α_i, in turns per history of T words.
    Raises UserError for an odd n, and unless there are n/2 finite frequencies.
    Source: ESE-2000 Lab 6, Positional Encoding (Task 6.10), a word per row
    """
    if n % 2:
        raise UserError(f"n is {n}, expected an even n: positions come in pairs of cosine and sine")
    try:
        alpha = np.asarray(frequencies, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        alpha = np.full(0, np.nan)
    if alpha.shape != (n // 2,) or not np.isfinite(alpha).all():
        raise UserError(f"positions are {shown(frequencies)}, expected {', '.join(FREQUENCIES)}, or n/2 = {n // 2} "
                        "finite numbers, one for each pair of cosine and sine")  # fmt: skip
    angle = 2 * np.pi * alpha * np.arange(T)[:, None] / T          # (T, n/2)
    P = np.empty((T, n))
    P[:, 0::2] = np.cos(angle)
    P[:, 1::2] = np.sin(angle)
    return P


def geometric_frequencies(T: int, n: int) -> Array:
    """α_i = T/(2π)·10000^(−2i/n), i = 0 … n/2 − 1: from one radian per word down to one turn in 63 thousand words.

    The lab leaves α_i open ("??"). With these its encoding is, up to the order of the columns, that of Vaswani et al.
    2017 and of CMU 10-417 HW3a, and it does not depend on T.
    """
    return T / (2 * np.pi) * 10000.0 ** (-2 * np.arange(n // 2) / n)


def fourier_frequencies(T: int, n: int) -> Array:
    """α_i = i·(T/2)/(n/2), i = 1 … n/2: evenly spaced, up to the highest that T samples can represent.

    With n = T these are α_i = i, the Fourier basis that the lab hints at, but for its constant: i starts at 1. The last
    sine is sin(π·t) = 0 for any n, a column of zeros; so with n = T the encoding has rank T − 1. With n < T the
    frequencies are multiples of T/n, and the encoding repeats after n words.
    """
    return np.arange(1, n // 2 + 1) * (T / n)


FREQUENCIES = {"geometric": geometric_frequencies, "fourier": fourier_frequencies}


def distance_bias(T: int, H: int, queries: int | None = None) -> Array:
    """bias_hij = −s_h·(i − j),   for query i and key  j ≤ i,   s_h = 2^(−8·h/H), h = 1 … H:  (H, T, T)

    Added to the scores, it makes a head attend less to words farther back. Each head has its own rate: one sees a few
    words, another the whole history. No other encoding of positions is needed.
    queries: how many of the T words are queries, the last ones; then the bias is (H, queries, T)
    Source: Press, Smith, Lewis 2021, arXiv:2108.12409 (ALiBi)
    """
    s = 2.0 ** (-8 * np.arange(1, H + 1) / H)            # (H,)
    first = 0 if queries is None else T - queries
    distance = np.arange(first, T)[:, None] - np.arange(T)           # (queries, T)
    return -s[:, None, None] * np.maximum(distance, 0)


class PositionalEncoding(Layer):
    """y = x + scale·P,   dx = dy;   x (B, T, n) → y (B, T, n)

    frequencies: "geometric", "fourier", or the n/2 numbers themselves. P's entries are of size 1; `scale` brings them
    to the size of the word vectors, so that neither drowns the other.
    """

    def __init__(self, T: int, n: int, frequencies: str | ArrayLike = "geometric", scale: float = 1.0):
        if isinstance(frequencies, str):
            if frequencies not in FREQUENCIES:
                raise UserError(f"positions: {frequencies!r} is unknown, expected one of {', '.join(FREQUENCIES)}")
            frequencies = FREQUENCIES[frequencies](T, n)
        self.P = scale * positional_encoding(T, n, frequencies)

    def __call__(self, x: Array, first: int = 0) -> tuple[Array, Backward]:
        """first: the position of the first word of x."""
        positions = slice(first, first + x.shape[1])
        on_host = isinstance(x, np.ndarray)
        P = self.P[positions].astype(x.dtype) if on_host else constant_to_device_of(self.P, x, x.dtype)[positions]
        return x + P, lambda dy: dy


class LearnedPositions(Layer):
    """y = x + P;  x (B, T′, n), P (T, n) learned → y (B, T′, n),   dx = dy,   dP = Σ dy over the texts of the batch

    P_t is the vector of position t, as E_i is that of word i: an embedding whose ids are 0, 1, 2, … P starts random,
    with entries of size `scale`. A position beyond all training texts keeps its random vector.
    Source: multi-head attention encoders, a course notebook, `MyLanguageModel`; Devlin et al. 2019, arXiv:1810.04805
    """

    def __init__(self, T: int, n: int, rng: np.random.Generator, scale: float, dtype: DTypeLike = np.float32):
        self.P = Parameter(normal(rng, (T, n), scale, dtype))

    def __call__(self, x: Array, first: int = 0) -> tuple[Array, Backward]:
        """first: the position of the first word of x."""
        positions = to_device_of(np.arange(first, first + x.shape[1]), x)
        p, embedding_backward = ops.embedding(self.P.data, positions)            # (T′, n)

        def backward(dy: Array) -> Array:
            dP, _ = embedding_backward(sum_to(dy, p.shape))
            self.P.accumulate(dP)
            return dy

        return x + p, backward

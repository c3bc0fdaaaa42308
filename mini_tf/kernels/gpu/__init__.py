"""Twins for CuPy's float32 arrays: the kernels of the .cu files here, and cuBLAS's products.

Formula, signature and contract are those of the op of the same name, as for the twins in `cpu.py`. What takes time on a
GPU in a small model is not arithmetic but launching kernels, some microseconds each, whatever they compute. A formula
launches one for each operation; a twin has one or two.

No twin waits for the GPU, so none can look at what is in an array. Where a formula raises ValueError for an id that is
no word, or for a loss of no word at all, the twin gives NaN; the formula says which it was. Sums are added up in the
same order each time, so that the same call gives the same bits.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache
from types import NotImplementedType

from mini_tf.backend import array_module
from mini_tf.kernels.gpu.launching import contiguous, empty, launch, product
from mini_tf.kernels.gpu.updates import adam, sum_of_squares  # noqa: F401, twins of ops/updates.py
from mini_tf.ops.shapes import as_matrix, sum_to, transpose
from mini_tf.types import Array, Backward

import numpy as np

EPS = 1e-5                   # of the norms, as in the ops
THREADS = 256                # of a block, where a row does not decide it
BLOCKS = 2048                # at most, for functions of each entry: more than run at a time
COLUMNS = 8                  # of which a block adds up the rows, as in blocks.cu
WARPS = 8                    # of a block in attention.cu
NO_STRIDES = 0, 0, 0, 0
NUMBERS = int, float, np.generic
HOST = np.ndarray


def relu(x: Array) -> tuple[Array, Backward]:
    y = empty(x.shape)
    on_entries("relu", y.size, contiguous(x), y.size, y)

    def backward(dy):                                    # keeps y, which is above 0 where x is
        dx = empty(y.shape)
        on_entries("relu_backward", y.size, y, as_gradient(dy, y.shape), y.size, dx)
        return dx

    return y, backward


def residual_relu(x: Array, y: Array) -> tuple[Array, Backward]:
    z, on = empty(x.shape), empty(x.shape, bool)
    on_entries("residual_relu", z.size, contiguous(x), contiguous(y), z.size, z, on)

    def backward(dz):                                    # keeps on
        dz = as_gradient(dz, on.shape)
        return dz, scaled_where(on, dz, 1.0)

    return z, backward


def dropout(x: Array, keep: Array, rate: float) -> tuple[Array, Backward] | NotImplementedType:
    if not 0 <= rate < 1:
        return NotImplemented
    keep, raised = contiguous(keep, bool), 1 / (1 - float(rate))

    def backward(dy):                                    # keeps keep
        return scaled_where(keep, as_gradient(dy, keep.shape), raised), None

    return scaled_where(keep, contiguous(x), raised), backward


def scaled_where(on: Array, x: Array, factor: float) -> Array:
    """factor·x where on, else 0·x"""
    y = empty(x.shape)
    on_entries("scaled_where", y.size, x, on, factor, y.size, y)
    return y


def gelu(x: Array, approximate: bool = False) -> tuple[Array, Backward]:
    x, y, by_tanh = contiguous(x), empty(x.shape), int(approximate)
    on_entries("gelu", y.size, x, by_tanh, y.size, y)

    def backward(dy):                                    # keeps x
        dx = empty(x.shape)
        on_entries("gelu_backward", x.size, x, as_gradient(dy, x.shape), by_tanh, x.size, dx)
        return dx

    return y, backward


def silu(x: Array) -> tuple[Array, Backward]:
    x, y = contiguous(x), empty(x.shape)
    on_entries("silu", y.size, x, y.size, y)

    def backward(dy):                                    # keeps x
        dx = empty(x.shape)
        on_entries("silu_backward", x.size, x, as_gradient(dy, x.shape), x.size, dx)
        return dx

    return y, backward


def swiglu(gate: Array, x: Array) -> tuple[Array, Backward]:
    gate, x, y = contiguous(gate), contiguous(x), empty(x.shape)
    on_entries("swiglu", y.size, gate, x, y.size, y)

    def backward(dy):                                    # keeps gate, x
        dgate, dx = empty(x.shape), empty(x.shape)
        on_entries("swiglu_backward", x.size, gate, x, as_gradient(dy, x.shape), x.size, dgate, dx)
        return dgate, dx

    return y, backward


def rotary(
    x: Array, first: int = 0, base: float = 10000.0, halves: bool = False
) -> tuple[Array, Backward] | NotImplementedType:
    shape, (B, H, T, m) = x.shape, four(x.shape)
    if len(shape) > 4 or m % 2 or not isinstance(first, int) or not base > 0:
        return NotImplemented
    options = int(first), float(base), int(halves), H, T, m, B * T * m // 2

    def turned(x, sign):
        y = laid_out_as(x, shape)
        on_entries("rotary", options[-1], *with_strides(x), sign, *options, *with_strides(y))
        return y

    def backward(dy):                                    # keeps the shape of x
        return turned(as_gradient(dy, shape, vectors), -1.0)

    return turned(vectors(x), 1.0), backward


def linear(x: Array, W: Array, b: Array | None = None) -> tuple[Array, Backward]:
    shape_x, shape_y = x.shape, (*x.shape[:-1], W.shape[1])
    rows_x = as_matrix(contiguous(x))
    turned = not W.flags.c_contiguous                    # such as the table of word vectors, transposed
    W = contiguous(transpose(W)) if turned else W        # it gets its gradient in its own layout
    y = product(rows_x, W, B_transposed=turned)
    if b is not None:
        on_entries("add_row", y.size, contiguous(b), y.shape[1], y.size, y)

    def backward(dy):                                    # keeps x, W and b
        rows_dy = as_matrix(as_gradient(dy, shape_y))
        dx = product(rows_dy, W, B_transposed=not turned)
        dW = product(rows_dy, rows_x, True) if turned else product(rows_x, rows_dy, True)
        return dx.reshape(shape_x), transpose(dW) if turned else dW, None if b is None else column_sums(rows_dy)

    return y.reshape(shape_y), backward


def column_sums(y: Array) -> Array:
    """Σ over the rows of a matrix"""
    rows, n = y.shape
    sums = empty((n,))
    launch("column_sums", -(-n // COLUMNS), 512, y, rows, n, sums)
    return sums


def softmax(z: Array) -> tuple[Array, Backward]:
    y, n = empty(z.shape), z.shape[-1]
    launch("softmax", rows_in(y), threads_for(n), contiguous(z), n, y)
    return y, _softmax_backward(y)


def masked_softmax(z: Array, mask: Array) -> tuple[Array, Backward] | NotImplementedType:
    strides = strides_in(mask, z.shape)
    if strides is None:
        return NotImplemented
    y, (_, H, Q, n) = empty(z.shape), four(z.shape)
    launch("masked_softmax", rows_in(y), threads_for(n), contiguous(z), mask, *strides, H, Q, n, y)
    backward = _softmax_backward(y)
    return y, lambda dy: (backward(dy), None)


def _softmax_backward(y):
    def backward(dy):                                    # keeps y
        dz, n = empty(y.shape), y.shape[-1]
        launch("softmax_backward", rows_in(y), threads_for(n), y, as_gradient(dy, y.shape), n, dz)
        return dz

    return backward


def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, scale: float = 1.0, bias: Array | None = None
) -> tuple[Array, Backward] | NotImplementedType:
    shape = *query.shape[:-1], key.shape[-2]             # (…, Tq, Tk)
    mask_strides = NO_STRIDES if mask is None else strides_in(mask, shape)
    bias_strides = NO_STRIDES if bias is None else strides_in(bias, shape)
    if len(shape) > 4 or not isinstance(scale, (int, float)) or mask_strides is None or bias_strides is None:
        return NotImplemented
    (B, H, Tq, m), (Tk, d) = four(query.shape), value.shape[-2:]
    sizes = float(scale), H, Tq, Tk, m, d
    of_queries, of_keys = B * H * -(-Tq // WARPS), B * H * -(-Tk // WARPS)       # blocks
    query, key, value = (vectors(x) for x in (query, key, value))
    shape_Y = *query.shape[:-1], d
    Y, A = laid_out_as(query, shape_Y), empty(shape)
    launch(
        "attention", of_queries, 32 * WARPS, *with_strides(query), *with_strides(key), *with_strides(value),
        A if mask is None else mask, int(mask is not None), *mask_strides,
        A if bias is None else bias, int(bias is not None), *bias_strides, *sizes, A, *with_strides(Y),
    )  # fmt: skip

    def backward(dY):                                    # keeps query, key, value, A and the shape of bias
        dY = as_gradient(dY, shape_Y, vectors)
        dquery, dkey, dvalue = (laid_out_as(x, x.shape) for x in (query, key, value))
        dscores = empty(shape)
        launch(
            "attention_backward_of_queries", of_queries, 32 * WARPS, *with_strides(dY), *with_strides(key),
            *with_strides(value), *sizes, A, dscores, *with_strides(dquery),
        )  # fmt: skip
        launch(
            "attention_backward_of_keys", of_keys, 32 * WARPS, *with_strides(dY), *with_strides(query), *sizes,
            A, dscores, *with_strides(dkey), *with_strides(dvalue),
        )  # fmt: skip
        return dquery, dkey, dvalue, None, None if bias is None else sum_to(dscores, bias.shape)

    return Y, backward


def cross_entropy(
    logits: Array, targets: Array, ignore: int | None = None, smoothing: float = 0.0
) -> tuple[Array, Backward] | NotImplementedType:
    shape, c, N = logits.shape, logits.shape[-1], targets.size
    if N == 0 or c == 0 or not 0 <= smoothing < 1:
        return NotImplemented
    z, of_rows = contiguous(logits), (contiguous(targets, np.int64), *optional(ignore))
    smoothing, threads = float(smoothing), threads_for(c)
    largest, total, losses = empty((N,)), empty((N,)), empty((N,))
    loss, count = empty(()), empty(())
    launch("cross_entropy", N, threads, z, *of_rows, smoothing, c, largest, total, losses)
    launch("mean_of_losses", 1, 1024, losses, *of_rows, N, loss, count)

    def backward(dloss=1.0):                             # keeps logits, largest, total, targets, count
        here, dz = isinstance(dloss, NUMBERS), empty(shape)
        dloss = (count, 0, float(dloss)) if here else (as_gradient(dloss, ()), 1, 0.0)
        launch("cross_entropy_backward", N, threads, z, largest, total, *of_rows, count, *dloss, smoothing, c, dz)
        return dz, None

    return loss, backward


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float = EPS) -> tuple[Array, Backward] | NotImplementedType:
    n = x.shape[-1]
    if n == 0:
        return NotImplemented
    x, gamma, y = contiguous(x), contiguous(gamma), empty(x.shape)
    rows = rows_in(x)
    mean, r = empty((rows,)), empty((rows,))
    launch("layer_norm", rows, threads_for(n), x, gamma, contiguous(beta), float(eps), n, y, mean, r)

    def backward(dy):                                    # keeps x, mean, r, gamma
        dx, dgamma, dbeta = empty(x.shape), empty((n,)), empty((n,))
        blocks = -(-n // COLUMNS) + rows
        inputs = x, as_gradient(dy, x.shape), gamma, mean, r
        launch("layer_norm_backward", blocks, THREADS, *inputs, rows, n, dx, dgamma, dbeta)
        return dx, dgamma, dbeta

    return y, backward


def rms_norm(x: Array, gamma: Array, eps: float = EPS) -> tuple[Array, Backward] | NotImplementedType:
    n = x.shape[-1]
    if n == 0:
        return NotImplemented
    x, gamma, y, rows = contiguous(x), contiguous(gamma), empty(x.shape), rows_in(x)
    r = empty((rows,))
    launch("rms_norm", rows, threads_for(n), x, gamma, float(eps), n, y, r)

    def backward(dy):                                    # keeps x, r, gamma
        dx, dgamma = empty(x.shape), empty((n,))
        inputs = x, as_gradient(dy, x.shape), gamma, r
        launch("rms_norm_backward", -(-n // COLUMNS) + rows, THREADS, *inputs, rows, n, dx, dgamma)
        return dx, dgamma

    return y, backward


def embedding(table: Array, ids: Array, absent: int | None = None) -> tuple[Array, Backward]:
    (c, n), words, absence = table.shape, ids.size, optional(absent)
    shape, ids = (*ids.shape, n), contiguous(ids, np.int64)
    x = empty(shape)
    launch("embedding", words, threads_for(n), contiguous(table), ids, *absence, c, n, x)

    def backward(dx):                                    # keeps ids
        dtable = empty((c, n))
        launch("embedding_backward", c, THREADS, as_gradient(dx, shape), ids, words, *absence, n, dtable)
        return dtable, None

    return x, backward


def mean_pool(x: Array, mask: Array | None = None) -> tuple[Array, Backward] | NotImplementedType:
    *leading, T, n = x.shape
    if T == 0:
        return NotImplemented
    x, y, weight, threads = contiguous(x), empty((*leading, n)), empty((*leading, T)), threads_for(n)
    masking = (weight, 0) if mask is None else (contiguous(mask, bool), 1)
    launch("mean_pool", rows_in(weight), threads, x, *masking, T, n, weight, y)
    shape_x, shape_y = x.shape, y.shape

    def backward(dy):                                    # keeps weight
        dx = empty(shape_x)
        launch("mean_pool_backward", weight.size, threads, as_gradient(dy, shape_y), weight, T, n, dx)
        return dx, None

    return y, backward


def on_entries(kernel: str, entries: int, *arguments: Array | int | float) -> None:
    """Launch a kernel of entries.cu, whose threads stride over all entries."""
    launch(kernel, min(-(-entries // THREADS), BLOCKS), THREADS, *arguments)


@cache
def threads_for(n: int) -> int:
    """How many threads a row of n entries gets: 32, 64, … 512; each has about four entries, or more"""
    return min(max(1 << max(n - 1, 0).bit_length() >> 2, 32), 512)


def rows_in(x: Array) -> int:
    return math.prod(x.shape[:-1])


def optional(number: int | None) -> tuple[int, int]:
    """(1, number), or (0, 0) for None, as a kernel takes it"""
    return (0, 0) if number is None else (1, int(number))


def vectors(x: Array) -> Array:
    """x with the entries of its last axis side by side, a copy only if they are not"""
    return x if x.strides[-1] == x.itemsize else contiguous(x)


def as_gradient(dy: Array | float, shape: tuple[int, ...], laid_out: Callable[[Array], Array] = contiguous) -> Array:
    """dy as a float32 array, broadcast to that shape as in a formula. Raises ValueError if it does not broadcast."""
    if isinstance(dy, NUMBERS):
        same = empty(shape)
        same.fill(float(dy))
        return same
    if dy is None or isinstance(dy, HOST):               # a kernel would take the host's numbers for a pointer
        what = "None" if dy is None else "on the cpu"
        raise TypeError(f"dy is {what}, expected a gradient of shape {shape} on the GPU")
    if dy.shape != shape:
        dy = array_module(dy).broadcast_to(dy, shape)
    return laid_out(dy if dy.dtype.char == "f" else dy.astype(np.float32))


def laid_out_as(x: Array, shape: tuple[int, ...]) -> Array:
    """An empty array of that shape; heads (B, H, T, m) that are a view of (B, T, H·m) give another such view."""
    if len(shape) < 4 or x.flags.c_contiguous:
        return empty(shape)
    B, H, T, m = shape
    return empty((B, T, H, m)).swapaxes(1, 2)


def with_strides(x: Array) -> tuple[Array, int, int, int]:
    """x (…, H, T, m), and its strides along B, H and T, in entries"""
    B, H, T = (0, 0, 0, *x.strides)[-4:-1]
    return x, B // x.itemsize, H // x.itemsize, T // x.itemsize


def four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of up to four axes with ones in front, so that it has four"""
    return (1, 1, 1, *shape)[-4:]


def strides_in(x: Array, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of x, broadcast to the shape, along the last four axes, in entries: 0 where it is repeated. None if
    it cannot be broadcast to the shape, or if that has more than four axes.
    """
    return _strides(x.shape, x.strides, x.itemsize, shape)


@lru_cache(1024)
def _strides(shape_x, strides, itemsize, shape):
    fits = all(own in (1, size) for own, size in zip(reversed(shape_x), reversed(shape)))
    if not fits or len(shape_x) > len(shape) or len(shape) > 4:
        return None
    strides = (0 if size == 1 else stride // itemsize for size, stride in zip(shape_x, strides))
    return (*NO_STRIDES, *strides)[-4:]

"""Twins for NumPy's float32 arrays: the loops of `loops.py`, divided among threads, and BLAS's products.

Formula, signature and contract are those of the op of the same name; only the order of sums differs, so near the
largest float32 one may overflow before the other. NaN and ∞ come out as in the formula, even where it multiplies them
by 0. A twin keeps less for its backward: it keeps inputs, which exist anyway, and computes again what is quick to
compute. (Attention keeps its A, if it is small.) So do not change inputs or outputs until the backward has run. The op
has checked shapes and dtypes. Other wrong arguments, and rare cases, are left to the formula, which also raises the
errors: the twin gives NotImplemented.
"""

import math
from types import NotImplementedType

from mini_tf.kernels import loops
from mini_tf.kernels.gated import gru as gru
from mini_tf.kernels.gated import lstm as lstm
from mini_tf.kernels.linear import linear as linear
from mini_tf.kernels.llama import rms_norm as rms_norm
from mini_tf.kernels.llama import rotary as rotary
from mini_tf.kernels.llama import silu as silu
from mini_tf.kernels.llama import swiglu as swiglu
from mini_tf.kernels.memory import LOOPS_NEED, as_gradient, empty, for_loops
from mini_tf.kernels.rows import flat, in_one_thread, in_pieces, rows
from mini_tf.kernels.threads import in_parallel, pieces
from mini_tf.ops.shapes import as_matrix, sum_to, transpose
from mini_tf.types import Array, Backward

import numpy as np

EPS = 1e-5                   # of layer norm, as in the op
NO_MASK = np.empty((0, 0), bool)
A_IN_CACHE = 1 << 16         # numbers of attention's A processed at a time
A_KEPT = 1 << 20             # numbers, up to which A is kept for the backward: 4 MB
SHARED_BY_BLAS = 1 << 18     # multiplications in a product, from which on BLAS itself uses all cores


def relu(x: Array) -> tuple[Array, Backward]:
    y = np.maximum(x, 0, out=empty(x.shape))

    def backward(dy):                                    # keeps y, which is above 0 where x is
        return where(y > 0, dy)

    return y, backward


def residual_relu(x: Array, y: Array) -> tuple[Array, Backward]:
    z, on = empty(x.shape), empty(x.shape, bool)
    in_pieces(loops.residual_relu, flat(x), flat(y), flat(z), flat(on))

    def backward(dz):                                    # keeps on
        dz = as_gradient(dz, on.shape)
        return dz, where(on, dz)

    return z, backward


def gelu(x: Array, approximate: bool = False) -> tuple[Array, Backward]:
    y = empty(x.shape)
    in_pieces(loops.gelu, flat(x), approximate, flat(y))

    def backward(dy):                                    # keeps x
        dx = empty(x.shape)
        in_pieces(loops.gelu_backward, flat(x), flat(as_gradient(dy, x.shape)), approximate, flat(dx))
        return dx

    return y, backward


def dropout(x: Array, keep: Array, rate: float) -> tuple[Array, Backward] | NotImplementedType:
    if not 0 <= rate < 1:
        return NotImplemented
    raised = 1 / (1 - rate)

    def backward(dy):                                    # keeps keep
        return where(keep, dy, raised), None

    return where(keep, x, raised), backward


def where(on: Array, x: Array | float, factor: float = 1.0) -> Array:
    """factor·x where on, else 0·x;  x is broadcast to the shape of on"""
    y = empty(on.shape)
    in_pieces(loops.scaled_where, flat(as_gradient(x, on.shape)), flat(on), np.float32(factor), flat(y))
    return y


def softmax(z: Array) -> tuple[Array, Backward]:
    return _softmax(z, np.nan, NO_MASK)


def masked_softmax(z: Array, mask: Array) -> tuple[Array, Backward] | NotImplementedType:
    try:
        y, backward = _softmax(z, 0, *_mask_rows(mask, z.shape))
    except ValueError:
        return NotImplemented
    return y, lambda dy: (backward(dy), None)


def _softmax(z, share_if_masked, mask_rows, queries=1, times=1):
    y = copy_of(z)
    in_pieces(loops.softmax, rows(y), np.float32(1), np.float32(share_if_masked), mask_rows, queries, times)

    def backward(dy):                                    # keeps y
        dz = copy_of(as_gradient(dy, y.shape))
        in_pieces(loops.softmax_backward, rows(dz), rows(y), np.float32(1))
        return dz

    return y, backward


def _mask_rows(mask, shape):
    """(rows, queries, times): the mask's rows without repeats, and how rows of z map to them.

    The rows of z, of that shape, come in groups of `queries`; each group of mask rows serves `times` groups of z in
    turn. Raises ValueError if the mask cannot be broadcast to the shape.
    """
    np.broadcast_to(mask, shape)
    mask = mask.reshape((1,) * (len(shape) - mask.ndim) + mask.shape)
    if len(shape) < 2 or mask.shape[-2] == 1:            # one row for all queries, as where padding is hidden
        shape = *shape[:-1], 1, shape[-1]
        mask = mask.reshape(*mask.shape[:-1], 1, mask.shape[-1])
    own = max((axis + 1 for axis in range(len(shape) - 2) if mask.shape[axis] != 1), default=0)
    mask = np.broadcast_to(mask, shape[:own] + (1,) * (len(shape) - 2 - own) + shape[-2:])
    return rows(mask), shape[-2], math.prod(shape[own:-2])


def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, scale: float = 1.0, bias: Array | None = None
) -> tuple[Array, Backward] | NotImplementedType:
    shape = *query.shape[:-1], key.shape[-2]             # (…, Tq, Tk)
    if len(shape) < 3 or not isinstance(scale, (int, float)):
        return NotImplemented
    try:
        bias_of_all = None if bias is None else np.broadcast_to(bias, shape)
        mask_of_all, queries, times = (NO_MASK, 0, 0) if mask is None else _mask_rows(mask, shape)
    except ValueError:
        return NotImplemented
    one_mask = len(mask_of_all) <= queries
    if not one_mask:
        mask_of_each = mask_of_all.reshape(len(query), len(mask_of_all) // len(query), shape[-1])
    share_if_masked = np.float32(np.nan if mask is None and bias is None else 0)
    shape_Y = *query.shape[:-1], value.shape[-1]
    Y = laid_out_as(query, shape_Y)
    # A is computed in parts of the first axis that fit into the cache. The backward computes a large A again, so.
    small = math.prod(shape[-2:]) * max(query.shape[-1], value.shape[-1]) < SHARED_BY_BLAS
    run, cuts = (in_one_thread, pieces(len(Y), Y.size * shape[-1])) if small else (in_pieces, [(0, len(Y))])
    at_once = max(min(A_IN_CACHE // max(math.prod(shape[1:]), 1), len(Y)), 1)
    kept = empty(shape) if math.prod(shape) <= A_KEPT else None

    def parts_of(first, stop):
        return [slice(k, min(k + at_once, stop)) for k in range(first, stop, at_once)]

    def room():
        return empty((at_once, *shape[1:]))

    def weights(some, A):
        """softmax(scale·Q·Kᵀ + bias) for some entries of the first axis, written into A"""
        A, in_softmax = np.matmul(query[some], transpose(key[some]), out=A), np.float32(scale)
        if bias is not None or scale <= 0:               # the loops take a scale above 0, and no bias
            A *= scale
            in_softmax = np.float32(1)
        if bias is not None:
            A += bias_of_all[some]
        mask_of_some = mask_of_all if one_mask else rows(mask_of_each[some])
        run(loops.softmax, rows(A), in_softmax, share_if_masked, mask_of_some, queries, times)
        return A

    def forward(_, first, stop):
        A_room = room() if kept is None else None
        for some in parts_of(first, stop):
            A = weights(some, A_room[: some.stop - some.start] if kept is None else kept[some])
            np.matmul(A, value[some], out=Y[some])

    in_parallel(forward, cuts)

    def backward(dY):                                    # keeps query, key, value and a small A
        dY, dscores = as_gradient(dY, shape_Y), None if bias is None else empty(shape)
        dquery, dkey, dvalue = (laid_out_as(x, x.shape) for x in (query, key, value))
        factor = scale if bias is None else 1.0          # dbias must not be scaled

        def part(_, first, stop):
            A_room, dA_room = room() if kept is None else None, room()
            for some in parts_of(first, stop):
                A = weights(some, A_room[: some.stop - some.start]) if kept is None else kept[some]
                dA = dA_room[: len(A)] if bias is None else dscores[some]
                np.matmul(dY[some], transpose(value[some]), out=dA)
                np.matmul(transpose(A), dY[some], out=dvalue[some])
                run(loops.softmax_backward, rows(dA), rows(A), np.float32(factor))       # dA is now dscores
                np.matmul(dA, key[some], out=dquery[some])
                np.matmul(transpose(dA), query[some], out=dkey[some])

        in_parallel(part, cuts)
        if bias is None:
            return dquery, dkey, dvalue, None, None
        dquery *= scale
        dkey *= scale
        return dquery, dkey, dvalue, None, sum_to(dscores, bias.shape)

    return Y, backward


def cross_entropy(
    logits: Array, targets: Array, ignore: int | None = None, smoothing: float = 0.0
) -> tuple[np.floating, Backward] | NotImplementedType:
    z, target = rows(logits), np.require(targets, np.int64, LOOPS_NEED).reshape(-1)       # (N, c), (N,)
    counted = np.ones(target.shape, bool) if ignore is None else target != ignore
    count, target = int(counted.sum()), np.where(counted, target, 0)
    if count == 0 or target.min() < 0 or target.max() >= z.shape[1] or not 0 <= smoothing < 1:
        return NotImplemented
    largest, total, losses = np.empty((3, len(z)), np.float32)
    on_target = np.float32(1 - smoothing)
    in_pieces(loops.cross_entropy, z, target, counted, on_target, np.float32(smoothing), largest, total, losses)
    loss = np.float32(losses.sum(dtype=np.float64) / count)
    shape, on_all = logits.shape, np.float32(smoothing / z.shape[1])

    def backward(dloss=1.0):                             # keeps logits, largest, total, target, counted
        weight = as_gradient(dloss, target.shape) / np.float32(count) * counted
        dz = empty(z.shape)
        in_pieces(loops.cross_entropy_backward, z, largest, total, target, weight, on_target, on_all, dz)
        return dz.reshape(shape), None

    return loss, backward


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float = EPS) -> tuple[Array, Backward] | NotImplementedType:
    if x.shape[-1] == 0:
        return NotImplemented
    x_rows, gamma_row, y = rows(x), flat(gamma), empty(x.shape)
    mean, r = np.empty((2, len(x_rows)), np.float32)
    in_pieces(loops.layer_norm, x_rows, gamma_row, flat(beta), np.float32(eps), rows(y), mean, r)
    shape = x.shape

    def backward(dy):                                    # keeps x, mean, r, gamma
        dy_rows, dx = rows(as_gradient(dy, shape)), empty(x_rows.shape)
        cuts = pieces(len(dx), dx.size)
        dgamma, dbeta = np.zeros((2, len(cuts), gamma.size), np.float32)         # each piece has its own sums

        def part(k, first, stop):
            loops.layer_norm_backward(first, stop, x_rows, dy_rows, mean, r, gamma_row, dx, dgamma[k], dbeta[k])

        in_parallel(part, cuts)
        return dx.reshape(shape), dgamma.sum(0), dbeta.sum(0)

    return y, backward


def embedding(
    table: Array, ids: Array, absent: int | None = None
) -> tuple[Array, Backward] | NotImplementedType:
    least = {None: 0, -1: -1}.get(absent)                # loops take an id below 0 for an absent word
    words = np.array(ids, np.int64).reshape(-1)          # a copy, because loops do not check ids: they must not change
    if least is None or not loops.all_within.machine_code(words, least, len(table)):
        return NotImplemented
    x = empty((*ids.shape, table.shape[1]))
    in_pieces(loops.embedding, as_matrix(x), rows(table), words)
    shape_x, shape_table = x.shape, table.shape

    def backward(dx):                                    # keeps words and the shapes of x and table
        dtable = empty(shape_table)
        dtable.fill(0)
        dx_rows = rows(as_gradient(dx, shape_x))
        cuts = pieces(shape_table[1], dx.size)           # of columns, so that no two threads write to one entry
        in_parallel(lambda _, first, stop: loops.embedding_backward(first, stop, dx_rows, words, dtable), cuts)
        return dtable, None

    return x, backward


def mean_pool(x: Array, mask: Array | None = None) -> tuple[Array, Backward] | NotImplementedType:
    T, n = x.shape[-2:]
    if T == 0:
        return NotImplemented
    texts, shape_y = math.prod(x.shape[:-2]), (*x.shape[:-2], n)
    counts = np.ones((texts, T), bool) if mask is None else for_loops(mask).reshape(texts, T)
    y, weight, shape_x = empty(shape_y), np.empty((texts, T), np.float32), x.shape
    in_pieces(loops.mean_pool, for_loops(x).reshape(texts, T, n), counts, weight, y.reshape(texts, n))

    def backward(dy):                                    # keeps weight
        dx, dy = empty((texts, T, n)), flat(as_gradient(dy, shape_y)).reshape(texts, n)
        in_pieces(loops.mean_pool_backward, dx, weight, dy)
        return dx.reshape(shape_x), None

    return y, backward


def adam(
    p: Array, g: Array, m: Array, v: Array, t: int, learning_rate: float, betas: tuple[float, float], eps: float,
    decay: float,
) -> NotImplementedType | None:  # fmt: skip
    beta1, beta2 = betas
    if not (t >= 1 and 0 <= beta1 < 1 and 0 <= beta2 < 1 and eps >= 0):
        return NotImplemented
    if not (p.flags.carray and m.flags.carray and v.flags.carray):
        return NotImplemented                            # they cannot be updated in place as flat arrays
    # α·m̂/(√v̂ + ε) = rate·m/(√v + ε·correction): both bias corrections become factors outside the arrays
    correction = math.sqrt(1 - beta2**t)
    rate = learning_rate * correction / (1 - beta1**t)
    numbers = beta1, beta2, 1 - beta1, 1 - beta2, rate, eps * correction, decay
    in_pieces(loops.adam, p.reshape(-1), flat(g), m.reshape(-1), v.reshape(-1), *numbers)
    return None


def sum_of_squares(g: Array) -> float:
    g = flat(g)
    cuts = pieces(g.size, g.size)
    sums = [0.0] * len(cuts)

    def part(k, first, stop):
        sums[k] = loops.sum_of_squares(first, stop, g)

    in_parallel(part, cuts)
    return sum(sums)


def copy_of(x: Array) -> Array:
    y = empty(x.shape)
    np.copyto(y, x)
    return y


def laid_out_as(x: Array, shape: tuple[int, ...]) -> Array:
    """An empty array of that shape, with the memory order of x's axes: so that heads are joined without a copy."""
    if x.flags.c_contiguous:
        return empty(shape)
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return empty([shape[axis] for axis in order]).transpose([order.index(axis) for axis in range(x.ndim)])

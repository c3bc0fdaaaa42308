"""The ops' twins for NumPy's float32 arrays: the loops of `loops.py`, shared out among threads, and BLAS's products.

Formulas, shapes and errors are those of the op of the same name in `mini_tf/ops`; what differs is the order of sums. A
twin keeps less: an input, which is there anyway, rather than what is quick to compute again. What makes no sense
goes to the op, which says what is wrong with it.
"""

import math

from mini_tf import ops
from mini_tf.kernels import loops
from mini_tf.kernels.memory import MemoryFreed, empty, is_only_view
from mini_tf.kernels.threads import pieces, share
from mini_tf.ops.shapes import check, sum_to, transpose

import numpy as np

EPS = 1e-5                   # of layer norm, as in the op
IN_CACHE = 2048              # rows of a weight in one product of its backward
FEW_ROWS = 128               # up to which BLAS is quicker with the weight as the first factor: with AVX-512, by a sixth
A_IN_CACHE = 1 << 16         # numbers of attention's A that are worked on at a time
SHARED_BY_BLAS = 1 << 18     # multiplications in one product from which on BLAS itself uses all cores


def linear(x, W, b=None, needs_dx=True):
    check("linear: x (…, in), W (in, out), b (out)", x, W, b)
    shape_x, shape_y = x.shape, (*x.shape[:-1], W.shape[1])
    kept = [x.reshape(-1, W.shape[0])]
    y = product(kept[0], W)
    if b is not None:
        y += b

    def backward(dy):                                    # keeps x, W
        rows_dy = as_gradient(dy, shape_y).reshape(-1, W.shape[1])
        db = () if b is None else (sum_to(rows_dy, b.shape),)
        x = taken_from(kept)
        dx = None
        if not W.flags.c_contiguous:                     # a table, transposed: its gradient in the table's own order
            dW = transpose(product(transpose(rows_dy), x))
            if needs_dx:
                dx = product(rows_dy, transpose(W))
        else:
            dW = empty(W.shape)
            if needs_dx:                                 # a part of dx may take that of x, after its use for dW
                dx = x if is_only_view(x) else empty(x.shape)
            for first in range(0, len(W), IN_CACHE):     # a part of a large weight, while it is in the cache
                some = slice(first, first + IN_CACHE)
                np.matmul(transpose(x[:, some]), rows_dy, out=dW[some])
                if needs_dx and len(rows_dy) <= FEW_ROWS < len(W):
                    dx[:, some] = transpose(product(W[some], transpose(rows_dy)))
                elif needs_dx:
                    np.matmul(rows_dy, transpose(W[some]), out=dx[:, some])
        if dx is not x:
            kept.append(x)
        return dx.reshape(shape_x) if needs_dx else None, dW, *db

    return y.reshape(shape_y), backward


def product(A, B):
    """A·B for matrices, by BLAS"""
    return np.matmul(A, B, out=empty((A.shape[0], B.shape[1])))


def relu(x):
    check("relu: x (…)", x)
    y = np.maximum(x, 0, out=empty(x.shape))

    def backward(dy):                                    # keeps y, which is above 0 where x is
        return where(y > 0, dy)

    return y, backward


def residual_relu(x, y):
    check("residual_relu: x (…), y (…)", x, y)
    z, on = empty(x.shape), empty(x.shape, bool)
    in_pieces(loops.residual_relu, row(x), row(y), row(z), row(on))

    def backward(dz):                                    # keeps on
        dz = as_gradient(dz, on.shape)
        return dz, where(on, dz)

    return z, backward


def gelu(x, approximate=False):
    check("gelu: x (…)", x)
    y = empty(x.shape)
    in_pieces(loops.gelu, row(x), approximate, row(y))

    def backward(dy):                                    # keeps x
        dx = empty(x.shape)
        in_pieces(loops.gelu_backward, row(x), row(as_gradient(dy, x.shape)), approximate, row(dx))
        return dx

    return y, backward


def dropout(x, keep, rate):
    check("dropout: x (…), keep (…) bool", x, keep)
    if not 0 <= rate < 1:
        return ops.dropout(x, keep, rate)
    raised = 1 / (1 - rate)

    def backward(dy):                                    # keeps keep
        return where(keep, dy, raised), None

    return where(keep, x, raised), backward


def where(on, x, factor=1.0):
    """factor·x where on, else 0;  x is broadcast to the shape of on"""
    y = empty(on.shape)
    in_pieces(loops.scaled_where, row(as_gradient(x, on.shape)), row(on), np.float32(factor), row(y))
    return y


def softmax(z):
    check("softmax: z (…, k)", z)
    y = copy_of(z)
    in_pieces(loops.softmax, rows(y))
    return y, _softmax_backward(y)


def masked_softmax(z, mask):
    check("masked_softmax: z (…, k), mask (*) bool", z, mask)
    try:
        mask_and_order = _mask_rows(mask, z.shape)
    except ValueError:
        return ops.masked_softmax(z, mask)
    y = copy_of(z)
    in_pieces(loops.masked_softmax, rows(y), *mask_and_order)
    backward = _softmax_backward(y)
    return y, lambda dy: (backward(dy), None)


def _softmax_backward(y):
    def backward(dy):                                    # keeps y
        dz = copy_of(as_gradient(dy, y.shape))
        in_pieces(loops.softmax_backward, rows(dz), rows(y), np.float32(1))
        return dz

    return backward


def _mask_rows(mask, shape):
    """(rows, queries, times): the mask's rows, as few as there are different ones, and which belong to a row of z.

    The rows of z, of that shape, come in groups of `queries`; a group of the mask serves `times` groups, one after the
    other. Raises ValueError if the mask cannot be broadcast to the shape.
    """
    np.broadcast_to(mask, shape)
    mask = mask.reshape((1,) * (len(shape) - mask.ndim) + mask.shape)
    own = max((axis + 1 for axis in range(len(shape) - 2) if mask.shape[axis] != 1), default=0)
    mask = np.broadcast_to(mask, shape[:own] + (1,) * max(len(shape) - 2 - own, 0) + shape[-2:])
    queries = shape[-2] if len(shape) > 1 else 1
    return rows(mask), queries, math.prod(shape[own:-2])


def attention(query, key, value, mask=None, scale=1.0, bias=None):
    check("attention: query (…, Tq, m), key (…, Tk, m), value (…, Tk, d), mask (*) bool, bias (*)",
          query, key, value, mask, bias)  # fmt: skip
    shape = *query.shape[:-1], key.shape[-2]             # (…, Tq, Tk)
    if len(shape) < 3 or np.ndim(scale):
        return ops.attention(query, key, value, mask, scale, bias)
    try:
        bias_of_all = None if bias is None else np.broadcast_to(bias, shape)
        mask_of_all, queries, times = (None, 0, 0) if mask is None else _mask_rows(mask, shape)
    except ValueError:
        return ops.attention(query, key, value, mask, scale, bias)
    one_mask = mask is None or len(mask_of_all) <= queries
    if not one_mask:
        mask_of_each = mask_of_all.reshape(len(query), len(mask_of_all) // len(query), shape[-1])
    kept = [tuple(x[...] for x in (query, key, value))]          # views of our own
    shape_Y = *query.shape[:-1], value.shape[-1]
    Y = laid_out_as(query, shape_Y)
    # A is worked on in parts of the first axis that fit into the cache; the backward makes it again, part by part.
    small = math.prod(shape[-2:]) * max(query.shape[-1], value.shape[-1]) < SHARED_BY_BLAS
    run, cuts = (_alone, pieces(len(Y), Y.size * shape[-1])) if small else (in_pieces, [(0, len(Y))])
    at_once = max(A_IN_CACHE // max(math.prod(shape[1:]), 1), 1)

    def parts_of(first, stop):
        return [slice(k, min(k + at_once, stop)) for k in range(first, stop, at_once)]

    def room():
        return empty((at_once, *shape[1:]))

    def weights(q, k, some, A):
        """A = softmax(scale·q·kᵀ + bias) of some entries of the first axis, in the memory of A"""
        A = np.matmul(q[some], transpose(k[some]), out=A[: some.stop - some.start])
        if scale != 1:
            A *= scale
        if bias is not None:
            A += bias_of_all[some]
        if mask is None:
            run(loops.softmax, rows(A))
        else:
            run(loops.masked_softmax, rows(A), mask_of_all if one_mask else rows(mask_of_each[some]), queries, times)
        return A

    def forward(_, first, stop):
        (q, k, v), A = kept[0], room()
        for some in parts_of(first, stop):
            np.matmul(weights(q, k, some, A), v[some], out=Y[some])

    share(forward, cuts)

    def backward(dY):                                    # keeps query, key, value
        dY, dscores = as_gradient(dY, shape_Y), None if bias is None else empty(shape)
        q, k, v = inputs = taken_from(kept)
        in_place = all(map(is_only_view, inputs))        # their gradients take their places, part by part
        dquery, dkey, dvalue = inputs if in_place else (laid_out_as(x, x.shape) for x in inputs)
        factor = scale if bias is None else 1.0          # dbias has no scale in it

        def part(_, first, stop):
            A_room, dA_room, dquery_room = room(), room(), empty((at_once, *q.shape[1:]))
            for some in parts_of(first, stop):
                A = weights(q, k, some, A_room)
                dA = dA_room[: len(A)] if bias is None else dscores[some]
                np.matmul(dY[some], transpose(v[some]), out=dA)
                np.matmul(transpose(A), dY[some], out=dvalue[some])
                run(loops.softmax_backward, rows(dA), rows(A), np.float32(factor))       # dA: now dscores
                dquery_part = np.matmul(dA, k[some], out=dquery_room[: len(A)])
                np.matmul(transpose(dA), q[some], out=dkey[some])
                dquery[some] = dquery_part

        share(part, cuts)
        if not in_place:
            kept.append(inputs)
        nothing_for_mask = () if mask is None else (None,)
        if bias is None:
            return dquery, dkey, dvalue, *nothing_for_mask
        dquery *= scale
        dkey *= scale
        return dquery, dkey, dvalue, *nothing_for_mask, sum_to(dscores, bias.shape)

    return Y, backward


def cross_entropy(logits, targets, ignore=None):
    check("cross_entropy: logits (…, c), targets (…) int", logits, targets)
    z, target = rows(logits), integers(targets)          # (N, c), (N,)
    counted = np.ones(target.shape, bool) if ignore is None else target != ignore
    count, target = int(counted.sum()), np.where(counted, target, 0)
    if count == 0 or target.min() < 0 or target.max() >= z.shape[1]:
        return ops.cross_entropy(logits, targets, ignore)
    largest, total = np.empty((2, len(z)), np.float32)
    in_pieces(loops.log_sum_exp, z, largest, total)
    at_target = z[np.arange(len(z)), target]
    loss = np.float32(((np.log(total) - (at_target - largest)) * counted).sum(dtype=np.float64) / count)
    shape, kept = logits.shape, [z]

    def backward(dloss=1.0):                             # keeps z, largest, total, target, counted
        weight = as_gradient(dloss, target.shape) / np.float32(count) * counted
        dz = in_place_of(kept)
        in_pieces(loops.cross_entropy_backward, dz, largest, total, target, weight)
        return dz.reshape(shape), None

    return loss, backward


def layer_norm(x, gamma, beta, eps=EPS):
    check("layer_norm: x (…, n), gamma (n), beta (n)", x, gamma, beta)
    kept, gamma_row, y = [rows(x)], row(gamma), empty(x.shape)
    mean, r = np.empty((2, len(kept[0])), np.float32)
    in_pieces(loops.layer_norm, kept[0], gamma_row, row(beta), np.float32(eps), rows(y), mean, r)
    shape = x.shape

    def backward(dy):                                    # keeps x, mean, r, gamma
        dy_rows = rows(as_gradient(dy, shape))
        dx = in_place_of(kept)
        cuts = pieces(len(dx), dx.size)
        dgamma, dbeta = np.zeros((2, len(cuts), gamma.size), np.float32)         # each piece has its own sums

        def part(k, first, stop):
            loops.layer_norm_backward(first, stop, dy_rows, dx, mean, r, gamma_row, dgamma[k], dbeta[k])

        share(part, cuts)
        return dx.reshape(shape), dgamma.sum(0), dbeta.sum(0)

    return y, backward


def embedding(table, ids):
    check("embedding: table (c, n), ids (*) int", table, ids)
    if ids.size and not 0 <= ids.min() <= ids.max() < len(table):
        return ops.embedding(table, ids)
    x = np.take(table, ids, axis=0, out=empty((*ids.shape, table.shape[1])), mode="clip")
    x_shape = x.shape
    flat_ids = integers(np.array(ids))                   # a copy: a loop does not look whether they are in the table

    def backward(dx):                                    # keeps ids and the shapes of x and table
        dtable = empty(table.shape)
        dtable.fill(0)
        dx_rows = rows(as_gradient(dx, x_shape))
        cuts = pieces(table.shape[1], dx.size)           # of columns: threads never meet in a row
        share(lambda _, first, stop: loops.embedding_backward(first, stop, dx_rows, flat_ids, dtable), cuts)
        return dtable, None

    return x, backward


def transformer_layer(mask, weights, H, scale, gamma_and_beta):
    """The forward of layers.TransformerLayer as a function: x (T, n), one history, to its last `words` words (words, n)

    mask (words, T); weights: query's, key's, value's, output's; gamma_and_beta: the layer norm's, or None.
    """
    n = weights[0].shape[0]
    normed = gamma_and_beta is not None
    gamma, beta = map(row, gamma_and_beta) if normed else np.zeros((2, n), np.float32)
    prepared = rows(mask), *map(rows, weights), H, np.float32(scale), normed, gamma, beta, np.float32(EPS)
    run = loops.transformer_layer.machine_code

    def forward(x):
        y = np.empty((len(mask), n), np.float32)
        run(x, *prepared, y)
        return y

    return forward


def adam(p, g, m, v, betas, rate, eps, decay):
    """m ← β₁·m + (1 − β₁)·g,   v ← β₂·v + (1 − β₂)·g²,   p ← decay·p − rate·m/(√v + ε),   in one pass, in place

    False, and nothing is done, for arrays that it cannot work on in place: p, m, v not contiguous, or read-only.
    """
    if not (p.shape == g.shape == m.shape == v.shape and all(x.flags.carray for x in (p, m, v))):
        return False
    numbers = map(np.float32, (*betas, *(1 - beta for beta in betas), rate, eps, decay))
    in_pieces(loops.adam, row(p), row(g), row(m), row(v), *numbers)
    return True


def sum_of_squares(g):
    """Σ g², a float"""
    flat = row(g)
    cuts = pieces(flat.size, flat.size)
    sums = [0.0] * len(cuts)

    def part(k, first, stop):
        sums[k] = loops.sum_of_squares(first, stop, flat)

    share(part, cuts)
    return sum(sums)


def taken_from(kept):
    """What a backward has kept, in a list of one; MemoryFreed if a gradient has taken its place.

    The list is empty then: whoever does not write a gradient there puts it back afterwards. Another thread that calls
    the same backward meanwhile finds nothing, rather than a gradient that is half written.
    """
    try:
        return kept.pop()
    except IndexError:
        raise MemoryFreed("this backward has run already, and a gradient has taken the place of what it had kept; "
                          "call the forward again") from None  # fmt: skip


def in_place_of(kept):
    """The numbers of what a backward has kept, to be written over: in its own array, or a copy if others hold that."""
    x = taken_from(kept)
    if is_only_view(x):
        return x
    kept.append(x)
    return copy_of(x)


def in_pieces(loop, first_array, *others):
    """The loop over all rows of its first array (entries, if that is flat), shared out among the cores."""
    share(lambda _, first, stop: loop(first, stop, first_array, *others), pieces(len(first_array), first_array.size))


def _alone(loop, first_array, *others):
    """The same in this thread alone."""
    loop(0, len(first_array), first_array, *others)


def rows(x):
    """(…, k) → (rows, k), as loops take it: C-contiguous and writable; a copy only if x is not."""
    return _taken(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])


def row(x):
    """(…) → (entries,), as loops take it"""
    return _taken(x).reshape(-1)


def as_gradient(dy, shape):
    """dy as a float32 array of that shape, to which it is broadcast as in a formula. ValueError where it cannot be."""
    if dy is None:                                       # of which NumPy would make NaN
        raise TypeError(f"dy is None, expected a gradient of shape {shape}")
    dy = np.asarray(dy, np.float32)
    return dy if dy.shape == shape else np.broadcast_to(dy, shape)


def integers(ids):
    return np.require(ids, np.int64, "CWA").reshape(-1)


def _taken(x):
    if x.flags.c_contiguous and x.flags.writeable and x.dtype.char in "f?":
        return x
    return np.require(x, bool if x.dtype == bool else np.float32, "CW")


def copy_of(x):
    y = empty(x.shape)
    np.copyto(y, x)
    return y


def laid_out_as(x, shape):
    """An array of that shape, its axes in memory in the order of those of x: so heads are joined without a copy."""
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return empty([shape[axis] for axis in order]).transpose(np.argsort(order))

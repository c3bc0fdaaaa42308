"""The twin of ops.linear, which the twins of ops.lstm and ops.gru use, too."""

from mini_tf.kernels.memory import as_gradient, empty, product
from mini_tf.ops.shapes import as_matrix, transpose
from mini_tf.types import Array, Backward

import numpy as np

IN_CACHE = 2048              # rows of a weight per product in the backward
FEW_ROWS = 128               # up to which BLAS is faster with the weight as first factor: by a sixth, with AVX-512


def linear(x: Array, W: Array, b: Array | None = None) -> tuple[Array, Backward]:
    shape_x, shape_y = x.shape, (*x.shape[:-1], W.shape[1])
    rows_x = as_matrix(x)
    y = product(rows_x, W)
    if b is not None:
        y += b

    def backward(dy):                                    # keeps x, W and the shape of b
        rows_dy = as_matrix(as_gradient(dy, shape_y))
        db = None if b is None else np.ones(len(rows_dy), np.float32) @ rows_dy  # faster than rows_dy.sum(0)
        if not W.flags.c_contiguous:                     # a transposed table: its gradient gets the table's own layout
            dx, dW = product(rows_dy, transpose(W)), transpose(product(transpose(rows_dy), rows_x))
            return dx.reshape(shape_x), dW, db
        dx, dW = empty(rows_x.shape), empty(W.shape)
        for first in range(0, len(W), IN_CACHE):         # one part of a large weight at a time, in the cache
            some = slice(first, first + IN_CACHE)
            np.matmul(transpose(rows_x[:, some]), rows_dy, out=dW[some])
            if len(rows_dy) <= FEW_ROWS < len(W):
                dx[:, some] = transpose(product(W[some], transpose(rows_dy)))
            else:
                np.matmul(rows_dy, transpose(W[some]), out=dx[:, some])
        return dx.reshape(shape_x), dW, db

    return y.reshape(shape_y), backward

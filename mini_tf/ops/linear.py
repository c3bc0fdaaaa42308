"""The linear map, which does most of the arithmetic of a model."""

from mini_tf.ops.op import op
from mini_tf.ops.shapes import as_matrix, sum_to, transpose
from mini_tf.types import Array, Backward, Gradients


@op("x (…, in), W (in, out), b (out)")
def linear(x: Array, W: Array, b: Array | None = None) -> tuple[Array, Backward]:
    """y = x·W + b

    x (…, in), W (in, out), b (out,)  →  y (…, out)
    dx = dy·Wᵀ,   dW = Σ xᵀ·dy,   db = Σ dy (None without b);   Σ over all leading axes: every row used the same W and b
    Source: ESE-2000 Lab 6, the products Q·X, K·X, V·X of equations (13)–(15) and the readout of Task 6.6
    """
    shape_x = x.shape
    rows_x = as_matrix(x)                                # (rows, in)
    y = (rows_x @ W).reshape(*x.shape[:-1], W.shape[1])
    if b is not None:
        y = y + b

    def backward(dy: Array) -> Gradients:                # keeps x, W and the shape of b
        rows_dy = dy.reshape(len(rows_x), W.shape[1])    # (rows, out)
        dx = (rows_dy @ transpose(W)).reshape(shape_x)
        dW = transpose(rows_x) @ rows_dy
        db = None if b is None else sum_to(dy, b.shape)
        return dx, dW, db

    return y, backward

"""The linear map, the op that most of the arithmetic goes into."""

from mini_tf.ops.shapes import check, sum_to, transpose


def linear(x, W, b=None, needs_dx=True):
    """y = x·W + b

    x (…, in), W (in, out), b (out,)  →  y (…, out)
    dx = dy·Wᵀ,   dW = Σ xᵀ·dy,   db = Σ dy;   Σ over all leading axes, because every row used the same W and b
    With needs_dx=False, dx is None: a third of the work, which nobody needs where x is not learned.
    Source: ESE-2000 Lab 6, the products Q·X, K·X, V·X of equations (13)–(15) and the readout of Task 6.6
    """
    check("linear: x (…, in), W (in, out), b (out)", x, W, b)
    shape_x, shape_y = x.shape, (*x.shape[:-1], W.shape[1])
    rows_x = x.reshape(-1, W.shape[0])                   # (rows, in)
    y = (rows_x @ W).reshape(shape_y)
    if b is not None:
        y = y + b

    def backward(dy):                                    # keeps x, W
        rows_dy = dy.reshape(-1, W.shape[1])             # (rows, out)
        dx = (rows_dy @ transpose(W)).reshape(shape_x) if needs_dx else None
        dW = transpose(rows_x) @ rows_dy
        return (dx, dW) if b is None else (dx, dW, sum_to(dy, b.shape))

    return y, backward

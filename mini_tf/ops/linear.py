"""The linear map, the op that most of the arithmetic goes into."""

from mini_tf.ops.shapes import check, sum_to, transpose


def linear(x, W, b=None):
    """y = x·W + b

    x (…, in), W (in, out), b (out,)  →  y (…, out)
    dx = dy·Wᵀ,   dW = Σ xᵀ·dy,   db = Σ dy;   Σ over all leading axes, because every row used the same W and b
    Source: ESE-2000 Lab 6, the products Q·X, K·X, V·X of equations (13)–(15) and the readout of Task 6.6
    """
    check("linear: x (…, in), W (in, out), b (out)", x, W, b)
    y = x @ W
    if b is not None:
        y = y + b

    def backward(dy):                                    # keeps x, W
        dx = dy @ transpose(W)
        rows_x = x.reshape(-1, x.shape[-1])              # (rows, in)
        rows_dy = dy.reshape(-1, dy.shape[-1])           # (rows, out)
        dW = transpose(rows_x) @ rows_dy
        return (dx, dW) if b is None else (dx, dW, sum_to(dy, b.shape))

    return y, backward

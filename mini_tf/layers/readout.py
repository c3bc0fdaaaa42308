"""A readout whose weights are the word vectors."""

from mini_tf import ops
from mini_tf.layers.embedding import Embedding
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.ops.shapes import transpose
from mini_tf.types import Array, Backward


class TiedReadout(Layer):
    """logits = x·Eᵀ (+ b),  E the table (c, n) of an Embedding;  x (…, n) → logits (…, c)

    A word is likely if x points the same way as its vector. Such a model uses the table twice, and its gradients add.
    b: a Parameter (c,), which may be fixed, or None.
    Source: Press, Wolf 2017, arXiv:1608.05859
    """

    def __init__(self, embedding: Embedding, b: Parameter | None = None):
        self.table: Parameter = embedding.table
        self.b = b

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        logits, linear_backward = ops.linear(x, transpose(self.table.data), None if self.b is None else self.b.data)

        def backward(dlogits: Array) -> Array:
            dx, dE_transposed, db = linear_backward(dlogits)
            self.table.accumulate(transpose(dE_transposed))
            if self.b is not None:
                self.b.accumulate(db)
            return dx

        return logits, backward

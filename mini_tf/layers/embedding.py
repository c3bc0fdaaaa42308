"""The layer that owns the table of word vectors."""

from mini_tf import ops
from mini_tf.layers.layer import Layer, Parameter
from mini_tf.ops.shapes import ids_to_device_of
from mini_tf.types import Array, Backward

import numpy as np

ABSENT = -1


class Embedding(Layer):
    """x = table[ids];  ids (…) int → x (…, n).  The id ABSENT, −1, stands for no word: a vector of zeros.

    `table` (c, n) is the array of initial word vectors: eigenvector embeddings, or random ones. The layer trains a copy
    of it. With trainable=False the vectors stay fixed, as in the lab, and no gradient is computed for them.
    Source: ESE-2000 Lab 6, Tasks 6.3 and 6.9 ("absent words can be set to zero")
    """

    def __init__(self, table: Array, trainable: bool = True):
        self.table: Parameter = Parameter(np.array(table, order="C"), trainable)

    def __call__(self, ids: Array) -> tuple[Array, Backward]:
        table = self.table.data
        ids = ids_to_device_of("embedding", "ids", ids, table, len(table), "rows in table", ABSENT)
        x, embedding_backward = ops.embedding(table, ids, ABSENT)

        def backward(dx: Array) -> None:
            if self.table.trainable:
                dtable, _ = embedding_backward(dx)
                self.table.accumulate(dtable)

        return x, backward

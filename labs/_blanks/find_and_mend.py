"""Exercise 10: find and mend

A model in five functions, with a mistake in one line of one backward. The gradients of `model` are wrong; which line
makes them so? Write its number here, then mend the line. Why is it wrong? Say it in one sentence.
"""
# ruff: noqa: F821, F401, the five functions come from the exercises

import numpy as np

MISTAKE_IN_LINE = ...


def model(table, W, b, gamma, beta, readout, ids, targets):
    """The loss of the next words: attention, a residual block, layer norm and a readout over word vectors

    Example: table (5, 4), W (4, 4), b (4,), gamma (4,), beta (4,), readout (4, 5), ids (2, 3) int < 5,
    targets (6,) int < 5
    """
    x, embedding_backward = embedding(table, ids)
    seen, attention_backward = attention(x, x, x)
    rows, block_backward = residual_block(seen.reshape(-1, x.shape[-1]), W, b)
    normal, norm_backward = layer_norm(rows, gamma, beta)
    loss, loss_backward = cross_entropy(normal @ readout, targets)

    def backward(dloss=1.0):
        dlogits, _ = loss_backward(dloss)
        drows, dgamma, dbeta = norm_backward(dlogits @ readout.T)
        dseen, dW, db = block_backward(drows)
        dquery, dkey, dvalue = attention_backward(dseen.reshape(x.shape))
        dtable, _ = embedding_backward(dquery + dkey + dvalue)
        return dtable, dW, db, dgamma, dbeta, normal.T @ dlogits, None, None

    return loss, backward

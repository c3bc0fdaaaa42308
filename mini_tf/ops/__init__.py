"""The ops: every differentiable function, with its hand-written backward right below its forward.

    y, backward = op(*inputs)
    dx, dW, …   = backward(dy)

`dx` always means the gradient of the loss with respect to `x`. `backward` returns one gradient for each array argument,
in the same order: None for word ids, masks and arrays that were left out. A single gradient is not put in a tuple.
An op never writes into its inputs; its backward may be called twice and returns the same gradients twice. The comment
"keeps …" on the line of a backward names the arrays that it keeps alive.

Letters, the same everywhere (they are those of ESE-2000 Lab 6):

    B  batch          T  history length in words     n  embedding dimension     c  vocabulary size
    L  layers         H  heads                       m  dimension of a head     W  co-occurrence window
    k  hidden units, entries of a state              f  hidden units of feed-forward

The lab writes a history as an n×T matrix with a word per column. Here a word is a row: arrays are (B, T, n), weights
are (in, out), and y = x·W + b.

Each op is one object (`op.py`): the formula that you read, its name, a check of its arguments and, for some, a faster
twin in `mini_tf/kernels`. Edit a formula, and everything that uses it runs what you wrote.

Read the files in this order: linear, activations, softmax, losses, normalization, attention, rotary,
additive_attention, pooling, embedding, dropout, recurrent, gated, pointer. What makes a function an op is in op.py,
what Adam computes in updates.py.
"""

from mini_tf.ops.activations import gelu, relu, residual_relu, sigmoid, silu, swiglu, tanh
from mini_tf.ops.additive_attention import additive_attention
from mini_tf.ops.attention import attention, grouped_attention
from mini_tf.ops.dropout import dropout
from mini_tf.ops.embedding import embedding
from mini_tf.ops.gated import gru, lstm
from mini_tf.ops.linear import linear
from mini_tf.ops.losses import cross_entropy, mse
from mini_tf.ops.normalization import layer_norm, rms_norm
from mini_tf.ops.op import op as op  # the decorator; __all__ has the ops
from mini_tf.ops.pointer import copied, mixture_cross_entropy
from mini_tf.ops.pooling import max_pool, mean_pool, product_pool, sum_pool
from mini_tf.ops.recurrent import rnn
from mini_tf.ops.rotary import rotary
from mini_tf.ops.softmax import masked_softmax, softmax

__all__ = [
    "additive_attention", "attention", "copied", "cross_entropy", "dropout", "embedding", "gelu", "grouped_attention",
    "gru", "layer_norm", "linear", "lstm", "masked_softmax", "max_pool", "mean_pool", "mixture_cross_entropy", "mse",
    "product_pool", "relu", "residual_relu", "rms_norm", "rnn", "rotary", "sigmoid", "silu", "softmax", "sum_pool",
    "swiglu", "tanh",
]  # fmt: skip

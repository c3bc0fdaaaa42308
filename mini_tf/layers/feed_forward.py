"""The feed-forward part of a transformer layer: every word by itself."""

from mini_tf import kernels
from mini_tf.layers.layer import Layer
from mini_tf.layers.linear import Linear

import numpy as np


class FeedForward(Layer):
    """y = relu(x·W₁ + b₁)·W₂ + b₂;  x (…, n) → y (…, n), with f hidden units

    W₂ starts at 0, so that at first y = 0.
    Source: Vaswani et al. 2017, arXiv:1706.03762, equation (2)
    """

    def __init__(self, n, f, rng, dtype=np.float32):
        self.inner = Linear(n, f, rng, dtype=dtype)
        self.outer = Linear(f, n, dtype=dtype)

    def __call__(self, x):
        a, inner_backward = self.inner(x)                # (…, f)
        h, relu_backward = kernels.relu(a)
        y, outer_backward = self.outer(h)

        return y, lambda dy: inner_backward(relu_backward(outer_backward(dy)))

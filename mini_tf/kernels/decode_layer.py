"""The twin of `TransformerLayer.decode`: a word goes through the whole layer in a single loop.

In a small model there is little to compute for one word: 10 µs for a layer with n = 64. Called one after another, its
ops take ten times as long, nearly all of it in Python. So one loop does what all of them do, in every variant of the
layer. It is bound to the text of the layer and of its ops, as every twin is to its formula (`binding.py`). It does not
run while ops are watched, nor for layers with a part of another class.
"""

from collections.abc import Callable
from typing import Any

from mini_tf import kernels, ops
from mini_tf.layers.attention import KVCache, MultiHeadAttention
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.feed_forward import ACTIVATIONS, FeedForward
from mini_tf.layers.linear import Linear
from mini_tf.layers.normalization import LayerNorm, RMSNorm
from mini_tf.layers.transformer import NORMS, Norm, TransformerLayer
from mini_tf.ops.op import Op, watched
from mini_tf.types import Array

import numpy as np

EPS = 1e-5                           # of LayerNorm, as in the op
SMALL = 1 << 18                      # multiplications in one product of attention, up to which the loop is faster
NO_ROW, NO_MATRIX, NO_BIAS = (np.empty(shape, np.float32) for shape in (0, (0, 0), (0, 1, 0)))
METHODS = [
    (TransformerLayer, ("__call__", "branch", "pre_norm", "post_norm")),
    (MultiHeadAttention, ("__call__", "across", "attend", "turn", "bias", "split", "join")),
    (KVCache, ("extend", "allocate", "contents")),
    (FeedForward, ("__call__", "hidden", "gated")),
    *((cls, ("__call__",)) for cls in (Linear, LayerNorm, RMSNorm, Dropout)),
]
PARTS = {                            # of a layer; each may be None
    "attention": (MultiHeadAttention,), "feed_forward": (FeedForward,), "dropout": (Dropout,),
    **dict.fromkeys(["attention_norm", "feed_forward_norm"], (LayerNorm, RMSNorm)),
    **dict.fromkeys(["query", "key", "value", "output", "inner", "gate", "outer"], (Linear,)),
}  # fmt: skip
OPS: list[Any] = [
    ops.attention, ops.grouped_attention, ops.linear, ops.layer_norm, ops.rms_norm, ops.residual_relu, ops.rotary,
    ops.relu, ops.gelu, ops.swiglu,
]  # fmt: skip
NUMBERED = *ACTIVATIONS, "swiglu"    # as decode_loop.py numbers activations


class LayerDecoding(Op):
    """TransformerLayer.decode in the form of an op: its name, its formula, the functions that this uses, its twin."""

    __module__ = TransformerLayer.__module__
    name, formula = "TransformerLayer.decode", staticmethod(TransformerLayer.decode)

    def __init__(self):
        self.methods = methods()

    def uses(self) -> list[Callable]:
        return [*self.methods, *(op.formula for op in OPS)]

    @staticmethod
    def twin(layer: TransformerLayer) -> Callable[[Array, KVCache], Array | None]:
        """The function decode(x, cache) for the layer as it is: y, or None for arrays that it cannot take."""
        from mini_tf.kernels import decode_loop  # here, because it loads Numba
        from mini_tf.kernels.llama import angles

        attention, feed_forward = layer.attention, layer.feed_forward
        projections = attention.query, attention.key, attention.value, attention.output
        for_attention = *(array for linear in projections for array in weights(linear)), np.float32(attention.scale)
        eps = np.float32(getattr(layer.attention_norm, "eps", EPS))
        units = (None,) * 3 if feed_forward is None else (feed_forward.inner, feed_forward.gate, feed_forward.outer)
        for_the_rest = (
            NORMS.index(layer.norm), eps, *scaling(layer.attention_norm), layer.relu,
            *(array for linear in units for array in weights(linear)),
            0 if feed_forward is None else NUMBERED.index(feed_forward.activation), *scaling(layer.feed_forward_norm),
        )  # fmt: skip

        def decode(x, cache):
            past, y = cache.words, np.empty(x.shape, np.float32)
            if past == 0:
                cache.allocate(x, attention.G, attention.m)
            bias = attention.bias(x[:, None], cache.key[:, :, : past + x.shape[1]]) if attention.distances else NO_BIAS
            turned = attention.rotary is not None
            turning = angles(0, cache.T, attention.m, attention.rotary) if turned else (NO_MATRIX, NO_MATRIX)
            try:
                done = decode_loop.decode.machine_code(
                    x[0], *for_attention, bias, *turning, cache.key[0], cache.value[0], past, *for_the_rest, y[0]
                )
            except TypeError:                            # not all are NumPy's float32 arrays
                return None
            if not done:                                 # shapes that do not fit: the formula says which
                return None
            cache.words += x.shape[1]
            return y

        return decode


def decode(layer: TransformerLayer, x: Array, cache: KVCache) -> Array | None:
    """y (1, new, n) of the layer for new words x (1, new, n), whose keys and values are added to the cache.

    None, and nothing is added, if it has to be done by the formula. The twin is made for the layer as it is when a
    cache is first written to; a new cache has another.
    """
    if watched() or not isinstance(x, np.ndarray) or not kernels.switched_on():
        return None
    if cache.twin is None:
        twin = kernels.twin_of(DECODING) if methods() == DECODING.methods and of_known_classes(layer, cache) else None
        cache.twin = twin(layer) if twin else no_twin
    return cache.twin(x, cache) if x.shape[1] * layer.attention.query.W.data.size <= SMALL else None


def no_twin(x: Array, cache: KVCache) -> None:
    """In place of a twin, if there is none: the formula has to run."""


def of_known_classes(layer: TransformerLayer, cache: KVCache) -> bool:
    """True if the layer and its parts are of the classes whose text was compared, not of others derived from them."""
    attributes = vars(layer) | vars(layer.attention) | vars(layer.feed_forward or layer.attention)
    known = all(type(attributes.get(name)) in (*classes, type(None)) for name, classes in PARTS.items())
    return known and (type(layer), type(cache)) == (TransformerLayer, KVCache)


def methods() -> list[Callable]:
    """The methods that TransformerLayer.decode calls, as they are now: they may have been replaced."""
    return [getattr(cls, name) for cls, names in METHODS for name in names]


def weights(linear: Linear | None) -> tuple[Array, Array]:
    return (NO_MATRIX, NO_ROW) if linear is None else (linear.W.data, NO_ROW if linear.b is None else linear.b.data)


def scaling(norm: Norm | None) -> tuple[Array, Array]:
    if norm is None:
        return NO_ROW, NO_ROW
    return norm.gamma.data, NO_ROW if isinstance(norm, RMSNorm) else norm.beta.data


DECODING = LayerDecoding()

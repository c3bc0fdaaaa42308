"""Layers own parameters and sizes; the arithmetic is in `mini_tf.ops`.

    y, backward = layer(x)
    dx = backward(dy)          # adds to .grad of every parameter that the layer used

A layer keeps no state between calls: what the backward needs is in `backward` itself. So a model can use one layer
twice, and each call has its own right backward.
"""

from mini_tf.layers.attention import KVCache, MultiHeadAttention
from mini_tf.layers.class_word import ClassWord
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.embedding import Embedding
from mini_tf.layers.feed_forward import FeedForward
from mini_tf.layers.gated import GRU, LSTM, BothDirections
from mini_tf.layers.layer import Layer, MemoryFreed, Parameter, chain_rule, clear_gradients
from mini_tf.layers.linear import Linear
from mini_tf.layers.lora import LoRA
from mini_tf.layers.normalization import LayerNorm, RMSNorm
from mini_tf.layers.positions import LearnedPositions, PositionalEncoding, distance_bias
from mini_tf.layers.readout import TiedReadout
from mini_tf.layers.recurrent import Recurrent
from mini_tf.layers.sequence_attention import AdditiveAttention, MultiplicativeAttention
from mini_tf.layers.transformer import DecoderLayer, TransformerLayer, gpt_layers
from mini_tf.layers.trunk import Decoder, Encoder, Trunk

__all__ = [
    "AdditiveAttention", "BothDirections", "ClassWord", "Decoder", "DecoderLayer", "Dropout", "Embedding", "Encoder",
    "FeedForward", "GRU", "KVCache", "LSTM", "Layer", "LayerNorm", "LearnedPositions", "Linear", "LoRA", "MemoryFreed",
    "MultiHeadAttention", "MultiplicativeAttention", "Parameter", "PositionalEncoding", "RMSNorm", "Recurrent",
    "TiedReadout", "TransformerLayer", "Trunk", "chain_rule", "clear_gradients", "distance_bias", "gpt_layers",
]  # fmt: skip

"""The trunk of a transformer, from words to one vector for each; the encoder and the decoder of a translator."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from mini_tf.backend import constant_to_device_of, to_host
from mini_tf.layers.attention import KVCache
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.embedding import ABSENT, Embedding
from mini_tf.layers.layer import Layer, chain_rule, take_all
from mini_tf.layers.positions import LearnedPositions, PositionalEncoding
from mini_tf.layers.transformer import DecoderCache, DecoderLayer, Norm, TransformerLayer, identity
from mini_tf.types import Array, Backward

import numpy as np


@lru_cache(64)
def causal_mask(T: int) -> Array:
    """bool (T, T): query i sees key j ≤ i"""
    mask = np.tri(T, dtype=bool)
    mask.flags.writeable = False                         # all callers share it
    return mask


def to_device_of(mask: Array | None, x: Array) -> Array | None:
    """The mask on the device of x; None if there is none"""
    return None if mask is None else constant_to_device_of(mask, x)


class Trunk(Layer):
    """Φ(X):  X_0 = scale·E[ids] (+ P),   X_ℓ = layer_ℓ(X_{ℓ−1}),   Φ(X) = X_L (normalized);   ids (B, T) → (B, T, n)

    embedding    the Embedding E; the id −1 is an absent word: a vector of zeros, which no other word of a causal
                 trunk sees
    layers       a list of TransformerLayers
    positions    a PositionalEncoding or LearnedPositions, or None
    norm         a last LayerNorm or RMSNorm, or None
    causal       a word sees itself and the words before it, not those after it
    scale        factor on the word vectors
    dropout      fraction of their entries dropped in training, with an rng

    A model's head turns the vectors into predictions; its loss is what it is trained on.
    """

    def __init__(
        self, embedding: Embedding, layers: Sequence[TransformerLayer], *, T: int,
        positions: PositionalEncoding | LearnedPositions | None = None, norm: Norm | None = None,
        causal: bool = True, scale: float = 1.0, dropout: float = 0.0,
    ):  # fmt: skip
        self.T = T
        self.embedding = embedding
        self.positions = positions
        self.layers = layers
        self.norm = norm
        self.causal = causal
        self.scale = scale
        self.dropout: Dropout = Dropout(dropout)

    def __call__(self, ids: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        """Φ(X), and its backward, which runs once"""
        x, embedding_backward = self.embedding(ids)              # (B, T, n)
        Phi, vectors_backward = self.from_vectors(x, self.mask(ids), rng)
        return Phi, chain_rule([embedding_backward, vectors_backward])

    def from_vectors(
        self, x: Array, mask: Array | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Array, Backward]:
        """Φ(X) for the words' vectors x = E[ids] (B, T, n), and its backward, which gives dx and runs once."""
        x, positions_backward = self.add_positions(x, rng)
        backwards = [positions_backward]
        mask = to_device_of(mask, x)
        for layer in self.layers:
            x, layer_backward = layer(x, mask, rng)
            backwards.append(layer_backward)
        if self.norm is not None:
            x, norm_backward = self.norm(x)
            backwards.append(norm_backward)
        return x, chain_rule(backwards)

    def decode(self, ids: Array, cache: list[KVCache]) -> Array:
        """Φ of new words ids (B, new), which come after those in the cache: (B, new, n); no backward"""
        x, _ = self.embed(ids, None, past=cache[0].words if cache else 0)
        for layer, layer_cache in zip(self.layers, cache):
            x = layer.decode(x, layer_cache)
        return x if self.norm is None else self.norm(x)[0]

    def embed(self, ids: Array, rng: np.random.Generator | None = None, past: int = 0) -> tuple[Array, Backward]:
        """X_0, for words that come after `past` others"""
        x, embedding_backward = self.embedding(ids)              # (B, T, n)
        x, positions_backward = self.add_positions(x, rng, past)
        return x, chain_rule([embedding_backward, positions_backward])

    def add_positions(self, x: Array, rng: np.random.Generator | None = None, past: int = 0) -> tuple[Array, Backward]:
        """X_0 = scale·x (+ P), with dropout in training: what the first layer reads, of vectors x (B, T, n)"""
        backwards = []
        if self.scale != 1:
            x, scale = x * self.scale, self.scale
            backwards.append(lambda dx: dx * scale)
        if self.positions is not None:
            x, positions_backward = self.positions(x, past)
            backwards.append(positions_backward)
        x, dropout_backward = self.dropout(x, rng)
        backwards.append(dropout_backward)
        return x, chain_rule(backwards)

    def after_each_layer(self, ids: Array) -> list[Array]:
        """[X_0, X_1, …, X_L]: what the first layer reads, and what each layer makes of it; no backward"""
        states = [self.embed(ids)[0]]
        mask = to_device_of(self.mask(ids), states[0])
        for layer in self.layers:
            states.append(layer(states[-1], mask)[0])
        return states

    def mask(self, ids: Array) -> Array | None:
        """The attention mask of `mask_of`; the id −1 is an absent word."""
        return self.mask_of(to_host(ids) != ABSENT)

    def mask_of(self, present: Array) -> Array | None:
        """The attention mask: bool (T, T), or (B, 1, T, T) if words are absent; None if all words see all.

        present: bool (B, T), False for absent words
        """
        if not self.causal:
            return None
        causal = causal_mask(present.shape[1])
        return causal if present.all() else causal & present[:, None, None, :]

    def new_cache(self) -> list[KVCache]:
        """An empty KVCache for each layer, for `decode`. Causal trunks only: in others new words change old ones."""
        return [KVCache(self.T) for _ in self.layers]


class Encoder(Trunk):
    """A trunk in which every word sees all words that are present: Φ(X) is what a decoder reads

    The id −1 stands for padding, which no word sees. A sequence of nothing but padding gives no NaN: a query without
    keys gets zeros from attention.
    """

    def __init__(self, embedding: Embedding, layers: Sequence[TransformerLayer], **options: Any):
        super().__init__(embedding, layers, causal=False, **options)

    def mask_of(self, present: Array) -> Array | None:
        """The attention mask: bool (B, 1, 1, T), the same for all heads and queries; None if all words are present."""
        return None if present.all() else present[:, None, None, :]


class Decoder(Trunk):
    """A causal trunk of DecoderLayers: each word sees itself, the words before it, and all words of z, the encoder's
    output (B, S, n);   ids (B, T) → (B, T, n), and the gradient dz

    Every layer reads the same z, so dz is a sum over the layers.
    """

    layers: Sequence[DecoderLayer]

    def __call__(  # type: ignore[override]              # unlike its base class, it reads z, too
        self, ids: Array, z: Array, z_mask: Array | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Array, Backward]:
        x, embed_backward = self.embed(ids, rng)                 # (B, T, n)
        mask, z_mask, backwards = to_device_of(self.mask(ids), x), to_device_of(z_mask, x), [embed_backward]
        for layer in self.layers:
            x, layer_backward = layer(x, z, mask, z_mask, rng)
            backwards.append(layer_backward)
        x, norm_backward = self.norm(x) if self.norm else (x, identity)
        backwards.append(norm_backward)

        def backward(dx: Array) -> Array:
            embed_backward, *steps, norm_backward = take_all(backwards)
            dx = norm_backward(dx)
            dz: Any = 0
            while steps:                                         # frees what each layer kept, as chain_rule does
                dx, dz_layer = steps.pop()(dx)
                dz = dz + dz_layer
            embed_backward(dx)
            return dz

        return x, backward

    def new_cache(self, z: Array, T: int) -> list[DecoderCache]:  # type: ignore[override]
        """Caches of each layer for `decode`, for at most T words, given z (B, S, n)"""
        return [layer.new_cache(z, T) for layer in self.layers]

    def decode(  # type: ignore[override]
        self, ids: Array, cache: list[DecoderCache], z_mask: Array | None = None
    ) -> Array:
        """Φ of new words (B·k, 1), which come after those in the cache: (B·k, 1, n); no backward. See DecoderLayer."""
        past = cache[0][0].words
        x, _ = self.embed(ids, None, past)
        z_mask = to_device_of(z_mask, x)
        for layer, layer_cache in zip(self.layers, cache):
            x = layer.decode(x, layer_cache, z_mask)
        return x if self.norm is None else self.norm(x)[0]

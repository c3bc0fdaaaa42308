"""The trunk of a transformer: from words to one vector for each."""

from mini_tf.backend import beside, to_host
from mini_tf.layers.attention import KeysAndValues
from mini_tf.layers.dropout import Dropout
from mini_tf.layers.embedding import ABSENT
from mini_tf.layers.layer import Layer, walk_back

import numpy as np


class Trunk(Layer):
    """Φ(X):  X_0 = scale·E[ids] (+ P),   X_ℓ = layer_ℓ(X_{ℓ−1}),   Φ(X) = X_L (normalized);   ids (B, T) → (B, T, n)

    embedding    the Embedding E; the id −1 is an absent word: a vector of zeros, which no other word of a causal
                 trunk sees
    layers       a list of TransformerLayers
    positions    a PositionalEncoding, or None
    norm         a last LayerNorm, or None
    causal       a word sees itself and the words before it, not those after it
    scale        factor on the word vectors
    dropout      share of their entries that is dropped in training (when an rng is given)

    A model's head makes predictions of the vectors; its loss says what it is trained on.
    """

    def __init__(self, embedding, layers, *, T, positions=None, norm=None, causal=True, scale=1.0, dropout=0.0):
        self.T, self.causal, self.scale = T, causal, scale
        self.embedding, self.positions, self.layers, self.norm = embedding, positions, layers, norm
        self.dropout = Dropout(dropout)

    def __call__(self, ids, rng=None, memory=None):
        """Φ(X), and its backward, which runs once. With a memory (see `new_memory`), ids are the new words only."""
        past = memory[0].words if memory else 0
        x, embedding_backward = self.embedding(ids)              # (B, T, n)
        backwards = [embedding_backward]
        if self.scale != 1:
            x, scale = x * self.scale, self.scale
            backwards.append(lambda dx: dx * scale)
        if self.positions is not None:
            x, positions_backward = self.positions(x, past)
            backwards.append(positions_backward)
        x, dropout_backward = self.dropout(x, rng)
        backwards.append(dropout_backward)
        mask = self.mask(ids, past)
        mask = None if mask is None else beside(mask, x)
        for number, layer in enumerate(self.layers):
            x, layer_backward = layer(x, mask, rng, memory[number] if memory else None)
            backwards.append(layer_backward)
        if self.norm is not None:
            x, norm_backward = self.norm(x)
            backwards.append(norm_backward)
        return x, walk_back(backwards)

    def mask(self, ids, past=0):
        """Which word may see which: bool (T, past + T), or (B, 1, T, T) if words are absent; None if all see all.

        past: how many words before these are in memory.
        """
        T = ids.shape[1]
        if not self.causal or (T == 1 and past):
            return None
        earlier = np.tri(T, past + T, past, dtype=bool)          # query i sees key j ≤ past + i
        present = to_host(ids) != ABSENT
        return earlier if past or present.all() else earlier & present[:, None, None, :]

    def new_memory(self):
        """An empty memory, KeysAndValues for each layer. trunk(ids, memory=memory) reads ids as the words that follow.

        For causal trunks only: in others a word's vector changes with the words after it.
        """
        return [KeysAndValues(self.T) for _ in self.layers]

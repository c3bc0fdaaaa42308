"""The smallest language model with attention: one layer, and nothing around it."""

from mini_tf.backend import to_device_of, to_host
from mini_tf.checks import generator
from mini_tf.errors import UserError
from mini_tf.layers import Embedding, LearnedPositions, Linear, MultiHeadAttention, chain_rule
from mini_tf.layers.embedding import ABSENT
from mini_tf.models.objectives import next_word_cross_entropy
from mini_tf.models.options import check_embeddings, check_sizes, options_of
from mini_tf.models.windows import WindowModel
from mini_tf.types import Array, Backward, Options

import numpy as np


class OneAttention(WindowModel):
    """logits = attention(E[ids] + P)·A + b,   causal: a word sees itself and the words before it

    embeddings (c, n)    initial word vectors E
    T, H                 history length in words; heads, of dimension n/H

    No skip connection, no feed-forward, no layer norm: what a word is can reach its own prediction only through the
    attention that it pays to itself. A batch is an integer array (B, T + 1); the loss is at every position.
    Raises UserError for sizes that do not fit.
    Source: multi-head attention encoders, a course notebook, `MyLanguageModel`, with H = 1
    """

    def __init__(self, embeddings: Array, *, T: int = 32, H: int = 1, seed: int = 0):
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        check_sizes(T=T, H=H)
        if n % H:
            raise UserError(f"n = {n} is not a multiple of H = {H}, expected heads of n/H numbers each")
        rng, m = generator(seed), n // H
        self.T = T
        self.c: int = c
        self.embedding: Embedding = Embedding(embeddings)
        self.positions: LearnedPositions = LearnedPositions(T, n, rng, float(np.std(embeddings)) or 1.0, dtype)
        self.attention: MultiHeadAttention = MultiHeadAttention(n, H, m, rng, scale=m**-0.5, dtype=dtype, bias=True)
        self.A = Linear(n, c, rng, dtype=dtype)

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of windows (B, T + 1) at every word, in nats, and its backward. No dropout."""
        self.check_windows(windows)
        logits, logits_backward = self(windows[:, :-1])          # (B, T, c)
        loss, loss_backward = next_word_cross_entropy(logits, windows[:, 1:])
        return loss, chain_rule([logits_backward, loss_backward])

    def __call__(self, ids: Array) -> tuple[Array, Backward]:
        """Scores (B, T′, c) of the word after each word of histories (B, T′), and the backward"""
        x, embedding_backward = self.embedding(ids)              # (B, T′, n)
        x, positions_backward = self.positions(x)
        T = ids.shape[1]
        mask = np.tri(T, dtype=bool) & (to_host(ids) != ABSENT)[:, None, None, :]
        y, attention_backward = self.attention(x, to_device_of(mask, x))
        logits, A_backward = self.A(y)
        return logits, chain_rule([embedding_backward, positions_backward, attention_backward, A_backward])

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T."""
        ids = self.check_histories(ids)
        return self(ids if ids.shape[1] else np.full((len(ids), 1), ABSENT))[0][:, -1]

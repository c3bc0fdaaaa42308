"""The fixed-window neural language model of Bengio et al.: a hidden layer over the last T words' vectors."""

from mini_tf import ops
from mini_tf.checks import generator
from mini_tf.layers import Dropout, Embedding, Linear, Parameter, chain_rule
from mini_tf.metrics import log_frequencies
from mini_tf.models.objectives import next_word_cross_entropy
from mini_tf.models.options import check_choice, check_embeddings, check_flags, check_rates, check_sizes, options_of
from mini_tf.models.windows import WindowModel
from mini_tf.types import Array, Backward, Options

import numpy as np

COMPOSITIONS = {
    "concatenation": "e = [x_1; …; x_T], (T·n): each place has weights of its own",
    "sum": "e = Σ_t x_t, (n): the order of the words is lost",
    "mean": "e = Σ_t x_t / T, (n): the order of the words is lost",
    "maximum": "e = max_t x_t, entry by entry, (n): the order of the words is lost",
    "product": "e = Π_t x_t, entry by entry, (n): the order of the words is lost",
}
POOLED = {"sum": ops.sum_pool, "maximum": ops.max_pool, "product": ops.product_pool}
ACTIVATIONS = {"tanh": ops.tanh, "relu": ops.relu}


class FixedWindowModel(WindowModel):
    """logits = h·U + b₂,   h = f(e·W + b₁),   e the vectors x_1 … x_T of the last T words, composed;   f tanh or relu

    embeddings (c, n)    initial word vectors
    frequencies (c,)     counts of the words in the training text: b₂ starts at their log frequencies; equal by default
    T                    words in the window; the missing words of a shorter history are vectors of zeros
    k                    hidden units
    hidden_layers        1; with more, each further one is h ← f(h·W + b) with W (k, k)
    composition          "concatenation", "sum", "mean", "maximum" or "product": see COMPOSITIONS
    activation           f, "tanh" or "relu"
    train_embeddings     learn the word vectors too, as Bengio et al. do
    dropout              fraction of the entries of e and of h that is dropped in training

    A batch is an integer array (B, T + 1) of consecutive words; the last is predicted from the others. The product of a
    shorter history is 0, because the missing words are. U starts at 0, so an untrained model knows the words'
    frequencies and nothing else; without them, its loss is ln c.
    Raises UserError for sizes and options that do not fit.
    Source: Bengio et al. 2003, JMLR 3; CSCI 567 lecture 8 and CS685, fixed-window models
    """

    def __init__(
        self, embeddings: Array, frequencies: Array | None = None, *, T: int = 4, k: int = 128,
        composition: str = "concatenation", activation: str = "tanh", train_embeddings: bool = True,
        dropout: float = 0.0, hidden_layers: int = 1, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, k=k, hidden_layers=hidden_layers)
        check_flags(train_embeddings=train_embeddings)
        check_rates(dropout=dropout)
        check_choice("composition", composition, COMPOSITIONS)
        check_choice("activation", activation, ACTIVATIONS)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        self.composition = composition
        self.activation = activation
        self.embedding: Embedding = Embedding(embeddings, trainable=train_embeddings)
        self.dropout: Dropout = Dropout(dropout)
        self.hidden: Linear = Linear(T * n if composition == "concatenation" else n, k, rng, dtype=dtype)    # W, b₁
        self.further: list[Linear] = [Linear(k, k, rng, dtype=dtype) for _ in range(hidden_layers - 1)]
        self.readout: Linear = Linear(k, c, dtype=dtype)                                                     # U, b₂
        self.readout.b = Parameter(log_frequencies(frequencies, c).astype(dtype))

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the last words of windows (B, T + 1), and its backward. An rng turns dropout on."""
        self.check_windows(windows)
        logits, forward_backward = self.forward(windows[:, :-1], rng)
        loss, loss_backward = next_word_cross_entropy(logits, windows[:, -1])
        return loss, chain_rule([forward_backward, loss_backward])

    def forward(self, ids: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        """ids (B, T) → logits (B, c), backward"""
        x, embedding_backward = self.embedding(ids)              # (B, T, n)
        e, compose_backward = self.compose(x)                    # (B, T·n) or (B, n)
        e, e_dropout_backward = self.dropout(e, rng)
        h, hidden_backwards = e, []
        for layer in (self.hidden, *self.further):
            a, linear_backward = layer(h)                        # (B, k)
            h, activation_backward = ACTIVATIONS[self.activation](a)
            h, h_dropout_backward = self.dropout(h, rng)
            hidden_backwards += [linear_backward, activation_backward, h_dropout_backward]
        logits, readout_backward = self.readout(h)               # (B, c)
        return logits, chain_rule([
            embedding_backward, compose_backward, e_dropout_backward, *hidden_backwards, readout_backward,
        ])  # fmt: skip

    def compose(self, x: Array) -> tuple[Array, Backward]:
        """From the T words' vectors x (B, T, n) to one vector e for each history."""
        if self.composition in POOLED:
            return POOLED[self.composition](x)
        if self.composition == "mean":
            e, pool_backward = ops.mean_pool(x)
            return e, lambda de: pool_backward(de)[0]
        B, T, n = x.shape
        return x.reshape(B, T * n), lambda de: de.reshape(B, T, n)

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T."""
        return self.forward(self.padded(ids))[0]

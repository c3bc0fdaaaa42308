"""The language transformer of ESE-2000 Lab 6: from a history of words to the next word."""

from mini_tf import ops
from mini_tf.checks import generator, is_number, shown
from mini_tf.errors import UserError
from mini_tf.layers import Embedding, Linear, PositionalEncoding, TiedReadout, TransformerLayer, Trunk, chain_rule
from mini_tf.models.objectives import next_word_cross_entropy, vector_mse
from mini_tf.models.options import check_choice, check_embeddings, check_flags, check_rates, check_sizes, options_of
from mini_tf.models.reading import CachedReader, WindowReader
from mini_tf.models.windows import CausalTransformer
from mini_tf.ops.shapes import transpose
from mini_tf.types import Array, Backward, Options

import numpy as np
from numpy.typing import ArrayLike

READOUTS = {
    "average": "x̂ = mean over the words of Φ(X), trained by squared error against the next word's vector (Task 6.5)",
    "vec": "π = softmax(vec(Φ(X))·A), A (T·n, c), trained by cross-entropy on the word after the history (Task 6.6)",
    "shared": "π_t = softmax(Φ(X)_t·A), A (n, c) the same at every position, trained on the word after each of them",
}


class LanguageTransformer(CausalTransformer):
    """X_0 = E[ids] (+ P),   X_ℓ = X_{ℓ−1} + relu(Σ_h Y_ℓ^h),  ℓ = 1 … L,   Φ(X) = X_L,   a readout

    embeddings (c, n)    initial word vectors E, usually the eigenvector embeddings of Task 6.3
    T, L, H, m           history length in words, layers, heads, dimension of a head
    readout              "average", "vec" or "shared": see READOUTS
    causal               a word sees itself and the words before it (Task 6.12)
    layer_norm           layer norm at each layer's output (Task 6.11)
    positions            None, "geometric", "fourier", or n/2 frequencies α_i (Task 6.10)
    position_scale       factor on the encoding, whose entries are of size 1
    scaled_attention     scores times 1/√m; the lab has no factor
    train_embeddings     learn the word vectors too; the lab keeps them fixed
    tied                 "shared" only: the readout's A is the embedding table, transposed
    dropout              fraction of the entries of attention outputs that is dropped in training

    A batch is an integer array (B, T + 1) of consecutive words: a history of T words and one more. The readout's A
    starts at 0, so the loss of an untrained model is ln c, that of a uniform guess.
    Raises UserError for sizes and options that do not fit together.
    Source: ESE-2000 Lab 6, equations (13)–(15), Tasks 6.4, 6.6, 6.10–6.12
    """

    def __init__(
        self, embeddings: Array, *, T: int = 32, L: int = 6, H: int = 8, m: int = 64, readout: str = "vec",
        causal: bool = False, layer_norm: bool = False, positions: str | ArrayLike | None = None,
        position_scale: float = 1.0, scaled_attention: bool = False, train_embeddings: bool = False,
        tied: bool = False, dropout: float = 0.0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_sizes(T=T, H=H, m=m)
        check_sizes(least=0, L=L)
        check_embeddings(embeddings)
        check_choice("readout", readout, READOUTS)
        check_rates(dropout=dropout)
        check_flags(causal=causal, layer_norm=layer_norm, scaled_attention=scaled_attention)
        check_flags(train_embeddings=train_embeddings, tied=tied)
        if not is_number(position_scale) or not abs(position_scale) <= np.finfo(embeddings.dtype).max:
            raise UserError(f"position_scale is {shown(position_scale)}, expected a finite number")
        _check_combination(readout, causal, train_embeddings, tied)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        self.readout = readout
        norm, scale = "after" if layer_norm else None, m**-0.5 if scaled_attention else 1.0
        layers = [
            TransformerLayer(n, H, m, rng, norm=norm, scale=scale, dropout=dropout, dtype=dtype) for _ in range(L)
        ]
        encoding = None if positions is None else PositionalEncoding(T, n, positions, position_scale)
        embedding = Embedding(embeddings, train_embeddings)
        self.trunk: Trunk = Trunk(embedding, layers, T=T, causal=causal, positions=encoding)
        if tied:
            self.A = TiedReadout(embedding)
        elif readout != "average":
            self.A = Linear(T * n if readout == "vec" else n, c, bias=False, dtype=dtype)

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean loss over a batch of windows (B, T + 1), and its backward, which runs once.

        An rng turns dropout on. Cross-entropy in nats per word; for the readout "average", mean squared error.
        """
        self.check_windows(windows)
        histories, following = windows[:, :-1], windows[:, 1:]
        Phi, trunk_backward = self.trunk(histories, rng)         # (B, T, n)
        prediction, head_backward = self.head(Phi)
        if self.readout == "average":
            loss, loss_backward = vector_mse(prediction, self.trunk.embedding(following[:, -1])[0])
        else:
            loss, loss_backward = next_word_cross_entropy(prediction, following)
        return loss, chain_rule([trunk_backward, head_backward, loss_backward])

    def head(self, Phi: Array) -> tuple[Array, Backward]:
        """From Φ(X) (B, T, n) to predictions: x̂ (B, n), logits (B, c), or logits (B, T, c) for "shared"."""
        if self.readout == "average":
            x_hat, pool_backward = ops.mean_pool(Phi)
            return x_hat, lambda dx_hat: pool_backward(dx_hat)[0]
        if self.readout == "vec":
            B, T, n = Phi.shape
            logits, A_backward = self.A(Phi.reshape(B, T * n))   # vec(Φ(X)), word after word
            return logits, lambda dlogits: A_backward(dlogits).reshape(B, T, n)
        return self.A(Phi)

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T.

        The readout "average" predicts no probabilities: its scores are −‖x̂ − x_i‖², highest for the nearest word.
        Readouts that need T words pad a short history with absent words in front; their vectors are zero, and masked
        in a causal model.
        """
        if self.readout == "shared":
            return super().logits(ids)
        prediction, _ = self.head(self.trunk(self.padded(ids))[0])
        if self.readout == "average":
            table = self.trunk.embedding.table.data
            squares = (table * table).sum(-1) + (prediction * prediction).sum(-1, keepdims=True)     # (B, c)
            return 2 * prediction @ transpose(table) - squares
        return prediction

    def logits_after_each(self, ids: Array) -> Array:
        """Scores (B, T, c) of the word after each word of histories (B, T); for the readout "shared" only."""
        if self.readout != "shared":
            raise ValueError(f"logits_after_each: the readout {self.readout!r} predicts after the last word only")
        return super().logits_after_each(ids)

    def next_word_loss(self, windows: Array) -> float:
        """The loss of the last word of windows (B, T + 1), given the T words before it; no backward, for evaluation.

        It is the loss that "average" and "vec" are trained on. "shared" learns at every position, from histories of
        1 to T words; here only its longest history counts, so that all models face the same task.
        """
        return self.loss(windows)[0] if self.readout == "average" else super().next_word_loss(windows)

    def reader(self) -> CachedReader | WindowReader:
        """A cached reader for "shared", which is causal; else one that reads the whole window for each word."""
        return super().reader() if self.readout == "shared" else WindowReader(self)


def _check_combination(readout: str, causal: bool, train_embeddings: bool, tied: bool) -> None:
    if readout == "shared" and not causal:
        raise UserError("readout 'shared' predicts after every word and needs causal=True: else a word sees its answer")
    if readout == "average" and train_embeddings:
        raise UserError("readout 'average' needs fixed embeddings: else all words becoming equal would be the best fit")
    if tied and readout != "shared":
        raise UserError(f"tied=True needs readout 'shared', got {readout!r}: only there A has the table's shape")

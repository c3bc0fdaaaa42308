"""The recurrent language model: a state, updated by every word."""

from functools import partial

from mini_tf.backend import array_module, to_device_of, to_host
from mini_tf.checks import generator
from mini_tf.layers import Dropout, Embedding, Layer, Linear, Parameter, Recurrent, chain_rule
from mini_tf.layers.gated import CELLS as GATED
from mini_tf.layers.gated import GatedLayer
from mini_tf.metrics import log_frequencies, log_softmax_at
from mini_tf.models.objectives import next_word_cross_entropy
from mini_tf.models.options import check_choice, check_embeddings, check_flags, check_rates, check_sizes, options_of
from mini_tf.models.text_model import TextModel, checked_text
from mini_tf.ops.recurrent import ACTIVATIONS
from mini_tf.types import Array, Backward, Options, Progress

import numpy as np
from numpy.typing import ArrayLike

CELLS = {f: partial(Recurrent, activation=f) for f in ACTIVATIONS} | GATED
CHUNK = 256              # words read at a time when only probabilities are computed


class RecurrentModel(TextModel, Layer):
    """h_t = f(x_t·Wx + h_{t−1}·Wh + b),   logits_t = h_t·U + b₂;   f tanh or relu, h_0 learned;  or LSTM or GRU for f

    embeddings (c, n)    initial word vectors
    frequencies (c,)     counts of the words in the training text: b₂ starts at their log frequencies; equal by default
    cell                 "tanh" or "relu", the f above; "lstm" or "gru": see ops.lstm and ops.gru
    activation           an earlier name of cell, for tanh and relu
    k                    entries of h_t
    L                    layers: the words of each but the first are the h_t of the one below
    T                    words in a batch's windows; gradients go back through so many
    train_embeddings     learn the word vectors too
    dropout              fraction of the entries of x_t, and of h_t on its way up, dropped in training

    A state is an array (B, L·k), the h of each layer; with "lstm" (B, 2·L·k), the h and the c of each layer.

    A batch is an integer array (B, T + 1) of consecutive words. Teacher forcing: each word is predicted from the true
    words before it, not from predictions. U starts at 0, so an untrained model knows the frequencies of words and
    nothing else. Without frequencies, the state at first learns them in place of b₂, and saturates.
    Raises UserError for sizes and options that do not fit.
    Source: CSCI 567 lecture 8; CS685, recurrent models; Mikolov et al. 2010
    """

    def __init__(
        self, embeddings: Array, frequencies: Array | None = None, *, k: int = 128, T: int = 32,
        activation: str | None = None, train_embeddings: bool = True, dropout: float = 0.0, seed: int = 0,
        cell: str = "tanh", L: int = 1,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, k=k, L=L)
        check_flags(train_embeddings=train_embeddings)
        check_rates(dropout=dropout)
        if activation is not None:
            check_choice("activation", activation, ACTIVATIONS)
            cell = activation
        check_choice("cell", cell, CELLS)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        self.embedding: Embedding = Embedding(embeddings, trainable=train_embeddings)
        self.dropout: Dropout = Dropout(dropout)
        self.recurrent: Recurrent | GatedLayer = CELLS[cell](n, k, rng, dtype=dtype)
        self.above: list[Recurrent | GatedLayer] = [CELLS[cell](k, k, rng, dtype=dtype) for _ in range(L - 1)]
        self.readout: Linear = Linear(k, c, dtype=dtype)         # U, b₂
        self.readout.b = Parameter(log_frequencies(frequencies, c).astype(dtype))

    def loss(
        self, windows: Array, rng: np.random.Generator | None = None, state: Array | None = None
    ) -> tuple[float, Backward]:
        """The mean cross-entropy of windows (B, T + 1) at every word, and its backward. An rng turns dropout on.

        The states start from the learned one, or from a given state.
        """
        return self.loss_and_state(windows, rng, state)[:2]

    def loss_and_state(
        self, windows: Array, rng: np.random.Generator | None = None, state: Array | None = None
    ) -> tuple[float, Backward, Array]:
        """`loss`, and the state after the last word but one, from which the next batch can continue."""
        if windows.ndim != 2 or windows.shape[1] < 2:
            raise ValueError(f"RecurrentModel: windows have shape {windows.shape}, expected (B, T + 1) with T ≥ 1")
        h, last, read_backward = self.read_on(windows[:, :-1], state, rng)
        dropped, dropout_backward = self.dropout(h, rng)
        logits, readout_backward = self.readout(dropped)         # (B, T, c)
        loss, loss_backward = next_word_cross_entropy(logits, windows[:, 1:])
        return loss, chain_rule([read_backward, dropout_backward, readout_backward, loss_backward]), last

    def read(
        self, ids: Array, state: Array | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Array, Backward]:
        """The top layer's h (B, T, k) after each of the words (B, T), and the backward through time."""
        h, _, backward = self.read_on(ids, state, rng)
        return h, backward

    def read_on(
        self, ids: Array, state: Array | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Array, Array, Backward]:
        """`read`, and before its backward the state after the last word."""
        layers = [self.recurrent, *self.above]
        x, embedding_backward = self.embedding(ids)              # (B, T, n)
        starts = [None] * len(layers) if state is None else array_module(state).split(state, len(layers), axis=-1)
        lasts, backwards = [], [embedding_backward]
        for layer, start in zip(layers, starts):
            x, dropout_backward = self.dropout(x, rng)
            x, last, layer_backward = layer.read_on(x, start)    # (B, T, k)
            lasts.append(last)
            backwards += dropout_backward, layer_backward
        return x, array_module(x).concatenate(lasts, axis=-1), chain_rule(backwards)

    def start(self, B: int) -> Array:
        """The state before any word, of B texts"""
        starts = [layer.first for layer in (self.recurrent, *self.above)]
        return array_module(*starts).concatenate(starts)[None].repeat(B, axis=0)

    def predict(self, state: Array) -> Array:
        """Scores (B, c) of the word after a state"""
        k, of_layer = self.readout.W.data.shape[0], state.shape[-1] // (1 + len(self.above))
        return self.readout(state[:, -of_layer:][:, :k])[0]      # the top layer's h

    def logits_after_each(self, ids: Array, state: Array | None = None) -> Array:
        """Scores (B, T, c) of the word after each of (B, T) words."""
        h, _ = self.read(ids, state)
        return self.readout(h)[0]

    def logits(self, ids: Array) -> Array:
        """Scores (B, c) of the word that follows histories (B, words) of any length, 0 included."""
        if ids.shape[1] == 0:
            return self.predict(self.start(len(ids)))
        h, _ = self.read(ids)
        return self.readout(h[:, -1])[0]                         # only the last word's prediction is needed

    def reader(self) -> "StateReader":
        """A reader that keeps the state: it depends on every word read."""
        return StateReader(self)

    def log_probabilities(self, ids: ArrayLike, start: int = 0, on_batch: Progress = None) -> Array:
        """ln p of each word from `start` on, given all words before it, read once from left to right: (words − start,)

        ids (words,); on_batch(done, of) is called after each piece, for a progress bar.
        Raises UserError for ids outside the vocabulary, and for weights that are NaN.
        """
        ids, start = checked_text(ids, self.c, start)
        state, log_p = self.start(1), [np.zeros(0)]
        if start == 0 and len(ids):
            log_p.append(log_softmax_at(self.predict(state), ids[:1]))
        for first in range(0, len(ids) - 1, CHUNK):
            words, following = ids[first : first + CHUNK], ids[first + 1 : first + CHUNK + 1]
            h, state, _ = self.read_on(words[None], state)
            skipped = max(start - first - 1, 0)                  # predictions before `start`
            if skipped < len(following):
                logits, _ = self.readout(h[0, skipped : len(following)])
                log_p.append(log_softmax_at(logits, following[skipped:]))
            if on_batch:
                on_batch(max(first + len(words) - start, 0), len(ids) - start)
        return np.concatenate(log_p)


class StateReader:
    """A reader, as in `models/reading.py`, that keeps the state of a recurrent network: it sees all words."""

    T = None

    def __init__(self, model: RecurrentModel):
        self.model = model
        self.state: Array = model.start(1)

    def read(self, new: Array) -> Array:
        if len(new):
            _, self.state, _ = self.model.read_on(np.asarray(new)[None], self.state)
        return self.model.predict(self.state)


class CarriedState(Layer):
    """A recurrent model trained on consecutive windows: each batch starts from the state that the last one left.

    So predictions depend on all words so far, while gradients go back T words and no further: truncated backpropagation
    through time. A batch whose first words are not the last ones of the batch before starts from h_0 again. So does
    every `anew`-th batch: only such batches train h_0, and a bad state is not carried on forever.
    Source: Williams, Peng 1990; Mikolov et al. 2010
    """

    def __init__(self, model: RecurrentModel, anew: int | None = None):
        self.model = model
        self.anew = anew
        self.carried: Array | None = None
        self.last_words: Array | None = None
        self.batches: int = 0

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """model.loss, from the carried state."""
        return self.loss_from(self.carried_to(windows), windows, rng)

    def carried_to(self, windows: Array) -> Array | None:
        """The state that the windows of the next batch start from; None if they start from h_0."""
        continued = self.last_words is not None and np.array_equal(to_host(windows[:, 0]), self.last_words)
        if self.anew and self.batches % self.anew == 0:
            continued = False
        self.last_words = to_host(windows[:, -1]).copy()
        self.batches += 1
        return self.carried if continued else None

    def loss_from(
        self, carried: Array | None, windows: Array, rng: np.random.Generator | None = None
    ) -> tuple[float, Backward]:
        """model.loss, from that state; the windows' last state is carried on."""
        loss, backward, self.carried = self.model.loss_and_state(windows, rng, carried)
        return loss, backward

    def state(self) -> dict[str, Array]:
        if self.carried is None or self.last_words is None:
            return {}
        return {"carried": self.carried, "last_words": self.last_words, "batches": np.array([self.batches])}

    def restore(self, state: dict[str, Array]) -> None:
        self.carried, self.last_words, self.batches = None, None, 0
        if state:
            self.carried = to_device_of(state["carried"], self.model.readout.W.data)
            self.last_words, self.batches = state["last_words"], int(state["batches"][0])

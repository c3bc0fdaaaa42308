"""Sequence to sequence by recurrent networks, with attention over the encoder's states, or through one fixed vector."""

from typing import TYPE_CHECKING

from mini_tf import ops
from mini_tf.backend import array_module, to_device_of, to_host
from mini_tf.checks import generator
from mini_tf.errors import UserError
from mini_tf.layers import Dropout, Embedding, Linear, TiedReadout, chain_rule
from mini_tf.layers.embedding import ABSENT
from mini_tf.layers.gated import CELLS, BothDirections, GatedLayer, of_h
from mini_tf.layers.linear import normal
from mini_tf.layers.sequence_attention import SCORES, SequenceAttention
from mini_tf.models.objectives import label_cross_entropy
from mini_tf.models.options import check_choice, check_dtype, check_rates, check_sizes, options_of
from mini_tf.models.saliency import record_attention
from mini_tf.models.translation_model import TranslationModel
from mini_tf.types import Array, Backward, Options

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from mini_tf.training.pair_batches import SentenceBatch


class RecurrentTranslator(TranslationModel):
    """z = encoder(source),   h_t = decoder(target so far),   context_t = attention(h_t, z),
    Φ_t = tanh([h_t, context_t]·W + b),   π_t = softmax(Φ_t·Eᵀ): the next word of the translation

    source_words, target_words   sizes of the vocabularies
    cell          "lstm" or "gru"
    attention     "multiplicative" or "additive" scores; "none": the decoder knows of the source what is in its first
                  state, one vector, and nothing else
    n, k, L       embedding dimension; entries of a state; layers of the encoder, which read in both directions, and of
                  the decoder
    T             the most words of a source sentence, and of a translation with its [SOS]
    dropout       share of the entries of word vectors, of what a layer passes up and of Φ dropped in training
    smoothing     of the labels in training: see ops.cross_entropy

    Each layer of the decoder starts at tanh(last·W + b); last: the encoder's states after the last word, →, and after
    the first, ←. E, the table of the target words' vectors, is the readout. Its entries have variance 1/n at first;
    encoder and decoder read √n times a word's vector, as a Translator's do: without the factor they learn more slowly.
    A batch is that of a Translator. Raises UserError for sizes and options that do not fit together.
    Source: Sutskever, Vinyals, Le 2014, arXiv:1409.3215; Bahdanau, Cho, Bengio 2015, arXiv:1409.0473; Luong, Pham,
    Manning 2015, arXiv:1508.04025; CMU 10-417 HW3a
    """

    def __init__(
        self, source_words: int, target_words: int, *, cell: str = "lstm", attention: str = "multiplicative",
        n: int = 256, k: int = 256, L: int = 1, T: int = 32, dropout: float = 0.1, smoothing: float = 0.1,
        seed: int = 0, dtype: DTypeLike = "float32",
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_sizes(source_words=source_words, target_words=target_words, n=n, k=k, L=L, T=T)
        check_choice("cell", cell, CELLS)
        check_choice("attention", attention, [*SCORES, "none"])
        check_rates(dropout=dropout, smoothing=smoothing)
        check_dtype(dtype)
        if k % 2:
            raise UserError(f"k is {k}, expected an even k: half of the encoder's states read in each direction")
        rng, sizes = generator(seed), [n] + [k] * (L - 1)
        self.T = T
        self.sizes = source_words, target_words
        self.smoothing = smoothing
        self.scale: float = n**0.5
        self.source_table: Embedding = Embedding(normal(rng, (source_words, n), n**-0.5, dtype))
        self.target_table: Embedding = Embedding(normal(rng, (target_words, n), n**-0.5, dtype))
        self.encoder: list[BothDirections] = [BothDirections(size, k, rng, cell, dtype) for size in sizes]
        self.decoder: list[GatedLayer] = [CELLS[cell](size, k, rng, dtype, start=False) for size in sizes]
        self.first_states: list[Linear] = [Linear(k, layer.parts * k, rng, dtype=dtype) for layer in self.decoder]
        self.attention: SequenceAttention | None = None
        if attention != "none":
            self.attention = SCORES[attention](k, k, rng, dtype)
        self.combine: Linear = Linear(k if attention == "none" else 2 * k, n, rng, dtype=dtype)
        self.readout: TiedReadout = TiedReadout(self.target_table)
        self.dropout: Dropout = Dropout(dropout)

    def loss(self, batch: "SentenceBatch", rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the words of the translations and their [EOS], in nats, and its backward

        Teacher forcing: each word is predicted from the true words before it. An rng means training: it turns dropout
        and label smoothing on.
        """
        self.check(batch.source, batch.target[:, :-1])
        z, encode_backward = self.encode(batch.source, rng)                          # (B, S, k)
        first, first_backward = self.first(z)
        Phi, _, decode_backward = self.decode(batch.target[:, :-1], first, z, mask_of(batch.source, z), rng)
        logits, readout_backward = self.readout(Phi)                                 # (B, U + 1, c)
        smoothing = 0.0 if rng is None else self.smoothing
        loss, loss_backward = label_cross_entropy(logits, batch.target[:, 1:], ABSENT, smoothing)

        def backward(dloss: float = 1.0) -> None:
            dfirst, dz = decode_backward(readout_backward(loss_backward(dloss)))
            encode_backward(dz + first_backward(dfirst))

        return loss, backward

    def encode(self, ids: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        """The encoder's states z (B, S, k), of both directions"""
        words, embedding_backward = self.source_table(ids)
        x, present = self.scale * words, words_present(ids, words)
        backwards: list[Backward] = [embedding_backward, lambda dx: self.scale * dx]
        for layer in self.encoder:
            x, dropout_backward = self.dropout(x, rng)
            x, layer_backward = layer(x, present)
            backwards += dropout_backward, layer_backward
        return x, chain_rule(backwards)

    def first(self, z: Array) -> tuple[list[Array], Backward]:
        """The decoder's first states: (parts, B, k) for each layer"""
        half = z.shape[-1] // 2
        last = array_module(z).concatenate([z[:, -1, :half], z[:, 0, half:]], axis=-1)           # (B, k)
        states, backwards = [], []
        for linear in self.first_states:
            a, linear_backward = linear(last)                            # (B, parts·k)
            y, tanh_backward = ops.tanh(a)
            states.append(y.reshape(len(z), -1, 2 * half).swapaxes(0, 1))
            backwards.append((tanh_backward, linear_backward))

        def backward(dstates: list[Array]) -> Array:
            dz = array_module(z).zeros_like(z)
            for dstate, (tanh_backward, linear_backward) in zip(dstates, backwards):
                dlast = linear_backward(tanh_backward(dstate.swapaxes(0, 1).reshape(len(z), -1)))
                dz[:, -1, :half] += dlast[:, :half]
                dz[:, 0, half:] += dlast[:, half:]
            return dz

        return states, backward

    def decode(
        self, ids: Array, states: list[Array], z: Array, mask: Array | None, rng: np.random.Generator | None = None
    ) -> tuple[Array, list[Array], Backward]:
        """Φ (B, U, n) after each word, from these states of the decoder; its states after the last word; the backward,
        which gives dstates and dz
        """
        words, embedding_backward = self.target_table(ids)
        x, last, backwards = self.scale * words, [], []
        for layer, state in zip(self.decoder, states):
            x, dropout_backward = self.dropout(x, rng)
            of_layer, layer_backward = layer(x, state)                   # (parts, B, U, k)
            x = of_layer[0]
            last.append(of_layer[:, :, -1])
            backwards.append((dropout_backward, of_layer, layer_backward))
        h, attention_backward = x, None
        if self.attention is not None:
            context, attention_backward = self.attention(h, z, mask)
            x = array_module(h).concatenate([h, context], axis=-1)       # (B, U, 2k)
        a, combine_backward = self.combine(x)
        y, tanh_backward = ops.tanh(a)
        Phi, phi_backward = self.dropout(y, rng)                         # (B, U, n)

        def backward(dPhi: Array) -> tuple[list[Array], Array]:
            dx = combine_backward(tanh_backward(phi_backward(dPhi)))
            dz = array_module(z).zeros_like(z)
            if attention_backward is not None:
                k = h.shape[-1]
                dh, dz = attention_backward(dx[..., k:])
                dx = dx[..., :k] + dh
            dstates: list[Array] = []
            for dropout_backward, of_layer, layer_backward in reversed(backwards):
                dx, dstate = layer_backward(of_h(dx, of_layer))
                dx = dropout_backward(dx)
                dstates.insert(0, dstate)
            embedding_backward(self.scale * dx)
            return dstates, dz

        return Phi, last, backward

    def logits(self, source: Array, target: Array) -> Array:
        """Scores (B, U, c) of the word after each word of target (B, U), given source (B, S)."""
        self.check(source, target)
        z, _ = self.encode(source)
        return self.readout(self.decode(target, self.first(z)[0], z, mask_of(source, z))[0])[0]

    def writer(self, source: Array) -> "RecurrentWriter":
        """A writer of translations of source (B, S), for `decoding.beam_search`."""
        self.check(source)
        return RecurrentWriter(self, source)

    def attention_weights(self, source: Array, target: Array) -> dict[str, Array]:
        """{"across": A (1, 1, U, S)}, or {} without attention: see TranslationModel."""
        if self.attention is None:
            return {}
        (A,) = record_attention(lambda: self.logits(source[None], target[None]))         # (1, U, S)
        return {"across": A[None]}

    def check(self, *sentences: Array) -> None:
        """Raises ValueError unless all are (B, words) with at most T words."""
        for ids in sentences:
            if ids.ndim != 2 or not 0 < ids.shape[1] <= self.T:
                raise ValueError(f"RecurrentTranslator: sentences have shape {ids.shape}, expected (B, words) with 1 "
                                 f"to T = {self.T} words")  # fmt: skip


class RecurrentWriter:
    """Writes translations word by word, several hypotheses for each of B sentences; keeps the decoder's states."""

    def __init__(self, model: RecurrentTranslator, source: Array):
        self.model = model
        self.sentences: int = len(source)
        self.z: Array = model.encode(source)[0]
        self.mask = mask_of(source, self.z)
        self.states: list[Array] = model.first(self.z)[0]
        self.k: int = 1                                                  # hypotheses of each sentence

    def read(self, words: Array) -> Array:
        """Scores (B, k, c) of what follows one more word of each hypothesis: words (B, k)"""
        B, self.k = words.shape
        z = self.z.repeat(self.k, axis=0)
        mask = None if self.mask is None else self.mask.repeat(self.k, axis=0)
        Phi, self.states, _ = self.model.decode(words.reshape(-1, 1), self.states, z, mask)
        return self.model.readout(Phi.reshape(B, self.k, -1))[0]

    def choose(self, sentences: Array, hypotheses: Array) -> None:
        """Go on with these sentences (B′,), and these hypotheses of each (B′, k′)."""
        rows = (sentences[:, None] * self.k + hypotheses).reshape(-1)
        self.states = [state[:, rows] for state in self.states]
        self.z = self.z[sentences]
        self.mask = None if self.mask is None else self.mask[sentences]


def words_present(source: Array, reference: Array) -> Array | None:
    """Which words are there: bool (B, S), on the device of `reference`; None if all are"""
    present = to_host(source) != ABSENT
    return None if present.all() else to_device_of(present, reference)


def mask_of(source: Array, z: Array) -> Array | None:
    """`words_present` as a mask for attention: (B, 1, S)"""
    present = words_present(source, z)
    return None if present is None else present[:, None]

"""A transformer that can also copy words: the language model that predicts best in this project."""

import math
from collections.abc import Callable

from mini_tf import ops
from mini_tf.backend import to_device_of, to_host
from mini_tf.checks import generator
from mini_tf.layers import (
    Dropout,
    Embedding,
    KVCache,
    Layer,
    LayerNorm,
    Linear,
    Parameter,
    TiedReadout,
    TransformerLayer,
    Trunk,
    chain_rule,
)
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import log_frequencies, log_softmax_at, no_nan
from mini_tf.models.options import check_embeddings, check_rates, check_sizes, options_of
from mini_tf.models.reading import CachedReader
from mini_tf.models.text_model import TextModel, checked_text
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import ArrayLike


class PointerTransformer(TextModel, Layer):
    """p(w) = g·softmax(h·Eᵀ + b)_w + (1 − g)·Σ_j P_j·1(w_j = w)

    h = the last layer's output, normed, at the last word;  g = sigmoid(h·w_g + b_g);
    P = softmax over the words j of the history of (h·Q)·(h_j·K)ᵀ/√m:  one more attention head, whose weights are taken
    as the probabilities of repeating each word. So even a name that never occurred in training can be predicted again.

    embeddings (c, n)    initial word vectors E, shared with the readout; entries of variance 1/n
    frequencies (c,)     how often each word occurs in training: b is the ln of its share, fixed; equal if not given
    T, L, H, m, f        history length in words, layers, heads, dimension of a head, hidden units of feed-forward
    dropout              share of the entries that is dropped in training from what each layer adds; 1.5 times as much
                         from word vectors, and from h before the readout

    Layers have the norm before each branch, and their scores fall with distance, see distance_bias; the pointer's do
    not. The first word of a text is predicted by b alone. A batch is an integer array (B, T + 1) of consecutive words;
    all but the first are predicted. Raises UserError for sizes that do not fit.
    Source: Vaswani et al. 2017; Press, Wolf 2017 (one table for both ends); Press et al. 2021 (distance); Merity et al.
    2016 (pointer, gate)
    """

    def __init__(
        self, embeddings: Array, frequencies: Array | None = None, *, T: int = 128, L: int = 3, H: int = 4, m: int = 48,
        f: int = 384, dropout: float = 0.2, seed: int = 0,
    ):  # fmt: skip
        self.config = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, H=H, m=m, f=f)
        check_sizes(least=0, L=L)
        check_rates(2 / 3, dropout=dropout)              # some places drop 1.5 times as much
        rng = generator(seed)
        (self.c, n), dtype = embeddings.shape, embeddings.dtype
        self.T, self.scale = T, m**-0.5

        layers = [
            TransformerLayer(
                n, H, m, rng, relu=False, norm="before", f=f, scale=m**-0.5, dropout=dropout, distances=True,
                dtype=dtype,
            )
            for _ in range(L)
        ]  # fmt: skip
        self.trunk = Trunk(
            Embedding(embeddings), layers, T=T,
            norm=LayerNorm(n, dtype), scale=math.sqrt(n), dropout=1.5 * dropout,         # word vectors of variance 1
        )  # fmt: skip
        self.readout_dropout = Dropout(1.5 * dropout)
        self.b = Parameter(log_frequencies(frequencies, self.c).astype(dtype), trainable=False)
        self.readout = TiedReadout(self.trunk.embedding, self.b)
        self.query, self.key = (Linear(n, m, rng, bias=False, dtype=dtype) for _ in range(2))
        self.gate = Linear(n, 1, dtype=dtype)
        self.gate.parameters()["b"].data[...] = 2                        # at first, g = 0.88

    def loss(self, windows: Array, rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean of −ln p over all words of windows (B, T + 1) but the first, in nats, and its backward.

        An rng turns dropout on.
        """
        if windows.ndim != 2 or not 2 <= windows.shape[1] <= self.T + 1:
            raise ValueError(f"PointerTransformer: windows have shape {windows.shape}, expected (B, 2 to {self.T + 1})")
        given, following = windows[:, :-1], windows[:, 1:]
        self.check_present(given)
        h, trunk_backward = self.trunk(given, rng)               # (B, T, n)
        own, copying, gate, parts_backward = self.parts(h, rng)
        given, following = to_device_of(given, h), to_device_of(following, h)
        copied, copied_backward = ops.copied(copying, given, following)          # (B, T)
        loss, loss_backward = ops.mixture_cross_entropy(own, gate, copied, following)

        def loss_and_copied_backward(dloss):
            down, dgate, dcopied, _ = loss_backward(dloss)
            return down, copied_backward(dcopied)[0], dgate

        backward = chain_rule([trunk_backward, parts_backward, loss_and_copied_backward])
        return loss, lambda dloss=1.0: backward(dloss)

    def check_present(self, ids: Array) -> None:
        """Raise ValueError for absent words, which cannot be copied."""
        if (to_host(ids) == ABSENT).any():
            raise ValueError("PointerTransformer: ids has the id -1, expected no absent words; give shorter histories")

    def parts(self, h: Array, rng: np.random.Generator | None = None) -> tuple[Array, Array, Array, Backward]:
        """The parts of p after each word: own logits (B, T, c), copying weights P (B, T, T), the gate's logits (B, T);

        and their backward, from a tuple of their three gradients to that of h.
        """
        kept, dropout_backward = self.readout_dropout(h, rng)
        own, readout_backward = self.readout(kept)
        query, query_backward = self.query(h)                    # (B, T, m)
        key, key_backward = self.key(h)
        P, P_backward = self.point(query, key)                   # (B, T, T)
        gate, gate_backward = self.gate(h)                       # (B, T, 1)

        def backward(gradients):
            down, dP, dgate = gradients
            dquery, dkey, _, _, _ = P_backward(dP)
            return (                                             # h was used four times
                dropout_backward(readout_backward(down)) + query_backward(dquery) + key_backward(dkey)
                + gate_backward(dgate[..., None])
            )

        return own, P, gate[..., 0], backward

    def point(self, query: Array, key: Array) -> tuple[Array, Backward]:
        """P (B, asked, T) for the queries of the last `asked` of T words, and its backward

        It is attention whose values are the rows of the identity matrix, so that its output is its weights.
        """
        B, T, _ = key.shape
        places = to_device_of(np.eye(T, dtype=key.dtype)[None].repeat(B, axis=0), key)
        mask = to_device_of(np.tri(T, dtype=bool)[T - query.shape[1] :], key)  # itself and those before
        return ops.attention(query, key, places, mask, self.scale)

    def after_last(self, ids: Array, asked: int) -> tuple[Array, Array, Array]:
        """`parts` after the last `asked` words, without a backward: (B, asked, c), (B, asked, T′), (B, asked)"""
        self.check_present(ids)
        h, _ = self.trunk(ids)
        return self.parts_of(h[:, -asked:], self.key(h)[0])

    def parts_of(self, h: Array, keys: Array) -> tuple[Array, Array, Array]:
        """`parts` after the words of h (B, asked, n), which are the last of the words of the keys (B, T′, m)"""
        P, _ = self.point(self.query(h)[0], keys)
        return self.readout(h)[0], P, self.gate(h)[0][..., 0]

    def logits(self, ids: Array) -> Array:
        """ln p (B, c) of the word that follows histories (B, T′) of any length T′ ≤ T; of no words, by b alone."""
        B, length = ids.shape
        if length > self.T:
            raise ValueError(f"logits: histories of {length} words, expected at most T = {self.T}")
        if length == 0:
            return to_host(self.b.data)[None].repeat(B, axis=0)
        return ln_p_of_all(*self.after_last(ids, 1), ids)[:, 0]

    def logits_after_each(self, ids: Array) -> Array:
        """ln p (B, T′, c) of the word after each word of ids (B, T′)."""
        return ln_p_of_all(*self.after_last(ids, ids.shape[1]), ids)

    def reader(self) -> CachedReader:
        return CachedReader(self)

    def new_cache(self) -> "PointerCache":
        return PointerCache(self)

    def read(self, ids: Array, cache: "PointerCache") -> Array:
        """ln p (B, c) of the word that follows the new words (B, new), which come after those in the cache."""
        h = self.trunk.decode(ids, cache.trunk)
        key = self.key(h)[0][:, None]                            # (B, 1, new, m): one head
        keys, _ = cache.keys.extend(key, key)
        cache.ids = ids if cache.ids is None else np.concatenate([cache.ids, ids], axis=1)
        return ln_p_of_all(*self.parts_of(h[:, -1:], keys[:, 0]), cache.ids)[:, 0]

    def log_probabilities(
        self, ids: ArrayLike, start: int = 0, on_batch: Callable[[int, int], None] | None = None
    ) -> Array:
        """ln p of each word from `start` on, given the T/2 to T words before it, or all there are: (words − start,)

        ids (words,); on_batch(done, of) is called after each window, for a progress bar. Windows overlap by half; the
        readout, most of the work, is computed once for each word.
        Raises UserError for ids outside the vocabulary, and for weights that are NaN.
        """
        ids, start = checked_text(ids, self.c, start)
        log_p, half = [np.zeros(0)], max(self.T // 2, 1)
        if start == 0 and len(ids):
            log_p.append(log_softmax_at(self.b.data[None], ids[:1]))
        for first in range(max(start, 1), len(ids), half):
            stop = min(first + half, len(ids))                   # predicts the words first … stop − 1
            log_p.append(self._ln_p(ids[max(stop - 1 - self.T, 0) : stop], stop - first))
            if on_batch:
                on_batch(stop - start, len(ids) - start)
        return np.concatenate(log_p)

    def _ln_p(self, words, asked):
        """ln p of the last `asked` words, each given those before it, in double precision."""
        given, following = words[None, :-1], words[None, -asked:]
        own, P, gate = self.after_last(given, asked)
        copied, _ = ops.copied(P, to_device_of(given, P), to_device_of(following, P))
        copied, gate = no_nan(copied).astype(np.float64), no_nan(gate).astype(np.float64)
        ln_copied = np.log(np.maximum(copied, np.finfo(np.float64).tiny))
        own = log_softmax_at(own, following)
        return np.logaddexp(own - np.logaddexp(0, -gate), ln_copied - np.logaddexp(0, gate))[0]


class PointerCache:
    """What a PointerTransformer remembers of the words that it has read."""

    ids: Array | None

    def __init__(self, model: PointerTransformer):
        self.trunk, self.keys = model.trunk.new_cache(), KVCache(model.T)
        self.ids = None                                          # the words themselves, (B, words)


def ln_p_of_all(own: Array, P: Array, gate: Array, ids: Array) -> Array:
    """ln p (B, asked, c) of all words of the vocabulary, from own logits (B, asked, c), the gate's logits (B, asked),
    and copying weights P (B, asked, T′) of the words ids (B, T′)
    """
    g = to_host(ops.sigmoid(gate)[0])[..., None]                 # (B, asked, 1)
    p = g * to_host(ops.softmax(own)[0])
    rows, places = np.arange(len(p))[:, None, None], np.arange(p.shape[1])[:, None]
    np.add.at(p, (rows, places, to_host(ids)[:, None, :]), (1 - g) * to_host(P))
    return np.log(np.maximum(p, np.finfo(p.dtype).tiny))

"""Masked words: a model that sees the words on both sides of a gap, and predicts what it hides."""

from dataclasses import dataclass

from mini_tf import ops
from mini_tf.backend import to_device_of, to_host
from mini_tf.checks import check_rng, generator, is_number
from mini_tf.errors import UserError
from mini_tf.layers import (
    Embedding,
    Encoder,
    Layer,
    LayerNorm,
    Parameter,
    PositionalEncoding,
    TiedReadout,
    chain_rule,
    gpt_layers,
)
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import log_frequencies, log_softmax
from mini_tf.models.objectives import label_cross_entropy
from mini_tf.models.options import check_embeddings, check_rates, check_sizes, check_texts, options_of
from mini_tf.models.saved import EmbeddingModel
from mini_tf.types import Array, Backward, Options

import numpy as np

MASK = 0                             # the id of the word "[MASK]", which replaces a hidden word


class MaskedWordModel(EmbeddingModel, Layer):
    """logits_t = Φ(X)_t·Eᵀ + b at the hidden words,   Φ an encoder: every word sees the words on both sides of it

    embeddings (c, n)    initial word vectors E, shared with the readout; the word 0 is [MASK]
    frequencies (c,)     counts of the words in the training text: b starts at their log frequencies; equal by default
    T, L, H, m, f        most words of a text, layers, heads, dimension of a head, hidden units of feed-forward
    dropout              fraction of the entries of word vectors and of each branch's output dropped in training

    A batch is a MaskedBatch. Only the hidden words count in the loss: the others can be seen, and copying them teaches
    nothing. So only the hidden words' vectors go through the readout, which saves six sevenths of its products.
    Raises UserError for sizes that do not fit.
    Source: Devlin et al. 2019, arXiv:1810.04805, section 3.1
    """

    def __init__(
        self, embeddings: Array, frequencies: Array | None = None, *, T: int = 32, L: int = 2, H: int = 4, m: int = 32,
        f: int = 512, dropout: float = 0.0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, L=L, H=H, m=m, f=f)
        check_rates(dropout=dropout)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        layers = gpt_layers(L, n, H, m, f, rng, dropout, dtype)
        positions, norm = PositionalEncoding(T, n, scale=n**-0.5), LayerNorm(n, dtype)
        embedding = Embedding(embeddings)
        self.trunk: Encoder = Encoder(embedding, layers, T=T, positions=positions, norm=norm, dropout=dropout)
        self.A = TiedReadout(embedding, Parameter(log_frequencies(frequencies, c).astype(dtype)))

    def loss(self, batch: "MaskedBatch", rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the hidden words, in nats, and its backward. An rng turns dropout on."""
        ids, hidden = check_texts(batch.ids, self.T, "MaskedWordModel"), batch.targets != ABSENT
        Phi, trunk_backward = self.trunk(ids, rng)                               # (B, T′, n)
        selected, select_backward = _select(Phi, hidden)                         # (hidden words, n)
        logits, A_backward = self.A(selected)                                    # (hidden words, c)
        loss, loss_backward = label_cross_entropy(logits, batch.targets[hidden])
        return loss, chain_rule([trunk_backward, select_backward, A_backward, loss_backward])

    def log_probabilities(self, ids: Array, place: int) -> Array:
        """ln p (c,) of each word at a place of a text (T′,), given all other words; −∞ for [MASK] itself."""
        Phi, _ = self.trunk(check_texts(ids[None], self.T, "MaskedWordModel"))
        logits = self.A(Phi[:, place])[0]                                        # (1, c)
        log_p = log_softmax(logits[:, MASK + 1 :])[0]
        return np.concatenate([[-np.inf], log_p])


def _select(Phi: Array, mask: Array) -> tuple[Array, Backward]:
    """The vectors where the mask is True: Φ (B, T, n), mask bool (B, T) → (words, n);  dΦ is 0 elsewhere"""
    B, T, n = Phi.shape
    rows = to_device_of(np.flatnonzero(to_host(mask)), Phi)
    selected, embedding_backward = ops.embedding(Phi.reshape(B * T, n), rows)    # rows of a table, as word vectors are
    return selected, lambda dselected: embedding_backward(dselected)[0].reshape(B, T, n)


@dataclass(frozen=True, eq=False)
class MaskedBatch:
    """B texts in which words are hidden.

    ids      (B, T) int64: what the model reads; ABSENT = −1 is padding
    targets  (B, T) int64: the true word where one is to be predicted, ABSENT elsewhere

    len(batch) is B. batch.size, which is np.size(batch), is the number of words read.
    """

    ids: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def predictions(self) -> Array:
        """How many predictions of each example the loss is a mean over: (B,)"""
        return (self.targets != ABSENT).sum(1)

    @property
    def size(self) -> int:
        return int((self.ids != ABSENT).sum())


def hide_words(ids: Array, c: int, rng: np.random.Generator, share: float = 0.15) -> MaskedBatch:
    """A MaskedBatch of texts ids (B, T): each word is chosen with probability `share`, and predicted.

    A chosen word is read as [MASK] 8 times of 10, as a random word once, and as itself once. The last two, because
    later texts have no [MASK]: the model has to predict every word, hidden or not.
    At least one word is chosen. Raises UserError unless 0 < share ≤ 1 and there is a word.
    Source: Devlin et al. 2019, arXiv:1810.04805, section 3.1
    """
    check_rng(rng)
    present = ids != ABSENT
    if not is_number(share) or not 0 < share <= 1 or not present.any():
        raise UserError(f"hide_words: share is {share} and there are {present.sum()} words, expected 0 < share ≤ 1 and "
                        "at least one word")  # fmt: skip
    chosen = (rng.random(ids.shape) < share) & present
    if not chosen.any():
        chosen.flat[rng.choice(np.flatnonzero(present))] = True
    draw, random_words = rng.random(ids.shape), rng.integers(MASK + 1, c, ids.shape)
    read = np.where(chosen & (draw < 0.8), MASK, ids)
    read = np.where(chosen & (draw >= 0.8) & (draw < 0.9), random_words, read)
    return MaskedBatch(read, np.where(chosen, ids, ABSENT))

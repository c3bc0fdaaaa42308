"""From a text to its class: a bag of word vectors, or an attention encoder."""

from typing import TYPE_CHECKING, Any, Self

from mini_tf import ops
from mini_tf.backend import array_module, to_device_of, to_host
from mini_tf.checks import check_rng, generator
from mini_tf.errors import UserError
from mini_tf.layers import (
    ClassWord,
    Dropout,
    Embedding,
    Encoder,
    FeedForward,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
    PositionalEncoding,
    Trunk,
    chain_rule,
    gpt_layers,
)
from mini_tf.layers.embedding import ABSENT
from mini_tf.models.gpt import GPT
from mini_tf.models.objectives import label_cross_entropy
from mini_tf.models.options import (
    check_choice,
    check_embeddings,
    check_flags,
    check_rates,
    check_sizes,
    check_texts,
    options_of,
)
from mini_tf.models.saved import EmbeddingModel
from mini_tf.types import Array, Backward, Options

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.text_batches import TextBatch

POSITIONS = (None, "sinusoidal", "learned")
POOLS = {
    "mean": "e = mean of Φ(X) over the words present",
    "first": "e = Φ(X) of the word [CLS], which is put before every text",
}


class Classifier(EmbeddingModel, Layer):
    """logits = norm(e)·A + b,   e the vector of a text: pooled from Φ(X), then in blocks  e ← e + feed-forward(norm(e))

    embeddings (c, n)    initial word vectors E
    classes              the number of classes
    T                    the most words of a text
    L, H, m, f           layers of attention, heads, dimension of a head, hidden units of feed-forward (0: without).
                         With L = 0 no word sees another: the text is a bag of words
    positions            None, "sinusoidal" or "learned"
    pool                 "mean" or "first": see POOLS
    causal               a word sees itself and the words before it, as in a language model
    blocks, k            of the residual MLP, and hidden units of each
    train_embeddings     learn the word vectors too
    dropout              fraction of the entries of word vectors, of each branch's output and of e dropped in training
    word_dropout         fraction of the words that are removed from a text in training, as if they were padding

    A batch has ids (B, T′), −1 for padding, which no word sees and no mean counts, and labels (B,). The readout A
    starts at 0, so the loss of an untrained model is ln(classes), that of a uniform guess.
    Raises UserError for sizes and options that do not fit together.
    Source: multi-head attention encoders, a course notebook; Devlin et al. 2019, arXiv:1810.04805 ([CLS]);
    Iyyer et al. 2015, "Deep unordered composition rivals syntactic methods" (word dropout)
    """

    def __init__(
        self, embeddings: Array, *, classes: int, T: int = 64, L: int = 1, H: int = 4, m: int = 16, f: int = 128,
        positions: str | None = "sinusoidal", pool: str = "mean", causal: bool = False, blocks: int = 1, k: int = 64,
        train_embeddings: bool = True, dropout: float = 0.0, word_dropout: float = 0.0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(classes=classes, T=T, H=H, m=m, k=k)
        check_sizes(least=0, L=L, f=f, blocks=blocks)
        check_choice("positions", positions, POSITIONS)
        check_choice("pool", pool, POOLS)
        check_rates(dropout=dropout, word_dropout=word_dropout)
        check_flags(causal=causal, train_embeddings=train_embeddings)
        if pool == "first" and (causal or L == 0):
            raise UserError("pool='first' with causal=True or L=0: [CLS] would see no word; use pool='mean'")
        rng = generator(seed)
        (c, n), dtype, size = embeddings.shape, embeddings.dtype, embeddings.shape[1] ** -0.5
        self.T = T
        self.c: int = c
        self.classes = classes
        self.word_dropout = word_dropout
        self.cls: ClassWord | None = ClassWord(n, rng, size, dtype) if pool == "first" else None
        length = T + 1 if pool == "first" else T
        layers = gpt_layers(L, n, H, m, f, rng, dropout, dtype)
        position: PositionalEncoding | LearnedPositions | None = None
        if positions == "sinusoidal":
            position = PositionalEncoding(length, n, scale=size)
        elif positions == "learned":
            position = LearnedPositions(length, n, rng, size, dtype)
        embedding, norm = Embedding(embeddings, trainable=train_embeddings), LayerNorm(n, dtype) if L else None
        kind = Trunk if causal else Encoder
        self.trunk: Trunk = kind(embedding, layers, T=length, positions=position, norm=norm, dropout=dropout)
        self.dropout: Dropout = Dropout(dropout)
        self.norms: list[LayerNorm] = [LayerNorm(n, dtype) for _ in range(blocks)]
        self.blocks: list[FeedForward] = [FeedForward(n, k, rng, dtype) for _ in range(blocks)]
        self.norm: LayerNorm = LayerNorm(n, dtype)
        self.A = Linear(n, classes, dtype=dtype)

    def loss(self, batch: "TextBatch", rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the labels, in nats, and its backward, which runs once. An rng turns dropout on."""
        logits, logits_backward = self(batch.ids, rng)
        loss, loss_backward = label_cross_entropy(logits, batch.labels)
        return loss, chain_rule([logits_backward, loss_backward])

    def logits(self, ids: Array) -> Array:
        """Scores (B, classes) of the classes of texts (B, T′)."""
        return self(ids)[0]

    def __call__(self, ids: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        """ids (B, T′) → logits (B, classes), and the backward"""
        check_texts(ids, self.T, "Classifier")
        if rng is not None and self.word_dropout:
            check_rng(rng)
            ids = np.where(rng.random(ids.shape) < self.word_dropout, ABSENT, to_host(ids))
        x, embedding_backward = self.trunk.embedding(ids)        # (B, T′, n)
        logits, vectors_backward = self.from_vectors(x, to_host(ids) != ABSENT, rng)
        return logits, chain_rule([embedding_backward, vectors_backward])

    def from_vectors(self, x: Array, present: Array, rng: np.random.Generator | None = None) -> tuple[Array, Backward]:
        """logits (B, classes) for the words' vectors x (B, T′, n), and the backward, which gives dx.

        present: bool (B, T′), False for padding
        """
        backwards = []
        if self.cls is not None:
            x, cls_backward = self.cls(x)                        # (B, T′ + 1, n)
            present = np.pad(present, ((0, 0), (1, 0)), constant_values=True)
            backwards.append(cls_backward)
        Phi, trunk_backward = self.trunk.from_vectors(x, self.trunk.mask_of(present), rng)
        e, pool_backward = _mean(Phi, present) if self.cls is None else _first(Phi)      # (B, n)
        e, dropout_backward = self.dropout(e, rng)
        backwards += [trunk_backward, pool_backward, dropout_backward]
        for norm, block in zip(self.norms, self.blocks):
            e, block_backward = _residual(e, norm, block)
            backwards.append(block_backward)
        e, norm_backward = self.norm(e)
        logits, A_backward = self.A(e)                           # (B, classes)
        return logits, chain_rule([*backwards, norm_backward, A_backward])

    def start_from(self, model: "GPT | Classifier") -> Self:
        """Copy the trunk of a trained model of the same sizes, such as a GPT. Raises UserError if it differs."""
        own, trained = self.trunk.parameters(), model.trunk.parameters()
        here: dict[str, Any] = {name: self.config[name] for name in ("L", "H", "m", "f")}
        there: dict[str, Any] = {name: model.config.get(name) for name in here}
        here |= {f"the shape of {name}": parameter.data.shape for name, parameter in own.items()}
        there |= {f"the shape of {name}": parameter.data.shape for name, parameter in trained.items()}
        for name, value in here.items():
            if there.get(name) != value:
                raise UserError(f"start_from: {name} is {value} here, {there.get(name)} in the {type(model).__name__}; "
                                "give both the same n, T, L, H, m, f and positions")  # fmt: skip
        for name, parameter in own.items():
            parameter.data = trained[name].data.copy()
        return self


def _mean(Phi: Array, present: Array) -> tuple[Array, Backward]:
    """e = mean(Φ_t) over the words present: if padding counted, it would pull short texts towards its vector"""
    e, pool_backward = ops.mean_pool(Phi, to_device_of(present, Phi))
    return e, lambda de: pool_backward(de)[0]


def _first(Phi: Array) -> tuple[Array, Backward]:
    """e = Φ_1, the vector of the first word;  dΦ = [de, 0, …, 0]"""
    shape = Phi.shape

    def backward(de: Array) -> Array:
        dPhi = array_module(de).zeros(shape, dtype=de.dtype)
        dPhi[:, 0] = de
        return dPhi

    return Phi[:, 0], backward


def _residual(e: Array, norm: LayerNorm, block: FeedForward) -> tuple[Array, Backward]:
    """e + block(norm(e))"""
    normal, norm_backward = norm(e)
    y, block_backward = block(normal)
    return e + y, lambda dy: dy + norm_backward(block_backward(dy))      # skip connection + branch

"""The encoder-decoder transformer: from a sentence to its translation."""

from typing import TYPE_CHECKING, Any

from mini_tf.checks import generator
from mini_tf.errors import UserError
from mini_tf.layers import (
    Decoder,
    DecoderLayer,
    Embedding,
    Encoder,
    LayerNorm,
    Linear,
    PositionalEncoding,
    TiedReadout,
    TransformerLayer,
    chain_rule,
)
from mini_tf.layers.embedding import ABSENT
from mini_tf.layers.linear import normal
from mini_tf.layers.transformer import DecoderCache
from mini_tf.models.objectives import label_cross_entropy
from mini_tf.models.options import (
    check_choice,
    check_dtype,
    check_flags,
    check_rates,
    check_sizes,
    check_texts,
    options_of,
)
from mini_tf.models.saliency import record_attention
from mini_tf.models.translation_model import TranslationModel
from mini_tf.types import Array, Backward, Options

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from mini_tf.training.pair_batches import SentenceBatch

TIES = {
    "none": "three matrices: the vectors of source words, the vectors of target words, and the readout",
    "readout": "the readout is the table of the target words' vectors, transposed",
    "all": "one table for source words, target words and the readout; both languages share one vocabulary",
}


class Translator(TranslationModel):
    """Z = encoder(source),   Φ = decoder(target so far, Z),   π_t = softmax(Φ_t·A): the next word of the translation

    source_words         size of the source's vocabulary
    target_words         size of the target's vocabulary, c
    n, L, H, m, f        embedding dimension; layers of the encoder, and of the decoder; heads, their dimension; hidden
                         units of feed-forward
    T                    the most words of a source sentence, and of a translation with its [SOS]
    norm                 "before" each branch (Xiong et al.), or "after" each sum (Vaswani et al.)
    tied                 "none", "readout" or "all": see TIES
    bias                 attention's four products have biases
    dropout              fraction of the entries of word vectors and of each branch's output dropped in training
    smoothing            of the labels in training: see ops.cross_entropy

    A batch has source (B, S), and target (B, U + 2): [SOS], the U words, [EOS]; −1 after a sentence's end is padding.
    Raises UserError for sizes and options that do not fit together.
    Source: Vaswani et al. 2017, arXiv:1706.03762; CMU 10-417 HW3a. Dropout is theirs but for attention's weights.
    """

    def __init__(
        self, source_words: int, target_words: int, *, n: int = 256, T: int = 32, L: int = 3, H: int = 4, m: int = 64,
        f: int = 1024, norm: str = "before", tied: str = "readout", bias: bool = False, dropout: float = 0.1,
        smoothing: float = 0.1, seed: int = 0, dtype: DTypeLike = "float32",
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_sizes(source_words=source_words, target_words=target_words, n=n, T=T, L=L, H=H, m=m, f=f)
        check_choice("norm", norm, ("before", "after"))
        check_choice("tied", tied, TIES)
        check_rates(dropout=dropout, smoothing=smoothing)
        check_flags(bias=bias)
        check_dtype(dtype)
        if tied == "all" and source_words != target_words:
            raise UserError(f"tied='all' needs one vocabulary of both languages, got sizes {source_words} and "
                            f"{target_words}")  # fmt: skip
        rng = generator(seed)
        self.T = T
        self.sizes: tuple[int, int] = source_words, target_words
        self.smoothing = smoothing
        sizes: dict[str, Any] = {"f": f, "scale": m**-0.5, "dropout": dropout, "dtype": dtype}
        options: dict[str, Any] = {"T": T, "positions": PositionalEncoding(T, n), "scale": n**0.5, "dropout": dropout}
        last_norms = [LayerNorm(n, dtype) if norm == "before" else None for _ in range(2)]
        source_table = Embedding(normal(rng, (source_words, n), n**-0.5, dtype))
        target_table = source_table if tied == "all" else Embedding(normal(rng, (target_words, n), n**-0.5, dtype))
        encoder_layers = [TransformerLayer(n, H, m, rng, relu=False, norm=norm, bias=bias, **sizes) for _ in range(L)]
        decoder_layers = [DecoderLayer(n, H, m, rng, norm=norm, bias=bias, **sizes) for _ in range(L)]
        self.encoder: Encoder = Encoder(source_table, encoder_layers, norm=last_norms[0], **options)
        self.decoder: Decoder = Decoder(target_table, decoder_layers, norm=last_norms[1], **options)
        self.readout: Linear | TiedReadout = TiedReadout(target_table)
        if tied == "none":
            self.readout = Linear(n, target_words, bias=False, dtype=dtype)

    def loss(self, batch: "SentenceBatch", rng: np.random.Generator | None = None) -> tuple[float, Backward]:
        """The mean cross-entropy of the words of the translations and their [EOS], in nats, and its backward.

        An rng means training: it turns dropout and label smoothing on.
        """
        self.check(batch.source, batch.target[:, :-1])
        Z, encoder_backward = self.encoder(batch.source, rng)                        # (B, S, n)
        Z_mask = self.encoder.mask(batch.source)
        Phi, decoder_backward = self.decoder(batch.target[:, :-1], Z, Z_mask, rng)   # (B, U + 1, n)
        logits, readout_backward = self.readout(Phi)                                 # (B, U + 1, c)
        smoothing = 0.0 if rng is None else self.smoothing
        loss, loss_backward = label_cross_entropy(logits, batch.target[:, 1:], ABSENT, smoothing)
        return loss, chain_rule([encoder_backward, decoder_backward, readout_backward, loss_backward])

    def logits(self, source: Array, target: Array) -> Array:
        """Scores (B, U, c) of the word after each word of target (B, U), given source (B, S)."""
        self.check(source, target)
        Z, _ = self.encoder(source)
        return self.readout(self.decoder(target, Z, self.encoder.mask(source))[0])[0]

    def writer(self, source: Array) -> "CachedWriter":
        """A writer of translations of source (B, S), for `decoding.beam_search`."""
        self.check(source)
        return CachedWriter(self, source)

    def attention_weights(self, source: Array, target: Array) -> dict[str, Array]:
        """The attention matrices A of all layers and heads: see TranslationModel."""
        all_weights = [A[0] for A in record_attention(lambda: self.logits(source[None], target[None]))]
        L = len(self.encoder.layers)
        kinds = {"encoder": all_weights[:L], "decoder": all_weights[L::2], "across": all_weights[L + 1 :: 2]}
        return {kind: np.stack(weights) for kind, weights in kinds.items()}

    def check(self, *sentences: Array) -> None:
        """Raises ValueError unless all are (B, words) with at most T words."""
        for ids in sentences:
            check_texts(ids, self.T, "Translator")


class CachedWriter:
    """Incremental decoding: writes translations word by word, k hypotheses for each of B sentences, with a KV cache."""

    def __init__(self, model: Translator, source: Array):
        self.model = model
        self.sentences: int = len(source)
        self.k: int = 1                                          # hypotheses of each
        self.mask = model.encoder.mask(source)
        self.cache: list[DecoderCache] = model.decoder.new_cache(model.encoder(source)[0], model.T)

    def read(self, words: Array) -> Array:
        """Scores (B, k, c) of what follows one more word of each hypothesis: words (B, k)"""
        B, self.k = words.shape
        Phi = self.model.decoder.decode(words.reshape(B * self.k, 1), self.cache, self.mask)
        return self.model.readout(Phi.reshape(B, self.k, -1))[0]

    def choose(self, sentences: Array, hypotheses: Array) -> None:
        """Continue with these sentences (B′,), and these hypotheses of each (B′, k′)."""
        rows = (sentences[:, None] * self.k + hypotheses).reshape(-1)
        for target_cache, source_cache in self.cache:
            target_cache.select(rows)
            source_cache.select(sentences)
        if self.mask is not None:
            self.mask = self.mask[sentences]

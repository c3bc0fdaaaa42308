"""A small GPT over words: the decoder-only transformer in common use today."""

from mini_tf.checks import generator
from mini_tf.layers import Embedding, LayerNorm, PositionalEncoding, TiedReadout, Trunk, gpt_layers
from mini_tf.models.options import check_embeddings, check_rates, check_sizes, options_of
from mini_tf.models.windows import CausalTransformer
from mini_tf.types import Array, Options


class GPT(CausalTransformer):
    """logits_t = Φ(X)_t·Eᵀ,   Φ a trunk of layers with the norm before each branch, and a last norm

    embeddings (c, n)    initial word vectors E, shared with the readout; entries of variance 1/n
    T, L, H, m, f        history length in words, layers, heads, dimension of a head, hidden units of feed-forward
    dropout              fraction of the entries of word vectors and of each branch's output dropped in training

    A batch is an integer array (B, T + 1) of consecutive words; all but the first are predicted.
    Raises UserError for sizes that do not fit.
    Source: Radford et al. 2019 (GPT-2), but with sinusoidal positions, scaled to the size of the word vectors
    """

    def __init__(
        self, embeddings: Array, *, T: int = 64, L: int = 2, H: int = 4, m: int = 32, f: int = 512,
        dropout: float = 0.0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, H=H, m=m, f=f)
        check_sizes(least=0, L=L)
        check_rates(dropout=dropout)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        layers = gpt_layers(L, n, H, m, f, rng, dropout, dtype)
        positions, norm = PositionalEncoding(T, n, scale=n**-0.5), LayerNorm(n, dtype)
        self.trunk: Trunk = Trunk(Embedding(embeddings), layers, T=T, positions=positions, norm=norm, dropout=dropout)
        self.A: TiedReadout = TiedReadout(self.trunk.embedding)

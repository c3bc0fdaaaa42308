"""GPT-2: the transformer of 2019 whose weights are public."""

from mini_tf.checks import generator
from mini_tf.layers import Embedding, LayerNorm, LearnedPositions, TiedReadout, Trunk, gpt_layers
from mini_tf.layers.linear import normal
from mini_tf.models.options import check_embeddings, check_flags, check_rates, check_sizes, options_of
from mini_tf.models.windows import CausalTransformer
from mini_tf.types import Array, Options

DEVIATION = 0.02                                         # of initial weights
LAST = "attention.output.W", "feed_forward.outer.W"      # of the two branches of a layer


class GPT2(CausalTransformer):
    """logits_t = Φ(X)_t·Eᵀ,   X_0 = E[ids] + P,   Φ a trunk of layers with the norm before each branch, and a last norm

    embeddings (c, n)    initial word vectors E, shared with the readout; GPT-2's start normal, with deviation 0.02
    T, L, H, m, f        history length in words, layers, heads, dimension of a head, hidden units of feed-forward
    bias                 every product but the readout has a bias, and every norm a β; with False, none does
    dropout              fraction of the entries of word vectors and of each branch's output dropped in training

    Weights start normal with deviation 0.02, the last ones of the 2·L branches with 0.02/√(2L): all branches add to the
    same x, which would otherwise grow with L. Dropout is GPT-2's, but attention weights are not dropped.
    A batch is an integer array (B, T + 1) of consecutive words; all but the first are predicted.
    Raises UserError for sizes that do not fit.
    Source: Radford et al. 2019, "Language models are unsupervised multitask learners"; without biases, nanoGPT
    """

    def __init__(
        self, embeddings: Array, *, T: int = 64, L: int = 4, H: int = 4, m: int = 32, f: int = 512, bias: bool = True,
        dropout: float = 0.0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, H=H, m=m, f=f)
        check_sizes(least=0, L=L)
        check_flags(bias=bias)
        check_rates(dropout=dropout)
        rng = generator(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        self.c: int = c
        layers = gpt_layers(L, n, H, m, f, rng, dropout, dtype, activation="gelu_tanh", bias=bias, plain=not bias)
        for layer in layers:
            for name, weight in layer.parameters().items():
                if name.endswith(".W"):
                    deviation = DEVIATION * (2 * L) ** -0.5 if name in LAST else DEVIATION
                    weight.data = normal(rng, weight.data.shape, deviation, dtype)
        positions, norm = LearnedPositions(T, n, rng, DEVIATION, dtype), LayerNorm(n, dtype, bias)
        self.trunk: Trunk = Trunk(Embedding(embeddings), layers, T=T, positions=positions, norm=norm, dropout=dropout)
        self.A: TiedReadout = TiedReadout(self.trunk.embedding)

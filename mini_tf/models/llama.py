"""Llama: the decoder-only transformer on which most of today's open language models are built."""

from typing import Any

from mini_tf.checks import generator, is_number, shown
from mini_tf.errors import UserError
from mini_tf.layers import Embedding, Layer, Linear, LoRA, RMSNorm, TiedReadout, TransformerLayer, Trunk
from mini_tf.models.options import check_embeddings, check_flags, check_sizes, options_of
from mini_tf.models.windows import CausalTransformer
from mini_tf.types import Array, Options

import numpy as np


class Llama(CausalTransformer):
    """logits_t = Φ(X)_t·A,   Φ a trunk of L layers   x ← x + attention(norm(x)),   x ← x + feed-forward(norm(x))

    norm           RMSNorm, also after the last layer
    attention      H heads of queries, G of keys and values; queries and keys are rotated by their positions (rotary)
    feed-forward   SwiGLU with f hidden units
    Nothing has a bias.

    embeddings (c, n)   initial word vectors E
    T, L, H, G, m, f    history length, layers, heads of queries, heads of keys and values, dimension of a head, hidden
                        units of feed-forward; G = 0 stands for G = H
    tied                A = Eᵀ; otherwise A has weights of its own
    base, eps           of the rotary frequencies; of RMSNorm
    lora                if above 0, a rank: each Linear of the layers becomes a LoRA, and nothing else is learned

    A batch is an integer array (B, T + 1) of consecutive words; all but the first are predicted.
    Raises UserError for sizes that do not fit.
    Source: Touvron et al. 2023, arXiv:2302.13971 and arXiv:2307.09288 (Llama 2)
    """

    def __init__(
        self, embeddings: Array, *, T: int = 64, L: int = 2, H: int = 4, G: int = 0, m: int = 32, f: int = 344,
        tied: bool = True, base: float = 10000.0, eps: float = 1e-5, lora: int = 0, seed: int = 0,
    ):  # fmt: skip
        self.config: Options = options_of(locals())
        check_embeddings(embeddings)
        check_sizes(T=T, H=H, m=m, f=f)
        check_sizes(least=0, L=L, G=G, lora=lora)
        check_flags(tied=tied)
        check_shape(H, G, m, base, eps)
        rng = generator(seed)
        (self.c, n), dtype = embeddings.shape, embeddings.dtype
        self.T = T
        layers = [
            TransformerLayer(
                n, H, m, rng, relu=False, norm="before", rms=True, eps=eps, G=G or H, rotary=base, scale=m**-0.5,
                f=f, activation="swiglu", plain=True, dtype=dtype,
            )
            for _ in range(L)
        ]  # fmt: skip
        self.trunk: Trunk = Trunk(Embedding(embeddings), layers, T=T, norm=RMSNorm(n, dtype, eps))
        self.A: TiedReadout | Linear = (
            TiedReadout(self.trunk.embedding) if tied else Linear(n, self.c, rng, bias=False, dtype=dtype)
        )
        if lora:
            self.learn_only(lora, rng)

    def learn_only(self, r: int, rng: np.random.Generator) -> None:
        """Freeze all parameters, and put a LoRA of rank r in place of every Linear in the layers."""
        for parameter in self.parameters().values():
            parameter.trainable = False
        for part, name, linear in self.products():
            setattr(part, name, LoRA(linear, r, rng))

    def products(self) -> list[tuple[Layer, str, Any]]:
        """(part, name, its attribute of that name) for every Linear, or LoRA, in the attentions and feed-forwards"""
        parts = [part for layer in self.trunk.layers for part in (layer.attention, layer.feed_forward) if part]
        return [(part, name, x) for part in parts for name, x in vars(part).items() if isinstance(x, (Linear, LoRA))]

    def merged(self) -> "Llama":
        """The same model without LoRA: each Linear has W + A·B as its weights."""
        same = Llama(self.trunk.embedding.table.data, **self.config | {"lora": 0})
        ours = self.parameters()
        for name, parameter in same.parameters().items():
            parameter.data = ours[name].data.copy()
        for (_, _, linear), (_, _, mine) in zip(same.products(), self.products()):
            if isinstance(mine, LoRA):
                linear.W.data = mine.merged()
        return same


def check_shape(H: int, G: int, m: int, base: float, eps: float) -> None:
    """Raises UserError unless heads can be grouped, their entries paired, and base and eps are positive numbers."""
    if G and H % G:
        raise UserError(f"H = {H} heads of queries cannot share G = {G} of keys and values; expected G to divide H")
    if m % 2:
        raise UserError(f"m is {m}, expected an even m: rotary positions rotate the entries of a head in pairs")
    for name, value in (("base", base), ("eps", eps)):
        if not is_number(value) or not 0 < value < np.inf:
            raise UserError(f"{name} is {shown(value)}, expected a number above 0")

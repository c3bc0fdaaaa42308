"""One small, generic example of every op, layer and model, for the gradient checks.

EXAMPLES is {name: make}; make(rng) gives (f, inputs, params), the arguments of `gradcheck`.

Generic means: no γ = 1, no β = 0, no zero weights (a forgotten γ does not show if γ = 1), unequal sizes (swapped axes
do not show if they are equal), and numbers large enough for every term to count.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mini_tf import layers, models, ops
from mini_tf.experiment import PointerTransformer
from mini_tf.layers.embedding import ABSENT
from mini_tf.models.masked import MASK, MaskedBatch
from mini_tf.ops.shapes import sum_to
from mini_tf.training.pair_batches import SentenceBatch
from mini_tf.training.text_batches import TextBatch
from mini_tf.types import Array, Backward

import numpy as np

Made = tuple[Callable[..., Any], list[Array], dict[str, layers.Parameter]]               # f, inputs, params
Example = Callable[[np.random.Generator], Made]

B, T, n, c, H, m = 2, 3, 4, 7, 2, 3
IDS = [[4, 1, 6], [0, 6, 4]]                             # two are there twice
SOME_ABSENT = [[ABSENT, 2, 2], [ABSENT, ABSENT, 5]]
TARGETS = [[1, 0, 6], [0, 5, 1]]                         # 0 is ignored
SHARES = [[0.2, 0.9, 0.4], [0.6, 0.05, 0.3]]             # of the mixture's two parts
KEPT = [[True, False, True], [True, True, False]]
PRESENT = [[True, False, True], [False] * 3]
CAUSAL = np.tri(T, dtype=bool) & np.ones((B, 1, T, T), dtype=bool)       # j ≤ i
CAUSAL[1, ..., 0] = False                                # the second history's first query sees no key at all
IS_WORD = [[True, True, False], [True] * 3]              # one text has padding at the end
BEFORE: dict[str, Any] = {"norm": "before", "f": n + 1, "scale": 0.6, "dropout": 0.3}
READ_OF_MORE = [[[[True] * T + [False]]], [[[False] * (T + 1)]]]         # all words but the last; then none


# Ops and layers -----------------------------------------------------------------------------------------------------


def op(function: Callable[..., Any], *inputs: Any, **options: Any) -> Example:
    """An example for an op. Each input is a shape, drawn normal, or an array or a list, as it is."""
    return lambda rng: (partial(function, **options) if options else function, _drawn(inputs, rng), {})


def layer(build: Callable[[np.random.Generator], Any], *inputs: Any, training: bool = False) -> Example:
    """An example for a layer, or for a method of one, with generic parameters; in training, always with one mask."""

    def make(rng: np.random.Generator) -> Made:
        made = build(rng)
        parameters = generic(getattr(made, "__self__", made), rng)
        f = (lambda x, *more: made(x, *more, rng=np.random.default_rng(3))) if training else made
        return f, _drawn(inputs, rng), parameters

    return make


def _drawn(inputs: Sequence[Any], rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal(one) if isinstance(one, tuple) else np.array(one) for one in inputs]


def generic(made: layers.Layer, rng: np.random.Generator) -> dict[str, layers.Parameter]:
    """Redraw every parameter away from 0 and 1; returns made.parameters()."""
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.7 + 0.1
    return made.parameters()


def broadcast_add(x: Array, p: Array) -> tuple[Array, Backward]:
    """y = x + p with p broadcast: checks sum_to, which undoes a broadcast and is not an op itself."""
    return x + p, lambda dy: (dy, sum_to(dy, p.shape))


class Twice(layers.Layer):
    """One layer used twice, its weight tied to a second layer: gradients of all three uses add."""

    def __init__(self, rng: np.random.Generator):
        self.first, self.second = layers.Linear(n, n, rng), layers.Linear(n, n, rng)
        self.second.W = self.first.W

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        a, a_backward = self.first(x)
        b, b_backward = ops.tanh(a)
        d, d_backward = self.first(b)
        y, y_backward = self.second(d)
        return y, lambda dy: a_backward(b_backward(d_backward(y_backward(dy))))


# Models -------------------------------------------------------------------------------------------------------------

DEEP: dict[str, Any] = {"T": T + 2, "L": 1, "H": H, "m": m, "f": n + 1, "dropout": 0.0}
WINDOWS = np.array([[ABSENT, 2, 3, 2], [1, 0, 3, 1]])
ALL_PRESENT = np.array([[0, 2, 3, 2], [1, 0, 3, 1]])         # for the PointerTransformer, which refuses absent words
TEXTS = np.array([[3, 4, 5, 3], [6, 2, ABSENT, ABSENT], [ABSENT] * 4])   # one with padding, one of nothing else
TRANSLATED = np.array([[0, 3, 1, ABSENT, ABSENT], [0, 4, 5, 4, 1], [ABSENT] * 5])
READ = np.array([[MASK, 1, 5, 3], [6, MASK, ABSENT, ABSENT], [ABSENT] * 4])            # of TEXTS, some words hidden,
HIDDEN = np.array([[3, 4, 5, ABSENT], [ABSENT, 2, ABSENT, ABSENT], [ABSENT] * 4])      # replaced or left: these


def loss(kind: Callable[..., Any], batch: Any, words: int = c, **options: Any) -> Example:
    """An example for the loss of a model, on vectors of so many words, in training, always with the same masks."""

    def make(rng: np.random.Generator) -> Made:
        model = kind(rng.standard_normal((words, n)), **options)
        parameters = generic(model, rng)
        for name, parameter in parameters.items():       # with saturated softmaxes, or γ near 0, gradients would vanish
            parameter.data = parameter.data / 2 + name.endswith("gamma")
        return (lambda: model.loss(batch, np.random.default_rng(1))), [], parameters

    return make


def _translator(_: Array, **options: Any) -> models.Translator:
    return models.Translator(c, c, n=n, dtype="float64", **DEEP | options)


def _recurrent_translator(_: Array, **options: Any) -> models.RecurrentTranslator:
    return models.RecurrentTranslator(5, 6, T=T + 2, n=2, k=2, dtype="float64", **options)


window = partial(loss, models.FixedWindowModel, WINDOWS, T=T, k=m)
recurrent = partial(loss, models.RecurrentModel, WINDOWS, T=T, k=m)
transformer = partial(loss, models.LanguageTransformer, WINDOWS, T=T, L=2, H=H, m=m)
every_option = partial(transformer, causal=True, layer_norm=True, positions="geometric", scaled_attention=True,
                       train_embeddings=True)            # fmt: skip
translator = partial(loss, _translator, SentenceBatch(TEXTS, TRANSLATED))
by_states = partial(loss, _recurrent_translator, SentenceBatch(TEXTS[:, :3] % 5, TRANSLATED))
classifier = partial(loss, models.Classifier, TextBatch(TEXTS, np.array([0, 2, 1])), classes=3, k=m, **DEEP)

EXAMPLES = {
    "linear": op(ops.linear, (B, T, n), (n, m), (m,)),
    "linear, no bias": op(ops.linear, (B, n), (n, m)),
    "linear, square": op(ops.linear, (n, n), (n, n), (n,)),
    "relu": op(ops.relu, (B, T, n)),
    "residual_relu": op(ops.residual_relu, (B, T, n), (B, T, n)),
    "tanh": op(ops.tanh, (B, n)),
    "sigmoid": op(ops.sigmoid, (B, n)),
    "gelu": op(ops.gelu, (B, T, n)),
    "gelu, by tanh": op(ops.gelu, (B, T, n), approximate=True),
    "silu": op(ops.silu, (B, T, n)),
    "swiglu": op(ops.swiglu, (B, T, n), (B, T, n)),
    "softmax": op(ops.softmax, (B, T, c)),
    "masked_softmax": op(ops.masked_softmax, (B, 1, T, T), CAUSAL),
    "layer_norm": op(ops.layer_norm, (B, T, n), (n,), (n,)),
    "rms_norm": op(ops.rms_norm, (B, T, n), (n,)),
    "attention": op(ops.attention, (B, H, T, m), (B, H, T + 1, m), (B, H, T + 1, n)),
    "attention, causal": op(ops.attention, (B, H, T, m), (B, H, T, m), (B, H, T, m), CAUSAL),
    "attention, scaled": op(ops.attention, (B, H, T, m), (B, H, T, m), (B, H, T, m), scale=0.6),
    "attention, square": op(ops.attention, (B, n, n), (B, n, n), (B, n, n)),
    "grouped_attention": op(ops.grouped_attention, (B, 2 * H, T, m), (B, H, T + 1, m), (B, H, T + 1, n), scale=0.6),
    "rotary": op(ops.rotary, (B, H, T, n + 2), first=2),
    "rotary, halves": op(ops.rotary, (B, T, n), halves=True),
    "embedding": op(ops.embedding, (c, n), IDS),
    "embedding, absent words": op(ops.embedding, (c, n), SOME_ABSENT, absent=ABSENT),
    "mean_pool": op(ops.mean_pool, (B, T, n)),
    "mean_pool, masked": op(ops.mean_pool, (B, T, n), PRESENT),
    "dropout": op(ops.dropout, (B, T), KEPT, rate=0.4),
    "cross_entropy": op(ops.cross_entropy, (B, T, c), IDS),
    "cross_entropy, smoothed": op(ops.cross_entropy, (B, T, c), TARGETS, ignore=0, smoothing=0.2),
    "copied": op(ops.copied, (B, T, T + 1), [[0, 3, 0, 5], [1, 1, 1, 2]], [[0, 5, 3], [1, 2, 1]]),
    "mixture_cross_entropy": op(ops.mixture_cross_entropy, (B, T, c), (B, T), SHARES, IDS),
    "mse": op(ops.mse, (B, n), (B, n)),
    "sum_pool": op(ops.sum_pool, (B, T, n)),
    "max_pool": op(ops.max_pool, (B, T, n)),
    "product_pool": op(ops.product_pool, (B, T, n)),
    "rnn": op(ops.rnn, (B, T, n), (B, m), (n, m), (m, m), (m,)),
    "rnn, relu": op(ops.rnn, (B, T, n), (B, m), (n, m), (m, m), (m,), activation="relu"),
    "lstm": op(ops.lstm, (B, T, n), (B, m), (B, m), (n, 4 * m), (m, 4 * m), (4 * m,)),
    "lstm, padding": op(ops.lstm, (B, T, n), (B, m), (B, m), (n, 4 * m), (m, 4 * m), (4 * m,), IS_WORD),
    "gru": op(ops.gru, (B, T, n), (B, m), (n, 3 * m), (m, 3 * m), (3 * m,), (m,)),
    "gru, padding": op(ops.gru, (B, T, n), (B, m), (n, 3 * m), (m, 3 * m), (3 * m,), (m,), IS_WORD),
    "additive_attention": op(ops.additive_attention, (B, T, m), (B, T + 1, m), (B, T + 1, n), (m,)),
    "additive_attention, masked": op(
        ops.additive_attention, (B, T, m), (B, T + 1, m), (B, T + 1, n), (m,), [one for (one,) in READ_OF_MORE]
    ),
    "sum_to": op(broadcast_add, (B, n, n), (n, 1)),
    "Linear": layer(partial(layers.Linear, n, m), (B, T, n)),
    "LoRA": layer(lambda rng: layers.LoRA(layers.Linear(n, m, rng), 2, rng), (B, T, n)),
    "LayerNorm": layer(lambda rng: layers.LayerNorm(n), (B, T, n)),
    "RMSNorm": layer(lambda rng: layers.RMSNorm(n), (B, T, n)),
    "Dropout, training": layer(lambda rng: layers.Dropout(0.4), (B, T, n), training=True),
    "PositionalEncoding": layer(lambda rng: layers.PositionalEncoding(T, n), (B, T, n)),
    "LearnedPositions": layer(lambda rng: layers.LearnedPositions(T + 1, n, rng, 1.0), (B, T, n)),
    "ClassWord": layer(lambda rng: layers.ClassWord(n, rng, 1.0), (B, T, n)),
    "MultiHeadAttention": layer(partial(layers.MultiHeadAttention, n, H, m), (B, T, n)),
    "Recurrent": layer(partial(layers.Recurrent, n, m), (B, T, n)),
    "LSTM": layer(partial(layers.LSTM, n, 2), (B, T, n)),
    "GRU": layer(partial(layers.GRU, n, 2), (B, T, n)),
    "BothDirections": layer(partial(layers.BothDirections, n, 2), (B, T, n), IS_WORD),
    "MultiplicativeAttention": layer(partial(layers.MultiplicativeAttention, n, m), (B, T, n), (B, T + 1, m)),
    "AdditiveAttention": layer(partial(layers.AdditiveAttention, n, m), (B, T, n), (B, T + 1, m)),
    "FeedForward, gelu": layer(partial(layers.FeedForward, n, m, activation="gelu"), (B, T, n)),
    "FeedForward, swiglu": layer(partial(layers.FeedForward, n, m, activation="swiglu"), (B, T, n)),
    "TransformerLayer": layer(partial(layers.TransformerLayer, n, H, m), (B, T, n)),
    "TransformerLayer, layer norm": layer(partial(layers.TransformerLayer, n, H, m, norm="after"), (B, T, n), CAUSAL),
    "TransformerLayer, norm before, training": layer(
        partial(layers.TransformerLayer, n, H, m, relu=False, distances=True, **BEFORE),
        (B, T, n), CAUSAL, training=True,
    ),
    "DecoderLayer, norm before, training": layer(
        partial(layers.DecoderLayer, n, H, m, bias=True, **BEFORE), (B, T, n), (B, T + 1, n), CAUSAL, READ_OF_MORE,
        training=True,
    ),
    "one layer used twice, weights tied": layer(Twice, (B, n)),
    "one layer used twice, one vector": layer(Twice, (n,)),
    "FixedWindowModel": window(),
    "FixedWindowModel, sum": window(composition="sum", activation="relu"),
    "FixedWindowModel, mean, training": window(composition="mean", dropout=0.3),
    "FixedWindowModel, maximum": window(composition="maximum"),
    "FixedWindowModel, product, three hidden layers, training": window(
        composition="product", hidden_layers=3, dropout=0.3
    ),
    "RecurrentModel": recurrent(),
    "RecurrentModel, relu, training": recurrent(activation="relu", dropout=0.3),
    "RecurrentModel, lstm, two layers, training": recurrent(cell="lstm", L=2, dropout=0.3),
    "RecurrentModel, gru": recurrent(cell="gru"),
    "GPT, training": loss(models.GPT, WINDOWS, T=T, L=1, H=H, m=m, f=n, dropout=0.3),
    "GPT2, training": loss(models.GPT2, WINDOWS, T=T, L=1, H=H, m=m, f=n, dropout=0.3),
    "GPT2, two layers, no biases": loss(models.GPT2, WINDOWS, T=T, L=2, H=H, m=m, f=n, bias=False),
    "Llama": loss(models.Llama, WINDOWS, T=T, L=1, H=2 * H, G=H, m=m + 1, f=n),
    "Llama, not tied": loss(models.Llama, WINDOWS, T=T, L=1, H=H, m=m + 1, f=n, tied=False, base=100.0),
    "Translator": translator(tied="readout"),
    "Translator, two layers, biases, norm after": translator(
        L=2, H=1, m=2, f=m, tied="none", norm="after", bias=True, smoothing=0.0
    ),
    "Translator, tied, training": translator(tied="all", dropout=0.3),
    "RecurrentTranslator": by_states(dropout=0.0),
    "RecurrentTranslator, two layers, gru, additive, training": by_states(L=2, cell="gru", attention="additive"),
    "RecurrentTranslator, no attention": by_states(attention="none", dropout=0.0),
    "Classifier": classifier(),
    "Classifier, bag of words": classifier(L=0, positions=None),
    "Classifier, learned positions, [CLS]": classifier(positions="learned", pool="first"),
    "Classifier, causal, training": classifier(causal=True, positions="learned", dropout=0.3),
    "MaskedWordModel": loss(models.MaskedWordModel, MaskedBatch(READ, HIDDEN), **DEEP),
    "OneAttention": loss(models.OneAttention, WINDOWS, T=T, H=H),
    "PointerTransformer, training": loss(PointerTransformer, ALL_PRESENT, T=T, L=1, H=H, m=m, f=n, dropout=0.1),
    "LanguageTransformer, average": transformer(readout="average"),
    "LanguageTransformer, vec": transformer(readout="vec"),
    "LanguageTransformer, vec, every option": every_option(readout="vec"),
    "LanguageTransformer, shared, tied, every option": every_option(readout="shared", tied=True),
    "LanguageTransformer, shared, tied, training": every_option(readout="shared", tied=True, dropout=0.3),
    "LanguageTransformer, shared, tied, as many words as dimensions": transformer(
        words=n, readout="shared", causal=True, train_embeddings=True, tied=True
    ),
}  # fmt: skip

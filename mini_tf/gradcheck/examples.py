"""One small, generic example of every op, layer and model, for the gradient checks.

EXAMPLES is {name: make}; make(rng) gives (f, inputs, params), the arguments of `gradcheck`.

Generic means: no γ = 1, no β = 0, no zero weights (a forgotten γ does not show if γ = 1), unequal sizes (swapped axes
do not show if they are equal), and numbers large enough for every term to count.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from mini_tf import layers, ops
from mini_tf.backend import beside
from mini_tf.experiment import PointerTransformer
from mini_tf.layers.embedding import ABSENT
from mini_tf.models import (
    GPT,
    Classifier,
    FixedWindowModel,
    LanguageTransformer,
    MaskedWordModel,
    OneAttention,
    RecurrentModel,
    Translator,
)
from mini_tf.models.masked import MASK, MaskedBatch
from mini_tf.ops.op import Op
from mini_tf.ops.shapes import sum_to
from mini_tf.training.pair_batches import SentenceBatch
from mini_tf.training.text_batches import TextBatch
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import ArrayLike

Made = tuple[Callable, list, dict[str, layers.Parameter]]                # f, inputs, params
Example = Callable[[np.random.Generator], Made]

B, T, n, c, H, m = 2, 3, 4, 7, 2, 3
TEXTS = np.array([[3, 4, 5, 3], [6, 2, ABSENT, ABSENT], [ABSENT] * 4])   # one with padding, one of nothing else


def op(function: Callable, *shapes, **options) -> Example:
    """An example for an op. Each input: a shape, drawn normal, or a function of rng that gives the array."""

    def make(rng):
        inputs = [rng.standard_normal(shape) if isinstance(shape, tuple) else shape(rng) for shape in shapes]
        if not options:
            return function, inputs, {}
        names = list(inspect.signature(function).parameters)

        def with_options(*inputs):
            return function(*inputs, **options)

        with_options.__name__ = f"{function.__name__}, {', '.join(f'{k}={v}' for k, v in options.items())}"
        with_options.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names[: len(inputs)]]
        )
        if isinstance(function, Op):
            with_options.arrays = function.arrays
        return with_options, inputs, {}

    return make


def layer(build: Callable[[np.random.Generator], layers.Layer], *shapes) -> Example:
    """An example for a layer, with generic parameters; shapes as for `op`."""

    def make(rng):
        made = build(rng)
        inputs = [rng.standard_normal(shape) if isinstance(shape, tuple) else shape(rng) for shape in shapes]
        return made, inputs, generic(made, rng)

    return make


def transformer(words: int = c, **options) -> Example:
    """An example for the language transformer's loss."""
    return language_model(partial(LanguageTransformer, L=2, H=H, m=m), words, **options)


def language_model(build: Callable[..., layers.Layer], words: int = c, absent: bool = True, **options) -> Example:
    """An example for a model's loss on two windows, one with an absent word; dropout always draws the same masks."""

    def make(rng):
        model = build(rng.standard_normal((words, n)), T=T, **options)
        parameters = generic(model, rng)
        windows = rng.integers(0, words, (B, T + 1))
        if absent:
            windows[0, 0] = ABSENT
        return (lambda: model.loss(windows, np.random.default_rng(1))), [], parameters

    return make


def pointer_transformer(**options) -> Example:
    """An example for the PointerTransformer's loss, without absent words, which it refuses."""
    return language_model(partial(PointerTransformer, H=H, m=m, f=n), absent=False, **options)


def translator(**options) -> Example:
    """An example for the Translator's loss in training: padding on both sides, and a pair of nothing but padding."""

    def make(rng):
        sizes = {"n": n, "T": T + 2, "L": 1, "H": H, "m": m, "f": n + 1}
        model = Translator(c, c, dtype="float64", **sizes | options)
        target = np.array([[0, 3, 1, ABSENT, ABSENT], [0, 4, 5, 4, 1], [ABSENT] * 5])
        return trained_on(SentenceBatch(TEXTS, target), model, rng)

    return make


def classifier(**options) -> Example:
    """An example for the Classifier's loss in training, on TEXTS."""

    def make(rng):
        sizes = {"T": T + 2, "L": 1, "H": H, "m": m, "f": n + 1, "k": m, "dropout": 0.0}
        model = Classifier(rng.standard_normal((c, n)), classes=3, **sizes | options)
        return trained_on(TextBatch(TEXTS, np.array([0, 2, 1])), model, rng)

    return make


def masked_words(**options) -> Example:
    """An example for the MaskedWordModel's loss in training, on TEXTS: hidden, replaced and left words have a loss."""

    def make(rng):
        model = MaskedWordModel(rng.standard_normal((c, n)), T=T + 2, L=1, H=H, m=m, f=n + 1, **options)
        read, targets = TEXTS.copy(), np.full(TEXTS.shape, ABSENT)
        targets[0, :3], targets[1, 1] = TEXTS[0, :3], TEXTS[1, 1]
        read[0, 0] = read[1, 1] = MASK
        read[0, 1] = 1
        return trained_on(MaskedBatch(read, targets), model, rng)

    return make


def trained_on(batch: Any, model: layers.Layer, rng: np.random.Generator) -> Made:
    """The loss of a deep model on a batch, in training; dropout always draws the same masks."""
    parameters = generic(model, rng)
    for name, parameter in parameters.items():           # with saturated softmaxes, or γ near 0, gradients would vanish
        parameter.data = parameter.data / 2 + name.endswith("gamma")
    return (lambda: model.loss(batch, np.random.default_rng(1))), [], parameters


def generic(made: layers.Layer, rng: np.random.Generator) -> dict[str, layers.Parameter]:
    """Redraw every parameter away from 0 and 1; returns made.parameters()."""
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.7 + 0.1
    return made.parameters()


def ids(*shape: int, size: int = c) -> Callable[[np.random.Generator], Array]:
    """Random ids with a repeat: the last equals the first."""

    def draw(rng):
        drawn = rng.integers(0, size, shape)
        drawn.reshape(-1)[-1] = drawn.reshape(-1)[0]
        return drawn

    return draw


def given(array: ArrayLike) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.array(array)


def causal(rng: np.random.Generator | None) -> Array:
    """A causal mask, j ≤ i. In the second history the first word is absent, so its first query sees nothing."""
    mask = np.tri(T, dtype=bool) & np.ones((B, 1, T, T), dtype=bool)
    mask[1, ..., 0] = False
    return mask


def shares(rng: np.random.Generator) -> Array:
    """Probabilities (B, T), away from 0 and 1."""
    return rng.uniform(0.05, 0.9, (B, T))


def attention_with_bias(query: Array, key: Array, value: Array, bias: Array) -> tuple[Array, Backward]:
    """Causal and scaled attention, with one bias for the whole batch."""
    y, backward = ops.attention(query, key, value, beside(np.tri(T, dtype=bool), query), 0.6, bias)

    def without_mask(dy):
        dquery, dkey, dvalue, _, dbias = backward(dy)
        return dquery, dkey, dvalue, dbias

    return y, without_mask


class Twice(layers.Layer):
    """One layer used twice, its weight tied to a second layer: gradients of all three uses add."""

    def __init__(self, rng: np.random.Generator):
        self.first = layers.Linear(n, n, rng)
        self.second = layers.Linear(n, n, rng)
        self.second.W = self.first.W

    def __call__(self, x: Array) -> tuple[Array, Backward]:
        a, a_backward = self.first(x)
        b, b_backward = ops.tanh(a)
        d, d_backward = self.first(b)
        y, y_backward = self.second(d)
        return y, lambda dy: a_backward(b_backward(d_backward(y_backward(dy))))


def broadcast_add(x: Array, p: Array) -> tuple[Array, Backward]:
    """y = x + p with p broadcast: checks sum_to, which undoes a broadcast and is not an op itself."""
    return x + p, lambda dy: (dy, sum_to(dy, p.shape))


def trained_dropout(rng: np.random.Generator) -> Made:
    """The Dropout layer in training, with the same mask at every call."""
    made = layers.Dropout(0.4)
    return (lambda x: made(x, np.random.default_rng(3))), [rng.standard_normal((B, T, n))], {}


def trained_transformer_layer(rng: np.random.Generator) -> Made:
    made = layers.TransformerLayer(n, H, m, rng, norm="after", dropout=0.4)
    parameters = generic(made, rng)
    return (lambda x: made(x, causal(None), np.random.default_rng(3))), [rng.standard_normal((B, T, n))], parameters


def norm_before_layer(rng: np.random.Generator) -> Made:
    """A layer with the norm before each branch, with feed-forward, mask, distances and dropout, in training."""
    made = layers.TransformerLayer(
        n, H, m, rng, relu=False, norm="before", f=n + 1, scale=0.6, dropout=0.3, distances=True
    )  # fmt: skip
    parameters = generic(made, rng)
    return (lambda x: made(x, causal(None), np.random.default_rng(3))), [rng.standard_normal((B, T, n))], parameters


def across(queries: int, keys: int) -> Example:
    """Attention from one sequence to another, with biases. Of the second sequence no word is there."""

    def make(rng):
        made = layers.MultiHeadAttention(n, H, m, rng, 0.6, bias=True)
        mask = np.ones((B, 1, 1, keys), dtype=bool)
        mask[1] = False

        def attention_across(x, z):
            return made.across(x, z, beside(mask, x))

        return attention_across, [rng.standard_normal((B, words, n)) for words in (queries, keys)], generic(made, rng)

    return make


def decoder_layer(**options) -> Example:
    """A decoder's layer, causal, in training if it has dropout. The second sentence that it reads is empty."""

    def make(rng):
        made = layers.DecoderLayer(n, H, m, rng, f=n + 1, scale=0.6, **options)
        z_mask = np.ones((B, 1, 1, T + 1), dtype=bool)
        z_mask[0, ..., -1] = z_mask[1] = False

        def decoder_layer(x, z):
            return made(x, z, beside(causal(None), x), beside(z_mask, x), np.random.default_rng(3))

        return decoder_layer, [rng.standard_normal((B, words, n)) for words in (T, T + 1)], generic(made, rng)

    return make


def recurrent_from_a_state(rng: np.random.Generator) -> Made:
    """A given state is a constant: neither it nor h_0, which is not used, gets a gradient."""
    made = layers.Recurrent(n, m, rng)
    parameters, state = generic(made, rng), rng.standard_normal((B, m))
    return (lambda x: made(x, state.astype(x.dtype))), [rng.standard_normal((B, T, n))], parameters


def tied(rng: np.random.Generator) -> layers.TiedReadout:
    """A readout through an embedding's table, with a bias that is trained."""
    return layers.TiedReadout(_embedding(rng), layers.Parameter(rng.standard_normal(c)))


def _embedding(rng):
    return layers.Embedding(rng.standard_normal((c, n)))


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
    "softmax": op(ops.softmax, (B, T, c)),
    "masked_softmax": op(ops.masked_softmax, (B, 1, T, T), causal),
    "layer_norm": op(ops.layer_norm, (B, T, n), (n,), (n,)),
    "attention": op(ops.attention, (B, H, T, m), (B, H, T + 1, m), (B, H, T + 1, n)),
    "attention, causal": op(ops.attention, (B, H, T, m), (B, H, T, m), (B, H, T, m), causal),
    "attention, scaled": op(ops.attention, (B, H, T, m), (B, H, T, m), (B, H, T, m), scale=0.6),
    "attention, bias": op(attention_with_bias, (B, H, T, m), (B, H, T, m), (B, H, T, m), (H, T, T)),
    "attention, square": op(ops.attention, (B, n, n), (B, n, n), (B, n, n)),
    "embedding": op(ops.embedding, (c, n), ids(B, T)),
    "embedding, absent words": op(ops.embedding, (c, n), given([[ABSENT, 2, 2], [ABSENT, ABSENT, 5]]), absent=ABSENT),
    "mean_pool": op(ops.mean_pool, (B, T, n)),
    "mean_pool, masked": op(ops.mean_pool, (B, T, n), given([[True, False, True], [False] * 3])),
    "dropout": op(ops.dropout, (B, T), given([[True, False, True], [True, True, False]]), rate=0.4),
    "cross_entropy": op(ops.cross_entropy, (B, T, c), ids(B, T)),
    "cross_entropy, ignore": op(ops.cross_entropy, (B, T, c), given([[1, 0, 6], [0, 5, 1]]), ignore=0),
    "cross_entropy, smoothed": op(ops.cross_entropy, (B, T, c), given([[1, 0, 6], [0, 5, 1]]), ignore=0, smoothing=0.2),
    "copied": op(ops.copied, (B, T, T + 1), given([[0, 3, 0, 5], [1, 1, 1, 2]]), given([[0, 5, 3], [1, 2, 1]])),
    "mixture_cross_entropy": op(ops.mixture_cross_entropy, (B, T, c), (B, T), shares, ids(B, T)),
    "mse": op(ops.mse, (B, n), (B, n)),
    "sum_pool": op(ops.sum_pool, (B, T, n)),
    "rnn": op(ops.rnn, (B, T, n), (B, m), (n, m), (m, m), (m,)),
    "rnn, square": op(ops.rnn, (n, n, n), (n, n), (n, n), (n, n), (n,)),
    "rnn, relu": op(ops.rnn, (B, T, n), (B, m), (n, m), (m, m), (m,), activation="relu"),
    "sum_to": op(broadcast_add, (B, n, n), (n, 1)),
    "Linear": layer(lambda rng: layers.Linear(n, m, rng), (B, T, n)),
    "Embedding": layer(_embedding, ids(B, T)),
    "Embedding, absent words": layer(_embedding, given([[ABSENT, 2, 2], [ABSENT, ABSENT, 5]])),
    "LayerNorm": layer(lambda rng: layers.LayerNorm(n), (B, T, n)),
    "Dropout, not training": layer(lambda rng: layers.Dropout(0.5), (B, n)),
    "Dropout, training": trained_dropout,
    "PositionalEncoding": layer(lambda rng: layers.PositionalEncoding(T, n), (B, T, n)),
    "LearnedPositions": layer(lambda rng: layers.LearnedPositions(T + 1, n, rng, 1.0), (B, T, n)),
    "ClassWord": layer(lambda rng: layers.ClassWord(n, rng, 1.0), (B, T, n)),
    "MultiHeadAttention": layer(lambda rng: layers.MultiHeadAttention(n, H, m, rng), (B, T, n)),
    "MultiHeadAttention, causal": layer(lambda rng: layers.MultiHeadAttention(n, H, m, rng, 0.6), (B, T, n), causal),
    "MultiHeadAttention, across": across(T, T + 2),
    "MultiHeadAttention, across, equal lengths": across(T, T),
    "Recurrent": layer(lambda rng: layers.Recurrent(n, m, rng), (B, T, n)),
    "Recurrent, from a state": recurrent_from_a_state,
    "FeedForward": layer(lambda rng: layers.FeedForward(n, m, rng), (B, T, n)),
    "FeedForward, gelu": layer(lambda rng: layers.FeedForward(n, m, rng, activation="gelu"), (B, T, n)),
    "TiedReadout": layer(tied, (B, T, n)),
    "TransformerLayer": layer(lambda rng: layers.TransformerLayer(n, H, m, rng), (B, T, n)),
    "TransformerLayer, layer norm": layer(
        lambda rng: layers.TransformerLayer(n, H, m, rng, norm="after"), (B, T, n), causal
    ),
    "TransformerLayer, feed-forward": layer(
        lambda rng: layers.TransformerLayer(n, H, m, rng, relu=False, norm="after", f=m, activation="gelu"), (B, T, n)
    ),
    "TransformerLayer, training": trained_transformer_layer,
    "TransformerLayer, norm before": norm_before_layer,
    "DecoderLayer": decoder_layer(),
    "DecoderLayer, norm before, training": decoder_layer(norm="before", bias=True, dropout=0.3),
    "one layer used twice, weights tied": layer(Twice, (B, n)),
    "one layer used twice, one vector": layer(Twice, (n,)),
    "FixedWindowModel": language_model(partial(FixedWindowModel, k=m)),
    "FixedWindowModel, sum": language_model(partial(FixedWindowModel, k=m), composition="sum", activation="relu"),
    "FixedWindowModel, mean": language_model(partial(FixedWindowModel, k=m), composition="mean"),
    "FixedWindowModel, training": language_model(partial(FixedWindowModel, k=m), dropout=0.3),
    "RecurrentModel": language_model(partial(RecurrentModel, k=m)),
    "RecurrentModel, relu, training": language_model(partial(RecurrentModel, k=m), activation="relu", dropout=0.3),
    "GPT": language_model(partial(GPT, L=1, H=H, m=m, f=n)),
    "GPT, training": language_model(partial(GPT, L=1, H=H, m=m, f=n), dropout=0.3),
    "Translator": translator(tied="readout", dropout=0.0),
    "Translator, two layers, biases, norm after": translator(
        L=2, H=1, m=2, f=m, tied="none", norm="after", bias=True, dropout=0.0, smoothing=0.0
    ),
    "Translator, tied, training": translator(tied="all", dropout=0.3),
    "Classifier": classifier(),
    "Classifier, bag of words": classifier(L=0, positions=None),
    "Classifier, learned positions, [CLS]": classifier(positions="learned", pool="first"),
    "Classifier, causal, training": classifier(causal=True, positions="learned", dropout=0.3),
    "MaskedWordModel": masked_words(),
    "MaskedWordModel, training": masked_words(dropout=0.3),
    "OneAttention": language_model(partial(OneAttention, H=H)),
    "PointerTransformer, no layers": pointer_transformer(L=0, dropout=0.0),
    "PointerTransformer, training": pointer_transformer(L=1, dropout=0.1),
    "LanguageTransformer, average": transformer(readout="average"),
    "LanguageTransformer, vec": transformer(readout="vec"),
    "LanguageTransformer, vec, every option": transformer(
        readout="vec", causal=True, layer_norm=True, positions="geometric", scaled_attention=True, train_embeddings=True
    ),
    "LanguageTransformer, shared": transformer(readout="shared", causal=True, positions="fourier"),
    "LanguageTransformer, shared, tied, every option": transformer(
        readout="shared", causal=True, layer_norm=True, positions="geometric", scaled_attention=True,
        train_embeddings=True, tied=True,
    ),
    "LanguageTransformer, shared, tied, training": transformer(
        readout="shared", causal=True, layer_norm=True, positions="geometric", scaled_attention=True,
        train_embeddings=True, tied=True, dropout=0.3,
    ),
    "LanguageTransformer, shared, tied, as many words as dimensions": transformer(
        words=n, readout="shared", causal=True, train_embeddings=True, tied=True
    ),
}  # fmt: skip

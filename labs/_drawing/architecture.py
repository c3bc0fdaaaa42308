"""A model's architecture, drawn from the model: its layers and parameters as they are, the shapes of a call it has run.

    figure = architecture(model, …)                      # two models side by side, to compare them

`columns(model)` says what is in the picture: each layer in the order in which it runs, with the shapes of its
parameters. `boxes.py` draws it. Dropout, which has no parameters and is off except in training, is left out.
"""

from _drawing.boxes import Box, Column, Repeat, Sum, draw
from mini_tf.layers import DecoderLayer, Layer, LearnedPositions, RMSNorm, TiedReadout
from mini_tf.models import GPT, GPT2, Classifier, LanguageTransformer, Llama, Translator
from mini_tf.trace import trace

import numpy as np


class Call:
    """One forward of a model, and the shapes of what its layers returned; the sizes of a batch are letters

    letters   {size: letter} of the axes of words
    """

    def __init__(self, forward, letters):
        with trace() as self.calls:
            forward()
        self.letters = letters

    def shape(self, layer, within=None, op=None):
        """The shape of what a layer returned, if possible inside another one; or of an op in the layer's call"""
        found = []
        for call in self.calls:
            *outer, called = [getattr(each.f, "__self__", None) for each in (*call.parents, call)]
            if called is layer if op is None else layer in outer and call.name in op:
                found.append((within not in outer, call.output.shape))
        if not found:
            raise ValueError(f"the model never called {type(layer).__name__}")
        return self.in_letters(min(found, key=lambda each: each[0])[1])

    def in_letters(self, shape):
        """(2, 3, 64) → "(B, T, 64)": axis 0 is the batch; words are in axis 1 of three, in axes 2 and 3 of four"""
        words = {2: [], 3: [1], 4: [2, 3]}[len(shape)]
        sizes = [self.letters.get(size, size) if i in words else size for i, size in enumerate(shape)]
        return f"({', '.join(map(str, ['B', *sizes[1:]]))})"


def columns(model):
    """The columns of a model's picture, from left to right."""
    for kind, describe in KINDS.items():
        if isinstance(model, kind):
            return describe(model)
    raise ValueError(f"no picture of a {type(model).__name__}, expected {', '.join(kind.__name__ for kind in KINDS)}")


def language_columns(model):
    """LanguageTransformer, GPT, GPT2 or Llama: trunk and readout"""
    call = Call(lambda: model.loss(np.zeros((2, model.T + 1), int)), {model.T: "T"})
    steps = trunk_steps(model.trunk, call)
    how = getattr(model, "readout", "shared")
    if how == "average":
        shape = call.shape(model, op=["mean_pool"])
        return [named(model, "words (B, T)", [*steps, Box("plain", "mean over the words", shape=shape)], f"x̂ {shape}")]
    if how == "vec":
        rows = len(model.A.W.data)
        steps.append(Box("plain", "vec: words side by side", shape=f"(B, {rows})"))
    steps.append(readout(model.A, call))
    return [named(model, "words (B, T)", steps, f"logits {call.shape(model.A)}")]


def translator_columns(model):
    """Encoder and decoder"""
    source, target = np.zeros((2, 3), int), np.zeros((2, 2), int)
    call = Call(lambda: model.logits(source, target), {3: "S", 2: "U"})
    encoder = trunk_steps(model.encoder, call)
    decoder = [*trunk_steps(model.decoder, call), readout(model.readout, call)]
    if model.encoder.embedding is model.decoder.embedding:
        decoder[0].lines, decoder[0].layer = ["the encoder's table"], None
    left = Column("Encoder", "source (B, S)", encoder, f"Z {call.shape(model.encoder)}")
    right = Column("Decoder", "translation so far (B, U)", decoder, f"logits {call.shape(model.readout)}")
    return [left, right]


def classifier_columns(model):
    """Trunk, pooling, residual blocks and readout"""
    call = Call(lambda: model.logits(np.zeros((2, model.T), int)), {model.T: "T", model.T + 1: "T + 1"})
    steps = trunk_steps(model.trunk, call, model.cls)
    pooled = call.shape(model.norm)
    steps.append(Box("plain", "mean over the words" if model.cls is None else "the vector of [CLS]", shape=pooled))
    for norm, block in zip(model.norms, model.blocks):
        steps.append(Sum([norm_box(norm, call), feed_forward_box(block, call)]))
    steps += [norm_box(model.norm, call), readout(model.A, call)]
    return [named(model, "words (B, T)", steps, f"logits {call.shape(model.A)}")]


KINDS = {
    **dict.fromkeys([LanguageTransformer, GPT, GPT2, Llama], language_columns), Translator: translator_columns,
    Classifier: classifier_columns,
}  # fmt: skip


def named(model, reads, steps, returns):
    return Column(f"{type(model).__name__}\n{model.parameter_count():,} trainable parameters", reads, steps, returns)


def trunk_steps(trunk, call, cls=None):
    """From word ids to Φ(X); cls: a ClassWord that is put in front"""
    embedding = trunk.embedding
    lines = weights(embedding) + (["fixed"] if not embedding.table.trainable else [])
    if trunk.scale != 1:
        lines.append(f"times {trunk.scale:g}")
    steps = [Box("words", "word vectors", lines, call.shape(embedding, trunk), embedding)]
    if cls is not None:
        steps.append(Box("words", "[CLS] in front", weights(cls), call.shape(cls), cls))
    if (positions := trunk.positions) is not None:
        learned = isinstance(positions, LearnedPositions)
        lines = weights(positions) if learned else [f"P {positions.P.shape}: cosines and sines, fixed"]
        steps.append(Box("plain", "+ positions", lines, call.shape(positions, trunk), positions if learned else None))
    if trunk.layers:
        looks = [[(name, p.data.shape) for name, p in layer.parameters().items()] for layer in trunk.layers]
        if any(look != looks[0] for look in looks):
            raise ValueError("the trunk's layers differ: one picture cannot stand for all of them")
        steps.append(Repeat(len(trunk.layers), layer_steps(trunk.layers[0], call, trunk.causal)))
    return steps if trunk.norm is None else [*steps, norm_box(trunk.norm, call)]


def layer_steps(layer, call, causal):
    """A TransformerLayer or DecoderLayer: its branches, each with its norm before it or after its sum"""
    branches = [(attention_box(layer.attention, call, "self-attention", causal), layer.attention_norm)]
    if isinstance(layer, DecoderLayer):
        across = attention_box(layer.cross_attention, call, "cross-attention", reads_encoder=True)
        branches.append((across, layer.cross_attention_norm))
    if layer.feed_forward is not None:
        branches.append((feed_forward_box(layer.feed_forward, call), layer.feed_forward_norm))
    steps = []
    for box, norm in branches:
        inside = [box, Box("plain", "relu", shape=box.shape)] if layer.relu else [box]
        norms = [] if norm is None else [norm_box(norm, call)]
        steps += [Sum([*norms, *inside])] if layer.norm == "before" else [Sum(inside), *norms]
    return steps


def attention_box(attention, call, title, causal=False, reads_encoder=False):
    A = call.shape(attention, op=["softmax", "masked_softmax"])
    title = f"{title}, {attention.H} heads"
    lines = [*weights(attention), f"A {A}" + (", no word sees a later one" if causal else "")]
    if attention.G < attention.H:
        lines.append(f"keys and values have {attention.G} heads")
    if attention.rotary is not None:
        lines.append("rotary positions")
    kind = "across" if reads_encoder else "attention"
    return Box(kind, title, lines, call.shape(attention), attention, reads_encoder)


def feed_forward_box(layer, call):
    return Box("feed-forward", f"feed-forward, {layer.activation}", weights(layer), call.shape(layer), layer)


def norm_box(norm, call):
    kind = "RMSNorm" if isinstance(norm, RMSNorm) else "layer norm"
    return Box("norm", f"{kind}: {weights(norm)[0]}", [], call.shape(norm), norm)


def readout(layer, call):
    if not isinstance(layer, TiedReadout):
        return Box("readout", "readout", weights(layer), call.shape(layer), layer)
    table = layer.table.data
    return Box("readout", "readout", [f"the word vectors again: {table.T.shape}"], call.shape(layer))


def weights(layer):
    """["query, key, value: W (64, 64)", "output: W (64, 64)"]: its parameters, layers that look alike in one line"""
    own, groups = [], {}
    for name, member in layer.own_members():
        if not isinstance(member, Layer):
            own.append((name, member.data.shape))
        elif inside := _shapes((key, parameter.data.shape) for key, parameter in member.parameters().items()):
            groups.setdefault((inside, name == "output"), []).append(name)
    return [each for each in (_shapes(own),) if each] + [
        f"{', '.join(names)}: {inside}" for (inside, _), names in groups.items()
    ]


def _shapes(parameters):
    """"gamma, beta (64,)": names and shapes, those of the same shape together"""
    by_shape = {}
    for name, shape in parameters:
        by_shape.setdefault(shape, []).append(name)
    return ", ".join(f"{', '.join(names)} {shape}" for shape, names in by_shape.items())


def architecture(*models):
    """The picture of a model, or of several side by side."""
    return draw([column for model in models for column in columns(model)])

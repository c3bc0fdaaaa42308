"""The pictures of models show what the models have: every parameter once, layers in their order, shapes of a call."""

from _drawing.architecture import architecture, columns
from _drawing.boxes import Box, Repeat, Sum
from mini_tf.models import GPT, GPT2, Classifier, LanguageTransformer, Llama, Translator
from mini_tf.trace import trace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch

vectors = np.random.default_rng(0).standard_normal((11, 8))
words = np.zeros((2, 7), int)
SHARED = {"readout": "shared", "causal": True, "train_embeddings": True}
SIZES = {"T": 6, "L": 2, "H": 2, "m": 3}
PAIR = {"n": 8, "f": 10, **SIZES}
MODELS = {
    "average": lambda: LanguageTransformer(vectors, **SIZES, readout="average"),
    "vec": lambda: LanguageTransformer(vectors, **SIZES, layer_norm=True, positions="geometric"),
    "shared": lambda: LanguageTransformer(vectors, **SIZES, **SHARED, tied=True, dropout=0.1),
    "GPT": lambda: GPT(vectors, **SIZES, f=10),
    "GPT2": lambda: GPT2(vectors, **SIZES, f=10),
    "GPT2, no biases": lambda: GPT2(vectors, **SIZES, f=10, bias=False),
    "Llama": lambda: Llama(vectors, T=6, L=2, H=4, G=2, m=4, f=10),
    "before": lambda: Translator(11, 9, **PAIR),
    "after, tied": lambda: Translator(11, 11, **PAIR, norm="after", tied="all", bias=True),
    "mean": lambda: Classifier(vectors, classes=3, **SIZES, f=10, blocks=2),
    "[CLS]": lambda: Classifier(vectors, classes=3, **SIZES, f=0, pool="first", positions="learned"),
    "bag": lambda: Classifier(vectors, classes=3, **SIZES | {"L": 0}),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]()


def forward(model):
    if isinstance(model, Translator):
        return model.logits(words[:, :3], words[:, :2])
    return model.logits(words[:, :6]) if isinstance(model, Classifier) else model.loss(words)


def boxes(steps, times=1):
    """(box, how many layers it stands for) in the order of the steps"""
    for step in steps:
        if isinstance(step, Box):
            yield step, times
        else:
            inside, more = (step.branch, 1) if isinstance(step, Sum) else (step.steps, step.times)
            yield from boxes(inside, times * more)


def test_every_parameter_is_in_the_picture(model):
    found = [each for column in columns(model) for each in boxes(column.steps)]
    drawn = sum(times * sum(p.data.size for p in box.layer.parameters().values()) for box, times in found if box.layer)
    assert drawn == sum(p.data.size for p in model.parameters().values())
    for box, _ in found:
        if box.layer is not None:
            written = "\n".join([box.title, *box.lines])
            assert all(str(p.data.shape) in written for p in box.layer.parameters().values())


def test_boxes_are_in_the_order_of_the_calls(model):
    with trace() as calls:
        forward(model)
    owners = [getattr(call.f, "__self__", None) for call in calls]
    for column in columns(model):
        layers = [box.layer for box, _ in boxes(column.steps) if box.layer is not None]
        places = [owners.index(layer) for layer in layers]
        assert places == sorted(places)
        assert len(set(places)) == len(places)


def test_shapes_are_those_of_a_call():
    (column,) = columns(MODELS["vec"]())
    assert [box.shape for box, _ in boxes(column.steps)] == [*6 * ["(B, T, 8)"], "(B, 48)", "(B, 11)"][1:]
    assert column.returns == "logits (B, 11)"
    encoder, decoder = columns(MODELS["after, tied"]())
    assert encoder.returns == "Z (B, S, 8)"
    attention = [line for box, _ in boxes(decoder.steps) for line in box.lines if line.startswith("A ")]
    assert attention == ["A (B, 2, U, U), no word sees a later one", "A (B, 2, U, S)"]
    (column,) = columns(MODELS["[CLS]"]())
    assert "A (B, 2, T + 1, T + 1)" in [line for box, _ in boxes(column.steps) for line in box.lines]


def test_norms_are_where_the_model_has_them():
    for name, inside in (("before", True), ("after, tied", False)):
        repeat = next(step for step in columns(MODELS[name]())[1].steps if isinstance(step, Repeat))
        kinds = [[box.kind for box in step.branch] for step in repeat.steps if isinstance(step, Sum)]
        assert kinds == [[*["norm"] * inside, kind] for kind in ("attention", "across", "feed-forward")]
        assert sum(isinstance(step, Box) and step.kind == "norm" for step in repeat.steps) == 3 * (not inside)


def test_layers_that_differ_are_refused():
    model = MODELS["average"]()
    model.trunk.layers[1] = LanguageTransformer(vectors, **SIZES | {"m": 4}, readout="average").trunk.layers[0]
    with pytest.raises(ValueError, match="the trunk's layers differ"):
        architecture(model)
    with pytest.raises(ValueError, match="no picture of a Linear, expected LanguageTransformer"):
        architecture(MODELS["vec"]().A)


def test_texts_fit_in_their_boxes_and_the_picture(model):
    figure = architecture(model)
    renderer = FigureCanvasAgg(figure).get_renderer()
    (axes,) = figure.axes
    frames = [patch.get_window_extent(renderer) for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    for text in axes.texts:
        if text.get_text():
            extent = text.get_window_extent(renderer)
            assert 0 <= extent.x0 < extent.x1 <= figure.bbox.width, text.get_text()
            for frame in frames:
                if frame.contains(extent.x0 + extent.width / 2, extent.y0 + extent.height / 2):
                    assert frame.x0 <= extent.x0 < extent.x1 <= frame.x1, text.get_text()

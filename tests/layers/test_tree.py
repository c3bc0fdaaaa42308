"""A layer or a model shows itself as a tree, and finds its parameters wherever they are."""

from mini_tf.errors import UserError
from mini_tf.layers import Dropout, Layer, LayerNorm, Linear, Parameter
from mini_tf.models import GPT, LanguageTransformer, Translator
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest


def test_a_single_layer_is_one_line(rng):
    assert repr(Linear(3, 4, rng)) == "Linear: 16 trainable parameters  W (3, 4), b (4,)"
    assert repr(Linear(3, 4, rng, bias=False)) == "Linear: 12 trainable parameters  W (3, 4)"
    assert repr(Dropout(0.1)) == "Dropout(rate=0.1)"
    assert repr([LayerNorm(3)]) == "[LayerNorm: 6 trainable parameters  gamma (3,), beta (3,)]"


def test_a_model_is_a_tree_in_which_what_is_alike_is_shown_once(rng):
    shown = repr(GPT(rng.standard_normal((200, 8)).astype("f4"), T=4, L=3, H=2, m=4, f=16)).splitlines()
    assert shown[0] == "GPT(T=4, L=3, H=2, m=4, f=16, dropout=0.0): 3,320 trainable parameters"
    text = "\n".join(" ".join(line.split()) for line in shown)
    assert "layers.0 to layers.2, each: TransformerLayer 568" in text
    assert "query, key, value, output, each: Linear 64 W (8, 8)" in text
    assert "A: TiedReadout 1,600 table is trunk.embedding.table" in text
    counts = {line.split(": ")[0].strip(): line.split()[-1] for line in shown}
    assert len(counts) == len(shown) < 16


def test_what_is_not_trained_is_called_fixed(rng):
    model = LanguageTransformer(rng.standard_normal((20, 8)), T=4, L=1, H=1, m=4)
    assert "embedding: Embedding 0 table (20, 8) fixed" in " ".join(repr(model).split())
    layer = Linear(2, 2)
    layer.b.trainable = False
    assert repr(layer) == "Linear: 4 trainable parameters  W (2, 2), b (2,) fixed"


def test_every_line_fits_a_terminal(rng):
    for model in (Translator(100, 120, n=32, L=6, H=2, m=16, f=64),
                  LanguageTransformer(rng.standard_normal((200, 64)), T=32, L=6, H=8, m=64, layer_norm=True)):  # fmt: skip
        assert all(len(line) <= 100 for line in repr(model).splitlines())
    assert PRESETS


class HalfBuilt(Layer):
    def __init__(self):
        self.W = Parameter(np.ones(1))
        self.W.data = None
        self.inner = Linear(1, 1)
        raise RuntimeError


def test_it_never_raises():
    layer = HalfBuilt.__new__(HalfBuilt)
    assert repr(layer) == "HalfBuilt: no trainable parameters"
    with pytest.raises(RuntimeError):
        layer.__init__()
    assert repr(layer).splitlines()[0] == "HalfBuilt: 2 trainable parameters  W without data"
    layer.config = ["not", "a", "dict"]
    assert repr(layer).startswith("HalfBuilt: ")
    layer.inner.parent = layer                           # a circle
    assert repr(layer).startswith("<tests.layers.test_tree.HalfBuilt object at ")


def test_only_neighbours_in_one_list_are_shown_as_one():
    layer = Layer()
    layer.one, layer.two, layer.x = [Linear(2, 2)], [Linear(2, 2)], Linear(2, 2)
    layer.heads = {"0": Linear(2, 2), "2": Linear(2, 2), "3": Linear(2, 2)}
    layer.some = [LayerNorm(2), LayerNorm(2), Dropout(0.1), LayerNorm(2)]
    names = [line.split(":")[0].strip() for line in repr(layer).splitlines()[1:]]
    assert names == ["one.0", "two.0", "x", "heads.0", "heads.2 to heads.3, each", "some.0 to some.1, each", "some.3"]


def test_long_values_are_cut():
    layer = Layer()
    layer.config = {"words": "x" * 500}
    layer.inner = Layer()
    for number in range(30):
        setattr(layer.inner, f"parameter_{number}", Parameter(np.ones(3)))
    assert all(len(line) <= 100 for line in repr(layer).splitlines())


def test_two_parameters_of_one_name_are_refused():
    layer = Layer()
    layer.branches = {"a.W": Parameter(np.ones(1)), "a": {"W": Parameter(np.ones(2))}}
    with pytest.raises(UserError, match="two parameters of this Layer are named 'branches.a.W'"):
        layer.parameters()


def test_a_set_of_layers_is_refused():
    layer = Layer()
    layer.words = {"thou", "thee"}
    assert layer.parameters() == {}
    layer.branches = {Parameter(np.ones(1))}
    with pytest.raises(UserError, match="branches is a set: .* put them into a list or a dict"):
        layer.parameters()


@pytest.mark.parametrize("data", [1.0, None, [1.0, 2.0], np.float64(1.0)])
def test_a_parameter_is_an_array(data):
    """A number would never learn: an update in place cannot change it."""
    with pytest.raises(UserError, match="expected an array: np.array"):
        Parameter(data)


class Nested(Layer):
    """Layers in a dict, in lists of lists, in a tuple."""

    def __init__(self, rng):
        self.branches = {"left": Linear(2, 3, rng), "right": [Linear(3, 2, rng), Linear(2, 2, rng, bias=False)]}
        self.grid = [[LayerNorm(2)], (Parameter(np.ones(2)), "a word", 3)]
        self.plain = Linear(2, 2, rng)
        self.again = self.plain


def test_parameters_in_dicts_and_nested_lists_are_found(rng):
    layer = Nested(rng)
    assert list(layer.parameters()) == [
        "branches.left.W", "branches.left.b", "branches.right.0.W", "branches.right.0.b", "branches.right.1.W",
        "grid.0.0.gamma", "grid.0.0.beta", "grid.1.0", "plain.W", "plain.b",
    ]  # fmt: skip
    assert layer.parameter_count() == 9 + 8 + 4 + 4 + 2 + 6
    assert "branches.right.0: Linear 8 W (3, 2), b (2,)" in " ".join(repr(layer).split())
    assert "grid.1.0 (2,)" in repr(layer)
    assert "again: Linear 6 W is plain.W, b is plain.b" in " ".join(repr(layer).split())
    assert [path for path, member in layer.members() if isinstance(member, Layer)] == [
        "branches.left", "branches.right.0", "branches.right.1", "grid.0.0", "plain", "again"
    ]  # fmt: skip

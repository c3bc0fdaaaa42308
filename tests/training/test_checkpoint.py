"""A learner's own Layer in a file, and back."""

import re

from mini_tf.errors import UserError
from mini_tf.layers import Dropout, Layer, LayerNorm, Linear, MultiHeadAttention, Parameter
from mini_tf.models import GPT
from mini_tf.models.masked import hide_words
from mini_tf.models.saved import SavedModel
from mini_tf.training import Adam, RandomWindows, Training, load_checkpoint, save_checkpoint

import numpy as np
import pytest


class MyModel(Layer):
    def __init__(self, rng, width=4):
        self.layers = {"in": Linear(3, width, rng), "out": [Linear(width, 2, rng), LayerNorm(2)]}
        self.scale = Parameter(np.ones(1, np.float32))


def test_a_layer_of_ones_own_comes_back(tmp_path, rng):
    first, second = MyModel(rng), MyModel(rng)
    save_checkpoint(tmp_path / "mine.safetensors", first)
    assert load_checkpoint(tmp_path / "mine.safetensors", second) is second
    for name, parameter in first.parameters().items():
        assert np.array_equal(second.parameters()[name].data, parameter.data), name


def test_without_a_model_it_says_what_to_write(tmp_path, rng):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, MyModel(rng))
    with pytest.raises(UserError, match=re.escape(f"holds a MyModel, a layer of your own: build it as it was, model = MyModel(…), "
                                                  f"and give it: load_checkpoint({str(path)!r}, model)")):  # fmt: skip
        load_checkpoint(path)


def test_another_layer_does_not_fit(tmp_path, rng):
    path = tmp_path / "mine.safetensors"
    save_checkpoint(path, MyModel(rng))
    with pytest.raises(UserError, match=r"layers.in.W is \(3, 4\), expected \(3, 5\)"):
        load_checkpoint(path, MyModel(rng, width=5))
    with pytest.raises(UserError, match="does not fit the model: "):
        load_checkpoint(path, Linear(3, 4))


def test_a_mini_tf_layer_alone_can_be_saved(tmp_path, rng):
    first, second = Linear(3, 4, rng), Linear(3, 4)
    save_checkpoint(tmp_path / "linear.safetensors", first)
    assert np.array_equal(load_checkpoint(tmp_path / "linear.safetensors", second).W.data, first.W.data)


def test_a_models_file_fits_only_a_model_of_that_configuration(tmp_path, rng):
    table = rng.standard_normal((9, 4)).astype("f4")
    save_checkpoint(tmp_path / "gpt.safetensors", GPT(table, T=4, L=1, H=1, m=2, f=4))
    with pytest.raises(UserError, match="another configuration: T = 4 there, 8 here"):
        load_checkpoint(tmp_path / "gpt.safetensors", GPT(table, T=8, L=1, H=1, m=2, f=4))
    with pytest.raises(UserError, match="another configuration"):
        load_checkpoint(tmp_path / "gpt.safetensors", MyModel(rng))


def test_a_file_that_does_not_fit_changes_nothing(tmp_path, rng):
    path, layer, other = tmp_path / "mine.safetensors", Layer(), Layer()
    layer.a, layer.b = Linear(2, 2, rng), Linear(2, 3, rng)
    other.a, other.b = Linear(2, 2), Linear(2, 4)
    save_checkpoint(path, layer)
    with pytest.raises(UserError, match="does not fit"):
        load_checkpoint(path, other)
    assert not other.a.W.data.any()


def test_a_class_of_ones_own_may_have_the_name_of_one_of_mini_tfs(tmp_path, rng):
    before = SavedModel.registry["GPT"]

    class GPT(before):
        pass

    try:
        table = rng.standard_normal((9, 4)).astype("f4")
        save_checkpoint(tmp_path / "ours.safetensors", before(table, T=4, L=1, H=1, m=2, f=4))
        save_checkpoint(tmp_path / "mine.safetensors", GPT(table, T=4, L=1, H=1, m=2, f=4))
        assert type(load_checkpoint(tmp_path / "ours.safetensors")) is before
        assert type(load_checkpoint(tmp_path / "mine.safetensors")) is GPT
    finally:
        SavedModel.registry["GPT"] = before
    with pytest.raises(UserError, match="holds a GPT: import the module that defines it first, tests.training.test_checkpoint"):
        load_checkpoint(tmp_path / "mine.safetensors")


class Empty(Layer):
    def __init__(self):
        self.W = np.ones(3)


@pytest.mark.parametrize(("what", "message"), [(Empty(), "this Empty has no parameters to save; .*self.W = Parameter"),
                                               ({"W": np.ones(3)}, "a dict was to be saved, expected a Layer"),
                                               (Linear, "the class Linear was to be saved, expected one of its layers: Linear")])  # fmt: skip
def test_what_cannot_be_saved(tmp_path, what, message):
    with pytest.raises(UserError, match=message):
        save_checkpoint(tmp_path / "x.safetensors", what)
    assert not list(tmp_path.iterdir())


def test_a_seed_is_no_generator(rng):
    """It would draw the same mask in every step, and the same matrix for queries and keys."""
    message = r"rng is 0, expected a NumPy generator: rng = np.random.default_rng\(0\), made once"
    table = rng.standard_normal((9, 4)).astype("f4")
    model = GPT(table, T=4, L=1, H=1, m=2, f=4, dropout=0.5)
    for attempt in (
        lambda: Linear(3, 4, 0),
        lambda: hide_words(np.zeros((1, 3), int), 5, 0),
        lambda: MultiHeadAttention(4, 1, 4, 0),
        lambda: Dropout(0.5)(np.ones(3), 0),
        lambda: Dropout(0)(np.ones(3), 0),
        lambda: model.loss(np.zeros((2, 5), int), 0),
        lambda: Training(model, RandomWindows(np.arange(9), 4, 2), Adam(1e-3), rng=0),
    ):
        with pytest.raises(UserError, match=message):
            attempt()

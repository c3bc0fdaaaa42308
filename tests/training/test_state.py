"""A training that is saved, loaded and continued gives the losses and weights of one that was never stopped."""

from dataclasses import replace

from mini_tf.errors import UserError
from mini_tf.layers import Layer, Parameter
from mini_tf.training import SGD, Adam, RandomWindows, Training, fit, load_training, save_training
from mini_tf.training.language import prepare
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest

SIZES = {"T": 6, "L": 1, "H": 2, "m": 3, "f": 8, "k": 6}
PRESET_NAMES = ["quick", "lab", "window", "recurrent", "gpt", "char", "pointer"]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    text = " ".join(f"w{i}x" for i in np.minimum(rng.zipf(1.4, 900), 200))
    return {vectors: prepare(text, 8, 6, vectors=vectors) for vectors in ("random", "eigenvectors")}


def new_training(name, corpus, optimizer=None):
    preset = PRESETS[name]
    options = {letter: SIZES.get(letter, value) for letter, value in preset.model.items()}
    options |= {"dropout": 0.2}
    preset = replace(preset, n=8, model=options, batch=4, anew=3)
    words = corpus[preset.vectors]
    training = preset.training(preset.new_model(words, 0), words, 40, 0)
    training.optimizer = optimizer or training.optimizer
    return training


def steps(training, count):
    return [training.one_step()[0] for _ in range(count)]


def same(one, other):
    for name, parameter in one.parameters.items():
        np.testing.assert_array_equal(parameter.data, other.parameters[name].data)


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_continued_training_is_the_same_to_the_last_bit(name, corpus, tmp_path):
    whole = new_training(name, corpus)
    losses = steps(whole, 23)

    first = new_training(name, corpus)
    assert steps(first, 11) == losses[:11]
    assert first.measured(3.5)
    first.rows.append({"step": 11, "validation_loss": 3.5, "seconds": 1.0})
    save_training(tmp_path / "training.safetensors", first)
    second = load_training(tmp_path / "training.safetensors", new_training(name, corpus))
    assert second.step == 11
    assert second.rows == first.rows
    assert second.best[:2] == (3.5, 11)
    assert steps(second, 12) == losses[11:]
    same(second, whole)
    second.take_best()
    first.take_best()
    same(second, first)


def test_momentum_is_kept(corpus, tmp_path):
    whole = new_training("quick", corpus, SGD(0.1, momentum=0.9))
    losses = steps(whole, 8)
    first = new_training("quick", corpus, SGD(0.1, momentum=0.9))
    steps(first, 4)
    save_training(tmp_path / "t.safetensors", first)
    second = load_training(tmp_path / "t.safetensors", new_training("quick", corpus, SGD(0.1, momentum=0.9)))
    assert steps(second, 4) == losses[4:]
    same(second, whole)


class Scale(Layer):
    """loss = mean (β·x − x)², with a number to learn that is no array of numbers"""

    def __init__(self):
        self.beta = Parameter(np.zeros(()))

    def loss(self, x, rng=None):
        error = self.beta.data * x - x
        return (error * error).mean(), lambda: self.beta.accumulate(np.asarray(2 * (error * x).mean()))


def test_the_memory_of_a_single_number_is_kept(tmp_path):
    def new():
        return Training(Scale(), RandomWindows(np.arange(9), 2, 3), Adam(0.1))

    whole, first = new(), new()
    losses = steps(whole, 6)
    steps(first, 3)
    save_training(tmp_path / "t.safetensors", first)
    assert steps(load_training(tmp_path / "t.safetensors", new()), 3) == losses[3:]


def test_fit_goes_on_where_a_training_stopped(corpus):
    whole, parts = new_training("quick", corpus), new_training("quick", corpus)
    history = fit(whole, 20, lambda: 1 / whole.step, every=5)
    fit(parts, 10, lambda: 1 / parts.step, every=5)
    again = fit(parts, 20, lambda: 1 / parts.step, every=5)
    assert [row["step"] for row in again.rows] == [row["step"] for row in history.rows] == [5, 10, 15, 20]
    assert [row["train_loss"] for row in again.rows] == [row["train_loss"] for row in history.rows]
    same(parts, whole)


def test_a_state_of_another_training_is_refused(corpus, tmp_path):
    path = tmp_path / "t.safetensors"
    with pytest.raises(UserError, match="there is no file .* expected the state of a training"):
        load_training(path, new_training("quick", corpus))
    save_training(path, new_training("quick", corpus))
    with pytest.raises(UserError, match=r"the training's state is of another model: \S+ is .*, expected"):
        load_training(path, new_training("lab", corpus))
    with pytest.raises(UserError, match="is of the optimizer Adam, expected SGD"):
        load_training(path, new_training("quick", corpus, SGD(0.1)))
    without = new_training("quick", corpus)
    without.rng = None
    with pytest.raises(UserError, match="has a generator for dropout, unlike this training"):
        load_training(path, without)
    path.write_bytes(b"not a file of tensors")
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        load_training(path, new_training("quick", corpus))


def test_a_loss_that_is_nan_changes_nothing(corpus):
    training = new_training("quick", corpus)
    before = {name: p.data.copy() for name, p in training.parameters.items()}
    training.parameters["A.W"].data[0, 0] = np.nan
    with pytest.raises(UserError, match="the loss became nan at step 1"):
        training.one_step()
    assert training.step == 0
    assert all(np.array_equal(p.data, before[name]) for name, p in training.parameters.items() if name != "A.W")


def test_plain_iterators_can_train_but_not_be_saved(corpus):
    training = Training(new_training("quick", corpus).model, iter([np.zeros((2, 7), int)]), SGD(0.1))
    training.one_step()
    with pytest.raises(UserError, match="the batches are a list_iterator, whose position cannot be saved"):
        training.state()
    with pytest.raises(UserError, match="the batches ended after 1 steps, expected an endless iterator"):
        training.one_step()

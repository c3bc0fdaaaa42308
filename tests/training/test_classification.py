"""From texts with labels to a classifier's run folder: what is said, what is kept, and what can be learned at all."""

import json
import os
from dataclasses import replace

from mini_tf.data import split_labelled
from mini_tf.errors import UserError
from mini_tf.metrics import accuracy
from mini_tf.models import Classifier
from mini_tf.training import load_training, save_training
from mini_tf.training.classification import (
    CLASSIFICATION,
    log_probabilities,
    mean_loss,
    prepare_texts,
)
from mini_tf.training.run import Run
from mini_tf.training.runner import train
from mini_tf.training.text_batches import TextBatch

import numpy as np
import pytest

SIZES = {"T": 8, "blocks": 1, "k": 16, "dropout": 0.0}
PRESETS = {
    "classify": {**SIZES, "L": 1, "H": 2, "m": 8, "f": 32},
    "classify-bag": {**SIZES, "L": 0, "positions": None},
}
FILES = ["config.json", "confusion.png", "curves.png", "gradient_flow.png", "metrics.csv", "model.safetensors", "moments", "predictions.tsv",
         "results.json", "vocabulary.json"]  # fmt: skip


def preset(name, **changes):
    options = {"n": 16, "model": PRESETS[name], "learning_rate": 1e-2, "words": 200, "steps": 60, "every": 20, "warm_up": 10}
    return replace(CLASSIFICATION[name], **options | changes)


def fillers(rng):
    return [f"w{i}" for i in rng.integers(0, 12, rng.integers(1, 6))]


def by_one_word(count=200):
    """Texts whose class is decided by the one word of two that is somewhere in them."""
    rng, examples = np.random.default_rng(0), []
    for i in range(count):
        words, label = fillers(rng), ("good", "bad")[i % 2]
        words.insert(rng.integers(0, len(words) + 1), label)
        examples.append((" ".join(words), label))
    return examples


def by_order(count=600):
    """Texts with an a and a b; the class says which comes first."""
    rng, examples = np.random.default_rng(0), []
    for i in range(count):
        words, pair = fillers(rng), ("ab", "ba")[i % 2]
        for at, word in zip(sorted(rng.integers(0, len(words) + 1, 2)) + np.arange(2), pair):
            words.insert(at, word)
        examples.append((" ".join(words), f"{pair[0]} first"))
    return examples


def trained(chosen, examples, steps):
    """(the test's accuracy, the texts) of a new model"""
    rest, test = split_labelled(examples, 0.2)
    texts = prepare_texts(*split_labelled(rest, 0.1), test, chosen)
    training = chosen.training(chosen.new_model(texts, 0), texts, steps, 0)
    for _ in range(steps):
        training.one_step()
    return accuracy(log_probabilities(training.model, texts.test[0]).argmax(1), texts.test[1]), texts


# The texts ----------------------------------------------------------------------------------------------


def test_texts_are_prepared():
    train = [("One two three four five six seven eight nine, ten.", "z"), ("Two films!", "b"), ("two Films?", "a")]
    said = []
    texts = prepare_texts(train, [("two new films", "a")], [("films " * 9, "z")], preset("classify"), said.append)
    assert texts.vocabulary.classes == ["a", "b", "z"]
    assert texts.vocabulary.words[3:] == ["two", "films"]                # those that occur twice in training
    assert [labels.tolist() for _, labels in (texts.train, texts.validation, texts.test)] == [[2, 1, 0], [0], [2]]
    assert [len(ids) for ids in texts.train[0]] == [8, 3, 3]
    assert texts.validation[0][0].tolist() == [3, 2, 4]
    assert texts.test_texts == ["films " * 9]
    assert "3 texts to train on, 1 to choose by, 1 to test; 5 words; classes: a, b, z" in said[0]
    assert said[1:] == ["2 texts are longer than T = 8 words: they are cut there"]


def test_an_unknown_label_gets_a_sentence():
    train = [("one two", "a"), ("one three", "b")]
    with pytest.raises(UserError, match="the label 'c' does not occur in training, expected one of 'a', 'b'"):
        prepare_texts(train, train, [("one", "c")], preset("classify"))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_text_without_words_gets_a_sentence(part):
    """Nothing but a zero-width space."""
    parts = [[("one two", "a"), ("one three", "b")] for _ in range(3)]
    parts[part].append(("\u200b", "a"))
    with pytest.raises(UserError, match="no words"):
        prepare_texts(*parts, preset("classify"))


# What can be learned ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_one_word_decides(name):
    assert trained(preset(name), by_one_word(), 60)[0] == 1.0


def test_order_is_learned_by_attention_and_not_by_a_bag():
    assert trained(preset("classify"), by_order(), 400)[0] > 0.95
    assert trained(preset("classify-bag"), by_order(), 200)[0] < 0.65


# The training -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=PRESETS)
def run(request, tmp_path_factory):
    """(name, folder, model, texts, results, lines said) of a short training."""
    folder, said = tmp_path_factory.mktemp("runs") / "run", []
    model, texts, results = train(
        preset(request.param), by_one_word(120), Run.new(folder), device="cpu", say=said.append
    )
    return request.param, folder, model, texts, results, said


def test_a_run_folder_is_whole(run):
    name, folder, model, texts, results, said = run
    assert sorted(os.listdir(folder)) == FILES
    assert json.loads((folder / "results.json").read_text()) == results
    assert results["accuracy"] == results["bayes"] == results["logistic"] == 1.0
    assert results["largest"] == 0.5
    assert results["test"] == pytest.approx(mean_loss(model, texts.test), rel=1e-6)
    assert results["stopped"] == "finished"
    assert any(line.startswith("Classifier n=16 T=8") and "on the cpu" in line for line in said)
    config = json.loads((folder / "config.json").read_text())
    assert config["settings"]["name"] == name
    assert config["texts"] == {"train": len(texts.train[0]), "test": 12, "parameters": model.parameter_count()}
    header, *lines = (folder / "predictions.tsv").read_text().splitlines()
    assert header == "probability\tpredicted\tlabel\ttext"
    assert len(lines) == 12
    for line, text in zip(lines, texts.test_texts):
        p, predicted, label, shown = line.split("\t")
        assert (predicted, shown) == (label, text)
        assert label in text.split()
        assert 0.5 < float(p) <= 1


def test_a_run_is_loaded(run):
    _, folder, model, texts, _, _ = run
    again, vocabulary = Run.open(folder).load()
    assert isinstance(again, Classifier)
    assert vocabulary.words == texts.vocabulary.words
    assert vocabulary.classes == ["bad", "good"]
    np.testing.assert_array_equal(log_probabilities(again, texts.test[0]), log_probabilities(model, texts.test[0]))
    ids = vocabulary.read("w1 GOOD")
    assert vocabulary.classes[int(again.logits(ids[None]).argmax())] == "good"


DAMAGED = {
    "not JSON": "{",
    "a list": "[1, 2]",
    "no classes": lambda words: words.pop("classes"),
    "no words": lambda words: words.pop("words"),
    "a word too few": lambda words: words["words"].pop(),
    "a word twice": lambda words: words["words"].append(words["words"][-1]),
    "a class too few": lambda words: words["classes"].pop(),
    "a class too many": lambda words: words["classes"].append("other"),
    "classes that are a number": lambda words: words.update(classes=2),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_vocabulary_is_named(tmp_path, damage):
    prepared = prepare_texts(*[[("good one", "good"), ("bad one", "bad")]] * 3, preset("classify-bag", least=1))
    run = Run.new(tmp_path / "run")
    run.save_config({}, prepared.vocabulary)
    run.save_model(preset("classify-bag").new_model(prepared, 0))
    assert Run.open(tmp_path / "run").load()[1].classes == ["bad", "good"]
    content = damage
    if callable(damage):
        words = json.loads((tmp_path / "run" / "vocabulary.json").read_text())
        damage(words)
        content = json.dumps(words)
    (tmp_path / "run" / "vocabulary.json").write_text(content)
    with pytest.raises(UserError):
        Run.open(tmp_path / "run").load()


def test_the_mean_loss_is_that_of_each_text():
    texts = trained(preset("classify"), by_one_word(60), 1)[1]
    model = preset("classify").new_model(texts, 1)
    for parameter in model.parameters().values():
        parameter.data = np.random.default_rng(2).standard_normal(parameter.data.shape)      # float64
    alone = [float(model.loss(TextBatch(ids[None], np.array([label])))[0]) for ids, label in zip(*texts.test)]
    assert mean_loss(model, texts.test) == pytest.approx(np.mean(alone), rel=1e-9)


def test_a_continued_training_is_the_same_to_the_last_bit(tmp_path):
    chosen = preset("classify", model=PRESETS["classify"] | {"dropout": 0.3})
    rest, test = split_labelled(by_one_word(60), 0.2)
    texts = prepare_texts(*split_labelled(rest, 0.1), test, chosen)

    def new_training():
        return chosen.training(chosen.new_model(texts, 0), texts, 30, 0)

    whole, first = new_training(), new_training()
    losses = [whole.one_step()[0] for _ in range(20)]
    assert [first.one_step()[0] for _ in range(11)] == losses[:11]
    save_training(tmp_path / "training.safetensors", first)
    second = load_training(tmp_path / "training.safetensors", new_training())
    assert [second.one_step()[0] for _ in range(9)] == losses[11:]


@pytest.mark.parametrize("name", ["classify", "classify-bag"])
def test_the_real_presets_make_a_model(name):
    """Their sizes fit together, and a step can be taken."""
    texts = prepare_texts(*[by_one_word(20)] * 3, CLASSIFICATION[name])
    training = CLASSIFICATION[name].training(CLASSIFICATION[name].new_model(texts, 0), texts, 1, 0)
    assert training.one_step()[0] == pytest.approx(np.log(2), rel=1e-5)

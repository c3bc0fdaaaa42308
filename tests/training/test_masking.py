"""From a text to a model that fills its gaps: passages, the run folder, and gaps that are filled."""

import json
import os
from dataclasses import replace

from mini_tf.decoding.texts import best_words, fill_gaps
from mini_tf.errors import UserError
from mini_tf.models import MaskedWordModel
from mini_tf.models.masked import MASK
from mini_tf.text import tokenize
from mini_tf.training.masking import (
    MASKING,
    MaskedPassages,
    mean_loss,
    passages_in_order,
)
from mini_tf.training.run import Run
from mini_tf.training.runner import train

import numpy as np
import pytest

COLOURS = {"sky": "blue", "grass": "green", "blood": "red", "snow": "white"}
PRESET = replace(
    MASKING["fill"], n=32, model={"T": 12, "L": 1, "H": 2, "m": 8, "f": 32, "dropout": 0.0}, learning_rate=1e-2,
    words=400, steps=300, every=150, share=0.25, warm_up=10,
)  # fmt: skip


def lines(count=200):
    """Each line has two things, and the colour of each."""
    rng, things = np.random.default_rng(0), list(COLOURS)
    pairs = (rng.choice(things, 2, replace=False) for _ in range(count))
    return [f"the {a} is {COLOURS[a]} , the {b} is {COLOURS[b]}" for a, b in pairs]


TEXT = "\n".join(lines())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(folder, model, passages, results)"""
    folder = tmp_path_factory.mktemp("runs") / "fill"
    return folder, *train(PRESET, TEXT, Run.new(folder), device="cpu")


# Passages -----------------------------------------------------------------------------------------------


def test_passages_are_lines_that_follow_each_other():
    text = "\n\n".join(f"line{i} has words" for i in range(100)) + "\n   \n"
    said = []
    found = PRESET.prepare(text, say=said.append)
    parts = [found.train, found.validation, found.test]
    assert [len(part) for part in parts] == [85, 5, 10]                  # a passage begins at every line
    assert found.vocabulary.words[:4] == ["[MASK]", "line0", "has", "words"]
    assert "100 lines, 104 different words: 85 passages to train on, 10 to test" in said[0]
    seen, number = set(), 0
    for part in parts:
        last = number + len(part) - 1
        for ids in part:
            words = [found.vocabulary.words[i] for i in ids]
            expected = [w for k in range(number, last + 1) for w in (f"line{k}", "has", "words", "\n")]
            assert words == expected[: len(words)]                       # no passage goes on in the next part
            assert len(words) in (4, 8, 12)
            seen.add(len(words))
            number += 1
    assert seen == {4, 8, 12}                                            # sixteen are cut to T = 12
    assert found.counts.sum() == sum(map(len, found.train))
    assert found.counts[MASK] == 0


@pytest.mark.parametrize("text", ["", "\n\n", "one line", "one\ntwo"])
def test_too_short_a_text(text):
    with pytest.raises(UserError, match="too few for three parts; give a longer text"):
        PRESET.prepare(text)


def test_other_words_are_hidden_each_round_and_the_same_in_a_test():
    passages = PRESET.prepare(TEXT)
    c = len(passages.vocabulary)
    batches = MaskedPassages(passages.train, c, 400, 0.25, 1)
    rounds = [[next(batches) for _ in range(len(batches))] for _ in range(2)]
    hidden = [sum(int((batch.targets >= 0).sum()) for batch in some) for some in rounds]
    words = sum(map(len, passages.train))
    for count, some in zip(hidden, rounds):
        assert sum(batch.size for batch in some) == words
        assert count == pytest.approx(0.25 * words, rel=0.15)
    assert hidden[0] != hidden[1]
    state = json.loads(json.dumps(batches.state()))
    again = MaskedPassages(passages.train, c, 400, 0.25, 2)
    again.restore(state)
    for one, other in zip([next(batches) for _ in range(10)], [next(again) for _ in range(10)]):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.targets, other.targets)
    one, other = (passages_in_order(passages.test, c, 100, 0.25) for _ in range(2))
    assert sum(map(len, one)) == len(passages.test)
    for a, b in zip(one, other):
        np.testing.assert_array_equal(a.ids, b.ids)


# A run --------------------------------------------------------------------------------------------------


def test_a_run_folder_is_whole(run):
    folder, model, passages, results = run
    assert sorted(os.listdir(folder)) == [
        "config.json", "curves.png", "gradient_flow.png", "metrics.csv", "model.safetensors", "moments", "results.json",
        "sample.txt",
        "vocabulary.json",
    ]  # fmt: skip
    assert json.loads((folder / "results.json").read_text()) == results
    moments = Run.open(folder).moments()
    assert [step for step, _ in moments] == [0, PRESET.steps // 10]
    for _, parameters in moments:
        assert parameters.keys() == model.parameters().keys()
    assert any((moments[0][1][name] != moments[1][1][name]).any() for name in moments[0][1])
    assert results["test"] < results["unigram"] / 2
    test = passages_in_order(passages.test, len(passages.vocabulary), PRESET.words, PRESET.share)
    assert results["test"] == pytest.approx(mean_loss(model, test), rel=1e-6)
    sample = (folder / "sample.txt").read_text().split("\n")
    assert any("____" in line for line in sample)
    shown = [line for line in sample if line.startswith("    true: ")]
    assert 0 < len(shown) <= 20
    assert all("; guesses: '" in line for line in shown)


def test_a_loaded_model_guesses_the_same(run):
    folder, model, passages, _ = run
    again, vocabulary = Run.open(folder).load()
    assert isinstance(again, MaskedWordModel)
    assert vocabulary.words == passages.vocabulary.words
    text = "the sky is ____ , the grass is green"
    assert fill_gaps(again, vocabulary, text) == fill_gaps(model, passages.vocabulary, text)


@pytest.mark.parametrize("thing", COLOURS)
def test_a_word_that_its_neighbours_decide_is_put_back(run, thing):
    _, model, passages, _ = run
    other = next(name for name in COLOURS if name != thing)
    rest = f" , the {other} is {COLOURS[other]}"
    filled, gaps = fill_gaps(model, passages.vocabulary, f"the {thing} is ____{rest}")
    assert tokenize(filled) == tokenize(f"the {thing} is {COLOURS[thing]}{rest}")
    assert [word for word, _ in gaps[0]][0] == COLOURS[thing]
    assert gaps[0][0][1] > 0.5
    assert fill_gaps(model, passages.vocabulary, f"the ____ is {COLOURS[thing]}{rest}")[1][0][0][0] == thing   # from the right


def test_several_gaps(run):
    _, model, passages, _ = run
    filled, gaps = fill_gaps(model, passages.vocabulary, "the sky is ____ , __ blood is [MASK]", most=3)
    assert filled == "the sky is blue, the blood is red"
    assert [len(gap) for gap in gaps] == [3] * 3
    for gap in gaps:
        p = [p for _, p in gap]
        assert p == sorted(p, reverse=True)
        assert 0 < sum(p) <= 1 + 1e-9


def test_best_words_are_a_distribution(run):
    _, model, passages, _ = run
    ids = passages.vocabulary.encode(["the", "[MASK]", "is"])
    found = best_words(model, passages.vocabulary, ids, 1, len(passages.vocabulary) - 1)
    assert sum(p for _, p in found) == pytest.approx(1, abs=1e-6)
    assert "[MASK]" not in [word for word, _ in found]


def test_the_mask_is_never_a_guess(run):
    """Not even when more guesses are wanted than there are words."""
    _, model, passages, _ = run
    _, (gap,) = fill_gaps(model, passages.vocabulary, "the sky is ____", most=1000)
    assert "[MASK]" not in [word for word, _ in gap]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the sky is blue", "there is no gap in 'the sky is blue': write ____"), ("", "there is no gap"), ("a_b", "there is no gap"),
        ("the sea is ____", "1 word.*'sea'"),
        ("the sky is ____ " * 3, r"the text has 13 words, expected at most T = 12"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled(run, text, message):
    _, model, passages, _ = run
    with pytest.raises(UserError, match=message):
        fill_gaps(model, passages.vocabulary, text)


def test_passages_without_a_letter(tmp_path):
    """A text of numbers: no word of it is fit to be shown as a gap, but the training ends well."""
    text = "\n".join(f"{i} {i + 1} {i + 2} {i + 3} !" for i in range(40))
    _, _, results = train(PRESET, text, Run.new(tmp_path / "run"), steps=2, device="cpu")
    assert np.isfinite(results["test"])
    assert (tmp_path / "run" / "sample.txt").exists()

"""The comparison of all models: the same words for all, honest choices, the files, going on after an interruption."""

import csv
import math
import os
import re
import shutil
import signal
from dataclasses import replace

from mini_tf.errors import Terminated, UserError
from mini_tf.experiment import ladder
from mini_tf.files import FolderLock
from mini_tf.models import NGramModel
from mini_tf.text import join, tokenize
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from tests.cases import cases

import numpy as np
import pytest

SIZES = {
    "window": {"T": 3, "k": 8}, "recurrent": {"T": 5, "k": 8}, "quick": {"T": 8, "m": 4},
    "pointer": {"T": 8, "L": 1, "m": 4, "f": 8},
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def tiny():
    """The presets in small, so that a comparison takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for name, sizes in SIZES.items():
            preset = PRESETS[name]
            small = replace(preset, n=8, model=preset.model | sizes, steps=6, every=3, batch=4, validation_words=40,
                            sample_words=20)  # fmt: skip
            patch.setitem(PRESETS, name, small)
        yield


@pytest.fixture(scope="module")
def text():
    """1,500 words with some order in them; the last part has words that the first has not."""
    rng = np.random.default_rng(0)
    words = "the fat cat ate a rat and then my lord said good morrow to his dear father , . ! \n".split(" ")
    drawn = [words[i] for i in np.abs(rng.normal(0, 7, 1500)).astype(int) % len(words)]
    return " ".join(drawn[:-5] + ["Milan", "isle", "Milan", "sea", "cat"])


@pytest.fixture(scope="module")
def climbed(text, tmp_path_factory):
    """(rungs, folder) of a comparison."""
    folder = tmp_path_factory.mktemp("ladder") / "compare"
    return ladder.climb(text, folder), folder


@pytest.fixture
def rungs(climbed):
    return climbed[0]


@pytest.fixture
def folder(climbed, tmp_path):
    """A copy of the comparison's folder."""
    return shutil.copytree(climbed[1], tmp_path / "compare")


def test_every_model_is_in_the_table(rungs, folder):
    names = [rung.model for rung in rungs]
    assert names[0] == "every word alike"
    assert ladder.BAR in names
    assert names[-5:] == [*ladder.NEURAL.values(), ladder.MIXED]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["table.csv", "table.md", "table.png", *SIZES])
    with open(folder / "table.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == names
    for row, rung in zip(rows, rungs):
        assert float(row["test"]) == pytest.approx(rung.test)
        assert float(row["perplexity"]) == pytest.approx(math.exp(rung.test))
    markdown = (folder / "table.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in markdown for name in names)
    assert (folder / "table.png").read_bytes().startswith(b"\x89PNG")


def test_losses_are_those_of_the_test_words(rungs, text):
    words = ladder.Words(text)
    first = int(0.9 * len(words.ids))
    assert words.test_start == first
    assert len(words.train) == int(first * 0.95) == words.validation_start
    uniform = rungs[0]
    assert uniform.test == pytest.approx(math.log(len(words.vocabulary)))
    bar = next(rung for rung in rungs if rung.model == ladder.BAR)
    discount, fewer = map(float, re.findall(r"D = (\S+), (\S+) without the validation words", bar.about)[0])
    model = NGramModel(3, len(words.vocabulary), discount=discount).fit(words.ids[:first])
    assert bar.test == pytest.approx(-model.log_probabilities(words.ids, first).mean())
    model = NGramModel(3, len(words.vocabulary), discount=discount).fit(words.train)
    assert fewer == pytest.approx(-model.log_probabilities(words.ids, first).mean(), abs=5e-4)
    new = [words.vocabulary.index[word] for word in ("Milan", "isle", "sea")]
    np.testing.assert_array_equal(words.is_new, np.isin(words.ids[first:], new))
    share = words.is_new.mean()
    for rung in rungs:
        assert rung.test == pytest.approx(share * rung.new + (1 - share) * rung.known)


def test_a_model_told_the_new_words_predicts_them_better(rungs):
    told = next(rung for rung in rungs if rung.model == ladder.ORACLE)
    plain = next(rung for rung in rungs if rung.model == "modified, order 5")
    assert told.new < plain.new - 0.5


def test_the_share_of_a_mixture_is_the_best():
    own, other = np.log([0.5, 0.01, 0.3]), np.log([0.1, 0.2, 0.3])
    share = ladder.best_share(own, other)

    def loss(share):
        return -np.log(share * np.exp(own) + (1 - share) * np.exp(other)).mean()

    assert 0.01 < share < 0.99
    assert loss(share) <= min(loss(share - 0.01), loss(share + 0.01))
    assert loss(share) < min(loss(0.01), loss(0.99))


def test_the_test_words_decide_nothing(climbed, text, tmp_path):
    """With the words of the test part in another order, all choices and validation losses stay the same."""
    tokens = tokenize(text)
    first = int(0.9 * len(tokens))
    old = tokens[first:-5]                               # the new words stay where they are: ids are by first occurrence
    other = join(tokens[:first] + old[::-1] + tokens[-5:])
    assert tokenize(other)[first:-5] == old[::-1]
    again = ladder.climb(other, tmp_path / "other")
    for one, two in zip(climbed[0], again):
        assert one.validation == pytest.approx(two.validation, rel=1e-5), one.model
        assert re.sub(r"\S+ without.*", "", one.about) == re.sub(r"\S+ without.*", "", two.about)
        assert one.model == "every word alike" or one.test != two.test


def test_a_trained_model_is_not_trained_again(rungs, text, folder, monkeypatch):
    def not_again(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(ladder, "train", not_again)
    said = []
    again = ladder.climb(text, folder, say=said.append)
    assert [r.test for r in again] == pytest.approx([r.test for r in rungs])
    assert said[-1].startswith("pointer: trained before")
    with pytest.raises(UserError, match=r"window was trained with seed = 0, expected 1; choose another --run"):
        ladder.climb(text, folder, seed=1)
    with pytest.raises(UserError, match=r"window was trained on other data: put back what was, or choose"):
        ladder.climb(text + " cat", folder)
    with pytest.raises(UserError, match=r"window was trained with steps = 6, expected 5"):
        ladder.climb(text, folder, steps=5)
    preset = PRESETS["recurrent"]
    monkeypatch.setitem(PRESETS, "recurrent", replace(preset, model=preset.model | {"k": 9}))
    with pytest.raises(UserError, match=r"recurrent was trained with k = 8, expected 9"):
        ladder.climb(text, folder)


def test_an_interrupted_training_is_not_in_the_table(rungs, text, folder, monkeypatch):
    shutil.rmtree(folder / "quick")
    whole = ladder.train

    def interrupted(*arguments, **options):
        model, corpus, results = whole(*arguments, **options)
        return model, corpus, results | {"stopped": "interrupted"}

    with monkeypatch.context() as patch:
        patch.setattr(ladder, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ladder.climb(text, folder)
    (folder / "quick" / "results.json").unlink()
    (folder / "quick" / ".part-rest").write_text("of a file that was being written when the process was killed")
    (folder / ".DS_Store").write_text("")
    again = ladder.climb(text, folder)
    assert [r.test for r in again] == pytest.approx([r.test for r in rungs], abs=1e-4)
    assert not (folder / "quick" / ".part-rest").exists()


@pytest.mark.parametrize(("name", "step"), cases([], [("pointer", 4), ("recurrent", 2), ("recurrent", 5)]))
def test_a_comparison_that_was_terminated_goes_on_exactly(name, step, rungs, text, tmp_path, monkeypatch):
    one_step = Training.one_step

    def stops(self, **options):
        if type(self.batches).__name__ == batches[name] and self.step + 1 == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return one_step(self, **options)

    batches = {"recurrent": "ConsecutiveWindows", "pointer": "BatchesWithNewWords"}
    with monkeypatch.context() as patch, pytest.raises(Terminated):
        patch.setattr(Training, "one_step", stops)
        ladder.climb(text, tmp_path / "compare")
    assert [number for number, _ in Run(tmp_path / "compare" / name).states()][-1] == step
    said = []
    again = ladder.climb(text, tmp_path / "compare", say=said.append)
    assert f"going on after step {step}" in said
    assert [(r.model, r.validation, r.test) for r in again] == [(r.model, r.validation, r.test) for r in rungs]


def test_one_comparison_at_a_time_in_a_folder(text, tmp_path):
    (tmp_path / "compare").mkdir()
    with FolderLock(tmp_path / "compare"), pytest.raises(UserError, match="is writing to .*compare"):
        ladder.climb(text, tmp_path / "compare")


def test_damaged_results_are_one_sentence(text, folder):
    for content in ("{", "[]", "null", "{}"):
        (folder / "quick" / "results.json").write_text(content)
        with pytest.raises(UserError, match=r"results.json (is damaged: delete the folder|cannot be read)"):
            ladder.climb(text, folder)


def test_no_word_vectors_know_the_test_words():
    assert {ladder._preset(name, None).vectors for name in ladder.NEURAL} <= {"random", "training"}


def test_folders_and_texts_that_do_not_fit(text, tmp_path):
    (tmp_path / "file").write_text("")
    for path in ("file", "file/in/it"):
        with pytest.raises(UserError, match="is a file, or in one; expected a folder"):
            ladder.climb(text, tmp_path / path)
    with pytest.raises(UserError, match="has file in it, which is not of a comparison"):
        ladder.climb(text, tmp_path)
    with pytest.raises(UserError, match="the corpus has 4 words, too few"):
        ladder.climb("too short a text", tmp_path / "new")
    with pytest.raises(UserError, match="has 7 different words, expected more than 8 for the preset quick"):
        ladder.climb("a b c d e f g " * 100, tmp_path / "new")
    with pytest.raises(UserError, match="training text has 17 tokens, expected at least 24: a window of"):
        ladder.climb("a b c d e f g h i j k l m n o p q r s t ", tmp_path / "new")
    assert not (tmp_path / "new").exists()

"""mini-tf train --preset classify and fill, mini-tf classify, and mini-tf fill, as a user types them."""

import csv
import json
import os
import sys
from dataclasses import replace

from mini_tf import cli
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest

WORDS = {"good": ["fine", "lovely", "great"], "bad": ["dull", "awful", "poor"]}
CLASSIFY = {"T": 8, "L": 1, "H": 2, "m": 4, "f": 16, "k": 8, "dropout": 0.0}
BAG = {"T": 8, "L": 0, "positions": None, "k": 8, "dropout": 0.0}
TINY = {"n": 8, "learning_rate": 1e-2, "words": 200, "steps": 60, "every": 20, "warm_up": 10}
LINES = [f"the {thing} is {colour}" for thing, colour in [("sky", "blue"), ("grass", "green"), ("snow", "white")] * 20]


def rows(count=60):
    """(text, label): a text of some words, one of which says what its label is."""
    rng = np.random.default_rng(0)
    for i in range(count):
        label = ("good", "bad")[i % 2]
        words = [f"w{k}" for k in rng.integers(0, 5, 3)]
        yield " ".join([*words, WORDS[label][i // 2 % 3]]), label


def written(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return written(tmp_path_factory.mktemp("tables") / "table.csv", ["text", "label"], rows())


def use_tiny_presets(patch):
    for name, sizes in (("classify", CLASSIFY), ("classify-bag", BAG)):
        tiny = replace(PRESETS[name], model=sizes, **TINY)
        patch.setitem(PRESETS, name, tiny)
    sizes = {"T": 12, "L": 1, "H": 2, "m": 4, "f": 16, "dropout": 0.0}
    patch.setitem(PRESETS, "fill", replace(PRESETS["fill"], model=sizes, **TINY | {"n": 32, "steps": 300, "every": 150}))


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("classify", …) → (exit code, stdout, stderr), in an empty folder, with tiny presets."""
    use_tiny_presets(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return command


def train(folder, *arguments):
    """The run folder that `mini-tf train` made."""
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_presets(patch)
        patch.setattr(sys, "argv", ["mini-tf", "train", "--run", str(folder), *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
    return folder


@pytest.fixture(scope="module")
def trained(table, tmp_path_factory):
    """A run of a classifier that has learned the table."""
    return train(tmp_path_factory.mktemp("runs") / "trained", "--preset", "classify", "--table", table)


@pytest.fixture(scope="module")
def filler(tmp_path_factory):
    """A run of a model that has learned to fill gaps in LINES."""
    corpus = tmp_path_factory.mktemp("texts") / "lines.txt"
    corpus.write_text("\n".join(LINES), encoding="utf-8")
    return train(tmp_path_factory.mktemp("runs") / "filler", "--preset", "fill", "--corpus", corpus)


# Training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["classify", "classify-bag"])
def test_train_writes_a_run_and_shows_accuracies(mini_tf, table, tmp_path, preset):
    code, out, err = mini_tf("train", "--preset", preset, "--table", table)
    assert code == 0, err
    folder = tmp_path / "runs" / preset
    assert sorted(os.listdir(folder)) == [
        "config.json", "confusion.png", "curves.png", "gradient_flow.png", "metrics.csv", "model.safetensors", "moments", "predictions.tsv",
        "results.json", "vocabulary.json",
    ]  # fmt: skip
    assert [row["step"] for row in csv.DictReader((folder / "metrics.csv").open())] == ["20", "40", "60"]
    results = json.loads((folder / "results.json").read_text())
    for line in ("always the largest class", "naive Bayes", "logistic regression", f"{preset}, on 6 new texts"):
        assert line in out
    assert f"{results['accuracy']:.1%}" in out
    assert "54 texts" not in out                         # some of those that are not for the test choose the best step
    assert f"mini-tf classify runs/{preset}" in out
    assert "\x1b" not in out


@pytest.mark.exhaustive
def test_the_same_seed_trains_the_same_classifier(mini_tf, table, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        given = ("--preset", "classify", "--table", table, "--run", name, "--steps", 3, "--seed", seed)
        assert mini_tf("train", *given)[0] == 0
    model = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert model["a"] == model["b"]
    assert model["a"] != model["c"]


def test_columns_are_chosen(mini_tf, tmp_path):
    written(tmp_path / "mine.csv", ["kind", "number", "review"], ([label, 1, text] for text, label in rows()))
    code, out, err = mini_tf("train", "--preset", "classify-bag", "--table", "mine.csv", "--text", "review", "--label", "kind", "--steps", 2)
    assert code == 0, err
    assert "classes: bad, good" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,kind\na,b\n", "has no column 'label'"), ("review,label\na,b\n", "has no column 'text'"),
        ("text,label\none,a\ntwo\n", "line 3: the row has 1 field, expected 2"),
        ("text,label\none,a\ntwo, or three,b\n", "line 3: the row has 3 fields, expected 2"),
        ('text,label\none,a\n"two,b\nthree,a\n', "line 3: the row that begins here cannot be read"),
        ("text,label\none,a\n ,b\n", "line 3: the column 'text' is empty"), ("text,label\none,a\ntwo,\n", "line 3: the column 'label' is empty"),
        ("text,label\none,a\ntwo,b\nthree,a\n", "has 2 examples, expected at least 3"),
        ("text,label\none,a\ntwo,a\n", "2 rows and not two different labels"), ("text,label\n", "0 rows"), ("", "is empty"),
        ("text;label\none;a\n", "Columns are separated by commas"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_used(mini_tf, tmp_path, content, message):
    (tmp_path / "table.csv").write_text(content)
    code, _, err = mini_tf("train", "--preset", "classify", "--table", "table.csv")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1                          # one sentence, no traceback
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--preset", "translate", "--table", "t.csv"), "for --table: --preset classify"),
        (("--preset", "fill", "--table", "t.csv"), "--preset fill learns from --corpus FILE, not from --table"),
        (("--table", "t.csv"), "for --table: --preset classify"),
        (("--preset", "classify", "--corpus", "t.txt"), "--preset classify learns from --table FILE, not from --corpus"),
        (("--preset", "classify-bag", "--pairs", "t.tsv"), "for --pairs: --preset translate"),
        (("--preset", "classify", "--table", "none.csv"), "there is no file none.csv"),
        (("--preset", "fill", "--corpus", "none.txt"), "there is no file none.txt"),
    ],
)  # fmt: skip
def test_files_of_another_preset(mini_tf, arguments, message):
    code, _, err = mini_tf("train", *arguments)
    assert (code, message in err) == (2, True), err


# Classifying --------------------------------------------------------------------------------------------


def test_classify_a_text(mini_tf, trained, tmp_path):
    code, out, err = mini_tf("classify", trained, "w1 w2 Lovely")
    assert (code, err) == (0, "")
    best, other = out.splitlines()
    assert (best.split()[0], other.split()[0]) == ("good", "bad")
    assert float(best.split()[1]) > 0.9
    assert float(best.split()[1]) + float(other.split()[1]) == pytest.approx(1, abs=0.002)
    assert mini_tf("classify", trained, "w1 w2 awful")[1].startswith("bad ")
    code, out, err = mini_tf("classify", trained, "w1 w2 lovely", "--words", "--picture", "words.png")
    assert code == 0
    assert "w1 w2 lovely" in out
    assert "blue, for good: " in out
    assert "orange, against good: " in out
    assert "drawn in words.png" in err
    assert (tmp_path / "words.png").read_bytes()[:4] == b"\x89PNG"


def test_words_of_an_untrained_model(mini_tf, table):
    """The gradient is 0 everywhere: the readout has not moved, or every word is unknown."""
    from mini_tf.models import Classifier
    from mini_tf.text.classes import ClassVocabulary
    from mini_tf.training.run import Run

    run, vocabulary = Run.new("new"), ClassVocabulary([["one", "two"]])
    vocabulary.classes = ["a", "b"]
    run.save_config({}, vocabulary)
    run.save_model(Classifier(np.ones((5, 4), np.float32), classes=2))
    code, out, _ = mini_tf("classify", "new", "one two", "--words", "--picture", "words.png")
    assert code == 0
    assert "one two" in out


def test_words_that_are_unknown_or_too_many(mini_tf, trained):
    code, _, err = mini_tf("classify", trained, "w1 splendid lovely")
    assert (code, "1 unknown word, read as [UNK]: splendid" in err) == (0, True)
    code, _, err = mini_tf("classify", trained, "w1 " * 9)
    assert (code, "the text has 9 words; the model reads the first T = 8 of them" in err) == (0, True)


def test_a_bag_has_no_attention_to_draw(mini_tf, table, tmp_path):
    mini_tf("train", "--preset", "classify-bag", "--table", table, "--run", "bag", "--steps", 3)
    assert mini_tf("classify", "bag", "w1 lovely", "--picture", "words.png")[0] == 0
    assert (tmp_path / "words.png").read_bytes()[:4] == b"\x89PNG"


def test_classify_a_table(mini_tf, trained, tmp_path):
    examples = [("w1 lovely", "good"), ("w3 great w2", "good"), ("w1 poor", "bad"), ("w2 awful", "good")]
    written(tmp_path / "new.csv", ["label", "text"], ((label, text) for text, label in [*examples, ("w4 dull", "bad")]))
    code, out, err = mini_tf("classify", trained, "--table", "new.csv")
    assert code == 0, err
    assert "right: 4 of 5, 80.0%" in out
    counts = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.split()[0] in ("bad", "good")}
    assert counts == {"bad": ["2", "0"], "good": ["1", "2"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\nw1,good\nw2,good\nw3,fair\nw4,fair\n", "the label 'fair' does not occur in training, expected one of 'bad', 'good'"),
        ("text,kind\nw1,good\n", "has no column 'label'"), ("text,label\nw1,good\nw2\n", "line 3"),
        ("text,label\nw1,good\nw2,bad\nw1,good\n\u200b,bad\n", "has no words"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_classified(mini_tf, trained, tmp_path, content, message):
    (tmp_path / "new.csv").write_text(content, encoding="utf-8")
    code, out, err = mini_tf("classify", trained, "--table", "new.csv")
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expected a text in quotation marks, or --table FILE"), (("a", "--table", "t.csv"), "and not both"),
        (("",), "has no words"), (("  ",), "has no words"), (("\u200b",), "has no words"),
        (("--table", "t.csv", "--words"), "--words and --picture show one text"),
        (("--table", "t.csv", "--picture", "p.png"), "--words and --picture show one text"), (("--table", "none.csv"), "there is no file none.csv"),
    ],
)  # fmt: skip
def test_what_cannot_be_classified(mini_tf, trained, arguments, message):
    code, out, err = mini_tf("classify", trained, *arguments)
    assert (code, out) == (2, "")
    assert message in err


# Filling ------------------------------------------------------------------------------------------------


def test_fill_gaps(mini_tf, filler):
    code, out, err = mini_tf("fill", filler, "the sky is ____")
    assert (code, err) == (0, "")
    filled, *guesses = out.splitlines()
    assert filled == "the sky is blue"
    assert len(guesses) == 5
    assert guesses[0].split()[0] == "'blue'"
    p = [float(line.split()[1]) for line in guesses]
    assert p == sorted(p, reverse=True)
    code, out, _ = mini_tf("fill", filler, "the ____ is [MASK]\\nthe grass is ____", "--guesses", 2)
    assert out.splitlines()[1] == "the grass is green"
    assert [line for line in out.splitlines() if line.startswith("gap")] == ["gap 1:", "gap 2:", "gap 3:"]
    assert out.count("\n") == 2 + 3 * (1 + 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [("the sky is blue", "there is no gap"), ("the sea is ____", "'sea'"), ("the sky is ____ " * 3, "at most T = 12")],
)
def test_what_cannot_be_filled(mini_tf, filler, text, message):
    code, out, err = mini_tf("fill", filler, text)
    assert (code, out) == (2, "")
    assert message in err
    assert "--unknown" not in err                        # an option that fill has not


def test_train_to_fill_shows_examples(mini_tf, tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    code, out, err = mini_tf("train", "--preset", "fill", "--corpus", "lines.txt", "--steps", 5)
    assert code == 0, err
    results = json.loads((tmp_path / "runs" / "fill" / "results.json").read_text())
    assert f"{results['test']:.3f}" in out
    assert f"{results['unigram']:.3f}" in out
    assert "____" in out
    assert "true: '" in out
    assert "mini-tf fill runs/fill" in out
    (tmp_path / "short.txt").write_text("one\ntwo\n")
    code, _, err = mini_tf("train", "--preset", "fill", "--corpus", "short.txt")
    assert (code, "too few for three parts" in err) == (2, True)


# The wrong run ------------------------------------------------------------------------------------------


def test_each_command_names_the_right_one(mini_tf, trained, filler):
    from mini_tf.models import GPT
    from mini_tf.text import Vocabulary
    from mini_tf.training.run import Run

    run = Run.new("language")
    run.save_config({}, Vocabulary(list("abcdefg")))
    run.save_model(GPT(np.ones((7, 4), np.float32), T=5, L=1, H=2, m=2, f=4))
    texts = {"classify": ["some text"], "fill": ["a ____"], "translate": ["Je vois."], "generate": []}
    right = {"classify": trained, "fill": filler, "generate": "language"}
    for command, folder in right.items():
        for wrong, text in texts.items():
            if wrong != command:
                code, out, err = mini_tf(wrong, folder, *text)
                assert (code, out) == (2, "")
                assert f"mini-tf {command} {folder}" in err
                assert err.count("\n") == 1


def test_what_is_no_run(mini_tf):
    for command, text in (("classify", "a text"), ("fill", "a ____")):
        code, _, err = mini_tf(command, "nowhere", text)
        assert (code, "there is no folder nowhere" in err) == (2, True)

"""The command mini-tf explore: what it writes, and how it refuses."""

import json
import re
from dataclasses import replace

from mini_tf.explore import small
from mini_tf.explore.command import page_of
from mini_tf.training.registry import PRESETS

import pytest


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("explore", …) → (exit code, stdout, stderr), in an empty folder, with tinier models."""
    quick = PRESETS["quick"]
    sizes = {"T": 8, "L": 1, "H": 2, "m": 4}
    tiny = replace(quick, n=8, model=quick.model | sizes, validation_words=20, sample_words=30)
    monkeypatch.setitem(PRESETS, "quick", tiny)
    monkeypatch.setattr(small, "SMALL", replace(small.SMALL, n=8, model=small.SMALL.model | sizes, steps=10, every=10))
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("the cat sat on the mat and the dog sat on the log . what is there , said the cat . " * 12)
    return path


def data_of(path):
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', path.read_text(encoding="utf-8"), re.S)[1])


@pytest.mark.exhaustive
def test_a_small_model_is_trained_and_explored(mini_tf, corpus, tmp_path):
    code, out, err = mini_tf("explore", "--corpus", corpus, "--text", "the cat sat on the mat")
    assert (code, err) == (0, "")
    assert "written: explore.html" in out
    data = data_of(tmp_path / "explore.html")
    labels = ["first step (step 1 of 10)", "after a tenth (step 1 of 10)", "at the end (step 10 of 10)"]
    assert [recording["label"] for recording in data["recordings"]] == labels
    assert data["words"] == ["the", "cat", "sat", "on", "the"]
    assert data["alternatives"]
    assert "chosen" not in data


@pytest.mark.exhaustive
def test_a_run_is_explored(mini_tf, corpus, tmp_path):
    assert mini_tf("train", "--corpus", corpus, "--steps", "10", "--run", "run")[0] == 0
    code, _, err = mini_tf("explore", "run", "--text", "the cat sat", "--bug", "layer_norm: γ forgotten", "--out", "a.html")
    assert (code, err) == (0, "")
    data = data_of(tmp_path / "a.html")
    assert [one["name"] for one in data["alternatives"]] == ["layer_norm: γ forgotten"]
    assert data["chosen"] == 0                           # the page opens with the only bug that was asked for
    labels = ["before the first step", "after step 1", "at the end"]
    assert [recording["label"] for recording in data["recordings"]] == labels
    code, _, _ = mini_tf("explore", "run", "--bug", "layer_norm: γ forgotten", "--out", "b.html")  # its own sample
    assert code == 0
    assert len(data_of(tmp_path / "b.html")["words"]) == 8


def test_an_op_and_a_function_of_a_file(mini_tf, tmp_path):
    assert mini_tf("explore", "layer_norm")[0] == 0
    assert data_of(tmp_path / "layer_norm.html")["checker"]["verdict"] == "PASS"
    (tmp_path / "my_ops.py").write_text("def double(x):\n    return 2 * x, lambda dy: 3 * dy\n")
    assert mini_tf("explore", "my_ops.py::double", "--shape", "x=2,3", "--out", "double.html")[0] == 0
    data = data_of(tmp_path / "double.html")
    assert data["checker"]["verdict"] == "FAIL"
    assert data["sheets"][0]["file"] == "my_ops.py"


def test_the_page_is_named_after_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "quick.1").mkdir(parents=True)
    (tmp_path / "stories.bin").touch()
    asked = None, "layer_norm", "ops/my_ops.py::Attention", "runs/quick.1/", "stories.bin"
    assert [str(page_of(what)) for what in asked] == [
        "explore.html", "layer_norm.html", "Attention.html", "quick.1.html", "stories.html",
    ]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), [
    (("nowhere",), "nowhere is neither a run folder nor the name of an op"),
    (("layer_nrm",), "did you mean the op layer_norm"),
    (("my_ops.py::f",), "my_ops.py is not there"),
    (("layer_norm", "--text", "a text"), "--text is for models; layer_norm is a function"),
    (("--shape", "x=2,3"), "--shape and --arg are for your functions"),
    ((".", "--corpus", "corpus.txt"), "--corpus is for the small model"),
    (("--corpus", "corpus.txt", "--text", ""), "has no words"),
    (("--corpus", "corpus.txt", "--text", "zebra crossing"), "the model knows no word"),
    (("--corpus", "corpus.txt", "--text", "the cat sat", "--bug", "nonsense"), "is no planted bug"),
    (("layer_norm", "--out", "."), "cannot be written"),
])  # fmt: skip
def test_what_cannot_be_explored_is_one_sentence(mini_tf, corpus, arguments, message):
    code, _, err = mini_tf("explore", *arguments)
    assert code == 2
    assert message in err.replace("\n", " ")
    assert err.count("error:") == 1

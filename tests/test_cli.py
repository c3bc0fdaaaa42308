"""The commands, as a user types them: what they print, which files they write, and how they refuse."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

from mini_tf import cli
from mini_tf.errors import Terminated
from mini_tf.experiment import ladder
from mini_tf.training import runner
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest


@pytest.fixture
def run_folder(mini_tf, corpus):
    code, _, err = mini_tf("train", "--corpus", corpus, "--run", "trained")
    assert code == 0, err
    return "trained"


def test_train_writes_a_run_and_prints_a_sample(mini_tf, corpus, tmp_path):
    code, out, err = mini_tf("train", "--corpus", corpus)
    assert code == 0, err
    folder = tmp_path / "runs" / "quick"
    assert sorted(os.listdir(folder)) == [
        "config.json", "curves.png", "gradient_flow.png", "metrics.csv", "model.safetensors", "moments", "results.json",
        "sample.txt",
        "vocabulary.json",
    ]  # fmt: skip
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert [row["step"] for row in rows] == ["4", "8"]
    results = json.loads((folder / "results.json").read_text())
    assert results["stopped"] == "finished"
    assert results["uniform"] > results["unigram"]
    assert f"{results['test']:.3f}" in out
    assert "mini-tf generate runs/quick" in out
    config = json.loads((folder / "config.json").read_text())
    assert config["settings"]["steps"] == 8
    assert config["settings"]["model"]["readout"] == "shared"
    assert (folder / "curves.png").read_bytes()[:4] == b"\x89PNG"
    prompt, text = (folder / "sample.txt").read_text().split("\n\n[the model goes on:]\n\n")
    shown = out[out.index("16 words of the test text:\n") :].replace("\n", " ")
    assert shown.startswith(f"16 words of the test text: {prompt} The model goes on: {text.split()[0]}".replace("\n", " "))
    assert "\x1b" not in out                             # no colours into a pipe


@pytest.mark.exhaustive
def test_the_same_seed_trains_the_same_model(mini_tf, corpus, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert mini_tf("train", "--corpus", corpus, "--run", name, "--steps", 3, "--seed", seed)[0] == 0
    model = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert model["a"] == model["b"]
    assert model["a"] != model["c"]


def test_generate_goes_on_from_a_prompt(mini_tf, run_folder):
    code, out, _ = mini_tf("generate", run_folder, "--prompt", "my lord", "--words", 20)
    assert code == 0
    assert out.startswith("my lord")
    assert mini_tf("generate", run_folder, "--prompt", "my lord", "--words", 20)[1] == out
    assert mini_tf("generate", run_folder, "--prompt", "my lord", "--words", 20, "--seed", 1)[1] != out
    greedy = [mini_tf("generate", run_folder, "--argmax", "--words", 9, "--seed", seed)[1] for seed in (0, 1)]
    assert greedy[0] == greedy[1]
    assert mini_tf("generate", run_folder, "--top-k", 1, "--words", 9)[1] == greedy[0]


def test_generate_says_what_it_uses_of_a_long_prompt_and_takes_line_breaks(mini_tf, run_folder):
    code, out, err = mini_tf("generate", run_folder, "--prompt", "my lord said good morrow to his dear father", "--words", 3)
    assert code == 0
    assert "the prompt has 9 words; the model sees the last T = 8" in err
    assert mini_tf("generate", run_folder, "--prompt", r"my lord\nsaid", "--words", 3)[1].startswith("my lord\nsaid")


def test_unknown_words_are_named_or_skipped(mini_tf, run_folder):
    code, out, err = mini_tf("generate", run_folder, "--prompt", "my lordd xyzzy")
    assert code == 2
    assert "'lordd' (near: lord" in err
    assert "'xyzzy'" in err
    code, out, err = mini_tf("generate", run_folder, "--prompt", "my lordd xyzzy", "--unknown", "skip", "--words", 3)
    assert code == 0
    assert out.startswith("my")
    assert "2 unknown words left out" in err


def test_gradcheck_prints_a_table_and_ends_with_0(mini_tf):
    code, out, _ = mini_tf("gradcheck", "softmax", "Layer")
    assert code == 0
    assert out.count("PASS") == 2
    assert "2 of 2 right" in out


def test_gradcheck_ends_with_1_when_a_gradient_is_wrong(mini_tf, monkeypatch):
    from mini_tf.gradcheck.examples import EXAMPLES

    wrong = (lambda x: (x * x, lambda dy: dy * x), [np.ones(3)], {})
    monkeypatch.setitem(EXAMPLES, "square", lambda rng: wrong)
    code, out, _ = mini_tf("gradcheck", "square")
    assert code == 1
    assert "FAIL: gradients of square" in out
    assert "off by 50 %" in out


def test_gradcheck_writes_a_page_and_the_numbers(mini_tf, tmp_path):
    page, numbers = tmp_path / "page.html", tmp_path / "numbers.json"
    code, out, _ = mini_tf("gradcheck", "softmax", "tanh", "--html", page, "--json", numbers)
    assert code == 0
    assert f"written: {page}" in out.replace("\n", "")
    assert page.read_text(encoding="utf-8").count("<section") == 2
    assert [report["name"] for report in json.loads(numbers.read_text(encoding="utf-8"))] == ["softmax", "tanh"]
    assert json.loads(numbers.read_text(encoding="utf-8"))[0]["tensors"][0]["points"][1]["point"] == "generic"


def test_gradcheck_that_cannot_write_says_so(mini_tf, tmp_path):
    code, out, err = mini_tf("gradcheck", "softmax", "--html", tmp_path)
    assert code == 2
    assert "PASS" in out
    assert "cannot be written" in err


def test_gradcheck_tests_itself(mini_tf):
    code, out, _ = mini_tf("gradcheck", "tanh", "softmax", "--self-test")
    assert code == 0
    assert len(re.findall(r"^(tanh|softmax): (\d+) of \2 planted bugs caught", out, re.M)) == 2
    assert re.search(r"^(\d+) of \1 planted bugs caught in 2 backwards", out, re.M)
    code, _, err = mini_tf("gradcheck", "tanh", "--self-test", "--json", "x.json")
    assert code == 2
    assert "writes no file" in err


def test_doctor_shows_versions_and_what_is_here(mini_tf, monkeypatch):
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    code, out, _ = mini_tf("doctor")
    assert code == 0
    for word in ("numpy", "numba", "GPU", "Shakespeare", "cores"):
        assert word in out
    assert "unset it" not in out
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")   # products at half the speed, on a newer processor
    assert "unset it" in mini_tf("doctor")[1]




REFUSED = {
    "an empty corpus": (b"", [], "empty"),
    "a corpus of quotes only": ("'&" * 50, [], "no words"),
    "a corpus that is too short": ("to be or not to be", [], "the corpus has 6 words, too few"),
    "not UTF-8": (b"caf\xe9 " * 100, [], "UTF-8"),
    "fewer different words than n": ("to be or not to be " * 60, [], "n is 8, of 4 words"),
    "an unknown preset": (None, ["--preset", "huge"], "preset 'huge' is unknown, expected one of quick, lab"),
    "no steps": (None, ["--steps", "0"], "--steps is 0, expected at least 1"),
    "a GPU that is not there": (None, ["--device", "gpu:7"], "device 'gpu:7' is not there"),
    "an unknown device": (None, ["--device", "tpu"], "unknown device 'tpu'"),
    "a missing corpus": (None, ["--corpus", "none.txt"], "none.txt"),
    "a folder for a corpus": (None, ["--corpus", "."], "Is a directory"),
    "a run that is there": (None, ["--run", "."], "is not empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_train_refuses_in_one_line_and_writes_nothing(case, mini_tf, corpus, tmp_path):
    text, options, message = REFUSED[case]
    if text is not None:
        corpus.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = mini_tf("train", *([] if "--corpus" in options else ["--corpus", corpus]), *options)
    assert code == 2
    assert message in err
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["corpus.txt"]


def test_sizes_that_do_not_fit_are_refused(mini_tf, corpus, monkeypatch, tmp_path):
    quick = PRESETS["quick"]
    for change, message in (
        ({"W": 5}, "window is 5"), ({"model": quick.model | {"H": 0}}, "H is 0"), ({"n": 7}, "n is 7, expected an even n"),
        ({"model": quick.model | {"T": 5000}}, "too few"),
    ):  # fmt: skip
        monkeypatch.setitem(PRESETS, "quick", replace(quick, **change))
        code, _, err = mini_tf("train", "--corpus", corpus)
        assert code == 2
        assert message in err
        assert os.listdir(tmp_path) == ["corpus.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none"], "there is no folder none"),
        (["."], "is not a run folder"),
        (["trained", "--temperature", "0"], "--temperature is 0, expected a number above 0; --argmax takes"),
        (["trained", "--device", "gpu:7"], "is not there"),
    ],
)
def test_generate_refuses_in_one_line(options, message, mini_tf, run_folder):
    code, out, err = mini_tf("generate", *options)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_gradcheck_lists_names_for_an_unknown_one(mini_tf):
    code, _, err = mini_tf("gradcheck", "convolution")
    assert code == 2
    assert "nothing is named convolution; there are: linear" in err
    assert "file.py::function" in mini_tf("gradcheck", "my_ops:convolution")[2]
    assert mini_tf("gradcheck", "softmax", "--seed", "-1")[0] == 2


def test_usage_errors_end_with_2(mini_tf):
    assert mini_tf("train", "--preset")[0] == 2
    assert mini_tf("fly")[0] == 2


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_keeps_the_run(tmp_path, corpus):
    """The real program, interrupted in the middle of its training."""
    words = " ".join(f"w{i}" for i in np.random.default_rng(0).integers(0, 200, 3_000))
    corpus.write_text(words)
    program = subprocess.Popen(
        [sys.executable, "-c", "from mini_tf.cli import main; main()", "train", "--corpus", corpus, "--run", tmp_path / "run",
         "--steps", "100000", "--set", "every=5", "--set", "patience=100000", "--set", "sample_words=20"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        for line in program.stdout:
            if line.startswith("step "):
                break
        time.sleep(0.3)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate()
    finally:
        program.kill()
    assert program.returncode == 0, err
    assert "interrupted: keeping the best model so far" in out
    assert "Traceback" not in err
    assert json.loads((tmp_path / "run" / "results.json").read_text())["stopped"] == "interrupted"
    assert (tmp_path / "run" / "sample.txt").exists()


@pytest.mark.parametrize(("end", "code", "how"), [(KeyboardInterrupt(), 130, "interrupted"), (Terminated(15), 143, "terminated")])
def test_a_training_that_ends_before_its_first_step_says_what_is_saved(mini_tf, corpus, monkeypatch, tmp_path, end, code, how):
    def compile_kernels(_):
        raise end

    monkeypatch.setattr(runner, "prepare_kernels", compile_kernels)
    found, _, err = mini_tf("train", "--corpus", corpus, "--run", "run")
    assert (found, err) == (code, f"note: {how} before the first step: nothing is saved\n")
    assert not (tmp_path / "run").exists()


def test_compare_prints_a_table_that_fits_80_columns(mini_tf, corpus, monkeypatch):
    rung = ladder.Rung("Kneser-Ney, order 3", 281_368, 0.1, 5.3, 5.05, 4.654, 13.849, "D = 0.90", "a sample")
    best = replace(rung, model=ladder.MIXED, parameters=123_456_789, seconds=12_345.6, test=4.462)
    asked = {}

    def climb(text, folder, seed, device, steps, say, on_rung):
        asked.update(words=len(text.split()), folder=str(folder), seed=seed, steps=steps)
        say("a line about the training")
        on_rung(rung)
        return [rung, best]

    monkeypatch.setattr(ladder, "climb", climb)
    monkeypatch.setattr(cli.out, "_width", 80)
    code, out, err = mini_tf("compare", "--corpus", corpus, "--run", "here", "--seed", "4", "--steps", "7")
    assert code == 0, err
    assert (asked["folder"], asked["seed"], asked["steps"]) == ("here", 4, 7)
    assert asked["words"] > 500
    header = next(line for line in out.splitlines() if "perplexity" in line)
    assert len(header) <= 80
    assert "…" not in out
    for words in ("5.050", "4.462", "281,368", "12,346", "13.849", "a line about the training", ladder.MIXED):
        assert words in out, words


def test_compare_interrupted_says_how_to_go_on(mini_tf, corpus, monkeypatch):
    def climb(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ladder, "climb", climb)
    code, _, err = mini_tf("compare", "--corpus", corpus)
    assert code == 130
    assert "interrupted; the same command goes on, with what is in runs/compare" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "0"], "Invalid value for '--steps'"),
        (["--run", "corpus.txt"], "corpus.txt is a file, or in one; expected a folder"),
        (["--run", "."], "has corpus.txt in it, which is not of a comparison"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
    ],
)
def test_compare_refuses(mini_tf, corpus, tmp_path, options, message):
    code, _, err = mini_tf("compare", "--corpus", corpus, *options)
    assert code == 2
    assert message in err
    assert os.listdir(tmp_path) == ["corpus.txt"]

"""mini-tf train --tokenizer, from the text to a model that writes: words, characters, pieces that are learned."""

import json
import os
import signal

from mini_tf.text import shakespeare
from mini_tf.training.language import tokenized
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from tests import tiny
from tests.cases import cases
from tests.text.test_llama2c import SMALL as LLAMAS

import numpy as np
import pytest

TOKENIZERS = {"words": "word", "characters": "character", "bpe:300": "piece"}


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("train", …) → (exit code, stdout, stderr), in a folder with a corpus, with tiny presets"""
    for name in PRESETS:
        monkeypatch.setitem(PRESETS, name, tiny.preset(name))
    (tmp_path / "corpus").write_text(shakespeare()[:8000] + "été 😀\n" * 30, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return command


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_train_and_generate(tokenizer, mini_tf, tmp_path):
    unit = TOKENIZERS[tokenizer]
    code, out, err = mini_tf("train", "--corpus", "corpus", "--tokenizer", tokenizer, "--run", "run")
    assert (code, err) == (0, "")
    assert f"nats per {unit}" in out
    assert f"sample.txt (5 {unit}s)" in out
    run = Run.open(tmp_path / "run")
    assert run.config()["settings"]["tokenizer"] == tokenizer
    model, vocabulary = run.load()
    assert vocabulary.unit == unit
    assert len(vocabulary) == model.c
    code, out, _ = mini_tf("generate", "run", "--prompt", "First Citizen:\\n", "--words", "40")
    assert code == 0
    assert out.startswith("First Citizen:\n")
    code, out, err = mini_tf("generate", "run", "--prompt", "Ж", "--words", "1")
    if tokenizer == "bpe:300":
        assert (code, out[0]) == (0, "Ж")                # no text has unknown pieces
    else:
        assert f"{unit}s lacks 1 {unit}: " in err


@pytest.mark.parametrize("tokenizer", cases(["words"], ["characters", "bpe:300"]))
def test_losses_per_character(tokenizer, mini_tf, tmp_path):
    """The nats of all test tokens together, for each character of their text"""
    code, out, _ = mini_tf("train", "--corpus", "corpus", "--tokenizer", tokenizer, "--run", "run")
    assert code == 0
    results = json.loads((tmp_path / "run/results.json").read_text())
    corpus = PRESETS["quick"].__class__(**vars(PRESETS["quick"]) | {"tokenizer": tokenizer}).prepare(
        (tmp_path / "corpus").read_text(encoding="utf-8"), 0, lambda line: None
    )  # fmt: skip
    test = corpus.test[6:]                               # the first T are the history of the first one
    text = corpus.vocabulary.decode(test)
    assert results["per_character"] == pytest.approx(results["test"] * len(test) / len(text))
    if tokenizer == "characters":
        assert results["per_character"] == pytest.approx(results["test"])
    else:
        assert f"that is {results['per_character']:.3f} nats per character" in out
        assert results["per_character"] < results["test"]


def test_characters_and_pieces_are_tested_on_the_same_text_and_pieces_learned_from_another():
    text = "to be or not. " * 100 + "zzzzzz " * 20       # 1,540 characters, the last tenth of them 154
    quick = tiny.preset("quick")
    texts = []
    for tokenizer in ("characters", "bpe:270"):
        corpus = quick.__class__(**vars(quick) | {"tokenizer": tokenizer}).prepare(text, 0, lambda line: None)
        T = quick.model["T"]
        texts.append(corpus.vocabulary.decode(corpus.test[T:]))
        assert corpus.vocabulary.decode(np.concatenate([corpus.train, corpus.validation[T:], corpus.test[T:]])) == text
    assert texts[0] == texts[1] == text[-154:]
    assert not any("zz" in piece for piece in corpus.vocabulary.words)


def test_a_pretrained_tokenizer_cuts_a_text_of_ones_own():
    text = "abba ab abé " * 100
    vocabulary, ids, (_, _, test) = tokenized(text, 8, LLAMAS)
    assert vocabulary is LLAMAS
    assert len(ids) < 0.6 * len(text)
    assert vocabulary.decode(test[8:]) == text[-120:]


def test_resume_with_pieces(mini_tf, monkeypatch, tmp_path):
    train = ["train", "--corpus", "corpus", "--tokenizer", "bpe:300", "--device", "cpu", "--seed", "3"]
    assert mini_tf(*train, "--run", "whole")[0] == 0
    one_step = Training.one_step

    def stops(self, **options):
        if self.step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return one_step(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "one_step", stops)
        assert mini_tf(*train, "--run", "run")[0] == 143
    assert mini_tf("train", "--resume", "run", "--device", "cpu")[0] == 0
    for name in ("vocabulary.json", "sample.txt", "model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    code, _, err = mini_tf("train", "--resume", "run", "--tokenizer", "words")
    assert code == 2
    assert "--tokenizer was given with --resume" in err


@pytest.mark.parametrize("preset", cases(["gpt"], ["window", "recurrent", "pointer", "lab"]))
@pytest.mark.parametrize("tokenizer", cases(["bpe:300"], ["characters"]))
def test_every_language_model_reads_them(tokenizer, preset, mini_tf):
    options = ["--preset", preset, "--tokenizer", tokenizer, "--run", "run"]
    code, out, err = mini_tf("train", "--corpus", "corpus", *options)
    assert (code, err) == (0, "")
    assert "training finished" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tokenizer", "letters"], "tokenizer is 'letters', expected words, characters, a file or, with a number of pieces"),
        (["--tokenizer", "bpe:99"], "the N of tokenizer=bpe:N is 99, expected a whole number of at least 256"),
        (["--set", "tokenizer=bpe"], "tokenizer is 'bpe', expected words, characters, a file or"),
        (["--preset", "fill", "--tokenizer", "characters"], "fill has no option tokenizer"),
        (["--tokenizer", "characters", "--set", "n=200"], "characters; expected n < "),
        (["--tokenizer", "characters", "--set", "T=9000"], "characters, too few: its training"),
    ],
)
def test_train_refuses_in_one_line(options, message, mini_tf, tmp_path):
    code, _, err = mini_tf("train", "--corpus", "corpus", *options)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == ["corpus"]


def test_a_run_with_the_tokenizer_of_another_is_refused(mini_tf, tmp_path):
    for tokenizer in ("characters", "bpe:300"):
        assert mini_tf("train", "--corpus", "corpus", "--tokenizer", tokenizer, "--run", tokenizer[:3])[0] == 0
    (tmp_path / "cha/vocabulary.json").write_bytes((tmp_path / "bpe/vocabulary.json").read_bytes())
    code, _, err = mini_tf("generate", "cha", "--prompt", "a")
    assert code == 2
    assert "vocabulary" in err

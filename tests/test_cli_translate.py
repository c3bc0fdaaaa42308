"""mini-tf train --preset translate, and mini-tf translate, as a user types them."""

import csv
import io
import json
import os
import sys
from dataclasses import replace

from mini_tf import cli
from mini_tf.training.registry import PRESETS

import numpy as np
import pytest

SUBJECTS = {"je": "I", "tu": "you", "nous": "we", "elles": "they"}
VERBS = {"vois": "see", "veux": "want", "cherche": "seek", "aime": "like"}
THINGS = {"le chat": "the cat", "la mer": "the sea", "un livre": "a book", "l'été": "summer", "Tom": "Tom", "tout": "all"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """96 sentences and their translations, in a file of Tatoeba's form."""
    lines = [
        f"{subject.capitalize()} {verb} {thing}.\t{s.capitalize()} {v} {t}.\tCC-BY 2.0"
        for s, subject in SUBJECTS.items() for v, verb in VERBS.items() for t, thing in THINGS.items()
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("translate", …) → (exit code, stdout, stderr), in an empty folder, with a tiny preset."""
    sizes = {"n": 16, "T": 10, "L": 1, "H": 2, "m": 8, "f": 32, "dropout": 0.0, "smoothing": 0.0}
    tiny = replace(PRESETS["translate"], model=sizes, learning_rate=1e-2, words=300, steps=150, every=50,
                   warm_up=20, least=1, longest=9)  # fmt: skip
    monkeypatch.setitem(PRESETS, "translate", tiny)
    monkeypatch.chdir(tmp_path)
    return command


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    """A run folder of a small translator that has learned the 96 sentences."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs") / "trained"
        sizes = {"n": 32, "T": 10, "L": 1, "H": 2, "m": 16, "f": 64, "dropout": 0.0, "smoothing": 0.0}
        tiny = replace(PRESETS["translate"], model=sizes, learning_rate=1e-2, words=300, steps=300,
                       every=100, warm_up=20, least=1, longest=9)  # fmt: skip
        patch.setitem(PRESETS, "translate", tiny)
        patch.setattr(sys, "argv", ["mini-tf", "train", "--preset", "translate", "--pairs", str(pairs), "--run", str(folder)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
    return folder


def test_train_writes_a_run_and_shows_translations(mini_tf, pairs, tmp_path):
    code, out, err = mini_tf("train", "--preset", "translate", "--pairs", pairs)
    assert code == 0, err
    folder = tmp_path / "runs" / "translate"
    assert sorted(os.listdir(folder)) == [
        "config.json", "curves.png", "gradient_flow.png", "metrics.csv", "model.safetensors", "moments", "results.json",
        "translations.tsv",
        "vocabulary.json",
    ]  # fmt: skip
    assert [row["step"] for row in csv.DictReader((folder / "metrics.csv").open())] == ["50", "100", "150"]
    results = json.loads((folder / "results.json").read_text())
    assert results["test"] < 3
    assert f"{results['bleu']:.1f}" in out
    header, *lines = (folder / "translations.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "French\ttranslation\treference"
    assert len(lines) == results["tested"] == 10
    assert "mini-tf translate runs/translate" in out
    assert "\x1b" not in out


@pytest.mark.exhaustive
def test_the_same_seed_trains_the_same_translator(mini_tf, pairs, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        given = ("--pairs", pairs, "--run", name, "--steps", 3, "--seed", seed)
        assert mini_tf("train", "--preset", "translate", *given)[0] == 0
    model = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert model["a"] == model["b"]
    assert model["a"] != model["c"]


def test_translate_a_sentence_a_file_and_standard_input(mini_tf, trained, tmp_path):
    code, out, err = mini_tf("translate", trained, "Je vois le chat.")
    assert (code, out) == (0, "I see the cat.\n"), err
    assert mini_tf("translate", trained, "je vois le chat .")[1] == out          # split already
    assert mini_tf("translate", trained, "Je vois le chat.", "--beam", 1)[1] == out
    lines = "Je vois le chat.\n\nTu veux l’été.\n"
    expected = "I see the cat.\n\nYou want summer.\n"
    code, out, err = mini_tf("translate", trained, stdin=lines)
    assert (code, out) == (0, expected)
    assert "line 2 is empty" in err
    (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
    assert mini_tf("translate", trained, "--file", "lines.txt")[1] == expected


def test_what_is_typed_is_translated_line_by_line(mini_tf, trained, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def __next__(self):
            answers.append(capsys.readouterr().out)
            return super().__next__()

    answers = []
    monkeypatch.setattr(io, "StringIO", Terminal)
    _, out, _ = mini_tf("translate", trained, stdin="Je vois le chat.\n\nTu veux tout.\n")
    assert [*answers, out] == ["", "I see the cat.\n", "\n", "You want all.\n", ""]


def test_attention_is_drawn(mini_tf, trained, tmp_path):
    code, _, err = mini_tf("translate", trained, "Je vois le chat.", "--attention", "attention.png")
    assert code == 0
    assert "attention.png" in err
    assert (tmp_path / "attention.png").read_bytes()[:4] == b"\x89PNG"
    code, _, err = mini_tf("translate", trained, "--attention", "a.png", stdin="Je vois tout.\nTu vois tout.\n")
    assert (code, "--attention draws one sentence" in err) == (2, True)
    code, _, err = mini_tf("translate", trained, "", "--attention", "a.png")
    assert (code, "without words" in err) == (2, True)


def train_recurrent(mini_tf, pairs, attention, steps):
    """Train a small recurrent translator into the folder `recurrent`."""
    small = ("n=32", "k=32", "T=10", "dropout=0", "learning_rate=0.01", "words=300", "every=100", "warm_up=20", "least=1",
             "longest=9", f"attention={attention}")  # fmt: skip
    settings = [part for setting in small for part in ("--set", setting)]
    given = "--pairs", pairs, "--run", "recurrent", "--steps", steps
    code, _, err = mini_tf("train", "--preset", "translate-rnn", *given, *settings)
    assert code == 0, err


@pytest.mark.exhaustive
def test_a_recurrent_translator_translates_and_draws_its_attention(mini_tf, pairs, tmp_path):
    train_recurrent(mini_tf, pairs, "additive", 200)
    code, out, err = mini_tf("translate", "recurrent", "Je vois le chat.", "--attention", "attention.png")
    assert (code, out) == (0, "I see the cat.\n"), err
    assert mini_tf("translate", "recurrent", "Je vois le chat.", "--beam", 1)[1] == out
    assert (tmp_path / "attention.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = mini_tf("doctor", "recurrent")
    assert code == 0
    assert "RecurrentTranslator" in out


def test_the_attention_of_a_translation_that_did_not_end_is_drawn(mini_tf, pairs, tmp_path):
    train_recurrent(mini_tf, pairs, "multiplicative", 1)
    code, out, err = mini_tf("translate", "recurrent", "Je vois le chat.", "--beam", 1, "--attention", "attention.png")
    assert code == 0, err
    assert len(out.split()) > 5
    assert (tmp_path / "attention.png").exists()


def test_a_translator_without_attention_has_none_to_draw(mini_tf, pairs, tmp_path):
    train_recurrent(mini_tf, pairs, "none", 2)
    code, _, err = mini_tf("translate", "recurrent", "Je vois le chat.", "--attention", "attention.png")
    assert code == 2
    assert "there is no attention to draw: this model was trained with attention=none" in err
    assert not (tmp_path / "attention.png").exists()


def test_unknown_words_are_named(mini_tf, trained):
    code, out, err = mini_tf("translate", trained, "Je vois le xylophone bleu.")
    assert code == 0
    assert "2 unknown words, read as [UNK]: xylophone, bleu" in err
    assert out.startswith("I see")
    assert "[UNK]" not in out


@pytest.mark.parametrize("sentence", ["", "   "])
def test_an_empty_sentence(mini_tf, trained, sentence):
    code, out, err = mini_tf("translate", trained, sentence)
    assert (code, out) == (0, "\n")
    assert "nothing to translate" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Je vois le chat.", "--beam", "0"), "beam is 0"), (("Je vois le chat.", "--beam", "999"), "size of the vocabulary"),
        (("Je vois le chat.", "--length-penalty", "-1"), "length_penalty is -1"),
        (("je " * 11,), "line 1 has 11 words, expected at most T = 10"),
        (("Je vois.", "--file", "some.txt"), "expected one of them"), (("--file", "none.txt"), "there is no file none.txt"),
    ],
)  # fmt: skip
def test_what_cannot_be_translated(mini_tf, trained, arguments, message):
    code, out, err = mini_tf("translate", trained, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_wrong_line_is_named_by_its_number(mini_tf, trained):
    code, _, err = mini_tf("translate", trained, stdin="Je vois tout.\n" + "je " * 11)
    assert code == 2
    assert "line 2 has 11 words" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"I see.\tJe vois.\nYou see. Tu vois.\n", "line 2"), (b"I see.\t\n", "line 1"),
        ("I see.\tJ'\xe9tais.\n".encode("latin-1"), "not UTF-8"), (b"", "is empty"),
        (b"I see.\tJe vois.\n" * 30, "1 pairs of at most 9 words are too few"),
    ],
)  # fmt: skip
def test_files_of_pairs_that_cannot_be_used(mini_tf, tmp_path, content, message):
    (tmp_path / "pairs.tsv").write_bytes(content)
    code, _, err = mini_tf("train", "--preset", "translate", "--pairs", "pairs.tsv")
    assert code == 2
    assert message in err
    assert not (tmp_path / "runs").exists()


def test_options_of_the_other_kind_of_model(mini_tf, trained, pairs):
    assert "learns from --pairs FILE" in mini_tf("train", "--preset", "translate", "--corpus", pairs)[2]
    assert "for --pairs: --preset translate" in mini_tf("train", "--pairs", pairs)[2]
    assert "to translate with it: mini-tf translate" in mini_tf("generate", trained)[2]


def test_a_language_model_does_not_translate(mini_tf, tmp_path):
    from mini_tf.models import GPT
    from mini_tf.text import Vocabulary
    from mini_tf.training.run import Run

    run = Run.new("language")
    run.save_config({}, Vocabulary(list("abcdefg")))
    run.save_model(GPT(np.ones((7, 4), np.float32), T=5, L=1, H=2, m=2, f=4))
    code, _, err = mini_tf("translate", "language", "Je vois.")
    assert code == 2
    assert "mini-tf generate language" in err

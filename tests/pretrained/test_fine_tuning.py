"""Training that begins with pretrained weights, of all of them or by LoRA; and generating with a pretrained model."""

import json
import re
import struct

from mini_tf.errors import UserError
from mini_tf.models import Llama
from mini_tf.pretrained import export_llama2c, load_llama
from mini_tf.pretrained.fine_tuning import LLAMA, starting_from
from mini_tf.training.run import Run

import numpy as np
import pytest

SIZES = {"T": 16, "L": 1, "H": 2, "G": 1, "m": 4, "f": 12}
LINE = "To be, or not to be: that is the question.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a small Llama, story.bin, its tokenizer and a text"""
    folder, rng = tmp_path_factory.mktemp("llama"), np.random.default_rng(0)
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), " ", *sorted(set(LINE) - {" "}), "to", " to"]
    head = struct.pack("<i", max(map(len, pieces)))
    data = [struct.pack("<fi", -float(i), len(piece.encode())) + piece.encode() for i, piece in enumerate(pieces)]
    (folder / "tok.bin").write_bytes(head + b"".join(data))
    export_llama2c(Llama(0.1 * rng.standard_normal((len(pieces), 8)).astype("f4"), **SIZES), folder / "story.bin")
    (folder / "text.txt").write_text(LINE * 40)
    return folder


PRETRAINED = ["--from", "story.bin", "--tokenizer", "tok.bin"]


@pytest.fixture
def inside(folder, mini_tf, monkeypatch):
    """mini_tf, in that folder"""
    monkeypatch.chdir(folder)
    return mini_tf


def train(inside, run, *options):
    """(results, what was printed) of a short training from story.bin"""
    short = ["--steps", "30", "--set", "T=8", "--set", "batch=8", "--set", "sample_words=5"]
    code, out, err = inside("train", "--preset", "llama", *PRETRAINED, "--corpus", "text.txt", "--run", run, *short, *options)
    assert code == 0, err
    return json.loads((run / "results.json").read_text()), out


def test_fine_tuning_begins_with_the_pretrained_weights(inside, folder, tmp_path):
    results, out = train(inside, tmp_path / "run")
    assert results["per_character"] < results["before_per_character"] - 0.1
    assert f"that is {results['per_character']:.3f} nats per character; before, {results['before_per_character']:.3f}" in out
    model, vocabulary = Run.open(tmp_path / "run").load()
    assert model.config == load_llama(folder / "story.bin").config | {"T": 8}
    assert vocabulary.split("to")[0] == " to"            # the pretrained tokenizer
    code, out, _ = inside("generate", tmp_path / "run", "--prompt", "To be", "--words", "3")
    assert code == 0
    assert out.startswith("To be")


def test_lora_learns_two_small_matrices_and_merges_into_the_weights(inside, folder, tmp_path, rng):
    results, _ = train(inside, tmp_path / "run", "--set", "lora=2")
    assert results["per_character"] < results["before_per_character"] - 0.02
    model, _ = Run.open(tmp_path / "run").load()
    begun = load_llama(folder / "story.bin").parameters()
    for name, parameter in model.parameters().items():
        assert parameter.trainable == name.endswith((".A", ".B"))
        if not parameter.trainable:
            np.testing.assert_array_equal(parameter.data, begun[name].data)
    merged, ids = model.merged(), rng.integers(0, model.c, (3, 8))
    assert list(merged.parameters()) == list(begun)
    np.testing.assert_allclose(merged.logits_after_each(ids), model.logits_after_each(ids), rtol=1e-4, atol=1e-5)


def test_a_trained_model_is_exported(inside, folder, tmp_path):
    train(inside, tmp_path / "run", "--set", "lora=2")
    model = Run.open(tmp_path / "run").load()[0].merged()
    for target in ("mine.bin", "folder"):
        code, out, _ = inside("export", tmp_path / "run", tmp_path / target)
        assert code == 0
        assert f"written: {tmp_path / target}" in out
        for name, parameter in load_llama(tmp_path / target).parameters().items():
            np.testing.assert_array_equal(parameter.data, model.parameters()[name].data)
    assert (tmp_path / "tokenizer.bin").read_bytes() == (folder / "tok.bin").read_bytes()


def test_other_models_have_no_format_to_be_exported_to(inside, corpus, tmp_path):
    assert inside("train", "--corpus", corpus, "--run", tmp_path / "quick", "--steps", "2")[0] == 0
    code, _, error = inside("export", tmp_path / "quick", tmp_path / "mine.bin")
    assert code == 2
    assert "would hold a LanguageTransformer, expected a Llama" in error


def test_a_pretrained_model_generates(inside):
    command = ["generate", "story.bin", "--tokenizer", "tok.bin", "--prompt", "not", "--words", "4"]
    for options in (["--argmax"], ["--top-p", "0.5", "--seed", "1"]):
        code, out, _ = inside(*command, *options)
        assert code == 0
        assert out.startswith("not")


REFUSED = {
    "no tokenizer": (["generate", "story.bin"], "story.bin has no tokenizer in it; name its file: --tokenizer"),
    "a text for a tokenizer": (["generate", "story.bin", "--tokenizer", "text.txt"], "the tokenizer .*text.txt cannot be read"),
    "a text for a model": (["generate", "text.txt", "--tokenizer", "tok.bin"], "expected a model in llama2.c's format"),
    "nothing there": (["generate", "absent.bin", "--tokenizer", "tok.bin"], "there is no file .*absent.bin"),
    "a share of nothing": (["generate", "story.bin", "--tokenizer", "tok.bin", "--top-p", "0"], "top_p is 0.0, expected more than 0"),
    "another preset": (["train", "--preset", "gpt", *PRETRAINED], "preset gpt trains another model"),
    "a longer history": (
        ["train", "--preset", "llama", *PRETRAINED, "--set", "T=17"],
        "T is 17, expected at most 16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, inside, folder):
    arguments, sentence = REFUSED[case]
    code, _, error = inside(*arguments)
    assert code == 2
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert re.search(sentence, error), error
    assert not (folder / "runs").exists()


def test_the_tokenizer_of_another_model_is_refused(folder, tmp_path, rng):
    export_llama2c(Llama(rng.standard_normal((9, 8)).astype("f4"), **SIZES), tmp_path / "other.bin")
    with pytest.raises(UserError, match="tokens and the model 9"):
        starting_from(LLAMA, tmp_path / "other.bin", folder / "tok.bin")


@pytest.mark.exhaustive
def test_the_explorer_reads_a_pretrained_model(inside, tmp_path):
    command = ["explore", "story.bin", "--tokenizer", "tok.bin", "--out", tmp_path / "page.html"]
    code, out, err = inside(*command, "--text", "to be")
    assert code == 0, err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "grouped_attention" in page
    assert "as published" in page
    code, _, err = inside(*command)
    assert code == 2
    assert "story.bin has no text of its own to read" in err

"""What every command-line program is expected to do: --version, -h, --quiet, pipes, other encodings, --set, presets, labs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mini_tf as package
from mini_tf.data.corpus import read_corpus
from mini_tf.errors import UserError
from mini_tf.handout import hand_out, lab_files
from tests.cases import cases

import pytest


def shell(*arguments, stdin=b"", **environment):
    """(exit code, stdout, stderr) of mini-tf in a process of its own, as bytes."""
    run = subprocess.run(
        [sys.executable, "-m", "mini_tf", *map(str, arguments)], input=stdin, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)} | environment,
    )  # fmt: skip
    return run.returncode, run.stdout, run.stderr


def test_version_and_help(mini_tf):
    assert mini_tf("--version") == (0, f"mini-tf {package.__version__}\n", "")
    code, out, _ = mini_tf("-h")
    assert code == 0
    assert out == mini_tf("--help")[1]
    assert out.index("  train ") < out.index("  generate ") < out.index("  doctor ")
    assert "Exit codes: 0, done" in out
    assert "..." not in out.partition("Commands:")[2], "a summary is cut short"
    for name in ("train", "gradcheck", "presets", "labs"):
        code, out, _ = mini_tf(name, "-h")
        assert code == 0
        assert out.startswith(f"Usage: mini-tf {name}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("shell_name", cases(["bash"], ["zsh", "fish"]))
def test_completion_is_there_and_knows_the_presets(shell_name):
    code, out, err = shell("--show-completion", shell_name, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert code == 0, err
    assert b"mini" in out
    if shell_name == "bash":
        code, out, err = shell(_MINI_TF_COMPLETE="complete_bash", COMP_WORDS="mini-tf train --preset trans", COMP_CWORD="3")
        assert out.split() == [b"translate", b"translate-hour", b"translate-rnn"], err


def test_quiet_prints_nothing_but_errors(mini_tf, corpus, tmp_path):
    assert mini_tf("train", "--quiet", "--corpus", corpus, "--run", "r", "--steps", 2) == (0, "", "")
    assert (tmp_path / "r" / "results.json").is_file()
    assert mini_tf("gradcheck", "softmax", "-q") == (0, "", "")
    assert mini_tf("gradcheck", "softmax")[1].startswith("PASS")             # the next command speaks again
    code, out, err = mini_tf("train", "-q", "--corpus", "nowhere")
    assert (code, out) == (2, "")
    assert err.startswith("error: there is no file nowhere")


def test_set_changes_the_options_of_a_preset_and_the_run_keeps_them(mini_tf, corpus, tmp_path):
    code, out, err = mini_tf("train", "--corpus", corpus, "--run", "r", "--set", "L=3", "--set", "learning_rate=0.01", "--steps", 2)
    assert code == 0, err
    assert "L=3" in out
    settings = json.loads((tmp_path / "r" / "config.json").read_text(encoding="utf-8"))["settings"]
    assert settings["model"]["L"] == 3
    assert settings["learning_rate"] == 0.01
    code, _, err = mini_tf("train", "--corpus", corpus, "--set", "dropuot=0.1")
    assert code == 2
    assert "quick has no option dropuot; did you mean dropout?" in err
    code, _, err = mini_tf("train", "--resume", "r", "--set", "L=4")
    assert code == 2
    assert "--set was given with --resume" in err


def test_presets_are_listed_with_their_options(mini_tf):
    code, out, _ = mini_tf("presets")
    assert code == 0
    for name in ("quick", "lab", "gpt", "translate-hour", "classify-bag", "fill"):
        assert f"\n{name} " in f"\n{out}"
    code, out, _ = mini_tf("presets", "gpt")
    assert "trains a GPT, from --corpus" in out
    assert "dropout" in out
    assert "0.9,0.999" in out
    assert mini_tf("presets", "gtp")[0] == 2


def test_the_labs_go_into_a_new_folder_and_overwrite_nobodys_work(mini_tf, tmp_path):
    code, out, err = mini_tf("labs", "mine")
    assert code == 0, err
    there = {path.relative_to(tmp_path / "mine").as_posix() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert there == set(lab_files())
    assert {"04_word_embeddings.py", "_common.py", "README.md", "exercises/01_softmax.py"} <= there
    assert "exercises/solutions/01_softmax.py" in there
    assert not any("figures/" in name or "__pycache__" in name for name in there)
    for page in (name for name in there if name.endswith(".md")):
        file = tmp_path / "mine" / page
        for link in re.findall(r"\]\(([^)\s#:]+)(?:#\S*)?\)", file.read_text(encoding="utf-8")):
            assert (file.parent / link).exists(), f"{link} in {page}"
    assert "[`04_word_embeddings.py`](04_word_embeddings.py)" in (tmp_path / "mine/README.md").read_text(encoding="utf-8")
    assert mini_tf("gradcheck", "mine/exercises/solutions/01_softmax.py::softmax")[0] == 0
    assert "\npython mine/04_word_embeddings.py --quick\n" in (tmp_path / "mine/README.md").read_text(encoding="utf-8")
    for page in ("01_softmax.py", "solutions/01_softmax.py", "README.md"):
        text = (tmp_path / "mine/exercises" / page).read_text(encoding="utf-8")
        assert re.findall("gradcheck (.*softmax.py)::", text) == ["mine/exercises/01_softmax.py"], page
    for folder in ("mine", "mine/README.md"):
        with pytest.raises(UserError, match="expected a new or an empty folder|is not empty"):
            hand_out(folder)


def test_a_corpus_comes_from_standard_input(mini_tf, corpus, tmp_path, monkeypatch):
    text = corpus.read_text(encoding="utf-8")
    code, _, err = mini_tf("train", "--corpus", "-", "--run", "piped", "--steps", 2, stdin=text)
    assert code == 0, err
    assert mini_tf("train", "--corpus", corpus, "--run", "named", "--steps", 2)[0] == 0
    assert (tmp_path / "piped/model.safetensors").read_bytes() == (tmp_path / "named/model.safetensors").read_bytes()
    assert json.loads((tmp_path / "piped/config.json").read_text(encoding="utf-8"))["command"]["path"] == "-"
    code, _, err = mini_tf("train", "--corpus", "-")
    assert code == 2
    assert "standard input is empty; a corpus needs words" in err
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UserError, match="nothing is sent there: add `< FILE`, or name the file"):
        read_corpus("-")


def test_json_on_standard_output_is_nothing_but_json():
    code, out, err = shell("gradcheck", "softmax", "--json", "-")
    assert code == 0
    assert json.loads(out)[0]["name"] == "softmax"
    assert err.startswith(b"PASS: gradients of softmax")
    code, out, err = shell("explore", "softmax", "--out", "-", "--quiet")
    assert code == 0
    assert out.startswith(b"<!doctype html>")
    assert err == b""
    code, _, err = shell("gradcheck", "softmax", "--json", "-", "--html", "-")
    assert code == 2
    assert b"two files were to go to standard output" in err


WRONG = """
def twice(x):
    γ = 3
    return 2 * x, lambda dy: γ * dy
"""
WITHOUT = """
def twice(x):
    return 2 * x
"""


@pytest.mark.parametrize(("encoding", "dots", "letter"), cases(
    [("cp1252", "…", r"\u03b3")], [("utf-8", "…", "γ"), ("ascii", "...", r"\u03b3")]
))  # fmt: skip
def test_any_encoding_will_do(tmp_path, encoding, dots, letter):
    """The words, and the lines that they show, hold signs and Greek letters, which Windows' code page does not have."""
    for text, code, shown in ((WRONG, 1, letter), (WITHOUT, 2, f"y, backward = f({dots})")):
        (tmp_path / "ops.py").write_text(text, encoding="utf-8")
        came, out, err = shell("gradcheck", f"{tmp_path / 'ops.py'}::twice", "--shape", "x=3", PYTHONIOENCODING=encoding)
        assert came == code, err
        assert shown in out.decode(encoding)


@pytest.mark.exhaustive
def test_a_text_in_another_alphabet_is_not_lost(mini_tf, tmp_path):
    """Through a pipe whose encoding lacks it, each letter is named; of files nothing is lost in any encoding."""
    words = "το γαρ αυτο νοειν εστιν τε και ειναι , χρη το λεγειν . \n".split(" ")
    (tmp_path / "greek.txt").write_text(" ".join(words * 60), encoding="utf-8")
    code, _, err = mini_tf("train", "--corpus", "greek.txt", "--run", "r", "--set", "n=8", "--steps", 2)
    assert code == 0, err
    given = ("generate", tmp_path / "r", "--prompt", "νοειν", "--words", "5", "--argmax")
    code, as_utf8, err = shell(*given)
    assert code == 0, err
    assert as_utf8.decode("utf-8").startswith("νοειν")
    code, as_ascii, _ = shell(*given, PYTHONIOENCODING="ascii")
    assert code == 0
    assert as_ascii.decode("unicode_escape") == as_utf8.decode("utf-8").replace("\r\n", "\n")


def test_temperature_zero_is_refused_before_anything_is_printed(mini_tf, corpus):
    assert mini_tf("train", "--corpus", corpus, "--run", "r", "--steps", 2)[0] == 0
    code, out, err = mini_tf("generate", "r", "--prompt", "my lord", "--temperature", "0")
    assert (code, out) == (2, "")
    assert "--argmax takes the most probable word" in err


@pytest.mark.skipif(not hasattr(os, "kill") or os.name == "nt", reason="Windows has no such signals")
def test_a_closed_pipe_ends_a_command_without_a_traceback():
    program = subprocess.Popen([sys.executable, "-m", "mini_tf", "gradcheck", "softmax", "Linear"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)})  # fmt: skip
    program.stdout.close()
    err = program.stderr.read()
    program.wait()
    assert b"Traceback" not in err

"""Command lines with wrong values: refused in one line with exit code 2, or done; never a traceback.

MINI_TF_EXAMPLES=40 pytest tests/test_cli_fuzz.py tries 40 times as many; so do the other tests with random damage.
"""

import contextlib
import io
import sys
from unittest.mock import patch

from mini_tf import cli
from mini_tf.training.registry import PRESETS
from mini_tf.training.settings import options_of
from tests import tiny
from tests.conftest import examples

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

JUNK = ["-1", "0", "1", "3", "999999999", "x", "", " ", "nan", "inf", "-inf", "1e99", "1,2", "none", "true", "😀", "a" * 3000,
        "/dev/null", "/proc/nix", ".", "..", "-", "--", "[bold]x[/bold]", "{}", "[]", "0.5", "2**9", "'", '"', "\\n", "%s"]  # fmt: skip
NAMES = ["quick", "translate", "classify", "fill"]
OPTIONS = {
    "train": ["--preset", "--corpus", "--pairs", "--table", "--text", "--label", "--run", "--steps", "--seed", "--device",
              "--gpu-memory", "--resume", "--rescue", "--shakespeare"],
    "generate": ["--prompt", "--words", "--temperature", "--top-k", "--unknown", "--seed", "--device"],
    "translate": ["--beam", "--length-penalty", "--attention", "--file"],
    "classify": ["--picture", "--table", "--text", "--label"], "fill": ["--guesses"],
    "gradcheck": ["--shape", "--seed", "--arg", "--constant", "--html", "--json"],
    "explore": ["--text", "--bug", "--shape", "--arg", "--seed", "--corpus"],
    "presets": [], "labs": [], "doctor": [],
}  # fmt: skip
SUBJECTS = {"gradcheck": ["softmax", "sq.py::f", "nix"], "explore": ["relu", "sq.py::f", "nix"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus, a function to check and a small run of each kind"""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "corpus.txt").write_text("\n".join(tiny.lines(160)))
    (folder / "sq.py").write_text("def f(x):\n    return x * x, lambda dy: 2 * x * dy\n")
    for name in NAMES:
        tiny.train(name, folder / name, steps=2, every=2)
    return folder


@st.composite
def lines(draw):
    command, junk = draw(st.sampled_from(list(OPTIONS))), st.sampled_from(JUNK)
    line = [command]
    if command == "train":
        line += ["--corpus", "corpus.txt", "--steps", "1"]
        for name in draw(st.lists(st.sampled_from(list(options_of(PRESETS["quick"]))), max_size=2)):
            line += ["--set", f"{name}={draw(junk)}"]
    elif command in SUBJECTS:
        line += [draw(st.sampled_from(SUBJECTS[command]) | junk)]
    elif command in ("generate", "translate", "classify", "fill", "doctor"):
        line += [draw(st.sampled_from(["quick", "translate", "classify", "fill"]) | junk)]
    else:
        line += [f"./new/{draw(junk)}" if command == "labs" else draw(junk)]
    if command in ("translate", "classify", "fill"):
        line += [draw(junk)]
    for option in draw(st.lists(st.sampled_from(OPTIONS[command]), max_size=2)) if OPTIONS[command] else []:
        line += [option, draw(junk)]
    return line


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(line=lines())
def test_a_command_line_is_done_or_refused_in_a_line(folder, line):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    small = {name: tiny.preset(name, steps=1, sample_words=5) for name in ("quick",)}
    with (contextlib.chdir(folder), patch.dict(PRESETS, small), patch.object(sys, "argv", ["mini-tf", *line]),
          patch.object(sys, "stdin", io.StringIO("")), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
          pytest.raises(SystemExit) as end):  # fmt: skip
        cli.main()
    code, said = end.value.code or 0, err.buffer.getvalue().decode()
    assert code in (0, 1, 2), (line, code)
    assert "Traceback" not in said + out.buffer.getvalue().decode(errors="replace"), line
    if code == 2 and said.startswith("error: "):         # a list of planted bugs to choose from takes a line each
        assert said.count("\n") <= 20, (line, said)


def test_a_closed_standard_input_is_named(folder, monkeypatch, capsys):
    """As of `mini-tf translate RUN <&-`"""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["mini-tf", "translate", "translate"])
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert "standard input, and nothing is sent there" in " ".join(capsys.readouterr().err.split())

"""labs/autograd_functions.md: its file is checked by its command, and its session prints what it says."""

import io
import re
from contextlib import redirect_stdout

from tests.reader import LABS

import pytest

PAGE = (LABS / "autograd_functions.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_example(mini_tf, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
    (_, file), (_, console), (_, session), (_, printed), *_ = BLOCKS
    (tmp_path / "my_ops.py").write_text(file, encoding="utf-8")
    command, expected = console.removeprefix("$ mini-tf ").split("\n", 1)
    assert mini_tf(*command.split()) == (1, expected, "")
    monkeypatch.syspath_prepend(tmp_path)
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(session, "autograd_functions.md", "exec"), {})
    assert out.getvalue() == printed
    (tmp_path / "my_ops.py").write_text(file.replace("(g * x).sum", "(g * x).mean"), encoding="utf-8")
    assert mini_tf(*command.split())[0] == 0

"""labs/pytorch.md: its blocks run and print what it says, and both sides have the same numbers."""

import io
import re
from contextlib import redirect_stdout
from functools import reduce
from importlib import import_module

from mini_tf import ops  # noqa: F401, before PyTorch
from tests.reader import LABS

import numpy as np
import pytest

PAGE = (LABS / "pytorch.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
NO_TORCH = "PyTorch is not installed; it is only a peer"


def blocks():
    """[(section, code, what it prints)]: what is shown by PyTorch is what mini_tf's block before it has shown."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.M):
        title = section.split("\n", 1)[0]
        printed = ""
        for language, text in FENCE.findall(section):
            if language == "text":
                printed = text
                found[-1] = (*found[-1][:2], text)
            else:
                assert language == "python"
                found.append((title, text, printed if is_torch(text) and "    print(" not in text else ""))
    return found


def is_torch(code):
    return "torch" in code


def run(chosen):
    """Run blocks as one session, from top to bottom: {(section, is it PyTorch's): [(name, what was shown), …]}"""
    session, shown = {}, {}
    for title, code, expected in chosen:
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(code, f"pytorch.md, {title}", "exec"), session)
        assert out.getvalue() == expected, title
        shown.setdefault((title, is_torch(code)), []).extend(session.get("noted", []))
        session["noted"] = []
        if "def show(" in code:
            session["show"] = noting(session)
    return shown


def noting(session):
    """The page's show, which also notes what it is given."""
    show = session["show"]

    def noted(**arrays):
        session["noted"] += [(name, np.asarray(array)) for name, array in arrays.items()]
        show(**arrays)

    return noted


def test_mini_tfs_blocks_print_what_the_page_says():
    chosen = [block for block in blocks() if not is_torch(block[1])]
    assert len(chosen) == 8
    assert len(run(chosen)) == 8


def test_both_sides_have_the_same_numbers():
    pytest.importorskip("torch", reason=NO_TORCH)
    shown = run(blocks())
    sections = [title for title, theirs in shown if theirs and shown[title, True]]
    assert len(sections) == 6
    for title in sections:
        for (name, ours), (same, theirs) in zip(shown[title, False], shown[title, True], strict=True):
            assert name == same
            assert ours.dtype == theirs.dtype == np.float64, f"{title}: {name}"
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9, err_msg=f"{title}: {name}")


def test_the_table_has_names_that_exist():
    rows = re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.M)[2:]
    assert len(rows) > 15
    ours, theirs = (set(re.findall(r"`((?:\w+\.)+\w+)", " ".join(column))) for column in zip(*rows))
    packages = {"backend", "gradcheck", "kernels", "layers", "ops", "trace", "training"}
    ours = {name for name in ours if name.split(".")[0] in packages}
    assert len(ours) > 12
    for name in ours:
        package, *path = name.split(".")
        assert reduce(getattr, path, import_module(f"mini_tf.{package}")), name
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    for name in theirs:
        if name.startswith("torch."):
            assert reduce(getattr, name.split(".")[1:], torch), name

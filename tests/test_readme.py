"""README and the pages it leads to: links lead somewhere, commands and options exist, code runs and prints what it says."""

import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mini_tf.cli import app

import pytest
import typer

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "labs").glob("*.md")), ROOT / "labs/exercises/README.md",
         *sorted((ROOT / "mini_tf/gradcheck").glob("*.md")), ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]  # fmt: skip
COMMANDS = typer.main.get_command(app).commands


def anchors(page):
    """What a code host calls the page's headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith(("http", "mailto")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_commands_and_options_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:mini_tf|labs|tests)/[\w/.]+\.(?:py|md|png))", text):
        assert (ROOT / path).exists(), path
    for line in re.findall(r"(?:^|`)(?:mpiexec -n \w+ )?(?:\.venv/bin/)?mini-tf ([^`\n#]*)", text, re.MULTILINE):
        name, *rest = line.split() or [""]
        if name.startswith("-") or name in ("", "…", "command"):
            continue
        assert name in COMMANDS, line
        options = {flag for parameter in COMMANDS[name].params for flag in parameter.opts} | {"-h", "--help"}
        used = {word for word in rest if re.fullmatch(r"--[a-z][\w-]*", word)}
        assert used <= options, line


def test_the_set_up_is_two_commands():
    lines = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("python3 -m venv")]
    assert len(lines) == 2
    assert lines[0].endswith("mini-tf train")
    assert lines[1].endswith("pytest")


def test_it_is_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1500


def test_the_gradient_that_it_shows_is_the_code():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n(@op.*?)```", text, re.DOTALL)[1]
    code = (ROOT / "mini_tf/ops/softmax.py").read_text(encoding="utf-8")
    for line in shown.splitlines():
        assert line.strip() == "…" or line.removesuffix(", each row sums to 1") in code, line


def test_the_checker_says_what_it_shows(tmp_path):
    """Of layer norm as it is, and, in a copy of mini_tf, of the line that README says to change."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text[text.index("## Is a gradient right") :]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    right, wrong = (re.search(rf"```\n({word}: gradients of layer_norm.*?)```", section, re.DOTALL)[1] for word in ("PASS", "FAIL"))
    shutil.copytree(ROOT / "mini_tf", tmp_path / "mini_tf", ignore=shutil.ignore_patterns("__pycache__"))
    formula = tmp_path / "mini_tf/ops/normalization.py"
    for expected in (right, wrong):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=tmp_path,
                              env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONIOENCODING": "utf-8"})  # fmt: skip
        assert done.stdout == expected, done.stderr
        formula.write_text(formula.read_text(encoding="utf-8").replace("g = dy * gamma", "g = dy"), encoding="utf-8")

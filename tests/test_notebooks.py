"""The labs read well as notebooks: their cells fit a screen, and the formulas of their Markdown cells can be typeset."""

import re

from tests.reader import LABS

import pytest

PATHS = sorted(LABS.glob("[01]*.py"))
SCREEN = {"code": 40, "imports": 45, "markdown": 35}     # lines of a cell, the blank ones at its ends not counted
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)     # what Markdown leaves alone
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)

each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def cells_of(path):
    """(kind, number of its first line, text) of each cell of a script in percent format, Markdown without its "# "."""
    kind, start, lines = None, 0, []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), "# %%"], 1):
        if line.startswith("# %%"):
            text = "\n".join(lines).strip("\n")
            if kind == "code" and re.match(r"import |from ", text):
                kind = "imports"
            if kind:
                yield kind, start, text
            kind, start, lines = "markdown" if "[markdown]" in line else "code", number, []
        else:
            lines.append(re.sub("^# ?", "", line) if kind == "markdown" else line)


def markdown_of(path):
    """(number of its first line, text without code) of each Markdown cell."""
    return [(start, CODE.sub("", text)) for kind, start, text in cells_of(path) if kind == "markdown"]


def test_there_are_labs():
    assert len(PATHS) >= 17


@each
def test_a_cell_fits_a_screen(path):
    lengths = [(start, kind, text.count("\n") + 1) for kind, start, text in cells_of(path)]
    assert [cell for cell in lengths if cell[2] > SCREEN[cell[1]]] == []


@each
def test_dollars_are_balanced(path):
    """$$ stands alone in its line and comes in pairs; $…$ does not go over the end of a line."""
    for start, text in markdown_of(path):
        lines = text.splitlines()
        assert lines.count("$$") % 2 == 0, f"the cell at line {start}: $$ without its other half"
        odd = [line for line in lines if line != "$$" and (line.count("$") % 2 or "$$" in line)]
        assert odd == [], f"the cell at line {start}"


@each
def test_braces_of_formulas_are_balanced(path):
    """A first look; whether a formula can be typeset, only TeX can say."""
    for start, text in markdown_of(path):
        for formula in (block or inline for block, inline in FORMULA.findall(text)):
            depth = 0
            for brace in re.findall(r"(?<!\\)[{}]", formula):
                depth += 1 if brace == "{" else -1
                assert depth >= 0, f"the cell at line {start}: {formula}"
            assert depth == 0, f"the cell at line {start}: {formula}"
            assert re.findall(r"\\begin{(\w+)}", formula) == re.findall(r"\\end{(\w+)}", formula)


@each
def test_formulas_are_typeset(path):
    """An indented line is set as code; a formula does not belong there. (By its look: an = and a sign of mathematics.)"""
    left = [
        (start, line) for start, text in markdown_of(path) for line in text.splitlines()
        if re.match(r" {4}.*=", line) and re.search("[Σ√‖∂·⁻ᵀ]", line)
    ]  # fmt: skip
    assert left == []

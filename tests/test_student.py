"""The labs' student versions: every lab has blanks; a blank is found blank, its solution right, a wrong one wrong."""

import ast
import sys
import textwrap

import _blanks
from mini_tf.gradcheck import judge
from tests.reader import LABS

import pytest
import student

PATHS = sorted(LABS.glob("[01]*.py"))
BLANKS = [(path, blank) for path in PATHS for blank in student.blanks_of(path)]
each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
every = pytest.mark.parametrize(("path", "blank"), BLANKS, ids=lambda what: getattr(what, "stem", None) or what.name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with all student versions."""
    folder = tmp_path_factory.mktemp("student") / "labs"
    student.make(folder)
    return folder


@each
def test_a_lab_has_blanks_with_hints(path):
    blanks = student.blanks_of(path)
    assert len(blanks) >= 2
    assert all(len(blank.hints) >= 2 for blank in blanks)


@each
def test_a_student_version_is_the_lab_but_for_its_blanks(path, made):
    def without_bodies(text):
        tree = ast.parse(text)
        for blank in student.blanks_of(path):
            function = student.find(tree, blank.name)
            function.body = function.body[:1] if ast.get_docstring(function) else []
        return ast.dump(tree)

    text, blanked = (file.read_text(encoding="utf-8") for file in (path, made / path.name))
    assert without_bodies(blanked) == without_bodies(text)
    assert blanked.count("raise NotImplementedError(") == len(student.blanks_of(path))
    for blank in student.blanks_of(path):                # the solution is not to be read there
        solution = ast.unparse(student.find(ast.parse(text), blank.name).body[-1])
        left = ast.unparse(student.find(ast.parse(blanked), blank.name))
        assert solution not in left


@every
def test_the_solution_is_right(path, blank, capsys):
    assert student.check(f"{path}::{blank.name}")
    assert "PASS" in capsys.readouterr().out


@every
def test_a_blank_is_named(path, blank, made, capsys):
    assert not student.check(f"{made / path.name}::{blank.name}")
    assert f"TO DO {blank.name} is a blank" in capsys.readouterr().out


class Other(ast.NodeTransformer):
    """The n-th of some signs of a function, changed: + for −, / for ×, a last value for 0 times it."""

    SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}

    def __init__(self, which):
        self.which, self.seen = which, -1

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in self.SIGNS:
            self.seen += 1
            if self.seen == self.which:
                node.op = self.SIGNS[type(node.op)]()
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        self.seen += 1
        if self.seen == self.which:
            node.value = ast.Constant(None)
        return node


@every
def test_a_wrong_answer_is_found(path, blank, tmp_path, capsys, monkeypatch):
    """Most single changes of a solution's signs make it wrong, and the check says so. (Some change nothing.)"""
    monkeypatch.setattr(_blanks, "gradcheck", judge)     # that it is wrong is the point here, not how to put it right
    text = path.read_text(encoding="utf-8")
    count = Other(None)
    count.visit(student.find(ast.parse(text), blank.name))
    file, lines, found = tmp_path / path.name, text.splitlines(), []
    for which in range(min(count.seen + 1, 4)):
        wrong = student.find(ast.parse(text), blank.name)
        Other(which).visit(wrong)
        wrong.decorator_list = []                        # they stand above it, and stay
        written = textwrap.indent(ast.unparse(wrong), " " * wrong.col_offset)
        changed = [*lines[: wrong.lineno - 1], written, *lines[wrong.end_lineno :]]
        file.write_text("\n".join(changed), encoding="utf-8")
        found.append(not student.check(f"{file}::{blank.name}"))
    assert sum(found) > len(found) / 2
    assert "FAIL" in capsys.readouterr().out


def test_bad_calls(made, tmp_path, capsys, monkeypatch):
    for arguments, words in (
        (["check", str(tmp_path / "04_nothing.py")], "cannot be read"),
        (["check", str(tmp_path / "other.py")], "has no blanks, expected one of 01_counting_words.py"),
        (["check", f"{made / PATHS[0].name}::nothing"], "has no blank nothing, expected one of"),
        (["make", str(made)], "is not empty"),
    ):
        monkeypatch.setattr(sys, "argv", ["student.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            student.main()
        assert ended.value.code == 2
        assert words in capsys.readouterr().err

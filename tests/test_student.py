"""The labs' student versions: every lab has blanks; a blank is found blank, its solution right, a wrong one wrong."""

import ast
import copy
import functools
import re
import shlex
import sys
import textwrap
from pathlib import Path

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
def test_a_lab_has_blanks_with_hints_in_its_order(path):
    blanks = student.blanks_of(path)
    assert len(blanks) >= 2
    assert all(len(blank.hints) >= 2 for blank in blanks)
    text = ast.parse(path.read_text(encoding="utf-8"))
    lines = [student.find(text, blank.name).lineno for blank in blanks]
    assert lines == sorted(lines)


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
    solved, asked = ast.parse(text), ast.parse(blanked)
    for blank in student.blanks_of(path):                # the solution is not to be read there
        solution = ast.unparse(student.find(solved, blank.name).body[-1])
        assert solution not in ast.unparse(student.find(asked, blank.name))


@each
def test_the_solutions_are_right(path, capsys):
    assert student.check(str(path))
    assert capsys.readouterr().out.count("PASS") >= len(student.blanks_of(path))


@each
def test_the_blanks_are_named(path, made, capsys):
    assert not student.check(str(made / path.name))
    named = [f"TO DO {blank.name} is a blank: write it, then check it" for blank in student.blanks_of(path)]
    assert capsys.readouterr().out.splitlines() == [*named, f"0 of {len(named)} blanks are right"]


def test_commands_name_files_where_they_are_from_the_folder_that_make_was_started_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["student.py", "make", "our labs"])
    student.main()
    shown = shlex.split(capsys.readouterr().out.splitlines()[-1])
    lab, exercise = Path("our labs/04_word_embeddings.py"), Path("our labs/exercises/01_softmax.py")
    told = shlex.split(re.search(r"python .*::count_pair", lab.read_text(encoding="utf-8"))[0])
    assert told == [*shown[:3], f"{lab.as_posix()}::count_pair"]
    assert Path(told[1]).is_file()
    command = re.search("mini-tf gradcheck .*", exercise.read_text(encoding="utf-8"))[0]
    assert shlex.split(command)[2] == f"{exercise.as_posix()}::softmax"


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


@functools.cache
def definitions(path):
    """The text of a lab's imports and definitions"""
    return ast.unparse(student.parse(path))


@every
def test_a_wrong_answer_is_found(path, blank, tmp_path, capsys, monkeypatch):
    """Most single changes of a solution's signs make it wrong, and the check says so. (Some change nothing.)"""
    monkeypatch.setattr(_blanks, "gradcheck", judge)     # that it is wrong is the point here, not how to put it right
    lines, function = definitions(path).splitlines(), student.find(ast.parse(definitions(path)), blank.name)
    count, file, found = Other(None), tmp_path / path.name, []
    count.visit(function)
    for which in range(min(count.seen + 1, 4)):
        wrong = copy.deepcopy(function)
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
        (["check", str(tmp_path / "other.py")], "has no blanks, expected one of 00_one_number_at_a_time.py"),
        (["check", f"{made / PATHS[0].name}::nothing"], "has no blank nothing, expected one of"),
        (["make", str(made)], "is not empty"),
    ):
        monkeypatch.setattr(sys, "argv", ["student.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            student.main()
        assert ended.value.code == 2
        assert words in capsys.readouterr().err

"""Each student's own copy: the same for the same name, right but for one line, and solved for the teacher."""

import ast
import importlib
import re

from mini_tf.errors import UserError
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load
from mini_tf.handout import student_module
from mini_tf.teaching.grading import grade
from mini_tf.teaching.individual import TASK, find_and_mend, hand_out_to, sheet_of

import numpy as np
import pytest


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """(the student's folder, the teacher's)"""
    folder = tmp_path_factory.mktemp("copies")
    hand_out_to(folder / "mia", "mia")
    hand_out_to(folder / "answers", "mia", answers=True)
    return folder / "mia", folder / "answers"


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_student_gets_the_same(copies, tmp_path):
    student, teacher = copies
    hand_out_to(tmp_path / "again", "mia")
    assert files(tmp_path / "again") == files(student)
    text = (student / "exercises" / "01_softmax.py").read_text(encoding="utf-8")
    assert "mini-tf gradcheck exercises/01_softmax.py::softmax" in text          # as on the sheet: in the folder
    lab = (student / "04_word_embeddings.py").read_text(encoding="utf-8")
    assert "python student.py check 04_word_embeddings.py::count_pair" in lab
    shared = files(teacher)
    assert {name: shared[name] for name in files(student)} == files(student)
    assert {str(name) for name in shared.keys() - files(student).keys()} > {"answers.md", f"exercises/solutions/{TASK}.py"}


def test_another_student_gets_another():
    sheets, mistakes = {sheet_of(f"s{i}")[0][5:] for i in range(20)}, {find_and_mend(f"s{i}")[0] for i in range(60)}
    assert len(sheets) == 20
    assert len(mistakes) > 8


@pytest.mark.exhaustive
def test_starters_get_nothing_and_solutions_all(copies):
    student, teacher = copies
    grades = grade(student / "exercises", student="mia")
    assert (grades.points, grades.most) == (0, 21)
    copy = teacher / "exercises" / "solved"
    copy.mkdir()
    for path in (teacher / "exercises" / "solutions").glob("*.py"):
        (copy / path.name).write_bytes(path.read_bytes())
    grades = grade(copy, student="mia")
    assert grades.points == grades.most == 21
    assert grade(copy, [TASK], student="someone else").points < 2


@pytest.mark.parametrize("number", [1, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in (0, *range(2, 12)))])
def test_every_mistake_is_found_and_no_line_else_differs(number, tmp_path, monkeypatch):
    with student_module():
        mistakes = importlib.import_module("_blanks.mistakes").MISTAKES
    assert len(mistakes) == 12
    monkeypatch.setattr("_blanks.mistakes.MISTAKES", [mistakes[number]])
    wrong, line, right = find_and_mend("anyone")
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(wrong.split("\n"), right.split("\n")), 1) if a != b]
    assert [i for i, _, _ in pairs] == [pairs[0][0], line]
    for name, text in (("wrong", wrong), ("right", right)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        f, inputs, options = load(f"{tmp_path / name}.py::model")
        assert bool(judge(f, *inputs, **options)) == (name == "right"), mistakes[number]


def test_sizes_are_other_ones_and_fit(copies):
    student, _ = copies
    for path in sorted((student / "exercises").glob("0*.py")):
        assert ast.parse(path.read_text(encoding="utf-8"))
    text = (student / "exercises" / "08_rotary.py").read_text(encoding="utf-8")
    assert int(re.search(r"Example: x \(\d+, \d+, (\d+)\)", text)[1]) % 2 == 0


def test_the_sheets_answers_are_right():
    sheet, answers = sheet_of("mia")
    z, dy = (np.array(ast.literal_eval(one)) for one in re.findall(r"(\(.*?\))", sheet.split("\n1. ")[1])[:2])
    y = np.exp(z) / np.exp(z).sum()
    expected = np.diag(y) @ dy - np.outer(y, y) @ dy
    assert np.allclose(ast.literal_eval(re.search(r"1\. (\(.*\))", answers)[1]), expected, atol=6e-4)


def test_without_solutions(tmp_path):
    hand_out_to(tmp_path / "labs", None)
    assert not (tmp_path / "labs" / "exercises" / "solutions").exists()
    assert "is a blank" in (tmp_path / "labs" / "04_word_embeddings.py").read_text(encoding="utf-8")
    with pytest.raises(UserError, match="is not empty"):
        hand_out_to(tmp_path / "labs", "mia")

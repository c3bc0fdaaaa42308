"""Grades: what is right gets its points, whatever else a student's code does."""

import json
import re
import shutil
import tempfile
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.handout import labs_folder
from mini_tf.teaching import records
from mini_tf.teaching.grading import grade
from mini_tf.teaching.remote import Failed, Remote
from tests.cases import cases

import numpy as np
import pytest

EXERCISES = labs_folder() / "exercises"
SOFTMAX = (EXERCISES / "solutions" / "01_softmax.py").read_text(encoding="utf-8").partition("\n\n\n# Answers")[0]
RIGHT = "dz = y * (dy - (y * dy).sum(-1, keepdims=True))"
STARTER = (EXERCISES / "01_softmax.py").read_text(encoding="utf-8")
BLANK = re.search(r"^        dz = \.\.\..*", STARTER, re.M)[0]


def handed_in(folder, text, name="01_softmax"):
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def filled(line):
    """The starter with this instead of its blank"""
    return STARTER.replace(BLANK, "\n".join(f"        {each}" for each in line.split("\n")))


def grade_copies(folder, tasks=()):
    """The grades of a folder, whose name may be solutions"""
    with tempfile.TemporaryDirectory() as copies:
        for path in folder.glob("[01]*.py"):
            shutil.copy(path, copies)
        return grade(copies, tasks)


def test_solutions_get_all_points():
    grades = grade_copies(EXERCISES / "solutions")
    assert grades.points == grades.most == 19
    assert {file.words for file in grades.files} == {"All gradients are right."}


def test_untouched_starters_get_0_and_are_told_so():
    grades = grade_copies(EXERCISES)
    assert (grades.points, grades.most) == (0, 19)
    assert "dz is still `...`: a blank to fill" in grades.files[0].words


def test_each_gradient_has_its_point(tmp_path):
    text = (EXERCISES / "solutions" / "03_layer_norm.py").read_text(encoding="utf-8")
    grades = grade(handed_in(tmp_path, re.sub(r"dbeta = .*", "dbeta = dy.mean(leading)", text), "03_layer_norm"))
    assert {part.name: part.points for part in grades.files[0].parts} == {"dx": 1, "dgamma": 1, "dbeta": 0}
    assert re.search(r"FAIL +dbeta", grades.files[0].words)


def test_another_right_way_is_right(tmp_path):
    line = "dz = np.einsum('...i,...ij->...j', dy, y[..., :, None] * (np.eye(y.shape[-1]) - y[..., None, :]))"
    assert grade(handed_in(tmp_path, filled(line))).points == 1


CHEATS = {
    "reads the solution": f"dz = eval(open({str(EXERCISES / 'solutions' / '01_softmax.py')!r}).read())",
    "by a detour": f"import os\ndz = eval(open(os.getcwd() + '/' + '../' * 9 + {str(EXERCISES / 'solutions' / '01_softmax.py')[1:]!r}).read())",
    "imports the ops": "from mini_tf import ops\ndz = ops.softmax(z)[1](dy)",
    "by importlib": "import importlib\ndz = importlib.import_module('mini_tf.ops').softmax(z)[1](dy)",
    "by __import__": "dz = __import__('mini_tf.ops', fromlist=['ops']).softmax(z)[1](dy)",
    "loads the ops' file": f"import runpy\ndz = runpy.run_path({str(labs_folder().parent / 'mini_tf' / 'ops' / 'softmax.py')!r})['softmax'](z)[1](dy)",
    "measures the slopes": "h = 1e-5\ndz = np.array([[(dy * (softmax(z + h * a)[0] - softmax(z - h * a)[0])).sum() / (2 * h) for a in row]\n    for row in np.eye(z.size).reshape(*z.shape, *z.shape)]).reshape(z.shape)",
    "differentiates automatically": "import torch\ndz = torch.ones(2, 5)",
    "ends": "import sys\nsys.exit(0)",
    "ends at once": "import os\nos._exit(0)",
    "goes on for ever": "while True:\n    pass",
    "takes all memory": "dz = [np.ones(10**8) for _ in range(10**4)]",
    "starts a program": "import os\nos.system('touch cheated')\ndz = dy",
    "starts a process": "import os\nos.fork()\ndz = dy",
    "by subprocess": "import subprocess\nsubprocess.run(['touch', 'cheated'])\ndz = dy",
    "opens a connection": "import socket\nsocket.create_connection(('127.0.0.1', 1))\ndz = dy",
    "kills the grader": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\ndz = dy",
    "writes a file": f"open({str(Path(__file__).parent / 'cheated')!r}, 'w').write('x')\ndz = dy",
    "changes NumPy": "np.allclose = np.array_equal = lambda *a, **k: True\ndz = 0 * dy",
    "answers with an object that equals everything": "class Same(np.ndarray):\n    def __eq__(self, other):\n        return True\n    __sub__ = __rsub__ = lambda self, other: 0 * other\ndz = np.zeros_like(z).view(Same)",
    "answers NaN": "dz = np.full_like(z, np.nan)",
    "answers with what breaks when read": "dz = type('dz', (), {'__reduce__': lambda self: (print, ('cheated',))})()",
    "patches the guard": "import sys\nsys.addaudithook = None\nsys.modules['__main__'].guard = None\nsys.modules['__main__'].REFUSED = ()\ndz = eval(open('/etc/passwd').read())",
    "reads the guard's lists in a traceback": f"import sys\ntry:\n    open('/etc/passwd')\nexcept PermissionError as error:\n    at = error.__traceback__\n    while at.tb_next:\n        at = at.tb_next\n    at.tb_frame.f_locals['hidden'] = ()\ndz = eval(open({str(EXERCISES / 'solutions' / '01_softmax.py')!r}).read())",
    "loads an extension": "import sys, _imp\ndz = _imp.create_dynamic(sys.modules['_frozen_importlib'].ModuleSpec('math._posixsubprocess', None, origin='x'))",
    "reads by readline": f"import readline\nreadline.read_history_file({str(EXERCISES / 'solutions' / '01_softmax.py')!r})\ndz = dy",
    "reads beside an open folder": "import os\nfolder = os.open(os.getcwd(), os.O_RDONLY)\nos.open('../../etc/passwd', os.O_RDONLY, dir_fd=folder)\ndz = dy",
    "limits the grader": "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))\ndz = dy",
    "answers with text": "dz = np.full(z.shape, 'abc')",
    "answers with complex numbers": f"{RIGHT}\ndz = dz + 1j",
    "tells a long story": "raise ValueError('A' * 10**8)",
    "answers too much": "dz = np.zeros(10**7)",
    "writes answers of its own": "import os\nfor stream in range(3, 20):\n    try:\n        os.write(stream, b'\\x02\\x00\\x00\\x00{}')\n    except OSError:\n        pass\ndz = 0 * dy",
}  # fmt: skip


SHORT = {"reads the solution", "imports the ops", "measures the slopes", "ends at once", "goes on for ever", "answers NaN",
         "reads the guard's lists in a traceback", "loads an extension", "answers with text"}            # fmt: skip


@pytest.mark.parametrize("cheat", cases(sorted(SHORT), sorted(CHEATS.keys() - SHORT)))
def test_cheats_get_nothing(cheat, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in EXERCISES.rglob("*.py")}
    grades = grade(handed_in(tmp_path, filled(CHEATS[cheat])), seconds=2)
    assert (grades.points, grades.most) == (0, 1)
    assert grades.files[0].words
    assert len(grades.files[0].words) < 3000
    assert not list(tmp_path.rglob("cheated"))
    assert not (Path(__file__).parent / "cheated").exists()
    assert {path: path.stat().st_mtime_ns for path in EXERCISES.rglob("*.py")} == before


def test_links_and_large_files_are_no_hand_in(tmp_path):
    (tmp_path / "01_softmax.py").symlink_to(EXERCISES / "solutions" / "01_softmax.py")
    grades = grade(tmp_path)
    assert grades.points == 0
    assert "no plain file" in grades.files[0].words
    (tmp_path / "01_softmax.py").unlink()
    assert grade(handed_in(tmp_path, SOFTMAX + "#" * (1 << 20))).points == 0


def test_no_code_of_a_terminal_comes_through(tmp_path):
    grades = grade(handed_in(tmp_path, filled("raise ValueError('\\x1b[8m hidden \\ud800')")))
    assert "ValueError: [8m hidden" in grades.files[0].words
    records.write_json(grades, tmp_path / "grades.json")


def test_in_a_lab_a_function_that_returns_a_constant_gets_nothing(tmp_path):
    lab = labs_folder() / "04b_attention_from_nothing.py"
    text = re.sub(r"(?m)^def (\w+)\(.*\):$", r"def \1(*inputs):\n    return 1.0, lambda dy=1.0: "
                  r"tuple(0 * x for x in inputs if getattr(x, 'dtype', None) == float)", lab.read_text(encoding="utf-8"))
    grades = grade(handed_in(tmp_path, text, lab.stem))
    assert (grades.points, grades.most) == (0, 5)
    assert "y, which the lab computes, has been changed" in grades.files[0].parts[0].words


def test_a_changed_forward_gets_nothing(tmp_path):
    text = filled("dz = 0 * dy").replace("y = e / e.sum(-1, keepdims=True)", "y = np.zeros_like(z)")
    grades = grade(handed_in(tmp_path, text))
    assert grades.points == 0
    assert "the forward, which is given, has been changed" in grades.files[0].words


@pytest.mark.parametrize(("text", "words"), [
    ("def softmax(z):\n    return z.exp(", "SyntaxError"), ("1 / 0", "line 1: ZeroDivisionError"), ("x = 1", "softmax"),
    ("def softmax(z):\n    return z", "does not return y, backward"),
])  # fmt: skip
def test_files_that_cannot_be_run_are_said_to(text, words, tmp_path):
    grades = grade(handed_in(tmp_path, text))
    assert (grades.points, grades.most) == (0, 1)
    assert words in grades.files[0].words


def test_what_was_to_be_handed_in(tmp_path):
    grades = grade(handed_in(tmp_path, SOFTMAX), ["01_softmax", "05_embedding"])
    assert [(file.task, file.points) for file in grades.files] == [("01_softmax", 1), ("05_embedding", 0)]
    assert grades.files[1].words == "It was not handed in."
    with pytest.raises(UserError, match="there is no task 01_sofmax"):
        grade(tmp_path, ["01_sofmax"])
    with pytest.raises(UserError, match="neither an exercise nor a lab"):
        (tmp_path / "empty").mkdir()
        grade(tmp_path / "empty")
    with pytest.raises(UserError, match="is no folder"):
        grade(tmp_path / "absent")


def test_json_and_gradescope(tmp_path):
    grades = grade(handed_in(tmp_path, filled("dz = dy")))
    records.write_json(grades, tmp_path / "grades.json")
    data = json.loads((tmp_path / "grades.json").read_text(encoding="utf-8"))
    assert (data["points"], data["most"], data["files"][0]["parts"][0]["name"]) == (0, 1, "dz")
    records.write_gradescope(grades, tmp_path / "results.json")
    [test] = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["tests"]
    assert (test["name"], test["score"], test["max_score"], test["status"]) == ("01_softmax: dz", 0, 1, "failed")
    assert "wrong in all entries" in test["output"]


@pytest.mark.exhaustive
def test_labs_as_they_are_get_all_points():
    """Every fourth: that all solutions are right is tests/test_student.py's."""
    grades = grade_copies(labs_folder(), sorted(path.stem for path in labs_folder().glob("[01]*.py"))[::4])
    assert [(file.task, part.name, part.words) for file in grades.files for part in file.parts if not part.points] == []
    assert grades.most > 20


def test_a_lab_of_which_one_blank_is_filled(tmp_path):
    lab = labs_folder() / "01b_smoothing.py"
    text = lab.read_text(encoding="utf-8")
    grades = grade(handed_in(tmp_path, text, lab.stem))
    assert grades.points == grades.most > 1
    name = grades.files[0].parts[0].name
    body = re.search(rf"def {name}\(.*?\):\n", text)
    grades = grade(handed_in(tmp_path, text[: body.end()] + "    raise NotImplementedError\n" + text[body.end() :], lab.stem))
    assert [part.points for part in grades.files[0].parts] == [0] + [1] * (grades.most - 1)
    assert "NotImplementedError" in grades.files[0].parts[0].words


def test_functions_of_the_other_process(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nclass Pair:\n    def __init__(self, x):\n        self.x = x\n    def __mul__(self, other):\n"
        "        return Pair(self.x * other.x)\n\ndef fill(x):\n    x[...] = 3\n\ndef twice(f, x):\n    return f(f(x)), {'a': (1, None, ...)}\n",
        encoding="utf-8",
    )  # fmt: skip
    with Remote(path, True) as student:
        x = np.zeros(3)
        student["fill"](x)
        assert x.tolist() == [3, 3, 3]
        result, others = student["twice"](lambda x: x + 1, x)
        assert result.tolist() == [5, 5, 5]
        assert others == {"a": (1, None, ...)}
        assert (student["Pair"](3) * student["Pair"](5)).x == 15
        with pytest.raises(Failed, match="AttributeError"):
            student["absent"](1)

"""Grade a hand-in: the exercises by tensor, the labs' blanks one by one, each in a process of its own.

An exercise has a point for each gradient that its backward returns, if for SEEDS sets of random inputs it is the
solution's, to rounding; the forward, which is given, has to be the solution's, too. A lab has one for each blank that
passes its check. What is right stays in this process; the student's code runs in another one: see `remote.py`.
"""

import ast
import contextlib
import inspect
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mini_tf.errors import UserError
from mini_tf.files import PathLike, write_text
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load
from mini_tf.handout import labs_folder, student_module
from mini_tf.progress import progress_bar
from mini_tf.teaching.individual import PARTS, TASK, find_and_mend
from mini_tf.teaching.remote import SECONDS, Failed, Remote

import numpy as np

SEEDS = 3
CLOSE = 1e-11            # of the largest entry: what another order of the same sum may change


@dataclass
class Grade:
    """Of one part of a file, a gradient or a blank. name: "dz"; words: feedback, of the checker or about what failed"""

    name: str
    points: int
    words: str = ""


@dataclass
class FileGrade:
    """Of one file: task, "01_softmax" or "04_word_embeddings", and the Grades of its parts"""

    task: str
    parts: list[Grade]
    words: str = ""

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)


@dataclass
class Grades:
    """Of a whole hand-in"""

    folder: str
    files: list[FileGrade] = field(default_factory=list)

    @property
    def points(self) -> int:
        return sum(file.points for file in self.files)

    @property
    def most(self) -> int:
        return sum(len(file.parts) for file in self.files)


def grade(
    folder: PathLike, tasks: Sequence[str] = (), seconds: float = SECONDS, student: str | None = None
) -> Grades:  # fmt: skip
    """The Grades of all exercises and labs in a folder, or below it.

    tasks      what was to be handed in, as "01_softmax": a file that is missing gets 0; by default what is there
    student    whose it is: with it "find and mend" is graded, too;  seconds: for each answer of the student's code

    Raises UserError if there is nothing to grade, and for a task that does not exist.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder, expected one with a student's exercises or labs")
    labs = labs_folder()
    known = {path.stem: path for path in sorted([*labs.glob("exercises/solutions/*.py"), *labs.glob("[01]*.py")])}
    if student is not None:
        known[TASK] = labs
    if unknown := [task for task in tasks if task not in known]:
        raise UserError(f"there is no task {unknown[0]}, expected some of {', '.join(known)}")
    found = {path.stem: path for path in sorted(folder.rglob("*.py"), reverse=True)
             if path.stem in known and path.parent.name != "solutions" and path.is_file()}           # fmt: skip
    graded = [task for task in known if task in (tasks or found)]
    if not graded:
        raise UserError(f"{folder} has neither an exercise nor a lab in it, expected files such as 01_softmax.py")
    grades = Grades(str(folder))
    with progress_bar("grading", len(graded), even=False) as update:
        for number, task in enumerate(graded):
            update(number, task)
            grades.files.append(_graded(task, known[task], found.get(task), seconds, student))
    return grades


def _graded(task: str, right: Path, path: Path | None, seconds: float, student: str | None) -> FileGrade:
    is_exercise, blanks = right.parent.name == "solutions", list[Any]()
    if task != TASK and not is_exercise:
        with student_module() as module:
            blanks = module.blanks_of(right)
    cases = [_Case(f"{right}::{task[3:]}", seed) for seed in range(SEEDS)] if is_exercise else []
    names = cases[0].tensors if cases else [blank.name for blank in blanks]
    grades = FileGrade(task, [Grade(name, 0) for name in names or ("line", "mended")])
    try:
        if path is None:
            raise Failed("It was not handed in.")
        if task == TASK:
            _judge_mended(grades, path, str(student), seconds)
        elif is_exercise:
            _judge_exercise(grades, cases, path, seconds)
        else:
            _judge_lab(grades, blanks, right, path, seconds)
    except Exception as error:                           # whatever the student's code has led to
        grades.words = str(error)
    everything: list[Any] = [grades, *grades.parts]
    for one in everything:                               # no codes that a terminal obeys
        one.words = "".join(c for c in one.words if c == "\n" or c.isprintable())
    return grades


def _judge_mended(grades: FileGrade, path: Path, student: str, seconds: float) -> None:
    """A point for the number of the line, and one for five right functions and a model that is"""
    _, line, solution = find_and_mend(student)
    with tempfile.TemporaryDirectory() as folder, Remote(path, True, seconds) as remote:
        write_text(Path(folder) / f"{TASK}.py", solution)
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        names = [ast.unparse(node.value) for node in tree.body
                 if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MISTAKE_IN_LINE"]      # fmt: skip
        grades.parts[0].points = int(names == [str(line)])
        functions = [*(part[3:] for part in PARTS), "model"]
        cases = {name: _Case(f"{Path(folder) / TASK}.py::{name}", 0) for name in functions}
        right = {name: case.judged(remote[name])[: len(case.tensors)] for name, case in cases.items()}
    wrong = [name for name, of_tensors in right.items() if not all(of_tensors)]
    grades.parts[1].points = int(not wrong)
    grades.parts[1].words = f"{', '.join(wrong)}: still wrong" if wrong else ""


def _judge_exercise(grades: FileGrade, cases: "Sequence[_Case]", path: Path, seconds: float) -> None:
    with Remote(path, True, seconds) as student:
        function = student[grades.task[3:]]
        right = [case.judged(function) for case in cases]
        for place, part in enumerate(grades.parts):
            part.points = int(all(of_case[place] for of_case in right))
        grades.words = _words(function, cases[0], grades.points == len(grades.parts))


def _judge_lab(grades: FileGrade, blanks: Sequence[Any], lab: Path, path: Path, seconds: float) -> None:
    with student_module() as module, Remote(path, False, seconds) as remote:
        own: dict[str, Any] = {"__name__": lab.stem}
        exec(compile(module.parse(lab), str(lab), "exec"), own)          # the lab's own functions, to compare y with
        for blank, part in zip(blanks, grades.parts):
            said, name = io.StringIO(), blank.name.partition(".")[0]
            function = remote[name]
            function.right = own[name]
            try:
                with contextlib.redirect_stdout(said):
                    part.points = int(blank.check(function) is True)
                part.words = said.getvalue().strip()
            except Exception as error:
                part.words = f"{said.getvalue()}{error}".strip()


class _Case:
    """Random inputs of an exercise, a dy, and what its solution gives for them: y, and gradients by name"""

    def __init__(self, target: str, seed: int):
        f, self.inputs, options = load(target, seed=seed)
        self.options = {name: value for name, value in options.items() if name != "constants"}
        self.y, backward = f(*self.inputs, **self.options)
        rng = np.random.default_rng((seed, 1))
        self.dy = rng.standard_normal(np.shape(self.y))[()]
        self.gradients = _as_tuple(backward(self.dy))
        self.signature = inspect.signature(f)
        named = zip(self.signature.parameters, self.inputs)
        floats = [name for name, x in named if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        self.tensors = [f"d{name}" for name in floats[: len(self.gradients)]]

    def judged(self, f: Any) -> list[bool]:
        """For each gradient, whether this function's backward gives it. Raises Failed for what is no y, backward."""
        result = f(*(np.copy(x) if isinstance(x, np.ndarray) else x for x in self.inputs), **self.options)
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise Failed("the function does not return y, backward")
        y, backward = result
        if not _same(y, self.y):
            raise Failed("the forward, which is given, has been changed: its y is not the solution's")
        returned = _as_tuple(backward(np.copy(self.dy)[()]))
        return [place < len(returned) and _same(returned[place], right) for place, right in enumerate(self.gradients)]


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _same(x: Any, right: Any) -> bool:
    right = np.asarray(right)
    if not isinstance(x, (np.ndarray, np.generic, float)) or np.shape(x) != right.shape:
        return False
    if np.asarray(x).dtype.kind not in "biuf":           # complex, text
        return False
    off = np.abs(np.asarray(x, dtype=float) - right)
    return bool((off <= CLOSE * max(1e-300, np.abs(right).max(initial=0))).all())        # not true of NaN


def _words(f: Any, case: _Case, all_right: bool) -> str:
    """What the gradient checker says about a function"""
    if all_right:
        return "All gradients are right."

    def function(*inputs: Any, **options: Any) -> Any:
        return f(*inputs, **options)

    function.__name__, function.__signature__ = f.__name__, case.signature       # type: ignore[attr-defined]
    report = judge(function, *case.inputs, name=f.__name__, **case.options)
    measured = " A measured slope is not a derived one: a gradient counts if it is right to rounding." * bool(report)
    return f"{report}{measured}"

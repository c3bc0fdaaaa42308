"""Each student's own sizes, sheet, and model with one mistake: always the same for the same student."""

import ast
import contextlib
import hashlib
import importlib
import re
import shutil
import tempfile
from pathlib import Path

from mini_tf import ops
from mini_tf.files import PathLike, write_text
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load
from mini_tf.handout import labs_folder, student_module
from mini_tf.types import Array

import numpy as np

TASK = "10_find_and_mend"
PARTS = "02_cross_entropy", "03_layer_norm", "04_residual_block", "05_embedding", "06_attention"


def generator_of(student: str, what: str) -> np.random.Generator:
    """The random numbers of a student, for one purpose"""
    return np.random.default_rng(list(hashlib.sha256(f"{what} {student}".encode()).digest()))


def hand_out_to(folder: PathLike, student: str | None, answers: bool = False) -> None:
    """Labs and exercises with blanks, and if it is for one student what is their own; with answers also the solutions.

    Raises UserError as `hand_out` does.
    """
    folder = Path(folder)
    with student_module() as labs:
        labs.make(folder, place="")                      # the student will put it somewhere else
    exercises, solutions = folder / "exercises", folder / "exercises" / "solutions"
    if student is None:
        shutil.rmtree(solutions)
        return
    for path in sorted(solutions.glob("*.py")):
        for one, text in sized(path, exercises / path.name, generator_of(student, path.stem)).items():
            write_text(one, text)
    wrong, line, right = find_and_mend(student)
    write_text(exercises / f"{TASK}.py", wrong)
    sheet, answer = sheet_of(student)
    write_text(folder / "sheet.md", sheet)
    if answers:
        write_text(solutions / f"{TASK}.py", right)
        write_text(folder / "answers.md", f"{answer}\nFind and mend: line {line}.\n")
    else:
        shutil.rmtree(solutions)


def sized(solution: Path, starter: Path, rng: np.random.Generator) -> dict[Path, str]:
    """{file: its text} of an exercise and its solution, with other sizes in the Example line, for which it is right"""
    texts = {path: path.read_text(encoding="utf-8") for path in (solution, starter)}
    example = re.search(r"^ *Example: .*$", texts[solution], re.M)
    sizes = sorted({int(size) for size in re.findall(r"\d+", example[0])}) if example else []
    while example:
        own = dict(zip(map(str, sizes), map(str, rng.permutation(np.arange(2, 9)))))
        line = "".join(own.get(part, part) for part in re.split(r"(\d+)", example[0]))
        changed = {path: text.replace(example[0], line) for path, text in texts.items()}
        with tempfile.TemporaryDirectory() as trial, contextlib.suppress(Exception):
            write_text(Path(trial) / solution.name, changed[solution])
            f, inputs, options = load(f"{Path(trial) / solution.name}::{solution.stem[3:]}")
            if judge(f, *inputs, **options):
                return changed
    return texts


def find_and_mend(student: str) -> tuple[str, int, str]:
    """(the file with a mistake, the number of its line, the file without) of a student"""
    blanks, solutions = labs_folder() / "_blanks", labs_folder() / "exercises" / "solutions"
    head, begin, model = (blanks / "find_and_mend.py").read_text(encoding="utf-8").partition("def model(")
    head = re.sub(r"\n# ruff.*", "", head)
    right = head + "\n\n\n".join([*(_functions(solutions / f"{name}.py") for name in PARTS), begin + model])
    with student_module():
        mistakes = importlib.import_module("_blanks.mistakes").MISTAKES
    mistake, wrong = mistakes[generator_of(student, TASK).integers(len(mistakes))]
    line = right[: right.index(mistake)].count("\n") + 1
    return right.replace(mistake, wrong), line, right.replace("MISTAKE_IN_LINE = ...", f"MISTAKE_IN_LINE = {line}")


def _functions(solution: Path) -> str:
    """The functions of a solution, without the lines that are comments only"""
    text = solution.read_text(encoding="utf-8")
    found = [ast.get_source_segment(text, node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return re.sub(r"\n( *#.*\n)+", "\n", "\n\n\n".join(filter(None, found)))


def sheet_of(student: str) -> tuple[str, str]:
    """(the sheet, its answers) of a student: gradients to be worked out by hand, with numbers of their own"""
    rng = generator_of(student, "sheet")
    z, dy, x, gamma, dnormal, logits = (np.round(rng.uniform(-2, 2, size), 1) for size in (3, 3, 4, 4, 4, 3))
    target, seed, first = int(rng.integers(3)), int(rng.integers(1000)), int(rng.integers(1, 30000))
    dz = ops.softmax(z)[1](dy)
    dx = ops.layer_norm(x, gamma, np.zeros(4))[1](dnormal)[0]
    dlogits = ops.cross_entropy(logits[None], np.array([target]))[1](1.0)[0]
    template = (labs_folder() / "_blanks" / "sheet.md").read_text(encoding="utf-8")
    numbers = {"z": z, "dy": dy, "x": x, "gamma": gamma, "dnormal": dnormal, "logits": logits}
    rows = {name: _row(values) for name, values in numbers.items()}
    sheet = template.format(student=student, target=target, seed=seed, first=first, **rows)
    return sheet, f"# {student}: answers\n\n1. {_row(dz, 3)}\n2. {_row(dx, 3)}\n3. {_row(dlogits, 3)}\n"


def _row(x: Array, digits: int = 1) -> str:
    return f"({', '.join(f'{value:.{digits}f}' for value in np.ravel(x))})"

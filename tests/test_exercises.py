"""The exercises: made from their solutions, not tested as they come, green when solved, red with everybody's mistakes."""

import ast
import re

from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load
from tests.reader import LABS

import pytest
import student

FOLDER = LABS / "exercises"
SOLUTIONS = FOLDER / "solutions"
NAMES = [*student.EXERCISES]
INDENT = " {8,12}"           # of a line of a backward, or of a loop in it
COMMAND = r"mini-tf gradcheck labs/exercises/(\w+\.py)::(\w+)"

each = pytest.mark.parametrize("name", NAMES)


def target(path):
    """path::function, the function that the file's name names."""
    return f"{path}::{path.stem[3:]}"


def text_of(path):
    return path.read_text(encoding="utf-8")


def judged(path, seed=0):
    f, inputs, options = load(target(path), seed=seed)
    return judge(f, *inputs, seed=seed, **options)


def test_these_are_all():
    for folder in (FOLDER, SOLUTIONS):
        assert sorted(path.stem for path in folder.glob("*.py")) == NAMES


@each
def test_an_exercise_is_what_is_made_from_its_solution(name):
    """After a change: in another folder `python …/labs/student.py make labs`, and copy its exercises/*.py to labs/exercises."""
    path = FOLDER / f"{name}.py"
    assert text_of(path) == student.with_blanks(text_of(SOLUTIONS / path.name), path.name, student.EXERCISES[name])


@each
def test_a_solution_is_right_for_other_numbers_too(name, capsys):
    path = SOLUTIONS / f"{name}.py"
    assert student.check(str(path))
    assert "PASS" in capsys.readouterr().out
    assert all(judged(path, seed) for seed in range(1, 6))


@each
def test_filled_from_the_top_down_an_exercise_names_the_blanks_that_are_left(name, tmp_path, mini_tf):
    path, text, solution = tmp_path / f"{name}.py", text_of(FOLDER / f"{name}.py"), text_of(SOLUTIONS / f"{name}.py")
    blanks = re.findall(rf"^{INDENT}(\w+) = \.\.\.  ", text, re.M)
    assert blanks == [*student.EXERCISES[name][0].hints]
    for number, blank in enumerate(blanks):
        path.write_text(text, encoding="utf-8")
        code, out, err = mini_tf("gradcheck", target(path))
        assert (code, err) == (2, "")
        assert out.startswith("NOT TESTED")
        assert re.search(r"^  (d\w+ is still `...`: a blank to fill$|`\w+` is still `...`, a blank to fill first)", out, re.M)
        assert f"blanks that are left, from the top down: {', '.join(blanks[number:])}\n" in out
        assert "Error" not in out
        solved = re.search(rf"(?:^{INDENT}\w.*\n)*^{INDENT}{blank} = .*\n(?:        np\..*\n)?", solution, re.M)[0]
        text = re.sub(rf"^{INDENT}{blank} = \.\.\..*\n", lambda _, solved=solved: solved, text, flags=re.M)
    path.write_text(text, encoding="utf-8")
    assert mini_tf("gradcheck", target(path))[0] == 0


@each
def test_an_exercise_needs_numpy_only_and_has_the_command_questions_and_hints(name):
    text = text_of(FOLDER / f"{name}.py")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imports] == ["import numpy as np"]
    assert re.findall(COMMAND, text) == [(f"{name}.py", name[3:])]
    assert text.startswith(f'"""Exercise {int(name[:2])}: ')
    assert "# To think about" in text
    assert "# Answers" not in text
    assert all(len(hints) >= 2 for hints in student.EXERCISES[name][0].hints.values())


def test_the_readmes_name_exercises_that_are_there(mini_tf):
    readme = text_of(FOLDER / "README.md")
    assert re.findall(r"^\| `(\w+)\.py` \| (\d) \|", readme, re.M) == [
        (name, str(len(student.EXERCISES[name][0].hints))) for name in NAMES
    ]
    for text in (readme, text_of(LABS / "README.md")):
        for file, function in re.findall(COMMAND, text):
            assert (file[:-3], function) in [(name, name[3:]) for name in NAMES]
    options = re.search(r"--shape table=(\S+) --shape \"ids=([^\"]+)\"", readme)
    solution = target(SOLUTIONS / "05_embedding.py")
    assert mini_tf("gradcheck", solution, "--shape", f"table={options[1]}", "--shape", f"ids={options[2]}")[0] == 0


MISTAKES = {
    "01_softmax": [
        (" - (y * dy).sum(-1, keepdims=True)", ""), ("(-1, keepdims=True))  #", "())  #"), ("y * (dy", "y * (1 - y) * (dy"),
    ],
    "02_cross_entropy": [(" / N ", ""), ("dloss * (p", "(p"), (" - onehot", ""), ("p = e / total", "p = e / total.sum()")],
    "03_layer_norm": [
        (" - mean_g - ", " - "), (" - normal * mean_g_normal", ""), ("dnormal = dy * gamma", "dnormal = dy"),
        ("(dy * normal).sum", "dy.sum"), ("dx = r * ", "dx = "),
    ],
    "04_residual_block": [
        ("dy + da @ W.T", "da @ W.T"), ("da @ W.T", "da @ W"), ("dy * on", "dy"), ("dx = dy +", "dx = dy * on +"),
        ("x.T @ da", "da.T @ x"), ("da.sum(0)", "da.mean(0)"),
    ],
    "05_embedding": [("np.add.at(dtable, ids, dy)", "dtable[ids] += dy")],
    "06_attention": [
        ("dquery = scale * ", "dquery = "), ("dkey = scale * ", "dkey = "), ("softmax_backward(dA)", "dA"),
        ("softmax_backward(dA)", "A * dA"), ("(transpose(dscores) @ query)", "(transpose(A) @ query)"),
    ],
    "07_lstm": [
        ("dc = dc_next + dh", "dc = dh"), ("dc_next = dc * f", "dc_next = dc * i"), ("dh_next = da @ Wh.T", "dh_next = da @ Wh.T * 0"),
        ("dWh = dWh + ", "dWh = "), ("dy[:, t] + dh_next", "dy[:, t]"), ("dg * (1 - g * g)", "dg * g * (1 - g)"),
    ],
    "08_rotary": [
        ("dy_b * cos - dy_a * sin", "dy_b * cos + dy_a * sin"), ("dy_a * cos + dy_b * sin", "dy_a * cos - dy_b * sin"),
        ("da = dy_a * cos + dy_b * sin", "da = dy_a * cos"), ("np.stack([da, db], axis=-1)", "np.concatenate([da, db], axis=-1)"),
    ],
    "09_rms_norm": [
        (" - dr * r**3 * x / n", ""), (" * x / n", " * x"), ("dr * r**3", "dr * r**2"), ("r * dnormal - ", "dnormal - "),
        ("dnormal = dy * gamma", "dnormal = dy"), ("(dy * normal).sum", "dy.sum"), ("(dnormal * x).sum(-1, keepdims=True)", "dnormal * x"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "right", "wrong"), [(name, *pair) for name, pairs in MISTAKES.items() for pair in pairs])
def test_the_mistakes_that_everybody_makes_are_red(name, right, wrong, tmp_path):
    text, path = text_of(SOLUTIONS / f"{name}.py"), tmp_path / f"{name}.py"
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    assert judged(path).verdict == "FAIL"

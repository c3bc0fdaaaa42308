"""The exercises: not tested as they come, green when solved, and the same but for the backward."""

import ast
import re

from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load
from tests.reader import LABS

import numpy as np
import pytest

FOLDER = LABS / "exercises"
NAMES = ["01_softmax", "02_cross_entropy", "03_layer_norm", "04_residual_block", "05_embedding", "06_attention"]
COMMAND = r"mini-tf gradcheck labs/exercises/(\w+\.py)::(\w+)"

each = pytest.mark.parametrize("name", NAMES)


def target(path):
    """path::function, the function that the file's name names."""
    return f"{path}::{path.stem[3:]}"


def backward_of(path):
    """(the syntax tree of the file without the body of its function's backward, that body)"""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    function = next(node for node in tree.body if getattr(node, "name", "") == path.stem[3:])
    backward = next(node for node in function.body if getattr(node, "name", "") == "backward")
    body, backward.body = backward.body, []
    return ast.dump(tree), body


def test_these_are_all():
    for folder in (FOLDER, FOLDER / "solutions"):
        assert sorted(path.stem for path in folder.glob("*.py")) == NAMES


@each
def test_as_it_comes_an_exercise_is_not_tested_and_names_its_blanks(name, mini_tf):
    path = FOLDER / f"{name}.py"
    code, out, err = mini_tf("gradcheck", target(path))
    assert (code, err) == (2, "")
    assert out.startswith("NOT TESTED")
    assert re.search(r"^  d\w+ is still `...`: a blank to fill$", out, re.M)
    blanks = re.findall(r"^ +(\w+) = \.\.\.", path.read_text(encoding="utf-8"), re.M)
    assert f"blanks that are left, from the top down: {', '.join(blanks)}" in out
    assert "Error" not in out


@each
def test_solved_it_is_green(name, mini_tf):
    code, out, err = mini_tf("gradcheck", target(FOLDER / "solutions" / f"{name}.py"))
    assert code == 0
    assert err == ""
    assert "PASS" in out
    assert "FAIL" not in out


@each
def test_a_solution_is_right_for_other_numbers_too(name):
    for seed in range(1, 6):
        f, inputs, options = load(target(FOLDER / "solutions" / f"{name}.py"), seed=seed)
        assert judge(f, *inputs, seed=seed, **options)


@each
def test_an_exercise_and_its_solution_differ_in_the_backward_and_in_comments_only(name):
    asked, blanks = backward_of(FOLDER / f"{name}.py")
    solved, lines = backward_of(FOLDER / "solutions" / f"{name}.py")
    assert asked == solved
    assert ast.dump(blanks[-1]) == ast.dump(lines[-1])   # return dx, …
    f, inputs, _ = load(target(FOLDER / f"{name}.py"))
    g, same, _ = load(target(FOLDER / "solutions" / f"{name}.py"))
    assert all(np.array_equal(a, b) for a, b in zip(inputs, same))
    assert np.array_equal(f(*inputs)[0], g(*same)[0])


@each
def test_one_to_four_blanks_with_hints_and_every_filled_name_is_in_the_solution(name):
    _, blanks = backward_of(FOLDER / f"{name}.py")
    _, lines = backward_of(FOLDER / "solutions" / f"{name}.py")
    asked = [node.targets[0].id for node in blanks if isinstance(node, ast.Assign) and _is_blank(node.value)]
    filled = [t.id for node in lines if isinstance(node, ast.Assign) for t in node.targets]
    assert 1 <= len(asked) <= 4
    assert set(asked) <= set(filled)
    assert not any(_is_blank(node) for line in lines for node in ast.walk(line))
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    for blank in asked:
        assert re.search(rf"        # [^\n]*\n(?:\n|        \w[^\n]*\n)*        {blank} = \.\.\. +# \(", text), blank


@each
def test_an_exercise_needs_numpy_only(name):
    for folder in (FOLDER, FOLDER / "solutions"):
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert [ast.unparse(node) for node in imports] == ["import numpy as np"]


@each
def test_the_header_has_the_command(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert re.findall(COMMAND, text) == [(f"{name}.py", name[3:])]
    assert f'"""Exercise {int(name[:2])}: ' in text
    assert "To think about" in text


def test_the_readmes_name_exercises_that_are_there(mini_tf, monkeypatch):
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)\.py`", readme, re.M) == NAMES
    for text in (readme, (LABS / "README.md").read_text(encoding="utf-8")):
        for file, function in re.findall(COMMAND, text):
            assert (file[:-3], function) in [(name, name[3:]) for name in NAMES]
    options = re.search(r"--shape table=(\S+) --shape \"ids=([^\"]+)\"", readme)
    solution = target(FOLDER / "solutions" / "05_embedding.py")
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
}  # fmt: skip


@pytest.mark.parametrize(("name", "right", "wrong"), [(name, *pair) for name, pairs in MISTAKES.items() for pair in pairs])
def test_the_mistakes_that_everybody_makes_are_red(name, right, wrong, tmp_path, mini_tf):
    text = (FOLDER / "solutions" / f"{name}.py").read_text(encoding="utf-8")
    assert right in text
    path = tmp_path / f"{name}.py"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    code, out, err = mini_tf("gradcheck", target(path))
    assert (code, err) == (1, "")
    assert "FAIL" in out


@each
def test_blanks_filled_one_by_one_are_answered_in_words(name, tmp_path, mini_tf):
    """From the bottom up, the wrong way round: not tested, and a blank is named."""
    path, solution = tmp_path / f"{name}.py", (FOLDER / "solutions" / f"{name}.py").read_text(encoding="utf-8")
    blanks = re.findall(r"^        (\w+) = \.\.\.", (FOLDER / f"{name}.py").read_text(encoding="utf-8"), re.M)
    for left in range(1, len(blanks) + 1):
        text = solution
        for blank in blanks[:left]:
            text = re.sub(rf"^        {blank} = .*$", f"        {blank} = ...", text, flags=re.M)
        path.write_text(text, encoding="utf-8")
        code, out, err = mini_tf("gradcheck", target(path))
        assert (code, err) == (2, "")
        assert "is still `...`" in out


def _is_blank(node):
    return isinstance(node, ast.Constant) and node.value is ...

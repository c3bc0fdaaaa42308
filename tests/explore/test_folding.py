"""Folded lines: what does not compute anything, and nothing else."""

import ast
import textwrap

from mini_tf import layers, ops
from mini_tf.explore import explore
from mini_tf.explore.folding import Fold, folds, joined, without_notes_to_tools
from mini_tf.gradcheck.learner import load

import numpy as np
import pytest


def folded(source, needed=()):
    """The Folds of the first function in a source, neighbours joined"""
    source = textwrap.dedent(source).strip("\n")
    return joined(folds(ast.parse(source).body[0], source), needed, source.split("\n"), 1)


SOURCE = '''
def f(x: Array, rate: float = 0.5, *more: int, flag: bool = False, **options: Any) -> Array:
    """y = x"""
    xp = array_module(x)
    dtype = x.dtype

    if rate < 0:
        raise ValueError(rate)
    assert x.ndim
    ops.check_ids(x)
    y = xp.exp(x)
    try:
        fits = y.shape == x.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(fits)
    if flag:
        y = y * 2
        check(y)
    return y.astype(dtype)
'''


def test_what_is_folded():
    assert folded(SOURCE) == [
        Fold(1, 1, "type hints", "def f(x, rate, *more, flag, **options):", 1),
        Fold(2, 9, "docstring, array library, dtype, checks"),
        Fold(11, 16, "checks"),
        Fold(19, 19, "checks"),
    ]


def test_needed_lines_are_not_folded():
    assert folded(SOURCE, needed={4, 12})[1:] == [
        Fold(2, 3, "docstring, array library"), Fold(6, 9, "checks"), Fold(15, 16, "checks"), Fold(19, 19, "checks")
    ]  # fmt: skip


@pytest.mark.parametrize(("source", "short"), [
    ("def f(x, eps=1e-5):\n    return x", None),
    ("def f(x): return x", None),
    ("def f(x: int): return x", None),
    ('def f(x, name=":"):  # type: ignore\n    return x', None),
    ("@op('x (n)')\ndef f(x):\n    return x", "def f(x):"),
    ("def f(\n    x: dict[str, int] = {':': 1},   # one\n    y=lambda: 0,\n) -> Array:  # fmt: skip\n    return x", "def f(x, y):  # one"),
    ("def f(dy: Array) -> Array:       # keeps x\n    return dy", "def f(dy):  # keeps x"),
    ("def f(x: int):  # type: ignore[override]      # it reads z, too\n    return x", "def f(x):  # it reads z, too"),
])  # fmt: skip
def test_def_lines_without_type_hints(source, short):
    assert [one.short for one in folded(source) if one.short] == ([short] if short else [])


@pytest.mark.parametrize(("line", "shown"), [
    ("]  # fmt: skip", "]"), ("x = f(y)  # type: ignore[call-arg]  # why", "x = f(y)  # why"), ("x = y  # noqa: E501", "x = y"),
    ("x = y  # a shape", "x = y  # a shape"), ("x = '# fmt: skip it'", "x = '# fmt: skip it'"),
])  # fmt: skip
def test_notes_to_tools_are_left_out(line, shown):
    assert without_notes_to_tools(line) == shown


def test_a_line_that_made_an_array_is_never_folded(exploration):
    sheets = exploration.data["sheets"]
    for recording in exploration.data["recordings"]:
        for line in recording["lines"]:
            if any(isinstance(ref, int) for _, ref, _, *_ in line["made"]):
                for fold in sheets[recording["frames"][line["frame"]]["sheet"]]["folds"]:
                    assert "short" in fold or not fold["first"] <= line["first"] <= fold["last"]
    assert sum(len(sheet["folds"]) for sheet in sheets) > 20


def test_the_folds_of_layer_norm():
    [sheet] = explore(ops.layer_norm, np.ones((2, 3)) * [1, 2, 4], np.ones(3), np.ones(3)).data["sheets"]
    header, checks, backward = sheet["folds"]
    assert "layer_norm" in header["short"]
    assert "Array" not in header["short"]
    assert checks["says"] == "docstring, array library, checks"
    last = sheet["lines"][checks["last"] - sheet["first"]]
    assert "raise" in last
    assert "keeps normal, r, gamma" in backward["short"]


def test_a_check_that_failed_is_not_folded(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def f(x):\n    if x.ndim:\n        raise ValueError('no')\n    return x, lambda dy: dy\n", encoding="utf-8")
    f, inputs, _ = load(f"{path}::f", ["x=2,3"])
    [sheet] = explore(f, *inputs).data["sheets"]
    assert sheet["folds"] == []


def test_the_parameters_of_a_layer_are_known_by_their_names_in_the_code():
    layer = layers.Linear(3, 2, np.random.default_rng(0))
    data = explore(layer, np.ones((4, 3)), name="Linear").data
    frame = next(one for one in data["recordings"][0]["frames"] if one["own"])
    assert [name for name, _ in frame["own"]] == ["self.W", "self.b"]
    assert data["arrays"][frame["own"][0][1]]["shape"] == [3, 2]


def test_what_a_forward_returns_has_the_name_that_its_backward_says():
    data = explore(ops.relu, np.array([1.0, -2.0])).data
    assert "y" in [name for line in data["recordings"][0]["lines"] for name, *_ in line["made"]]

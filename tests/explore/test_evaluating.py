"""Looking at a line changes nothing: what may have side effects is not evaluated a second time."""

import ast
import io
import linecache
import textwrap
import types

from mini_tf.explore.arrays import Store
from mini_tf.explore.evaluating import Evaluator, NotPure, is_plain
from mini_tf.explore.recording import Recorder
from tests.explore.conftest import decoded

import numpy as np
import pytest

# A module full of things that count, print, draw or write when they are merely read; `log` says what has happened.
SETTING = '''
import io
import numpy as np

log, draws, stream = [], np.random.default_rng(0), io.StringIO("1 2 3")


class Counts:
    """An object that notes whatever is done with it."""

    def __init__(self, data):
        self.data = np.asarray(data)

    @property
    def mask(self):
        log.append("mask")
        return draws.random(3) > 0.5

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        log.append(name)
        return 2.0

    def mean(self, x=None, **options):
        log.append("mean")
        return 2.0

    sum = copy = any = dot = reshape = mean

    def __mul__(self, other):
        log.append("*")
        return self.data * other

    __rmul__ = __add__ = __radd__ = __mul__

    def __getitem__(self, key):
        log.append("[]")
        return self.data[key]

    def __bool__(self):
        log.append("bool")
        return True

    def __len__(self):
        log.append("len")
        return 3

    def __float__(self):
        log.append("float")
        return 1.0

    def __gt__(self, other):
        log.append(">")
        return np.array([True, False, True])

    def __array__(self, dtype=None, copy=None):
        log.append("array")
        return np.asarray(self.data, dtype)


class Table(np.ndarray):
    """An array class of one's own."""

    def __array_finalize__(self, other):
        log.append("finalize")


def note(v):
    log.append("note")
    return v + 1


noted, once = np.vectorize(note), np.frompyfunc(note, 1, 1)
'''  # fmt: skip

SIDE_EFFECTS = [
    "x * counts.mask", "x * counts.anything", "2 * counts.mean(x)", "counts.dot(x) * x", "counts.copy() * x",
    "x + counts * x", "counts[0] * x", "(x if counts else -x) + 1", "x * len(counts)", "x * float(counts)",
    "x * (counts > 1)", "np.exp(x) + np.asarray(counts)", "x * np.sum(counts)", "noted(x) * 2", "once(x).astype(float) * 2",
    "np.apply_along_axis(note, 0, x) * 2", "2 * np.fromiter(iter(log + [1, 2, 3][: 3 - len(log)]), float)",
    "x * np.loadtxt(stream)", "2 * np.add(acc, x, acc)", "2 * np.cumsum(x, 0, None, acc)", "x * draws.random(3)",
    "x * np.random.rand(3)", "x + sum(note(v) for v in (x, x))", "x * table", "np.exp(acc, acc) * x",
    "[log.append(1), x][1] * 2",
]  # fmt: skip


def outcome(expression, recorded):
    """All that has happened after y = expression: the result, the log, the random numbers, the stream, the arrays"""
    space = types.ModuleType("setting").__dict__
    exec(SETTING, space)
    source = f"def f(x, acc, counts, table):\n    y = {expression}\n    return y\n"
    space["__file__"] = "<what the learner wrote>"
    name = f"<learner {abs(hash(expression))}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), space)
    np.random.seed(0)  # noqa: NPY002, a learner's line draws from it
    inputs = np.array([1.0, 2.0, 3.0]), np.ones(3), space["Counts"]([1.0, 2.0, 3.0]), np.ones(3).view(space["Table"])
    space["log"].clear()
    recorder = Recorder(Store(), lambda code: code.co_filename == name)
    if recorded:
        with recorder.on():
            y = space["f"](*inputs)
    else:
        y = space["f"](*inputs)
    drawn = space["draws"].random(), np.random.random()  # noqa: NPY002
    seen = np.asarray(y).tolist(), list(space["log"]), drawn, space["stream"].tell(), inputs[0].tolist(), inputs[1].tolist()
    return seen, recorder


@pytest.mark.parametrize("expression", SIDE_EFFECTS)
def test_looking_at_a_line_changes_nothing(expression):
    alone, _ = outcome(expression, recorded=False)
    watched, recorder = outcome(expression, recorded=True)
    assert watched == alone
    assert "table" in expression or any(name == "y" for line in recorder.lines for name, _, _ in line.made)


VARIABLES = {"x": np.array([[1.0, 2.0], [3.0, 4.0]]), "n": 3, "np": np, "shape": (2, 2), "d": {"W": np.ones(2)}}


@pytest.mark.parametrize("expression", [
    "x + 1", "x @ x.T", "-x * n", "x.sum(-1, keepdims=True)", "np.exp(x - x.max(-1, keepdims=True))", "x[:, None, 0]",
    "x.reshape(*shape)", "np.where(x > 2, x, 0)", "(x > 1) & (x < 4)", "d['W'] * 2", "x.mean() if n is None else x / n",
    "np.sum(x, axis=0)", "x.shape[0] ** 0.5", "len(x) + float(n)", "x.astype(np.float32)", "np.einsum('ij,kj->ik', x, x)",
])  # fmt: skip
def test_plain_arithmetic_is_evaluated(expression):
    found = Evaluator(VARIABLES).value(ast.parse(expression, mode="eval").body)
    np.testing.assert_array_equal(found, eval(expression, dict(VARIABLES)))


@pytest.mark.parametrize("expression", [
    "unknown + 1", "np.save", "np.add.at(x, 0, 1)", "x.sort()", "x.sum(0, out=x)", "np.add(x, x, x)", "print(x)",
    "[v for v in x]", "(lambda: x)()", "np.add(x, x, out=x)", "open('f')", "x.tofile('f')", "f'{x}'",
])  # fmt: skip
def test_anything_else_is_not(expression):
    evaluator = Evaluator(VARIABLES | {"print": print, "open": open})
    if expression == "np.save":
        assert evaluator.value(ast.parse(expression, mode="eval").body) is np.save     # asked what it is, not called
        return
    with pytest.raises(NotPure):
        evaluator.value(ast.parse(expression, mode="eval").body)


def test_nothing_is_written_into():
    before = VARIABLES["x"].copy()
    Evaluator(VARIABLES).value(ast.parse("np.clip(x, 0, 1, x)", mode="eval").body)
    np.testing.assert_array_equal(VARIABLES["x"], before)


def test_what_is_plain():
    assert all(map(is_plain, [np.ones(3), np.float32(1), 2, None, (1, np.ones(2)), slice(1, None), [True], np.float32]))
    assert not any(map(is_plain, [np.array([None]), {}, io.StringIO(), (1, object()), np.ones(3).view(np.matrix)]))


@pytest.mark.parametrize(("body", "expected"), [
    ("y = np.add(\n    y,\n    x,\n)", [2.0]), ("a = a + 1; y = a * x", [11.0]), ("np.multiply(x, 3, out=y)", [3.0]),
    ("np.add.at(y, [0, 0], 1.0)", [3.0]), ("v = y[:1]\nv[0] = 7", [7.0]), ("for y in (x, 5 * x):\n    pass", [1.0, 5.0, 5.0]),
    ("with nullcontext(4 * x) as y: pass", [4.0]), ("b = (y := 6 * x) + 1", [6.0]),
    ("try:\n    y = np.linalg.inv(y)\nexcept Exception:\n    y = x * 9", [9.0]),
])  # fmt: skip
def test_every_change_of_an_array_is_seen(tmp_path, body, expected):
    """y begins as x; `expected` are the values of y that the lines after it make, in order (of its one entry)."""
    path = tmp_path / "mine.py"
    body = textwrap.indent(body, "    ")
    path.write_text(
        f"import numpy as np\nfrom contextlib import nullcontext\n\ndef f(x):\n    a = np.array([10.0])\n    y = x + 0\n{body}\n"
        "    return y\n", encoding="utf-8",
    )  # fmt: skip
    space = {}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), space)
    store = Store()
    recorder = Recorder(store, lambda code: code.co_filename == str(path))
    with recorder.on():
        space["f"](np.array([1.0]))
    made = [float(decoded(store.arrays[ref])[0]) for line in recorder.lines for name, ref, _ in line.made if name == "y"]
    assert made[1:-1] == expected                        # between the first assignment and the return


def test_a_type_or_an_object_that_looks_like_an_array_is_none():
    class Tensor:
        shape, dtype = (3,), np.dtype(float)

    store = Store()
    assert store.refer(np.float64) is None
    assert store.refer(Tensor()) is None
    assert store.refer(np.ma.masked_array([1.0])) is None

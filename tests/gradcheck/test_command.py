"""The command mini-tf gradcheck: its exit codes, its options, what it prints."""

import json

from mini_tf.gradcheck import command

import pytest

SQUARE = '''
def square(x):
    """Example: x (2, 3)"""
    return x * x, lambda dy: 2 * dy * x

def broken(x):
    """Example: x (2, 3)"""
    return x / "a", None

def root(x): pass
'''


@pytest.fixture
def files(tmp_path):
    """right.py, wrong.py in the current folder"""
    (tmp_path / "right.py").write_text(SQUARE, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(SQUARE.replace("2 *", "3 *"), encoding="utf-8")


@pytest.mark.parametrize(
    ("targets", "code", "verdicts"),
    [
        (["right.py::square"], 0, ["PASS"]),
        (["wrong.py::square"], 1, ["FAIL"]),
        (["right.py::broken"], 2, ["NOT TESTED"]),
        (["right.py::square", "wrong.py::square", "right.py::broken"], 1, ["PASS", "FAIL", "NOT TESTED"]),
        (["right.py::square", "right.py::broken"], 2, ["PASS", "NOT TESTED"]),
    ],
)
def test_exit_codes(targets, code, verdicts, mini_tf, files):
    found, out, err = mini_tf("gradcheck", *targets, "--json", "r.json")
    assert (found, err) == (code, "")
    with open("r.json", encoding="utf-8") as file:
        assert [report["verdict"] for report in json.load(file)] == verdicts
    assert all(verdict in out for verdict in verdicts)


def test_of_several_there_is_a_table_in_words(mini_tf, files):
    _, out, _ = mini_tf("gradcheck", "right.py::square", "wrong.py::square", "right.py::broken")
    words = [line.split() for line in out.splitlines()[1:4]]
    assert words[0] == ["PASS", "right.py::square", "1", "12"]
    assert words[1] == ["FAIL", "wrong.py::square", "1", "12"]
    assert words[2] == ["NOT", "TESTED", "right.py::broken", "0", "0"]
    assert "1 of 3 right. 24 entries of gradients held against measured slopes" in out
    assert "PASS: " not in out                           # those that pass have a line in the table
    assert "off by 50 %" in out
    assert "NOT TESTED: gradients of right.py::broken" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["right.py"], "right.py: which function or class; there are: square, broken, root"),
        (["right.py:square"], "right.py:square is not there, expected a Python file and a function of it, as in my_ops.py::softmax"),
        (["softmx"], "nothing is named softmx; did you mean softmax? There are: linear;"),
        (["right.py::root"], "root: what is the shape of x? Add --shape x=3,4, with your sizes"),
        (["right.py::square", "--arg", "p=2"], "square has no argument 'p'; it has x"),
        (["right.py::Square", "--methods", "go"], "no class Square with go and"),
        (["softmax", "--arg", "p=2"], "softmax has inputs of its own; --shape, --arg and the like are for your functions"),
        (["right.py::square", "softmax", "--shape", "x=2,3"], "softmax has inputs of its own"),
        (["--shape", "z=2"], "mini_tf has inputs of its own"),
        (["softmax", "--constants", "z"], "softmax has inputs of its own"),
    ],
)
def test_it_refuses_in_one_sentence(arguments, message, mini_tf, files):
    code, out, err = mini_tf("gradcheck", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


OTHERS = """
import numpy as np

Wxh = np.ones((3, 2))

def loss(x):
    h = x @ Wxh
    dWxh = 2 * x.T @ h
    return (h**2).sum(), dWxh

class Encoding:
    def __init__(self):
        self.W, self.pe, self.found = np.random.randn(3, 2), np.random.randn(3), {}

    def go(self, x):
        self.x = x + self.pe
        return self.x @ self.W

    def come_back(self, dy):
        self.found["of W"] = self.x.T @ dy
        return dy @ self.W.T
"""


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Encoding", ["--methods", "go,come_back", "--constants", "pe", "--grads", "W=found.of W"]),
        ("loss", ["--params", "Wxh", "--constants", "x"]),
    ],
)
def test_options_of_gradcheck(name, options, mini_tf, tmp_path):
    (tmp_path / "others.py").write_text(OTHERS, encoding="utf-8")
    code, out, err = mini_tf("gradcheck", f"others.py::{name}", "--shape", "x=4,3", *options)
    assert (code, err) == (0, ""), out


def test_what_its_options_tell_gradcheck():
    assert command.checker_options("go,come_back", constants=["pe"], params=["Wxh"], grads=["W=a.b"]) == {
        "constants": ["pe"], "params": ["Wxh"], "grads": {"W": "a.b"}, "methods": ["go", "come_back"],
    }  # fmt: skip
    assert command.checker_options(None, params=["W=layers.0.W"], grads=["W", "x"]) == {"params": {"W": "layers.0.W"}, "grads": ["W", "x"]}
    assert command.checker_options(None, constants=[], params=[], grads=[]) == {}


EXERCISE = '''"""Exercise 1: a product"""

def product(x, w):
    """Example: x (3,), w (3,)"""
    def backward(dy):
        dw = ...
        twice = ...
        dx = ...
        return dx, dw

    return x * w, backward
'''


@pytest.mark.parametrize(
    ("filled", "code", "said"),
    [
        ({}, 2, ["dx is still `...`: a blank to fill", "blanks that are left, from the top down: dw, twice, dx"]),
        ({"dw": "dy * x"}, 2, ["dx is still `...`: a blank to fill", "PASS       dw"]),      # judged beside other blanks
        ({"dw": "-2 * dy * x"}, 1, ["dx is still `...`: a blank to fill", "FAIL       dw", "(--solution shows it)"]),
        ({"dx": "twice * 0.5"}, 2, ["`twice` is still `...`, a blank to fill first: it is used at ex.py:8"]),
    ],
)
def test_an_exercise_names_its_blanks_and_gives_hints_only(filled, code, said, mini_tf, tmp_path):
    text = EXERCISE
    for name, value in filled.items():
        text = text.replace(f"{name} = ...", f"{name} = {value}")
    (tmp_path / "ex.py").write_text(text, encoding="utf-8")
    found, out, err = mini_tf("gradcheck", "ex.py::product", "--json", "r.json")
    assert (found, err) == (code, "")
    assert all(words in out for words in said)
    assert "TypeError" not in out
    assert "right  " not in out
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))[0]
    assert not any(change["after"] for change in report["changes"])
    assert ("right  " in mini_tf("gradcheck", "ex.py::product", "--solution")[1]) == (code == 1)

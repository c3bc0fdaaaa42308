"""The checker in thirty lines: right, wrong, and what it does not see; and README, which quotes it, tells the truth."""

import re
import subprocess
import sys
from pathlib import Path

from mini_tf import ops
from mini_tf.gradcheck import first_checker, gradcheck, judge

import numpy as np
import pytest

FILE = Path(first_checker.__file__)
TEXT = FILE.read_text(encoding="utf-8")
README = (FILE.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
WRONG_SOFTMAX = '''
import numpy as np


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)

    def backward(dy):
        return y * (dy - dy.sum(-1, keepdims=True))

    return y, backward
'''


class Engine:
    """It keeps no contract of the checker's."""

    def __init__(self, W):
        self.weight = W

    def run(self, x):
        self.seen, self.y = x, np.tanh(x @ self.weight)
        return self.y

    def reverse(self, dy):
        da = dy * (1 - self.y**2)
        self.slope_of_weight, self.slope_of_input = self.seen.T @ da, da @ self.weight.T


def twice_softmax(z):
    y, backward = ops.softmax(z)
    return y, lambda dy: 2 * backward(dy)


def test_it_is_quoted_as_it_is():
    assert BLOCKS[0] == TEXT


def test_it_is_short_and_needs_numpy_alone():
    assert len(TEXT.splitlines()) <= 33
    assert set(re.findall(r"^(?:import|from) (\w+)", TEXT, re.MULTILINE)) == {"collections", "typing", "numpy"}


def test_it_runs_by_itself():
    done = subprocess.run([sys.executable, "-X", "utf8", FILE], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "dx = 2·x·dy: True\ndx = 1·x·dy: False\n"


def test_what_a_random_dy_mends(rng):
    z = rng.standard_normal((2, 5))
    assert first_checker.is_right(twice_softmax, z)      # with dy = 1 the right gradient is 0, and so is twice that
    assert judge(twice_softmax, z).verdict == "FAIL"


def relu_in_place(x):
    def backward(dy):
        dy *= x > 0.5
        return dy

    return np.maximum(x - 0.5, 0), backward


@pytest.mark.parametrize(("f", "verdict", "words"), [
    (lambda x: (np.tanh(x), lambda dy: 1.00000001 * dy * (1 - np.tanh(x) ** 2)), "FAIL", "wrong in"),
    (lambda p: (-np.log(p + 1e-7), lambda dy: -1 / p * dy), "PASS", "agrees up to the 1e-07"),
    (lambda x: (x * np.float64(2), lambda dy: dy * np.float64(2)), "FAIL", "float64 for float32"),
    (relu_in_place, "FAIL", "wrote into the dy"),
])  # fmt: skip
def test_the_small_examples_of_the_page(f, verdict, words, rng):
    x = rng.uniform(0.2, 0.9, (3, 4))
    report = judge(f, x.astype(np.float32) if "float32" in words else x)
    assert report.verdict == verdict
    assert words in report.explain()


def test_the_recipe_for_anything_else_runs(rng, capsys):
    x, W = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    exec(BLOCKS[1], {"Engine": Engine, "gradcheck": gradcheck, "x": x, "W": W})
    assert capsys.readouterr().out.startswith("PASS: gradients of one_layer")


def test_the_command_prints_the_report_that_is_shown(tmp_path):
    shown = re.search(r"```\n\$ mini-tf (.*?)\n(.*?)```", README, re.DOTALL)
    (tmp_path / "my_ops.py").write_text(WRONG_SOFTMAX.lstrip(), encoding="utf-8")
    command = [sys.executable, "-X", "utf8", "-m", "mini_tf", *shown[1].split()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path)
    assert done.stdout == shown[2], done.stderr
    assert done.returncode == 1


def test_the_page_is_short():
    assert len(README.split()) <= 1800

"""A learner's own code in a file: which file, which function or class of it, and what is said when one is wrong."""

import sys
from textwrap import dedent

from mini_tf.errors import UserError
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.learner import load, running

import pytest

SQUARE = '''
def square(x):
    """y = x²

    Example: x (2, 3)
    """
    def backward(dy):
        return 2 * dy * x

    return x * x, backward
'''


@pytest.fixture
def write(tmp_path):
    """write(text) → the path of my_ops.py with that text."""

    def write(text, name="my_ops.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
        return path

    return write


def check(target, *args, **options):
    """The verdict alone, on "file.py::function" """
    f, inputs, options = load(target, *args, **options)
    with running(target):
        return judge(f, *inputs, **options)


def others():
    """The modules that are loaded, but mini_tf's own"""
    return {name for name in sys.modules if name.partition(".")[0] != "mini_tf"}


def test_a_change_is_seen_at_once_and_nothing_stays_behind(write, tmp_path):
    before, path = others(), sys.path[:]
    for factor in "2325":                                # same length, same second
        assert check(f"{write(SQUARE.replace('2 *', factor + ' *'))}::square").ok == (factor == "2")
    assert others() == before
    assert sys.path == path
    assert [p.name for p in tmp_path.iterdir()] == ["my_ops.py"]


PACKAGE = {
    "net/__init__.py": "from .layers import Hidden",
    "net/activations.py": "import numpy as np\nSLOPE = {}\ndef relu(x): return np.maximum(x, 0)",
    "settings.py": "SIGN = 1",                           # at the project's root
    "net/layers.py": """
        from .activations import relu
        from net.activations import relu as same
        from settings import SIGN
        from mine.numbers import ONE

        class Hidden:
            def forward(self, x):
                assert relu is same
                self.x = x
                return relu(x)

            def backward(self, dy):
                from .activations import SLOPE
                return SLOPE * SIGN * ONE * dy * (self.x > 0)
    """,
}


def test_a_file_of_a_package_is_imported_as_part_of_it(tmp_path, write, monkeypatch):
    write("ONE = 1", "mine/numbers.py")                  # in the current folder
    monkeypatch.chdir(tmp_path)
    for slope in (1, 2, 1):                              # two packages of one name
        for name, text in PACKAGE.items():
            write(text.replace("{}", str(slope)), f"{slope}/{name}")
        assert check(f"{slope}/net/layers.py::Hidden", ["x=3,4"]).ok == (slope == 1)
    assert not [name for name in sys.modules if name.partition(".")[0] in ("net", "settings", "mine")]


def test_dataclasses_and_imported_ops_work_and_one_function_alone_needs_no_name(write):
    text = "from dataclasses import dataclass\nfrom mini_tf.ops import softmax\n@dataclass\nclass Sizes:\n    n: 'int'"
    assert check(f"{write(text)}::softmax", ["z=2,3"]).ok
    assert check(str(write(SQUARE))).ok


STYLES = '''
    import numpy as np

    def affine_forward(x, w, b, stride=1):
        """Example: x (2, 3), w (3, 4), b (4,)"""
        return stride * (x @ w + b), (x, w, stride)

    def affine_backward(dout, cache):
        x, w, stride = cache
        dout = stride * dout
        return dout @ w.T, x.T @ dout, dout.sum(0)

    def forward_double(x):
        return 2 * x, None

    def backward_double(dout, cache):
        return 2 * dout

    def cross_entropy(z, y, b):
        p = np.exp(z + b) / np.exp(z + b).sum(-1, keepdims=True)
        return -(y * np.log(p)).sum(), lambda dloss: (dloss * (p - y), dloss * (p - y).sum(0))

    class Linear:
        def __init__(self, n_in, n_out=4, W=None):
            self.W = np.random.randn(n_in, n_out) if W is None else W

        def forward(self, x):
            self.x = x
            return x @ self.W

        def backward(self, dout):
            self.dW = self.x.T @ dout
            return dout @ self.W.T

        def loss(self, x, y):
            difference = x @ self.W - y
            return (difference**2).sum(), {"W": 2 * x.T @ difference}

    class Network:
        def loss(self, x):
            return (x**2).sum(), 2 * x
'''


@pytest.mark.parametrize(
    ("name", "shapes", "args", "tensors"),
    [
        ("affine", [], [], "x w b"),
        ("affine_forward", [], ["stride=2"], "x w b"),
        ("double", ["x=3"], [], "x"),
        ("cross_entropy", ["z=4,5", "y=onehot(4,5)", "b=5"], [], "z b"),           # y gets no gradient
        ("Linear", ["x=2,3"], ["n_in=3"], "x W"),
        ("Linear", ["x=2,3"], ["n_in=3", "W=randn(3,2)"], "x W"),
        ("Linear.loss", ["x=2,3", "y=onehot(2,4)"], ["n_in=3"], "W"),
    ],
)
def test_pairs_classes_and_methods(name, shapes, args, tensors, write):
    report = check(f"{write(STYLES)}::{name}", shapes, args=args)
    assert report.verdict == "PASS", report
    assert [t.name for t in report.tensors] == tensors.split()


THERE = "there are: affine_forward, forward_double, cross_entropy, Linear"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none.py::square", "none.py is not there"),
        (".::square", "is not a .py file"),
        ("my_ops.py", f"my_ops.py: which function or class; {THERE}"),
        ("my_ops.py::afine", "it has no function afine, and no class afine with forward and backward (another"),
        ("my_ops.py::Network", f"no class Network with forward and backward (another method is Network.loss; other names are "
                               f"--methods go,come_back); {THERE}"),
        ("my_ops.py::Linear.cost", "no class Linear.cost with"),
        ("my_ops.py::Linear", "Linear: its constructor needs n_in: add --arg n_in=3"),
    ],
)
def test_targets_that_are_not_there(target, message, write, monkeypatch, tmp_path):
    write(STYLES)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        load(target)
    assert message in str(error.value)


BROKEN = {
    "an error in a file beside it": ("import helper", r"division by zero \(at .*helper\.py:1\)"),
    "a syntax error": ("def square(x:\n    pass", r"\(my_ops.py, line 1\)"),
    "a name that is not there": ("import numpy as np\n\nA = nump.ones(3)", r"NameError: name 'nump' .*\(at .*my_ops.py:3\)"),
    "a module that is not there": ("import none_such", r"No module named 'none_such' \(at .*my_ops.py:1\)"),
    "an end of its own": ("import sys\nsys.exit(3)", r"SystemExit: 3 \(at .*my_ops.py:2\)"),
    "no functions": ("square = 3", "it has no function square, .* it defines none"),
    "a null byte": ("x = 0\0", "null byte"),
    "not UTF-8": (b"x = '\xe9'", "utf-8"),
    "a constructor": ("class square:\n def __init__(self): 1 / 0\n def __call__(self, x): pass", r"ZeroDivision.*my_ops.py:2"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_errors_of_the_file_say_where_and_what(case, write):
    text, message = BROKEN[case]
    write("1 / 0", "helper.py")
    before = others()
    with pytest.raises(UserError, match=message):
        check(f"{write(text)}::square")
    assert others() == before

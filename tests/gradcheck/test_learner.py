"""A learner's own op in a file: which file, which function, which shapes, and what is said when one is wrong."""

import re
import sys
from textwrap import dedent

from mini_tf.errors import UserError
from mini_tf.gradcheck.learner import check, load

import numpy as np
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
        path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
        return path

    return write


@pytest.fixture
def inputs(write):
    """inputs("f(x, mask=None)", "its docstring", "x=3,4") → the arrays that load chooses."""

    def inputs(signature, doc="", *shapes):
        path = write(f'def {signature}:\n    """{doc}"""\n')
        return load(f"{path}::f", shapes)[1]

    return inputs


def shapes(arrays):
    return [np.shape(a) for a in arrays]


def test_a_right_backward_passes_and_a_wrong_one_fails(write):
    assert check(f"{write(SQUARE)}::square")
    report = check(f"{write(SQUARE.replace('2 * dy', '3 * dy'))}::square")
    assert not report
    assert "square" in report.explain()
    assert "dx" in report.explain()


def test_a_change_is_seen_at_once_and_nothing_stays_behind(write, tmp_path):
    modules, path = set(sys.modules), sys.path[:]
    for factor in "2325":                                # same length, same second
        assert bool(check(f"{write(SQUARE.replace('2 *', factor + ' *'))}::square")) == (factor == "2")
    assert set(sys.modules) == modules
    assert sys.path == path
    assert [p.name for p in tmp_path.iterdir()] == ["my_ops.py"]


def test_modules_beside_the_file_can_be_imported_late_too_and_each_folder_has_its_own(tmp_path, write):
    for name, two in (("a", 2), ("b", 3)):
        (tmp_path / name).mkdir()
        write(f"TWO = {two}", f"{name}/helper.py")
        write(f"late = {two}", f"{name}/later.py")
        late = SQUARE.replace("return 2 *", "from later import late\n        assert late == TWO\n        return TWO *")
        write("from helper import TWO\n" + late, f"{name}/my_ops.py")
    assert check(f"{tmp_path}/a/my_ops.py::square")
    assert not check(f"{tmp_path}/b/my_ops.py::square")
    assert "helper" not in sys.modules
    assert "later" not in sys.modules


EXITS = """
import sys

def forward(x):
    sys.exit(3)

def in_backward(x):
    def backward(dy):
        sys.exit("no more")

    return x * x, backward

def helped_forward(x):
    return x * x, x

def helped_backward(dout, cache):
    exit()

class Machine:
    def forward(self, x):
        return x * x

    def backward(self, dout):
        sys.exit(0)

def sometimes(x):
    if x[0, 0] > 0.2:
        sys.exit(1)
    return x * x, lambda dy: dy * x
"""


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("forward", r"the forward raised SystemExit: 3 \(at .*my_ops.py:5\)"),
        ("in_backward", r"the backward raised SystemExit: no more \(at .*my_ops.py:9\)"),
        ("helped_forward", r"the backward raised SystemExit: None \(at .*my_ops.py:17\)"),
        ("Machine", r"the backward raised SystemExit: 0 \(at .*my_ops.py:24\)"),
        ("sometimes", r"FAIL +dx \(2, 3\): .* [1-9]\d* wrong"),
    ],
)
def test_sys_exit_is_an_error_of_the_function_and_does_not_end_the_checker(name, finding, write):
    report = check(f"{write(EXITS)}::{name}", ["x=2,3"])
    assert not report
    assert re.search(finding, report.explain()), report.explain()


def test_sys_exit_may_refuse_shapes(write):
    """Shapes are looked for by trying."""
    text = """
    import sys

    def product(x, w):
        if x.ndim != 2 or w.ndim != 1 or x.shape[1] != len(w):
            sys.exit(1)
        return x @ w, lambda dy: (dy[:, None] * w, x.T @ dy)
    """
    with pytest.raises(UserError, match=r"--shape x=2,3 --shape w=3 \(with these it runs\)"):
        load(f"{write(text)}::product")


def test_dataclasses_and_imported_functions_work(write):
    path = write("""
        from __future__ import annotations
        from dataclasses import dataclass
        from mini_tf.ops import softmax

        @dataclass
        class Sizes:
            n: int
    """)
    assert check(f"{path}::softmax")


BROKEN = {
    "a syntax error": ("def square(x:\n    pass", "my_ops.py, line 1: "),
    "a name that is not there": ("import numpy as np\n\nA = nump.ones(3)", "my_ops.py, line 3: NameError: name 'nump'"),
    "a module that is not there": ("import none_such", "line 1: ModuleNotFoundError: No module named 'none_such'"),
    "an end of its own": ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
    "another function": ("def cube(x): pass\ndef _root(x): pass\nfrom math import exp", "there are: cube, _root"),
    "no functions": ("square = 3", "square is neither a function nor a class with forward and backward, or with a loss; it defines none"),
    "no arguments": ("def square(): pass", "takes no arguments"),
    "an argument by name only": (SQUARE.replace("(x)", "(x, *, eps)"), "square takes eps by name only"),
    "a null byte": ("x = 0\0", "null byte"),
    "not UTF-8": (b"x = '\xe9'", "utf-8"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_errors_of_the_file_say_where_and_what(case, write):
    text, message = BROKEN[case]
    before = set(sys.modules)
    with pytest.raises(UserError) as error:
        check(f"{write(text)}::square")
    assert message in str(error.value)
    assert set(sys.modules) == before


FINDINGS = {
    "no backward": (SQUARE.replace("return x * x, backward", "return x * x"), "returned one ndarray, expected y, backward"),
    "no y": (SQUARE.replace("return x * x, backward", "return ..., backward"), "y is still `...`: a blank to fill"),
    "a list for y": (SQUARE.replace("return x * x, backward", "return [[1], 2], backward"), "y is a list, expected one"),
    "integers for y": (SQUARE.replace("return x * x,", "return x.astype(int),"), "y has dtype int64, expected a floating"),
    "an error in the forward": (SQUARE.replace("x * x,", "x @ x,"), "the forward raised ValueError: matmul"),
    "an error in the backward": (SQUARE.replace("dy * x", "dy @ x"), "the backward raised ValueError: matmul"),
    "the line of an error": (SQUARE.replace("dy * x", "dy @ x"), "my_ops.py:8)"),
    "a blank that is used": (
        SQUARE.replace("return 2 * dy * x", "two = slope = ...\n        return slope * dy"),
        "my_ops.py:9); slope is still `...`, a blank to fill first",
    ),
    "a blank that is returned": (SQUARE.replace("return 2 * dy * x", "return ..."), "dx is still `...`: a blank to fill"),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_what_goes_wrong_while_it_runs_is_a_finding(case, write):
    text, message = FINDINGS[case]
    report = check(f"{write(text)}::square")
    assert not report
    assert message in report.explain()


def test_an_error_in_a_file_beside_it_names_that_file(write):
    write("1 / 0", "helper.py")
    with pytest.raises(UserError, match=r"helper\.py, line 1: ZeroDivisionError: division by zero"):
        load(f"{write('import helper')}::square")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none.py::square", "none.py is not there"),
        (".::square", "is not a .py file"),
        ("my_ops.py", "which function or class; there are: square, root"),
        ("my_ops.py::", "which function or class; there are: square, root"),
        ("my_ops.py::squire", "has no function or class 'squire' with a backward; there are: square, root"),
    ],
)
def test_targets_that_are_not_there(target, message, write, monkeypatch, tmp_path):
    write(SQUARE + "\ndef root(x): pass\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        load(target)
    assert message in str(error.value)


def test_shapes_from_options(inputs):
    x, ids, mask = inputs("f(x, ids, mask)", "Example: x (9,)", "x=3,4", "ids=2,3 int<7", "mask = (3, 3) bool")
    assert shapes((x, ids, mask)) == [(3, 4), (2, 3), (3, 3)]
    assert x.dtype == np.float64
    assert ids.dtype.kind == "i"
    assert ids.min() >= 0
    assert ids.max() < 7
    assert ids[-1, -1] == ids[0, 0]
    assert mask.dtype == bool
    assert mask[0].any()
    assert not mask.all()


def test_shapes_from_the_example_in_the_docstring(inputs):
    doc = """y = γ·x̂

    x (…, n), gamma (n,)  →  y (…, n)
    Example: x (2, 3), gamma (3,),
             ids (2, 5) int < 7, mask (3, 3) bool

    gamma (5,) is no more part of it
    """
    x, gamma, ids, mask = inputs("f(x, gamma, ids, mask, eps=1e-5)", doc)
    assert shapes((x, gamma, ids, mask)) == [(2, 3), (3,), (2, 5), (3, 3)]
    assert ids.dtype.kind == "i"
    assert mask.dtype == bool


def test_shapes_from_letters(inputs):
    assert shapes(inputs("f(x, W, b=None)", "x (B, T, n), W (n, m) → y (B, T, m)")) == [(2, 3, 4), (4, 5)]
    assert shapes(inputs("f(x, W, b=None)", "x (…, in), W (in, out), b (out,)")) == [(2, 3, 4), (4, 5), (5,)]
    table, ids = inputs("f(table, ids)", "x (see below) = f(ids), table (c, n), ids (…) int")
    assert shapes((table, ids)) == [(2, 3), (4, 5)]
    assert ids.max() < 2
    ids, mask = inputs("f(ids, mask)", "ids (T,) int < T, mask (T, T) bool")
    assert shapes((ids, mask)) == [(2,), (2, 2)]


NET = '''
import numpy as np

def net_forward(x, params):
    """{}"""
    h = np.tanh(x @ params["W1"] + params["b1"])
    return h @ params["W2"], (x, h)

def net_backward(dout, cache, params):
    x, h = cache
    dz = dout @ params["W2"].T * (1 - h**2)
    return dz @ params["W1"].T, {{"W1": x.T @ dz, "b1": dz.sum(0), "W2": h.T @ dout}}
'''
IN_A_DICT = "x", "params.W1", "params.b1", "params.W2"


def test_shapes_of_arrays_in_a_dict_from_options(write):
    path = write(NET.format(""))
    shapes = ["x=5,4", "params.W1=4,3", "params.b1=3", "params.W2=3,2"]
    report = check(f"{path}::net_forward", shapes)
    assert report
    assert [t.name for t in report.tensors] == [*IN_A_DICT]
    with pytest.raises(UserError, match=r"--shape x=2,3 --shape params.W1=3,4 .*params.W2=4,3 \(with these it runs\)"):
        check(f"{path}::net_forward", [])


def test_shapes_of_arrays_in_a_dict_from_the_example(write):
    path = write(NET.format("Example: x (5, 4), params.W1 (4, 3), params.b1 (3,), params.W2 (3, 2)"))
    report = check(f"{path}::net_forward", [])
    assert report
    assert [t.name for t in report.tensors] == [*IN_A_DICT]


def test_numbers_are_places_in_a_list(inputs):
    x, layers = inputs("f(x, layers)", "", "x=2,3", "layers.0.W=3,4", "layers.0.b=4", "layers.1.W=4,2")
    assert x.shape == (2, 3)
    assert [{name: array.shape for name, array in layer.items()} for layer in layers] == [
        {"W": (3, 4), "b": (4,)}, {"W": (4, 2)},
    ]  # fmt: skip


def test_a_default_before_a_given_argument_is_passed_on(inputs):
    x, mask, scale = inputs("f(x, mask=None, scale=1.0)", "", "x=2", "scale=3")
    assert mask is None
    assert scale.shape == (3,)
    assert len(inputs("f(x, mask=None, scale=1.0)", "", "x=2")) == 1


def test_the_seed_draws_the_numbers(write):
    path = write(SQUARE)
    first, again, other = (load(f"{path}::square", seed=seed)[1][0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_without_shapes_it_says_what_to_write_and_that_works(write):
    path = write("def f(z, ids, mask, eps=1): pass")
    with pytest.raises(UserError) as error:
        load(f"{path}::f")
    message = str(error.value)
    options = '--shape z=2,3 --shape "ids=2,3 int<7" --shape "mask=2,3 bool"'
    assert f"what is the shape of z, ids, mask? Give those of all arguments: {options} (" in message
    example = message[message.index("Example: "):]
    assert example == "Example: z (2, 3), ids (2, 3) int<7, mask (2, 3) bool"
    assert shapes(load(f"{path}::f", ["z=2,3", "ids=2,3 int<7", "mask=2,3 bool"])[1]) == [(2, 3)] * 3
    path = write(f'def f(z, ids, mask, eps=1):\n    "{example}"')
    assert shapes(load(f"{path}::f")[1]) == [(2, 3)] * 3


def test_an_incomplete_docstring_or_option_names_what_is_missing(inputs):
    with pytest.raises(UserError, match=r"what is the shape of beta\? .*--shape x=4,5 --shape beta=4,5 "):
        inputs("f(x, beta)", "Example: x (4, 5)")
    with pytest.raises(UserError, match=r"what is the shape of x\? "):
        inputs("f(x, beta)", "x (B, n), beta (n,)", "beta=5")        # letters and sizes are not mixed
    with pytest.raises(UserError, match="what stands after Example: was not understood"):
        inputs("f(x)", "Example: x 3, 4")


def test_an_option_overrides_one_argument_of_the_example(inputs):
    x, beta = inputs("f(x, beta)", "Example: x (4, 5), beta (5,)", "x=2,5")
    assert shapes((x, beta)) == [(2, 5), (5,)]


def test_scalars_and_positive_numbers(inputs):
    p, c = inputs("f(p, c)", "Example: p (3, 4) positive, c ()")
    assert shapes((p, c)) == [(3, 4), ()]
    assert p.min() > 0
    (p,) = inputs("f(p)", "", "p=3,4 positive")
    assert p.min() > 0
    assert shapes(inputs("f(x, s)", "", "x=3", "s=")) == [(3,), ()]      # as the checker itself proposes


def test_drawn_ids_are_not_taken_for_a_mask(write):
    path = write("def f(ids): pass")
    for seed in range(30):
        (ids,) = load(f"{path}::f", ["ids=5 int<3"], seed=seed)[1]
        assert set(ids) - {0, 1}
        assert ids[-1] == ids[0]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("x=3,a", "is not a shape, expected x=3,4 or"),
        ("x=3,,4", "is not a shape"),
        ("x=-1", "is not a shape"),
        ("x", "is not a shape"),
        ("3,4", "is not a shape"),
        ("x=3 float", "is not a shape"),
        ("z=3", "f has no argument 'z'; it has x"),
        ("x=3 int", "x is int, below which number? Write int<7"),
        ("x=3 int<0", "below which number"),
        ("x=3 int<99999999999999999999", "at most 100,000"),
        ("x=0,3", "x has the shape (0, 3), expected sizes from 1"),
        ("x=1000,1000", "at most 100,000 entries"),
    ],
)
def test_bad_shapes_are_refused(shape, message, inputs):
    with pytest.raises(UserError) as error:
        inputs("f(x)", "", shape)
    assert message in str(error.value)


def test_ints_without_a_bound_in_a_docstring_are_refused(inputs):
    with pytest.raises(UserError, match="ids is int, below which number"):
        inputs("f(ids)", "ids (B, T) int")


def test_the_command_takes_files_and_ends_with_0_1_or_2(mini_tf, write):
    right, wrong = write(SQUARE), write(SQUARE.replace("2 *", "3 *"), "wrong.py")
    assert mini_tf("gradcheck", f"{right}::square")[0] == 0
    code, out, err = mini_tf("gradcheck", f"{right}::square", f"{wrong}::square")
    assert (code, err) == (1, "")
    assert "PASS" in out
    assert "FAIL" in out
    code, out, _ = mini_tf("gradcheck", f"{right}::square", "--shape", "x=5,1")
    assert code == 0
    assert "(5, 1)" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["my_ops.py"], "my_ops.py: which function or class; there are: square, root"),
        (["my_ops.py::square", "--arg", "p"], "--arg 'p' is not an argument, expected a name and a value, as in stride=2"),
        (["my_ops.py::square", "--arg", "p=2"], "--arg p: square has no argument 'p'; it has x"),
        (["softmax", "--arg", "p=2"], "--arg with softmax: it is for your functions"),
        (["my_ops.py::square", "--shape", "x=a"], "--shape 'x=a' is not a shape"),
        (["my_ops.py::square", "softmax", "--shape", "x=2"], "--shape with softmax: it is for your functions, as in"),
        (["softmax", "--shape", "z=2"], "--shape with softmax: it is for your functions"),
        (["--shape", "z=2"], "--shape with no function: it is for your functions"),
        (["none.py::square"], "none.py is not there"),
    ],
)
def test_the_command_refuses_in_one_sentence(arguments, message, mini_tf, write):
    write(SQUARE + "\ndef root(x): pass\n")
    code, out, err = mini_tf("gradcheck", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


STYLES = '''
    import numpy as np

    def affine_forward(x, w, b, stride=1):
        """- x: input of shape (N, D)
        - w: weights, an array of shape (D, M)
        - b: (M,)
        """
        return stride * (x @ w + b), (x, w, stride)

    def affine_backward(dout, cache):
        x, w, stride = cache
        dout = stride * dout
        return dout @ w.T, x.T @ dout, dout.sum(0)

    class Linear:
        def __init__(self, n_in, n_out=4):
            self.W = np.random.randn(n_in, n_out)

        def forward(self, x):
            self.x = x
            return x @ self.W

        def backward(self, dout):
            self.dW = self.x.T @ dout
            return dout @ self.W.T

    def cosine(a, b):
        na, nb = np.linalg.norm(a), np.linalg.norm(b)
        c = a @ b / (na * nb)
        return c, lambda d: (d * (b / (na * nb) - c * a / na**2), d * (a / (na * nb) - c * b / nb**2))
'''


def test_pairs_and_classes_from_a_file(mini_tf, write):
    path = write(STYLES)
    for arguments in (["affine"], ["affine_forward", "--arg", "stride=2"], ["Linear", "--arg", "n_in=3", "--shape", "x=2,3"]):
        code, out, err = mini_tf("gradcheck", f"{path}::{arguments[0]}", *arguments[1:])
        assert (code, err) == (0, "")
        assert out.startswith("PASS")
    code, out, err = mini_tf("gradcheck", path)
    assert code == 2
    assert "which function or class; there are: affine_forward, Linear, cosine" in err
    alone = write(STYLES.partition("    class Linear")[0], "alone.py")
    assert mini_tf("gradcheck", alone)[0] == 0


def test_classes_whose_methods_have_other_names(mini_tf, write):
    path = write("""
        import numpy as np

        class Schicht:
            def __init__(self):
                self.gewichte = np.random.normal(size=(3, 2))

            def vorwaerts(self, x):
                self.x = x
                return x @ self.gewichte

            def rueckwaerts(self, fehler):
                self.ableitung_gewichte = self.x.T @ fehler
                return fehler @ self.gewichte.T

        class Square:
            def value(self, predicted, actual):
                return ((predicted - actual) ** 2).sum()

            def grad(self, predicted, actual):
                return predicted - actual
    """)
    code, out, _ = mini_tf("gradcheck", f"{path}::Schicht", "--shape", "x=4,3")
    assert (code, "PASS       dgewichte" in out) == (0, True)
    code, out, _ = mini_tf("gradcheck", f"{path}::Square", "--shape", "predicted=4,3", "--shape", "actual=4,3")
    assert (code, "FAIL       dpredicted" in out) == (1, True)


def test_proposed_shapes_fit_each_other_and_work_as_they_are(mini_tf, write):
    path = write(STYLES.replace('"""- x', '"""x').replace("shape", "size"))
    for name in ("affine", "cosine", "Linear"):
        code, _, err = mini_tf("gradcheck", f"{path}::{name}")
        assert code == 2
        options = re.findall(r'--(?:shape|arg) (?:"[^"]+"|\S+)', err.partition(" (word ids")[0])
        words = [part.strip('"') for option in options for part in option.split(" ", 1)]
        code, out, err = mini_tf("gradcheck", f"{path}::{name}", *words)
        assert (code, err) == (0, "")
        assert out.startswith("PASS")


def test_shapes_in_words(inputs):
    doc = """x: array of shape (batch, features)
    w - weights of shape (features, hidden)
    b: (hidden,)  and a note (see below), p (optional)
    """
    assert shapes(inputs("f(x, w, b, p=None)", doc)) == [(2, 3), (3, 4), (4,)]


def test_an_exercise_gets_hints_and_the_solution_when_asked(mini_tf, tmp_path):
    solution = tmp_path / "solutions"
    solution.mkdir()
    text = '"""Exercise 1: a square"""' + dedent(SQUARE).replace("return x * x, backward", "y = x * x\n    return y, backward")
    (solution / "ex.py").write_text(text)
    (tmp_path / "ex.py").write_text(text.replace("2 * dy * x", "-2 * dy * x"))
    arguments = "gradcheck", f"{tmp_path / 'ex.py'}::square", "--shape", "x=3"
    code, out, _ = mini_tf(*arguments)
    assert code == 1
    assert re.search(r"One change at \S*ex\.py:\d+ makes it right: .*\(--solution shows it\)", out)
    assert "right  " not in out
    assert "2 * dy" not in out.replace("-2 * dy", "")
    (tmp_path / "copied.py").write_text((tmp_path / "ex.py").read_text())
    code, out, _ = mini_tf("gradcheck", f"{tmp_path / 'copied.py'}::square", "--shape", "x=3", "--json", tmp_path / "r.json")
    assert "right  " not in out                          # without its solution beside it, too
    assert "-(-2 * dy * x)" not in (tmp_path / "r.json").read_text()
    code, out, _ = mini_tf(*arguments, "--solution")
    assert code == 1
    assert "    right  return" in out

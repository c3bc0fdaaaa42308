"""What a forward and a backward promise besides right numbers: a broken promise is a FAIL, in one sentence."""

from mini_tf import ops
from mini_tf.gradcheck import gradcheck, judge
from mini_tf.layers import Linear, Parameter
from tests.strict import strict

import numpy as np
import pytest

from .contracts import edited, normal

X, HERE = normal((2, 3)), "tests/gradcheck/test_promises.py"


def doubled(x):
    kept = {"factor": 2.0}

    def backward(dy):
        dx = kept["factor"] * dy
        return dx  # noqa: RET504

    return 2 * x, backward


BROKEN = {
    "backward wrote into x; another op may hold the same array": ("return dx", "x[...] = 0; return dx"),
    "backward wrote into the dy that it was given": ("dx = kept", "dy *= 2; dy /= 2; dy += 1; dy -= 1; dy[0] = 0; dx = kept"),
    "backward gave another answer when it was called a second time": ("return dx", "kept['factor'] = 1.0; return dx"),
    "backward raised when it was called a second time: KeyError": ("return dx", "kept.clear(); return dx"),
    "dx has shape (3,), expected (2, 3) as x has": ("return dx", "return dx.sum(0)"),
    "dx has shape (3, 2), expected (2, 3) as x has: it is transposed": ("return dx", "return dx.T"),
    "dx has shape (), expected (2, 3) as x has": ("return dx", "return 2.0"),
    "dx has dtype float32, expected float64 as x has; a dtype named in the code": ("return dx", "return dx.astype('float32')"),
    "dx has dtype int64, expected float64": ("return dx", "return np.array([[1, 2, 3], [4, 5, 6]])"),
    "the forward wrote into x; it should only read what it is given": ("return 2 * x, backward", "x += 1; return 2 * x, backward"),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_broken_promises(sentence):
    given = X.copy()
    report = judge(edited(doubled, *BROKEN[sentence]), given)
    assert report.verdict == "FAIL"
    assert report.exit_code == 1
    assert sentence in report.explain()
    assert np.array_equal(given, X)                      # the caller's arrays stay as they are
    assert judge(doubled, given).verdict == "PASS"


def in_place(x):
    x[x < 0] = 0
    return x.copy(), lambda dy: dy * (x > 0)


def test_the_line_that_writes_is_named():
    line = in_place.__code__.co_firstlineno + 1
    report = gradcheck(in_place, X)                      # written once, x stays as it is when it is written again
    assert report.findings == [f"the forward wrote into x; it should only read what it is given (at {HERE}:{line})"]
    wrong = edited(doubled, "dx = kept", "dy *= 2; dx = kept")
    report = gradcheck(wrong, X)
    finding, = report.findings
    assert finding.startswith("backward wrote into the dy that it was given; another op may hold the same array (at ")
    assert finding.endswith(":5)")
    assert report.tried == ""                            # no gradient is wrong


def test_given_arrays_are_never_written_to():
    def embedding(table, ids):
        def backward(dy):
            dtable = np.zeros_like(table)
            for j, i in enumerate(ids):
                dtable[i] += dy[j]
            ids[0] = 1
            return dtable, None

        return table[ids], backward

    table, ids = normal((4, 3)), np.array([2, 0, 2, 1])
    line = embedding.__code__.co_firstlineno + 5
    finding, = judge(embedding, table, ids).findings
    assert finding.startswith("backward wrote into ids; another op may hold the same array (at ")
    assert finding.endswith(f"{HERE}:{line})")
    assert np.array_equal(table, normal((4, 3)))
    assert ids.tolist() == [2, 0, 2, 1]


def nothing_comes_back(x, W):
    def backward(dy):
        dW = x.T @ dy
        dx = dy @ W.T
        dx, dW  # noqa: B018

    return x @ W, backward


class Forgetful:
    def forward(self, x):
        self.x = x
        return x * x

    def backward(self, dy):
        2 * self.x * dy


def test_a_return_that_is_missing():
    inputs = normal((4, 3), (3, 2))
    line = nothing_comes_back.__code__.co_firstlineno + 4
    finding, = judge(nothing_comes_back, *inputs).findings
    assert finding == f"no gradient of x, W came back: backward returns None: is `return` missing at line {line}, `dx, dW`?"
    finding, = judge(Forgetful(), X).findings
    assert "backward returns None: is `return` missing at line" in finding
    assert judge(edited(Forgetful, "2 * self.x * dy", "return 2 * self.x * dy")(), X).verdict == "PASS"
    report = judge(edited(nothing_comes_back, "dx, dW  # noqa: B018", "return None"), *inputs)
    assert report.findings == ["no gradient of x, W came back: the backward returned None"]


def test_an_input_without_a_gradient():
    def f(x, W):
        return x @ W, lambda dy: (dy @ W.T, None)

    x, W = normal((4, 3), (3, 2))
    report = judge(f, x, W)
    assert report.verdict == "FAIL"
    assert report.findings == ["no gradient of W came back; a constant is given by its name: gradcheck(f, …, W=W)"]
    assert [t.name for t in report.tensors] == ["x"]
    report = judge(f, x, W=W)
    assert report.verdict == "PASS"
    assert judge(f, x, W, constants=["W"]).verdict == "PASS"


def test_an_input_that_y_does_not_depend_on_is_a_note():
    report = judge(lambda x, z: (2 * x, lambda dy: (2 * dy, None)), X, X + 1)
    assert report.verdict == "PASS"
    assert report.notes == ["y does not depend on z"]


# Parameters of mini_tf ------------------------------------------------------------------------------------------------


def test_parameters_add_up():
    class Replaced(Parameter):
        def accumulate(self, gradient):
            self.grad = gradient

    layer = Linear(3, 2, np.random.default_rng(0))
    assert (judge(layer, X).verdict, judge(layer, X).name) == ("PASS", "Linear")
    layer.W = Replaced(layer.W.data)
    assert any("did not add up" in finding for finding in judge(layer, X).findings)


class DoublesW(Linear):
    """Linear with a wrong backward: twice dW, and no db."""

    def __call__(self, x):
        y, linear_backward = super().__call__(x)

        def backward(dy):
            dx = linear_backward(dy)
            self.W.grad, self.b.grad = self.W.grad * 2, None
            return dx

        return y, backward


def test_parameters_of_a_layer_without_a_gradient():
    layer = DoublesW(3, 2, np.random.default_rng(0))
    for f in (layer, layer.__call__, lambda x: layer(x)):
        report = judge(f, X)
        assert [t.verdict for t in report.tensors] == ["PASS", "FAIL"]
        assert report.findings[-1] == "no gradient of b came back: backward added none to its .grad"
    assert [t.name for t in judge(Linear(3, 2), X).tensors] == ["x", "W", "b"]
    assert [t.name for t in judge(Linear(3, 2), X, params={}).tensors] == ["x"]
    assert "W is of type ndarray, expected a Parameter" in judge(Linear(3, 2), X, params={"W": X}).refusals[0]


def test_parameters_come_back_as_they_were():
    layer = Linear(3, 2)
    before = layer.W.data
    layer.b.grad = np.ones(2, np.float32)
    assert judge(layer, X)
    assert layer.W.data is before
    assert layer.W.data.dtype == np.float32
    assert layer.b.grad.tolist() == [1, 1]


# The dtype follows the inputs -------------------------------------------------------------------------------------------


def test_the_dtype_of_an_op_follows_its_inputs():
    x = X.astype(np.float32)
    report = judge(lambda x: (x * np.sqrt(2.0), lambda dy: dy * np.sqrt(2.0)), x)
    assert report.verdict == "FAIL"
    assert "the forward gave float64 for float32: the dtype must follow the inputs" in report.findings[0]
    assert "dx is float64 for float32" in report.findings[1]
    report = judge((lambda x: x * np.sqrt(2.0), lambda dy: dy * np.sqrt(2.0)), x)
    assert report.verdict == "PASS"                      # only ops promise it
    assert "the forward gave float64 for float32" in report.notes


def test_results_of_another_library_are_judged_on_the_host():
    report = judge(ops.layer_norm, strict(normal((3, 4))), strict(np.ones(4)), strict(np.zeros(4)))
    assert report.verdict == "PASS", report
    assert report.tensor("x").precision.where == "float64 on strict"


@pytest.mark.gpu
def test_results_on_the_gpu_are_judged_on_the_host():
    from mini_tf.backend import to_device

    for dtype in (np.float64, np.float32):
        arrays = [to_device(x.astype(dtype), "gpu") for x in (normal((3, 4)), np.ones(4), np.zeros(4))]
        report = judge(ops.layer_norm, *arrays)
        assert report
        assert report.tensor("x").precision.where == f"{np.dtype(dtype)} on gpu:0"

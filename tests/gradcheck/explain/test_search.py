"""One change found by value: carried out, it makes the gradients right, and it is what an author would write."""

from tests.cases import cases
from tests.gradcheck.contracts import normal
from tests.gradcheck.explain import edited, edited_file, gradcheck, judge, mended, nets
from tests.gradcheck.explain import functions as right

import numpy as np
import pytest

IDS = np.array([1, 4, 1, 0])
SHAPES = {
    "dense": [(5, 3), (3, 4), (4,)], "product": [(3, 4), (3, 4)], "attention": [(2, 3, 4), (2, 5, 4), (2, 5, 6)],
    "layer_norm": [(3, 5), (5,)], "joined": [(3, 2), (3, 4)], "relu": [(3, 4)],
    "recurrent": [(4, 2, 3), (3, 3), (2, 3)], "weighted": [(2, 3), (4,)],
    "shifted": [(2, 4, 3), (3,)], "averaged": [(3, 4)], "scaled_rows": [(4, 4)],
    "sech": [(5, 3), (3, 4)], "Scale": [(4, 3)], "Gated": [(4, 3)],
}  # fmt: skip
INPUTS = {name: lambda shapes=shapes: [*normal(*shapes, (1,))[:-1]] for name, shapes in SHAPES.items()} | {
    "lookup": lambda: [normal((6, 3)), IDS],
    "softmax_loss": lambda: [*normal((4, 3), (3, 5)), IDS],
    "dict_loss": lambda: [{"W1": normal((3, 4)), "W2": normal((4, 2))}, *normal((5, 3), (5, 2), seed=3)],
}
FUNCTIONS = {**vars(right), "dense": nets.dense}


def run(check, name, thing):
    """A check of a thing with its inputs"""
    thing = thing(normal((3,), seed=1)) if isinstance(thing, type) else thing
    return check(thing, *INPUTS[name]())


@pytest.mark.parametrize("name", INPUTS)
def test_they_are_right(name):
    assert run(judge, name, FUNCTIONS[name])


# (function, right, wrong, statements that are accepted; none if only the planted change is held against the judge)
ONE_MISTAKE = [
    ("dense", "1 - y ** 2", "1 - y", "dz = dy * (1 - y * y)", "dz = dy * (1 - y ** 2)"),
    ("dense", "x.T @ dz", "x.T @ dy", "dW = x.T @ dz"),
    ("dense", "dz.sum(0)", "dz.mean(0)", "db = dz.sum(0)"),
    ("dense", "dz @ W.T", "-dz @ W.T", "dx = dz @ W.T"),
    ("dense", "return dx, dW", "return dx * 2, dW", "return dx, dW, db"),
    ("attention", "(a * da).sum(-1", "(a * da).mean(-1"),
    ("attention", "da - (a * da).sum(-1, keepdims=True)", "da"),
    ("layer_norm", " - dn.mean(-1, keepdims=True)", ""),
    ("layer_norm", " - n * (dn * n).mean(-1, keepdims=True)", ""),
    ("layer_norm", "dn = dy * g", "dn = dy", "dn = dy * g"),
    ("joined", "d[:, :k], d[:, k:]", "d[:, :k], d[:, k + 1:]", "return d[:, :k], d[:, k:]"),
    ("joined", "d = 2 * dy *", "d = dy *"),
    ("lookup", "np.add.at(dW, ids, 2 * dy * W[ids])", "dW[ids] += 2 * dy * W[ids]",
     "np.add.at(dW, ids, 2 * dy * W[ids])"),
    ("relu", "dy.copy()", "dy", "dx = dy.copy()"),
    ("product", "return dx, dw", "return dw, dx", "return dx, dw"),
    ("recurrent", "dh = dz @ U.T", "dh = dz @ U", "dh = dz @ U.T"),
    ("recurrent", "dU += hs[t].T", "dU = hs[t].T", "dU += hs[t].T @ dz"),
    ("recurrent", "dU += hs[t].T", "dU += hs[t + 1].T", "dU += hs[t].T @ dz"),
    ("recurrent", "(dy[t] + dh)", "dy[t]", "dz = (dy[t] + dh) * (1 - hs[t + 1] ** 2)"),
    ("weighted", "dy[k] * w[k]", "dy[k]"),
    ("weighted", "(one * x).sum()", "one.sum()"),
    ("shifted", "g.sum(0)", "g.mean(0)"),           # a change to g = g would never end
    ("averaged", " / x.shape[0]", ""),
    ("softmax_loss", "dz /= len(t)", "dz /= len(W)", "dz /= len(t)", "dz /= len(X)"),
    ("softmax_loss", "t] -= 1", "t] -= 2", "dz[np.arange(len(t)), t] -= 1"),
    ("dict_loss", "X.T @ (dh * (1 - h ** 2))", "X.T @ dh"),
    ("dict_loss", "2 * r /", "r /"),
    ("Scale", "(dy * self.x)", "dy", "self.dw = (dy * self.x).sum(0)"),
    ("Scale", "dy * self.w", "dy", "return dy * self.w"),
    ("Gated", "backward(dy * g)", "backward(dy)", "return self.inner.backward(dy * g)"),
    ("Gated", "self.gate + self.gate", "self.gate"),
]


@pytest.mark.parametrize("mistake", cases(ONE_MISTAKE[::3], [(one,) for one in ONE_MISTAKE[1::3] + ONE_MISTAKE[2::3]]), ids=lambda one: "-".join(one[:3]))
def test_the_change_makes_it_right(mistake):
    name, old, new, *accepted = mistake
    wrong = edited(FUNCTIONS[name], old, new)
    report = run(gradcheck, name, wrong)
    assert report.verdict == "FAIL"
    assert report.repair is not None, report
    assert run(judge, name, mended(wrong, report.repair)), report
    assert not accepted or report.repair.after in accepted
    assert [t.name for t in report.tensors if t.verdict == "FAIL"] or report.findings
    assert report.repair.makes_right == [t.name for t in report.tensors] or report.findings


def test_the_letters_of_an_einsum():
    wrong = edited(right.attention, '"bij,bik->bjk", a, dy', '"bji,bik->bjk", a, dy')
    report = gradcheck(wrong, *normal((2, 3, 4), (2, 3, 4), (2, 3, 6)))
    assert report.repair.after.replace("'", '"') == 'dv = np.einsum("bij,bik->bjk", a, dy)'


def test_a_transpose():
    report = gradcheck(edited(right.sech, "X.T @ dz", "X @ dz"), *normal((4, 4), (4, 4)))
    assert (report.repair.kind, report.repair.after) == ("a transpose is missing", "dW = X.T @ dz")


def test_a_pair():
    net = edited_file(nets, "dout @ W.T", "dout @ -W.T")
    report = gradcheck(net.affine_forward, *INPUTS["dense"]())
    assert report.repair.after == "return dout @ W.T, x.T @ dout, dout.sum(0)"


def test_a_loop_that_leaves_a_step_out():
    wrong = edited(right.recurrent, "reversed(range(len(x)))", "reversed(range(1, len(x)))")
    report = run(gradcheck, "recurrent", wrong)
    assert report.repair.line == 8
    assert "range(1, len(x))" not in report.repair.after


def test_other_lines_that_do_the_same_do_it():
    wrong = edited(right.averaged, " / x.shape[0]", "")
    report = run(gradcheck, "averaged", wrong)
    assert report.equal
    for change in report.equal:
        assert change.line != report.repair.line
        assert run(judge, "averaged", mended(wrong, change))


def test_two_mistakes():
    wrong = edited(right.product, "dx = dy * w", "dx = dy", "dw = dy * x", "dw = dy")
    report = run(gradcheck, "product", wrong)
    assert [(change.makes_right, change.line) for change in report.changes] == [(["x"], 4), (["w"], 5)]
    assert run(judge, "product", mended(wrong, *report.changes))
    assert report.repair is None
    assert "2 changes together make it right" in str(report)


def test_three_rows_are_not_three():
    report = run(gradcheck, "averaged", edited(right.averaged, " / x.shape[0]", ""))
    assert report.repair.kind == "a factor is missing, or one too many"
    for change in (report.repair, *report.equal):
        assert "shape[0]" in change.after or "len(x)" in change.after
        assert "3" not in change.after


def test_of_a_square_matrix_the_right_axis():
    wrong = edited(right.scaled_rows, "return dy / T", "return dy")
    report = run(gradcheck, "scaled_rows", wrong)
    again = mended(wrong, report.repair)
    assert judge(again, normal((4, 4)))
    assert judge(again, normal((5, 3))), report.repair


def row_by_row(x):
    """A while-loop: without `t += 1` it would never end"""
    def backward(dy):
        dx, t = np.zeros_like(x), 1
        while t < len(x):
            dx[t] = 2 * x[t] * dy[t]
            t += 1
        return dx

    return x * x, backward


def test_a_while_loop_ends():
    report = gradcheck(row_by_row, *normal((3, 4), (1,))[:1])
    assert report.repair.after == "dx, t = np.zeros_like(x), 0"


@pytest.mark.exhaustive
def test_no_change_is_shown_where_none_is_right():
    report = run(gradcheck, "sech", edited(right.sech, "dz = dy / np.cosh(z)", "dz = np.sin(z)"))
    assert report.changes == []
    assert "No single change" in report.tried
    assert [line.split("  ", 1)[1] for line in report.suspects] == ["dz = np.sin(z)"]


@pytest.mark.exhaustive
def test_the_lines_of_two_mistakes():
    wrong = edited(right.sech, "dX = dz @ W.T", "dX = np.sin(z) @ W.T", "dW = X.T @ dz", "dW = X.T @ np.cos(z)",
                   "dz = dy / np.cosh(z)", "dz = dy * 0")    # fmt: skip
    report = run(gradcheck, "sech", wrong)
    assert report.changes == []
    lines = [line.split("  ", 1)[1] for line in report.suspects]
    assert {"dX = np.sin(z) @ W.T", "dW = X.T @ np.cos(z)"} <= {*lines}
    assert "T = X.shape[1]" not in lines
    assert len(lines) <= 12


@pytest.mark.exhaustive
def test_twice_the_same_without_threads(monkeypatch):
    def start(self):
        raise AssertionError("a thread was started")

    monkeypatch.setattr("threading.Thread.start", start)
    for name, old, new in (("dense", "1 - y ** 2", "1 - y"), ("sech", "dz = dy / np.cosh(z)", "dz = np.sin(z)")):
        wrong = edited(FUNCTIONS[name], old, new)
        first, second = (str(run(gradcheck, name, wrong)) for _ in range(2))
        assert first == second
        assert "could not be looked for" not in first
        assert "could not be looked for" not in first


def test_a_derivative_that_every_use_of_dy_lacks_is_one_line_more():
    def dense(x, W, b):
        y = np.tanh(x @ W + b)

        def backward(dy):
            return dy @ W.T, x.T @ dy, dy.sum(0)

        return y, backward

    change = gradcheck(dense, *normal((5, 3), (3, 4), (4,))).repair
    assert change.before == "(a first line is missing)"
    assert change.after == "dy = dy * (1 - y ** 2)"
    assert change.makes_right == ["x", "W", "b"]

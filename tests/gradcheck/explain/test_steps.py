"""The first wrong step of a network: the one with the mistake, with a report of its own that has the change."""

from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from tests.cases import cases
from tests.gradcheck.contracts import normal
from tests.gradcheck.explain import edited_file, gradcheck, judge, nets

import numpy as np
import pytest

TRANSFORMER = "LanguageTransformer, shared, tied, every option"


@pytest.mark.parametrize(("name", "right"), cases([("layer_norm: γ forgotten", "g = dy * gamma")], [
    ("attention: scale forgotten in dquery", "scale"),
    ("linear: sign of dx", "dx = (rows_dy @ transpose(W)).reshape(shape_x)"),
    ("cross_entropy: sum for mean", "/ rows"),
]))  # fmt: skip
def test_of_a_language_transformer(name, right, rng):
    bug = next(bug for bug in BUGS if bug.name == name)
    f, inputs, params = EXAMPLES[TRANSFORMER](rng)
    with planted(bug):
        report = gradcheck(f, *inputs, params=params)
    step = report.wrong_step
    assert step.name == bug.target.__name__
    assert right in step.report.repair.after
    assert step.report.repair.makes_right == [t.name for t in step.report.tensors]
    before = report.steps[: report.steps.index(step)]
    assert {one.status for one in before} <= {"right"}


def steps(report):
    return [(step.name, step.status) for step in report.steps]


def test_of_closures():
    net = edited_file(nets, "dz @ W.T", "dz @ -W.T", "x.T @ dz", "x.T @ dz / len(x)")
    report = gradcheck(net.closures, *normal((5, 3), (3, 4), (4,), (4, 3), (3,), (3, 2), (2,)))
    later = "dense", "after it, not checked"
    assert steps(report) == [("dense", "WRONG"), later, later]
    assert [change.makes_right for change in report.wrong_step.report.changes] == [["x"], ["W"]]
    assert report.wrong_step.report.changes[0].after.startswith("dx = dz @ W.T")


def test_of_pairs():
    net = edited_file(nets, "return dout @ W.T, x.T @ dout", "return np.sin(dout) @ W.T, np.cos(x).T @ dout")
    report = gradcheck(net.pairs_forward, *normal((3, 2), (2, 3), (3,), (3, 2), (2,)))
    assert steps(report)[0] == ("affine_forward", "WRONG")
    assert [one.makes_right for one in report.wrong_step.report.changes] == [["x"], ["W"]]


def test_of_objects():
    net = edited_file(nets, "x.T @ dout\n", "x.T @ dout / len(dout)\n", "return dout @ self", "return dout @ -self")
    report = gradcheck(net.Objects(np.random.default_rng(0)), normal((5, 3)))
    assert steps(report)[0] == ("Affine", "WRONG")
    changes = report.wrong_step.report.changes
    assert [change.after for change in changes] == ["return dout @ self.W.T", "self.dW = self.x.T @ dout"]
    assert "First wrong step, number 1 of 3" in str(report)


@pytest.mark.exhaustive
def test_steps_are_right_where_their_joints_are_wrong():
    rubbish = "back1(np.sin(9 * h1) + dh1 * 0)"
    net = edited_file(nets, "back1(dh1)", rubbish, "back2(dh2)", "back2(np.cos(9 * h2) + dh2 * 0)",
                      "back3(dy)", "back3(np.exp(np.sin(dy)))")    # fmt: skip
    report = gradcheck(net.closures, *normal((5, 3), (3, 4), (4,), (4, 3), (3,), (3, 2), (2,)))
    assert report.verdict == "FAIL"
    assert report.changes == []
    assert steps(report) == [("dense", "right")] * 3
    assert "Its 3 steps are each right: the mistake is in its own lines" in str(report)


def test_the_networks_are_right():
    assert judge(nets.closures, *normal((5, 3), (3, 4), (4,), (4, 3), (3,), (3, 2), (2,)))
    assert judge(nets.pairs_forward, *normal((5, 3), (3, 4), (4,), (4, 2), (2,)))
    assert judge(nets.Objects(np.random.default_rng(0)), normal((5, 3)))

"""Every planted bug fails, at the given point and at the generic one, and is gone afterwards."""

from collections import Counter

from mini_tf import ops
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted

import numpy as np
import pytest

BY_NAME = {bug.name: bug for bug in BUGS}
BLIND_AT_INIT = {"layer_norm: γ forgotten", "layer_norm: dγ of y"}


def run(f, inputs, params):
    """(y, the gradients of inputs and parameters)"""
    for p in params.values():
        p.grad = None
    y, backward = f(*inputs)
    came = backward(random_dy(y, np.random.default_rng(1), backward))
    return y, dict(enumerate(came if isinstance(came, tuple) else (came,))) | {name: p.grad for name, p in params.items()}


def changed(right, wrong):
    """The names of the gradients that differ by more than rounding"""
    def alike(a, b):
        return a is b if a is None or b is None else np.allclose(a, b)

    return [name for name, g in right.items() if not alike(g, wrong[name])]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_planted_bug_fails_at_both_points(name):
    bug = BY_NAME[name]
    f, inputs, params = EXAMPLES[bug.example](np.random.default_rng(20))
    y, right = run(f, inputs, params)
    with planted(bug):
        y_beside, wrong = run(f, inputs, params)
        # Of a model, two parameters are judged: the smallest of those whose gradients the bug changes in one call.
        some = sorted({*changed(right, wrong)} & {*params}, key=lambda one: (params[one].data.size, one))[:2]
        some = some if changed(right, wrong) else [*params]
        report = judge(f, *inputs, params={one: params[one] for one in some}, name=bug.example)
    assert np.array_equal(y, y_beside)
    assert not changed(right, run(f, inputs, params)[1])
    assert report.verdict == "FAIL", report
    points = {c.point for tensor in report.tensors for c in tensor.comparisons if c.wrong}
    assert report.findings or points >= {"given", "generic"}


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.target is ops.layer_norm], ids=lambda bug: bug.name)
def test_which_bugs_cannot_be_seen_where_layer_norm_begins(bug, rng):
    with planted(bug):
        report = judge(ops.layer_norm, rng.standard_normal((2, 3, 4)), np.ones(4), np.zeros(4))
    points = {c.point for tensor in report.tensors for c in tensor.comparisons if c.wrong}
    assert points == ({"generic"} if bug.name in BLIND_AT_INIT else {"given", "generic"})


def test_what_the_list_holds():
    assert len(BY_NAME) == len(BUGS) >= 70
    assert max(Counter(bug.target for bug in BUGS).values()) <= 5        # that differ in kind
    assert {getattr(ops, name) for name in ops.__all__} <= {bug.target for bug in BUGS}

"""Lab 12 runs from any folder, its functions are the ops at other sizes too, and its steps are of one size."""

import re

from mini_tf import ops
from tests.reader import LABS, lab_output

import numpy as np
import pytest
import student

LAB = "12_todays_transformer"

output = lab_output(LAB, ["12_rotary", "12_ladder"])
rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def lab():
    """The definitions of the lab, without a run of it"""
    definitions = {"__name__": LAB}
    exec(compile(student.parse(LABS / f"{LAB}.py"), LAB, "exec"), definitions)
    return definitions


def same(f, op, *inputs):
    found, dy = [], None
    for each in (f, op):
        y, backward = each(*inputs)
        dy = rng.standard_normal(y.shape) if dy is None else dy
        gradients = backward(dy)
        found.append([y, *(gradients if isinstance(gradients, tuple) else [gradients])])
    for ours, theirs in zip(*found):                     # the op's last gradient may be that of a mask, None
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("first", "base"), [(0, 10000.0), (7, 10000.0), (100, 3.0)])
def test_rotary_starts_at_any_place_with_any_base(lab, first, base):
    same(lambda x: lab["rotary"](x, first, base), lambda x: ops.rotary(x, first, base), rng.standard_normal((2, 3, 5, 8)))


@pytest.mark.parametrize("G", [1, 2, 4])
def test_heads_are_shared_in_groups_of_any_size(lab, G):
    query, key, value = (rng.standard_normal((heads, 5, 3)) for heads in (4, G, G))
    same(lab["grouped_attention"], ops.grouped_attention, query, key, value)


@pytest.mark.lab
@pytest.mark.exhaustive
def test_the_lab(output):
    steps = re.findall(r"^  (\d) .*? {3,}([\d,]+) +(\d+) +\d+ +([\d.]+) +([\d.]+)$", output, re.MULTILINE)
    assert [int(step[0]) for step in steps] == [*range(7)]
    parameters = [int(step[1].replace(",", "")) for step in steps]
    assert max(parameters) < 1.02 * min(parameters)
    assert [int(step[2]) for step in steps] == [768, 256, 256, 256, 256, 256, 128]
    losses = [min(map(float, step[3:])) for step in steps]
    assert losses[6] < losses[4] < losses[2] < losses[0]

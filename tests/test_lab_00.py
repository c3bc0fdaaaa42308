"""Lab 00 runs from any folder, draws what it says it draws, and its numbers differentiate what they are made of."""

import re

from tests.reader import LABS, lab_output

import numpy as np
import pytest
import student

LAB = "00_one_number_at_a_time"

output = lab_output(LAB, ["00_neuron", "00_costs"])


@pytest.fixture(scope="module")
def lab():
    """The definitions of the lab, without a run of it"""
    definitions = {"__name__": LAB}
    exec(compile(student.parse(LABS / f"{LAB}.py"), LAB, "exec"), definitions)
    return definitions


@pytest.mark.parametrize("f", [
    lambda x, y: x + y * 2 + 3, lambda x, y: 2 * x + y * -1, lambda x, y: x * y * x + y, lambda x, y: x / y + y / 4,
    lambda x, y: (x + y) ** -0.5, lambda x, y: (x * y).exp() + x.exp(), lambda x, y: (x / y).log() * y,
    lambda x, y: (x + y * -1).relu() * x, lambda x, y: (y + x * -1).relu() * x,
])  # fmt: skip
@pytest.mark.parametrize("seed", range(5))
def test_gradients_of_numbers_are_slopes(lab, f, seed):
    values = np.random.default_rng(seed).uniform(0.5, 2, size=2)
    numbers = list(map(lab["Number"], values))
    lab["sweep"](f(*numbers))
    for k, number in enumerate(numbers):
        step = 1e-5 * np.eye(2)[k]
        above, below = (f(*map(lab["Number"], values + sign * step)).value for sign in (1, -1))
        assert number.gradient == pytest.approx((above - below) / 2e-5, rel=1e-6, abs=1e-8)


def test_a_long_chain_is_no_recursion(lab):
    x = y = lab["Number"](1.0)
    for _ in range(5000):
        y = y + x
    assert lab["sweep"](y) == 5001
    assert x.gradient == 5001


@pytest.mark.lab
@pytest.mark.exhaustive
def test_the_lab(output):
    losses = list(map(float, re.search(r"loss, every second epoch: (.*)", output)[1].split()))
    assert losses[-1] < losses[0] - 0.4
    counts = [int(count.replace(",", "")) for count in re.findall(r"^ +(?:8|16|32) +([\d,]+) ", output, re.MULTILINE)]
    assert len(counts) == 3
    assert 3 < counts[1] / counts[0] < counts[2] / counts[1] < 4      # matrices of n² entries make most of the numbers
    assert len(re.findall(r"expected 1e-12 or less", output)) == 7

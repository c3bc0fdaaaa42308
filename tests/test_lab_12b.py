"""Lab 12b runs from any folder, and its tables say what its text says."""

import re

from tests.reader import LABS, lab_output

import numpy as np
import pytest
import student

LAB = "12b_bytes_and_memory"

output = lab_output(LAB, ["12b_cache", "12b_fine_tuning"])


@pytest.fixture(scope="module")
def lab():
    """The definitions of the lab, without a run of it"""
    definitions = {"__name__": LAB}
    exec(compile(student.parse(LABS / f"{LAB}.py"), LAB, "exec"), definitions)
    return definitions


def test_a_copy_learns_only_what_it_should_and_shares_nothing(lab):
    model = lab["Llama"](np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32), T=4, H=2, m=4, f=6)
    windows = np.arange(10).reshape(2, 5) % 9
    for r in (0, 2):
        copy = lab["adapted"](model, r)
        assert copy.loss(windows)[0] == pytest.approx(model.loss(windows)[0], rel=1e-6)
        learned = {name for name, parameter in copy.parameters().items() if parameter.trainable}
        assert learned == {name for name in copy.parameters() if not r or name[-2:] in (".A", ".B")}
        for name, parameter in model.parameters().items():
            assert not np.shares_memory(parameter.data, copy.parameters()[name].data)


@pytest.mark.lab
@pytest.mark.exhaustive
def test_the_lab(output):
    assert "cut into Ġ · s · m · other" in output
    pieces = list(map(float, re.findall(r"^ +[\d,]+ +(\d\.\d{3})   F", output, re.MULTILINE)))
    assert len(pieces) == 4
    assert pieces == sorted(pieces, reverse=True)
    numbers = {name.strip(): int(count.replace(",", "")) for name, count in re.findall(
        r"^  (all weights|LoRA, r = \d) +([\d,]+) ", output, re.MULTILINE)}  # fmt: skip
    assert numbers["LoRA, r = 8"] == 4 * numbers["LoRA, r = 2"] < numbers["all weights"]

"""Lab 07b runs from any folder, meets its expectations with --quick, and draws what it says it draws."""

import re

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

output = lab_output("07b_training_and_heads", ["07b_optimizers", "07b_variants", "07b_history", "07b_attention"])


def number(pattern, text):
    """The number in the first group of the pattern."""
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in the output"
    return float(found[1].replace(",", ""))


def test_lab_07b(output):
    assert "PASS: gradients of shared_loss" in output
    assert number(r"\n *uniform +(\S+)", output) == pytest.approx(9.568, abs=5e-4)
    assert number(r"\n *unigram +(\S+)", output) == pytest.approx(6.06, abs=0.01)
    assert number(r"Lab 01b\) +(\S+)", output) == pytest.approx(5.05, abs=0.005)
    rows = re.findall(r"\n *(?:[12], [1-4]|layer [12]|all) .*±.*±", output)
    assert len(rows) == 11                                            # each head, each layer, all

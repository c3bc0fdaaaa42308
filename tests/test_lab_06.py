"""Lab 06 runs from any folder, draws what it says it draws, and meets its expectations."""

import re

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

output = lab_output("06_language_transformer", [
    "06_training", "06_overfitting", "06_where_the_loss_comes_from", "06_temperature", "06_sureness", "06_repetition",
])  # fmt: skip


def test_lab_06(output):
    assert "✗" not in output
    assert re.search(r"\nAll \d+ expectations met\.\n", output)
    assert "292,072 words, 14,295 different" in output
    assert re.search(r"A in float32, MB +\d+ +468\n", output)
    assert "trunk.layers.0.attention.query.W       0.00000" in output   # nothing comes through A = 0
    assert "histories of 64 words, expected at most T = 32" in output
    assert re.search(r"\n +0 +100% +14,295 ", output)                 # no words: Φ = 0, all words alike
    assert re.search(r"argmax +\d+ +\d+% +\d+ ", output)

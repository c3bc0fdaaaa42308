"""Lab 07 runs from any folder, meets its expectations with --quick, and draws what it says it draws."""

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

output = lab_output("07_positions_norms_masks", [
    "07_positions", "07_layer_norm", "07_masks", "07_gradient_flow", "07_leak",
])  # fmt: skip


def test_lab_07(output):
    assert "sums of the rows: 1 1 1 1 1 1 1 0" in output              # the rule as printed leaves the last row empty
    assert "PASS: gradients of norm_over_time" in output
    assert "✓ rank of P" in output

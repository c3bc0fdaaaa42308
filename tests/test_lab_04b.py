"""Lab 04b runs from any folder, meets its expectations, and draws what it says it draws."""

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

output = lab_output("04b_attention_from_nothing", [
    "04b_no_averaging", "04b_mean", "04b_weighted_mean", "04b_look_up", "04b_one_head", "04b_scale", "04b_two_heads",
    "04b_ladder",
])  # fmt: skip


def test_all_six_steps(output):
    assert [line for line in output.splitlines() if line.startswith("Step ")] == [
        "Step 1: no averaging", "Step 2: the mean", "Step 3: a weighted mean", "Step 4: a soft look-up",
        "Step 5: queries, keys and values", "Step 6: heads",
    ]  # fmt: skip
    assert output.count("\nPASS: gradients of") == 6
    assert "FAIL" not in output

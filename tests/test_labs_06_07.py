"""Labs 06 and 07 run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import run_lab

import pytest

FIGURES = {
    "06_language_transformer": [
        "06_training", "06_overfitting", "06_where_the_loss_comes_from", "06_temperature", "06_repetition",
    ],
    "07_positions_norms_masks": [
        "07_positions", "07_layer_norm", "07_masks", "07_gradient_flow", "07_variants", "07_history", "07_attention",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def output(request, tmp_path_factory):
    """What a lab prints with --quick; the figures it draws are made anew."""
    return run_lab(request.param, tmp_path_factory.mktemp("elsewhere"), FIGURES[request.param])


def number(pattern, text):
    """The number in the first group of the pattern."""
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in the output"
    return float(found[1].replace(",", ""))


@pytest.mark.lab
@pytest.mark.parametrize("output", ["06_language_transformer"], indirect=True)
def test_lab_06(output):
    assert "292,072 words, 14,295 different" in output
    assert "117,104,640" in output                                   # 32·256·14,295, the readout that the lab recommends
    assert "468 MB" in output
    assert "untrained loss 9.568,   ln c = 9.568" in output
    assert "trunk.layers.0.attention.query.W       0.00000" in output   # nothing comes through A = 0
    assert "4.3% of the test words never occur before it" in output
    assert number(r"\nuniform +(\S+)", output) == pytest.approx(9.568, abs=5e-4)
    assert number(r"\nunigram +(\S+)", output) == pytest.approx(6.06, abs=0.01)
    assert number(r"transformer, test words +(\S+)", output) < 6.8    # much better than uniform after 80 steps
    assert number(r"\nnever +\S+% +(\S+)", output) > 9.568            # words never seen are dearer than a uniform guess
    assert "histories of 64 words, expected at most T = 32" in output
    assert re.search(r"\n +0 +100% +14,295 ", output)                 # no words: Φ = 0, all words alike
    assert re.search(r"argmax +\d+ +\d+% +\d+ words", output)


@pytest.mark.lab
@pytest.mark.parametrize("output", ["07_positions_norms_masks"], indirect=True)
def test_lab_07(output):
    assert number(r"no positions +(\S+)", output) < 1e-4              # shuffled words, shuffled outputs
    assert number(r"\ngeometric +(\S+) +\S+\n\(the", output) > 0.1
    assert "sums of the rows: 1 1 1 1 1 1 1 0" in output              # the rule as printed leaves the last row empty
    assert "with mask: word 20 changed; outputs 0–19 change by at most 0.0e+00" in output
    assert number(r"without mask: .* at most (\S+),", output) > 0.01
    assert output.count("reaches words j > i: at most 0.0e+00") == 1
    rows = [line.split() for line in re.findall(r"\n[1-6]   .*", output)[:6]]
    assert all(float(row[5]) == pytest.approx(1, abs=0.02) for row in rows)         # std with layer norm
    assert float(rows[-1][2]) > 2 * float(rows[0][2])                 # and without it, from layer 1 to layer 6
    assert number(r"\nuniform +(\S+)", output) == pytest.approx(9.568, abs=5e-4)
    assert number(r"\nunigram +(\S+)", output) == pytest.approx(6.06, abs=0.01)
    vec = number(r"6\.6  vec +\S+ +\S+ +\S+ +\S+ +(\S+)", output)
    shared = number(r"6\.13 shared +\S+ +\S+ +\S+ +\S+ +(\S+)", output)
    assert shared < vec < 9

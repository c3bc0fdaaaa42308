"""Labs 08 and 08b run from any folder, meet their expectations with --quick, draw what they say, and print tables."""

import re

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

parts = lab_output("08_translation", ["08_architecture", "08_positions", "08_scaling", "08_masks", "08_leak"])
decoding = lab_output(
    "08b_translation_decoding",
    ["08b_training", "08b_overfitting", "08b_self_attention", "08b_heads", "08b_attention", "08b_tree", "08b_beams"],
)


def numbers(start, text):
    """All numbers after the start of a line, percent signs dropped."""
    found = re.search(rf"^ *{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "").rstrip("%")) for each in re.findall(r"-?\d[\d.,]*(?:e[-+]\d+)?%?", found[1])]


@pytest.mark.parametrize(("lab", "least"), [("parts", 49), ("decoding", 45)])
def test_all_is_as_expected(lab, least, request):
    output = request.getfixturevalue(lab)
    met = re.search(r"^All (\d+) expectations met\.$", output, re.MULTILINE)
    assert met, [line for line in output.splitlines() if "✗" in line]
    assert int(met[1]) >= least


def test_positions(parts):
    assert numbers("from t = 0", parts) == numbers("from t = 7", parts) == numbers("from t = 19", parts)


def test_attention(parts):
    assert "PASS: gradients of attention_by_hand" in parts
    assert "PASS: gradients of MultiHeadAttention.across" in parts
    assert re.search(r"^  PASS       dz +\(2, 4, 8\): right", parts, re.MULTILINE)
    small, large = numbers("4  ", parts), numbers("512  ", parts)
    assert large[4] < small[4] / 2                                   # the gradient without √m
    assert large[5] == pytest.approx(small[5], rel=0.1)              # and with it


def test_pairs(parts):
    assert numbers("split_pairs ", parts)[1:] == [0, 0]
    assert numbers("at random ", parts)[1] == 0                      # each French sentence is there once


def test_masks(parts):
    assert "  [SOS] 1  i 2  do 3  not 4  see 5  the 6  black 7  cats 8  . 9" in parts
    assert "  [SOS] 1  she 2  is 3  sleeping 4  . 5  [EOS] 6  – 6  – 6  – 6" in parts
    assert numbers("−∞ where the mask is 0", parts)[:2] == numbers("mini_tf's masked_softmax", parts)[:2]
    assert numbers("mini_tf's masked_softmax", parts)[-4:] == [0] * 4            # nothing to see: zeros, not NaN
    assert re.search("nan +nan +nan +nan", parts)


def test_gradient_of_the_whole(parts):
    assert re.search(r"PASS: gradients of the translator[;\n]", parts)
    assert parts.count("FAIL: gradients of the translator") == 2
    assert re.search(r"First wrong step, number \d+ of \d+ on the way back:\s+FirstLayerOnly,", parts)
    assert re.search(r"First wrong step, number \d+ of \d+ on the way back:\s+ForgottenValue\.across,", parts)
    assert re.search(r"The gradient through `z` \(line \d+\) is missing; all else is right", parts)


def test_training(decoding):
    rows = re.findall(r"^ +\d+ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", decoding, re.MULTILINE)
    first, last = ([float(each) for each in rows[i]] for i in (0, -1))
    assert all(b < a / 2 for a, b in zip(first, last))


def test_attention_maps(decoding):
    nouns, colours = numbers("chance  ", decoding)
    heads = [numbers(f"layer 1, head {h}", decoding) for h in (1, 2, 3, 4)]
    assert max(head[0] for head in heads) > 2 * nouns
    assert max(head[1] for head in heads) > 2 * colours


def test_beams(decoding):
    tables = re.split(r"(?:trained|beginner), width.*\n", decoding)[1:]
    rows = [[[float(each.rstrip("%").replace(",", "")) for each in line.split()] for line in table.splitlines()[:5]] for table in tables]
    for of in rows:
        assert [row[0] for row in of] == [1, 2, 3, 5, 10]
        assert of[-1][3] >= of[0][3]                                 # ln p
    trained, beginner = rows
    assert trained[0][1] > 0.7                                       # BLEU
    assert beginner[-1][5] < beginner[0][5]                          # words written per reference word


def test_bleu(decoding):
    for row in ("4/7 4/7 1.0000 0.5714", "5/5 1/5 0.8187 0.1637", "1/1 1/1 0.0067 0.0067", "0.791 0.518 1.000"):
        assert re.search(re.escape(row).replace(r"\ ", " +"), decoding)

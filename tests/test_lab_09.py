"""Lab 09 runs from any folder, draws what it says it draws, and finds the numbers that are known."""

import re

from tests.reader import lab_output

import pytest

pytestmark = pytest.mark.lab

classifier = lab_output(
    "09_attention_classifier",
    ["09_base_idea", "09_scaling", "09_masks", "09_order", "09_curves", "09_accuracy", "09_confusion", "09_words",
     "09_looking", "09_padding"],
)  # fmt: skip


def numbers(start, text):
    """All numbers after the start of a line, percent signs dropped."""
    found = re.search(rf"^{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "").rstrip("%")) for each in re.findall(r"-?\d[\d.,]*(?:e[-+]\d+)?%?", found[1])]


def test_order_and_the_mean(classifier):
    assert numbers("mean of x_t  ", classifier)[0] < 1e-14
    assert numbers("mean of x_t + P_t  ", classifier)[0] < 1e-14
    assert numbers("mean of Y  ", classifier)[0] < 1e-14
    assert numbers("mean of Y, with positions", classifier)[0] > 1e-3
    assert numbers("  none ", classifier)[0] < 1e-14
    assert numbers("  sinusoidal ", classifier)[0] > 1e-3
    assert numbers("  learned (random so far)", classifier)[0] > 1e-3


def test_base_idea(classifier):
    assert "softmax along columns: is it Wᵀ? True" in classifier
    for use in ("query", "key  ", "value"):
        assert numbers(f"  X as {use}", classifier)[-1] < 1e-13
    alike, own = numbers("XXᵀ      64", classifier), numbers("QKᵀ      64", classifier)
    for row in (alike, own):                                         # variance without √D, and with it
        assert row[0] == pytest.approx(64, rel=0.1)
        assert row[1] == pytest.approx(1, rel=0.1)
    assert alike[3] == pytest.approx(8, rel=0.1)                     # √D is left on the diagonal of XXᵀ
    assert alike[5] > 0.9 > 0.1 > own[5]                             # the weight of a word for itself
    assert alike[7] < own[7] / 10                                    # the gradient


def test_queries_keys_values_and_heads(classifier):
    for name in ("mean_pool", "base_idea", "query_key_value", "MultiHeadAttention", "attention"):
        assert f"PASS: gradients of {name}" in classifier
    assert numbers("concatenated, then W^O", classifier)[-1] < 1e-12
    assert numbers("Σ_h head_h·W^h:", classifier)[-1] < 1e-12
    by_D, _, by_m, _ = (float(each) for each in re.search(
        r"H = 16 .*variance ([\d.]+), largest of 16 weights ([\d.]+); +√m: ([\d.]+), ([\d.]+)", classifier).groups())  # fmt: skip
    assert by_D == pytest.approx(1 / 16, rel=0.1)
    assert by_m == pytest.approx(1, rel=0.1)


def test_mask(classifier):
    assert "by the formula, i ≤ j:       [4 3 2 1]" in classifier
    assert "by the printed matrix:       [1 2 3 4]" in classifier
    assert "is it the negation of mini_tf's mask? True" in classifier
    assert "PyTorch's mask given to mini_tf: rows sum to [1. 1. 1. 0.]" in classifier
    before, after = numbers("     -20", classifier)
    assert before > 0.05
    assert after < 1e-6
    assert numbers("    -inf", classifier) == [0, 0]


def test_only_order_counts(classifier):
    for blind in ("bag  ", "bag + positions", "attention, no positions"):
        assert numbers(blind, classifier)[:2] == [50, 50]
    for seeing in ("attention, sinusoidal", "attention, learned"):
        assert numbers(seeing, classifier)[1] > 80


def test_reviews_and_plays(classifier):
    reviews, plays = (re.findall(rf"^{name} +([\d.]+)% +([\d.]+)%", classifier, re.MULTILINE)
                      for name in ("naive Bayes", "logistic regression"))  # fmt: skip
    for of_reviews, of_plays in (reviews, plays):
        train, test = map(float, of_reviews)
        assert train > test > 60
        train, test = map(float, of_plays)
        assert train > 80 > 65 > test > 38
    split = re.search(r"split at random.*naive Bayes ([\d.]+)%", classifier)
    assert float(split[1]) > float(reviews[1][1]) + 5
    shuffled = classifier.partition("The words of each test sentence shuffled")[2]
    bag, encoder = numbers("bag  ", shuffled), numbers("encoder  ", shuffled)
    assert bag[0] == 0
    assert bag[1] < 1e-5
    assert bag[2] == bag[3]
    assert encoder[0] > 0
    assert encoder[1] > 0.01


def test_looking(classifier):
    assert numbers("dx·x by hand beside", classifier)[-1] < 1e-5
    found = {name: numbers(f"{name}  ", classifier.partition("rank correlation with the fall")[2])
             for name in ("dx·(x − x̄)", "attention", "a random number", "the fall itself")}  # fmt: skip
    assert found["dx·(x − x̄)"][0] > found["a random number"][0] + 0.2
    assert found["dx·(x − x̄)"][1] > found["a random number"][1]
    assert found["the fall itself"][0] == 1
    assert found["the fall itself"][1] == max(row[1] for row in found.values())


def test_padding_and_gradients(classifier):
    one, _, many = classifier.partition("p(positive) of")[2].partition("test sentences alone and with")
    assert len(set(numbers("right", one))) == 1
    assert numbers("right", many)[1] < 1e-5
    for wrong in ("padding in the mean", "mask on the wrong axis"):
        assert len(set(numbers(wrong, one))) > 1
        assert numbers(wrong, many)[0] > 1e-3
        assert re.search(rf"^{wrong} +PASS$", classifier, re.MULTILINE)
    assert re.search(r"^backward divides by T +FAIL$", classifier, re.MULTILINE)
    assert "PASS: 26 of 26 parameters pass" in classifier
    assert "PASS: 38 of 38 parameters pass" in classifier

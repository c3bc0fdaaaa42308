"""Lab 09 runs from any folder, meets its expectations with --quick, and draws what it says it draws."""

import re

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

classifier = lab_output(
    "09_attention_classifier",
    ["09_base_idea", "09_scaling", "09_masks", "09_order", "09_architecture", "09_curves", "09_accuracy",
     "09_confusion", "09_words", "09_looking", "09_padding"],
)  # fmt: skip


def numbers(start, text):
    """All numbers after the start of a line, percent signs dropped."""
    found = re.search(rf"^ *{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "").rstrip("%")) for each in re.findall(r"-?\d[\d.,]*(?:e[-+]\d+)?%?", found[1])]


def test_expectations(classifier):
    assert "✗" not in classifier
    assert re.search(r"\nAll \d+ expectations met\.\n", classifier)


def test_scores(classifier):
    alike, own = (numbers(f"{name} 64", re.sub(" +", " ", classifier)) for name in ("XXᵀ", "QKᵀ"))
    for row in (alike, own):                                         # variance without √n, and with it
        assert row[0] == pytest.approx(64, rel=0.15)
        assert row[1] == pytest.approx(1, rel=0.15)
    assert alike[3] == pytest.approx(8, rel=0.1)                     # √n is left on the diagonal of XXᵀ
    assert alike[5] > 0.9 > 0.1 > own[5]                             # the weight of a word for itself
    assert alike[7] < own[7] / 10                                    # the gradient


def test_gradients(classifier):
    for name in ("timewise_mean", "query_key_value"):
        assert f"PASS: gradients of {name}" in classifier
    assert "FAIL: gradients of divided_by_T" in classifier
    assert classifier.count("entries judged\n") >= 2


def test_reviews_and_plays(classifier):
    reviews, plays = (re.findall(rf"^ *{name} +([\d.]+)% +([\d.]+)%", classifier, re.MULTILINE)
                      for name in ("naive Bayes", "logistic regression"))  # fmt: skip
    for of_reviews, of_plays in (reviews, plays):
        train, test = map(float, of_reviews)
        assert train > test > 60
        train, test = map(float, of_plays)
        assert train > 80 > 65 > test > 38
    assert numbers("naive Bayes, split at random so that each play is on both sides:", classifier)[0] > float(
        reviews[1][1]) + 5  # fmt: skip
    shuffled = classifier.partition("The words of each test sentence shuffled")[2]
    bag, encoder = numbers("bag  ", shuffled), numbers("encoder  ", shuffled)
    assert bag[1] < 1e-5
    assert bag[2] == bag[3]
    assert encoder[1] > 0.01


def test_looking(classifier):
    found = {name: numbers(f"{name}  ", classifier.partition("rank correlation with the fall")[2])
             for name in ("dx·(x − x̄)", "attention", "a random number", "the fall itself")}  # fmt: skip
    assert found["dx·(x − x̄)"][0] > found["a random number"][0] + 0.2
    assert found["dx·(x − x̄)"][1] > found["a random number"][1]
    assert found["the fall itself"][0] == 1
    assert found["the fall itself"][1] == max(row[1] for row in found.values())


def test_padding(classifier):
    one, _, many = classifier.partition("p(positive) of")[2].partition("test sentences alone and with")
    assert len(set(numbers("right", one))) == 1
    for wrong in ("padding in the mean", "mask on the wrong axis"):
        assert len(set(numbers(wrong, one))) > 1
        assert numbers(wrong, many)[0] > 1e-3

"""Labs 02 and 02b run from any folder, draw what they say they draw, and meet what they expect."""

import math
import re

from tests.cases import cases
from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

by_hand = lab_output("02_fixed_window", ["02_one_hot", "02_softmax_layer", "02_compositions"])
trained = lab_output("02b_window_on_shakespeare", ["02_training", "02_windows", "02_word_vectors"])


def numbers(start, text, after=""):
    """The numbers after the first line that starts so, behind the words `after`."""
    found = re.search(rf"^ *{re.escape(start)}(.*)", text[text.index(after) :], re.MULTILINE)
    assert found, f"no line starts with {start!r} after {after!r}"
    return [float(each.replace(",", "")) for each in re.findall(r"(?<!\S)[-+]?[\d.,]*\d(?:e[-+]\d+)?(?!\S)", found[1])]


each = pytest.mark.parametrize("lab", cases(["by_hand"], ["trained"]))


@each
def test_meets_its_expectations(lab, request):
    text = request.getfixturevalue(lab)
    assert re.search(r"^All \d\d expectations met\.$", text, re.MULTILINE), text[-600:]


def test_one_hot(by_hand):
    assert "bag: the movie film   [0 0 0 1 1 1]" in by_hand
    assert "bag: film the movie   [0 0 0 1 1 1]" in by_hand
    assert numbers("movie – film", by_hand)[0] == 0
    assert numbers("movie – love", by_hand)[2] < 0.5


def test_softmax_layer(by_hand):
    for word, score in (("books", 1.83), ("houses", -11.89), ("lamps", 12.92), ("stamps", -8.91)):
        assert re.search(rf"^  {word} .* {re.escape(str(score))}$", by_hand, re.MULTILINE)
    z = {"books": 1.8, "houses": -1.9, "lamps": 2.9, "stamps": -0.9}
    total = sum(map(math.exp, z.values()))
    for word, score in z.items():
        row = numbers(word, by_hand, after="exp(z)")
        assert row == pytest.approx([score, math.exp(score), math.exp(score) / total], abs=6e-4)
    ours, by_op = (re.search(rf"{name} +\[(.*)\]", by_hand)[1].split() for name in ("by hand, p − y", "ops.cross_entropy"))
    assert ours == by_op
    assert float(ours[0]) == pytest.approx(math.exp(1.8) / total - 1)
    steps = [numbers(f"{step} ", by_hand, after="steps down the gradient") for step in range(6)]
    assert all(later[-1] < earlier[-1] for earlier, later in zip(steps, steps[1:]))              # the loss


def test_the_walk_through_the_model(by_hand):
    assert "PASS: gradients of cross_entropy" in by_hand
    assert "PASS: gradients of the fixed-window model's loss" in by_hand
    assert "FAIL" not in by_hand


def test_xor_needs_a_hidden_layer(by_hand):
    assert numbers("no hidden layer", by_hand) == pytest.approx([0.5] * 4, abs=0.05)
    assert numbers("8 hidden units, tanh", by_hand) == pytest.approx([1, 1, 0, 0], abs=0.05)


@pytest.mark.exhaustive
def test_the_bar(trained):
    assert numbers("words to learn from", trained) == [249720, 262864]
    assert numbers("uniform, ln c", trained) == [9.568, 9.568]
    assert numbers("order 1", trained) == pytest.approx([6.134, 6.056], abs=2e-3)
    assert numbers("order 2", trained) == pytest.approx([5.407, 5.168], abs=2e-3)
    assert numbers("order 3", trained) == pytest.approx([5.380, 5.050], abs=2e-3)


@pytest.mark.exhaustive
def test_training(trained):
    after = "all learned from the training words"
    unigram, _ = numbers("n-gram, order 1", trained, after)
    neural, _ = numbers("fixed window, T = 4", trained, after)
    assert neural < unigram - 0.1                                    # 150 steps, and it has learned more than frequencies
    assert 0 < numbers("λ, chosen on the validation words", trained)[0] < 1
    rows = re.findall(r"^ +\d\.\d +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", trained, re.MULTILINE)
    train, *_ = zip(*[map(float, row) for row in rows])
    assert train[-1] < train[0] - 0.3                                # by heart
    sizes = {name: numbers(f"{name:<16}   4", trained) for name in ("sum", "maximum", "product", "two layers")}
    assert [size for size, *_ in sizes.values()] == [32, 32, 32, 4 * 32]
    assert sizes["two layers"][2] - numbers("concatenation      4", trained)[2] == 32 * 32 + 32       # W (k, k) and b
    for length in (1, 2, 4, 8):
        size, weights, *_ = numbers(f"concatenation      {length}", trained)
        assert (size, weights) == (length * 32, length * 32 * 32)


@each
def test_prints_lines_that_fit_a_terminal(lab, request):
    lines = [line for line in request.getfixturevalue(lab).splitlines() if not line.startswith(("  note:", "  ·"))]
    assert max(map(len, lines)) <= 112

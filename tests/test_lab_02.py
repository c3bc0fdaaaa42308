"""Labs 02 and 02b run from any folder, draw what they say they draw, and find the numbers that are known."""

import math
import re

from tests.reader import lab_output

import pytest

pytestmark = pytest.mark.lab

by_hand = lab_output("02_fixed_window", ["02_one_hot", "02_softmax_layer", "02_compositions"])
trained = lab_output("02b_window_on_shakespeare", ["02_training", "02_windows", "02_word_vectors"])


def numbers(start, text, after=""):
    """The numbers after the first line that starts so, behind the words `after`."""
    found = re.search(rf"^ *{re.escape(start)}(.*)", text[text.index(after) :], re.MULTILINE)
    assert found, f"no line starts with {start!r} after {after!r}"
    return [float(each.replace(",", "")) for each in re.findall(r"(?<!\S)[-+]?[\d.,]*\d(?:e[-+]\d+)?(?!\S)", found[1])]


def test_one_hot(by_hand):
    assert "bag of 'the movie film' [0 0 0 1 1 1],  of 'film the movie' [0 0 0 1 1 1]" in by_hand
    for pair in ("movie – film", "love – hate"):
        one_hot, _, learned = numbers(pair, by_hand)
        assert one_hot == 0
        assert learned > 0.9                                         # they stood in the same places
    assert numbers("movie – love", by_hand)[2] < 0.5
    assert numbers("largest difference of the values", by_hand)[-1] == 0
    assert numbers("largest difference of the gradients", by_hand)[-1] < 1e-4         # float32, sums of 256
    expected, measured = re.search(r"rows of dE that are not zero +expected (\d+) +measured (\d+)", by_hand).groups()
    assert expected == measured
    time, memory = numbers("factor", by_hand)
    assert time > 5                                                  # some hundreds on a quiet machine
    assert memory == pytest.approx(14295 / 2, abs=1)


def test_softmax_layer(by_hand):
    for word, score in (("books", 1.83), ("houses", -11.89), ("lamps", 12.92), ("stamps", -8.91)):
        assert re.search(rf"^  {word} .* sum +{re.escape(str(score))}$", by_hand, re.MULTILINE)
    z = {"books": 1.8, "houses": -1.9, "lamps": 2.9, "stamps": -0.9}
    total = sum(map(math.exp, z.values()))
    for word, score in z.items():
        row = numbers(word, by_hand, after="exp(z)")
        assert row == pytest.approx([score, math.exp(score), math.exp(score) / total], abs=6e-4)
    ours, by_op = (re.search(rf"{name} +\[(.*)\]", by_hand)[1].split() for name in ("by hand, p − y", "ops.cross_entropy"))
    assert ours == by_op
    assert float(ours[0]) == pytest.approx(math.exp(1.8) / total - 1)
    steps = [numbers(f"{step} ", by_hand, after="steps down the gradient") for step in range(6)]
    assert all(later[0] > earlier[0] and later[-1] < earlier[-1] for earlier, later in zip(steps, steps[1:]))


def test_compositions(by_hand):
    after = "3. Composition"
    assert numbers("sum", by_hand, after)[-2:] == [0, 1]              # the distance of the phrases, a word's gradient
    assert numbers("mean", by_hand, after)[-2:] == [0, 0.333]
    distance, gradient = numbers("concatenation", by_hand, after)[-2:]
    assert distance > 1
    assert gradient == 1
    assert "mean = sum/3: True" in by_hand


def test_the_walk_through_the_model(by_hand):
    ours, by_model = re.search(r"L by hand ([\d.]+), by model.loss ([\d.]+)", by_hand).groups()
    assert ours == by_model
    differences = re.findall(r"^  (\S+) +largest difference of the gradients (\S+)$", by_hand, re.MULTILINE)
    assert [name for name, _ in differences] == ["embedding.table", "hidden.W", "hidden.b", "readout.W", "readout.b"]
    assert all(float(difference) < 1e-12 for _, difference in differences)
    assert "PASS: gradients of cross_entropy" in by_hand
    assert "PASS: gradients of the fixed-window model's loss" in by_hand
    assert "'the' stands in 3 places; its row of dE is the sum of 3 pieces: True" in by_hand
    assert "FAIL" not in by_hand


def test_xor_needs_a_hidden_layer(by_hand):
    loss, *same = numbers("no hidden layer", by_hand)
    assert loss == pytest.approx(math.log(2), abs=0.01)
    assert same == pytest.approx([0.5] * 4, abs=0.05)
    loss, *same = numbers("8 hidden units, tanh", by_hand)
    assert loss < 0.05
    assert same == pytest.approx([1, 1, 0, 0], abs=0.05)


def test_the_bar(trained):
    assert numbers("words to learn from", trained) == [249720, 262864]
    assert numbers("uniform, ln c", trained) == [9.568, 9.568]
    assert numbers("order 1", trained) == pytest.approx([6.134, 6.056], abs=2e-3)
    assert numbers("order 2", trained) == pytest.approx([5.407, 5.168], abs=2e-3)
    assert numbers("order 3", trained) == pytest.approx([5.380, 5.050], abs=2e-3)
    assert "LUCENTIO: 0 times in training" in trained                 # the validation words are of another play
    assert numbers("untrained, b₂ = 0", trained)[0] == 9.568


def test_training(trained):
    after = "all learned from the training words"
    unigram, trigram = (numbers(f"n-gram, order {order}", trained, after)[0] for order in (1, 3))
    neural, _ = numbers("fixed window, T = 4", trained, after)
    assert neural < unigram - 0.1                                    # 150 steps, and it has learned more than frequencies
    mixed = numbers("mixture", trained, after="nats per test word   ")[0]
    assert mixed < min(neural, trigram)
    assert 0 < numbers("λ, chosen on the validation words", trained)[0] < 1
    rows = re.findall(r"^ +\d\.\d +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", trained, re.MULTILINE)
    train, validation, *_ = zip(*[map(float, row) for row in rows])
    assert train[-1] < train[0] - 0.3                                # by heart
    assert validation[-1] > min(validation) + 0.05                   # and no better for it
    for length in (1, 2, 4, 8):
        size, weights, *_ = numbers(f"concatenation    {length}", trained)
        assert (size, weights) == (length * 32, length * 32 * 32)


def test_similar_words(trained):
    trigram, neural = (numbers(name, trained, after="mean total variation")[-1] for name in ("trigram", "fixed window"))
    assert neural < trigram                                          # a neighbour is no random word, for the network


def test_prints_lines_that_fit_a_terminal(by_hand, trained):
    lines = [line for line in (by_hand + trained).splitlines() if not line.startswith("  note:")]
    assert max(map(len, lines)) <= 112

"""Labs 01 and 01b run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import lab_output

import pytest

pytestmark = pytest.mark.lab

counting = lab_output("01_counting_words", ["01_weather", "01_bigram_table", "01_sparsity"])
smoothing = lab_output("01b_smoothing", ["01_kneser_ney", "01_smoothing", "01_reciting"])


def numbers(start, text, which=0):
    """The numbers in the line that starts so, after its start; `which` of them if there are several."""
    lines = [line for line in text.splitlines() if line.strip().startswith(start)]
    assert len(lines) > which, f"no line starts with {start!r}"
    rest = lines[which].strip().removeprefix(start).replace(",", "")
    return [float(found) for found in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", rest)]


def part(output, first, after):
    """The output from one string up to another."""
    assert first in output
    return output.split(first, 1)[1].split(after, 1)[0]


def test_the_weather(counting):
    weather = part(counting, "1. The weather", "2. The corpus")
    for line, expected in (("A(sunny → sunny)", 3 / 5), ("A(sunny → rainy)", 2 / 5), ("A(rainy → sunny)", 1 / 3),
                           ("A(rainy → rainy)", 2 / 3), ("π(sunny)", 1 / 2)):  # fmt: skip
        assert numbers(line, weather) == [pytest.approx(expected, abs=5e-4)] * 2
    assert numbers("by hand", weather)[:2] == [-6.661, -6.661]
    assert numbers("more likely than the counted one:", weather) == [0]
    assert numbers("best of 10,000 at random", weather)[0] < -6.661
    assert numbers("sunny among 20,000 days", weather) == [0.455, pytest.approx(5 / 11, abs=0.015)]


def test_counts_prefixes_and_back_off(counting):
    assert "292,072 words, 14,295 different" in counting
    assert "262,864 to count, 29,208 to test" in counting
    assert numbers("York", part(counting, "3. The prefix game", "The numerator")) == [9, 0.265, 0.265]
    assert numbers("I will not go", counting) == [0, 38, 0, 2]
    assert "2 word(s) are not among the 14295 of the vocabulary: 'students'" in counting
    back_off = part(counting, "Back-off from", "What one word tells")
    assert numbers("servants open their", back_off) == [0]
    assert numbers("their", back_off) == [423]
    assert numbers("the model, all three words", back_off) == numbers("'their' alone", back_off)
    gained = [numbers(f"d = {d}", counting)[1] for d in (1, 2, 3)]
    assert gained[0] > 2 * gained[1] > 4 * gained[2] > 0              # the nearest word tells most: keep it


def test_sparsity(counting):
    table = part(counting, "4. Sparsity", "The test words, with")
    assert [numbers(str(n), table)[0] for n in (1, 2, 7)] == [13_495, 92_597, 256_588]
    rows = part(counting, "The test words, with", "So the whole test")
    for n in range(1, 8):
        assert sum(numbers(str(n), rows)) == pytest.approx(100, abs=0.11)
    assert numbers("1", rows) == [95.7, 4.3, 0]
    assert numbers("4", rows)[0] < 20
    assert "7,565 of 29,208 words have probability 0" in counting


def test_smoothing_by_hand_and_by_the_model(smoothing):
    section = part(smoothing, "1. Smoothing", "2. Test words")
    for k in ("1", "0.1", "0.01", "0.001"):
        by_formula, by_model = numbers(f"k = {k} ", section)
        assert by_formula == by_model < 9 / 34
    assert numbers("VINCENTIO", section)[:2] == [193, 1]
    for n in (2, 3):
        assert numbers(f"order {n} ", section)[-1] > 0.05           # what company is worth
    halves = part(section, "Bigrams that occur r times", "Kneser-Ney on")
    assert all(0.6 < numbers(str(r), halves)[-1] < 1.5 for r in range(1, 7))
    assert "best D of the trigram model: 0.9;" in section
    by_hand = [numbers("by hand", section, which) for which in range(3)]
    assert all(ours == model for ours, model in by_hand)
    york, france, milan = (ours for ours, _ in by_hand)
    assert 0.3 < york < 24 / 71
    assert york > 100 * france > 10_000 * milan > 0


def test_the_bar(smoothing):
    """The figures of other programs: 6.06, 5.17, 5.05, 5.07 for Kneser-Ney of orders 1, 2, 3, 5."""
    assert "uniform: 9.568" in smoothing
    losses = part(smoothing, "2. Test words", "perplexity")
    kneser_ney, modified = numbers("kneser-ney", losses), numbers("modified-kneser-ney", losses)
    assert [kneser_ney[n - 1] for n in (1, 2, 3, 5)] == pytest.approx([6.06, 5.17, 5.05, 5.07], abs=0.006)
    assert modified[2] == pytest.approx(5.034, abs=0.002)
    assert min(modified) == modified[2]
    add_k, backoff = numbers("add-k", losses), numbers("stupid-backoff", losses)
    assert add_k[1:] == sorted(add_k[1:])                             # longer histories make them worse
    assert backoff[1:] == sorted(backoff[1:])
    assert backoff[0] < kneser_ney[0]
    perplexities = part(smoothing, "perplexity, equally", "models counted")
    assert numbers("modified-kneser-ney", perplexities)[2] == pytest.approx(153.5, abs=1)

    share, each, adds, of_loss = numbers("new in the test", smoothing)
    assert share == 4.3
    assert each > 9.568                                               # dearer than a uniform guess
    assert adds == pytest.approx(share / 100 * each, abs=0.01)
    assert of_loss > 10


def test_reciting(smoothing):
    table = part(smoothing, "Reciting: passages", "The longest passage")
    rows = {n: numbers(n, table) for n in ("1", "2", "3", "5", "7")}
    means = [row[0] for row in rows.values()]
    assert means == sorted(means)
    assert rows["7"][1] > 50                                          # longest passage, maximum likelihood
    assert rows["7"][3] < 30                                          # and with Kneser-Ney
    assert numbers("test text", table)[0] < 4


def test_bad_input(smoothing):
    wrong = part(smoothing, "4. What cannot work", "\x00")
    assert "order is 0, expected 1 to 7: the words in a gram, with the predicted one" in wrong
    assert wrong.count("UserError") == 5

"""Labs 01 and 01b run from any folder, draw what they say they draw, find what they expect, and their tables agree."""

import re

from tests.cases import cases
from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

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


@pytest.mark.parametrize(("lab", "least"), cases([("counting", 38)], [("smoothing", 51)]))
def test_all_is_as_expected(lab, least, request):
    output = request.getfixturevalue(lab)
    met = re.search(r"^All (\d+) expectations met\.$", output, re.MULTILINE)
    assert met, [line for line in output.splitlines() if "✗" in line]
    assert int(met[1]) >= least


def test_counts_prefixes_and_back_off(counting):
    assert "262,864 to count, 29,208 to test" in counting
    assert numbers("York", part(counting, "3. The prefix game", "The numerator")) == [9, 0.265, 0.265]
    assert numbers("I will not go", counting) == [0, 38, 0, 2]
    assert "the vocabulary of 14295 words lacks 2 words: 'students'" in counting
    back_off = part(counting, "Back-off from", "What one word tells")
    times, *probabilities = numbers("servants open their", back_off)
    assert times == 0
    assert probabilities == numbers("their", back_off)[1:]


def test_sparsity(counting):
    table = part(counting, "4. Sparsity", "The test words, with")
    assert [numbers(str(order), table)[0] for order in (1, 2, 7)] == [13_495, 92_597, 256_588]
    rows = part(counting, "The test words, with", "So the whole test")
    for order in range(1, 8):
        assert sum(numbers(str(order), rows)) == pytest.approx(100, abs=0.11)
    assert numbers("1", rows) == [95.7, 4.3, 0]
    assert "7,565 of 29,208 words have probability 0" in counting


@pytest.mark.exhaustive
def test_smoothing_by_hand_and_by_the_model(smoothing):
    section = part(smoothing, "1. Smoothing", "2. Test words")
    for delta in ("1", "0.1", "0.01", "0.001"):
        by_formula, by_model = numbers(f"δ = {delta} ", section)
        assert by_formula == by_model < 9 / 34
    assert numbers("VINCENTIO", section)[:2] == [193, 1]
    halves = part(section, "Bigrams that occur i times", "Kneser-Ney on")
    assert all(0.6 < numbers(str(i), halves)[-1] < 1.5 for i in range(1, 7))
    york, france, milan = (numbers("p_3", section, which)[-1] for which in range(3))
    assert 0.3 < york < 24 / 71
    assert york > 100 * france > 10_000 * milan > 0


@pytest.mark.exhaustive
def test_the_bar(smoothing):
    """The figures of other programs: 6.06, 5.17, 5.05, 5.07 for Kneser-Ney of orders 1, 2, 3, 5."""
    losses = part(smoothing, "2. Test words", "perplexity")
    kneser_ney = numbers("kneser-ney", losses)
    assert [kneser_ney[order - 1] for order in (1, 2, 3, 5)] == pytest.approx([6.06, 5.17, 5.05, 5.07], abs=0.006)
    perplexities = part(smoothing, "perplexity, equally", "✓")
    assert numbers("modified-kneser-ney", perplexities)[2] == pytest.approx(153.5, abs=1)
    share, each, adds, _ = numbers("new in the test", smoothing)
    assert adds == pytest.approx(share / 100 * each, abs=0.01)


@pytest.mark.exhaustive
def test_reciting(smoothing):
    table = part(smoothing, "Reciting: passages", "The longest passage")
    rows = {order: numbers(order, table) for order in ("1", "2", "3", "5", "7")}
    assert rows["7"][3] < 30                                          # Kneser-Ney does not recite


@pytest.mark.exhaustive
def test_bad_input(smoothing):
    wrong = part(smoothing, "4. Invalid settings", "\x00")
    assert "order is 0, expected a whole number of at least 1" in wrong
    assert wrong.count("UserError") == 5

"""Lab 09b runs from any folder, meets its expectations with --quick, and draws what it says it draws."""

import re

from tests.reader import lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

FIGURES = "09b_one_attention", "09b_opinions", "09b_sides", "09b_guesses", "09b_layers", "09b_vectors"
output = lab_output("09b_masked_words_and_probing", FIGURES)


def numbers(start, text):
    """All numbers after the start of a line, percent signs dropped."""
    found = re.search(rf"^{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "").rstrip("%")) for each in re.findall(r"-?\d[\d.,]*(?:e[-+]\d+)?%?", found[1])]


def test_expectations(output):
    assert "✗" not in output
    assert re.search(r"\nAll \d+ expectations met\.\n", output)


def test_my_language_model(output):
    assert numbers("word 2 changed: outputs 0–3 change by", output)[:2] == [0, 0]
    assert output.count("346 entries of 12 parameters judged\n") == 2


def test_what_the_skip_connection_is_worth(output):
    loss = {name: numbers(name, output)[0] for name in ("uniform  ", "unigram  ", "bigram  ")}
    alone, with_skip, gpt = (numbers(name, output)[1] for name in ("one attention  ", "with a skip conn", "GPT of one layer  "))
    assert loss["bigram  "] < with_skip < alone < loss["unigram  "] < loss["uniform  "]
    assert gpt < alone


def test_why_80_10_10(output):
    names = "80/10/10, 240 steps", "always [MASK], 240 steps", "80/10/10, 40 steps", "all words, 40 steps"
    usual, always, early, every = (numbers(name, output) for name in names)      # training loss, [MASK], itself, …
    assert always[4] < usual[4] / 2                      # it does not believe a word that it sees
    assert every[2] < early[2]                           # a splendid loss, for copying,
    assert every[1] > early[1] - 0.1                     # which is not worth anything at hidden words


def test_both_sides(output):
    both = numbers("both sides  ", output)
    assert min(both) < both[0] - 0.1                     # where nothing is visible
    for name in ("before", "after"):
        gain, deviation = numbers(f"both sides instead of only {name}:", output)
        assert gain > deviation


def test_guesses(output):
    assert output.count("  true: ") == 6
    assert "put back: 'To be, or not to" in output


def test_probes(output):
    plays = output.partition("Plays that no model reads: ")[2].partition(" texts to train on")[0]
    assert plays.count(",") >= 11
    assert "hamlet" in plays
    largest = numbers("largest genre  ", output)[0]
    layers = numbers("trained GPT  ", output)[::2]
    assert len(layers) == 3
    assert min(numbers("random GPT  ", output)[::2]) > largest           # random layers keep some of it


def test_word_vectors(output):
    table = output.split("4. Accuracy on three plays of each genre")[1]
    largest, bayes, logistic = numbers("largest", table)
    assert largest < logistic < bayes
    for name in ("random  ", "co-occurrences  ", "GPT's  "):
        probe, fixed, _, tuned, _ = numbers(name, table)
        assert largest < probe < bayes
        assert largest < tuned
    assert numbers("the whole GPT  ", table)[0] > numbers("the same, untrained  ", table)[0]

"""Passages of Shakespeare by genre, and the plays that are held out of them."""

from collections import Counter
from importlib import import_module

from mini_tf.data import spoken_lines
from mini_tf.errors import UserError
from mini_tf.text import Passage, genre_passages, split_plays, tokenize

import pytest

passages_module = import_module("mini_tf.text.passages")


@pytest.fixture(scope="module")
def lines_of(lab_text):
    return spoken_lines()


@pytest.fixture(scope="module")
def passages(lab_text):
    return genre_passages()


def test_each_genre_has_its_plays(passages, lines_of):
    plays = {(passage.genre, lines_of[passage.play][0], passage.play) for passage in passages}
    assert Counter((genre, folder) for genre, folder, _ in plays) == {
        ("comedy", "comedies"): 8,
        ("history", "histories"): 11,
        ("tragedy", "tragedies"): 6,
        ("tragedy", "roman"): 4,
    }
    assert Counter(passage.genre for passage in passages) == {"comedy": 2858, "history": 4804, "tragedy": 4366}


def test_passages_are_all_that_is_spoken_in_order(passages, lines_of):
    texts = {}
    for text, _, play in passages:
        texts.setdefault(play, []).extend(text.split("\n"))
    for play, lines in texts.items():
        spoken = lines_of[play][1]
        assert lines == spoken[: len(lines)]
        assert len(tokenize(" ".join(spoken[len(lines):]))) < 30         # what was dropped


def test_passages_end_with_the_line_that_has_the_last_word(passages):
    last = {passage.play: i for i, passage in enumerate(passages)}       # the last of each play
    for i, (text, _, play) in enumerate(passages):
        *before, _ = text.split("\n")
        words = len(tokenize(text.replace("\n", " ")))
        assert words >= (30 if i == last[play] else 60)
        assert len(tokenize(" ".join(before))) < 60
    assert any(len(tokenize(passages[i].text.replace("\n", " "))) < 60 for i in last.values())


SMALL = {
    "a-comedy": ("comedies", ["One two three,", "four.", "Five six seven eight.", "Nine!"]),
    "a-history": ("histories", ["One two three four,", "five six,", "seven"]),
    "a-tragedy": ("tragedies", ["One two three four five six seven", "eight nine"]),
    "a-roman-play": ("roman", ["One two three"]),
    "a-problem": ("problems", ["One two three four five"]),
    "a-romance": ("romances", ["One two three four five"]),
}


def test_small_plays_are_cut_as_promised(monkeypatch):
    monkeypatch.setattr(passages_module, "spoken_lines", lambda: SMALL)
    assert genre_passages(6) == [
        ("One two three,\nfour.", "comedy", "a-comedy"),                 # six: punctuation marks are words
        ("Five six seven eight.\nNine!", "comedy", "a-comedy"),
        ("One two three four,\nfive six,", "history", "a-history"),      # the rest, one word, is dropped
        ("One two three four five six seven", "tragedy", "a-tragedy"),   # two words are dropped
        ("One two three", "tragedy", "a-roman-play"),                    # three, half of six, are kept
    ]
    assert genre_passages(1)[-1].text == "One two three"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (0, "words is 0, expected a whole number of at least 1"),
        (-60, "words is -60, expected a whole number"),
    ],
)
def test_passages_of_no_use_are_refused(monkeypatch, words, message):
    monkeypatch.setattr(passages_module, "spoken_lines", lambda: SMALL)
    with pytest.raises(UserError, match=message):
        genre_passages(words)


def by_genre(passages):
    return Counter(genre for genre, _ in {(passage.genre, passage.play) for passage in passages})


SOME = [Passage(f"{genre} {play} {i}", genre, f"{genre} {play}") for play in range(5) for genre in "ab" for i in range(3)]


def test_whole_plays_are_held_out():
    for count in (1, 2, 4):
        rest, held_out = split_plays(SOME, count)
        assert by_genre(held_out) == {"a": count, "b": count}
        assert by_genre(rest) == {"a": 5 - count, "b": 5 - count}
        assert not {passage.play for passage in rest} & {passage.play for passage in held_out}
        assert rest == [passage for passage in SOME if passage not in held_out]
        assert held_out == [passage for passage in SOME if passage not in rest]


def test_the_seed_decides_which_plays():
    assert split_plays(SOME, seed=3) == split_plays(SOME, seed=3)
    assert len({tuple(split_plays(SOME, seed=seed)[1]) for seed in range(20)}) > 10


@pytest.mark.parametrize(
    ("passages", "held_out", "message"),
    [
        (SOME, 0, "held_out is 0, expected a whole number of at least 1"),
        (SOME, 5, r"the genre 'a' has 5 plays, so 5 cannot be held out with one left to learn from; hold out fewer"),
        ([*SOME, Passage("x", "c", "x"), Passage("y", "c", "x")], 1, r"the genre 'c' has 1 play, so 1 cannot"),
    ],
)
def test_a_genre_must_keep_a_play(passages, held_out, message):
    with pytest.raises(UserError, match=message):
        split_plays(passages, held_out)


def test_no_play_of_shakespeare_is_on_both_sides(passages):
    rest, held_out = split_plays(passages)
    assert by_genre(held_out) == {"comedy": 2, "history": 2, "tragedy": 2}
    assert by_genre(rest) == {"comedy": 6, "history": 9, "tragedy": 8}
    assert len(rest) + len(held_out) == len(passages)

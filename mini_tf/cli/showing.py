"""What the commands print: tables, coloured words, a text that is being written."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mini_tf.cli.app import out

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mini_tf.models import TextModel
    from mini_tf.models.saliency import Saliency
    from mini_tf.text import Vocabulary
    from mini_tf.types import Array


def numbers_table(columns: Sequence[str], rows: list[list[str]], bold: int | None = None) -> Table:
    """A table with labels in the first column and numbers in the others; bold: the row to stress"""
    table = Table(*columns, box=None, header_style="bold", pad_edge=False, show_header=any(columns))
    for column in table.columns:
        column.no_wrap, column.justify = True, "right"
    table.columns[0].justify = "left"
    for row in rows:
        table.add_row(*row)
    if bold is not None:
        table.rows[bold].style = "bold"
    return table


def coloured_words(words: list[str], found: "Saliency") -> Text:
    """A text's words on blue for those that speak for the class, orange for those against it; see `Saliency`."""
    line = Text()
    for word, norm, contribution in zip(words, found.norm / (found.norm.max() or 1), found.contribution):
        full = (90, 160, 255) if contribution > 0 else (255, 150, 50)
        faded = ",".join(str(round(255 - (255 - value) * float(norm))) for value in full)
        line.append(f"{word}", style=f"black on rgb({faded})").append(" ")
    return line


def strongest_words(words: list[str], found: "Saliency", name: str, most: int = 4) -> str:
    """Two lines: the words that speak most for the class, and most against it, with their contributions."""
    order = found.contribution.argsort()
    sides = {
        f"blue, for {name}": [t for t in order[::-1][:most] if found.contribution[t] > 0],
        f"orange, against {name}": [t for t in order[:most] if found.contribution[t] < 0],
    }
    return "\n".join(
        f"{side}: {', '.join(f'{words[t]} {found.contribution[t]:+.3f}' for t in some) or 'none'}"
        for side, some in sides.items()
    )


def write_on(model: "TextModel", vocabulary: "Vocabulary", prompt: "Array", words: int, choose: Callable) -> None:
    """Print the prompt, dimmed, and then each word, or other token, as the model chooses it."""
    from itertools import chain, islice, takewhile

    from mini_tf.decoding import generate

    ends = vocabulary.first, vocabulary.end              # of a text; those of most vocabularies are None
    written = takewhile(lambda i: i not in ends, generate(model, prompt, words, choose))
    pieces = vocabulary.stream(vocabulary.words[i] for i in chain(prompt, written))
    out.print(Text("".join(islice(pieces, len(prompt))), style="dim"), end="")
    for piece in pieces:
        out.print(Text(piece), end="")
    out.print()

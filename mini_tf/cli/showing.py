"""What the commands print: tables, coloured words, a text that is being written."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mini_tf.cli.app import out

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mini_tf.models import TextModel
    from mini_tf.models.saliency import Saliency
    from mini_tf.text import Vocabulary
    from mini_tf.types import Array


def loss_table(results: dict, c: int) -> Table:
    """The losses of a run, beside those of guessing."""
    from mini_tf.metrics import perplexity

    table = Table("", "nats per word", "perplexity", box=None, header_style="bold")
    table.columns[1].justify = table.columns[2].justify = "right"
    names = {
        "uniform": f"every one of {c:,} words alike", "unigram": "by how often a word occurs",
        "train": "model, training words", "validation": "model, validation words", "test": "model, test words",
    }  # fmt: skip
    for key, name in names.items():
        loss = results[key]
        table.add_row(name, f"{loss:.3f}", f"{perplexity(loss):,.0f}", style="bold" if key == "test" else None)
    return table


def comparison_table(rungs: list) -> Table:
    """The models of a comparison: size, time, and the loss on all, on known and on new test words."""
    columns = "", "numbers", "seconds", "nats", "perplexity", "known", "new"
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.no_wrap, column.justify = True, "right"
    table.columns[0].justify = "left"
    for r in rungs:
        table.add_row(
            r.model, f"{r.parameters:,}", f"{r.seconds:,.0f}", f"{r.test:.3f}", f"{r.perplexity:,.0f}",
            f"{r.known:.3f}", f"{r.new:.3f}",
        )  # fmt: skip
    return table


def confusion_table(confusion: "Array", classes: list[str]) -> Table:
    """How often a classifier took each class for each."""
    table = Table("it is", *(f"says {name}" for name in classes), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in zip(classes, confusion):
        table.add_row(name, *(f"{count:,}" for count in row))
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


def write_on(model: "TextModel", vocabulary: "Vocabulary", prompt: list[int], words: int, choose: Callable) -> None:
    """Print the prompt, dimmed, and then each word as the model chooses it."""
    from itertools import chain, islice

    from mini_tf.decoding import generate
    from mini_tf.text import spaced

    pieces = spaced(vocabulary.words[i] for i in chain(prompt, generate(model, prompt, words, choose)))
    out.print(Text("".join(islice(pieces, len(prompt))), style="dim"), end="")
    for piece in pieces:
        out.print(Text(piece), end="")
    out.print()

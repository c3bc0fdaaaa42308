"""What the labs share: the --quick switch, showing figures, printing words, and measures of language models."""

import argparse
import importlib.util
import os
import textwrap
import unicodedata
from pathlib import Path

import _expect
from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.metrics import log_softmax_at
from mini_tf.terminal import write_in_any_encoding
from mini_tf.training import windows_ending_at
from mini_tf.training.figures import save_figure

import numpy as np

FIGURES = Path(os.environ.get("MINI_TF_LAB_FIGURES", Path(__file__).parent / "figures"))
shown_figures = []                      # their paths, in order


def quick_mode(description):
    """True with --quick, or with MINI_TF_QUICK=1 in the environment (a notebook has no arguments): smaller models and
    fewer steps, for a run of under a minute that shows that everything works.
    """
    write_in_any_encoding()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, under a minute; or MINI_TF_QUICK=1")
    known, _ = parser.parse_known_args()                 # a notebook's kernel has arguments of its own
    _expect.QUICK = known.quick or os.environ.get("MINI_TF_QUICK", "") not in ("", "0")
    return _expect.QUICK


def show(figure, name):
    """Save a figure as labs/figures/NAME.png, and show it in a notebook."""
    path = FIGURES / f"{name}.png"
    save_figure(path, figure, dpi=110)
    shown_figures.append(path)
    print(f"figure: {path.parent.parent.name}/{path.parent.name}/{path.name}")
    try:
        from IPython import get_ipython
        from IPython.display import Image, display
    except ImportError:
        return
    if get_ipython() is not None:
        display(Image(filename=str(path)))


def show_page(exploration, name):
    """Write an Exploration to labs/figures/NAME.html."""
    path = FIGURES / f"{name}.html"
    exploration.write(path)
    print(f"page: labs/figures/{path.name}, to be opened in a browser")


def word_losses(model, ids, most):
    """(words, losses): −log π of `most` evenly spaced words of ids, each given the T words before it."""
    windows = windows_ending_at(ids, np.linspace(model.T, len(ids) - 1, most).astype(int), model.T)
    losses = []
    for some in np.array_split(windows, max(most // 128, 1)):
        losses.append(-log_softmax_at(model.logits(some[:, :-1]), some[:, -1]))
    return windows[:, -1], np.concatenate(losses)


def strict():
    """The function that makes of a NumPy array one that, as a GPU's, NumPy refuses; None without mini_tf's tests"""
    path = Path(__file__).parent.parent / "tests" / "strict.py"
    if not path.exists():
        return None
    specification = importlib.util.spec_from_file_location("strict", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.strict


def table(head, rows, form="{:,}", title=""):
    """Print a table: its columns as wide as their longest entries, those with numbers flush right, texts flush left.

    head    the names of the columns; None: no such line
    rows    tuples of entries, or {first entry: the others}, where a single other needs no tuple
    form    the format of numbers: one for all columns after the first, or one for each; None in a row prints nothing
    title   a line above the table, and an empty one above that
    """
    if isinstance(rows, dict):
        rows = [(first, *(others if np.iterable(others) and not isinstance(others, str) else [others]))
                for first, others in rows.items()]       # fmt: skip
    rows = [tuple(row) for row in rows]
    count = max(map(len, rows))
    forms = ["{:,}", *([form] * count if isinstance(form, str) else form)]
    lines = [] if head is None else [list(map(str, head))]
    lines += [["" if entry is None else entry if isinstance(entry, str) else each.format(entry)
               for entry, each in zip(row, forms)] for row in rows]      # fmt: skip
    print(f"\n{title}\n" if title else "", end="")
    numbers = {k for row in rows for k, entry in enumerate(row) if not isinstance(entry, (str, type(None)))}
    widths = [max(width_of(line[k]) for line in lines if k < len(line)) for k in range(count)]
    for line in lines:
        gaps = [" " * (width - width_of(entry)) for width, entry in zip(widths, line)]
        entries = [gap + entry if k in numbers else entry + gap for k, (gap, entry) in enumerate(zip(gaps, line))]
        print("  " + "   ".join(entries).rstrip())


def width_of(text):
    """Its columns on a terminal: an accent that is a character of its own, as in x̂, takes none"""
    return sum(not unicodedata.combining(character) for character in text)


def refused(attempt, what="UserError", width=90):
    """Print the error message of an attempt that cannot succeed, and return whether there was one."""
    try:
        attempt()
        return False
    except UserError as error:
        wrapped(f"{what}: {error}", rest="    ", width=width)
        return True


def gradient_by_distance(x, h_0, Wx, Wh, b, activation):
    """‖∂(v·h_T)/∂x_{T−d}‖ of a recurrent network, d = 0 … T − 1, for each text, v random: (B, T)"""
    h, backward = ops.rnn(x, h_0, Wx, Wh, b, activation)
    dh = np.zeros_like(h)
    dh[:, -1] = np.random.default_rng(5).standard_normal(h[:, -1].shape)         # v, different for each text
    dx, *_ = backward(dh)
    return np.linalg.norm(dx, axis=-1)[:, ::-1]


def typical(gradients):
    """The geometric mean over texts of gradients by distance (B, T), relative to that at d = 0: (T,)"""
    mean = np.exp(np.log(np.maximum(gradients, 1e-300)).mean(0))
    return mean / mean[0]


def shown(word):
    """A word as printed in a table; a line break, which is a word, too, becomes \\n"""
    return "\\n" if word == "\n" else word


def words_of(vocabulary, ids):
    """Words as printed in one line, with "/" for a line break"""
    return " ".join("/" if vocabulary.words[i] == "\n" else vocabulary.words[i] for i in ids)


def listed(vocabulary, ids, numbers, form="{:.3f}"):
    """Words, each with a number, in one line, such as continuations and their probabilities"""
    return "   ".join(f"{shown(vocabulary.words[i])} {form.format(number)}" for i, number in zip(ids, numbers))


def wrapped(text, first="  ", rest=None, width=100):
    """Print a paragraph, its first line after `first`, and the others after `rest`; None: after as much space."""
    rest = " " * len(first) if rest is None else rest
    print(textwrap.fill(text, width, initial_indent=first, subsequent_indent=rest))


def cosines(vectors):
    """The cosine of each vector (a row) with each: (rows, rows)"""
    directions = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return directions @ directions.T


def repeated_triples(ids):
    """The share of runs of three words that have occurred before in the same text"""
    triples = list(zip(ids, ids[1:], ids[2:]))
    return 1 - len(set(triples)) / len(triples)


def loop_length(ids):
    """The smallest p for which the last 100 words repeat every p words; None if they do not."""
    return next((p for p in range(1, 101) if np.array_equal(ids[-100:], ids[-100 - p : -p])), None)

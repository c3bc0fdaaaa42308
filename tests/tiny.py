"""Every preset in small, with something to learn from: for tests that train all kinds of models."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from mini_tf.parallel import join
from mini_tf.training import figures
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import NullRun, Run
from mini_tf.training.runner import train as train_preset

import numpy as np

NAMES = list(PRESETS)
SIZES = {"T": 6, "L": 1, "H": 2, "G": 1, "m": 4, "f": 8, "k": 6, "dropout": 0.2, "word_dropout": 0.2}
SUBJECTS = {"je": "I", "tu": "you", "nous": "we", "elles": "they"}
VERBS = {"vois": "see", "veux": "want", "cherche": "seek", "aime": "like"}
THINGS = {"le chat": "the cat", "la mer": "the sea", "un livre": "a book", "tout": "all"}


def preset(name, **changes):
    """The preset in small; 12 steps, measured after every third."""
    whole = PRESETS[name]
    sizes = {key: SIZES.get(key, value) for key, value in whole.model.items()}
    small = {"model": sizes, "steps": 12, "every": 3, "warm_up": 3, "learning_rate": 1e-2, "patience": 5}
    if whole.kind == "translation":
        small |= {"words": 60, "least": 1, "longest": 4, "tested": 4, "model": sizes | {"n": 8}}
    elif whole.kind == "classification":
        small |= {"words": 40, "least": 1, "n": 8}
    elif whole.kind == "masking":
        small |= {"words": 60, "n": 8}
    else:
        small |= {"n": 8, "batch": 4, "anew": 3, "validation_words": 40, "sample_words": 5}
    return replace(whole, **small | changes)


def lines(count=60):
    """Lines of four words, of which some are rare"""
    words = np.minimum(np.random.default_rng(0).zipf(1.4, (count, 4)), 50)
    return [" ".join(f"w{i}x" for i in line) for line in words]


def pairs():
    """(French, English) sentences"""
    return [
        (f"{french} {verb} {thing}.", f"{english} {does} {something}.")
        for french, english in SUBJECTS.items() for verb, does in VERBS.items() for thing, something in THINGS.items()
    ]  # fmt: skip


class Sketch:
    """In place of a picture, which takes most of the time of a small training: what it would be drawn from."""

    def __init__(self, rows, *given, **options):
        self.given = [_without_times(row) if isinstance(row, dict) else row for row in rows], given, options

    def savefig(self, path, **_):
        Path(path).write_text(repr(self.given), encoding="utf-8")


def train(name, run, rescue=None, say=lambda line: None, pictures=False, **changes):
    """Train the small preset into `run`, a Run or a folder: a new one, or one in which a training goes on.

    pictures: draw them; otherwise the files have the numbers that they would be drawn from
    """
    if not pictures:
        drawn = {name: Sketch for name in vars(figures) if name.startswith("draw_")}
        with patch.multiple(figures, **drawn):
            return train(name, run, rescue, say, pictures=True, **changes)
    if not isinstance(run, (Run, NullRun)):
        folder = Path(run)
        if not join().first:
            return train(name, NullRun(folder), say=say, pictures=True, **changes)
        with Run.resume(folder) if (folder / "config.json").exists() else Run.new(folder) as run:
            run.rescue = rescue
            return train(name, run, say=say, pictures=True, **changes)
    small = preset(name, **changes)
    return train_preset(small, data(small), run, device="cpu", say=say)


def data(small):
    """What a small preset learns from"""
    kinds = {
        "translation": pairs,
        "classification": lambda: [(line, "even" if i % 2 else "odd") for i, line in enumerate(lines())],
        "masking": lambda: "\n".join(lines()),
        "language": lambda: "\n".join(lines(160)),
    }
    return kinds[small.kind]()


def contents(folder):
    """{file: its content} of a run folder, without what a clock has measured"""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = os.path.relpath(path, folder)
        if path.is_dir() or path.name == ".lock":
            continue
        if name == "metrics.csv":
            with open(path, newline="", encoding="utf-8") as file:
                found[name] = [_without_times(row) for row in csv.DictReader(file)]
        elif name == "results.json":
            found[name] = _without_times(json.loads(path.read_text(encoding="utf-8")))
        else:
            found[name] = path.read_bytes()
    return found


def _without_times(row):
    return {name: value for name, value in row.items() if "second" not in name}

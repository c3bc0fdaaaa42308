"""A run folder: the model, its settings and its text, how training went, and what the model writes."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
from itertools import chain, count
from pathlib import Path
from typing import Any, Self

from mini_tf.checks import first_difference
from mini_tf.errors import UserError
from mini_tf.files import STANDARD, FolderLock, is_ours, read_text, sweep, write_text
from mini_tf.terminal import quoted
from mini_tf.training.archive import plain
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint
from mini_tf.training.health import NORM
from mini_tf.training.loop import History
from mini_tf.training.state import restore_from, save_training
from mini_tf.training.step import Training
from mini_tf.training.vocabulary_file import AnyVocabulary, vocabulary_of, words_of
from mini_tf.types import Array, PathLike, Say, silent

STATES = 2                           # how many states of the training are kept, the last ones
IDENTITY = "settings", "data"        # of config.json: they determine every number of a training


class Run:
    """A run folder: the files of one training, each written whole or not at all (`mini_tf/files.py`).

    config.json         preset, options of the model and the training, facts about the text, versions
    vocabulary.json     the words, in the order of their ids, or {kind of tokenizer: its content}; a translator's
                        source and target, with the names in each; a classifier's words and classes
    model.safetensors   the best parameters so far
    state/              the last two states of a training that is not finished: what it takes to go on exactly there
    moments/            of a small model, the parameters before its first step and after a tenth, for mini-tf explore
    metrics.csv         a row for each measurement of the validation loss
    curves.png          the losses during training, with the baselines
    gradient_flow.png   the norm of each layer's gradient during training
    results.json        the losses at the end
    sample.txt          a text that the model wrote, or gaps that it filled
    translations.tsv    the test sentences, as a translator translated them, and their references
    predictions.tsv     the test texts, with their labels and the classes that a classifier predicted
    confusion.png       how often it predicted one class for another
    .lock               while a process writes to the folder

    with Run.new("runs/mine") as run:    # no other process writes to the folder inside the block

    command   what `mini-tf train` was given, for config.json: so `--resume` can read the same text
    rescue    a folder for what is in memory, if the run's own cannot be written to any more
    settings  what config.json says
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(folder)
        self.command: dict[str, Any] = {}
        self.rescue: Path | None = None
        self.settings: dict[str, Any] = {}
        self.words: Any = None                           # what vocabulary.json says
        self.identity: str | None = None                 # a hash of settings and data, by which a state knows its run
        self.lock: FolderLock | None = None
        self.made: list[Path] = []                       # folders that `new` has made

    @classmethod
    def new(cls, folder: PathLike | None = None, name: str = "run") -> Self:
        """An empty run folder: `folder`, or the first free of runs/NAME, runs/NAME-2, …; locked for this process.

        Raises UserError when `folder` is a file or not empty, and when it cannot be made.
        """
        if folder is None:
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            folder = next(path for path in map(Path("runs").joinpath, names) if not os.path.lexists(path))
        run = cls(folder)
        run.made = _make(run.folder)
        run.lock = FolderLock(folder)
        if any(not is_ours(path) for path in run.folder.iterdir()):
            run.close()
            raise UserError(f"the folder {folder} is not empty; a run never overwrites one: choose another --run")
        return run

    @classmethod
    def resume(cls, folder: PathLike) -> Self:
        """The run in that folder, whose training can go on; locked for this process.

        Raises UserError when there is none, and when another process is writing to it.
        """
        run = cls.find(folder)
        run.lock = FolderLock(folder)
        sweep(run.folder)
        return run

    @classmethod
    def open(cls, folder: PathLike, training: str = "mini-tf train") -> Self:
        """The run in that folder, to be read. Raises UserError when it is not a run folder, or has no model yet.

        training: the command that would make such a run, for the message
        """
        run = cls.find(folder, training)
        missing = [f for f in ("vocabulary.json", "model.safetensors") if not (run.folder / f).is_file()]
        if missing:
            raise UserError(f"{folder} has no {missing[0]}: its training has not come far enough, or the file was "
                            f"deleted; go on with mini-tf train --resume {folder}")  # fmt: skip
        return run

    @classmethod
    def find(cls, folder: PathLike, training: str = "mini-tf train") -> Self:
        """The run in that folder, in whatever state it is. Raises UserError when it is not a run folder."""
        if not os.path.exists(folder):
            raise UserError(f"there is no folder {folder}; train a run first: {training} --run {folder}")
        if not os.path.isfile(Path(folder) / "config.json"):
            raise UserError(f"{folder} is not a run folder: it has no config.json; name one that mini-tf train made")
        return cls(folder)

    def close(self) -> None:
        """Release the lock. If nothing was written to a new folder, it is removed."""
        if self.lock is None:
            return
        try:
            if all(is_ours(path) for path in self.folder.iterdir()):
                sweep(self.folder)
                self.lock.release()
                for folder in self.made:
                    folder.rmdir()
        except OSError:
            pass                                         # it has vanished, or another process has put something there
        self.lock.release()
        self.lock = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __truediv__(self, name):
        return self.folder / name

    # Writing -------------------------------------------------------------------------------------------------------

    def begin(self, config: dict[str, Any], say: Say = silent) -> None:
        """Before any work: check that a run that goes on is the same training.

        Raises UserError if the run was begun with other settings, or from another text.
        """
        config = plain(config)
        self.identity = identity_of(config)
        if not (self / "config.json").is_file():
            return
        begun = self.config()
        odd, was, now = first_difference("settings", begun.get("settings"), config.get("settings"))
        if was != now:
            raise UserError(f"{self.folder} was trained with {odd} = {was}, expected {now}; choose another --run, or "
                            "delete that folder")  # fmt: skip
        if begun.get("data") != config.get("data"):
            path = begun.get("command", {}).get("path")
            where = f" in {path}" if path else ""
            raise UserError(f"{self.folder} was trained on other data: put back what was{where}, or choose another "
                            "--run")  # fmt: skip
        before, now = begun.get("machine", {}), config.get("machine", {})
        changed = [f"{what} {before.get(what)} → {value}" for what, value in now.items() if before.get(what) != value]
        if changed:
            say(f"note: the machine has changed since the run was begun, and the last digits may, too: "
                f"{', '.join(changed)}")  # fmt: skip

    def save_config(self, config: dict[str, Any], vocabulary: AnyVocabulary) -> None:
        """Write config.json and vocabulary.json."""
        self.settings = {"command": self.command} | config
        self.words = words_of(vocabulary)
        self._write_settings()

    def _write_settings(self):
        self.write_json("config.json", self.settings | {"sha256": _hash(plain(self.settings))})
        self.write_json("vocabulary.json", self.words)

    def save_model(self, model: Any) -> None:
        save_checkpoint(self / "model.safetensors", model, self.words and _hash(self.words), self.identity)

    def save_state(self, training: Training) -> None:
        """Keep the training's state, and the one before."""
        save_training(self / "state" / f"step-{training.step}.safetensors", training, run=self.identity)
        for _, path in self.states()[:-STATES]:
            path.unlink()

    def states(self) -> list[tuple[int, Path]]:
        """[(step, path)] of the states of the training, the last at the end"""
        return _by_step(self.folder / "state")

    def restore(self, training: Training, say: Say = silent) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Put the last state into the training; if it is damaged, say so and take the one before.

        Returns that state, (arrays, numbers), or None if none was kept yet. Raises UserError if none can be read.
        """
        states = self.states()
        for step, path in reversed(states):
            try:
                found = restore_from(path, training, run=self.identity)
            except UserError as error:
                say(f"note: {error}")
                continue
            say(f"going on after step {step:,}")
            return found
        if states:
            raise UserError(f"no state in {self / 'state'} can be read: train again, into another folder")
        return None

    def finished(self, history: History) -> None:
        """All is written: delete the training's states, unless it was interrupted, and release the folder."""
        if history.stopped != "interrupted":
            shutil.rmtree(self / "state")
        self.close()

    def how_to_go_on(self, folder: PathLike | None = None) -> str:
        """The command that goes on with the training, in this folder or another."""
        folder = str(folder or self.folder)
        if not self.command:
            return f"Run.resume({folder!r}), and the same call"
        again = " < the same text" if self.command.get("path") == STANDARD else ""
        return f"mini-tf train --resume {quoted(folder)}{again}"

    def is_finished(self) -> bool:
        """True if there is nothing left to do: trained, tested, and all written."""
        return (self / "results.json").exists() and not self.states()

    def copy_to(self, folder: PathLike, training: Training, model: Any) -> Path:
        """Write all that is in memory into another folder, where the training can go on. Returns that folder.

        Raises UserError if that fails, too.
        """
        with Run.new(folder) as other:
            other.settings, other.words, other.identity = self.settings, self.words, self.identity
            other._write_settings()
            other.save_state(training)
            training.take_best()
            other.save_model(model)
            if training.rows:
                other.save_metrics(training.rows)
            return other.folder

    def save_moment(self, model: Any, step: int) -> None:
        """Write the model as it is after that step."""
        save_checkpoint(self / "moments" / f"step-{step}.safetensors", model)

    def moments(self) -> list[tuple[int, dict[str, Array]]]:
        """[(step, {name: data of the parameter})] of the saved moments, the earliest first"""
        return [
            (step, {name: p.data for name, p in load_checkpoint(path).parameters().items()})
            for step, path in _by_step(self.folder / "moments")
        ]

    def save_metrics(self, rows: list[dict[str, float | str]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self / "metrics.csv", text.getvalue())

    def save_figure(self, name: str, kind: str, *data: Any, **options: str) -> None:
        """Draw the picture `draw_KIND` of `training/figures.py`."""
        from mini_tf.training import figures  # here, because it loads Matplotlib

        figures.save_figure(self / name, getattr(figures, f"draw_{kind}")(*data, **options))

    def write_json(self, name: str, value: Any) -> None:
        write_text(self / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    # Reading -------------------------------------------------------------------------------------------------------

    def load(self) -> tuple[Any, Any]:
        """(model, vocabulary) of the run; a translator's vocabulary is a pair: of the source, of the target.

        Raises UserError when a file is damaged or the two do not fit.
        """
        words = self.read_json("vocabulary.json")
        model = load_checkpoint(self / "model.safetensors", None, _hash(words), identity_of(self.config()))
        try:
            vocabulary, sizes, expected = vocabulary_of(model, words)
        except (KeyError, TypeError, UserError) as error:
            raise UserError(f"{self / 'vocabulary.json'} does not fit the model ({error}): train again") from None
        if sizes != expected:
            raise UserError(f"{self / 'vocabulary.json'} has {sizes} tokens, the model expects {expected}: train again")
        return model, vocabulary

    def config(self) -> dict[str, Any]:
        """What config.json says. Raises UserError if anything in it has changed since it was written."""
        config = self.read_json("config.json")
        if not isinstance(config, dict) or config.pop("sha256", None) != _hash(config):
            raise UserError(f"{self / 'config.json'} is damaged or was edited: it does not match its checksum")
        return config

    def read_json(self, name: str) -> Any:
        """The content of a .json file of the run. Raises UserError when it cannot be read."""
        text = read_text(self / name)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self / name} cannot be read ({error}); the run is damaged: train again") from None

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.csv, as numbers; none if it is not there yet. Raises UserError if it is damaged."""
        if not (self / "metrics.csv").exists():
            return []
        text = io.StringIO(read_text(self / "metrics.csv"))
        try:
            rows: list[dict[str, Any]] = [
                {name: float(value) if value != "" else "" for name, value in row.items()}
                for row in csv.DictReader(text, strict=True)
            ]
            for row in rows:
                row["step"], row["validation_loss"] = int(row["step"]), float(row["validation_loss"])
                if NORM in row and not {"update_ratio", "dead_relus"} <= row.keys():
                    raise KeyError("update_ratio or dead_relus")
            return rows
        except (ValueError, OverflowError, KeyError, TypeError, csv.Error) as error:
            raise UserError(f"{self / 'metrics.csv'} cannot be read ({error}); it is damaged") from None


class NullRun(Run):
    """The run of a process that writes no files, because only rank 0 does: it writes nothing, and finds nothing."""

    def __init__(self, folder: PathLike | None):
        super().__init__(folder or "runs")               # rank 0's, for messages

    def begin(self, *_: Any) -> None:
        """Nothing is checked: rank 0 does."""

    def restore(self, *_: Any) -> None:
        """Nothing is found: rank 0 sends what it has found."""

    def config(self) -> dict[str, Any]:
        return {}

    def is_finished(self) -> bool:
        return False

    def save_config(self, config: dict[str, Any], vocabulary: Any) -> None:
        self.settings = {"command": self.command} | config


def _by_step(folder):
    """[(step, path)] of the files step-N.safetensors in a folder, the last step at the end"""
    names = ((re.fullmatch(r"step-(\d+)\.safetensors", path.name), path) for path in folder.glob("*"))
    return sorted((int(match[1]), path) for match, path in names if match)


def _make(folder):
    """Make the folder, and those that it is in; returns the new ones, the innermost first. Raises UserError."""
    try:
        new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
        folder.mkdir(parents=True, exist_ok=True)
        return new
    except (OSError, ValueError) as error:               # ValueError: for a name with a zero byte
        why = getattr(error, "strerror", None) or error
        raise UserError(f"the folder {folder} cannot be made: {why}; choose another --run") from None


def identity_of(config: dict[str, Any]) -> str:
    """What tells a run from all others: a hash of its settings and its data."""
    return _hash({key: config.get(key) for key in IDENTITY})


def _hash(value):
    """The sha256 of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

"""A run folder: the model, its settings and its text, how training went, and what the model writes."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, Self

from mini_tf.checks import first_difference
from mini_tf.errors import UserError
from mini_tf.files import STANDARD, is_ours, kind_of, own, replacing, sweep, write_text
from mini_tf.models import Classifier, Translator
from mini_tf.models.saved import SavedModel
from mini_tf.terminal import quoted
from mini_tf.text import Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SentenceVocabulary
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint
from mini_tf.training.loop import History
from mini_tf.training.state import restore_from, save_training
from mini_tf.training.step import Training
from mini_tf.types import Array, PathLike

SIDES = "source", "target"           # of a translator
STATES = 2                           # how many states of the training are kept, the last ones
DECIDES = "settings", "data"         # of config.json: what decides each number of a training


class Run:
    """The files of one training run, each written whole or not at all.

    config.json         preset, options of the model and the training, facts about the text, versions
    vocabulary.json     the words, in the order of their ids; a translator's source and target, with the names in each;
                        a classifier's words and classes
    model.safetensors   the best parameters so far
    state/              the last two states of a training that is not finished: what it takes to go on exactly there
    moments/            of a small model, the parameters before its first step and after a tenth, for mini-tf explore
    metrics.csv         a row for each measurement of the validation loss
    curves.png          the losses during training, with the baselines
    gradient_flow.png   the norm of each layer's gradient during training
    results.json        the losses at the end
    sample.txt          a text that the model wrote, or gaps that it filled
    translations.tsv    the test sentences, as a translator translated them, and their references
    predictions.tsv     the test texts, with their classes and those that a classifier found
    confusion.png       how often it took one class for another

    with Run.new("runs/mine") as run:    # nobody else writes to the folder inside the block

    command  what `mini-tf train` was told, for config.json: so `--resume` can read the same text
    rescue   a folder for what is in memory, if the run's own cannot be written to any more
    """

    def __init__(self, folder: PathLike):
        self.folder, self.command, self.rescue, self.made = Path(folder), {}, None, []
        self.lock = self.settings = self.vocabulary = self.decided = None

    @classmethod
    def new(cls, folder: PathLike | None = None, name: str = "run") -> Self:
        """An empty run folder: `folder`, or the first free of runs/NAME, runs/NAME-2, …; nobody else gets it.

        Raises UserError when `folder` is a file or not empty, and when it cannot be made.
        """
        made = _missing(Path("runs") if folder is None else Path(folder))
        run = cls(_made(folder) if folder is not None else _first_free(name))
        run.made = made if folder is not None else [run.folder, *made]
        run._check_empty()                               # before a lock is put into a folder that is not ours
        run._take()
        run._check_empty()                               # somebody may have been faster
        return run

    def _check_empty(self):
        if any(not is_ours(path) for path in self.folder.iterdir()):
            self.close()
            raise UserError(f"the folder {self.folder} is not empty; a run never overwrites one: choose another --run")

    @classmethod
    def resume(cls, folder: PathLike) -> Self:
        """The run in that folder, whose training can go on; nobody else gets it.

        Raises UserError when there is none, and when another process is writing to it.
        """
        run = cls.look(folder)
        run._take()
        sweep(run.folder)
        return run

    @classmethod
    def open(cls, folder: PathLike) -> Self:
        """The run in that folder, to be read. Raises UserError when it is not a run folder, or has no model yet."""
        run = cls.look(folder)
        missing = [f for f in ("vocabulary.json", "model.safetensors") if not (run.folder / f).is_file()]
        if missing:
            raise UserError(f"{folder} has no {missing[0]}: its training has not come far enough, or the file was "
                            f"deleted; go on with mini-tf train --resume {folder}")  # fmt: skip
        return run

    @classmethod
    def look(cls, folder: PathLike) -> Self:
        """The run in that folder, in whatever state it is. Raises UserError when it is not a run folder."""
        try:
            there, is_folder = Path(folder).exists(), Path(folder).is_dir()
            names = os.listdir(folder) if is_folder else []
        except (OSError, ValueError) as error:           # ValueError: for a name with a zero byte
            why = getattr(error, "strerror", None) or error
            raise UserError(f"the folder {folder} cannot be read: {why}") from None
        if not there:
            raise UserError(f"there is no folder {folder}; train a run first: mini-tf train --run {folder}")
        if not is_folder:
            raise UserError(f"{folder} is {kind_of(folder)}, expected a run folder; name one that mini-tf train made")
        if "config.json" not in names:
            raise UserError(f"{folder} is not a run folder: it has no config.json; name one that mini-tf train made")
        return cls(folder)

    # The folder is ours --------------------------------------------------------------------------------------------

    def _take(self):
        self.lock = own(self.folder)

    def close(self) -> None:
        """Let others have the folder; if nothing was written to it, it goes, if it was made for this run."""
        if self.lock is None:
            return
        try:
            if all(is_ours(path) for path in self.folder.iterdir()):
                sweep(self.folder)
                self.lock.release()
                for folder in self.made:
                    folder.rmdir()
        except OSError:
            pass                                         # it has vanished, or somebody has put something there
        self.lock.release()
        self.lock = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __truediv__(self, name):
        return self.folder / name

    # Writing -------------------------------------------------------------------------------------------------------

    def begin(self, config: dict[str, Any], say: Callable[[str], None] = lambda line: None) -> None:
        """Before any work: see that a run that goes on is the same training.

        Raises UserError if the run was begun with other settings, or from another text.
        """
        config = _plain(config)
        decides = {key: config.get(key) for key in DECIDES}
        self.decided = _hash(decides)
        if not (self / "config.json").is_file():
            return
        begun = self.config()
        for key, value in decides.items():
            if begun.get(key) != value:
                if key == "data":
                    path = begun.get("command", {}).get("path")
                    where = f" in {path}" if path else ""
                    raise UserError(f"{self.folder} was trained on other data: put back what was{where}, or choose "
                                    "another --run")  # fmt: skip
                odd, was, now = first_difference(key, begun.get(key), value)
                raise UserError(f"{self.folder} was trained with {odd} = {was}, expected {now}; choose another --run, "
                                "or delete that folder")  # fmt: skip
        before, now = begun.get("machine", {}), config.get("machine", {})
        changed = [f"{what} {before.get(what)} → {value}" for what, value in now.items() if before.get(what) != value]
        if changed:
            say(f"note: the machine has changed since the run was begun, and the last digits may, too: "
                f"{', '.join(changed)}")  # fmt: skip

    def save_config(
        self, config: dict[str, Any], vocabulary: Vocabulary | tuple[SentenceVocabulary, SentenceVocabulary]
    ) -> None:
        """vocabulary: a Vocabulary, a ClassVocabulary, or a translator's two SentenceVocabularies, (source, target)"""
        if isinstance(vocabulary, tuple):
            words = {side: {"words": v.words, "names": sorted(v.names)} for side, v in zip(SIDES, vocabulary)}
        elif isinstance(vocabulary, ClassVocabulary):
            words = {"words": vocabulary.words, "classes": list(vocabulary.classes)}
        else:
            words = vocabulary.words
        self._save_config({"command": self.command} | config)
        self.vocabulary = words
        self.write_json("vocabulary.json", words)

    def _save_config(self, config):
        self.settings = config
        self.write_json("config.json", config | {"sha256": _hash(_plain(config))})

    def save_model(self, model: SavedModel) -> None:
        save_checkpoint(self / "model.safetensors", model, self.vocabulary and _hash(self.vocabulary))

    def save_state(self, training: Training) -> None:
        """Keep the training's state, and the one before."""
        save_training(self / "state" / f"step-{training.step}.safetensors", training, run=self.decided)
        for _, path in self.states()[:-STATES]:
            path.unlink()

    def states(self) -> list[tuple[int, Path]]:
        """[(step, path)] of the states of the training that were kept, the last at the end"""
        return _by_step(self.folder / "state")

    def restore(
        self, training: Training, say: Callable[[str], None] = lambda line: None
    ) -> tuple[dict[str, Array], dict[str, Any]] | None:
        """Put the last state into the training; if it is damaged, say so and take the one before.

        Returns that state, (arrays, numbers), or None if none was kept yet. Raises UserError if none can be read.
        """
        states = self.states()
        for step, path in reversed(states):
            try:
                found = restore_from(path, training, run=self.decided)
            except UserError as error:
                say(f"note: {error}")
                continue
            say(f"going on after step {step:,}")
            return found
        if states:
            raise UserError(f"no state in {self / 'state'} can be read: train again, into another folder")
        return None

    def finished(self, history: History) -> None:
        """All is written: delete the training's states, unless it was interrupted, and let others have the folder."""
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
        return (self / "results.json").is_file() and not self.states()

    def copy_to(self, folder: PathLike, training: Training, model: SavedModel) -> Path:
        """Write all that is in memory into another folder, where the training can go on. Returns that folder.

        Raises UserError if that fails, too.
        """
        with Run.new(folder) as other:
            other.vocabulary, other.decided, other.command = self.vocabulary, self.decided, self.command
            other._save_config(self.settings)
            other.write_json("vocabulary.json", self.vocabulary)
            other.save_state(training)
            training.take_best()
            other.save_model(model)
            if training.rows:
                other.save_metrics(training.rows)
            with suppress(OSError):                      # they are on the disk that fails
                for path in self.folder.glob("moments/step-*.safetensors"):
                    with replacing(other / "moments" / path.name) as temporary:
                        shutil.copyfile(path, temporary)
            return other.folder

    def save_moment(self, model: SavedModel, step: int) -> None:
        """Keep the model as it is after that step."""
        save_checkpoint(self / "moments" / f"step-{step}.safetensors", model)

    def moments(self) -> list[tuple[int, dict[str, Array]]]:
        """[(step, {name: data of the parameter})] of the moments that were kept, the earliest first"""
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

    def save_figure(self, name: str, kind: str, *given: Any, **options: str) -> None:
        """Draw the picture `draw_KIND` of `training/figures.py`."""
        from mini_tf.training import figures  # here, because it loads Matplotlib

        figures.save_figure(self / name, getattr(figures, f"draw_{kind}")(*given, **options))

    def write_json(self, name: str, value: Any) -> None:
        write_text(self / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    # Reading -------------------------------------------------------------------------------------------------------

    def load(self) -> tuple[SavedModel, Vocabulary | tuple[SentenceVocabulary, SentenceVocabulary]]:
        """(model, vocabulary) of the run; a translator's vocabulary is a pair: of the source, of the target.

        Raises UserError when a file is damaged or the two do not fit.
        """
        words = self.read_json("vocabulary.json")
        model = load_checkpoint(self / "model.safetensors", vocabulary=_hash(words))
        try:
            return model, self._vocabulary(model, words)
        except UserError as error:
            raise UserError(f"{self / 'vocabulary.json'}: {error}; the run is damaged: train again") from None

    def _vocabulary(self, model, words):
        """The vocabulary of the model, or a translator's two, from what vocabulary.json says"""
        if isinstance(model, Translator):
            sides = [_parts(side, "words", "names") for side in _parts(words, *SIDES)]
            vocabularies = tuple(SentenceVocabulary.of(*side) for side in sides)
            expected = model.sizes
        elif isinstance(model, Classifier):
            vocabularies, expected = (ClassVocabulary.of(*_parts(words, "words", "classes")),), (model.c,)
            if len(vocabularies[0].classes) != model.classes:
                raise UserError(f"it has {len(vocabularies[0].classes)} classes, the model {model.classes}")
        else:
            vocabularies, expected = (Vocabulary.of(words),), (model.c,)
        sizes = tuple(map(len, vocabularies))
        if sizes != expected:
            found, wanted = (" and ".join(f"{size:,}" for size in some) for some in (sizes, expected))
            raise UserError(f"it has {found} words, the model expects {wanted}")
        return vocabularies if isinstance(model, Translator) else vocabularies[0]

    def config(self) -> dict[str, Any]:
        """What config.json says. Raises UserError if anything in it has changed since it was written."""
        config = self.read_json("config.json")
        if not isinstance(config, dict) or config.pop("sha256", None) != _hash(config):
            raise UserError(f"{self / 'config.json'} is damaged or was edited: it does not match its checksum")
        return config

    def read_json(self, name: str) -> Any:
        """The content of a .json file of the run. Raises UserError when it cannot be read."""
        try:
            return json.loads((self / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{self / name} cannot be read ({error}); the run is damaged: train again") from None


def _by_step(folder):
    """[(step, path)] of the files step-N.safetensors in a folder, the last step at the end"""
    names = ((re.fullmatch(r"step-(\d+)\.safetensors", path.name), path) for path in folder.glob("*"))
    return sorted((int(match[1]), path) for match, path in names if match)


def _parts(words, *names):
    """The entries of a dict with these names. Raises UserError if one is missing."""
    for name in names:
        if not isinstance(words, dict) or name not in words:
            raise UserError(f"it lacks {name!r}")
    return [words[name] for name in names]


def _made(folder):
    """The folder, made if it is not there. Raises UserError if it cannot be made."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        what = kind_of(folder) if folder.exists() else "a broken link"
        raise UserError(f"{folder} is {what}, expected a folder for the run; choose another --run") from None
    except (OSError, ValueError) as error:               # ValueError: for a name with a zero byte
        why = getattr(error, "strerror", None) or error
        raise UserError(f"the folder {folder} cannot be made: {why}; choose another --run") from None
    return folder


def _missing(folder):
    """The folder and those that it is in, as far as they are not there, the innermost first"""
    return [path for path in (folder, *folder.parents) if "\0" not in str(path) and not os.path.lexists(path)]


def _first_free(name):
    """The first of runs/NAME, runs/NAME-2, … that nobody has: making it fails if somebody is faster."""
    _made("runs")
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    while True:
        folder = Path("runs") / next(names)
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f"the folder {folder} cannot be made: {error.strerror}; choose another --run") from None


def _plain(value):
    """The value as JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(value))


def _hash(value):
    """The sha256 of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

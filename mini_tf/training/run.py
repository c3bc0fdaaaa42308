"""A run folder: the model, its settings and its text, how training went, and what the model writes."""

import csv
import io
import json
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.files import replacing, write_text
from mini_tf.models import Classifier, Translator
from mini_tf.text import Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SentenceVocabulary
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint

SIDES = "source", "target"           # of a translator


class Run:
    """The files of one training run, each written whole or not at all.

    config.json         preset, options of the model and the training, facts about the text, versions
    vocabulary.json     the words, in the order of their ids; a translator's source and target, with the names in each;
                        a classifier's words and classes
    model.safetensors   the best parameters so far
    moments/            of a small model, the parameters before its first step and after a tenth, for mini-tf explore
    metrics.csv         a row for each measurement of the validation loss
    curves.png          the losses during training, with the baselines
    results.json        the losses at the end
    sample.txt          a text that the model wrote, or gaps that it filled
    translations.tsv    the test sentences, as a translator translated them, and their references
    predictions.tsv     the test texts, with their classes and those that a classifier found
    confusion.png       how often it took one class for another
    """

    def __init__(self, folder):
        self.folder = Path(folder)

    @classmethod
    def new(cls, folder=None, name="run"):
        """An empty run folder: `folder`, or the first free of runs/NAME, runs/NAME-2, …; created when first written to.

        Raises UserError when `folder` is a file or not empty.
        """
        if folder is None:
            folder, number = Path("runs") / name, 1
            while folder.exists():
                number += 1
                folder = Path("runs") / f"{name}-{number}"
        folder = Path(folder)
        if folder.is_file():
            raise UserError(f"{folder} is a file, expected a folder for the run; choose another --run")
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"the folder {folder} is not empty; a run never overwrites one: choose another --run")
        return cls(folder)

    @classmethod
    def open(cls, folder):
        """The run in that folder. Raises UserError when it is not a run folder."""
        run = cls(folder)
        if not run.folder.exists():
            raise UserError(f"there is no folder {folder}; train a run first: mini-tf train --run {folder}")
        missing = [f for f in ("config.json", "vocabulary.json", "model.safetensors") if not (run.folder / f).is_file()]
        if missing:
            raise UserError(f"{folder} is not a run folder: it has no {missing[0]}; name one that mini-tf train made")
        return run

    def __truediv__(self, name):
        return self.folder / name

    def save_config(self, config, vocabulary):
        """vocabulary: a Vocabulary, a ClassVocabulary, or a translator's two SentenceVocabularies, (source, target)"""
        if isinstance(vocabulary, tuple):
            words = {side: {"words": v.words, "names": sorted(v.names)} for side, v in zip(SIDES, vocabulary)}
        elif isinstance(vocabulary, ClassVocabulary):
            words = {"words": vocabulary.words, "classes": list(vocabulary.classes)}
        else:
            words = vocabulary.words
        self.write_json("config.json", config)
        self.write_json("vocabulary.json", words)

    def save_model(self, model):
        save_checkpoint(self / "model.safetensors", model)

    def save_moment(self, model, step):
        """Keep the model as it is after that step."""
        save_checkpoint(self / "moments" / f"step-{step}.safetensors", model)

    def moments(self):
        """[(step, {name: data of the parameter})] of the moments that were kept, the earliest first"""
        steps = {int(path.stem.removeprefix("step-")): path for path in self.folder.glob("moments/step-*.safetensors")}
        return [
            (step, {name: p.data for name, p in load_checkpoint(path).parameters().items()})
            for step, path in sorted(steps.items())
        ]

    def save_metrics(self, rows):
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self / "metrics.csv", text.getvalue())

    def save_curves(self, rows, lines, **options):
        from mini_tf.training.figures import draw_curves

        with replacing(self / "curves.png") as temporary:
            draw_curves(rows, lines, **options).savefig(temporary, dpi=120)

    def save_confusion(self, confusion, classes):
        from mini_tf.training.figures import draw_confusion

        with replacing(self / "confusion.png") as temporary:
            draw_confusion(confusion, classes).savefig(temporary, dpi=120)

    def write_json(self, name, value):
        write_text(self / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def load(self):
        """(model, vocabulary) of the run; a translator's vocabulary is a pair: of the source, of the target.

        Raises UserError when a file is damaged or the two do not fit.
        """
        model = load_checkpoint(self / "model.safetensors")
        words = self.read_json("vocabulary.json")
        if isinstance(model, Translator):
            vocabularies = tuple(self._language(self._part(words, side)) for side in SIDES)
            expected = model.sizes
        elif isinstance(model, Classifier):
            vocabularies = (self._words_and_classes(words),)
            expected, classes = (model.c,), vocabularies[0].classes
            if len(classes) != model.classes:
                raise UserError(
                    f"{self.folder}: the vocabulary has {len(classes)} classes, the model {model.classes}; the files "
                    "are not of one run: train again"
                )
        else:
            vocabularies, expected = (Vocabulary(words),), (model.c,)
        sizes = tuple(map(len, vocabularies))
        if sizes != expected:
            found, wanted = (" and ".join(f"{size:,}" for size in some) for some in (sizes, expected))
            raise UserError(
                f"{self.folder}: the vocabulary has {found} words, the model expects {wanted}; the files are not of "
                "one run: train again"
            )
        return model, vocabularies if isinstance(model, Translator) else vocabularies[0]

    def _part(self, words, name):
        """An entry of vocabulary.json. Raises UserError if it is missing."""
        if not isinstance(words, dict) or name not in words:
            raise UserError(f"{self / 'vocabulary.json'} lacks {name!r}; the run is damaged: train again")
        if not isinstance(words[name], (list, dict)):
            raise UserError(f"{self / 'vocabulary.json'}: {name!r} is {words[name]!r}, expected a list; the run is "
                            "damaged: train again")  # fmt: skip
        return words[name]

    def _language(self, words):
        """A translator's vocabulary of one language, from its part of vocabulary.json"""
        vocabulary = SentenceVocabulary.of(self._part(words, "words"))
        vocabulary.names = frozenset(self._part(words, "names"))
        return vocabulary

    def _words_and_classes(self, words):
        """A classifier's vocabulary, from vocabulary.json"""
        vocabulary = ClassVocabulary.of(self._part(words, "words"))
        vocabulary.classes = list(self._part(words, "classes"))
        return vocabulary

    def read_json(self, name):
        """The content of a .json file of the run. Raises UserError when it cannot be read."""
        try:
            return json.loads((self / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{self / name} cannot be read ({error}); the run is damaged: train again") from None

"""From texts with labels to a trained classifier."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from mini_tf.data import movie_reviews, read_labelled, split_labelled
from mini_tf.errors import UserError, counted
from mini_tf.files import write_text
from mini_tf.metrics import LossPart, accuracy, confusion, log_softmax, mean_of
from mini_tf.models import Classifier
from mini_tf.models.counting import LogisticRegression, NaiveBayes, word_counts
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import padded, split_sentence
from mini_tf.training.length_batches import in_order, text_lengths
from mini_tf.training.task import Task, named, random_vectors
from mini_tf.training.text_batches import TextBatches, texts_in_order
from mini_tf.types import Array, Say, silent

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.run import Run

Part = tuple[list[Array], Array]     # texts as ids, and the numbers of their classes


@dataclass(frozen=True, kw_only=True)
class Classification(Task):
    """The task of classifying texts, from (text, label) strings."""

    kind: ClassVar[str] = "classification"
    takes: ClassVar[str] = "--table"
    unit: ClassVar[str] = "nats per text"
    model_type: ClassVar[type] = Classifier

    n: int                       # embedding dimension
    words: int                   # in a batch, padding included
    least: int = 2               # how often a word occurs in training to get an id; others are [UNK]
    held_out: float = 0.1        # share of the texts that are for the test
    validation: float = 0.1      # share of the rest for the validation loss
    warm_up: int = 50            # steps in which the learning rate rises

    def read(self, command: dict[str, Any], seed: int) -> Any:
        path = command["path"]
        return movie_reviews() if path is None else read_labelled(path, command["text"], command["label"])

    def prepare(self, data: list[tuple[str, ...]], seed: int, say: Say) -> "LabelledTexts":
        """Raises UserError for a label with fewer than three examples, and as `prepare_texts` does."""
        few = next((item for item in Counter(label for _, label in data).items() if item[1] < 3), None)
        if few is not None:
            raise UserError(f"the label {few[0]!r} has {counted(few[1], 'example')}, expected at least 3: to learn "
                            "from, to choose by, and to test with; add examples, or take the label out")  # fmt: skip
        rest, test = split_labelled(data, self.held_out, seed)
        return prepare_texts(*split_labelled(rest, self.validation, seed), test, self, say)

    def sizes(self, prepared: "LabelledTexts") -> dict[str, int]:
        return super().sizes(prepared) | {"classes": len(prepared.vocabulary.classes)}

    def new_model(self, prepared: "LabelledTexts", seed: int) -> Classifier:
        """With random word vectors."""
        vectors = random_vectors(len(prepared.vocabulary), self.n, seed) * np.float32(self.n**-0.5)
        return Classifier(vectors, classes=len(prepared.vocabulary.classes), seed=seed, **self.model)

    def facts(self, data: list[tuple[str, str]], prepared: "LabelledTexts") -> dict[str, dict[str, int]]:
        return {"texts": {"train": len(prepared.train[0]), "test": len(prepared.test_texts)}}

    def training_batches(self, prepared: "LabelledTexts", seed: list[int]) -> TextBatches:
        return TextBatches(*prepared.train, self.words, seed)

    def loss_parts(self, model: Classifier, prepared: "LabelledTexts") -> list[LossPart]:
        return loss_parts(model, prepared.validation)

    def report(self, run: "Run", model: Classifier, prepared: "LabelledTexts", seed: int) -> dict[str, Any]:
        """The "test" loss and that of guessing, "uniform", in nats; the test part's "accuracy", that of the counting
        models "bayes" and "logistic", and that of always taking the "largest" class
        """
        log_p, names = log_probabilities(model, prepared.test[0]), prepared.vocabulary.classes
        labels, predicted, classes = prepared.test[1], log_p.argmax(1), len(names)
        run.save_figure("confusion.png", "confusion", confusion(predicted, labels, classes), names)
        lines = ["probability\tpredicted\tlabel\ttext"]
        for p, k, label, text in zip(np.exp(log_p.max(1)), predicted, labels, prepared.test_texts):
            lines.append(f"{p:.3f}\t{names[k]}\t{names[label]}\t{' '.join(text.split())}")
        write_text(run / "predictions.tsv", "\n".join(lines) + "\n")
        return {
            "uniform": math.log(classes), "test": float(-log_p[np.arange(len(labels)), labels].mean()),
            "accuracy": accuracy(predicted, labels), **counting_accuracies(prepared),
        }  # fmt: skip


CLASSIFICATION = named(
    Classification(
        name="classify",
        description="an attention encoder for texts with labels: 13 seconds on two idle cores",
        n=64,
        model={
            "T": 64, "L": 1, "H": 4, "m": 16, "f": 128, "blocks": 1, "k": 64, "dropout": 0.5, "word_dropout": 0.5,
        },
        learning_rate=2e-3,
        words=4000,
        steps=800,
        every=40,
    ),
    Classification(
        name="classify-bag",
        description="the same without attention and positions: a bag of word vectors",
        n=64,
        model={"T": 64, "L": 0, "positions": None, "blocks": 1, "k": 64, "dropout": 0.5, "word_dropout": 0.3},
        learning_rate=4e-3,
        words=2000,
        steps=800,
        every=40,
    ),
)  # fmt: skip


@dataclass
class LabelledTexts:
    """Texts as ids, and their classes, in three parts of (texts, labels), and the vocabulary of the training part."""

    vocabulary: ClassVocabulary
    test_texts: list[str]        # the test part's texts as they are
    train: Part
    validation: Part
    test: Part


def prepare_texts(
    train: list[tuple[str, ...]], validation: list[tuple[str, ...]], test: list[tuple[str, ...]],
    preset: Classification, say: Say = silent,
) -> LabelledTexts:  # fmt: skip
    """LabelledTexts of three lists of (text, label, …). Texts of more than T words are cut, with a note.

    Raises UserError for a text without words, and for a label that does not occur in training.
    """
    T, words = preset.model["T"], [split_sentence(text, "english") for text, *_ in train]
    vocabulary = ClassVocabulary(words, preset.least)
    vocabulary.classes = sorted({label for _, label, *_ in train})
    whole = [vocabulary.read_all(part) for part in (train, validation, test)]
    cut = sum(len(text) > T for ids, _ in whole for text in ids)
    parts: list[Part] = [([text[:T] for text in ids], labels) for ids, labels in whole]
    say(f"{len(train):,} texts to train on, {len(validation):,} to choose by, {len(test):,} to test; "
        f"{len(vocabulary):,} words; classes: {', '.join(vocabulary.classes)}")  # fmt: skip
    if cut:
        say(f"{cut:,} texts are longer than T = {T} words: they are cut there")
    return LabelledTexts(vocabulary, [text for text, *_ in test], *parts)


def log_probabilities(model: Classifier, texts: list[Array], words: int = 4000) -> Array:
    """ln p (texts, classes) of the classes of texts, a list of arrays of ids, in their order."""
    log_p = np.empty((len(texts), model.classes))
    for numbers in in_order(text_lengths(texts), words):
        log_p[numbers] = log_softmax(model.logits(padded([texts[i] for i in numbers])))
    return log_p


def mean_loss(model: Classifier, part: Part, words: int = 4000) -> float:
    """The mean cross-entropy of the labels of (texts, labels), in nats, without dropout."""
    return mean_of(loss_parts(model, part, words))


def loss_parts(model: Classifier, part: Part, words: int = 4000) -> list[LossPart]:
    """The parts of this mean."""
    return [partial(_loss_of, model, batch) for batch, _ in texts_in_order(*part, words)]


def _loss_of(model, batch):
    log_p = log_softmax(model.logits(batch.ids))
    return -log_p[np.arange(len(batch)), batch.labels].mean(), len(batch)


def counting_accuracies(texts: LabelledTexts, penalty: float = 1.0) -> dict[str, float]:
    """The test accuracy of what does not look at the order of words: {"largest", "bayes", "logistic"}

    The largest class of training, naive Bayes and logistic regression on word counts; the latter two learn from the
    training and the validation part, because they choose nothing by it.
    """
    c, classes = len(texts.vocabulary), len(texts.vocabulary.classes)
    learned = texts.train[0] + texts.validation[0]
    labels = np.concatenate([texts.train[1], texts.validation[1]])
    counts, (test, test_labels) = word_counts(learned, c), texts.test
    test_counts, largest = word_counts(test, c), np.bincount(labels).argmax()
    found = {"largest": accuracy(np.full(len(test_labels), largest), test_labels)}
    for name, kind in (("bayes", NaiveBayes), ("logistic", partial(LogisticRegression, penalty=penalty))):
        found[name] = accuracy(kind(counts, labels, classes).predict(test_counts), test_labels)
    return found

"""From a text to a model that fills its gaps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mini_tf.decoding.texts import best_words
from mini_tf.errors import UserError
from mini_tf.files import write_text
from mini_tf.metrics import LossPart, unigram_cross_entropy
from mini_tf.models.masked import MASK, MaskedBatch, MaskedWordModel, hide_words
from mini_tf.text import Vocabulary, join, tokenize
from mini_tf.text.sentences import padded
from mini_tf.training.batches import Seed
from mini_tf.training.length_batches import LengthBatches, in_order, text_lengths
from mini_tf.training.task import Task, batch_losses, mean_loss, named, random_vectors, text_named
from mini_tf.types import Array, Say, silent

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.run import Run

LINES = 4                            # the most lines of a passage


@dataclass(frozen=True, kw_only=True)
class Masking(Task):
    """The task of filling gaps in a text."""

    kind: ClassVar[str] = "masking"
    takes: ClassVar[str] = "--corpus"
    unit = "nats per hidden word"
    model_type: ClassVar[type] = MaskedWordModel

    n: int                       # embedding dimension
    words: int                   # in a batch, padding included
    share: float = 0.15          # of the words, hidden
    test: float = 0.1            # share of the lines, the last ones, for the test
    validation: float = 0.05     # share of the others, their last ones, for the validation loss

    def read(self, command: dict[str, Any], seed: int) -> str:
        return text_named(command)

    def prepare(self, data: str, seed: int = 0, say: Say = silent) -> "Passages":
        """Passages of a text. In each part one begins at every line with a word, and goes on for one to four lines, at
        most T words.

        As in Lab 6 the vocabulary is that of the whole text. Raises UserError for a text too short for three parts.
        """
        lines = [tokenize(line) + ["\n"] for line in data.split("\n")]
        lines = [line for line in lines if len(line) > 1]
        vocabulary = Vocabulary(["[MASK]", *(word for line in lines for word in line)])
        ids, T, rng = [vocabulary.encode(line) for line in lines], self.model["T"], np.random.default_rng([seed, 4])
        first_test = int(len(ids) * (1 - self.test))
        first_validation = int(first_test * (1 - self.validation))
        parts = ids[:first_validation], ids[first_validation:first_test], ids[first_test:]
        if not all(parts):
            raise UserError(f"the text has {len(lines)} lines with words, too few for three parts; give a longer text")
        passages = Passages(vocabulary, *(_passages(part, T, rng) for part in parts))
        say(f"{len(lines):,} lines, {len(vocabulary):,} different words: {len(passages.train):,} passages to train on, "
            f"{len(passages.test):,} to test")  # fmt: skip
        return passages

    def new_model(self, prepared: "Passages", seed: int) -> MaskedWordModel:
        """With random word vectors."""
        vectors = random_vectors(len(prepared.vocabulary), self.n, seed) * np.float32(self.n**-0.5)
        return MaskedWordModel(vectors, prepared.counts, seed=seed, **self.model)

    def facts(self, data: str, prepared: "Passages") -> dict[str, dict[str, int]]:
        return {"text": {"passages": len(prepared.train), "vocabulary": len(prepared.vocabulary)}}

    def training_batches(self, prepared: "Passages", seed: list[int]) -> "MaskedPassages":
        return MaskedPassages(prepared.train, len(prepared.vocabulary), self.words, self.share, seed)

    def loss_parts(self, model: MaskedWordModel, prepared: "Passages") -> list[LossPart]:
        return batch_losses(model, passages_in_order(prepared.validation, model.c, self.words, self.share))

    def report(self, run: "Run", model: MaskedWordModel, prepared: "Passages", seed: int) -> dict[str, Any]:
        """Losses in nats per hidden word: "test", and "unigram", that of guessing by frequency."""
        test = passages_in_order(prepared.test, model.c, self.words, self.share)
        hidden = np.concatenate([batch.targets[batch.targets >= 0] for batch in test])
        unigram = unigram_cross_entropy(np.concatenate(prepared.train), hidden, model.c)
        rng = np.random.default_rng(seed)
        shown = [prepared.test[i] for i in rng.permutation(len(prepared.test))[:20] if len(prepared.test[i]) > 4]
        write_text(run / "sample.txt", "\n".join(examples_of(model, prepared.vocabulary, shown, rng)) + "\n")
        return {"unigram": unigram, "test": mean_loss(model, test)}


MASKING = named(
    Masking(
        name="fill",
        description="masked words, a small BERT over lines of the text: three minutes on two idle cores",
        n=128,
        model={"T": 48, "L": 2, "H": 4, "m": 32, "f": 512, "dropout": 0.1},
        learning_rate=2e-3,
        words=4000,
        steps=1500,
        every=100,
    ),
)  # fmt: skip


@dataclass
class Passages:
    """A text as passages of one to four lines, arrays of ids, in three parts, and its vocabulary, with [MASK] first."""

    vocabulary: Vocabulary
    train: list
    validation: list
    test: list

    @property
    def counts(self) -> Array:
        """How often each word occurs in the training passages: (c,)"""
        return np.bincount(np.concatenate(self.train), minlength=len(self.vocabulary))


def _passages(lines, T, rng):
    many = rng.integers(1, LINES + 1, len(lines))
    return [np.concatenate(lines[i : i + k])[:T] for i, k in enumerate(many)]


class MaskedPassages(LengthBatches):
    """Endless MaskedBatches of passages, see LengthBatches; each time other words are hidden."""

    def __init__(self, passages: list[Array], c: int, words: int, share: float = 0.15, seed: Seed = 0):
        self.passages, self.c, self.share = passages, c, share
        super().__init__(text_lengths(passages), words, seed)

    def batch_of(self, numbers: Array) -> MaskedBatch:
        """The MaskedBatch of the passages with these numbers"""
        return hide_words(padded([self.passages[i] for i in numbers]), self.c, self.rng, self.share)


def passages_in_order(
    passages: list[Array], c: int, words: int, share: float = 0.15, seed: int = 0
) -> list[MaskedBatch]:
    """All passages once, in MaskedBatches, the same words hidden every time."""
    rng = np.random.default_rng(seed)
    parts = in_order(text_lengths(passages), words)
    return [hide_words(padded([passages[i] for i in part]), c, rng, share) for part in parts]


def examples_of(
    model: MaskedWordModel, vocabulary: Vocabulary, passages: list[Array], rng: np.random.Generator
) -> list[str]:
    """Lines for sample.txt: passages with one hidden word each, and the model's five best guesses."""
    lines = []
    for ids in passages:
        places = np.flatnonzero([vocabulary.words[i][0].isalpha() for i in ids])
        if not len(places):
            continue
        t = rng.choice(places)
        guesses = best_words(model, vocabulary, np.where(np.arange(len(ids)) == t, MASK, ids), t)
        shown = ["____" if u == t else vocabulary.words[i] for u, i in enumerate(ids)]
        listed = ", ".join(f"{word!r} {p:.2f}" for word, p in guesses)
        lines += [join(shown).strip("\n"), f"    true: {vocabulary.words[ids[t]]!r}; guesses: {listed}", ""]
    return lines

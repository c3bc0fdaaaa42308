"""From pairs of sentences to a trained translator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mini_tf.data import french_pairs, read_pairs, split_pairs
from mini_tf.decoding import translations
from mini_tf.errors import UserError
from mini_tf.files import write_text
from mini_tf.metrics import LossPart, corpus_bleu
from mini_tf.models import RecurrentTranslator, TranslationModel, Translator
from mini_tf.progress import progress_bar
from mini_tf.text.sentences import SentenceVocabulary, join_sentence, names_in, split_sentence
from mini_tf.training.pair_batches import PairBatches, batches_in_order
from mini_tf.training.task import Task, batch_losses, mean_loss, named
from mini_tf.types import Array, Say, silent

if TYPE_CHECKING:
    from mini_tf.training.run import Run


@dataclass(frozen=True, kw_only=True)
class Translation(Task):
    """The task of translating from (French, English) sentences."""

    kind: ClassVar[str] = "translation"
    takes: ClassVar[str] = "--pairs"
    model_type: ClassVar[type[TranslationModel]] = Translator

    words: int                   # in a batch, padding included
    pairs: int = 200_000         # of the grammar, if no file is given
    longest: int = 24            # words of a sentence; pairs with a longer one are left out
    least: int = 2               # how often a word occurs in training to get an id; others are [UNK]
    held_out: float = 0.1        # share of the pairs that are for the test
    validation: int = 1000       # pairs of the rest for the validation loss
    tested: int | None = 2000    # test sentences to translate; None: all
    warm_up: int = 400           # steps in which the learning rate rises
    beam: int = 5                # of the final test

    def read(self, command: dict[str, Any], seed: int) -> list[tuple[str, str]]:
        return french_pairs(self.pairs, seed) if command["path"] is None else read_pairs(command["path"])

    def prepare(self, data: list[tuple[str, str]], seed: int = 0, say: Say = silent) -> "Bitext":
        """A Bitext of (French, English) strings, without sentences of more than self.longest words.

        No sentence of the test part, French or English, is in another part; none of the validation part in training.
        Raises UserError if too few pairs are left.
        """
        in_words: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for pair in data:
            french, english = (split_sentence(side, language) for side, language in zip(pair, ("french", "english")))
            if max(len(french), len(english)) <= self.longest:
                in_words[pair] = french, english
        say(f"{len(data):,} pairs, {len(in_words):,} of them different and of at most {self.longest} words")
        if len(in_words) < 10:
            raise UserError(f"{len(in_words)} pairs of at most {self.longest} words are too few, expected at least 10; "
                            "give a file with more or shorter sentences")  # fmt: skip
        rest, tested = split_pairs(list(in_words), self.held_out, seed)
        parts = *split_pairs(rest, min(self.validation / len(rest), 0.1), seed), tested
        train, validation, test = ([in_words[pair] for pair in part] for part in parts)
        if self.model.get("tied") == "all":
            source = target = SentenceVocabulary([side for pair in train for side in pair], self.least)
        else:
            source, target = (SentenceVocabulary([pair[k] for pair in train], self.least) for k in (0, 1))
        source.names |= names_in((pair[0] for pair in rest), "french")
        target.names |= names_in((pair[1] for pair in rest), "english")
        if self.beam > len(target):
            raise UserError(f"beam is {self.beam}, expected at most {len(target)}, the size of the English vocabulary: "
                            "mini-tf train --set beam=…")  # fmt: skip
        say(f"{len(train):,} pairs to train on, {len(test):,} to test; "
            f"{len(source):,} French words, {len(target):,} English")  # fmt: skip
        return Bitext(source, target, train, validation, test)

    def sizes(self, prepared: "Bitext") -> dict[str, int]:
        return {"source_words": len(prepared.french), "target_words": len(prepared.english)}

    def new_model(self, prepared: "Bitext", seed: int) -> TranslationModel:
        kind: Any = self.model_type
        return kind(len(prepared.french), len(prepared.english), seed=seed, **self.model)

    def facts(self, data: list[tuple[str, str]], prepared: "Bitext") -> dict[str, dict[str, int]]:
        return {"pairs": {"pairs": len(data), "train": len(prepared.train), "test": len(prepared.test)}}

    def training_batches(self, prepared: "Bitext", seed: list[int]) -> PairBatches:
        return PairBatches(*prepared.ids(prepared.train), self.words, seed)

    def loss_parts(self, model: TranslationModel, prepared: "Bitext") -> list[LossPart]:
        return batch_losses(model, batches_in_order(*prepared.ids(prepared.validation), self.words))

    def report(self, run: "Run", model: TranslationModel, prepared: "Bitext", seed: int) -> dict[str, Any]:
        """The "test" loss in nats per word, "bleu" and "bleu_greedy" of the test sentences, …"""
        bitext, results = prepared, {}
        results["test"] = mean_loss(model, batches_in_order(*bitext.ids(bitext.test), self.words))
        examples = same_source(bitext.test)[: self.tested]
        for name, beam in (("bleu_greedy", 1), ("bleu", self.beam)):
            with progress_bar(f"translating, beam {beam}", len(examples)) as update:
                written = translated(model, bitext, examples, beam, on_batch=lambda done, _: update(done))
            results[name] = bleu_of(examples, written)
        results["bleu_one_reference"] = bleu_of_each_pair(examples, written)
        results["tested"] = len(examples)
        lines = ["French\ttranslation\treference"]
        for (french, references), english in zip(examples, written):
            lines.append("\t".join((
                join_sentence(french, bitext.french.names, "french"), *(join_sentence(words, bitext.english.names)
                for words in (english, references[0])),
            )))  # fmt: skip
        write_text(run / "translations.tsv", "\n".join(lines) + "\n")
        return results


class RecurrentTranslation(Translation):
    """The same with recurrent networks."""

    model_type = RecurrentTranslator


TRANSLATION = named(
    Translation(
        name="translate",
        description="French to English, small: two minutes on two idle cores",
        model={
            "n": 128, "T": 32, "L": 2, "H": 4, "m": 32, "f": 512,
            "norm": "after", "dropout": 0.1, "smoothing": 0.0,
        },
        learning_rate=2e-3,
        words=2000,
        steps=1500,
        every=150,
    ),
    Translation(
        name="translate-hour",
        description="French to English, for real sentences: an hour on two cores",
        model={
            "n": 256, "T": 32, "L": 3, "H": 4, "m": 64, "f": 1024,
            "norm": "before", "dropout": 0.3, "smoothing": 0.1,
        },
        learning_rate=1e-3,
        words=3000,
        steps=4500,
        every=300,
        patience=8,
        tested=None,
    ),
    RecurrentTranslation(
        name="translate-rnn",
        description="French to English by recurrent networks, LSTMs; the decoder attends to the encoder's states",
        model={
            "cell": "lstm", "attention": "multiplicative", "n": 128, "k": 256, "L": 1, "T": 32,
            "dropout": 0.1, "smoothing": 0.0,
        },
        learning_rate=2e-3,
        words=2000,
        steps=1500,
        every=150,
    ),
)  # fmt: skip


@dataclass
class Bitext:
    """Pairs of sentences as words, (French, English), in three parts, and the vocabularies of the training part."""

    french: SentenceVocabulary
    english: SentenceVocabulary
    train: list
    validation: list
    test: list

    @property
    def vocabulary(self) -> tuple[SentenceVocabulary, SentenceVocabulary]:
        return self.french, self.english

    def ids(self, pairs: list[tuple[list[str], list[str]]]) -> tuple[list[Array], list[Array]]:
        """(sources, targets): the French and the English sentences as lists of id arrays"""
        return [self.french.encode(f) for f, _ in pairs], [self.english.encode(e) for _, e in pairs]


def same_source(pairs: list[tuple[list[str], list[str]]]) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """[(French words, [English words, …]), …]: each French sentence once, with all its translations, in first order"""
    references: dict[tuple[str, ...], list[list[str]]] = {}
    for french, english in pairs:
        references.setdefault(tuple(french), []).append(english)
    return list(references.items())


def translated(
    model: TranslationModel, bitext: Bitext, examples: list[tuple], beam: int, length_penalty: float = 0.0,
    on_batch: Callable[[int, int], None] | None = None,
) -> list[list[str]]:  # fmt: skip
    """The translations, as words, of the French sentences of examples: see `same_source` and `translations`."""
    sources = [bitext.french.encode(french) for french, _ in examples]
    found = translations(model, sources, beam, length_penalty, on_batch=on_batch)
    return [bitext.english.decode(hypothesis.words) for hypothesis in found]


def bleu_of(examples: list[tuple], written: list[list[str]]) -> float:
    """BLEU, 0 to 100, of the translations of examples, each compared with all its references"""
    return 100 * corpus_bleu(written, [references for _, references in examples]).score


def bleu_of_each_pair(examples: list[tuple], written: list[list[str]]) -> float:
    """BLEU, 0 to 100, if each translation of a sentence is a test of its own, with one reference"""
    alone = [(english, reference) for (_, references), english in zip(examples, written) for reference in references]
    return 100 * corpus_bleu([english for english, _ in alone], [[reference] for _, reference in alone]).score

"""The task and the preset of the experiment's own model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mini_tf.experiment.new_words import BatchesWithNewWords, NewWords
from mini_tf.training.language import Language

if TYPE_CHECKING:
    from mini_tf.training.language import Corpus


@dataclass(frozen=True, kw_only=True)
class LanguageWithNewWords(Language):
    """The task of predicting the next word, with batches in which rare words become new ones."""

    new_words: float = 0.6           # the `share` of NewWords

    def training_batches(self, prepared: "Corpus", seed: list[int]) -> BatchesWithNewWords:
        new_words = NewWords(prepared.counts, prepared.vocabulary.words, self.new_words)
        return BatchesWithNewWords(super().training_batches(prepared, seed), new_words, [*seed, 1])


POINTER = LanguageWithNewWords(
    name="pointer",
    description="the best of ours: a transformer that can copy words and expects new ones",
    model_class="PointerTransformer",
    n=192,
    model={"T": 128, "L": 3, "H": 4, "m": 48, "f": 384, "dropout": 0.2},
    vectors="random",
    embedding_scale=192**-0.5,
    batches="apart",
    learning_rate=2e-3,
    betas=(0.9, 0.99),
    batch=8,
    steps=1944,
    every=243,
    warm_up=97,
    clip=1.0,
    validation_words=20_000,
)

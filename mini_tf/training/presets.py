"""Presets: complete settings for training each language model."""

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING

from mini_tf.models import CarriedState, TextModel
from mini_tf.training.batches import ConsecutiveWindows, RandomWindows
from mini_tf.training.by_preset import TrainingPreset
from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.language import Corpus


@dataclass(frozen=True, kw_only=True)
class Preset(TrainingPreset):
    """Everything that decides a training run, except the text and the seed."""

    n: int                       # embedding dimension
    embedding_scale: float       # factor on the word vectors
    batch: int                   # windows in a batch
    model_class: str = "LanguageTransformer"
    vectors: str = "eigenvectors"    # of the whole text's co-occurrences, the lab's way; "training"; "random"
    batches: str = "random"      # windows; "apart": side by side; "consecutive": each goes on where the last ended
    anew: int = 64               # of consecutive batches, every so many-th starts from h_0
    betas: tuple = (0.9, 0.999)  # of Adam
    clip: float | None = None    # largest norm of all gradients together
    warm_up: int = 20            # steps in which the learning rate rises
    W: int = 10                  # co-occurrence window
    validation_words: int = 2000     # validation words per measurement
    sample_words: int = 500

    def new_model(self, corpus: "Corpus", seed: int) -> TextModel:
        """The untrained model, for a Corpus prepared with this n, T and vectors."""
        made = TextModel.classes[self.model_class]
        wants_frequencies = "frequencies" in signature(made).parameters
        frequencies = {"frequencies": corpus.counts} if wants_frequencies else {}
        return made(corpus.embeddings * np.float32(self.embedding_scale), seed=seed, **frequencies, **self.model)

    def in_training(self, model: TextModel) -> TextModel | CarriedState:
        """What is trained: the model itself, or a CarriedState of it for consecutive batches."""
        return CarriedState(model, anew=self.anew) if self.batches == "consecutive" else model

    def training_batches(self, corpus: "Corpus", seed: list[int]) -> Iterator[Array]:
        """An endless iterator over batches of windows of the training words."""
        T, words = self.model["T"], corpus.train
        if self.batches == "consecutive":
            return ConsecutiveWindows(words, T, self.batch)
        return RandomWindows(words, T, self.batch, seed, apart=T if self.batches == "apart" else 1)


PRESETS = {                          # mini_tf.experiment adds "pointer"
    preset.name: preset
    for preset in (
        Preset(
            name="quick",
            description="small, learns at every position, trains its word vectors too: a minute or two on a laptop",
            n=64,
            model={
                "T": 32, "L": 2, "H": 4, "m": 16, "readout": "shared", "causal": True, "layer_norm": True,
                "positions": "geometric", "scaled_attention": True, "train_embeddings": True,
            },
            embedding_scale=8.0,
            learning_rate=6e-3,
            batch=64,
            steps=300,
            every=50,
        ),
        Preset(
            name="lab",
            description="the transformer of ESE-2000 Lab 6, Task 6.13, in the sizes that Task 6.5 recommends",
            n=256,
            model={
                "T": 32, "L": 6, "H": 8, "m": 64, "readout": "vec", "causal": True, "layer_norm": True,
                "positions": "geometric", "position_scale": 0.06,
            },
            embedding_scale=1.0,
            learning_rate=3e-4,
            batch=64,
            steps=2000,
            every=100,
            patience=10,                                 # its loss may stand still for 700 steps before it falls
        ),
        Preset(
            name="window",
            description="the fixed-window model of Bengio et al. 2003: four words side by side, one hidden layer",
            model_class="FixedWindowModel",
            n=64,
            model={"T": 4, "k": 128, "dropout": 0.3},
            vectors="random",
            embedding_scale=0.1,
            learning_rate=3e-3,
            batch=512,
            steps=1500,
            every=100,
            clip=1.0,
        ),
        Preset(
            name="recurrent",
            description="a recurrent network, read through the whole text with its state carried on",
            model_class="RecurrentModel",
            n=128,
            model={"T": 32, "k": 256, "dropout": 0.3},
            vectors="random",
            embedding_scale=0.3,
            batches="consecutive",
            learning_rate=3e-3,
            batch=32,
            steps=1000,
            every=100,
            clip=1.0,
            validation_words=20_000,
        ),
        Preset(
            name="gpt",
            description="a small GPT over words, its readout tied to the word vectors",
            model_class="GPT",
            n=128,
            model={"T": 64, "L": 2, "H": 4, "m": 32, "f": 512, "dropout": 0.2},
            vectors="random",
            embedding_scale=128**-0.5,
            batches="apart",
            learning_rate=1e-3,
            batch=32,
            steps=600,
            every=60,
            warm_up=60,
            clip=1.0,
        ),
    )
}  # fmt: skip

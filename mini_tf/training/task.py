"""A task: how one kind of model is trained, from its data to a report."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mini_tf.metrics import LossPart, mean_of
from mini_tf.models.saved import SavedModel
from mini_tf.parallel import join
from mini_tf.text import read_corpus, shakespeare
from mini_tf.training.optimizers import Adam, AdamW, Schedule
from mini_tf.training.step import Training
from mini_tf.types import Array, Say

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.run import Run

AnyTask = TypeVar("AnyTask", bound="Task")

@dataclass(frozen=True, kw_only=True)
class Task:
    """How a kind of model is trained, and all settings; a preset is a Task with good ones.

    Each kind has its methods, which the runner calls in this order. Data are what it learns from, a text or examples;
    `model` is a model of the kind's class, `prepared` what its `prepare` returns.

    kind    "language", "translation", "classification" or "masking"
    takes   the option of `mini-tf train` that names the file with the data
    """

    kind: ClassVar[str]
    takes: ClassVar[str]

    name: str
    description: str
    model: dict[str, Any]        # options of the model
    learning_rate: float         # the largest, after the warm-up
    steps: int                   # batches to train on
    every: int                   # steps between measurements of the validation loss
    betas: tuple[float, float] = (0.9, 0.98)   # of Adam
    clip: float | None = 1.0     # largest norm of all gradients together
    weight_decay: float = 0.0    # of matrices, not of biases and norms, as in AdamW
    last_rate: float = 0.05      # fraction of the learning rate at the last step
    patience: int = 5            # stop after so many measurements without a new best one
    warm_up: int = 100           # steps in which the learning rate rises

    @property
    def unit(self) -> str:
        """What its losses are in"""
        return "nats per word"

    @property
    def model_type(self) -> type[SavedModel]:
        """The class of its models."""
        raise NotImplementedError

    def read(self, command: dict[str, Any], seed: int) -> Any:
        """The data for the options {"path": …, …} of `mini-tf train`; without a path, the preset's own."""
        raise NotImplementedError

    def prepare(self, data: Any, seed: int, say: Say) -> Any:
        """The data as numbers, in parts for training, validation and test, with their .vocabulary."""
        raise NotImplementedError

    def sizes(self, prepared: Any) -> dict[str, int]:
        """The sizes of the model that are not among its options: of its vocabularies, classes, word vectors."""
        return {"n": vars(self)["n"], "c": len(prepared.vocabulary)}

    def words_in_batch(self) -> int:
        """How many words a batch has at most, padding included."""
        return int(vars(self)["words"])

    def new_model(self, prepared: Any, seed: int) -> Any:
        """The untrained model."""
        raise NotImplementedError

    def facts(self, data: Any, prepared: Any) -> dict[str, dict[str, int]]:
        """What config.json says of the data: {"text": {"words": 1000, …}}"""
        raise NotImplementedError

    def training_batches(self, prepared: Any, seed: list[int]) -> Iterator[Any]:
        """An endless iterator over batches of the training part."""
        raise NotImplementedError

    def in_training(self, model: Any) -> Any:
        """What is trained: the model, or a layer around it."""
        return model

    def loss_parts(self, model: Any, prepared: Any) -> list[LossPart]:
        """The parts of the validation loss."""
        raise NotImplementedError

    def report(self, run: "Run", model: Any, prepared: Any, seed: int) -> dict[str, Any]:
        """Test the model, and write examples of its work into the run folder. Returns the results: {"test": loss, …}"""
        raise NotImplementedError

    def training(self, model: Any, prepared: Any, steps: int, seed: int) -> Training:
        """The Training of the model. Batches and dropout have a generator each, both derived from the seed."""
        return self.training_on(self.training_batches(prepared, [seed, 2]), model, steps, seed)

    def training_on(self, batches: Iterator[Any], model: Any, steps: int, seed: int) -> Training:
        """The same, on batches of your own."""
        trained = self.in_training(model)
        optimizer = Adam(self.learning_rate, self.betas)
        if self.weight_decay:
            matrices = [name for name, p in trained.parameters().items() if p.data.ndim > 1]
            optimizer = AdamW(self.learning_rate, self.betas, weight_decay=self.weight_decay, only=matrices)
        schedule = Schedule(min(self.warm_up, steps // 4), steps, self.last_rate)
        return join().training(trained, batches, optimizer, schedule, self.clip, rng=np.random.default_rng([seed, 3]))


def named(*presets: AnyTask) -> dict[str, AnyTask]:
    """{name: preset}"""
    return {preset.name: preset for preset in presets}


def text_named(command: dict[str, Any]) -> str:
    """The text of the file that a command names, or Shakespeare's."""
    return shakespeare(command["shakespeare"]) if command["path"] is None else read_corpus(command["path"])


def random_vectors(c: int, n: int, seed: int) -> Array:
    """Random word vectors (c, n) of variance 1, float32; the model draws its own numbers from the seed alone."""
    return np.random.default_rng([seed, 1]).standard_normal((c, n), dtype=np.float32)


def batch_losses(model: Any, batches: list[Any]) -> list[LossPart]:
    """The parts of the mean loss of batches that have .predictions."""
    return [partial(_loss_of, model, batch) for batch in batches]


def _loss_of(model, batch):
    return model.loss(batch)[0], int(batch.predictions.sum())


def mean_loss(model: Any, batches: list[Any]) -> float:
    """The mean loss over the predictions of batches that have .predictions, in nats, without dropout."""
    return mean_of(batch_losses(model, batches))

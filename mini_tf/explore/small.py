"""A small model, trained on the spot: the lab's transformer on the first scenes of Hamlet."""

import re
from dataclasses import replace
from typing import Any

from mini_tf.cores import on_one_core
from mini_tf.explore.readings import Moments
from mini_tf.progress import prepare_kernels, training_progress
from mini_tf.text import Vocabulary, read_corpus, shakespeare
from mini_tf.training.language import prepare
from mini_tf.training.registry import PRESETS
from mini_tf.types import PathLike

TEXT = "What, is Horatio there? A piece of him."
FIRST_LINES, LENGTH = "BERNARDO:\nWho's there?", 12000   # in characters
QUICK = PRESETS["quick"]
SMALL = replace(
    QUICK, name="small", description="quick's model in small: seconds", model=QUICK.model | {"T": 12},
    vectors="random", embedding_scale=1.0, learning_rate=3e-3, batch=32, steps=300, every=300,
)  # fmt: skip


@on_one_core
def small_model(corpus: PathLike | None = None, seed: int = 0) -> tuple[Any, Vocabulary, Moments]:
    """(model, vocabulary, moments) of a small model trained on a file's text, or on what is spoken at Elsinore.

    moments: [(label, {name: data of the parameter})] at its first step, a tenth, and the end, which the model is at
    """
    text = spoken(shakespeare("complete")) if corpus is None else read_corpus(corpus)
    prepare_kernels()
    prepared = prepare(text, SMALL.n, SMALL.model["T"], vectors=SMALL.vectors, seed=seed)
    model: Any = SMALL.new_model(prepared, seed)
    training = SMALL.training(model, prepared, SMALL.steps, seed)
    at = {SMALL.steps // 10: "after a tenth", SMALL.steps: "at the end", 0: "first step"}
    moments = []
    with training_progress(SMALL.steps, SMALL.batch * model.T) as on_step:
        for step in range(SMALL.steps + 1):
            if step in at:
                label = f"{at[step]} (step {step + (step == 0)} of {SMALL.steps})"
                moments.append((label, {name: p.data.copy() for name, p in model.parameters().items()}))
            if step < SMALL.steps:
                loss, _ = training.one_step()
                on_step(step + 1, loss)
    model.clear_gradients()
    return model, prepared.vocabulary, moments


def spoken(play: str) -> str:
    """What is said in the first scenes of Hamlet: without the speakers' names and the line breaks."""
    begin = play.find(FIRST_LINES)
    lines = play[max(begin, 0) :][:LENGTH].split("\n")
    return " ".join(line for line in lines if line and not re.fullmatch(r"[A-Z ]+:", line))

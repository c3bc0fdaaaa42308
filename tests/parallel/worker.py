"""What the tests let several processes do:  mpiexec -n N python -m tests.parallel.worker TASK FOLDER [option …]

A task is a function of this file. Only the first process writes into the folder.
"""

import json
import os
import sys
from pathlib import Path

from mini_tf.files import write_text
from mini_tf.models import FixedWindowModel, LanguageTransformer, OneAttention, RecurrentModel
from mini_tf.parallel import join
from mini_tf.parallel.starting import ending_together
from mini_tf.training import Adam, RandomWindows, Schedule, Training, fit
from mini_tf.training import by_preset
from tests import tiny

import numpy as np


class InDoublePrecision(Training):
    """A Training of a model in float64: then N processes differ by rounding in the 16th digit only."""

    def __init__(self, model, *options, **more):
        for parameter in model.parameters().values():
            parameter.data = parameter.data.astype(np.float64)
        super().__init__(model, *options, **more)


def other_models():
    """{name: a model in float64 that no preset has}"""
    vectors = np.random.default_rng(0).standard_normal((20, 6)) * 0.5
    small = {"T": 5, "L": 2, "H": 2, "m": 3, "seed": 1}
    return {
        "average": LanguageTransformer(vectors, readout="average", **small),
        "tied": LanguageTransformer(vectors, readout="shared", causal=True, tied=True, train_embeddings=True, **small),
        "sum of vectors": FixedWindowModel(vectors, T=5, k=4, composition="sum", activation="relu", seed=1),
        "recurrent, relu": RecurrentModel(vectors, T=5, k=4, activation="relu", seed=1),
        "one attention": OneAttention(vectors, T=5, H=2, seed=1),
    }


def presets(folder, sliced="", names=""):
    """Train all presets in small, in float64, and note each step's loss and the gradients' health."""
    join(sliced == "sliced")
    by_preset.Training = InDoublePrecision
    for name in names.split(",") if names else tiny.NAMES:
        tiny.train(name, folder / name, every=1)


def others(folder, sliced=""):
    """Train the other models, and note the losses."""
    team, losses = join(sliced == "sliced"), {}
    for name, model in other_models().items():
        ids = np.random.default_rng(2).integers(0, 20, 300)
        training = Training(
            model, RandomWindows(ids, 5, 7, 3), Adam(1e-2), Schedule(3), clip=0.5, rng=np.random.default_rng(4),
            team=team,
        )  # fmt: skip
        rows = fit(training, 8, lambda: 0.0, every=1).rows
        losses[name] = [row["train_loss"] for row in rows] + [row["gradient_norm"] for row in rows]
    if team.first:
        write_text(folder / "losses.json", json.dumps(losses))


if __name__ == "__main__":
    task, folder, *options = sys.argv[1:]
    with ending_together():
        globals()[task](Path(folder), *options)

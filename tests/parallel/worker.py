"""What the tests let several processes do:  mpiexec -n N python -m tests.parallel.worker TASK FOLDER [option …]

A task is a function of this file. Only the first process writes into the folder.
"""

import json
import os
import signal
import sys
from pathlib import Path

from mini_tf.backend import to_host
from mini_tf.files import write_text
from mini_tf.layers import Parameter
from mini_tf.models import FixedWindowModel, LanguageTransformer, OneAttention, RecurrentModel
from mini_tf.parallel import buckets, ending_together, join
from mini_tf.parallel.sharded import ShardedSums
from mini_tf.training import Adam, RandomWindows, Schedule, Training, fit
from tests import tiny
from tests.strict import strict

import numpy as np


def in_double_precision(training, model, batches, optimizer, *options, _init=Training.__init__, **more):
    """Training.__init__ of a model in float64: then N processes differ by rounding in the 16th digit only.

    Adam divides by √v̂ + ε. Where a gradient is 0 but for rounding, ε = 10⁻⁸ would make 10⁻⁹ steps out of 10⁻¹⁷.
    """
    for parameter in model.parameters().values():
        parameter.data = parameter.data.astype(np.float64)
    optimizer.eps = 1e-4
    _init(training, model, batches, optimizer, *options, **more)


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


def presets(folder, options="", names=""):
    """Train presets in small, those named or all, and all other models; or go on with them. Each step's loss and the
    norms of its gradients are noted.

    options: words of "sharded", "float32" and "stopped": by a signal to one process alone, in the third step
    """
    group = join("sharded" in options)
    if not names:
        others(folder, group)
    if "float32" not in options:
        Training.__init__ = in_double_precision
    for name in names.split(",") if names else tiny.NAMES:
        if "stopped" in options:
            Training.one_step = stopping(group.rank == group.size - 1)
        tiny.train(name, folder / name, every=1, steps=5)


def stopping(this_process, one_step=Training.one_step):
    """Training.one_step, but in the third step and in the fourth this process gets Ctrl-C"""
    def step(training, **options):
        if this_process and training.step in (2, 3):
            os.kill(os.getpid(), signal.SIGINT)
        return one_step(training, **options)

    return step


def others(folder, group):
    """Train the other models, and note the losses."""
    losses = {}
    for name, model in other_models().items():
        ids = np.random.default_rng(2).integers(0, 20, 300)
        training = group.training(
            model, RandomWindows(ids, 5, 7, 3), Adam(1e-2), Schedule(3), clip=0.5, rng=np.random.default_rng(4)
        )
        rows = fit(training, 8, lambda: 0.0, every=1).rows
        losses[name] = [row["train_loss"] for row in rows] + [row["gradient_norm"] for row in rows]
    if group.first:
        write_text(folder / "losses.json", json.dumps(losses))


def fails(folder, how, rank):
    """Train; one process fails in the middle of its fifth step, in its backward."""
    group, calls = join(), [0]
    loss = LanguageTransformer.loss

    def failing(model, batch, rng=None):
        value, backward = loss(model, batch, rng)
        calls[0] += 1

        def then(dloss=1.0):
            if calls[0] == 5 and group.rank == int(rank):
                FAILURES[how]()
            backward(dloss)

        return value, then

    LanguageTransformer.loss = failing
    tiny.train("quick", folder / "run", every=2)


def _raises():
    raise RuntimeError("planted in the middle of a step")


FAILURES = {
    "raises": _raises, "exits": lambda: sys.exit(3), "leaves": lambda: sys.exit(0), "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "refused": lambda: tiny.preset("nope"),
}  # fmt: skip


def gradients(folder):
    """Add up gradients of each kind; "strict" are arrays that are never converted to NumPy's by themselves, as on a GPU."""
    for kind in ("plain", "sharded", "strict"):
        for piece in (16, 1000):
            add_up(kind, piece)


def add_up(kind, piece):
    """Add up gradients in small pieces, one of them larger than a piece, with additions after it was sent."""
    buckets.BUCKET = buckets.PIECE = piece
    group = join()
    make = strict if kind == "strict" else np.asarray
    rng = np.random.default_rng(group.rank)
    sizes = {"a": (3, 50), "b": (7,), "c": (2, 3), "never": (4,), "one": (5, 5)}
    parameters = {name: Parameter(make(np.zeros(size))) for name, size in sizes.items()}
    for parameter in parameters.values():
        parameter.mine = None
    sums = (ShardedSums if kind == "sharded" else buckets.GradientSums)(group.comm, parameters)
    for step in range(4):
        for parameter in parameters.values():
            parameter.grad, parameter.mine = None, np.zeros(parameter.data.shape)
        with sums.on_their_way():
            uses = ["one", "c", "b", "a"] + ["b"] * (step == 1) + ["c", "one"] * (step == 2 and group.rank == 0)
            for name in uses[1:] if step == 3 and group.rank else uses:
                gradient = rng.standard_normal(sizes[name])
                parameters[name].mine += gradient
                parameters[name].accumulate(make(gradient))
        for name, parameter in parameters.items():
            expected = group.comm.allreduce(parameter.mine)
            if kind == "sharded":
                here = sums.own_slices.get(name)
                assert (name in sums.slices) == (here is not None and name != "never")
                if name in sums.slices:
                    np.testing.assert_allclose(sums.slices[name].grad, expected.reshape(-1)[here], rtol=1e-12, atol=1e-14,
                                               err_msg=f"{kind}, {piece}")  # fmt: skip
            elif name == "never":
                assert parameter.grad is None
            else:
                assert type(parameter.grad) is type(parameter.data)
                np.testing.assert_allclose(to_host(parameter.grad), expected, rtol=1e-12, atol=1e-14, err_msg=f"{kind}, {piece}")


if __name__ == "__main__":
    task, folder, *options = sys.argv[1:]
    with ending_together():
        globals()[task](Path(folder), *options)

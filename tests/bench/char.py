"""nanoGPT's shakespeare_char in its CPU setting, by mini_tf and by PyTorch: the same model, batches and steps.

    python tests/bench/char.py                                   how long a step takes; pip install torch==2.13.0
    python tests/bench/char.py --train mini_tf "PyTorch eager"   all 2,000 steps: the loss on the last tenth of the text

The model has 4 layers of 4 heads, n = 128, histories of 64 characters and no biases; a batch has 12 windows. AdamW with
β₂ = 0.99, a learning rate that falls from 1e-3 to 1e-4, matrices that decay at 0.1; the gradients' norm is at most 1.
nanoGPT publishes a loss of 1.88 nats per character on the last tenth of the text.
All start from the same weights and read the same batches. Each measurement of steps is a process of its own, and they
take turns; it gives the median time of whole steps: batch, forward, backward, clipping, AdamW.
Source: github.com/karpathy/nanoGPT, its README and config/train_shakespeare_char.py
"""

import argparse
import json
import os
import sys
from statistics import median

from mini_tf.data import shakespeare
from mini_tf.kernels import recycled_memory
from mini_tf.models.windows import windows_ending_at
from mini_tf.training.batches import RandomWindows
from mini_tf.training.language import LANGUAGE
from mini_tf.training.task import random_vectors

import numpy as np
from measuring import in_fresh_process, note_settings, print_table, seconds_of, take_turns, thread_settings
from models import import_torch
from training_step import VARIANTS, check_losses, peers

CHAR = LANGUAGE["char"]
WARM_UP = 20             # steps; the losses of the first ones are compared
TIMED = 100


def parts():
    """(ids of the first nine tenths of the text's characters, of the last tenth, the number of different ones)"""
    characters, ids = np.unique(list(shakespeare()), return_inverse=True)
    cut = int(0.9 * len(ids))
    return ids[:cut], ids[cut:], len(characters)


def contender(method, threads):
    """(a function that takes a step and gives its loss, one that gives the loss of windows, the last tenth)"""
    train, last, c = parts()
    model = CHAR.model_type(random_vectors(c, CHAR.n, 0) * np.float32(CHAR.embedding_scale), **CHAR.model)
    batches = RandomWindows(train, model.T, CHAR.batch, 0)
    training = CHAR.training_on(batches, model, CHAR.steps, 0)
    if method == "mini_tf":
        return lambda: training.one_step()[0], lambda windows: model.loss(windows)[0], last
    step, loss_of = in_torch(import_torch("torch_models", threads), model, VARIANTS[method][0], training.schedule)
    return lambda: step(next(batches)), loss_of, last


def in_torch(torch_models, model, compiled, schedule):
    """(a function that takes a step on windows and gives its loss, one that gives the loss alone) in PyTorch"""
    import torch

    theirs = torch_models.Transformer(model)
    forward = torch.compile(theirs) if compiled else theirs
    parameters, done = list(theirs.parameters()), []
    groups = [{"params": [p for p in parameters if (p.ndim > 1) == matrices], "weight_decay": decay}
              for matrices, decay in ((True, CHAR.weight_decay), (False, 0.0))]  # fmt: skip
    optimizer = torch.optim.AdamW(groups, CHAR.learning_rate, CHAR.betas, fused=True)

    def step(windows):
        done.append(len(done) + 1)
        for group in optimizer.param_groups:
            group["lr"] = CHAR.learning_rate * schedule(done[-1])
        optimizer.zero_grad(set_to_none=True)
        loss = forward(torch.from_numpy(windows))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CHAR.clip)
        optimizer.step()
        return loss.item()

    @torch.no_grad()
    def loss_of(windows):
        return theirs(torch.from_numpy(windows)).item()

    return step, loss_of


def measure(method, threads):
    """In the child process: the median seconds of a step, and the first losses."""
    step, *_ = contender(method, threads)
    with recycled_memory():                              # as in `fit`
        losses = [step() for _ in range(WARM_UP)]
        seconds = median(seconds_of(step) for _ in range(TIMED))
    return {"seconds": seconds, "losses": losses[:3]}


def train(method, threads):
    """In the child process: all steps; their seconds, and the mean loss of the last tenth, in windows side by side."""
    step, loss_of, last = contender(method, threads)
    with recycled_memory():
        seconds = seconds_of(lambda: [step() for _ in range(CHAR.steps)])
    T = CHAR.model["T"]
    windows = windows_ending_at(last, np.arange(T, len(last), T), T)
    batches = np.array_split(windows, 20)
    losses = [loss_of(some) for some in batches]
    return {"seconds": seconds, "validation": float(np.average(losses, weights=[len(some) for some in batches]))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="+", choices=["mini_tf", *VARIANTS], help="take all steps, instead of timing some")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    if options.measure:
        print(json.dumps((train if options.train else measure)(options.measure, options.threads)))
        return

    def in_child(method, *more):
        _, variables = VARIANTS.get(method, (False, {}))
        return in_fresh_process(__file__, method, "--threads", options.threads, *more,
                                **thread_settings(options.threads), **variables)  # fmt: skip

    note_settings()
    print(f"{options.threads} threads; processes that wait for a core, over the last minute: {os.getloadavg()[0]:.1f}")
    for method in options.train or []:
        found = in_child(method, "--train", method)
        print(f"{method:28}{found['validation']:8.4f} nats per character after {found['seconds']:.1f} s", flush=True)
    if not options.train:
        runs = take_turns(["mini_tf", *peers()], options.rounds, in_child)
        check_losses(runs)
        print_table(runs, unit="ms")


if __name__ == "__main__":
    sys.exit(main())

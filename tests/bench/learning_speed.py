"""How fast each kind of network learns the same words: steps, and CPU seconds, to a given loss.

    OPENBLAS_NUM_THREADS=1 python tests/bench/learning_speed.py FOLDER [--seeds 3] [--picture FILE]

A plain recurrent network, an LSTM, a GRU and a transformer (GPT), with the same number of trainable parameters within
2 %, learn Shakespeare's words from the same batches in the same order, by Adam with clipped gradients. The c most
frequent words have ids of their own; all others are one word, so that most of the time goes into the networks and not
into the readout. For each kind, the learning rate of RATES with the lowest validation loss at seed 0 is used.

What a step costs is measured first, in CPU time, while all take turns: the fastest step of each counts, because other
programs on the machine can only add to the time. It is also measured with as many words in fewer, longer texts.

FOLDER gets costs.json and a file for each kind, rate and seed; what is there already is not measured again.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from statistics import mean
from time import process_time

from mini_tf.data import shakespeare
from mini_tf.files import write_text
from mini_tf.kernels import recycled_memory
from mini_tf.models import GPT, RecurrentModel
from mini_tf.palette import COLOURS
from mini_tf.progress import progress_bar
from mini_tf.text import tokenize
from mini_tf.training import Adam, Schedule, Training
from mini_tf.training.batches import RandomWindows, split_words
from mini_tf.training.figures import save_figure

import numpy as np
from matplotlib.figure import Figure

C, N, T, B = 2000, 128, 32, 32       # words with an id, entries of their vectors, words in a window, windows in a batch
SHAPES = {"32 texts of 32": (32, 32), "8 texts of 128": (8, 128)}
KINDS = {"plain": "tanh", "LSTM": "lstm", "GRU": "gru", "transformer": None}
RATES = 2e-3, 5e-3
STEPS, EVERY, TRIAL = 600, 20, 12
LOSSES = 4.3, 4.2, 4.1               # nats per word, to be reached


def words():
    """ids (words,): the C most frequent words from 1 on, all others 0"""
    tokens = tokenize(shakespeare("lab"))
    different, ids, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    new = np.zeros(len(different), np.int64)
    new[np.argsort(-counts, kind="stable")[:C]] = np.arange(1, C + 1)
    return new[ids]


def new_model(kind, seed, counts, T=T, k=None):
    vectors = np.random.default_rng([seed, 1]).standard_normal((C + 1, N), np.float32)
    if KINDS[kind] is None:
        return GPT(vectors * np.float32(N**-0.5), T=T, L=2, H=4, m=N // 4, f=4 * N, seed=seed)
    return RecurrentModel(vectors * np.float32(0.3), counts, k=k, T=T, cell=KINDS[kind], seed=seed)


def sizes(counts):
    """{kind: k} of the recurrent ones, with as many parameters as the transformer's"""
    wanted = new_model("transformer", 0, counts).parameter_count()
    found = {}
    for kind in list(KINDS)[:-1]:
        off = {k: abs(new_model(kind, 0, counts, k=k).parameter_count() - wanted) for k in range(64, 257)}
        found[kind] = min(off, key=off.get)
        assert off[found[kind]] < 0.02 * wanted
    return found


def training_of(model, train, T, B, rate, seed):
    return Training(model, RandomWindows(train, T, B, [seed, 2], apart=T), Adam(rate, (0.9, 0.98)), Schedule(50), clip=1.0)


def step_costs(ks, train, counts):
    """{shape of the batch: {kind: CPU seconds of a step}}"""
    costs = {}
    with recycled_memory(), progress_bar("what a step costs", len(SHAPES) * TRIAL) as update:
        for shape, (B, T) in SHAPES.items():
            trainings = {kind: training_of(new_model(kind, 0, counts, T, ks.get(kind)), train, T, B, 1e-3, 0)
                         for kind in KINDS}  # fmt: skip
            seconds = {kind: [] for kind in KINDS}
            for _ in range(TRIAL):
                for kind, training in trainings.items():
                    start = process_time()
                    training.one_step()
                    seconds[kind].append(process_time() - start)
                update(sum(map(len, seconds.values())) // len(KINDS) + TRIAL * len(costs))
            costs[shape] = {kind: min(each) for kind, each in seconds.items()}
    return costs


def measured(kind, rate, seed, ks, parts, counts):
    """The validation loss at each EVERY steps of a training"""
    model = new_model(kind, seed, counts, k=ks.get(kind))
    train, validation = parts
    training, losses = training_of(model, train, T, B, rate, seed), []
    with recycled_memory(), progress_bar(f"{kind}, {rate:g}, seed {seed}", STEPS) as update:
        while training.step < STEPS:
            loss, _ = training.one_step()
            update(training.step, f"loss {loss:.3f}")
            if training.step % EVERY == 0:
                losses.append(mean(float(model.loss(windows)[0]) for windows in validation))
    return {"parameters": model.parameter_count(), "losses": losses}


def steps_to(losses, level):
    """The first measured step with at most that loss; None if there is none"""
    return next((EVERY * i for i, loss in enumerate(losses, 1) if loss <= level), None)


def cells_of(runs, cost):
    """For each of LOSSES, the steps and seconds that the seeds needed, least to most"""
    for level in LOSSES:
        steps = [steps_to(run["losses"], level) for run in runs]
        if None in steps:
            yield from ("–", "–")
            continue
        yield spread(steps, "{:,.0f}")
        yield spread([each * cost for each in steps], "{:.0f}")


def spread(values, form):
    low, high = (form.format(each) for each in (min(values), max(values)))
    return low if low == high else f"{low}–{high}"


def draw(runs, costs):
    """Validation loss over steps and over CPU seconds, a line for each seed"""
    figure = Figure(figsize=(10, 4), layout="constrained")
    steps = EVERY * np.arange(1, STEPS // EVERY + 1)
    for axes, scale, label in zip(figure.subplots(1, 2, sharey=True), (None, costs), ("steps", "CPU seconds")):
        for (kind, some), colour in zip(runs.items(), COLOURS):
            for i, run in enumerate(some):
                axes.plot(steps * (scale[kind] if scale else 1), run["losses"], color=colour, linewidth=1.2,
                          label=None if i else kind)  # fmt: skip
        axes.set(xlabel=label, ylim=(min(LOSSES) - 0.2, 5.2), xlim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.9")
    figure.axes[0].set_ylabel("validation loss, nats per word")
    figure.axes[0].legend(frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    def kept(name, measure):
        path = options.folder / f"{name}.json"
        if not path.exists():
            write_text(path, json.dumps(measure()))
        return json.loads(path.read_text(encoding="utf-8"))

    train, validation, _ = split_words(words(), T)
    counts = np.bincount(train, minlength=C + 1)
    windows = np.lib.stride_tricks.sliding_window_view(validation, T + 1)[::T][:256].copy()
    ks, parts = sizes(counts), (train, np.split(windows, 4))
    costs = kept("costs", lambda: step_costs(ks, train, counts))

    def run(kind, rate, seed):
        return kept(f"{kind} {rate:g} {seed}", partial(measured, kind, rate, seed, ks, parts, counts))

    best = {kind: min(RATES, key=lambda rate, kind=kind: min(run(kind, rate, 0)["losses"])) for kind in KINDS}
    runs = {kind: [run(kind, best[kind], seed) for seed in range(options.seeds)] for kind in KINDS}
    print("| | k | parameters | rate |", *(f"ms, {shape} |" for shape in SHAPES), "lowest loss |",
          " ".join(f"steps to {level} | s |" for level in LOSSES))  # fmt: skip
    for kind, some in runs.items():
        end = spread([min(each["losses"]) for each in some], "{:.2f}")
        of_shape = [f"{1000 * costs[shape][kind]:.0f}" for shape in SHAPES]
        cells = [kind, str(ks.get(kind, "")), f"{some[0]['parameters']:,}", f"{best[kind]:g}", *of_shape, end]
        print("|", " | ".join([*cells, *cells_of(some, costs["32 texts of 32"][kind])]), "|")
    if options.picture:
        save_figure(options.picture, draw(runs, costs["32 texts of 32"]))


if __name__ == "__main__":
    main()

"""One training step on a GPU: mini_tf with its kernels, with its formulas alone, and PyTorch.

    python tests/bench/training_step.py --device gpu --peer torch --preset lab
    python tests/bench/training_step.py --device gpu --peer torch --preset translate --eager

The contenders are in one process, start from the same weights, read the same batches and take turns, some steps at a
time, after which the last loss is read: as in training, nobody waits for the GPU after each step. They must find the
same losses at first.

    ms          of a step: the median over the turns, the shortest, the longest
    host        ms that Python needs to start a step: where it is nearly all, the GPU waits for Python
    GPU         ms that the GPU computes in a step
    launches    what a step starts on the GPU: kernels and copies

"a training's step" is what `mini-tf train` does: dropout as the preset has it, the norm of the gradients, and a record
of both. The last two columns come from PyTorch's profiler, which sees all that runs on the GPU.
"""

import cProfile
import io
import pstats
import statistics
import sys
import time
from collections import Counter
from importlib import import_module
from itertools import islice

from mini_tf.kernels import reference_only
from mini_tf.training import Training

import models
import numpy as np

FIRST = 12               # steps before the turns; the losses of the first ones are compared
COMPARED = 3
AGREED = 1e-3            # relative difference of losses
OURS, FORMULAS, TRAINED = "mini_tf", "mini_tf, formulas alone", "mini_tf, a training's step"
EAGER, COMPILED = "PyTorch eager", "PyTorch compiled"
PROFILED = 5             # steps
OTHERS = {"translate": "translation", "classify": "classification"}      # presets, and where they are measured on the CPU


def task(name, batch=None):
    """(preset, a function that makes the model, endless batches, the module of its PyTorch version)"""
    from training_step import MODELS

    if name in MODELS:
        preset = MODELS[name]
        shape = 64, batch or preset.batch, preset.model["T"] + 1
        return preset, models.new_model, Cycle(models.random_words(*shape)), "torch_models"
    bench = import_module(OTHERS[name])
    if name == "translate":
        preset, rng = bench.TRANSLATION[name], np.random.default_rng(2)
        pairs = [bench.random_sentences(rng, 10_000, words) for words in bench.WORDS]
        batches = bench.PairBatches(*pairs, preset.words, seed=1)
        return preset, bench.new_model, batches, "torch_translator"
    preset = bench.PRESETS[name]
    return preset, bench.new_model, bench.random_batches(preset, bench.REVIEW_WORDS), "torch_classifier"


class Cycle:
    """The same batches over and over"""

    def __init__(self, batches):
        self.batches, self.next = batches, 0

    def __iter__(self):
        return self

    def __next__(self):
        self.next += 1
        return self.batches[(self.next - 1) % len(self.batches)]


def contenders(preset, new_model, module, peer, eager, device):
    """{name: a function that makes a step on a batch and gives its loss, unread}"""
    from training_step import training_step

    # dropout is 0, but a translator smooths its labels only when there is an rng
    rng = np.random.default_rng(2) if module == "torch_translator" else None
    ours = {name: training_step(new_model(preset).to(device), preset, rng=rng) for name in (OURS, FORMULAS)}
    by_formula, dropout = ours[FORMULAS], preset.model.get("dropout", 0.0)

    def formulas(batch):
        with reference_only():
            return by_formula(batch)

    found = {OURS: ours[OURS], FORMULAS: formulas, TRAINED: trained(preset, new_model(preset, dropout).to(device))}
    if peer and models.torch_installed():
        steps = models.import_torch(module, 4)
        for name in [EAGER] if eager else [EAGER, COMPILED]:
            found[name] = steps.training_step(new_model(preset), preset, name == COMPILED, device)
    return found


def trained(preset, model):
    """A step of `Training`, as in `fit`"""
    batches = []

    def given():
        while True:
            yield batches.pop()

    training = preset.training_on(given(), model, 10_000, 0)

    def step(batch):
        batches.append(batch)
        loss, _ = training.one_step(defer=True)
        return Last(training, loss)

    return step


class Last:
    """The loss of a training's step: float() reads it"""

    def __init__(self, training: Training, loss):
        self.training, self.loss = training, loss

    def __float__(self):
        self.training.settle()
        return self.training.since["losses"][-1]


def turns(steps, batches, rounds, at_once):
    """{name: [(seconds, seconds of the host), of a step in each round]}; ends the program if losses differ

    Prints the first losses of the first contender.
    """
    first = list(islice(batches, FIRST))
    losses = {name: [float(step(batch)) for batch in first][:COMPARED] for name, step in steps.items()}
    for name in losses:
        if name != TRAINED and not np.allclose(losses[name], losses[OURS], rtol=AGREED, atol=0):
            sys.exit(f"the losses differ: {losses[OURS]} in mini_tf, {losses[name]} in {name}")
    print("first losses:", *(f"{loss:.6f}" for loss in losses[OURS]))
    names, times = list(steps), {name: [] for name in steps}
    for turn in range(rounds):
        some = list(islice(batches, at_once))
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            for batch in some:
                loss = steps[name](batch)
            issued = time.perf_counter()
            float(loss)
            times[name].append(((time.perf_counter() - start) / at_once, (issued - start) / at_once))
    return times


def on_the_gpu(step, batches):
    """(launches, seconds that the GPU computes, {kernel: seconds}) of a step; None where PyTorch's profiler is not"""
    some = list(islice(batches, PROFILED))
    try:
        from torch.autograd import DeviceType
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            for batch in some:
                loss = step(batch)
            float(loss)
    except (ImportError, AssertionError, RuntimeError):
        return None
    kernels, launches = Counter(), 0
    for event in profiled.events():
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            launches += 1
            kernels[event.name] += event.time_range.elapsed_us() / 1e6 / PROFILED
    return launches / PROFILED, sum(kernels.values()), kernels


def python_profile(step, batches, lines=15):
    """Where Python spends its time in some steps: the `lines` functions with the most time of their own"""
    profiler, some, text = cProfile.Profile(), list(islice(batches, 20)), io.StringIO()
    with profiler:
        for batch in some:
            loss = step(batch)
    float(loss)
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(lines)
    return "\n".join(line for line in text.getvalue().splitlines()[6:] if line.strip())


def compare(name, peer=None, eager=False, batch=None, rounds=5, at_once=8, device="gpu", profile=False):
    """Measure and print the table for a preset; with `profile`, where the time of the first contender goes, too."""
    preset, new_model, batches, module = task(name, batch)
    print(f"One training step of {name!r} on the {device}, {rounds} turns of {at_once} steps")
    steps = contenders(preset, new_model, module, peer, eager, device)
    times = turns(steps, batches, rounds, at_once)
    titles = "ms", "min", "max", "ratio", "host", "GPU", "launches"
    print(f"{'':28}" + "".join(f"{title:>10}" for title in titles))
    first, most = None, {}
    for name, found in times.items():
        seconds, host = ([1000 * both[k] for both in found] for k in (0, 1))
        median = statistics.median(seconds)
        first = first or median
        seen = on_the_gpu(steps[name], batches)
        launches, busy, most[name] = (float("nan"), float("nan"), Counter()) if seen is None else seen
        cells = [*(f"{x:.2f}" for x in (median, min(seconds), max(seconds))), f"{median / first:.2f}",
                 f"{statistics.median(host):.2f}", f"{1000 * busy:.2f}", f"{launches:.0f}"]  # fmt: skip
        print(f"{name:28}" + "".join(f"{cell:>10}" for cell in cells))
    if profile:
        for name in (OURS, TRAINED):
            print(f"{name}, kernels:")
            for kernel, seconds in most[name].most_common(12):
                print(f"  {1e6 * seconds:8.1f} µs  {kernel[:90]}")
        for name in (OURS, FORMULAS):
            print(f"{name}, Python:\n{python_profile(steps[name], batches)}")

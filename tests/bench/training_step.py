"""How long one step of training takes, forward, backward and Adam: mini_tf, PyTorch, and what the machine could do.

    python tests/bench/training_step.py                          mini_tf alone, the per-word GPT
    python tests/bench/training_step.py --peer torch             beside PyTorch: pip install torch==2.13.0
    python tests/bench/training_step.py --preset lab --batch 16

Every measurement is a process of its own, and the contenders take turns, so that a noisy minute on the machine falls
on all of them. A process warms up, for compiling is not part of a step, then gives the median time of its steps. All
contenders start from the same weights, are given the same words, have the same number of threads, and must find the
same losses. THP: PyTorch told to ask for huge pages (THP_MEM_ALLOC_ENABLE=1), as NumPy does by itself.

The floor is the time of the matrix products alone at the speed of one large one, and of Adam's reading and writing
at the speed of memory: no implementation that does the same arithmetic can be faster.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from statistics import median

from mini_tf.training.optimizers import Adam

import numpy as np
from measuring import in_fresh_process, peak_memory, print_table, take_turns
from models import MODELS, matrix_operations, new_model, random_words

WARM_UP = 3              # steps; their losses are compared
AGREED = 1e-3            # relative difference of losses
ADAM_BYTES = 28          # for each number that is learned: p, g, m, v are read, p, m, v are written, 4 bytes each
FLOOR = "the machine"

VARIANTS = {             # (compiled, more environment)
    "PyTorch eager": (False, {}),
    "PyTorch eager, THP": (False, {"THP_MEM_ALLOC_ENABLE": "1"}),
    "PyTorch compiled": (True, {}),
    "PyTorch compiled, THP": (True, {"THP_MEM_ALLOC_ENABLE": "1"}),
}


def training_step(model, preset):
    """A function that trains our model on a batch of windows, and gives the loss."""
    optimizer, parameters = Adam(preset.learning_rate, preset.betas), model.parameters()

    def step(windows):
        model.clear_gradients()
        loss, backward = model.loss(windows)
        backward()
        optimizer.step(parameters)
        return float(loss)

    return step


def measure(method, preset, batch, steps, threads):
    """In the child process: the median seconds of a step, the first losses, and the most memory."""
    model = new_model(preset)
    if method == "mini_tf":
        step = training_step(model, preset)
    else:
        step = import_peer(threads).training_step(model, preset, compiled=VARIANTS[method][0])
    del model
    batches = random_words(WARM_UP + steps, batch, preset.model["T"] + 1)
    losses = [step(windows) for windows in batches[:WARM_UP]]
    seconds = median(seconds_of(partial(step, windows)) for windows in batches[WARM_UP:])
    return {"seconds": seconds, "losses": losses, "peak": peak_memory()}


def import_peer(threads):
    """The models in PyTorch, which runs as it comes: how OpenMP's threads wait is mini_tf's advice for its own."""
    os.environ.pop("OMP_WAIT_POLICY", None)
    import torch
    import torch_models

    torch.set_num_threads(threads)
    return torch_models


def measure_machine(threads, size=4096, numbers=1 << 26, repeat=4):
    """Operations per second in a product of large matrices, and bytes per second between memory and processor."""
    A, B = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    C = np.empty_like(A)
    product = min(seconds_of(lambda: np.matmul(A, B, out=C)) for _ in range(repeat))
    a, b = np.ones((2, threads, numbers // threads), dtype=np.float32)
    with ThreadPoolExecutor(threads) as pool:            # NumPy lets them run at the same time
        sums = min(seconds_of(lambda: list(pool.map(np.add, a, b, a))) for _ in range(repeat))       # a += b
    return {"operations": 2 * size**3 / product, "bytes": 12 * a.size / sums}


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peers():
    """The variants of PyTorch that can be measured here. Says why others cannot."""
    if find_spec("torch") is None:
        print("PyTorch is not installed (pip install torch==2.13.0): mini_tf alone is measured.")
        return []
    trial = subprocess.run([sys.executable, "-c", "import torch; torch.compile(lambda x: x + 1)(torch.ones(2))"],
                           capture_output=True, text=True)
    if trial.returncode == 0:
        return list(VARIANTS)
    reason = next((line for line in trial.stderr.splitlines() if "Error: " in line), "")
    print(f"torch.compile does not work here (it needs a C++ compiler), so it is left out: {reason}")
    return [variant for variant, (compiled, _) in VARIANTS.items() if not compiled]


def check_losses(runs):
    """Ends the program unless all contenders found the same losses."""
    ours = np.array(runs["mini_tf"][0]["losses"])
    for method, measured in runs.items():
        for run in measured:
            if not np.allclose(run["losses"], ours, rtol=AGREED, atol=0):
                sys.exit(f"the losses differ: {ours.round(4)} in mini_tf, {np.round(run['losses'], 4)} in {method}")


def print_floor(preset, batch, machine, ours):
    """The least time for such a step, its parts, and the share of `ours`, in seconds, that it is."""
    model = new_model(preset)
    operations, learned = matrix_operations(model, batch), model.numbers_to_learn()
    per_second, bytes_per_second = (median(run[part] for run in machine) for part in ("operations", "bytes"))
    products, adam = operations / per_second, ADAM_BYTES * learned / bytes_per_second
    print(f"""The floor is {products + adam:.3f} s, and mini_tf reaches {(products + adam) / ours:.0%} of it:
  {products:.3f} s  {operations / 1e9:.1f} billion operations in matrix products, at {per_second / 1e9:.0f} billion a second
  {adam:.3f} s  {ADAM_BYTES} bytes for each of {learned / 1e6:.2f} million numbers, at {bytes_per_second / 1e9:.1f} GB a second""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch"], help="measure it, too")
    parser.add_argument("--preset", choices=MODELS, default="gpt", help="the model (default: gpt)")
    parser.add_argument("--batch", type=int, help="windows in a batch (default: the preset's)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--steps", type=int, default=8, help="timed steps in a process (default: 8)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    preset, threads = MODELS[options.preset], options.threads
    batch = options.batch or preset.batch

    if options.measure == FLOOR:
        print(json.dumps(measure_machine(threads)))
        return
    if options.measure:
        print(json.dumps(measure(options.measure, preset, batch, options.steps, threads)))
        return

    def in_child(method):
        _, more = VARIANTS.get(method, (False, {}))
        pools = ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        return in_fresh_process(__file__, method, "--preset", options.preset, "--batch", batch, "--steps", options.steps,
                                "--threads", threads, **dict.fromkeys(pools, str(threads)), **more)

    methods = ["mini_tf", *(peers() if options.peer else []), FLOOR]
    sizes = ", ".join(f"{name} = {size}" for name, size in {"n": preset.n, **preset.model}.items() if name in "nTLHmf")
    print(f"One training step of {preset.name!r}: {sizes}, batch {batch}; {threads} threads, "
          f"{options.rounds} rounds of {options.steps} steps")
    runs = take_turns(methods, options.rounds, in_child)
    machine = runs.pop(FLOOR)
    check_losses(runs)
    print_table(runs)
    if options.peer and len(runs) > 1:
        print("All found the same losses.")
    print_floor(preset, batch, machine, median(run["seconds"] for run in runs["mini_tf"]))


if __name__ == "__main__":
    main()

"""How long one step of training takes, forward, backward and Adam: mini_tf, PyTorch, and what the machine could do.

    python tests/bench/training_step.py                          mini_tf alone, the per-word GPT
    python tests/bench/training_step.py --peer torch             beside PyTorch: pip install torch==2.13.0
    python tests/bench/training_step.py --preset lab --batch 16
    python tests/bench/training_step.py --peer torch --device gpu       on a GPU: see on_gpu.py

Every measurement is a process of its own, and the contenders take turns, so that a noisy minute on the machine falls
on all of them. A process first warms up, because compiling is not part of a step, then gives the median time of its steps.
All contenders start from the same weights, read the same words, have the same number of threads, and must find the same
losses. THP: PyTorch told to ask for huge pages (THP_MEM_ALLOC_ENABLE=1), as NumPy does by itself. "The batch whole" is
mini_tf without halves of the batch for each of two cores (mini_tf/parallel/two_cores.py).

The floor is the time of the matrix products alone, at the speed of one large product, plus that of Adam's reading and
writing, at the speed of memory; both speeds are measured in the same rounds. Everything else (softmax, norms,
activations, copies) is taken to cost nothing, so the same arithmetic cannot be done faster than that.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from unittest.mock import patch

from mini_tf.kernels import recycled_memory
from mini_tf.layers import clear_gradients
from mini_tf.parallel import join
from mini_tf.training import Adam, Training

import numpy as np
import on_gpu
from measuring import (
    in_fresh_process,
    note_settings,
    noting_the_time,
    peak_memory,
    print_table,
    seconds_of,
    take_turns,
    thread_settings,
)
from models import MODELS, import_torch, matrix_operations, new_model, random_words, torch_installed

WARM_UP = 3              # steps; their losses are compared
AGREED = 1e-3            # relative difference of losses: Adam's first steps magnify the rounding errors of small gradients
ADAM_BYTES = 28          # for each number that is learned: p, g, m, v are read, p, m, v are written, 4 bytes each
FLOOR, PRODUCTS = "the machine", "mini_tf's products alone"
WHOLE = "mini_tf, the batch whole"

OURS = "mini_tf", WHOLE
VARIANTS = {             # (compiled, additional environment variables)
    "PyTorch eager": (False, {}),
    "PyTorch eager, THP": (False, {"THP_MEM_ALLOC_ENABLE": "1"}),
    "PyTorch compiled": (True, {}),
    "PyTorch compiled, THP": (True, {"THP_MEM_ALLOC_ENABLE": "1"}),
}


def training_step(model, preset, rng=None, whole=False):
    """A function that trains our model on a batch, and gives the loss, as an array of its device.

    whole: without halves of the batch for each of two cores, which `mini-tf train` has
    """
    optimizer, parameters = Adam(preset.learning_rate, preset.betas), model.parameters()
    training = (Training if whole else join().training)(model, iter([]), optimizer, rng=rng)

    def step(batch):
        clear_gradients(parameters)
        loss, backward = training.loss(batch)
        backward()
        optimizer.step(parameters)
        return loss

    return step


def timed(step, batches, warm_up=WARM_UP, clock=seconds_of):
    """The median seconds of a step after the first `warm_up` ones, the losses of the first WARM_UP, the peak memory.

    clock: gives the seconds of what it runs
    """
    with recycled_memory():                              # as in `fit`
        losses = [float(step(batch)) for batch in batches[:warm_up]]
        seconds = median(clock(lambda batch=batch: float(step(batch))) for batch in batches[warm_up:])
    return {"seconds": seconds, "losses": losses[:WARM_UP], "peak": peak_memory()}


def seconds_in_products(work):
    """Of `seconds_of`, what goes into the multiplications with weights: products of two matrices."""
    spent, multiply = [], np.matmul

    def matmul(A, B, **options):
        both = A.ndim == B.ndim == 2                     # attention multiplies stacks of small ones
        return noting_the_time(multiply, spent, A, B, **options) if both else multiply(A, B, **options)

    with patch.object(np, "matmul", matmul):
        work()
    return sum(spent)


def measure(method, preset, batch, steps, threads):
    """In the child process: the median seconds of a step, the first losses, and the peak memory."""
    model = new_model(preset)
    if method in OURS:
        step = training_step(model, preset, whole=method == WHOLE)
    else:
        step = import_torch("torch_models", threads).training_step(model, preset, VARIANTS[method][0])
    del model
    return timed(step, random_words(WARM_UP + steps, batch, preset.model["T"] + 1))


def measure_machine(threads, size=4096, numbers=1 << 26, repeat=4):
    """Operations per second in a product of large matrices, and bytes per second between memory and processor."""
    A, B = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    C = np.empty_like(A)
    product = min(seconds_of(lambda: np.matmul(A, B, out=C)) for _ in range(repeat))
    a, b = np.ones((2, threads, numbers // threads), dtype=np.float32)
    with ThreadPoolExecutor(threads) as pool:            # NumPy releases the GIL
        sums = min(seconds_of(lambda: list(pool.map(np.add, a, b, a))) for _ in range(repeat))       # a += b
    return {"operations": 2 * size**3 / product, "bytes": 12 * a.size / sums}


def peers():
    """The variants of PyTorch that can be measured here; prints why others cannot."""
    if not torch_installed():
        return []
    variants = {name: compiled for name, (compiled, _) in VARIANTS.items()}
    trial = subprocess.run([sys.executable, "-c", "import torch; torch.compile(lambda x: x + 1)(torch.ones(2))"],
                           capture_output=True, text=True)
    if trial.returncode == 0:
        return list(variants)
    reason = next((line for line in trial.stderr.splitlines() if "Error: " in line), "")
    print(f"torch.compile does not work here (it needs a C++ compiler), so it is left out: {reason}")
    return [variant for variant, compiled in variants.items() if not compiled]


def check_losses(runs):
    """Ends the program unless all contenders found the same losses."""
    ours = np.array(runs["mini_tf"][0]["losses"])
    for method, measured in runs.items():
        for run in measured:
            if not np.allclose(run["losses"], ours, rtol=AGREED, atol=0):
                sys.exit(f"the losses differ: {ours.round(4)} in mini_tf, {np.round(run['losses'], 4)} in {method}")


def print_floor(preset, batch, machine, ours):
    """Print the least time for such a step, its parts, and its share of `ours`, the measured seconds."""
    model = new_model(preset)
    operations, learned = matrix_operations(model, batch), model.parameter_count()
    per_second, bytes_per_second = (median(run[part] for run in machine) for part in ("operations", "bytes"))
    products, adam = operations / per_second, ADAM_BYTES * learned / bytes_per_second
    floor = products + adam
    print(f"The floor is {floor:.3f} s, {floor / ours:.0%} of mini_tf's time:")
    print(f"  {products:.3f} s  {operations / 1e9:.1f} billion operations in matrix products, "
          f"at {per_second / 1e9:.0f} billion a second")
    print(f"  {adam:.3f} s  {ADAM_BYTES} bytes moved by Adam for each of {learned / 1e6:.2f} million numbers, "
          f"at {bytes_per_second / 1e9:.1f} GB a second")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch"], help="measure it, too")
    parser.add_argument("--preset", choices=[*MODELS, *on_gpu.OTHERS], default="gpt", help="the model (default: gpt)")
    parser.add_argument("--batch", type=int, help="windows in a batch (default: the preset's)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--steps", type=int, default=8, help="timed steps in a process (default: 8)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="of each contender (default: cpu)")
    parser.add_argument("--eager", action="store_true", help="on a GPU: PyTorch eager only, which saves compiling")
    parser.add_argument("--profile", action="store_true", help="on a GPU: where the time goes, too")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    if options.device == "gpu":
        on_gpu.compare(options.preset, options.peer, options.eager, options.batch, options.rounds, options.steps,
                       profile=options.profile)
        return
    if options.preset not in MODELS:
        parser.error(f"on the CPU, {on_gpu.OTHERS[options.preset]}.py measures {options.preset}")
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
        return in_fresh_process(__file__, method, "--preset", preset.name, "--batch", batch, "--steps", options.steps,
                                "--threads", threads, **thread_settings(threads), **more)

    methods = ["mini_tf", WHOLE, FLOOR, *(peers() if options.peer else [])]
    sizes = ", ".join(f"{name} = {size}" for name, size in {"n": preset.n, **preset.model}.items() if name in "nTLHmf")
    note_settings()
    print(f"One training step of {preset.name!r}: {sizes}, batch {batch}; {threads} threads, "
          f"{options.rounds} rounds of {options.steps} steps")
    runs = take_turns(methods, options.rounds, in_child)
    machine = runs.pop(FLOOR)
    check_losses(runs)
    print_table(runs)
    print("All found the same losses.")
    print_floor(preset, batch, machine, median(run["seconds"] for run in runs["mini_tf"]))


if __name__ == "__main__":
    main()

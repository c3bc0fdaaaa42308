"""A training step of an LSTM and of a GRU, forward and backward, beside PyTorch's. Needs PyTorch.

    python tests/bench/gated.py                 # on two threads; about three minutes

Batches of 32 texts of 32 words, float32, n = k. Each time is the median of STEPS steps of a fresh process; processes
take turns, and of each method's ROUNDS the QUIETEST count, those in which other programs took the least of the cores.
"""

import json
import os
import statistics
import sys
import time
from functools import partial

from measuring import in_fresh_process, print_table, seconds_of, take_turns, thread_settings

B, T, STEPS, ROUNDS, QUIETEST, THREADS = 32, 32, 30, 9, 5, 2
METHODS = ["PyTorch", "mini_tf", "mini_tf, formula"]


def of_mini_tf(cell, k, x):
    """A function that makes a step with mini_tf's layer"""
    from mini_tf.layers import GRU, LSTM

    import numpy as np

    layer = {"lstm": LSTM, "gru": GRU}[cell](k, k, np.random.default_rng(0))
    dstates = np.zeros((layer.parts, B, T, k), np.float32)
    dstates[0] = 1

    def step():
        layer.clear_gradients()
        layer(x)[1](dstates)

    return step


def of_pytorch(cell, k, x):
    import torch

    torch.set_num_threads(THREADS)
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](k, k, batch_first=True)
    x, dh = torch.tensor(x, requires_grad=True), torch.ones(B, T, k)

    def step():
        layer.zero_grad()
        x.grad = None
        layer(x)[0].backward(dh)

    return step


def busy_seconds():
    """What all programs together have had of the cores since the machine started (Linux)"""
    with open("/proc/stat") as file:
        user, nice, system = map(int, file.readline().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def measure(method, cell, k):
    import numpy as np

    x = np.random.default_rng(0).standard_normal((B, T, int(k))).astype(np.float32)
    step = (of_pytorch if method == "PyTorch" else of_mini_tf)(cell, int(k), x)
    for _ in range(5):
        step()
    start, own, busy = time.perf_counter(), time.process_time(), busy_seconds()
    seconds = statistics.median(seconds_of(step) for _ in range(STEPS))
    others = (busy_seconds() - busy) - (time.process_time() - own)
    return {"seconds": seconds, "others": others / (time.perf_counter() - start)}


def main():
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return

    def fresh(cell, k, method):
        kernels = {"MINI_TF_KERNELS": "off"} if "formula" in method else {}
        return in_fresh_process(__file__, method, cell, k, **thread_settings(THREADS), **kernels)

    for cell in ("lstm", "gru"):
        for k in (128, 256):
            runs = take_turns(METHODS, ROUNDS, partial(fresh, cell, k))
            quiet = {method: sorted(some, key=lambda run: run["others"])[:QUIETEST] for method, some in runs.items()}
            most = max(run["others"] for some in quiet.values() for run in some)
            print(f"\n{cell}, n = k = {k}; other programs took up to {most:.2f} cores")
            print_table(quiet, unit="ms")


if __name__ == "__main__":
    main()

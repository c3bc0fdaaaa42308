"""How far does data parallel training go?  Measures this machine, fits a model of the cost, and draws it for clusters.

    python tests/bench/scaling.py [--rounds 3]

It needs mpiexec and takes some ten minutes; nothing else should run meanwhile. Writes labs/scaling.md and
labs/pictures/scaling.png.
"""

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from mini_tf.files import replacing, write_text
from mini_tf.parallel.buckets import PIECE

import parallel
from matplotlib.figure import Figure

LABS = Path(__file__).parents[2] / "labs"
MEASURED = 1, 2, 3, 4, 6, 8
CORES = 2
NETWORKS = {"10 Gbit/s": (1.25e9, 20e-6), "100 Gbit/s": (12.5e9, 5e-6)}      # bytes a second, seconds a message
MACHINES = [2**k for k in range(11)]
BACKWARD = 2 / 3                     # of a step's computing
# Of the bytes, those whose gradient is complete near the beginning of the backward (the readout), not at its end.
EARLY = {"quick": 0.49, "lab": 0.97}
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"

MICRO = """
import time
import numpy as np
from mini_tf.kernels import recycled_memory
from mini_tf.layers import Parameter
from mini_tf.parallel import join
from mini_tf.parallel.buckets import GradientSums
group, N, MANY = join(), 1000, 1 << 25
numbers, received = np.zeros(N, np.float32), np.zeros(N, np.float32)
parameter, gradient = Parameter(np.zeros(MANY, np.float32)), np.ones(MANY, np.float32)
sums = GradientSums(group.comm, {"p": parameter})
def messages():
    requests = [group.comm.Irecv(received[i : i + 1], 1 - group.rank, 1) for i in range(N)]
    requests += [group.comm.Isend(numbers[i : i + 1], 1 - group.rank, 1) for i in range(N)]
    while not all([request.Test() for request in requests]):
        pass
def one_sum():
    parameter.grad = None
    with sums.on_their_way():
        parameter.accumulate(gradient)
def seconds(work):
    taken = []
    for _ in range(9):
        group.comm.Barrier()
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[4]
with recycled_memory():
    found = seconds(messages) / N, seconds(one_sum) / gradient.nbytes
if group.first:
    print(*found)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    done = subprocess.run(["mpiexec", "-n", "2", sys.executable, "-c", MICRO], stdout=subprocess.PIPE, text=True,
                          check=True)  # fmt: skip
    message, per_byte = map(float, done.stdout.split())
    found = {preset: measured(preset, numbers, rounds) for preset, numbers in (("quick", MEASURED), ("lab", (1, 2)))}
    draw(found, message, per_byte)
    write_text(LABS / "scaling.md", report(found, message, per_byte, rounds))
    print(f"written: {LABS / 'scaling.md'}, {LABS / 'pictures' / 'scaling.png'}")


def measured(preset, numbers, rounds):
    """{N: median step in seconds}, "bytes", and "buckets", the numbers in each; the processes take turns"""
    options = SimpleNamespace(sharded=True, at_the_end=False)
    steps = {n: [] for n in numbers}
    for _ in range(rounds):
        for n in numbers:
            one = parallel.started(n, preset, options)
            steps[n].append(one["step"])
            size, buckets = one["megabytes"] * 1e6, one["buckets"]
        print(preset, json.dumps({n: round(1e3 * statistics.median(of)) for n, of in steps.items()}), flush=True)
    return {n: statistics.median(of) for n, of in steps.items()} | {"bytes": size, "buckets": buckets}


def pieces(n, of):
    """In how many pieces n processes add up the buckets: each has up to PIECE numbers for every process"""
    return sum(math.ceil(numbers / (n * PIECE)) for numbers in of["buckets"])


def here(n, of, message, per_byte):
    """Seconds of a step of n processes on this machine: they take turns on its cores, for computing and for adding up"""
    if n == 1:
        return of[1]
    sums = 2 * (n - 1) * (of["bytes"] / n * per_byte + pieces(n, of) * message)
    return math.ceil(n / CORES) * (of[1] + sums)


def on_cluster(n, of, early, message, network):
    """Seconds of a step of n machines; what is sent of the early gradients is hidden behind the backward"""
    bytes_per_second, latency = network
    if n == 1:
        return of[1]
    sums = 2 * (n - 1) / n * of["bytes"] / bytes_per_second + pieces(n, of) * 2 * (latency + (n - 1) * message)
    return of[1] + max(0, early * sums - BACKWARD * of[1]) + (1 - early) * sums


def draw(found, message, per_byte):
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, *right = figure.subplots(1, 3)
    steps = {n: found["quick"][n] for n in MEASURED}
    model = [here(n, found["quick"], message, per_byte) for n in steps]
    left.plot(list(steps), [1e3 * step for step in model], color=GREY, label="model")
    left.plot(list(steps), [1e3 * step for step in steps.values()], "o", color=BLUE, label="measured")
    left.set(title="quick, on two cores", xlabel="processes, 64 rows each", ylabel="milliseconds for a step")
    left.set_ylim(0)
    left.legend(frameon=False)
    for axes, (preset, of) in zip(right, found.items()):
        for (name, network), colour in zip(NETWORKS.items(), (ORANGE, GREEN)):
            shares = [100 * of[1] / on_cluster(n, of, EARLY[preset], message, network) for n in MACHINES]
            axes.plot(MACHINES, shares, "o-", markersize=4, color=colour, label=name)
        axes.axhline(90, color=GREY, linewidth=1, linestyle="--")
        axes.set_xscale("log", base=2)
        axes.set_xticks(MACHINES[::2], MACHINES[::2])
        axes.set(title=f"{preset}, one core in each machine: a model", xlabel="machines, 64 rows each", ylim=(0, 105))
        axes.legend(frameon=False)
    right[0].set_ylabel("efficiency in %")
    for axes in (left, *right):
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(LABS / "pictures" / "scaling.png") as temporary:
        figure.savefig(temporary, dpi=110)


def report(found, message, per_byte, rounds):
    quick, lab = found["quick"], found["lab"]
    rows = [
        f"| {n} | {1e3 * quick[n]:.0f} | {1e3 * here(n, quick, message, per_byte):.0f} | "
        f"{n * quick[1] / (CORES * quick[n]):.0%} |" for n in MEASURED
    ]  # fmt: skip
    cluster = []
    for preset, of in found.items():
        for name, network in NETWORKS.items():
            shares = [of[1] / on_cluster(n, of, EARLY[preset], message, network) for n in (2, 16, 128, 1024)]
            cells = " | ".join(f"{share:.0%}" for share in shares)
            cluster.append(f"| {preset}, {of['bytes'] / 1e6:.0f} MB | {name} | {cells} |")
    nl = "\n"
    return f"""# How far does it scale?

Training on N processes, each with 64 rows of every batch (`mini_tf/parallel`). Ideally a step takes as long as on one process; the
efficiency is the time on one process divided by the time on N. All figures here were measured, or computed from measured ones, by

```
python tests/bench/scaling.py --rounds {rounds}
```

on {platform.machine()}, {CORES} cores, one thread for each process, MPICH.

![Left, the time of a step against the number of processes on two cores, measured and modelled; right, the modelled efficiency of quick and lab on up to 1,024 machines](pictures/scaling.png)

## Two cores

| preset | gradients | one process | two | efficiency |
| --- | ---: | ---: | ---: | ---: |
| quick | {quick['bytes'] / 1e6:.1f} MB | {1e3 * quick[1]:.0f} ms | {1e3 * quick[2]:.0f} ms | {quick[1] / quick[2]:.1%} |
| lab | {lab['bytes'] / 1e6:.0f} MB | {1e3 * lab[1]:.0f} ms | {1e3 * lab[2]:.0f} ms | {lab[1] / lab[2]:.1%} |

What is lost is memory traffic: on one machine, gradients are summed by the same cores, and through the same memory, as the
computation. In `lab` 97 % of them belong to one matrix, the readout's A (8,192 × 14,295). On one machine each process updates half
of A only (`--sharded`, the default there): summing takes about 50 ms of a step, Adam 37 to 59, and distributing the new parameters
25 to 34. Where both update all of A (`--no-sharded`), the sums take 84 to 107 ms and Adam 125 to 133, instead of 70 when it runs
alone, because it does little but read and write memory. In other runs, `lab` came out at 90 to 98 % with `--sharded`, and at 89 and
91 % without (`python tests/bench/parallel.py`); with MPI's own Iallreduce and Ireduce, in pieces of 1 MB, instead of our own
messages, at 84 and 85 to 91 %.

Gradients are sent while the backward is still running. On one machine that saves next to nothing, because the cores that would have
to send are busy computing. With and without it (`--at-the-end`), alternating,
`python tests/bench/parallel.py --processes 2 --rounds 1`, medians: `quick` waits 0.5 ms for its sums with it, 1.4 without (three
runs each); `lab` 42 ms, 51 without (six each), but its step takes 1,146 ms, 1,135 without.

## More processes than cores

With N > 2 the processes take turns, and all wait for the last one. The model of a step has three constants, t(1) and two for the
messages, each measured separately:

    t(N) = ⌈N/2⌉·(t(1) + 2·(N − 1)·(k·α + bytes/N·β))

for k pieces, with α = {1e6 * message:.1f} µs for a message, and β = {1e9 * per_byte:.3f} ns for a byte ({1e-9 / per_byte:.1f} GB/s), of two processes.

| N | measured, ms | model, ms | of two cores' time, used |
| ---: | ---: | ---: | ---: |
{nl.join(rows)}

Where the measured time is above the model, processes that wait for a message keep a core busy, because MPI's waiting does not
sleep.

## Clusters: a model, not a measurement

One such core in each machine. Each machine sends 2·(N − 1)/N·bytes, and for each piece 2·(N − 1) messages, which take {1e6 * message:.1f} µs of its
processor. The readout's gradient comes first in the backward, and that of the word vectors last: so 97 % of `lab`'s bytes can be
sent while the backward, two thirds of the step, is running; of `quick`'s, 49 %. The step has to wait for the rest. An ordinary
network has 10 Gbit/s and a latency of 20 µs, a good one 100 Gbit/s and 5 µs.

| preset, gradients | network | 2 | 16 | 128 | 1,024 machines |
| --- | --- | ---: | ---: | ---: | ---: |
{nl.join(cluster)}

What would have to change, and when:

- **Any size, first:** larger shares. Computing grows with the rows of a share, sending does not.
- **`lab` at 10 Gbit/s:** its {lab['bytes'] / 1e6:.0f} MB take up to {2e3 * lab['bytes'] / 1.25e9:.0f} ms, and the backward that hides them {1e3 * BACKWARD * lab[1]:.0f}. With a processor twice as fast, the
  step would have to wait for most of that. Sending in half precision would halve it; a model that predicts at every position with a
  readout of n × c numbers instead of T·n × c (the readout "shared") has a thirtieth of the parameters.
- **On a network, more pieces at a time.** `UNDER_WAY` in `mini_tf/parallel/buckets.py` is 3 pieces, with messages of 1 MB, which is
  best where the processes share their memory; a network needs as many as it can transfer between two gradients. MPI libraries have
  a thread that keeps messages moving in the meantime (MPICH: `MPICH_ASYNC_PROGRESS=1`). The model assumes both.
- **From a few hundred machines on:** 2·(N − 1) messages for every piece. A tree needs 2·log₂N; large clusters sum within each rack
  first, and use a tree between racks.
- **1,024 machines with 64 rows each** make batches of 65,536 rows. By then the question is no longer the network, but whether such
  a batch teaches more than a smaller one: the learning rate and its warm-up have to be tuned again.
- **Memory** is not the limit: `--sharded`, the default on one machine, divides Adam's two numbers for each parameter by N. Sharding
  gradients and parameters, too, would be the next step, and sends half as much again (Rajbhandari et al. 2020).
"""


if __name__ == "__main__":
    main()

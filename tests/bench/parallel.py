"""How much faster are several processes?  Training steps by mpiexec, one thread for each process.

    python tests/bench/parallel.py [--presets quick lab] [--processes 1 2] [--rounds 5] [--no-sharded] [--at-the-end]

Every process trains on 64 rows of each batch, so that N processes read N times as many words in a step. Ideally such a
step takes as long as one of a single process: efficiency is that time divided by this one. The numbers of processes
take turns, so that all of them meet the same disturbances; shown is the median of the rounds.

    waiting     of a step: milliseconds in which a process waits for the sums after its own backward is done
    peak        the most memory that one of the processes has held
    --no-sharded    every process updates all parameters, as is usual on several machines
    --at-the-end    send nothing before the backward is done, to see how much of the sending is hidden behind it
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from mini_tf import kernels
from mini_tf.parallel import ending_together, join

import numpy as np
from measuring import peak_memory

ROWS = 64                # of a batch, for each process
STEPS = {"quick": 30, "lab": 6}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", default=["quick", "lab"])
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sharded", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--at-the-end", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        with ending_together(), kernels.recycled_memory():
            steps_of(options)
        return
    print(f"{'preset':<8}{'N':>3}{'step ms':>9}{'waiting':>9}{'sent MB':>9}{'peak MB':>9}{'efficiency':>12}   of the rounds")
    for preset in options.presets:
        rounds = {n: [] for n in options.processes}
        for _ in range(options.rounds):
            for n in options.processes:
                rounds[n].append(started(n, preset, options))
        alone = statistics.median(of["step"] for of in rounds[options.processes[0]])
        for n in options.processes:
            step, waiting = (1e3 * statistics.median(of[key] for of in rounds[n]) for key in ("step", "waiting"))
            each = [one["step"] / other["step"] for one, other in zip(rounds[options.processes[0]], rounds[n])]
            print(f"{preset:<8}{n:>3}{step:>9.1f}{waiting:>9.1f}{rounds[n][0]['megabytes']:>9.1f}"
                  f"{statistics.median(of['peak'] for of in rounds[n]):>9.0f}"
                  f"{1e3 * alone / step:>12.1%}   {min(each):.1%} to {max(each):.1%}", flush=True)  # fmt: skip


def started(n, preset, options):
    """What `steps_of` found with n processes"""
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "NUMBA", "OMP")}
    command = ["mpiexec", "-n", str(n), sys.executable, __file__, "--worker", "--presets", preset]
    command += ["--no-sharded"] * (not options.sharded) + ["--at-the-end"] * options.at_the_end
    done = subprocess.run(command, env=os.environ | one_thread, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def steps_of(options):
    """Print the median seconds of a step of one preset, and what of them is waiting, as JSON."""
    from mini_tf.progress import prepare_kernels
    from mini_tf.text import shakespeare
    from mini_tf.training.language import prepare
    from mini_tf.training.registry import PRESETS

    group, [name] = join(options.sharded), options.presets
    if group.size > 1:
        from mini_tf.parallel.buckets import GradientSums, buckets_of
    if options.at_the_end and group.size > 1:
        GradientSums._one_more = lambda self, i: self.added.__setitem__(i, self.added[i] + 1)
    prepare_kernels(lambda line: None)
    preset = replace(PRESETS[name], batch=ROWS * group.size)
    corpus = prepare(shakespeare(), preset.n, preset.model["T"], vectors="random")
    training = preset.training(preset.new_model(corpus, 0), corpus, 1000, 0)
    for _ in range(3):
        training.one_step()
    seconds, waiting = [], []
    for _ in range(STEPS.get(name, 10)):
        before = training.sums.waited if group.size > 1 else 0.0
        start = time.perf_counter()
        training.one_step()
        seconds.append(time.perf_counter() - start)
        waiting.append(training.sums.waited - before if group.size > 1 else 0.0)
    peak = group.maximum(peak_memory() / 1e6)
    sent = sum(p.data.nbytes for p in training.parameters.values() if p.trainable) if group.size > 1 else 0
    buckets = [bucket.numbers for bucket in buckets_of(training.parameters)] if group.size > 1 else []
    if group.first:
        print(json.dumps({"step": float(np.median(seconds)), "waiting": float(np.median(waiting)),
                          "megabytes": sent / 1e6, "peak": peak, "buckets": buckets}))  # fmt: skip


if __name__ == "__main__":
    main()

"""What the benchmarks share: fresh processes that take turns, their peak memory, and a table of the results."""

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

UNITS = {"s": (1, 3), "ms": (1000, 2)}       # how many make a second, and the decimals to show


def take_turns(methods, rounds, measure):
    """{method: [measure(method), for each round]}, in turns; each round starts one method later."""
    methods = list(methods)
    runs = {method: [] for method in methods}
    for turn in range(rounds):
        first = turn % len(methods)
        for method in methods[first:] + methods[:first]:
            runs[method].append(measure(method))
    return runs


def in_fresh_process(script, method, *arguments, **environment):
    """What `script --measure method arguments …` prints, as JSON, in a process with these environment variables too."""
    command = [sys.executable, script, "--measure", method, *map(str, arguments)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment).stdout
    return json.loads(output)


def thread_settings(threads):
    """The environment variables that give the thread pools of BLAS, OpenMP and Numba so many threads."""
    pools = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"
    return dict.fromkeys(pools, str(threads))


def note_settings():
    """Print which environment variable, if any, holds NumPy back."""
    if processor := os.environ.get("OPENBLAS_CORETYPE"):
        print(f"OPENBLAS_CORETYPE={processor}: NumPy's products are limited to what that processor can do. "
              "Unset it to measure this one.")  # fmt: skip


def seconds_of(work):
    """How long a call of `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def noting_the_time(work, spent, *arguments, **options):
    """work(*arguments, **options); how long it took is added to the list `spent`."""
    start = time.perf_counter()
    result = work(*arguments, **options)
    spent.append(time.perf_counter() - start)
    return result


@contextmanager
def busy_programs(many):
    """Inside the block, so many other programs keep a core busy each."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(many)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()


def peak_memory():
    """The most memory that this process has held, in bytes; 0 where the system does not say (only Linux does)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def print_table(runs, more=lambda run, median: "", unit="s"):
    """Median, shortest and longest time; medians relative to the first method's; memory, if measured; what `more` adds.

    runs: {method: [{"seconds", perhaps "peak" and "new" bytes, …}, for each round]}; `more` is given a method's first
    run and its median seconds.
    """
    factor, digits = UNITS[unit]
    medians = {method: statistics.median(run["seconds"] for run in measured) for method, measured in runs.items()}
    first = next(iter(runs))
    memory = [part for part in ("peak", "new") if part in runs[first][0]]
    titles = [f"median {unit}", "min", "max", "ratio", *(f"{part} MB" for part in memory)]
    print(f"{'':28}" + "".join(f"{title:>10}" for title in titles))
    for method, measured in runs.items():
        seconds = [run["seconds"] for run in measured]
        times = [f"{factor * time:.{digits}f}" for time in (medians[method], min(seconds), max(seconds))]
        megabytes = [f"{statistics.median(run[part] for run in measured) / 1e6:.0f}" for part in memory]
        cells = [*times, f"{medians[method] / medians[first]:.2f}", *megabytes]
        print(f"{method:28}" + "".join(f"{cell:>10}" for cell in cells) + more(measured[0], medians[method]))

"""What the benchmarks share: fresh processes that take turns, the memory that they held, and the table of it all."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

UNITS = {"s": 1, "ms": 1000}


def take_turns(methods, rounds, measure):
    """{method: [measure(method), for each round]}, in turns that start one method later each round."""
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


def peak_memory():
    """The most that this process has held, in bytes; 0 where the system does not say (it is Linux that does)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def print_table(runs, more=lambda run, median: "", unit="s"):
    """Median, least and most time; the ratio of the medians, the first method = 1; memory if measured; what `more` adds.

    runs: {method: [{"seconds", perhaps "peak" and "new" bytes, …}, for each round]}; `more` is given a method's first
    run and its median seconds.
    """
    factor, digits = UNITS[unit], 3 if unit == "s" else 1
    medians = {method: statistics.median(run["seconds"] for run in measured) for method, measured in runs.items()}
    first = next(iter(runs))
    memory = [part for part in ("peak", "new") if part in runs[first][0]]
    print(f"{'':28}{f'median {unit}':>10}{'min':>9}{'max':>9}{'ratio':>8}" + "".join(f"{part + ' MB':>9}" for part in memory))
    for method, measured in runs.items():
        seconds = [run["seconds"] for run in measured]
        times = "".join(f"{factor * time:{width}.{digits}f}" for time, width in
                        ((medians[method], 10), (min(seconds), 9), (max(seconds), 9)))
        held = "".join(f"{statistics.median(run[part] for run in measured) / 1e6:9.0f}" for part in memory)
        print(f"{method:28}{times}{medians[method] / medians[first]:8.2f}{held}{more(measured[0], medians[method])}")

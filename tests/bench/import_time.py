"""How long it takes to import mini_tf, beside Python's own start and the imports of NumPy and PyTorch.

    python tests/bench/import_time.py [--rounds 10]

Timed are whole processes, from start to end; the commands take turns. PyTorch is measured if it is installed.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from measuring import print_table, seconds_of, take_turns

START = "python -c pass"
IMPORTS = ["import mini_tf", "from mini_tf import ops", "import mini_tf.training", "import numpy", "import torch"]


def commands():
    """{name: command}: Python's start first, with which the others are compared."""
    found = {START: [sys.executable, "-c", "pass"]}
    for line in IMPORTS:
        if find_spec(line.split()[1].split(".")[0]):
            found[line] = [sys.executable, "-c", line]
    script = shutil.which("mini-tf", path=Path(sys.executable).parent)
    if script:
        found["mini-tf --help"] = [script, "--help"]
    return found


def measure(command):
    return {"seconds": seconds_of(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="how often each command is measured (default: 10)")
    options = parser.parse_args()

    found = commands()
    print(f"Starting a process, Python {sys.version.split()[0]}; {options.rounds} rounds")
    take_turns(found, 1, lambda name: measure(found[name]))          # once untimed: the files are read and compiled
    runs = take_turns(found, options.rounds, lambda name: measure(found[name]))
    start = statistics.median(run["seconds"] for run in runs[START])
    print_table(runs, lambda run, median: f"{1000 * (median - start):8.1f} ms beyond Python's start", unit="ms")


if __name__ == "__main__":
    main()

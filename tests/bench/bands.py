"""The bands of losses that are usual for each preset: training by several seeds, on the preset's own data.

    python tests/bench/bands.py RUNS [--presets quick gpt] [--seeds 5]

Trains each preset by each seed into RUNS/PRESET-SEED, one after another; runs that are there already are not trained
again, and those that were stopped go on. Then it writes mini_tf/training/bands.json, with the presets that it measured
in place of their old bands. With two cores it takes about four minutes per preset and seed; `translate-hour` and `lab`
take hours.
"""

import argparse
import csv
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from mini_tf.files import write_text
from mini_tf.training.expected_loss import FILE
from mini_tf.training.registry import PRESETS

import numpy as np

COMMAND = [sys.executable, "-m", "mini_tf", "train"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    short = [name for name in PRESETS if name not in ("lab", "translate-hour")]
    parser.add_argument("--presets", nargs="*", default=short)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    bands = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in options.presets:
        folders = [options.runs / f"{name}-{seed}" for seed in range(options.seeds)]
        for seed, folder in enumerate(folders):
            if (folder / "results.json").exists():
                continue
            new = ["--preset", name, "--seed", str(seed), "--run", str(folder)]
            begun = (folder / "config.json").exists()
            subprocess.run([*COMMAND, *(["--resume", str(folder)] if begun else new)], check=True)
        bands[name] = band(PRESETS[name], folders)
        print(f"{name}: test {bands[name]['test'][0]:.4f} ± {bands[name]['test'][1]:.4f} over {options.seeds} seeds")
    write_text(FILE, json.dumps(dict(sorted(bands.items())), indent=1) + "\n")


def band(preset, folders):
    """An entry of bands.json, from the run folders of the seeds."""
    losses = []
    for folder in folders:
        with open(folder / "metrics.csv", encoding="utf-8") as file:
            losses.append({row["step"]: float(row["validation_loss"]) for row in csv.DictReader(file)})
    tests = [json.loads((folder / "results.json").read_text(encoding="utf-8"))["test"] for folder in folders]
    steps = [step for step in losses[0] if all(step in of for of in losses)]     # some stop early
    return {
        "settings": {name: value for name, value in asdict(preset).items() if name != "description"}, "seeds": len(folders), "test": mean_and_deviation(tests),
        "validation": {step: mean_and_deviation([of[step] for of in losses]) for step in steps},
    }  # fmt: skip


def mean_and_deviation(values):
    return [round(float(np.mean(values)), 5), round(float(np.std(values, ddof=1)), 5)]


if __name__ == "__main__":
    main()

"""How many tokens a second a Llama writes, beside llama2.c's run.c: greedy, one text, the same files and threads.

    python tests/bench/llama.py --run ./run --tokenizer tokenizer.bin [MODEL.bin …]

Compile run.c with `gcc -O3 -march=native -o run run.c -lm`, for several threads also with -fopenmp. Beside the named
models, random ones of these shapes are measured: stories15M (n = 288) and stories110M (n = 768, GPT-2's width and
depth). Each measurement is a process of its own, and they take turns.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from mini_tf.decoding import generate, greedy
from mini_tf.models import Llama
from mini_tf.pretrained import export_llama2c, load_llama

import numpy as np
from measuring import in_fresh_process, note_settings, take_turns, thread_settings

SHAPES = {
    "shape of stories15M": {"c": 32_000, "n": 288, "T": 256, "L": 6, "H": 6, "f": 768},
    "shape of stories110M": {"c": 32_000, "n": 768, "T": 1024, "L": 12, "H": 12, "f": 2048},
}
TOKENS = {"shape of stories110M": 64}                    # to write; 256 of the others


def random_llama(c, n, H, **sizes):
    rng = np.random.default_rng(0)
    model = Llama(rng.standard_normal((c, n), dtype=np.float32), H=H, m=n // H, **sizes)
    for name, parameter in model.parameters().items():
        if not name.endswith("gamma"):
            parameter.data = rng.standard_normal(parameter.data.shape, dtype=np.float32) * np.float32(0.02)
    return model


def ours(path, tokens):
    """Tokens a second; the first run, which compiles and reads the file, does not count"""
    model = load_llama(path)
    list(generate(model, [1], 8, greedy))
    start = time.perf_counter()
    written = list(generate(model, [1], tokens, greedy))
    return {"tokens": len(written) / (time.perf_counter() - start)}


def by_run_c(run, tokenizer, path, tokens, environment):
    command = [run, path, "-t", "0", "-n", str(tokens), "-z", tokenizer]
    said = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace", env=environment)
    return float(re.search(r"tok/s: ([\d.]+)", said.stderr)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--run")
    parser.add_argument("--tokenizer", default="tokenizer.bin")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "TOKENS"))
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(ours(given.measure[0], int(given.measure[1]))))
        return
    note_settings()
    threads = thread_settings(given.threads)
    print(f"| tokens a second, {given.threads} thread(s) | mini_tf | run.c | ratio |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        paths = {path.name: path for path in given.models}
        for name, sizes in SHAPES.items():
            paths[name] = Path(folder) / f"{name.split()[-1]}.bin"
            export_llama2c(random_llama(**sizes), paths[name])
        for name, path in paths.items():
            tokens = TOKENS.get(name, 256)
            measure = {
                "mini_tf": lambda path=path, tokens=tokens: in_fresh_process(__file__, path, tokens, **threads)["tokens"],
                "run.c": lambda path=path, tokens=tokens: by_run_c(
                    given.run, given.tokenizer, path, tokens, os.environ | threads
                ),
            }
            runs = take_turns(measure, given.rounds, lambda method, measure=measure: measure[method]())
            a, b = (median(runs[method]) for method in measure)
            print(f"| {name} | {a:,.0f} | {b:,.0f} | {a / b:.2f} |", flush=True)


if __name__ == "__main__":
    main()

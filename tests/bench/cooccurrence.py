"""How quickly, and in how much memory, words are counted near words: mini_tf and what one would write instead.

    python tests/bench/cooccurrence.py                     the lab's corpus
    python tests/bench/cooccurrence.py --times 30          the same, 30 times in a row
    python tests/bench/cooccurrence.py --corpus FILE --words 1000000

Every measurement is a process of its own, and the methods take turns, so that a noisy minute on the machine
falls on all of them. Imports, reading the corpus and compiling are outside the time. Memory is what the process
held at most, less what it held before. All methods must find the same matrix.
"""

import argparse
import hashlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

from mini_tf.text import Vocabulary, cooccurrence, read_corpus, shakespeare, tokenize


def with_mini_tf(ids, size, window):
    return cooccurrence(ids, size, window)


def with_mini_tf_on_one_thread(ids, size, window):
    return cooccurrence(ids, size, window, threads=1)


def with_scipy(ids, size, window):
    """The corpus against itself shifted by u, for each u; csr adds up what is repeated."""
    S = sparse.csr_array((size, size), dtype=np.int64)
    for u in range(1, window // 2 + 1):
        ones = np.ones(max(len(ids) - u, 0), dtype=np.int64)
        S = S + sparse.coo_array((ones, (ids[u:], ids[:-u])), shape=(size, size)).tocsr()
    return S + S.T + sparse.diags_array(np.bincount(ids, minlength=size), dtype=np.int64)


def with_numpy(ids, size, window):
    """All pairs as numbers i·c + j, sorted."""
    pairs = [ids * size + ids]
    for u in range(1, window // 2 + 1):
        pairs += [ids[u:] * size + ids[:-u], ids[:-u] * size + ids[u:]]
    return np.unique(np.concatenate(pairs), return_counts=True)


def with_counter(ids, size, window):
    words, pairs = ids.tolist(), Counter()
    pairs.update(zip(words, words))
    for u in range(1, window // 2 + 1):
        pairs.update(zip(words[u:], words))
        pairs.update(zip(words, words[u:]))
    return pairs


METHODS = {
    "mini_tf": with_mini_tf,
    "mini_tf, 1 thread": with_mini_tf_on_one_thread,
    "SciPy, coo for each shift": with_scipy,
    "NumPy, sorted pairs": with_numpy,
    "collections.Counter": with_counter,
}


def as_matrix(result, size):
    if isinstance(result, Counter):
        result = np.array([i * size + j for i, j in result]), np.array(list(result.values()))
    if isinstance(result, tuple):
        pairs, counts = result
        result = sparse.coo_array((counts, (pairs // size, pairs % size)), shape=(size, size))
    C = sparse.csr_array(result, dtype=np.int64)
    C.sum_duplicates()
    return C


def fingerprint(C):
    i, j = C.nonzero()
    return hashlib.sha256(np.stack([i, j, C.data]).astype(np.int64).tobytes()).hexdigest()


def measure(method, path, size, window):
    """In the child process: seconds, bytes, and what was found."""
    ids = np.load(path)
    METHODS[method](ids[:100].copy(), size, window)        # compile, and import what is imported late
    before = peak_memory()
    start = time.perf_counter()
    result = METHODS[method](ids, size, window)
    seconds = time.perf_counter() - start
    memory = peak_memory() - before
    C = as_matrix(result, size)
    return {"seconds": seconds, "memory": memory, "entries": C.nnz, "found": fingerprint(C)}


def peak_memory():
    """The most that this process has held, in bytes; 0 where the system does not say (it is Linux that does)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def take_turns(script, methods, rounds, arguments):
    """{method: [what measure() gave, for each round]}, each from a fresh process, in turns that start one later."""
    methods, runs = list(methods), {method: [] for method in methods}
    for turn in range(rounds):
        for method in methods[turn % len(methods):] + methods[:turn % len(methods)]:
            command = [sys.executable, script, "--measure", method, *map(str, arguments)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            runs[method].append(json.loads(output))
    return runs


def print_table(runs, more=lambda run, median: ""):
    """Median, least and most seconds; the ratio of the medians, mini_tf = 1; peak memory; what `more` adds."""
    ours = statistics.median(run["seconds"] for run in runs["mini_tf"])
    print(f"{'':28}{'median s':>10}{'min':>9}{'max':>9}{'ratio':>8}{'memory MB':>11}")
    for method, measured in runs.items():
        seconds = [run["seconds"] for run in measured]
        median = statistics.median(seconds)
        memory = statistics.median(run["memory"] for run in measured) / 1e6
        print(f"{method:28}{median:10.3f}{min(seconds):9.3f}{max(seconds):9.3f}{median / ours:8.2f}{memory:11.0f}"
              f"{more(measured[0], median)}")


def corpus_ids(corpus, words):
    """Word ids of a text file, or of the lab's corpus; the first `words` of them."""
    tokens = tokenize(read_corpus(corpus) if corpus else shakespeare())[:words]
    return Vocabulary(tokens).encode(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="a text file (default: the lab's Shakespeare)")
    parser.add_argument("--words", type=int, help="take the first so many (default: all)")
    parser.add_argument("--times", type=int, default=1, help="repeat the corpus so often")
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
                        help="; ".join(METHODS))
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()

    if options.measure:
        method, path, size, window = options.measure
        print(json.dumps(measure(method, path, int(size), int(window))))
        return

    ids = corpus_ids(options.corpus, options.words)
    size = int(ids.max()) + 1
    ids = np.tile(ids, options.times)
    print(f"{len(ids):,} words, {size:,} different, W = {options.window}; {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ids.npy")
        np.save(path, ids)
        methods = dict.fromkeys(["mini_tf", *options.methods])
        runs = take_turns(__file__, methods, options.rounds, [path, size, options.window])

    found = {run["found"] for run in itertools.chain(*runs.values())}
    if len(found) != 1:
        sys.exit("the methods do not agree on the matrix")
    print_table(runs, lambda run, median: f"{len(ids) / median / 1e6:10.2f} M words/s")
    print(f"All found the same {runs['mini_tf'][0]['entries']:,} pairs.")


if __name__ == "__main__":
    main()

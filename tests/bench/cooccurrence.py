"""Time and memory of counting co-occurrences: mini_tf, and what one would write instead.

    python tests/bench/cooccurrence.py                     the lab's corpus
    python tests/bench/cooccurrence.py --repeat 30         the same, 30 times in a row
    python tests/bench/cooccurrence.py --corpus FILE --words 1000000

Every measurement runs in a process of its own, and the methods take turns, so that noise on the machine affects
them all alike. Imports, reading the corpus and compiling are not timed. Peak MB is the most memory that the process
ever held, new MB the part of it that the counting added. collections.Counter counts only a part of a long corpus,
and its time is scaled up to the whole. All methods must find the same matrix.
"""

import argparse
import hashlib
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mini_tf.text import Vocabulary, cooccurrence, read_corpus, shakespeare, tokenize

import numpy as np
from measuring import in_fresh_process, peak_memory, print_table, take_turns
from scipy import sparse


def with_mini_tf(ids, size, window):
    return cooccurrence(ids, size, window)


def with_scipy(ids, size, window):
    """The corpus paired with itself shifted by u, for each u; csr adds up repeated pairs."""
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


COUNTER = "collections.Counter"
PART = 300_000      # the most words that it counts

METHODS = {
    "mini_tf": with_mini_tf,
    "SciPy, coo for each shift": with_scipy,
    "NumPy, sorted pairs": with_numpy,
    COUNTER: with_counter,
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
    """A hash of the entries, in the order of rows and columns."""
    i, j = C.nonzero()
    return hashlib.sha256(np.stack([i, j, C.data]).astype(np.int64).tobytes()).hexdigest()


def measure(method, path, size, window):
    """In the child process: seconds, bytes, and a hash of what was found in how many words."""
    ids = np.load(path)
    words = ids[:PART] if method == COUNTER else ids
    METHODS[method](ids[:100].copy(), size, window)        # compile, and do the late imports
    before = peak_memory()
    start = time.perf_counter()
    result = METHODS[method](words, size, window)
    seconds = (time.perf_counter() - start) * len(ids) / len(words)
    peak = peak_memory()
    C = as_matrix(result, size)
    return {"seconds": seconds, "peak": peak, "new": peak - before, "words": len(words), "found": fingerprint(C)}


def corpus_arguments(description):
    """A parser of the arguments that say what is counted, and how often it is measured."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", metavar="FILE", help="a text file (default: the lab's Shakespeare)")
    parser.add_argument("--words", type=int, help="use only the first so many words (default: all)")
    parser.add_argument("--repeat", type=int, default=1, help="repeat the corpus so many times")
    parser.add_argument("--window", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5, help="how often each method is measured")
    return parser


def corpus_ids(options):
    """The word ids that the corpus_arguments ask for, and the size of their vocabulary."""
    tokens = tokenize(read_corpus(options.corpus) if options.corpus else shakespeare())[:options.words]
    vocabulary = Vocabulary(tokens)
    return np.tile(vocabulary.encode(tokens), options.repeat), len(vocabulary)


def main():
    parser = corpus_arguments(__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD",
                        help="; ".join(METHODS))
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()

    if options.measure:
        method, path, size, window = options.measure
        print(json.dumps(measure(method, path, int(size), int(window))))
        return

    ids, size = corpus_ids(options)
    print(f"{len(ids):,} words, {size:,} different, W = {options.window}; {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ids.npy")
        np.save(path, ids)
        methods = dict.fromkeys(["mini_tf", *options.methods])
        runs = take_turns(methods, options.rounds,
                          lambda method: in_fresh_process(__file__, method, path, size, options.window))

    for run in itertools.chain(*runs.values()):
        if run["found"] != fingerprint(cooccurrence(ids[:run["words"]], size, options.window)):
            sys.exit("the methods do not agree on the matrix")
    print_table(runs, lambda run, median: f"{len(ids) / median / 1e6:10.2f} M words/s"
                + (f", from {run['words']:,} words" if run["words"] < len(ids) else ""))
    print("All found the same matrix.")


if __name__ == "__main__":
    main()

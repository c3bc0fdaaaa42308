"""How fast the first n eigenvectors of a co-occurrence matrix are found: mini_tf, and SciPy's eigsh with its defaults.

    python tests/bench/eigenvectors.py                     the lab's corpus, n = 256
    python tests/bench/eigenvectors.py --n 64 --words 100000
    python tests/bench/eigenvectors.py --corpus FILE

Measured as in cooccurrence.py, in this folder. mini_tf's time includes the checks of its input and of its result;
the residual is the largest ‖C v − λ v‖ over the n eigenvectors, in units of the largest eigenvalue.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from mini_tf.text import cooccurrence, eigenvector_embeddings

import numpy as np
from cooccurrence import corpus_arguments, corpus_ids
from measuring import in_fresh_process, note_settings, peak_memory, print_table, take_turns
from scipy import sparse
from scipy.sparse.linalg import eigsh

METHODS = {
    "mini_tf": eigenvector_embeddings,
    "eigsh(C)": lambda C, n: eigsh(C, k=n, which="LA"),
    "eigsh(C as float64)": lambda C, n: eigsh(C.astype(np.float64), k=n, which="LA"),
}


def measure(method, path, n):
    """In the child process: seconds, bytes, and how well the eigenvectors fit."""
    C = sparse.load_npz(path)
    before = peak_memory()
    start = time.perf_counter()
    values, V = METHODS[method](C, n)
    seconds = time.perf_counter() - start
    peak = peak_memory()
    residual = np.linalg.norm(C @ V - V * values, axis=0).max() / values.max()
    return {"seconds": seconds, "peak": peak, "new": peak - before, "residual": residual, "values": sorted(values)}


def main():
    parser = corpus_arguments(__doc__)
    parser.add_argument("--n", type=int, default=256, help="how many eigenvectors (default: 256)")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()

    if options.measure:
        method, path, n = options.measure
        print(json.dumps(measure(method, path, int(n))))
        return

    C = cooccurrence(*corpus_ids(options), options.window)
    note_settings()
    print(f"C {C.shape} with {C.nnz:,} entries, n = {options.n}; {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "C.npz")
        sparse.save_npz(path, C)
        runs = take_turns(METHODS, options.rounds, lambda method: in_fresh_process(__file__, method, path, options.n))

    ours = np.array(runs["mini_tf"][0]["values"])
    for measured in runs.values():
        np.testing.assert_allclose(measured[0]["values"], ours, rtol=0, atol=1e-9 * ours.max())
    print_table(runs, lambda run, median: f"   residual {run['residual']:.0e}")
    print(f"All found the same eigenvalues, {ours[-1]:.1f} to {ours[0]:.1f}.")


if __name__ == "__main__":
    main()

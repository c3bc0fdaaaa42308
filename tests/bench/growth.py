"""How time and memory grow: with the words of a corpus, the vocabulary c, and a training step's T, B and L.

    python tests/bench/growth.py [--quick] [--picture labs/pictures/growth.png]
    python tests/bench/growth.py --parts                   what eigenvectors, steps and sorting spend their time on

One size varies; all others are as in BASE. The corpus is the lab's, repeated or cut to length; a smaller vocabulary has
its c − 1 most frequent words, and one more word for all others. Every measurement runs in a process of its own, which
reports the median time of its runs, and all points take turns. Of a point's processes the fastest counts, because other
programs on the machine can only add to the time. Imports and compiling count neither towards the time nor towards the
memory, which is the process's peak less what it held before the work. One thread works (--threads): the question is how
much work there is, and threads that wait for each other suffer far more from other programs on the machine.

A slope s means ∝ xˢ: it is the slope of a straight line through the logarithms, once for the lower and once for the
upper half of the points. The fit is a sum of powers of x with coefficients of at least 0, by least squares of the
relative errors.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

from mini_tf.files import replacing
from mini_tf.kernels import recycled_memory
from mini_tf.models import LanguageTransformer, NGramModel
from mini_tf.progress import progress_bar
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, shakespeare, tokenize
from mini_tf.training.optimizers import Adam

import numpy as np
from matplotlib.figure import Figure
from measuring import in_fresh_process, note_settings, peak_memory, seconds_of, take_turns, thread_settings
from models import MODELS, WORDS, random_words
from scipy import sparse
from scipy.optimize import nnls
from scipy.sparse.linalg import LinearOperator, eigsh
from training_step import training_step

BASE = {"n": 64, "L": 2, "H": 4, "m": 16, "T": 32, "B": 16, "c": 2000}
ENOUGH = 0.4             # seconds of timed runs in a process: fast work is repeated
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#aa4499"     # distinct to the colour-blind, too

COUNTING, GRAMS, EIGENVECTORS, STEP = "co-occurrences", "1- to 3-grams", "64 eigenvectors", "training step"
PARTS = "parts"
AXES = {                 # what varies: its name in words, and the ticks of its axis
    "words": ("words of the corpus", [10**5, 10**6, 10**7]),
    "c": ("c, words of the vocabulary", [500, 2000, 8000, 32_000]),
    "T": ("T, words of a history", [16, 64, 256, 1024]),
    "B": ("B, histories in a batch", [1, 4, 16, 64]),
    "L": ("L, layers", [1, 2, 4, 8, 16, 32]),
}
UNITS = {"seconds": ("ms", 1e3), "bytes": ("MB", 1e-6)}


@dataclass(frozen=True)
class Curve:
    """One kind of work, measured at several values of one size."""

    size: str                    # what varies: a key of AXES
    work: str
    values: tuple
    color: str
    seconds: tuple = ()          # the powers of the size whose sum is fitted to the time; none: no fit
    bytes: tuple = ()            # and to the memory
    fixed: dict = field(default_factory=dict)    # other sizes that are not those of BASE

    @property
    def name(self):
        return self.work + "".join(f", {size} = {value}" for size, value in self.fixed.items())

    def points(self):
        """What is measured: a string for each value, equal where curves share a point, as in BASE."""
        always = BASE if self.work == STEP else {"words": None, "c": WORDS}
        return [json.dumps([self.work, always | self.fixed | {self.size: value}]) for value in self.values]


CURVES = [
    Curve("words", COUNTING, (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7), BLUE),
    Curve("words", GRAMS, (10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7), GREEN),
    Curve("c", COUNTING, (500, 1000, 2000, 4000, 8000, WORDS), BLUE),
    Curve("c", EIGENVECTORS, (1000, 2000, 4000, 8000, WORDS), PURPLE),
    Curve("c", STEP, (500, 1000, 2000, 4000, 8000, 16000, 32000), ORANGE, (0, 1), (0, 1)),
    Curve("c", STEP, (500, 1000, 2000, 4000, 8000, 16000, 32000), "0.35", (0, 1), (0, 1), {"B": 1}),
    Curve("T", STEP, (16, 32, 64, 128, 256, 512, 1024), ORANGE, (0, 1, 2), (0, 1, 2)),
    Curve("B", STEP, (1, 2, 4, 8, 16, 32, 64, 128), ORANGE, (0, 1), (0, 1)),
    Curve("L", STEP, (1, 2, 4, 8, 16, 32), ORANGE, (0, 1), (0, 1)),
]
QUICK_MOST = {"words": 10**6, "c": 8000, "T": 256, "B": 64, "L": 16}


def prepared(work, sizes, folder):
    """A function that returns the function to be timed; reading, imports and compiling are done before."""
    if work == STEP:
        new_step(BASE | {"L": 1, "T": 2, "B": 1, "c": 10})()             # compiles
        return lambda: new_step(sizes)                   # the model is part of the memory that training needs
    c = sizes["c"]
    if work == EIGENVECTORS:
        C = sparse.load_npz(Path(folder, f"{c}.npz"))
        eigenvector_embeddings(np.eye(3), 1)
        return lambda: lambda: eigenvector_embeddings(C, 64)
    ids = np.load(Path(folder, "ids.npy"))
    ids = np.minimum(np.resize(ids, sizes["words"] or len(ids)), c - 1)
    do = {COUNTING: lambda ids: cooccurrence(ids, c), GRAMS: lambda ids: NGramModel(3, c).fit(ids)}[work]
    do(ids[:1000])
    return lambda: lambda: do(ids)


def new_step(sizes):
    """A training step of a new model on a batch; all parameters are trained, word vectors too."""
    of_model = {size: sizes[size] for size in "TLHm"}
    embeddings = np.random.default_rng(0).standard_normal((sizes["c"], sizes["n"]), dtype=np.float32)
    model = LanguageTransformer(
        embeddings, **of_model, readout="shared", causal=True, layer_norm=True, positions="geometric",
        scaled_attention=True, train_embeddings=True,
    )  # fmt: skip
    step = training_step(model, MODELS["gpt"])
    windows = random_words(sizes["B"], sizes["T"] + 1) % sizes["c"]
    return lambda: step(windows)


def measure(point, folder):
    """In the child process: the median seconds of a few runs, and the bytes that they added."""
    work, sizes = json.loads(point)
    start = prepared(work, sizes, folder)
    before, times = peak_memory(), []
    with recycled_memory():                              # as `fit` does
        do = start()
        for _ in range(2 if work == STEP else 0):        # the first step makes Adam's means, which stay
            do()
        while sum(times) < ENOUGH and len(times) < 30:
            times.append(seconds_of(do))
    return {"seconds": median(times), "bytes": max(peak_memory() - before, 1)}      # at least 1, for the logarithm


def measure_parts(folder):
    """In the child process: lines that say where part of the time goes."""
    lines = []
    for c in cs_of_matrices(CURVES):
        C, times = sparse.load_npz(Path(folder, f"{c}.npz")), []

        def with_clock(C, times=times, **options):
            def product(v):
                start = perf_counter()
                y = C @ v
                times.append(perf_counter() - start)
                return y

            return eigsh(LinearOperator(C.shape, matvec=product, dtype=C.dtype), **options)

        with patch("mini_tf.text.eigenvectors.eigsh", with_clock):
            seconds = seconds_of(partial(eigenvector_embeddings, C, 64))
        lines.append(f"eigenvectors, c = {c:,}: C has {C.nnz:,} entries, {len(times)} products C·v took "
                     f"{1e3 * sum(times):.0f} ms of {1e3 * seconds:.0f}")
    for c in (2000, 32000):
        for B in (1, 16):
            step, of_adam, update = new_step(BASE | {"c": c, "B": B}), [], Adam.step

            def with_clock(*arguments, times=of_adam, update=update):
                times.append(seconds_of(lambda: update(*arguments)))

            with patch.object(Adam, "step", with_clock):
                of_step = [seconds_of(step) for _ in range(15)]
            lines.append(f"training step, c = {c:,}, B = {B}: Adam took {1e3 * median(of_adam):.2f} ms of "
                         f"{1e3 * median(of_step):.2f}")
    ids = np.load(Path(folder, "ids.npy"))
    pairs = np.unique(ids[:-1] * WORDS + ids[1:], return_inverse=True)[1]
    for words in (10**6, 10**7):
        key = np.resize(pairs, words)
        sorting, order = seconds_of(partial(key.argsort, kind="stable")), key.argsort(kind="stable")
        fetching = min(seconds_of(partial(key.take, order)) for _ in range(3))
        lines.append(f"{words:,} pairs of words: sorting took {1e3 * sorting:.0f} ms, "
                     f"fetching them in that order {1e3 * fetching:.1f}")
    return lines


def cs_of_matrices(curves):
    """The sizes of vocabulary for which a curve needs eigenvectors."""
    return sorted({c for curve in curves if curve.work == EIGENVECTORS for c in curve.values})


def save_corpus(folder, curves):
    """The ids of the lab's corpus, 0 for the most frequent word, and its co-occurrence matrices, as files."""
    tokens = tokenize(shakespeare())
    ids = Vocabulary(tokens).encode(tokens)
    ids = np.argsort(np.argsort(-np.bincount(ids), kind="stable"))[ids]
    np.save(Path(folder, "ids.npy"), ids)
    for c in cs_of_matrices(curves):
        sparse.save_npz(Path(folder, f"{c}.npz"), cooccurrence(np.minimum(ids, c - 1), c))


def measure_all(curves, rounds, threads):
    """{point: [{"seconds", "bytes"}, for each round]}"""
    points = dict.fromkeys(point for curve in curves for point in curve.points())
    with tempfile.TemporaryDirectory() as folder, progress_bar("measuring", rounds * len(points)) as update:
        save_corpus(folder, curves)
        done = 0

        def in_child(point):
            nonlocal done
            update(done, json.loads(point)[0])
            done += 1
            return in_fresh_process(__file__, point, folder, **thread_settings(threads))

        return take_turns(points, rounds, in_child)


@dataclass
class Growth:
    """How one quantity, seconds or bytes, grew along a curve."""

    curve: Curve
    quantity: str
    x: np.ndarray
    y: np.ndarray                # the shortest time of the processes, the median of their bytes
    powers: tuple
    coefficients: np.ndarray     # of the fit; empty if there is none

    def slopes(self):
        """The slopes of log y against log x, for the lower and the upper half of the points, the middle in both."""
        half = len(self.x) // 2 + 1
        x, y = np.log(self.x), np.log(self.y)
        return [float(np.polyfit(x[part], y[part], 1)[0]) for part in (slice(None, half), slice(-half, None))]

    def fitted(self, x):
        """The fit's parts at x, a row for each power; their sum is the fit."""
        return np.array([a * np.asarray(x, float) ** p for a, p in zip(self.coefficients, self.powers)])


def growth(curve, runs, quantity):
    """The Growth of "seconds" or "bytes" along the curve, from what measure_all found."""
    x = np.array(curve.values, float)
    typical = {"seconds": min, "bytes": median}[quantity]                # a disturbed process can only be slower
    y = np.array([typical([run[quantity] for run in runs[point]]) for point in curve.points()], float)
    powers = getattr(curve, quantity)
    coefficients = np.empty(0)
    if powers:
        parts = np.stack([x**p for p in powers], axis=1) / y[:, None]    # relative to the measured values
        size = parts.max(0)
        coefficients = nnls(parts / size, np.ones(len(x)))[0] / size
    return Growth(curve, quantity, x, y, powers, coefficients)


def slope_text(slopes):
    first, last = (f"{slope:.2f}" for slope in slopes)
    return f"slope {first}" if first == last else f"slope {first} → {last}"


def print_growth(growths):
    """A line for each curve and quantity: its values, its slopes, its fit."""
    for size, (axis, _) in AXES.items():
        for some in growths:
            if some.curve.size != size:
                continue
            unit, factor = UNITS[some.quantity]
            print(f"\n{some.curve.name}, {unit} against {axis}: {slope_text(some.slopes())}")
            print("  " + "".join(f"{x:>10,.0f}" for x in some.x))
            print("  " + "".join(f"{y * factor:>10.3g}" for y in some.y))
            if some.powers:
                parts = [f"{a * factor:.3g}" + ("", f"·{size}", f"·{size}²")[p]
                         for a, p in zip(some.coefficients, some.powers) if a]
                shares = some.fitted(some.x[-1:])[:, 0]
                print(f"  fit: {' + '.join(parts)}; the last term is {shares[-1] / shares.sum():.0%} at the end, "
                      f"largest error {np.abs(some.fitted(some.x).sum(0) / some.y - 1).max():.0%}")


def draw(growths):
    """Time above, memory below; a column for each size that varies."""
    figure = Figure(figsize=(16, 8), layout="constrained")
    rows = figure.subplots(2, len(AXES), sharex="col", sharey="row")
    for row, (quantity, (unit, _)) in zip(rows, UNITS.items()):
        row[0].set_ylabel({"seconds": f"time, {unit}", "bytes": f"memory, {unit} at most"}[quantity], fontsize=11)
        for axes, (size, (_, ticks)) in zip(row, AXES.items()):
            axes.set_xscale("log")
            axes.set_yscale("log")
            for some in growths[quantity]:
                if some.curve.size == size:
                    draw_curve(axes, some)
            axes.set_xticks(ticks, [f"{tick:,}" if tick < 10**5 else f"$10^{len(str(tick)) - 1}$" for tick in ticks])
            axes.set_xticks([], minor=True)
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:,g}")
            axes.grid(color="0.92")
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), fontsize=10, frameon=False, borderaxespad=0.2,
                        handlelength=1.2, handletextpad=0.5)  # fmt: skip
    for axes, (axis, _) in zip(rows[-1], AXES.values()):
        axes.set_xlabel(axis, fontsize=11)
    figure.supxlabel("slope of the lower → of the upper half of the points; lines are sums of powers, fitted; "
                     "dotted lines only join the points", fontsize=10, color="0.35")  # fmt: skip
    return figure


def draw_curve(axes, some):
    """The measured points, and the fit as a line; where T² matters, its parts, too."""
    curve, (_, factor) = some.curve, UNITS[some.quantity]
    x, y = np.geomspace(some.x[0], some.x[-1], 100), some.y * factor
    label = f"{curve.name}: {slope_text(some.slopes())}"
    axes.plot(some.x, y, "o" if some.powers else "o:", color=curve.color, markersize=5, linewidth=1.3, label=label)
    if some.powers:
        axes.plot(x, some.fitted(x).sum(0) * factor, color=curve.color, linewidth=1.3)
    if 2 in some.powers:
        for name, part in zip(("T", "T²"), some.fitted(x)[1:] * factor):
            shown = part > y.min() / 2
            if shown.any():
                axes.plot(x[shown], part[shown], "--", color="0.5", linewidth=1)
                axes.annotate(name, (x[shown][0], part[shown][0]), xytext=(2, -12), textcoords="offset points",
                              fontsize=10, color="0.35")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points, once each: under a minute")
    parser.add_argument("--picture", metavar="FILE", help="draw it there")
    parser.add_argument("--parts", action="store_true", help="measure only what some of the time is spent on")
    parser.add_argument("--rounds", type=int, help="processes for each point (default: 3; 1 with --quick)")
    parser.add_argument("--threads", type=int, default=1, help="threads that work (default: 1)")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)        # the child process
    options = parser.parse_args()

    if options.measure:
        point, folder = options.measure
        print(json.dumps(measure_parts(folder) if point == PARTS else measure(point, folder)))
        return
    if options.parts:
        with tempfile.TemporaryDirectory() as folder:
            save_corpus(folder, CURVES)
            print("\n".join(in_fresh_process(__file__, PARTS, folder, **thread_settings(options.threads))))
        return

    curves, rounds = CURVES, options.rounds or (1 if options.quick else 3)
    if options.quick:
        curves = [Curve(**vars(curve) | {"values": tuple(x for x in curve.values if x <= QUICK_MOST[curve.size])[::2]})
                  for curve in CURVES]
    note_settings()
    print(f"Training step: {', '.join(f'{size} = {value:,}' for size, value in BASE.items())}, readout shared, "
          f"all learned; threads: {options.threads}, rounds: {rounds}")
    runs = measure_all(curves, rounds, options.threads)
    growths = {part: [growth(curve, runs, part) for curve in curves] for part in ("seconds", "bytes")}
    for some in growths.values():
        print_growth(some)
    if options.picture:
        with replacing(options.picture) as temporary:
            draw(growths).savefig(temporary, dpi=110)
        print(f"\npicture: {options.picture}")


if __name__ == "__main__":
    main()

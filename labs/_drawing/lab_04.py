"""Figures of lab 04, word embeddings."""

from _drawing import BLUE, GREEN, ORANGE, RED, curves, heat_map, note, panels

import numpy as np


def few_counts(words, C):
    """A small matrix of counts, its entries written into it."""
    figure, axes = panels(size=(7.5, 7))
    entries = [[str(count) if count else "" for count in row] for row in C]
    heat_map(axes, C, "Two quotations: co-occurrences within one word (W = 2)", words, rotation=90, entries=entries,
             cmap="Blues", vmax=5)  # fmt: skip
    return figure


def many_counts(words, C):
    """A matrix of counts, in logarithmic colours."""
    figure, axes = panels(size=(8, 7))
    title = f"Co-occurrences of the {len(words)} most frequent words, W = 10"
    image = heat_map(axes, np.log10(C + 1), title, words, rotation=90, fontsize=8, cmap="magma")
    figure.colorbar(image, label="log₁₀(count + 1)", shrink=0.8)
    return figure


def zipf(counts, named):
    """counts (c,) in falling order; named {word: count}"""
    figure, axes = panels(size=(7, 4.5))
    rank = np.arange(1, len(counts) + 1)
    axes.loglog(rank, counts, ".", color=BLUE, markersize=3, label="Shakespeare")
    axes.loglog(rank, counts[9] * 10 / rank, "--", color="0.5", linewidth=1, label="proportional to 1/r")
    for word, count in named.items():
        note(axes, word, ((counts > count).sum() + 1, count), (6, 5), fontsize=10)
    axes.set(title="Task 6.1: counts of the words of the corpus", xlabel="rank r", ylabel="occurrences",
             ylim=(None, 2e5))  # fmt: skip
    axes.legend(frameon=False)
    return figure


def eigenvalues(values, predicted, counts):
    """All (n,), in falling order."""
    figure, (left, right) = panels(1, 2, size=(10, 4))
    rank = np.arange(1, len(values) + 1)
    curves(left, rank, {"eigenvalue λ_r of C": values, "prediction from counts alone": predicted,
                        "count of the r-th word": counts}, ("-", "--", ":"))  # fmt: skip
    left.set(xscale="log", yscale="log", title="Aside: eigenvalues of C, and counts", xlabel="r")
    curves(right, rank, {"prediction": predicted / values - 1, "count of the r-th word": counts / values - 1},
           ("--", ":"), colors=(ORANGE, GREEN))  # fmt: skip
    right.axhline(0, color="0.6", linewidth=0.8)
    right.set(xscale="log", title="Aside: relative error", xlabel="r", ylim=(-0.8, 0.8))
    return figure


def energy(counts, kept, last_value, over_words, over_text, named):
    """Energy kept of each word against its count; named {word: its index}"""
    figure, axes = panels(size=(7.5, 5))
    jitter = np.random.default_rng(0).uniform(0.85, 1.15, len(counts))
    axes.plot(counts * jitter, kept, ".", color=BLUE, markersize=2.5, alpha=0.4)
    axes.axvline(last_value, color=RED, linestyle="--", linewidth=1, label=f"λ₂₅₆ = {last_value:.0f}")
    axes.axhline(over_words, color=GREEN, linewidth=1, label=f"mean over different words, {over_words:.3f}")
    axes.axhline(over_text, color=ORANGE, linewidth=1, label=f"mean over the text, {over_text:.2f}")
    for word, i in named.items():
        shift, side = ((6, -3), "left") if word.isupper() else ((-5, 5), "right")
        axes.plot(counts[i], kept[i], "o", markersize=4, color="k")
        note(axes, word, (counts[i], kept[i]), shift, ha=side)
    axes.set(title="PCA: what 256 eigenvectors keep of each word", xlabel="occurrences of the word",
             ylabel="energy kept, ‖ẽ‖²", xscale="log")  # fmt: skip
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0.01, 0.5))
    return figure


def coefficients(rows, n):
    """{title: coefficients y_ir of a word, (r,)}, with a line at r = n"""
    figure, places = panels(3, 3, (9, 6), sharex=True, sharey=True)
    for axes, (title, y) in zip(places.flat, rows.items()):
        axes.vlines(range(1, len(y) + 1), 0, y, color=BLUE, linewidth=0.8)
        axes.axvline(n, color=RED, linestyle="--", linewidth=1)
        axes.axhline(0, color="0.7", linewidth=0.5)
        axes.set_title(title, fontsize=10)
        axes.set_ylim(-1, 1)
    figure.supxlabel(f"r (dashed: {n})")
    figure.supylabel("y_ir")
    return figure

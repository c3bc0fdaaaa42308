"""Figures of lab 05, predicting the next word's vector."""

from _drawing import BLUE, GREEN, RED, loss_curves, note, panels

import numpy as np

MARKS = {",": "comma", ".": "full stop", ":": "colon", ";": "semicolon", "!": "exclamation mark", "?": "question mark",
         "\n": "line break", "'": "apostrophe", "-": "dash"}  # fmt: skip


def training(rows, n, baselines):
    """The losses of a History as n·MSE, with those of predictions that need no training as lines, {label: n·MSE}."""
    figure, axes = panels(size=(8, 4.8))
    loss_curves(axes, rows, scale=n, label="transformer, {}")
    for (name, loss), color in zip(baselines.items(), ("0.6", "0.2", GREEN)):
        axes.axhline(loss, color=color, linestyle="--", linewidth=1.2, label=f"{name}, validation {loss:.3f}")
    axes.set(title="Task 6.5: squared error of the next word's vector", ylabel="n · MSE")
    axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.42))
    return figure


def distances(filled, outline):
    """Histograms {label: distances}: filled ones, and an outline."""
    figure, axes = panels(size=(8, 4.5))
    bins = np.linspace(0, 1.6, 81)
    for (label, values), color in zip(filled.items(), (BLUE, RED)):
        axes.hist(values, bins, alpha=0.6, color=color, label=label)
    for label, values in outline.items():
        axes.hist(values, bins, histtype="step", color="k", label=label)
    axes.set(title="Explain 3: distances in the space of word vectors", xlabel="distance", ylabel="test words")
    axes.legend(frameon=False)
    return figure


def plane(vectors, counts, predictions, mean, named):
    """The first two dimensions of words and predictions; named {word: its index}"""
    figure, axes = panels(size=(7.5, 5.5))
    axes.scatter(vectors[:, 0], vectors[:, 1], s=2 + counts / 100, color="0.6", label="words")
    axes.plot(*predictions[:, :2].T, ".", markersize=3, color=BLUE, alpha=0.4, label="predictions x̂")
    axes.plot(*mean[:2], "x", color=RED, markersize=9, markeredgewidth=2, label="mean training vector")
    for word, i in named.items():
        note(axes, MARKS.get(word, word), vectors[i, :2], (-4, 13), fontsize=10)
    axes.set(title="Explain 4: word vectors and predictions", xlabel="x₁", ylabel="x₂", ylim=(None, 1.05))
    axes.legend(frameon=False)
    return figure

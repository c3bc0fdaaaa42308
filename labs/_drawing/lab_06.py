"""Figures of lab 06, a transformer that predicts words."""

from _drawing import BLUE, GREEN, ORANGE, RED, bars, curves, level, panels

import numpy as np


def overfitting(times, losses, words, unigram):
    """{which words: losses} against how often the same text was read."""
    figure, axes = panels(size=(7, 4))
    curves(axes, times, losses, ("o-", "s-"))
    level(axes, unigram, f"unigram  {unigram:.2f}", place=1, shift=(-4, 4))
    axes.set(xlabel=f"times over the same {words:,} words", ylabel="cross-entropy in nats per word")
    return figure


def where_the_loss_comes_from(shares):
    """{how often a word occurs in training: (share of the test words, share of the test loss)}"""
    figure, axes = panels(size=(7, 3.6))
    words, loss = 100 * np.array(list(shares.values())).T
    bars(axes, list(shares), {"of the test words": words, "of the test loss": loss}, form="%.0f %%")
    axes.set(xlabel="how often the word occurs in training", ylabel="share in %")
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="upper left")
    return figure


def temperature(distributions):
    """{label: probabilities}: how much the k most probable words have together."""
    figure, axes = panels(size=(7.5, 3.8))
    together = {label: np.cumsum(-np.sort(-pi)) for label, pi in distributions.items()}
    axes.axvline(10, color="0.5", linestyle="--", linewidth=1)
    axes.text(10.8, 0.03, "top 10", color="0.4", fontsize=9)
    (words,) = {len(pi) for pi in together.values()}
    curves(axes, np.arange(1, words + 1), together, legend="lower right")
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="this many of the most probable words …",
             ylabel="… have this probability together")  # fmt: skip
    return figure


def repetition(texts):
    """{who wrote it: ids}: how many different words there are among the first k."""
    figure, axes = panels(size=(7, 4))
    different = {name: [len(set(ids[:k])) for k in range(1, len(ids) + 1)] for name, ids in texts.items()}
    (words,) = {len(ids) for ids in texts.values()}
    curves(axes, range(1, words + 1), different, colors=(BLUE, RED, GREEN, ORANGE, "black"))
    axes.set(xlabel="words written", ylabel="different words among them")
    return figure

"""Figures of lab 06, a transformer that predicts words."""

from _drawing import BLUE, GREEN, ORANGE, RED, bars, curves, level, note, panels

import numpy as np


def overfitting(times, losses, words, unigram):
    """{which words: losses} against how often the same text was read"""
    figure, axes = panels(size=(7, 4))
    curves(axes, times, losses, ("o-", "s-"))
    level(axes, unigram, f"unigram  {unigram:.2f}", place=1, shift=(-4, 4))
    axes.set_title("Overfitting: the same short text, read repeatedly", fontsize=11)
    axes.set(xlabel=f"times over the same {words:,} words", ylabel="cross-entropy in nats per word")
    return figure


def where_the_loss_comes_from(shares):
    """{how often a word occurs in training: (share of the test words, share of the test loss)}"""
    figure, axes = panels(size=(7, 3.6))
    words, loss = 100 * np.array(list(shares.values())).T
    bars(axes, list(shares), {"of the test words": words, "of the test loss": loss}, form="%.0f %%")
    axes.set_title("Rare words cost more than their share", fontsize=11)
    axes.set(xlabel="how often the word occurs in training", ylabel="share in %")
    axes.margins(y=0.12)
    axes.legend(frameon=False, loc="upper left")
    return figure


def temperature(distributions, history):
    """{label: probabilities}: the total probability of the r most probable words, for each r"""
    figure, axes = panels(size=(7.5, 4))
    together = {label: np.cumsum(-np.sort(-pi)) for label, pi in distributions.items()}
    axes.axvline(10, color="0.5", linestyle="--", linewidth=1)
    axes.text(10.8, 0.03, "top 10", color="0.4", fontsize=9)
    (words,) = {len(pi) for pi in together.values()}
    curves(axes, np.arange(1, words + 1), together, ("--", "-", ":"), legend="lower right")
    axes.set_title(f"Temperature and top 10: π after “{history}”", fontsize=11)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="number of most probable words",
             ylabel="their total probability")  # fmt: skip
    axes.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
    return figure


def sureness(visible, like, prompts, n):
    """Flatness of π against the number of frequent words in the history; prompts {label: (number, flatness)}"""
    figure, axes = panels(size=(7, 4))
    axes.scatter(visible, like, s=9, color=BLUE, alpha=0.4, linewidths=0)
    for label, (many, flat) in prompts.items():
        axes.plot(many, flat, "D", color=RED, markersize=7)
        note(axes, label, (many, flat), (9, 9), color=RED, fontsize=11, fontweight="bold")
    axes.set_title("Test histories: the more frequent words, the surer the model", fontsize=11)
    axes.set(yscale="log", xlabel=f"how many of its 64 words are among the n = {n} most frequent",
             ylabel="π is as flat as for this many\nequally likely words")  # fmt: skip
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def repetition(texts):
    """{who wrote it: ids}: how many different words there are among the first 1, 2, 3 …"""
    figure, axes = panels(size=(7, 4))
    different = {name: [len(set(ids[:first])) for first in range(1, len(ids) + 1)] for name, ids in texts.items()}
    (words,) = {len(ids) for ids in texts.values()}
    curves(axes, range(1, words + 1), different, colors=(BLUE, RED, GREEN, ORANGE, "black"))
    axes.set_title("A line that stops rising writes the same words again", fontsize=11)
    axes.set(xlabel="words written", ylabel="different words among them")
    return figure

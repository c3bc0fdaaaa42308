"""Figures of lab 09b: small language models, masked words, probes, reused word vectors."""

import textwrap

from _drawing import BLUE, COLOURS, GREEN, GREY, RED, bars, curves, level, levels, note, panels

import numpy as np


def one_attention(histories, heights, attention):
    """{model: rows of a History}, {name: validation loss} of the baselines, {model: attention by distance}"""
    figure, (left, right) = panels(1, 2, (11, 3.9), width_ratios=(1.25, 1))
    steps = [row["step"] for row in next(iter(histories.values()))]
    losses = {name: [row["validation_loss"] for row in rows] for name, rows in histories.items()}
    curves(left, steps, losses, ("o-", "s-", "^-"), ms=4)
    left.set(xlabel="step", ylabel="validation loss, nats per word")
    low = min(map(min, losses.values()))
    left.set_ylim(low - 0.25, heights["unigram"] + 1.2)
    levels(left, {name: heights[name] for name in ("unigram", "bigram")})
    far = np.arange(12)
    curves(right, far, {name: of[: len(far)] for name, of in attention.items()}, ("o-", "s-", "^-"), legend=None, ms=4)
    right.set(xlabel="how many words back (0: the word itself)", ylabel="mean attention of the last word",
              ylim=(0, None))  # fmt: skip
    return figure


def opinions(table, unigram):
    """{model: {what is read: −ln p of the true word}}"""
    figure, axes = panels(size=(8.5, 4))
    readings = "[MASK]", "itself", "another word"
    losses = {name: [of[key] for key in readings] for name, of in table.items()}
    bars(axes, [f"reads {name}" for name in readings], losses, form="%.1f")
    axes.set(ylabel="−ln p of the true word, nats", ylim=(0, 1.35 * max(map(max, losses.values()))))
    levels(axes, {"unigram": unigram})
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
    return figure


def sides(visible, losses, unigram):
    """How many words are visible, {on which side: loss for each of them}"""
    figure, axes = panels(size=(7, 3.9))
    curves(axes, range(len(visible)), losses, ("o-", "s-", "^-"), colors=(BLUE, GREEN, RED), ms=5)
    level(axes, unigram, "unigram", place=0.72)
    axes.set_xticks(range(len(visible)), [*visible[:-1], "all"])
    axes.set(xlabel="words visible before the gap, after it, or on either side", ylabel="loss at the gap, nats")
    return figure


def guesses(gaps):
    """[(line with a gap, true word, [(guess, p), …])]: six of them"""
    figure, grid = panels(2, 3, (12, 6))
    for axes, (line, word, found) in zip(np.ravel(grid), gaps):
        names, shares = zip(*((r"\n" if guess == "\n" else guess, p) for guess, p in found))
        colors = [GREEN if guess == word else GREY for guess, _ in found]
        axes.barh(range(len(names)), shares, color=colors)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        for at, p in enumerate(shares):
            note(axes, f"{p:.2f}", (p, at), (3, 0), va="center")
        axes.set(xlim=(0, 1.15 * max(shares)), xticks=[])
        axes.set_title(textwrap.fill(" / ".join(line.split("\n")), 46) + f"\ntrue: {word}", fontsize=9, loc="left")
        axes.tick_params(length=0)
    figure.supxlabel("probability of the five best guesses, each to its own scale; green: the true word", fontsize=10)
    return figure


def layers(found, heights):
    """{model: accuracies (layers, splits)}, {name: accuracy} of counting"""
    figure, axes = panels(size=(7.5, 4.2))
    for shift, (name, accuracies), color, style in zip((-0.03, 0.03), found.items(), (BLUE, RED), ("o-", "s--")):
        at = np.arange(len(accuracies)) + shift
        axes.errorbar(at, accuracies.mean(1), accuracies.std(1, ddof=1), fmt=style, color=color, capsize=3, label=name)
    _room_for(axes, heights)
    levels(axes, heights)
    axes.set_xticks(range(len(accuracies)), [f"$X_{layer}$" for layer in range(len(accuracies))])
    axes.set(xlabel="layer that the probe reads", ylabel="accuracy, mean ± deviation over 5 splits")
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _room_for(axes, heights):
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, *heights.values()) - 0.01, max(top, *heights.values()) + 0.01)


def origins(table, heights):
    """{word vectors: {what is done with them: accuracies}}, {name: accuracy} of counting"""
    figure, axes = panels(size=(9, 4.2))
    kinds = list(next(iter(table.values())))
    for k, (kind, color) in enumerate(zip(kinds, COLOURS)):
        rows = [(at, row[kind]) for at, row in enumerate(table.values()) if row[kind]]
        places = [at + 0.2 * (k - 1) for at, _ in rows]
        deviations = [np.std(of, ddof=1) if len(of) > 1 else 0 for _, of in rows]
        means = [np.mean(of) for _, of in rows]
        axes.errorbar(places, means, deviations, fmt="osD"[k], color=color, capsize=3, label=kind)
    axes.set_xticks(range(len(table)), [textwrap.fill(name, 14) for name in table])
    names = {"largest": "largest genre", "bayes": "naive Bayes", "logistic": "logistic regression"}
    _room_for(axes, heights)
    levels(axes, {names[name]: height for name, height in heights.items()})
    axes.set(xlabel="word vectors to start from", ylabel="accuracy on held-out plays,\nmean ± deviation over the seeds")
    axes.legend(frameon=False, fontsize=9, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return figure

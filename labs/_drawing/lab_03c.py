"""Figures of lab 03c, gates: LSTM and GRU."""

from _drawing import BLACK, BLUE, GREEN, PURPLE, RED, level, panels

import numpy as np


def far_word(reached, products, far):
    """{name: the gradient by distance, relative to d = 0}; products {name: the product of f by distance}"""
    figure, axes = panels(size=(8, 4.6))
    for (name, part), color in zip(reached.items(), (BLACK, RED, PURPLE, GREEN)):
        label = "plain network" if name == "plain" else f"LSTM, b$_f$ = {name.rpartition(' ')[2]}"
        axes.semilogy(part[: far + 1], color=color, label=label, linewidth=3.5 if name == "plain" else 1.8)
        if name in products:
            axes.semilogy(products[name][: far + 1], "--", color=color, linewidth=1)
    level(axes, 1.2e-7, "float32's precision", place=1, shift=(-2, 4), color="0.5")
    axes.set(title="Section 3: how far the gradient reaches before training\n(dashed: the product of f along the cell)",
             xlabel="distance d, words", ylabel="gradient, relative to that at d = 0 (log scale)",
             ylim=(1e-21, 30), xlim=(0, far))  # fmt: skip
    axes.legend(frameon=False, loc="lower left")
    return figure


def accuracy(distances, right):
    """right {name: (distances, seeds)}: the share of right answers, a dot for each seed, a line through their means"""
    figure, axes = panels(size=(8, 4.4))
    for place, ((name, shares), color) in enumerate(zip(right.items(), (BLACK, RED, PURPLE, GREEN, BLUE))):
        at = np.arange(len(distances)) + 0.06 * (place - 2)
        axes.plot(at, shares.mean(1), "-", color=color, label=name.replace("b_f", "b$_f$").replace("b_z", "b$_z$"))
        axes.plot(np.repeat(at, shares.shape[1]), shares.ravel(), "o", color=color, markersize=5, alpha=0.6)
    level(axes, 0.25, "a guess", shift=(4, -12))
    axes.set(title="Section 5: which letter came first?", xlabel="distance d, letters", ylim=(0.1, 1.04),
             ylabel="right answers; a dot for each seed, lines: means")  # fmt: skip
    axes.set_xticks(range(len(distances)), distances)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure

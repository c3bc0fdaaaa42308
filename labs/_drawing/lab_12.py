"""Figures of lab 12, today's transformer."""

from _drawing import BLUE, GREY, ORANGE, panels

import numpy as np
from matplotlib.patches import Circle

ROWS, PAIRS = 6, 4                       # of clocks: places and pairs
SEEN_FROM = {63: "o", 40: "s", 20: "^"}  # places of queries, and their markers


def rotary(hands, scores):
    """hands (T, m): a vector at each place, its pairs (1, 0) at place 0; scores {name: (T, T)}, by query and key"""
    figure, (clocks, curves) = panels(1, 2, (10.5, 4.4), width_ratios=(1, 1.5))
    for t in range(ROWS):
        for i in range(PAIRS):
            x, y = hands[t, 2 * i : 2 * i + 2]
            clocks.add_patch(Circle((i, -t), 0.4, fill=False, color=GREY))
            clocks.plot([i, i + 0.4 * x], [-t, -t + 0.4 * y], color=BLUE, linewidth=2)
    clocks.set(title="the first pairs of a vector, turned", aspect="equal")
    clocks.set(xlim=(-0.6, PAIRS - 0.4), ylim=(0.4 - ROWS, 0.6))
    clocks.set_xticks(range(PAIRS), [f"pair {i}" for i in range(PAIRS)])
    clocks.set_yticks(-np.arange(ROWS), [f"place {t}" for t in range(ROWS)])
    clocks.spines[:].set_visible(False)
    clocks.tick_params(length=0)
    for (name, S), color in zip(scores.items(), (BLUE, ORANGE)):
        curves.plot(S[-1, ::-1], color=color, linewidth=1, label=name)
        for start, (place, marker) in zip((0, 3, 6), SEEN_FROM.items()):
            distances = np.arange(start, place + 1, 9)
            curves.plot(distances, S[place, place - distances], marker, color=color, markersize=6)
    for place, marker in SEEN_FROM.items():
        curves.plot([], [], marker, color=GREY, label=f"query at place {place}")
    curves.set(title="score by distance", xlabel="distance from the query back to the key", ylabel="score q·k")
    curves.legend(frameon=False, fontsize=9)
    return figure


def ladder(losses, rates):
    """losses {step: (rates, seeds)}: a dot for each training, and a line through the means of each rate"""
    figure, axes = panels(size=(8.5, 4.4))
    for k, (rate, color) in enumerate(zip(rates, (BLUE, ORANGE))):
        at = np.arange(len(losses)) + 0.1 * (k - 0.5)
        found = np.array([each[k] for each in losses.values()])          # (steps, seeds)
        axes.plot(at, found.mean(1), color=color, linewidth=1.5, label=f"rate {rate:g}")
        axes.plot(np.repeat(at, found.shape[1]), found.ravel(), "o", color=color, markersize=5, alpha=0.6)
    axes.set(title="Section 5: the loss after each step", ylabel="validation loss, nats per letter")
    axes.set_xticks(range(len(losses)), [name.replace(" ", "\n", 1) for name in losses])
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False)
    return figure

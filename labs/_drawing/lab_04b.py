"""Figures of lab 04b, attention from scratch."""

from _drawing import BLUE, GREEN, ORANGE, bars, curves, heat_map, panels

import numpy as np


def step(title, labels, weights, gradient):
    """The last card's attention, {head: weights (T,)}, and the size of the gradient that reaches each card (T,)"""
    figure, (left, right) = panels(1, 2, (9, 3.3))
    figure.suptitle(title)
    places = np.arange(len(labels))
    bars(left, labels, weights, colors=(BLUE, ORANGE))
    left.set(title="weight of each card for the last one", ylim=(0, 1.05))
    if len(weights) > 1:
        left.legend(frameon=False)
    right.bar(places, gradient, 0.8, color=GREEN)
    right.set(title="gradient of the right answer's score, ‖dx‖")
    for axes in (left, right):
        axes.set_xticks(places, [label.replace(" ", "\n", 1) for label in labels])
        axes.tick_params(axis="x", labelsize=9, length=0)
    return figure


def slopes(sizes, passed):
    """{name: ‖dS‖/‖dA‖ for each m}"""
    figure, axes = panels(size=(6.5, 3.6))
    curves(axes, sizes, passed, "o-")
    axes.set(xscale="log", yscale="log", xlabel="m, size of queries and keys", ylabel="‖dS‖/‖dA‖, median",
             title="Share of the gradient that softmax passes")  # fmt: skip
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    return figure


def ladder(steps, questions, right):
    """right (steps, questions): the share of right answers"""
    figure, axes = panels(size=(8.5, 4.2))
    entries = [[f"{share:.0%}" for share in row] for row in right]
    heat_map(axes, right, "Right answers, trained for each question", steps, questions, entries=entries, fontsize=10,
             cmap="Blues", vmin=0, vmax=1, aspect="auto")  # fmt: skip
    axes.xaxis.tick_top()
    axes.set_title("Right answers: each step, trained for each question", pad=28, fontsize=11)
    return figure

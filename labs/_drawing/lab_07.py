"""Figures of lab 07, positions, layer norms and masks."""

from _drawing import BLUE, RED, curves, heat_map, level, note, panels

import numpy as np


def positions(codes):
    """{name: P (T, n)}, and below the similarity of any two positions"""
    figure, grid = panels(2, len(codes), (9, 5.6))
    for (name, P), (above, below) in zip(codes.items(), grid.T):
        image = heat_map(above, P, name, cmap="RdBu", vmin=-1, vmax=1)
        above.set(xlabel="column of P", ylabel="position t")
        heat_map(below, P @ P.T / (P.shape[1] / 2), "P·Pᵀ / (n/2)", cmap="RdBu", vmin=-1, vmax=1)
        below.set(xlabel="position u", ylabel="position t")
    figure.colorbar(image, ax=grid, shrink=0.6)
    figure.suptitle("Task 6.10: P for three choices of frequencies, and how similar it makes positions", fontsize=12)
    return figure


def layer_norm(deep):
    """{name: (size of the outputs, words attended to, size of the gradient), each by layer}"""
    figure, three = panels(1, 3, (11, 3.5))
    for axes, which in zip(three, range(3)):
        lines = {name: row[which] for name, row in deep.items()}
        curves(axes, range(1, len(next(iter(lines.values()))) + 1), lines, ("o-", "s--"),
               legend="best" if which == 0 else None)  # fmt: skip
        axes.set(xlabel="layer")
    three[0].set(title="standard deviation of a word's vector", ylim=(0, None))
    three[1].set(title="words that a head attends to", ylim=(0, None))
    three[2].set(title="size of the gradient, after ten steps", yscale="log")
    bottom, top = three[2].get_ylim()
    three[2].set_ylim(bottom / 2, top * 2)
    three[2].tick_params(which="minor", labelleft=False)
    figure.suptitle("Task 6.11: six layers, without layer norm and with it", fontsize=12)
    return figure


def word_maps(words, matrices, label, title="", columns=3, size=(9.5, 3.9), xlabel="key", ylabel="query", fontsize=10):
    """Matrices of words by words, {title of its own: matrix}, on one scale from 0 to 1."""
    rows = (len(matrices) + columns - 1) // columns
    figure, places = panels(rows, columns, size)
    for number, (axes, (own, matrix)) in enumerate(zip(np.ravel(places), matrices.items())):
        image = heat_map(axes, matrix, own, words, rotation=90, fontsize=fontsize, vmin=0, vmax=1)
        if number // columns == rows - 1:                # the axes' names stand once for each column and row
            axes.set_xlabel(xlabel)
        if number % columns == 0:
            axes.set_ylabel(ylabel)
    figure.colorbar(image, ax=places, shrink=0.7, label=label)
    if title:
        figure.suptitle(title, fontsize=12)
    return figure


def by_place(losses):
    """Losses by position, {name: (windows, T)}: each model after the first minus the first, ± two standard errors"""
    (_, right), *others = losses.items()
    figure, grid = panels(1, len(others), (10, 3.8))
    for axes, (name, wrong), color in zip(grid, others, (BLUE, RED)):
        change = wrong - right
        mean, error = change.mean(0), 2 * change.std(0) / len(change) ** 0.5
        place = np.arange(1, change.shape[1] + 1)
        axes.fill_between(place, mean - error, mean + error, color=color, alpha=0.25, linewidth=0)
        axes.plot(place, mean, "o-", color=color, ms=4)
        level(axes, 0, "the right model", place=0.02)
        note(axes, "last position", (place[-1], mean[-1]), (-8, 0), ha="right", va="center", color=color)
        axes.set(title=name, xlabel="position in the window", ylabel="loss minus the right model's, nats")
    figure.suptitle("Task 6.12: what a leak does to the loss, position by position", fontsize=12)
    return figure

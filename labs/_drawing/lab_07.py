"""Figures of lab 07, positions, layer norms and masks."""

from _drawing import BLUE, COLOURS, curves, heat_map, level, panels

import numpy as np


def positions(codes):
    """{name: P (T, n)}, and below the similarity of any two places"""
    figure, grid = panels(2, len(codes), (9, 5.6))
    for (name, P), (above, below) in zip(codes.items(), grid.T):
        image = heat_map(above, P, name, cmap="RdBu", vmin=-1, vmax=1)
        above.set(xlabel="column of P", ylabel="place t")
        heat_map(below, P @ P.T / (P.shape[1] / 2), "P·Pᵀ / (n/2)", cmap="RdBu", vmin=-1, vmax=1)
        below.set(xlabel="place u", ylabel="place t")
    figure.colorbar(image, ax=grid, shrink=0.6)
    return figure


def layer_norm(deep):
    """{name: (…, size of the outputs by layer, size of the gradient by layer)}"""
    figure, both = panels(1, 2, (9, 3.6))
    for axes, which in zip(both, (1, 2)):
        lines = {name: row[which] for name, row in deep.items()}
        curves(axes, range(1, len(next(iter(lines.values()))) + 1), lines, "o-")
    both[0].set(title="standard deviation of a word's vector", xlabel="layer", ylim=(0, None))
    both[1].set(title="size of the gradient, after ten steps", xlabel="layer", yscale="log", ylim=(0.1, 200))
    both[1].tick_params(which="minor", labelleft=False)
    return figure


def word_maps(words, matrices, label, columns=3, size=(9.5, 3.7), xlabel="", ylabel="", fontsize=10):
    """Matrices of words by words, {title: matrix}, on one scale from 0 to 1."""
    figure, places = panels((len(matrices) + columns - 1) // columns, columns, size)
    for axes, (title, matrix) in zip(np.ravel(places), matrices.items()):
        image = heat_map(axes, matrix, title, words, rotation=90, fontsize=fontsize, vmin=0, vmax=1)
        axes.set(xlabel=xlabel, ylabel=ylabel)
    figure.colorbar(image, ax=places, shrink=0.7, label=label)
    return figure


def variants(runs, baselines):
    """Validation losses against answers learned from: {name: (answers, losses, test loss)}; lines {label: loss}"""
    figure, axes = panels(size=(8, 4.4))
    for (name, (answers, losses, test)), color in zip(runs.items(), COLOURS):
        axes.plot(answers, losses, "o-", color=color, ms=4, label=f"{name}, test {test:.2f}")
    for name, loss in baselines.items():
        level(axes, loss, f"{name}  {loss:.2f}", place=0.01, shift=(0, 4))
    axes.set(xscale="log", xlabel="answers learned from", ylabel="validation loss in nats per word")
    axes.legend(frameon=False, fontsize=9)
    return figure


def history(lengths, losses):
    figure, axes = panels(size=(7, 3.6))
    axes.plot(lengths, losses, "o-", color=BLUE)
    axes.set(xlabel="words of history", ylabel="test loss in nats per word")
    return figure

"""Figures of lab 11, many machines."""

from _drawing import BLUE, GREY, ORANGE, panels

import numpy as np


def ring(history):
    """The ring all-reduce: history (steps, N, p), where process r began with 10⁻ʳ, so that digits show sums."""
    steps, N, _ = history.shape
    figure, places = panels(1, steps, (12, 3.0))
    figure.suptitle(f"A ring of {N} processes: how many of them have been added up in each piece")
    for step, axes in enumerate(places):
        pieces = history[step].reshape(N, N, -1)[:, :, 0].T                      # (piece, process)
        added = np.array([[sum(digit == "1" for digit in f"{value:.{N - 1}f}") for value in row] for row in pieces])
        axes.imshow(added, cmap="Blues", vmin=0, vmax=N)
        for (row, column), value in np.ndenumerate(added):
            axes.text(column, row, value, ha="center", va="center", color="white" if value > N / 2 else "black")
        axes.set_title("at first" if step == 0 else f"step {step}", fontsize=10)
        axes.set_xticks(range(N))
        axes.set_yticks(range(N), [f"piece {piece}" for piece in range(N)] if step == 0 else [""] * N)
        axes.set_xlabel("process")
        axes.tick_params(length=0)
    return figure


def memory(processes):
    """Numbers that each process keeps per parameter, with Adam's sharded among so many processes"""
    figure, axes = panels(1, 1, (7.5, 3.8))
    axes = np.ravel(axes)[0]
    places = np.arange(len(processes))
    bottom = np.zeros(len(processes))
    for name, each, colour in (
        ("parameters", np.ones(len(processes)), BLUE), ("gradients", np.ones(len(processes)), GREY),
        ("Adam's m and v", 2 / np.array(processes), ORANGE),
    ):  # fmt: skip
        axes.bar(places, each, bottom=bottom, color=colour, label=name)
        bottom += each
    axes.axhline(4, color="0.3", linewidth=0.9, linestyle="--")
    axes.text(len(processes) - 0.5, 4.05, "not sharded", ha="right", va="bottom", fontsize=9)
    axes.set_xticks(places, processes)
    axes.set_xlabel("processes")
    axes.set_ylabel("numbers kept by each process,\nper parameter")
    axes.set_ylim(0, 4.6)
    axes.set_title("Sharding the optimizer's memory")
    axes.legend(loc="upper center", ncols=3, fontsize=9)
    return figure

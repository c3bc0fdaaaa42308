"""Figures of lab 10c, how a machine finds your bug."""

from _drawing import BLUE, GREY, RED, note, panels

import numpy as np

NOTHING = 1e-17                                          # where a residual of 0 is drawn
BESIDE = {"xycoords": ("axes fraction", "data"), "va": "center"}


def rests(places, left, affine):
    """The part of the missing gradient that the best value of each expression leaves, line by line

    places [(line, text), …] of all expressions; left {k: residual}; affine [k, …]: for the others it means nothing
    """
    shown = sorted(left, key=lambda k: (places[k][0], k))
    lines = [places[k][0] for k in shown]
    figure, axes = panels(size=(9, 5))
    for line in sorted(set(lines)):
        first, count = lines.index(line), lines.count(line)
        axes.axhspan(first - 0.5, first + count - 0.5, color="0.5", alpha=0.12 if line % 2 else 0, linewidth=0)
        note(axes, f"line {line}", (1.01, first + count / 2 - 0.5), fontsize=11, **BESIDE)
    for row, k in enumerate(shown):
        if k not in affine:
            note(axes, "not affine: J does not apply", (0.99, row), ha="right", color=GREY, **BESIDE)
            continue
        residual = max(left[k], NOTHING)
        color, marker = (BLUE, "o") if residual < 1e-6 else (RED, "s")
        axes.plot([NOTHING / 10, residual], [row, row], color=color, linewidth=1.2)
        axes.plot(residual, row, marker, color=color, markersize=7)
    axes.plot([], [], "o", color=BLUE, label="can be at fault")
    axes.plot([], [], "s", color=RED, label="cannot be at fault")
    axes.legend(frameon=False, fontsize=10, loc="center", bbox_to_anchor=(0.42, 0.48))
    axes.set_yticks(range(len(shown)), [places[k][1] for k in shown], family="monospace", fontsize=9)
    axes.set(xscale="log", xlim=(NOTHING / 10, 30), ylim=(len(shown) - 0.5, -0.5),
             xlabel="residual: the part of the missing gradient that the best value of the expression leaves",
             title="Which expressions can be at fault?")   # fmt: skip
    return figure


def candidates(places, found, in_sight=(1, 1 / 4)):
    """The residual of each candidate, expression by expression: found {(k, form): (residuals, numbers c)}"""
    figure, axes = panels(size=(9.5, 4.6))
    start, ticks, kinds = 0, {}, np.zeros(3, int)
    for k in dict.fromkeys(k for k, _ in found):
        of_k = [both for (other, _), both in found.items() if other == k]
        least, c = (np.concatenate(some) for some in zip(*of_k))
        x, is_hit = start + np.arange(len(least)), least < 1e-7
        known = is_hit & (np.abs(c[:, None] - in_sight) < 1e-6).any(1)
        some = ~is_hit, known, is_hit & ~known
        axes.plot(x[some[0]], least[some[0]], ".", color=GREY, markersize=1.5, alpha=0.5)
        axes.plot(x[some[1]], least[some[1]], "o", color=BLUE, markersize=5, alpha=0.7, markeredgewidth=0)
        axes.plot(x[some[2]], least[some[2]], "o", markeredgecolor=RED, markerfacecolor="none", markersize=5)
        if start:
            axes.axvline(start, color="0.85", linewidth=1)
        ticks[start + len(least) / 2] = f"line {places[k][0]}\n{places[k][1]}".replace(" / e", "\n/ e")
        start, kinds = start + len(least), kinds + [one.sum() for one in some]
    axes.plot([], [], ".", color=GREY, label=f"{kinds[0]:,} that do not fit")
    axes.plot([], [], "o", color=BLUE, label=f"{kinds[1]} hits, c is 1 or 1/4")
    axes.plot([], [], "o", markeredgecolor=RED, markerfacecolor="none", label=f"{kinds[2]} hits, c is another number")
    axes.legend(frameon=False, fontsize=10, loc="center")
    axes.set_xticks([*ticks], [*ticks.values()], fontsize=8, family="monospace")
    axes.tick_params(axis="x", length=0)
    axes.set(yscale="log", xlim=(0, start), ylabel="relative residual",
             title=f"{start:,} candidates, each with its best number c")         # fmt: skip
    return figure

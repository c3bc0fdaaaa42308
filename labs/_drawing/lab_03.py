"""Figures of labs 03 and 03b, a network with a state."""

from _drawing import BLACK, BLUE, GREEN, PURPLE, RED, level, note, panels

import numpy as np

FORWARD, BACKWARD = BLUE, RED


def row(vector, digits):
    return "(" + "  ".join(f"{value:.{digits}f}" for value in np.ravel(np.round(vector, digits) + 0.0)) + ")"


def draw_unrolled(axes, x, states, da, from_above):
    """Three steps as boxes and arrows: the states forward, the gradients da backward."""
    axes.set(xlim=(-0.6, 3.9), ylim=(-0.35, 2.35),
             title="Section 2: forward (blue) and backward (red) through three steps")  # fmt: skip
    axes.axis("off")
    forward = {"arrowstyle": "->", "color": FORWARD, "lw": 1.6}
    backward = {"arrowstyle": "->", "color": BACKWARD, "lw": 1.6, "ls": "--"}
    boxed = {"ha": "center", "va": "center", "fontsize": 10}
    text = {"ha": "center", "fontsize": 10}
    for t, state in enumerate(states):
        box = {"boxstyle": "round,pad=0.5", "fc": "#dcebf7", "ec": FORWARD}
        axes.text(t, 1.2, f"$h_{t}$\n{row(state, 2)}", bbox=box, **boxed)
        if t == 0:
            continue
        box = {"boxstyle": "round,pad=0.4", "fc": "white", "ec": "0.5"}
        axes.text(t, 0, f"$x_{t}$\n{row(x[t - 1], 0)}", bbox=box, **boxed)
        axes.annotate("", (t, 0.88), (t, 0.3), arrowprops=forward)
        axes.text(t + 0.1, 0.57, "Wx", color=FORWARD, **text)
        axes.annotate("", (t - 0.32, 1.3), (t - 0.68, 1.3), arrowprops=forward)
        axes.text(t - 0.5, 1.38, "Wh", color=FORWARD, **text)
        axes.annotate("", (t - 0.68, 1.1), (t - 0.32, 1.1), arrowprops=backward)
        axes.text(t - 0.5, 0.88, "Whᵀ", color=BACKWARD, **text)
        axes.text(t, 1.72, f"$da_{t}$ = {row(da[t - 1], 2)}", color=BACKWARD, **text)
    axes.annotate("", (3.32, 1.2), (3.68, 1.2), arrowprops=backward)
    axes.text(3.5, 1.29, row(from_above, 0), color=BACKWARD, **text)
    axes.text(1.5, 2.12, "the three arrows Wh are one matrix:  $dWh = h_0^T da_1 + h_1^T da_2 + h_2^T da_3$",
              ha="center", fontsize=11)  # fmt: skip


def through_time(x, states, da, from_above, parts):
    """x, states and da by step; parts {g: (T,)}: what each step contributes to dWh when Wh is g times a rotation."""
    figure, (top, bottom) = panels(2, 1, (9, 7), height_ratios=(1.1, 1))
    draw_unrolled(top, x, states, da, from_above)
    for shift, ((g, norms), color) in enumerate(zip(parts.items(), (PURPLE, BLUE, RED))):
        at = np.arange(1, len(norms) + 1)
        bottom.bar(at + 0.28 * (shift - 1), norms, 0.28, color=color, label=f"Wh = {g} · rotation")
    bottom.set(title=f"What each of {len(at)} steps contributes to dWh; the gradient enters at step {len(at)}",
               xlabel="step t", ylabel="‖h$_{t-1}^T$ da$_t$‖ (log scale)", yscale="log", xticks=at)  # fmt: skip
    bottom.set_ylim(top=100)
    bottom.legend(frameon=False, loc="upper left", ncols=3)
    return figure


def powers(path, norms, radius, scaled):
    """path (t, 2): where W^t takes a vector; ‖W^t‖; and the same for W scaled to other radii, {radius: norms}"""
    figure, (spiral, decay, three) = panels(1, 3, (12, 4))
    steps = np.arange(len(norms))
    spiral.plot(*path.T, "-", color="0.75", linewidth=1)
    points = spiral.scatter(*path.T, c=range(len(path)), cmap="viridis", s=22, zorder=3)
    for t, shift in ((0, (7, 5)), (5, (-38, -4)), (10, (-44, 2))):
        note(spiral, f"t = {t}", path[t], shift)
    figure.colorbar(points, label="t, steps", shrink=0.8)
    spiral.set(title="Section 3: W$^t$ · (1, 0) turns and shrinks", xlabel="first entry", ylabel="second entry",
               aspect="equal", xlim=(-0.9, 1.4))  # fmt: skip
    decay.semilogy(norms, color=BLUE, label="‖W$^t$‖")
    decay.semilogy(radius**steps, "--", color="0.3", label=f"|λ|$^t$ = {radius:.3f}$^t$")
    decay.axhline(1, color="0.8", linewidth=1, zorder=0)
    decay.set(title="Section 3: norms, the lecture's W", xlabel="t, steps", ylabel="norm (log scale)")
    for (r, values), color in zip(scaled.items(), (PURPLE, GREEN, RED)):
        three.semilogy(values, color=color, label=f"radius {r}")
        three.semilogy(r**steps, "--", color=color, linewidth=0.8)
    three.set(title="W scaled; dashed: radius$^t$", xlabel="t, steps", ylabel="‖W$^t$‖ (log scale)")
    for axes in (decay, three):
        axes.legend(frameon=False)
    return figure


def bound(lengths):
    """{(f, kind of Wh): (measured length, its bound) at distance 0, 1, …}"""
    figure, both = panels(1, 2, (11, 4.8), sharey=True)
    figure.suptitle("Section 4: a gradient's length, measured (solid), and at most (γ‖Wh‖)$^d$ (dashed)")
    colors = (PURPLE, GREEN, RED, BLACK)
    shown = {"tanh": ("0.7 · rotation", "1.0 · rotation", "1.3 · rotation", "random"),
             "logistic": ("2.8 · rotation", "4.0 · rotation", "8.0 · rotation", "16.0 · rotation")}  # fmt: skip
    for axes, (f, kinds) in zip(both, shown.items()):
        for kind, color in zip(kinds, colors):
            measured, most = lengths[f, kind]
            axes.semilogy(measured, color=color, linewidth=1.8, label=f"Wh = {kind}")
            axes.semilogy(most, "--", color=color, linewidth=1, zorder=3)
        axes.set(title=f, xlabel="distance d, steps", ylim=(1e-13, 1e13))
        axes.legend(frameon=False, fontsize=9, ncols=2, loc="lower left")
    both[0].set_ylabel("‖v$_d$‖ / ‖v‖ (log scale)")
    return figure


def gradient_by_distance(reach):
    """{(activation, loudness, g): size of the gradient at distance 0, 1, …}"""
    colors = {0.7: PURPLE, 1.0: GREEN, 1.3: RED, 2.0: "black"}
    figure, both = panels(1, 2, (10, 4.4), sharey=True)
    for axes, activation in zip(both, ("tanh", "relu")):
        for (name, loudness, g), part in reach.items():
            if name == activation:
                loud = ", loud words" if loudness == "loud" else ""
                axes.semilogy(part, ":" if loud else "-", color=colors[g], label=f"g = {g}{loud}", linewidth=1.8)
        for g in (0.7, 1.0, 1.3, 2.0) if activation == "relu" else (0.7, 1.0, 1.3):
            axes.semilogy(g ** np.arange(float(len(part))), "--", color=colors[g], linewidth=0.8)
        axes.set(title=f"Section 5, {activation} (dashed: g$^d$)", xlabel="distance d, words", ylim=(1e-20, 1e16))
        axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
    both[0].set_ylabel("gradient, relative to that at d = 0 (log scale)")
    return figure


def exploding(runs):
    """{name: (norms of the gradient before clipping, losses)}, until the loss is NaN."""
    steps = max(len(losses) for _, losses in runs.values())
    figure, (left, right) = panels(1, 2, (10, 4))
    for (name, (norms, losses)), color, marker in zip(runs.items(), (RED, BLUE, GREEN), ("o", "", "")):
        at, finite = np.arange(1, len(norms) + 1), np.isfinite(norms)
        left.semilogy(at[finite], norms[finite], marker=marker, color=color, label=name, markersize=4)
        right.plot(at, losses, marker=marker, color=color, label=name, markersize=4)
        if not np.isfinite(losses[-1]):
            note(left, "NaN\nfrom here on", (at[finite][-1], norms[finite].max()), (8, -6), color=color, va="top")
    level(left, 1, "clipped to 1", place=1, shift=(-2, 4))
    left.set(title="Section 5: norm of all gradients, before clipping", xlabel="step", xlim=(0, steps),
             ylabel="‖∇J‖ (log scale)")  # fmt: skip
    right.set(title="Training loss (cut off at 9)", xlabel="step", xlim=(0, steps), ylim=(2.5, 9),
              ylabel="cross-entropy in nats per word")  # fmt: skip
    left.legend(frameon=False, loc="upper right")
    right.legend(frameon=False, loc="upper right")
    return figure


def memory(reaches, distances, lost):
    """How far back the gradient reaches, and how far back the model uses its words.

    reaches   {name: (places, d)}, the size of the gradient
    lost      {other words: (mean, standard error) for each of the distances}, the loss added
    """
    figure, (left, right) = panels(1, 2, (11, 4.3))
    for (name, gradients), color in zip(reaches.items(), (GREEN, BLUE)):
        low, high = np.percentile(gradients, (10, 90), axis=0)
        left.semilogy(np.exp(np.log(np.maximum(gradients, 1e-300)).mean(0)), color=color, label=name, linewidth=1.8)
        left.fill_between(np.arange(gradients.shape[1]), low, high, color=color, alpha=0.2, linewidth=0)
    level(left, 1.2e-7, "float32's precision", shift=(8, -12), color="0.5")
    left.set(title="Section 3: how far back the gradient reaches", xlabel="distance d, words", ylim=(None, 10),
             ylabel="gradient, relative to that at d = 0 (log scale)")  # fmt: skip
    left.legend(frameon=False, title="geometric mean, and 80 % of the places", loc="upper right")
    for (name, rows), color, shift in zip(lost.items(), (RED, PURPLE), (0.97, 1.03)):
        mean, error = np.array(rows).T
        right.errorbar(np.array(distances) * shift, mean, 2 * error, fmt="o-", color=color, capsize=3, markersize=4,
                       label=name)  # fmt: skip
    right.axhline(0, color="0.7", linewidth=1, zorder=0)
    right.axvspan(20, 30, color="0.9", zorder=0)
    note(right, "20–30 words,\nCS685's remark", (24.5, 0.5), xycoords=("data", "axes fraction"), ha="center",
         color="0.35")  # fmt: skip
    right.set(title="How far back it uses its words", xlabel="true words kept, d (log scale)", xscale="log",
              ylabel="loss added, nats per word (± 2 standard errors)")  # fmt: skip
    right.set_xticks(distances, distances)
    right.minorticks_off()
    right.legend(frameon=False, title="further back", loc="upper right")
    return figure


def proctor(right):
    """{model: (words of filler, p of the right word) for each sentence}"""
    figure, axes = panels(1, 1, (8, 4.2))
    for k, ((name, (filler, p)), color, marker) in enumerate(zip(right.items(), (GREEN, PURPLE, RED, BLUE), "osv^")):
        counts, width = np.unique(filler), 4.5 if k == 0 else 1.5        # the first lies under the third
        mean = [p[filler == count].mean() for count in counts]
        axes.plot(counts, mean, f"{marker}-", color=color, label=name, linewidth=width, markersize=4 + width)
    level(axes, 0.5, "½: the person is not seen, or not remembered", place=1, shift=(-2, -14))
    axes.axvline(3, color="0.8", linewidth=1, zorder=0)
    note(axes, "as far as the\nwindow of 12 reaches", (3, 0.25), (5, 0), color="0.35")
    axes.set(title="Section 2: exams after a proctor, books after a teacher",
             xlabel="words of filler between clock and students", ylabel="p(the right word), mean",
             ylim=(0, 1.05))  # fmt: skip
    axes.legend(frameon=False, loc="lower right")
    return figure

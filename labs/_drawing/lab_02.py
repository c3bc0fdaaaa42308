"""Figures of lab 02, words as vectors and the fixed-window model."""

from _drawing import BLUE, GREEN, GREY, ORANGE, RED, heat_map, levels, loss_curves, panels, spread_words

import numpy as np


def likeness(words, matrices):
    """Cosines of words, {title: (words, words)}"""
    figure, places = panels(1, 3, (11, 3.9))
    figure.suptitle("Section 1: how similar are two words?")
    for axes, (title, matrix) in zip(places, matrices.items()):
        entries = [[f"{value:.1f}".replace("-0.0", "0.0") for value in row] for row in matrix]
        image = heat_map(axes, matrix, title, words, rotation=45, entries=entries, cmap="PuOr_r", vmin=-1, vmax=1)
    figure.colorbar(image, ax=places, label="cosine of the angle")
    return figure


def softmax_layer(words, series, right):
    """Bars over the words, {title: values}; the bar of the right word is red."""
    figure, places = panels(1, len(series), (11, 3.4))
    figure.suptitle(f"Section 2: a softmax layer, from scores to a gradient; “{right}” is the right word")
    for axes, (title, values) in zip(places, series.items()):
        drawn = axes.bar(words, values, color=[RED if word == right else "0.7" for word in words])
        axes.bar_label(drawn, fmt="%.2f" if abs(values).max() > 1 else "%.3f", padding=2, fontsize=9)
        axes.axhline(0, color="0.3", linewidth=0.8)
        axes.set_title(title, fontsize=11)
        axes.tick_params(axis="x", labelrotation=35)
        axes.margins(y=0.2)
    return figure


def compositions(phrases, composed):
    """Two phrases of three words, composed: {name: (2, numbers)}"""
    figure, places = panels(len(composed), 1, (10.5, 1.47 * len(composed)))
    figure.suptitle("Section 3: " + " and ".join(f"“{phrase}”" for phrase in phrases) + ", composed")
    widest = max(e.shape[1] for e in composed.values())
    for axes, (name, e) in zip(places, composed.items()):
        size = e.shape[1]
        same = np.allclose(e[0], e[1])
        image = heat_map(axes, e, cmap="PuOr_r", vmin=-3, vmax=3)
        axes.spines[:].set_visible(False)
        axes.set_title(f"{name}: {size} numbers, the rows are {'the same' if same else 'different'}", loc="left",
                       fontsize=10)  # fmt: skip
        axes.set(xlim=(-0.5, widest - 0.5), xticks=[])   # entries of the same width in all of them
        axes.set_yticks(range(len(phrases)), phrases, fontsize=9)
        axes.tick_params(length=0)
        if size == widest:
            axes.set_xticks((np.arange(3) + 0.5) * size / 3 - 0.5, ["position 1", "position 2", "position 3"])
            for place in (1, 2):
                axes.axvline(place * size / 3 - 0.5, color="black", linewidth=1.5)
        else:
            axes.text(size + 0.5, 0.5, "no layer above can tell who bit whom", va="center", color="0.35")
    figure.colorbar(image, ax=places, label="entry of e")
    return figure


def training(rows, lines, words, short_runs, times_over, few):
    """The main training with test losses as lines, {label: loss}; and how it overfits a short text, {label: rows}."""
    figure, (left, right) = panels(1, 2, (12, 4.6))
    loss_curves(left, rows, label="{}")
    left.set_ylim(min(*lines.values(), rows[-1]["train_loss"]) - 0.1, max(lines.values()) + 0.1)
    levels(left, lines, {label: GREY if "gram" in label else GREEN for label in lines})
    left.set_title(f"Section 1, training: {words:,} words; dashed: test words")
    for (label, run), color in zip(short_runs.items(), (RED, BLUE)):
        loss_curves(right, run, times_over, label=f"{{}}, {label}", colors=(color, color), styles=("o--", "s-"))
    right.set(title=f"Section 1, overfitting: only {few:,} words, read repeatedly", xlabel="times over the text")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    return figure


def windows(compared, bars, steps, lengths):
    """Test losses {composition: {T: loss}} with those of counting as lines; how much each position counts."""
    figure, (left, right) = panels(1, 2, (11, 4.4), width_ratios=[1.3, 1])
    for (name, by_length), style, color in zip(compared.items(), ("o-", "D", "s"), (BLUE, RED, ORANGE)):
        left.plot(list(by_length), list(by_length.values()), style, color=color, markersize=7, label=name)
    for (name, loss), style in zip(bars.items(), (":", "--")):
        left.axhline(loss, color="0.45", linestyle=style, linewidth=1.2, label=f"{name}, counted")
    tried = list(compared["concatenation"])
    left.set_xscale("log", base=2)
    left.set_xticks(tried, [str(length) for length in tried])
    left.minorticks_off()
    left.set(title=f"Section 1: windows and compositions, {steps} steps each", xlabel="T, words in the window",
             ylabel="test cross-entropy in nats per word")  # fmt: skip
    left.margins(y=0.15)
    figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=9, ncols=5, loc="outside lower left")
    right.bar(range(len(lengths), 0, -1), lengths, color=BLUE)
    right.set_xticks(range(1, len(lengths) + 1))
    right.invert_xaxis()
    right.set(title=f"T = {len(lengths)}: which positions count", xlabel="words back from the target",
              ylabel="mean length of $x_t W_t$")  # fmt: skip
    return figure


def word_vectors(words, group_of, groups, components):
    """Words in the plane of two principal components, {title: (places (words, 2), share of the variance)}"""
    colors = (BLUE, RED, "0.1", GREEN, "#B8569A")
    figure, both = panels(1, 2, (12, 6))
    for axes, (title, (places, share)) in zip(both, components.items()):
        lowest, highest = places.min(0), places.max(0)
        spread_words(axes, words, 0.08 + 0.84 * (places - lowest) / (highest - lowest), [colors[g] for g in group_of])
        axes.spines[:].set_visible(True)
        axes.set(title=f"Section 2, {title}: two components, {share:.0%} of the variance",
                 xlabel="first principal component", ylabel="second principal component")  # fmt: skip
    for name, color in zip(groups, colors):
        axes.plot([], [], "s", color=color, label=name)
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=5, loc="outside lower center")
    return figure

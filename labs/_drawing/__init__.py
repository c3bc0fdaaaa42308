"""What all labs draw: panels, curves, bars, heat maps with words on the axes, and labels.

Figures that only one lab draws are in this package, too, in a file with its number.
"""

from mini_tf.palette import BLACK, BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, RED  # noqa: F401, for the labs' files
from mini_tf.training.figures import between

import numpy as np
from matplotlib.figure import Figure


def panels(rows=1, columns=1, size=(7, 4), **options):
    """(figure, axes): rows × columns axes without a frame at the top and right; a single axes is not in an array"""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for each in np.ravel(axes):
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def note(axes, text, at, shift=(0, 0), **options):
    """Text next to a point of the picture, shifted by so many points of print"""
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **{"fontsize": 9} | options)


def curves(axes, x, lines, style="-", colors=COLOURS, legend="best", **options):
    """A line for each {label: values}, all over the same x, with a legend at `legend` (None: no legend)

    style: one for all lines, or one for each
    """
    styles = [style] * len(lines) if isinstance(style, str) else style
    for (label, values), each, color in zip(lines.items(), styles, colors):
        axes.plot(x, values, each, color=color, label=label, **options)
    if legend:
        axes.legend(frameon=False, fontsize=9, loc=legend)


def loss_curves(axes, rows, x="step", scale=1.0, label="{}", colors=(BLUE, RED), styles=("o-", "s-")):
    """Training and validation loss from the rows of a History

    x       the column to plot them against, or the numbers themselves; a training loss, which is the mean since the
            previous measurement, is drawn between the two
    scale   a factor for the losses
    label   the names in the legend, with {} for "training" and "validation"
    """
    at = [row[x] for row in rows] if isinstance(x, str) else x
    columns = {"training": "train_loss", "validation": "validation_loss"}
    for (name, column), color, style in zip(columns.items(), colors, styles):
        places = between(at) if name == "training" else at
        axes.plot(places, [scale * row[column] for row in rows], style, color=color, label=label.format(name))
    axes.set(xlabel="step", ylabel="cross-entropy in nats per word")


def level(axes, height, text="", place=0, shift=(4, 4), color="0.4", **options):
    """A dashed horizontal line with its name; place: from 0, at the left end, to 1, at the right end"""
    axes.axhline(height, color=color, linewidth=1, zorder=1, **{"linestyle": "--"} | options)
    side = "right" if place == 1 else "left"
    note(axes, text, (place, height), shift, xycoords=("axes fraction", "data"), ha=side, color=color)


def levels(axes, heights, colors=GREY):
    """Dashed horizontal lines, {label: height}, named to the right of the axes without overlaps

    colors: one for all lines, or {label: color} for some of them
    """
    bottom, top = axes.get_ylim()
    free = bottom
    for label, height in sorted(heights.items(), key=lambda line: line[1]):
        color = colors if isinstance(colors, str) else colors.get(label, GREY)
        axes.axhline(height, color=color, linestyle="--", linewidth=1, zorder=1)
        at = max(height, free)
        free = at + 0.055 * (top - bottom)
        note(axes, f"{label}  {height:.2f}", (1, at), (5, 0), xycoords=("axes fraction", "data"), va="center",
             color=color)  # fmt: skip


def bars(axes, names, series, form=None, width=0.8, colors=COLOURS, **options):
    """Bars for each name, one for each {label: values} side by side. form: how a value is written above its bar"""
    each, place = width / len(series), np.arange(len(names))
    for k, ((label, values), color) in enumerate(zip(series.items(), colors)):
        at = place + each * (k - (len(series) - 1) / 2)
        drawn = axes.bar(at, values, 0.95 * each, label=label, color=color, **options)
        if form:
            axes.bar_label(drawn, fmt=form, padding=2, fontsize=9)
    axes.set_xticks(place, names)


def stacked_bars(axes, x, series, colors=COLOURS, form="{:.0%}", least=0.025):
    """Stacked shares, {label: shares} for each x; a share is written into its piece if there is room"""
    bottom = np.zeros(len(x))
    for (label, shares), color in zip(series.items(), colors):
        pieces = axes.bar(x, shares, bottom=bottom, color=color, label=label)
        axes.bar_label(pieces, [form.format(share) if share > least else "" for share in shares], label_type="center",
                       fontsize=9, color="white" if color == BLUE else "black")  # fmt: skip
        bottom += shares


def word_axes(axes, rows, columns, **options):
    """Words as ticks of the rows and columns of a matrix"""
    axes.set_xticks(range(len(columns)), columns, **options)
    axes.set_yticks(range(len(rows)), rows, **{key: value for key, value in options.items() if key != "rotation"})
    axes.tick_params(length=0)


def heat_map(axes, values, title="", words=None, columns=None, rotation=0, entries=None, fontsize=9, **options):
    """A matrix as a picture

    words     at its rows, and at its columns, too, unless `columns` are given
    entries   texts for its cells, in white where the cell is dark; "0" in grey
    """
    image = axes.imshow(values, **{"aspect": "auto" if words is None else "equal"} | options)
    axes.spines[:].set_visible(True)
    axes.set_title(title, fontsize=11)
    if words is not None:
        word_axes(axes, words, words if columns is None else columns, rotation=rotation, fontsize=fontsize)
    if entries is not None:
        for (i, j), value in np.ndenumerate(values):
            dark = image.cmap(image.norm(value))[:3] @ np.array([0.3, 0.59, 0.11]) < 0.5
            color = "white" if dark else "0.65" if entries[i][j] == "0" else "black"
            axes.text(j, i, entries[i][j], ha="center", va="center", fontsize=fontsize, color=color)
    return image


def pictures(axes, images, cmap="gray_r", least=0.0, greatest=1.0):
    """Images (number, height, width), each on one of the axes, without ticks"""
    for each, image in zip(np.ravel(axes), images):
        drawn = each.imshow(image, cmap=cmap, vmin=least, vmax=greatest)
        each.spines[:].set_visible(True)
        each.set(xticks=[], yticks=[])
    return drawn


def spread_words(axes, words, places, colors):
    """Words at their places, from 0 to 1 on both axes; one that would cover another is moved up or down"""
    taken = []                                           # (x, y, half the width)

    def is_free(x, y, half):
        return all(abs(x - other_x) > half + other_half or abs(y - other_y) > 0.036
                   for other_x, other_y, other_half in taken)

    for word, (x, y), color in zip(words, places, colors):
        half = 0.011 * len(word) + 0.005
        shifts = sorted(np.arange(-0.4, 0.4, 0.005), key=abs)
        y = next((y + shift for shift in shifts if is_free(x, y + shift, half)), y)
        taken.append((x, y, half))
        axes.text(x, y, word, ha="center", va="center", fontsize=10, color=color, transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])

"""Figures of labs 08 and 08b: the parts of a translator, and its translations."""

from _drawing import BLUE, GREY, RED, curves, heat_map, level, panels

import numpy as np


def positions(P, by_distance):
    """P (T, n), the dot products of its rows, and their mean by distance, divided by n/2"""
    figure, (left, middle, right) = panels(1, 3, (11, 3.6), width_ratios=(1.4, 1, 1))
    image = heat_map(left, P, "P: a row for each position", cmap="RdBu", vmin=-1, vmax=1)
    left.set(xlabel="column: even are sines, odd are cosines", ylabel="position t")
    T, n = P.shape
    heat_map(middle, P @ P.T / (n / 2), "P_t·P_u / (n/2)", cmap="RdBu", vmin=-1, vmax=1)
    middle.set(xlabel="position u", ylabel="position t")
    figure.colorbar(image, ax=(left, middle), shrink=0.8)
    right.plot(range(T), by_distance, "o-", color=BLUE, ms=3)
    right.set(title="P_t·P_u / (n/2) by distance", xlabel="distance u − t in words", ylim=(0, 1.05))
    right.title.set_fontsize(11)
    figure.suptitle("1. Positions by the slide's formula: their dot products depend on the distance alone", fontsize=12)
    return figure


def scaling(sizes, rows):
    """{"with …": [(variance of scores, largest weight, gradient) for each size]}"""
    figure, places = panels(1, 3, (11, 3.4))
    titles = "variance of the scores", "largest of 16 weights", "gradient that passes, ‖dscores‖/‖dA‖"
    for i, (axes, title) in enumerate(zip(places, titles)):
        lines = {name: [row[i] for row in of] for name, of in rows.items()}
        curves(axes, sizes, lines, "o-", colors=(RED, BLUE), legend="best" if i == 0 else None)
        axes.set(title=title, xlabel="m, size of a head", xscale="log")
        axes.title.set_fontsize(11)
        axes.set_xticks(sizes, sizes)
        axes.minorticks_off()
    places[0].set(yscale="log")
    for axes in places[1:]:
        axes.set_ylim(0, None)
    places[1].set_ylim(0, 1.05)
    figure.suptitle("2. Why scores are divided by √m", fontsize=12)
    return figure


def masks(pictures):
    """{b: [(title, words of the rows, words of the columns, may see)]}: a row of pictures for each sentence"""
    figure, grid = panels(len(pictures), 3, (11, 7.4))
    for row, (b, three) in zip(grid, pictures.items()):
        for axes, (title, queries, keys, allowed) in zip(row, three):
            heat_map(axes, allowed, f"sentence {b + 1}, {title}", queries, keys, rotation=90, cmap="gray",
                     vmin=-0.6, vmax=1)  # fmt: skip
            axes.title.set_fontsize(10)
            axes.set_xticks(np.arange(len(keys) - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(len(queries) - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="0.7", linewidth=0.5)
            axes.tick_params(which="minor", length=0)
            axes.set_ylabel("query", fontsize=9)
    figure.supxlabel("key (white: the query may see it; grey: it may not; –: padding)", fontsize=10)
    figure.suptitle("4. The masks of a batch of two sentences", fontsize=12)
    return figure


def leak(histories):
    """{label: rows of a History}: the validation losses of two models"""
    figure, axes = panels(size=(7.5, 3.8))
    for (label, rows), color in zip(histories.items(), (BLUE, RED)):
        steps, losses = zip(*((row["step"], row["validation_loss"]) for row in rows))
        axes.plot(steps, losses, "o-", color=color, label=label)
    axes.set(xlabel="step", ylabel="validation loss, nats per word", ylim=(0, None),
             title="Without the look-ahead mask: a splendid loss, useless translations")  # fmt: skip
    axes.title.set_fontsize(11)
    axes.legend(frameon=False)
    return figure


def training(rows, losses, uniform, floor):
    """rows of a History, {part: loss} for each of them, the loss of a uniform guess, the least smoothed loss"""
    figure, axes = panels(size=(8, 4.2))
    steps = [row["step"] for row in rows]
    smoothed = {"training, smoothed: what is minimized": [row["train_loss"] for row in rows]}
    plain = {f"{name}, not smoothed": [of[name] for of in losses] for name in ("training", "test")}
    curves(axes, steps, smoothed | plain, ["o:", "o-", "s--"], colors=(GREY, BLUE, RED), ms=4)
    level(axes, uniform, f"uniform guess {uniform:.2f}", place=1, shift=(-4, 4))
    level(axes, floor, f"least smoothed loss {floor:.2f}", place=1, shift=(-4, -13))
    axes.set(xlabel="step", ylabel="cross-entropy, nats per word", ylim=(0, uniform + 0.6), xlim=(0, None),
             title="Training a translator")  # fmt: skip
    return figure


def heads(read, written, across):
    """All maps (L, H, U, S) of one sentence"""
    L, H, U, S = across.shape
    figure, grid = panels(L, H, (2.9 * H, 2.9 * L + 0.5), squeeze=False)
    for l, row in enumerate(grid):
        for h, axes in enumerate(row):
            image = heat_map(axes, across[l, h], f"layer {l + 1}, head {h + 1}", written, read, rotation=90,
                             fontsize=9, cmap="Blues", vmin=0, vmax=1)  # fmt: skip
        row[0].set_ylabel("about to be written")
    figure.supxlabel("French word attended to", fontsize=10)
    figure.colorbar(image, ax=grid, shrink=0.7, label="share of the row's attention")
    figure.suptitle("Experiment 4: cross-attention in every head, one sentence", fontsize=12)
    return figure


def attention(shown, head):
    """{title: (words read, words written, maps (L, H, U, S))}, of one head (layer, head)"""
    figure, row = panels(1, len(shown), (12.5, 4.8))
    for axes, (title, (read, written, across)) in zip(row, shown.items()):
        image = heat_map(axes, across[head], title, written, read, rotation=90, fontsize=10, cmap="Blues", vmin=0,
                         vmax=1)  # fmt: skip
    row[0].set_ylabel("English word about to be written")
    figure.colorbar(image, ax=row, shrink=0.7, label="share of the row's attention")
    figure.supxlabel("French word attended to", fontsize=10)
    figure.suptitle(f"Attention from English to French, layer {head[0] + 1}, head {head[1] + 1}", fontsize=12)
    return figure


def three_attentions(french, english, weights, layer):
    """Of one layer, the mean over its heads: encoder, decoder, and from one to the other

    weights: {"encoder": (L, H, S, S), "decoder": (L, H, U, U), "across": (L, H, U, S)}; english: about to be written
    """
    read = ["[SOS]", *english[:-1]]
    figure, row = panels(1, 3, (12.5, 4.8))
    for axes, (title, kind, queries, keys) in zip(row, (
        ("encoder: French to French", "encoder", french, french),
        ("decoder: English to English", "decoder", read, read),
        ("across: about to be written, to French", "across", english, french),
    )):  # fmt: skip
        image = heat_map(axes, weights[kind][layer].mean(0), title, queries, keys, rotation=90, fontsize=10,
                         cmap="Blues", vmin=0, vmax=1)  # fmt: skip
    row[0].set_ylabel("word that attends")
    figure.colorbar(image, ax=row, shrink=0.7, label="share of the row's attention")
    figure.supxlabel("word attended to", fontsize=10)
    figure.suptitle(f"Three kinds of attention, layer {layer + 1}, mean of its heads", fontsize=12)
    return figure


def overfitting(steps, losses):
    """{part: loss} at these steps, with few sentences"""
    figure, axes = panels(size=(8, 3.8))
    curves(axes, steps, {name: [of[name] for of in losses] for name in losses[0]}, ["o-", "s--"], (BLUE, RED), ms=4)
    axes.set(xlabel="step", ylabel="cross-entropy, nats per word", ylim=(0, None), xlim=(0, None),
             title="2,400 sentence pairs: training and test part")  # fmt: skip
    return figure


def tree(table, found):
    """A tree of prefixes with their probabilities; the two sentences of `found`, {sentence: width}, are coloured"""
    figure, axes = panels(size=(9, 4))
    leaves = [f"{begin} {word}" for begin, row in table.items() if len(begin.split()) == 2 for word in row]
    height = {leaf: -row for row, leaf in enumerate(leaves)}

    def p(begin):
        words = begin.split()
        return np.prod([table[" ".join(words[:i])][word] for i, word in enumerate(words)])

    def place(begin):
        under = [height[leaf] for leaf in leaves if f"{leaf} ".startswith(f"{begin} ") or not begin]
        return len(begin.split()), np.mean(under)

    colors = dict(zip(found, (RED, BLUE)))
    for begin, row in table.items():
        for word, share in row.items():
            child = f"{begin} {word}".strip()
            (x, y), (to_x, to_y) = place(begin), place(child)
            on = [each for of, each in colors.items() if f"{of} ".startswith(f"{child} ")]
            color = on[0] if len(on) == 1 else "black"   # both sentences, or none, go through it
            axes.plot((x + 0.17, to_x - 0.17), (y, to_y), color=color, linewidth=2 if len(on) == 1 else 0.8)
            axes.text((x + to_x) / 2, (y + to_y) / 2, f"{share:g}", ha="center", va="center", fontsize=10,
                      backgroundcolor="white")  # fmt: skip
            axes.text(to_x, to_y, word, ha="center", va="center", fontsize=12, color=color)
    axes.text(0, place("")[1], "[SOS]", ha="center", va="center", fontsize=12)
    notes = {leaf: f"found with width {width}" + (", greedily" if width == 1 else "") for leaf, width in found.items()}
    for leaf in leaves:
        text = f"{p(leaf):.2f}" + (f"   {notes[leaf]}" if leaf in notes else "")
        axes.text(3.25, height[leaf], text, va="center", fontsize=11, color=colors.get(leaf, "0.4"))
    axes.text(3.25, 0.8, "product", va="center", fontsize=10, color="0.4")
    axes.set(xlim=(-0.3, 5), ylim=(-len(leaves) + 0.4, 1.1))
    axes.set_title("Experiment 5: the slide's tree, and what a beam finds in it", fontsize=12)
    axes.axis("off")
    return figure


def beams(widths, rows):
    """{model: [row of the table for each width]}"""
    figure, places = panels(1, 4, (12.5, 3.3))
    titles = {
        "bleu": "BLEU minus that of width 1", "log p": "mean ln p of the translations",
        "length": "words written per reference word", "read": "words that the decoder reads",
    }  # fmt: skip
    for axes, (key, title) in zip(places, titles.items()):
        from_first = key == "bleu"                       # zoomed: the two models are far apart, each hardly changes
        lines = {f"{name}, {of[0][key]:.3f}" if from_first else name:
                 [row[key] - from_first * of[0][key] for row in of] for name, of in rows.items()}  # fmt: skip
        legend = "best" if from_first else None
        curves(axes, list(widths), lines, "o-", colors=(BLUE, RED), legend=legend, ms=4)
        axes.set(title=title, xlabel="width of the beam")
        axes.title.set_fontsize(11)
        axes.set_xticks(list(widths))
    level(places[0], 0)
    places[3].set_ylim(0, None)
    level(places[2], 1, "as long as the references", place=1, shift=(0, 7))
    figure.suptitle("Experiment 5: what a wider beam gains and costs", fontsize=12)
    return figure

"""The pictures of a training run, of a translation, and of a classified text."""

from pathlib import Path
from typing import Any

from mini_tf.errors import UserError
from mini_tf.files import replacing
from mini_tf.models.saliency import Saliency
from mini_tf.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from mini_tf.training.health import NORM, layers_of
from mini_tf.types import Array, PathLike

import numpy as np
from matplotlib import cm
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure


def save_figure(path: PathLike, figure: Figure, dpi: int = 120) -> None:
    """Write a picture, whole or not at all, in the format that its name ends in; PNG for a name without an ending.

    Raises UserError for the ending of no picture, and NotWritten.
    """
    kind = Path(path).suffix.lstrip(".").lower() or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if kind not in known:
        raise UserError(f"{path} ends in .{kind}, expected the name of a picture, such as {Path(path).stem}.png; there "
                        f"are {', '.join(sorted(known))}")  # fmt: skip
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, format=kind)


def draw_curves(
    rows: list[dict[str, Any]], lines: dict[str, float], training: str = "training", unit: str = "nats per word"
) -> Figure:
    """Training and validation loss against the step, with labelled horizontal lines for comparison.

    rows      the rows of a History; a training loss is the mean since the row before, and drawn between the two
    lines     {label: loss}, the baselines and the result on the test words
    training  the label of the training loss
    unit      of the losses
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["step"] for row in rows]
    axes.plot(between(steps), [row["train_loss"] for row in rows], "o-", label=training, color=BLUE)
    axes.plot(steps, [row["validation_loss"] for row in rows], "s-", label="validation", color=RED)
    colors = dict(zip(lines, (GREY, BLACK, GREEN, PURPLE, ORANGE)))
    for name, loss in lines.items():
        axes.axhline(loss, color=colors[name], linestyle="--", linewidth=1)
    bottom, top = axes.get_ylim()
    free = bottom                                        # labels go right of the axes, without overlap
    for name, loss in sorted(lines.items(), key=lambda line: line[1]):
        height = max(loss, free)
        free = height + 0.05 * (top - bottom)
        axes.annotate(
            f"{name}{' (at the end)' if name == 'test' else ''}  {loss:.3f}", (1, height),
            xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9,
            color=colors[name],
        )  # fmt: skip
    axes.set_xlabel("step")
    axes.set_ylabel(f"cross-entropy in {unit}")
    axes.legend()
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def between(steps: list[int]) -> list[float]:
    """Half-way between each step and the one before it: the place of a mean over the steps from there."""
    return [(before + step) / 2 for before, step in zip([0, *steps], steps)]


def draw_gradient_flow(rows: list[dict[str, Any]]) -> Figure:
    """The health of gradients during training: the norm of each layer's gradient, how much a step changes the weights,
    and the share of dead ReLUs, if there are any ReLUs.

    rows: a History's, without one that an interruption added
    """
    steps, layers = [row["step"] for row in rows], list(layers_of(rows[0]))
    has_relus = rows[0]["dead_relus"] != ""
    figure = Figure(figsize=(8, 5.6 + 1.6 * has_relus), layout="constrained")
    flow, *others = figure.subplots(2 + has_relus, 1, sharex=True, height_ratios=[3, 1.3, 1.3][: 2 + has_relus])
    for i, layer in enumerate(layers):
        norms = [layers_of(row)[layer] or np.nan for row in rows]
        flow.plot(steps, norms, "o-", markersize=3, label=_plainly(layer), color=cm.viridis(i / max(len(layers), 2)))
    flow.plot(steps, [row[NORM] for row in rows], "--", color="0.4", linewidth=1, label="all together")
    flow.set_yscale("log")
    flow.set_ylabel("norm of the gradient")
    flow.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8, title="from the words up")
    others[0].plot(steps, [row["update_ratio"] or np.nan for row in rows], "o-", markersize=3, color=RED)
    others[0].axhline(1e-3, color="0.6", linestyle="--", linewidth=1)
    _remark(others[0], "dashed: a thousandth of the weights, a typical size")
    others[0].set_yscale("log")
    others[0].set_ylabel("update / weights")
    if has_relus:
        others[1].plot(steps, [row["dead_relus"] for row in rows], "o-", markersize=3, color=PURPLE)
        others[1].set_ylim(0, 1)
        others[1].set_ylabel("dead ReLUs")
        _remark(others[1], "the share that is 0 for all words of a batch: often high at first; near 1, nothing learns")
    others[-1].set_xlabel("step")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _remark(axes, text):
    axes.set_title(text, loc="left", fontsize=8, color="0.35")


def _plainly(layer):
    """A layer's name for a reader: "trunk.layers.0" is "layer 1", "A" the readout's matrix"""
    names = {"A": "readout A", "embedding": "word vectors", "norm": "last norm", "readout": "readout"}
    *_, name = layer.removeprefix("trunk.").split("layers.")
    return f"layer {int(name) + 1}" if name.isdecimal() else names.get(name, name)


def draw_attention(weights: dict[str, Array], source: list[str], target: list[str]) -> Figure:
    """Heat maps of a translator's attention: a row for each kind, a column for each layer, the mean of its heads.

    weights         of `TranslationModel.attention_weights`
    source, target  the words that were read: of the sentence, and [SOS] and the words of its translation

    The rows of the decoder's attention to the encoder are named after the words about to be written, not after those
    just read: they show where the decoder looks for the next word.
    """
    (layers, heads), next_words = weights["across"].shape[:2], [*target[1:], "[EOS]"]
    kinds = {
        "encoder": ("encoder", source, source), "decoder": ("decoder", target, target),
        "across": ("decoder to encoder", next_words, source),
    }  # fmt: skip
    kinds = {kind: about for kind, about in kinds.items() if kind in weights}
    side = max(2.2, 0.32 * max(len(source), len(target)) + 0.8)
    figure = Figure(figsize=(side * layers + 0.8, side * len(kinds) + 0.6), layout="constrained")
    for row, (kind, (title, queries, keys)) in enumerate(kinds.items()):
        for layer in range(layers):
            axes = figure.add_subplot(len(kinds), layers, row * layers + layer + 1)
            image = axes.imshow(weights[kind][layer].mean(0), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_title(f"{title}, layer {layer + 1}" if layers > 1 else title, fontsize=9)
            axes.set_xticks(range(len(keys)), keys, rotation=90, fontsize=8)
            axes.set_yticks(range(len(queries)), queries, fontsize=8)
            axes.tick_params(length=0)
            if layer == 0:
                axes.set_ylabel("writes" if kind == "across" else "at this word", fontsize=8)
            axes.set_xlabel("looks at", fontsize=8)
    figure.colorbar(image, ax=figure.axes, shrink=0.4 if len(kinds) > 1 else 0.9,
                    label=f"share of a row's attention{' (mean of the heads)' if heads > 1 else ''}")  # fmt: skip
    return figure


def draw_confusion(confusion: Array, classes: list[str]) -> Figure:
    """How often each class was predicted for each: counts, and their shares of a row as colours.

    confusion  (classes, classes) int, see `metrics.confusion`
    """
    confusion = np.asarray(confusion)
    shares = confusion / np.maximum(confusion.sum(1, keepdims=True), 1)
    side = 1.1 * len(classes) + 1.6
    figure = Figure(figsize=(side + 0.6, side), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(confusion.shape):
        axes.text(j, i, f"{confusion[i, j]:,}", ha="center", va="center", color="w" if shares[i, j] > 0.5 else "k")
    axes.set_xticks(range(len(classes)), classes)
    axes.set_yticks(range(len(classes)), classes, rotation=90, va="center")
    axes.tick_params(length=0)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    figure.colorbar(image, ax=axes, shrink=0.7, label="share of the row")
    return figure


def draw_words(words: list[str], found: Saliency, classes: list[str], attention: Array | None = None) -> Figure:
    """A text's words with how much attention each gets and what the gradient says of it.

    words      T strings
    found      their Saliency
    classes    names of the classes
    attention  (T,) the share of all words' attention that each gets; None: only the gradient
    """
    panels: list[tuple[str, str, Array, list[str] | None]] = []
    if attention is not None:
        panels.append(("what attention looks at", "share of attention", attention, None))
    says = f"what the gradient says: {classes[found.chosen]}, p = {found.p[found.chosen]:.2f}"
    signs = [BLUE if value > 0 else ORANGE for value in found.contribution]
    panels += [
        (says, "norm of dx", found.norm, None),
        ("blue speaks for it, orange against it", "dx·x", found.contribution, signs),
    ]
    figure = Figure(figsize=(max(6, 0.42 * len(words) + 1.5), 1.6 * len(panels) + 0.9), layout="constrained")
    all_axes = figure.subplots(len(panels), 1, sharex=True)
    for axes, (title, unit, values, colors) in zip(all_axes, panels):
        axes.bar(range(len(words)), values, color=colors or "0.6")
        axes.axhline(0, color="k", linewidth=0.6)
        axes.set_title(title, fontsize=10)
        axes.set_ylabel(unit, fontsize=8)
        axes.tick_params(labelsize=8)
        axes.margins(x=0.01)
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[-1].set_xticks(range(len(words)), words, rotation=60, ha="right", fontsize=8)
    return figure

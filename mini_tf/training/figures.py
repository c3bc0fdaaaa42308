"""The pictures of a training run, and of a translation."""

from matplotlib.figure import Figure


def draw_curves(rows, lines, training="training"):
    """Training and validation loss against the step, with labelled horizontal lines for comparison.

    rows      the rows of a History
    lines     {label: loss}, the baselines and the result on the test words
    training  the label of the training loss
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["step"] for row in rows]
    axes.plot(steps, [row["train_loss"] for row in rows], "o-", label=training, color="tab:blue")
    axes.plot(steps, [row["validation_loss"] for row in rows], "o-", label="validation", color="tab:orange")
    colors = dict(zip(lines, ("0.5", "0.2", "tab:green", "tab:red", "tab:purple")))
    for name, loss in lines.items():
        axes.axhline(loss, color=colors[name], linestyle="--", linewidth=1)
    bottom, top = axes.get_ylim()
    free = bottom                                        # labels go right of the axes, without overlap
    for name, loss in sorted(lines.items(), key=lambda line: line[1]):
        height = max(loss, free)
        free = height + 0.05 * (top - bottom)
        axes.annotate(
            f"{name}  {loss:.3f}", (1, height), xycoords=("axes fraction", "data"), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=9, color=colors[name],
        )  # fmt: skip
    axes.set_xlabel("step")
    axes.set_ylabel("cross-entropy in nats per word")
    axes.legend()
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_attention(weights, source, target):
    """Heat maps of a translator's attention: a row for each kind, a column for each layer, the mean of its heads.

    weights         of `attention_weights`
    source, target  the words that were read: those of the sentence, and [SOS] and those of its translation

    The rows of the decoder's attention to the encoder are named after the words about to be written, not after those
    just read: they show where the decoder looks for the next word.
    """
    layers, next_words = len(weights["encoder"]), [*target[1:], "[EOS]"]
    kinds = {
        "encoder": ("encoder", source, source), "decoder": ("decoder", target, target),
        "across": ("decoder to encoder", next_words, source),
    }  # fmt: skip
    side = max(2.2, 0.32 * max(len(source), len(target)) + 0.8)
    figure = Figure(figsize=(side * layers + 0.8, side * 3 + 0.6), layout="constrained")
    for row, (kind, (title, queries, keys)) in enumerate(kinds.items()):
        for layer in range(layers):
            axes = figure.add_subplot(3, layers, row * layers + layer + 1)
            image = axes.imshow(weights[kind][layer].mean(0), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_title(f"{title}, layer {layer + 1}", fontsize=9)
            axes.set_xticks(range(len(keys)), keys, rotation=90, fontsize=8)
            axes.set_yticks(range(len(queries)), queries, fontsize=8)
            axes.tick_params(length=0)
            if layer == 0:
                axes.set_ylabel("writes" if kind == "across" else "at this word", fontsize=8)
            axes.set_xlabel("looks at", fontsize=8)
    figure.colorbar(image, ax=figure.axes, shrink=0.4, label="share of a row's attention (mean of the heads)")
    return figure

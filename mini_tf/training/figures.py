"""The picture of a training run."""

from matplotlib.figure import Figure


def draw_curves(rows, lines):
    """Training and validation loss against the step, with labelled horizontal lines for comparison.

    rows    the rows of a History
    lines   {label: loss}, the baselines and the result on the test words
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["step"] for row in rows]
    axes.plot(steps, [row["train_loss"] for row in rows], "o-", label="training", color="tab:blue")
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

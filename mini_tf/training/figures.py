"""The picture of a training run."""

from matplotlib.figure import Figure


def draw_curves(rows, lines, unit="cross-entropy in nats per word"):
    """Training and validation loss against the step, with named horizontal lines to compare them with.

    rows    the rows of a History
    lines   {label: loss}, the baselines and the result on the test words
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["step"] for row in rows]
    axes.plot(steps, [row["train_loss"] for row in rows], "o-", label="training", color="tab:blue")
    axes.plot(steps, [row["validation_loss"] for row in rows], "o-", label="validation", color="tab:orange")
    for (label, loss), color in zip(lines.items(), ("0.6", "0.3", "tab:green", "tab:red", "tab:purple")):
        axes.axhline(loss, color=color, linestyle="--", linewidth=1)
        axes.annotate(
            f"{label}  {loss:.3f}", (1, loss), xycoords=("axes fraction", "data"), xytext=(-4, 3),
            textcoords="offset points", ha="right", fontsize=9, color=color,
        )  # fmt: skip
    axes.set_xlabel("step")
    axes.set_ylabel(unit)
    axes.legend(loc="upper right", bbox_to_anchor=(1, 0.93))
    axes.spines[["top", "right"]].set_visible(False)
    return figure

"""The pictures of a training run, and of a comparison."""

from matplotlib.figure import Figure


def draw_curves(rows, lines):
    """Training and validation loss against the step, with named horizontal lines to compare them with.

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
    free = bottom                                        # the labels stand right of the axes, none on another
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


def draw_ladder(rungs, bar_model):
    """Each model's loss as a point, left or right of the bar that a neural model has to clear.

    rungs       the Rungs of a comparison; those without parameters, every word alike, are far off and left out
    bar_model   the name of the one that is the bar
    """
    figure = Figure(figsize=(9, 0.4 * len(rungs) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    shown = [rung for rung in rungs if rung.parameters]
    bar = next((rung.test for rung in shown if rung.model == bar_model), shown[0].test)
    axes.axvline(bar, color="0.3", linestyle="--", linewidth=1)
    axes.annotate(f"the bar: {bar_model}, {bar:.2f}", (bar, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
                  textcoords="offset points", ha="center", fontsize=9, color="0.3")  # fmt: skip
    for height, rung in enumerate(reversed(shown)):
        color = "tab:orange" if rung.learns else "tab:blue"
        axes.plot([bar, rung.test], [height, height], color=color, linewidth=2)
        axes.plot(rung.test, height, "o", color=color, markersize=8)
        axes.plot(rung.known, height, "o", color=color, markersize=6, markerfacecolor="white")
        axes.annotate(f"{rung.test:.3f}", (max(rung.test, bar), height), xytext=(9, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(shown)), [rung.model for rung in reversed(shown)])
    axes.set_xlabel("cross-entropy of the test words, in nats per word (left is better)")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1, y=0.04)
    for label, color, face in (
        ("counts", "tab:blue", "tab:blue"), ("learns by gradients", "tab:orange", "tab:orange"),
        ("only words that occur before the test part", "0.4", "white"),
    ):  # fmt: skip
        axes.plot([], [], "o", color=color, markerfacecolor=face, label=label)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure

"""The picture of a comparison."""

from matplotlib.figure import Figure


def draw_ladder(rungs, bar_model):
    """Each model's loss as a point, left or right of the bar that a neural model has to clear.

    rungs       the Rungs of a comparison; the uniform guess, which has no parameters, is far off and left out
    bar_model   the name of the model whose loss is the bar
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

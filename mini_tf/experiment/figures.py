"""The picture of a comparison."""

from typing import TYPE_CHECKING

from mini_tf.palette import BLACK, BLUE, GREY, RED

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from mini_tf.experiment.ladder import Rung


def draw_ladder(rungs: "list[Rung]", bar_model: str) -> Figure:
    """Each model's loss as a point, left or right of the bar that a neural model has to clear.

    rungs       the Rungs of a comparison; the uniform guess, which has no parameters, is far off and left out
    bar_model   the name of the model whose loss is the bar
    """
    figure = Figure(figsize=(9, 0.4 * len(rungs) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    shown = [rung for rung in rungs if rung.parameters]
    best_of_counting = next((rung for rung in shown if rung.model == bar_model), shown[0])
    bar = best_of_counting.test
    axes.axvline(bar, color=BLACK, linestyle="--", linewidth=1)
    axes.axvline(best_of_counting.known, color=GREY, linestyle=":", linewidth=1)
    axes.annotate(f"the bar, all words: {bar_model}, {bar:.2f}", (bar, 1), xycoords=("data", "axes fraction"),
                  xytext=(0, 3), textcoords="offset points", ha="left", fontsize=9, color=BLACK)  # fmt: skip
    axes.annotate(f"known words only: {best_of_counting.known:.2f}", (best_of_counting.known, 1),
                  xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points", ha="right", fontsize=9,
                  color=GREY)  # fmt: skip
    for height, rung in enumerate(reversed(shown)):
        color = RED if rung.learns else BLUE
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
        ("counts", BLUE, BLUE), ("learns by gradients", RED, RED),
        ("only words that occur before the test part: the dotted bar is theirs", GREY, "white"),
    ):  # fmt: skip
        axes.plot([], [], "o", color=color, markerfacecolor=face, label=label)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure

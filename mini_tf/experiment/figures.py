"""The picture of a comparison."""

from typing import TYPE_CHECKING

from mini_tf.palette import BLACK, BLUE, GREY, RED

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from mini_tf.experiment.ladder import Rung


def draw_ladder(rungs: "list[Rung]", bar_model: str) -> Figure:
    """Each model's loss as a point, and a line at the bar that a neural model has to clear.

    rungs       the Rungs of a comparison; the uniform guess, which has no parameters, is far off and left out
    bar_model   the name of the model whose loss is the bar
    """
    shown = [rung for rung in reversed(rungs) if rung.parameters]
    bar = next((rung.test for rung in shown if rung.model == bar_model), shown[-1].test)
    figure = Figure(figsize=(9, 0.4 * len(rungs) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(bar, color=BLACK, linestyle="--", linewidth=1, label=f"the bar: {bar_model}")
    axes.plot([rung.known for rung in shown], [rung.model for rung in shown], "o", color=GREY, markerfacecolor="white",
              label="only words that occur before the test part")  # fmt: skip
    for color, learns, label in ((BLUE, False, "counts"), (RED, True, "learns by gradients")):
        some = [rung for rung in shown if rung.learns == learns]
        axes.plot([rung.test for rung in some], [rung.model for rung in some], "o", color=color, label=label)
    for rung in shown:
        axes.annotate(f"{rung.test:.3f}", (max(rung.test, bar), rung.model), xytext=(9, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axes.set_xlabel("cross-entropy of the test words, in nats per word (left is better)")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1)
    figure.legend(loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure

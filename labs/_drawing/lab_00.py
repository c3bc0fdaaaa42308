"""Figures of lab 00, one number at a time."""

from _drawing import BLACK, BLUE, GREEN, GREY, ORANGE, RED, curves, panels

from matplotlib.patches import FancyBboxPatch

WIDTH, HEIGHT, STEP = 1.0, 0.62, 1.5     # of a box; from a number to its inputs


def places(number, depth=0, rows=None):
    """{number: (x, y)} of a tree of Numbers: the result on the right, the inputs of each on its left"""
    rows = [0] if rows is None else rows
    found = {}
    for each in number.inputs:
        found |= places(each, depth + 1, rows)
    heights = [found[each][1] for each in number.inputs]
    if not heights:
        heights, rows[0] = [-rows[0]], rows[0] + 1       # a row of its own
    return found | {number: (-STEP * depth, sum(heights) / len(heights))}


def graph(names, loss):
    """The graph of a loss: each number with its value and gradient, each arrow with its slope; names {name: Number}"""
    at, name_of = places(loss), {number: name for name, number in names.items()}
    left, bottom = (min(place[k] for place in at.values()) for k in (0, 1))
    figure, axes = panels(size=(0.98 * (1.4 - left), 0.95 * (1 - bottom)))
    for number, (x, y) in at.items():
        axes.add_patch(_box(x, y, BLUE if number.inputs else ORANGE))
        axes.text(x, y + 0.38, name_of[number], ha="center", va="bottom", fontsize=9, fontweight="bold", color=BLACK)
        axes.text(x, y + 0.14, f"value {_short(number.value)}", ha="center", va="center", fontsize=9, color=BLACK)
        axes.text(x, y - 0.14, f"gradient {_short(number.gradient)}", ha="center", va="center", fontsize=9, color=RED)
        for each, slope in zip(number.inputs, number.slopes):
            start = at[each][0] + WIDTH / 2, at[each][1]
            axes.annotate("", (x - WIDTH / 2, y), start, arrowprops={"arrowstyle": "-|>", "color": GREY, "shrinkA": 0,
                                                                    "shrinkB": 0})  # fmt: skip
            middle = (start[0] + x - WIDTH / 2) / 2, (start[1] + y) / 2
            axes.text(*middle, _short(slope), ha="center", va="center", fontsize=9, color=GREEN,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
    axes.text(0.5, 0.5, "The gradient of a number is the slope on its arrow\ntimes the gradient at the arrow's end.",
              ha="right", fontsize=10, color=GREY)  # fmt: skip
    axes.set(xlim=(left - 0.6, 0.7), ylim=(bottom - 0.45, 0.75))
    axes.axis("off")
    return figure


def _short(value):
    return f"{value:g}".replace("-", "−")


def _box(x, y, color):
    return FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle="round,pad=0,rounding_size=0.08",
                          facecolor="white", edgecolor=color, linewidth=1.3)  # fmt: skip


def costs(steps, sizes, by_numbers, by_ops):
    """Milliseconds of linear, {step: ms}, and of the GPT for each n"""
    figure, (left, right) = panels(1, 2, (9.5, 3.6))
    bars = left.barh(list(steps), list(steps.values()), 0.6, color=[RED, ORANGE, ORANGE, BLUE])
    labels = [f"{ms:.2g} ms" if ms < 10 else f"{ms:,.0f} ms" for ms in steps.values()]
    left.bar_label(bars, labels, padding=3, fontsize=9)
    left.invert_yaxis()
    left.set(xscale="log", xlim=(min(steps.values()) / 2, 12 * max(steps.values())), xlabel="milliseconds",
             title="linear, forward and backward")  # fmt: skip
    curves(right, sizes, {"graph of numbers": by_numbers, "ops": by_ops}, "o-", (RED, BLUE))
    right.set(xscale="log", yscale="log", xlabel="n", ylabel="milliseconds", title="the GPT, one name")
    right.set_xticks(sizes, map(str, sizes))
    right.minorticks_off()
    return figure

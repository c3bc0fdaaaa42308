"""Figures of lab 09: attention from XXᵀ on, and a text classifier built on it."""

from _drawing import BLUE, COLOURS, GREY, ORANGE, RED, curves, heat_map, level, loss_curves, note, panels

import numpy as np


def base_idea(words, steps):
    """{title: matrix}, a row for each word: the steps from X to Y"""
    figure, row = panels(1, len(steps), (3.2 * len(steps), 3.4))
    figure.get_layout_engine().set(w_pad=0.15)
    for axes, (title, matrix) in zip(row, steps.items()):
        columns = words if matrix.shape[1] == len(words) and title[0] in "SA" else range(1, matrix.shape[1] + 1)
        entries = [[f"{value:.3g}" if abs(value) > 1 else f"{value:.2f}".rstrip("0").rstrip(".") for value in of]
                   for of in matrix]  # fmt: skip
        heat_map(axes, matrix, title, words, columns, entries=entries, fontsize=10, cmap="Blues", vmin=0)
    figure.suptitle("2. The base idea, step by step", fontsize=12)
    return figure


def scaling(sizes, weights, gradients):
    """{label: values by n}: the weight that a word gives itself; the gradient that passes the softmax"""
    figure, (left, right) = panels(1, 2, (10, 3.8))
    style, colors = ("o--", "o-", "s--", "s-"), (RED, RED, BLUE, BLUE)
    curves(left, sizes, weights, style, colors=colors, legend="center right", ms=4)
    curves(right, sizes, gradients, style, colors=colors, legend=None, ms=4)
    level(left, 1 / 16, "1/16: equal weights", place=1, shift=(-4, 4))
    left.set(title="a word's weight for itself, among 16 words", ylim=(0, 1.05))
    right.set(title="gradient through softmax, ‖dS‖/‖dA‖", yscale="log", ylim=(1e-4, 1))
    note(right, "XXᵀ falls further", (0.4, 0.03), xycoords="axes fraction", color=RED)
    for axes in (left, right):
        axes.set(xlabel="n, size of a word vector", xscale="log")
        axes.set_xticks(sizes, sizes)
        axes.minorticks_off()
    figure.suptitle("2. Dividing by √n: enough for QKᵀ, not for XXᵀ", fontsize=12)
    return figure


def masks(words, maps):
    """{title: weights (T, T)}"""
    figure, row = panels(1, len(maps), (3.9 * len(maps), 4))
    for axes, (title, weights) in zip(row, maps.items()):
        entries = [[f"{value:.2f}" if value else "0" for value in of] for of in weights]
        heat_map(axes, weights, title, words, entries=entries, fontsize=10, cmap="Blues", vmin=0, vmax=1)
        axes.set(xlabel="key j")
    row[0].set_ylabel("query i")
    figure.suptitle("4. Which words each word sees", fontsize=12)
    return figure


def order(steps, runs, coin):
    """{model: validation losses}, and the loss of tossing a coin"""
    figure, axes = panels(size=(7.5, 3.8))
    styles = ["o-", "s--", "^:", "o-", "s--"]
    curves(axes, steps, runs, styles, legend="center right", ms=4)
    level(axes, coin, "a coin toss: ln 2; the first three models stay there", place=1, shift=(-4, 4))
    axes.set(xlabel="step", ylabel="validation loss in nats", ylim=(0, 0.8),
             title="5. Who won? Only the order can tell")  # fmt: skip
    return figure


def accuracies(tasks):
    """{task: ({model: [(train, test) of each seed]}, accuracy of the largest class)}"""
    figure, row = panels(1, len(tasks), (11, 3.6), sharex=True)
    for axes, (task, (found, chance)) in zip(row, tasks.items()):
        for k, (seeds, color) in enumerate(zip(reversed(found.values()), (GREY, ORANGE, BLUE, RED))):
            train, test = np.array(seeds).T
            places = k + np.linspace(-0.18, 0.18, len(seeds))
            axes.plot(train, places, "o", color=color, mfc="white", ms=6)
            axes.plot(test, places, "o", color=color, ms=6)
            axes.plot([test.mean()] * 2, [k - 0.32, k + 0.32], color=color, linewidth=2)
        axes.axvline(chance, color="0.4", linestyle="--", linewidth=1)
        axes.set_yticks(range(len(found)), reversed(found))
        axes.set(title=task, xlabel="accuracy", xlim=(0.28, 1.02), ylim=(-0.6, len(found) - 0.4))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    row[0].plot([], [], "o", color="0.3", mfc="white", label="training texts")
    row[0].plot([], [], "o", color="0.3", label="test texts, and their mean")
    row[0].plot([], [], "--", color="0.4", label="always the largest class")
    figure.suptitle("5. Four classifiers, split by split", fontsize=12)
    figure.legend(*row[0].get_legend_handles_labels(), frameon=False, fontsize=9, ncols=3, loc="outside lower center")
    return figure


def learning(runs):
    """{model: rows of a History}"""
    figure, row = panels(1, len(runs), (10, 3.8), sharey=True)
    for axes, (name, rows) in zip(row, runs.items()):
        loss_curves(axes, rows, label="{}")
        best = min(rows, key=lambda row: row["validation_loss"])
        axes.axvline(best["step"], color="0.6", linewidth=1, linestyle=":")
        level(axes, np.log(2), "a coin toss: ln 2", place=1, shift=(-4, -13))
        axes.set(title=name, ylabel="cross-entropy in nats per sentence")
    row[1].set_ylabel("")
    figure.suptitle("5. Film reviews: training and validation loss", fontsize=12)
    row[0].legend(["training, with dropout", "validation", "best validation loss"], frameon=False, fontsize=9,
                  loc="lower left")  # fmt: skip
    return figure


def words(looked_at):
    """{text: (words, attention received, dx·(x − x̄), the answer)}: a row of two pictures for each text"""
    figure, grid = panels(len(looked_at), 2, (11, 2.5 * len(looked_at)))
    for (left, right), (words, attention, contribution, answer) in zip(grid, looked_at.values()):
        places = np.arange(len(words))
        left.bar(places, attention * len(words), color=GREY)
        level(left, 1)
        left.set_ylabel("times the mean (dashed)")
        right.bar(places, contribution, color=[BLUE if value > 0 else RED for value in contribution])
        right.axhline(0, color="k", linewidth=0.6)
        right.set(title=f"answer: {answer}; above 0: for it, below: against it", ylabel="dx·(x − x̄)")
        right.title.set_fontsize(11)
        for axes in (left, right):
            axes.set_xticks(places, words, rotation=45, ha="right", rotation_mode="anchor")
    grid[0, 0].set_title("attention that each word receives", fontsize=11)
    figure.suptitle("6. What attention looks at, and what the answer depends on", fontsize=12)
    return figure


def looking(attention, contribution, rank, falls):
    """Of many words: attention received and |dx·x|, both relative to the mean of the sentence; {word deleted: falls}"""
    figure, (left, right) = panels(1, 2, (10.5, 4))
    left.loglog(attention, np.maximum(contribution, 1e-2), "o", color=BLUE, ms=3, alpha=0.3, mew=0)
    left.set(title=f"all words of the sentences; mean rank correlation {rank:.2f}",
             xlabel="attention received / mean of the sentence",
             ylabel="|dx·x| / mean of the sentence, at least 0.01")  # fmt: skip
    left.title.set_fontsize(11)
    left.set_xticks((0.2, 0.5, 1, 2, 5), ("0.2", "0.5", "1", "2", "5"))
    left.tick_params(which="minor", labelbottom=False)
    means = [np.mean(of) for of in falls.values()]
    errors = [2 * np.std(of) / len(of) ** 0.5 for of in falls.values()]
    places = range(len(falls))
    right.barh(places, means, xerr=errors, color=COLOURS[: len(falls)], height=0.6)
    right.set_yticks(places, falls)
    right.invert_yaxis()
    right.axvline(0, color="k", linewidth=0.6)
    right.set(title="deleted: the word with the largest …", xlabel="fall of ln p, mean (± 2 standard errors)")
    right.title.set_fontsize(11)
    figure.suptitle("6. Attention and gradients against the true effect of a word", fontsize=12)
    return figure


def padding(counts, changes):
    """{model: mean change of p by the number of padding words}"""
    figure, axes = panels(size=(7.5, 3.8))
    curves(axes, counts, changes, ["o-", "s--", "^-."], colors=(BLUE, RED, ORANGE), ms=5)
    axes.set(xlabel="words of padding after the text", ylabel="mean change of p(positive)",
             title="7. How much the answer depends on the length of the other texts")  # fmt: skip
    axes.title.set_fontsize(11)
    return figure

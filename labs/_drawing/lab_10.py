"""Figures of lab 10, gradients by hand and wrong ones."""

from _drawing import BLACK, BLUE, COLOURS, GREEN, RED, curves, level, panels, pictures

import numpy as np


def finite_differences(steps, errors, orders):
    """The error of a measured slope against the step: errors {dtype: {method: (steps,)}}, orders {method: its order}"""
    figure, both = panels(1, 2, (9.5, 4.2), sharey=True)
    for axes, (dtype, by_method) in zip(both, errors.items()):
        epsilon = float(np.finfo(dtype).eps)
        for (name, error), color in zip(by_method.items(), (BLUE, RED, GREEN)):
            best = error.argmin()
            axes.loglog(steps, error, color=color, label=f"{name}: slope {orders[name]}")
            axes.loglog(steps[best], error[best], "o", color=color)
        axes.plot([], [], "o", color="0.6", label="least error")
        axes.loglog(steps, epsilon / steps, "--", color="0.6", label="rounding ε/h: slope −1")
        axes.set(title=f"{dtype.__name__}, ε = {epsilon:.1e}", xlabel="step h", ylim=(1e-14, 10), xlim=(1e-15, 2))
        axes.legend(frameon=False, fontsize=9, loc="lower left" if dtype is np.float32 else "upper center")
    both[0].set_ylabel("relative error of the slope")
    figure.suptitle("1. The error of a measured slope against its step", fontsize=12)
    return figure


def gelu(x, y, slope, errors):
    """GELU and its slope; the errors of the tanh form, {label: (error of y, error of dy/dx)}"""
    figure, (left, *right) = panels(1, 3, (10, 3.7))
    left.plot(x, np.maximum(x, 0), "--", color="0.6", linewidth=1, label="relu")
    curves(left, x, {"y = x·Φ(x)": y, "dy/dx": slope}, legend="upper left")
    left.set(xlim=(-4, 3), ylim=(-0.5, 3), title="GELU and its slope", xlabel="x")
    for k, (axes, name) in enumerate(zip(right, ("y", "dy/dx"))):
        curves(axes, x, {label: 1e4 * both[k] for label, both in errors.items()}, legend="upper left")
        axes.set(title=f"error of {name} with tanh, times 10⁴", xlabel="x", ylim=(-9, 12.5))
    figure.suptitle("2. GELU, and two constants for its tanh form", fontsize=12)
    return figure


def cd_bias(g_list, rows):
    """How CD-g compares with the exact gradient, {label: [(cosine, ratio of lengths) for each g]}"""
    figure, both = panels(1, 2, (9, 3.5))
    for axes, which, title in zip(both, (0, 1), ("cosine with the exact gradient", "length, exact gradient = 1")):
        level(axes, 1)
        curves(axes, g_list, {label: [each[which] for each in row] for label, row in rows.items()}, "o-",
               legend="lower right" if which == 0 else None)  # fmt: skip
        axes.set(title=title, xlabel="g, steps of Gibbs sampling", xscale="log")
    figure.suptitle("3. How far contrastive divergence is from the gradient", fontsize=12)
    return figure


def rbm_training(rows, of_mean):
    """rows of (epoch, reconstruction error, gap of free energies)"""
    figure, (left, right) = panels(1, 2, (9, 3.3))
    epochs, errors, gaps = zip(*rows)
    left.plot(epochs, errors, color=BLUE)
    level(left, of_mean, "mean picture", place=1, shift=(0, -14))
    left.set(title="reconstruction error, per digit", xlabel="epoch", ylim=(0, None))
    right.plot(epochs, gaps, color=RED)
    right.set(title="free energy: validation − training, in nats", xlabel="epoch", ylim=(min(0, *gaps), None))
    figure.suptitle("3. Training on digits", fontsize=12)
    return figure


def rbm_filters(W):
    """80 columns of W (784, k) as pictures, each on a scale of its own."""
    figure, places = panels(8, 10, (8.6, 7.2))
    filters = (W[:, :80] / np.abs(W[:, :80]).max(0)).T.reshape(-1, 28, 28)
    image = pictures(places, filters, cmap="RdBu_r", least=-1)
    for axes in places.flat:
        axes.set_axis_off()
    figure.suptitle(f"3. 80 of {W.shape[1]} filters: what each hidden unit adds to the pixels", fontsize=11)
    figure.colorbar(image, ax=places, shrink=0.4, label="weight, largest of the filter = 1")
    return figure


def rbm_dreams(rows):
    """{name: (10, 784)}: a row of ten pictures each"""
    figure, places = panels(len(rows), 10, (9, 0.92 * len(rows)))
    for (name, row), axes in zip(rows.items(), places):
        pictures(axes, row.reshape(-1, 28, 28))
        axes[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10)
    figure.suptitle("3. Ten chains of Gibbs sampling, and ten from noise", fontsize=12)
    return figure


def faces(pairs):
    """Wrong gradients against right ones, a point per entry, and the diagonal: {mistake: (wrong, right)}"""
    figure, places = panels(2, (len(pairs) + 1) // 2, (10.5, 5.6))
    for axes, (name, (wrong, right)) in zip(places.flat, pairs.items()):
        ends = 1.1 * np.abs(right).max() * np.array([-1, 1])
        diagonal, = axes.plot(ends, ends, color="0.6", linewidth=1)
        points, = axes.plot(right, wrong, "o", color=BLUE, ms=4, alpha=0.5, markeredgewidth=0)
        axes.set_title(name.replace(": ", ":\n"), fontsize=10)
        axes.tick_params(labelsize=8)
    figure.supxlabel("right gradient", fontsize=10)
    figure.supylabel("wrong gradient", fontsize=10)
    figure.legend([points, diagonal], ["an entry of the gradient", "wrong = right: a right gradient lies here"],
                  title="1. What wrong gradients look like", title_fontsize=12,
                  frameon=False, fontsize=9, ncols=2, loc="outside upper center")  # fmt: skip
    return figure


def wrong_training(runs, start):
    """Validation losses {name: (rows of a History, test loss)}, and their difference from the first; start: before."""
    figure, (left, right) = panels(1, 2, (10, 4))
    first, *_ = runs.values()
    reference = np.array([row["validation_loss"] for row in first[0]])
    colors = BLACK, *(color for color in COLOURS if color != BLACK)
    for k, ((name, (rows, test)), color) in enumerate(zip(runs.items(), colors)):
        at, losses = zip(*((row["step"], row["validation_loss"]) for row in rows))
        style = {"color": color, "linestyle": ("-", "--", "-.", ":")[k % 4]}
        left.plot((0, *at), (start, *losses), label=f"{name}, test {test:.2f}", **style)
        right.plot(at, losses - reference, marker="o", ms=3, **style)
    left.set(title="validation loss, nats per word", xlabel="step")
    right.set(title="the same, minus that with right gradients", xlabel="step")
    left.legend(frameon=False, fontsize=9)
    figure.suptitle("2. Training with wrong gradients", fontsize=12)
    return figure

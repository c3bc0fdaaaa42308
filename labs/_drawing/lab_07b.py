"""Figures of lab 07b, trained with positions, norms and masks."""

from _drawing import BLACK, BLUE, COLOURS, curves, level, panels

import numpy as np


def variants(runs, baselines):
    """Validation losses, {name: (steps, targets learned from, losses, test loss)}, the last of the shared readout

    Left, the models "vec" minus the first of them; right, the first and the last; lines {label: loss}
    """
    figure, (left, right) = panels(1, 2, (11, 4.2))
    *vec, (last, (_, last_answers, last_losses, last_test)) = runs.items()
    first, (steps, answers, reference, test) = vec[0]
    first = " ".join(first.split())
    lines = {name: np.subtract(losses, reference) for name, (_, _, losses, _) in vec[1:]}
    curves(left, steps, lines, ("o-", "s--", "^-.", "D:"), COLOURS[1:], ms=4)
    level(left, 0, first, place=1, shift=(-4, -12))
    left.set(xlabel="step", ylabel=f"validation loss minus that of {first}, nats per word")
    right.plot(answers, reference, "o-", color=BLUE, ms=4, label=f"{first}, test {test:.2f}")
    right.plot(last_answers, last_losses, "s-", color=BLACK, ms=4, label=f"{last}, test {last_test:.2f}")
    for name, loss in baselines.items():
        level(right, loss, f"{name}  {loss:.2f}", place=0.01, shift=(0, 4))
    right.set(xscale="log", xlabel="targets learned from", ylabel="validation loss, nats per word")
    right.legend(frameon=False, fontsize=9)
    figure.suptitle("Task 6.13: positions, norm and mask one after the other; then a shared readout", fontsize=12)
    return figure


def optimizers(every, runs):
    """{optimizer: (validation losses, the same with smaller gradients)}, measured every so many steps"""
    figure, places = panels(1, 2, (11, 3.6), sharey=True)
    for axes, which, title in zip(places, (0, 1), ("gradients as they are", "gradients ÷ 100")):
        lines = {name: both[which] for name, both in runs.items()}
        steps = every * np.arange(1, 1 + len(next(iter(lines.values()))))
        curves(axes, steps, lines, ("o-", "s-", "^-", "D--"), legend="best" if which == 0 else None, ms=4)
        axes.set(title=title, xlabel="step")
        axes.title.set_fontsize(11)
    places[0].set_ylabel("validation loss, nats per word")
    figure.suptitle("SGD, momentum and Adam on the same batches", fontsize=12)
    return figure


def history(lengths, losses, errors):
    """Test loss against the words of history; errors: two standard errors of the difference to the longest history"""
    figure, axes = panels(size=(7, 3.6))
    axes.errorbar(lengths, losses, errors, fmt="o-", color=BLUE, capsize=3, ms=4)
    axes.set(xscale="log", xlabel="words of history", ylabel="test loss, nats per word")
    axes.set_title("How much history the model uses (bars: two standard errors)", fontsize=10)
    axes.set_xticks(lengths, lengths)
    axes.minorticks_off()
    return figure

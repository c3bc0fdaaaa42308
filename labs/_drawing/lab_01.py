"""Figures of labs 01 and 01b: counting words, and smoothing."""

from fractions import Fraction

from _drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, curves, heat_map, level, note, panels, stacked_bars

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch


def fraction(x):
    return str(Fraction(x).limit_denominator(10))


def arrow(axes, start, end, label, place, bend=0.0):
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                                   mutation_scale=16, linewidth=1.6, color="0.25"))  # fmt: skip
    axes.text(*place, label, ha="center", va="center", fontsize=11)


def draw_chain(axes, names, pi, A):
    """A Markov chain of two states as circles and arrows."""
    axes.set(xlim=(-2.9, 2.9), ylim=(-1.75, 1.75), aspect="equal", title="Section 1: the chain from the counts")
    axes.axis("off")
    for x, s, color in ((-1.2, 0, "#F5D76E"), (1.2, 1, "#9CC3E6")):
        axes.add_patch(Circle((x, 0), 0.5, facecolor=color, edgecolor="0.25", linewidth=1.6))
        axes.text(x, 0, names[s], ha="center", va="center", fontsize=12)
        arrow(axes, (x - 0.28, 0.42), (x + 0.28, 0.42), fraction(A[s, s]), (x, 1.22), bend=-1.9)
        arrow(axes, (x, -1.35), (x, -0.52), f"π = {fraction(pi[s])}", (x, -1.55))
    arrow(axes, (-0.73, 0.18), (0.73, 0.18), fraction(A[0, 1]), (0, 0.62), bend=-0.25)
    arrow(axes, (0.73, -0.18), (-0.73, -0.18), fraction(A[1, 0]), (0, -0.62), bend=-0.25)


def weather(names, pi, A, a, over, best):
    """The chain, and the log-likelihood as one entry of the diagonal of A is varied

    a     the values tried for the entry, an array
    over  two arrays of log-likelihoods, one for each of them
    best  the log-likelihood of the chain from the counts
    """
    figure, (chain, likelihood) = panels(1, 2, (11, 4.2), width_ratios=[1.15, 1])
    draw_chain(chain, names, pi, A)
    for s, color, line in ((0, BLUE, "-"), (1, RED, "--")):
        label = f"varying A({names[s]} → {names[s]}): maximum at {fraction(A[s, s])}"
        likelihood.plot(a, over[s], line, color=color, linewidth=2, label=label)
        likelihood.plot(A[s, s], best, "o", color=color, markersize=8)
        likelihood.axvline(A[s, s], color=color, linestyle=":", linewidth=1)
    likelihood.set(xlabel="the probability that is varied", ylabel="log-likelihood in nats", ylim=(-13, -5.5),
                   title="No other chain makes the ten days more likely")  # fmt: skip
    likelihood.legend(loc="lower center", framealpha=1, edgecolor="none")
    return figure


def bigram_table(words, counts, probabilities):
    figure, axes = panels(1, 2, (11, 5))
    for each, table, title, form in zip(axes, (counts, probabilities), (
        "count(h w)", "p(w | h) = count(h w)/count(h)"), ("{:,.0f}", "{:.3f}")):  # fmt: skip
        entries = [["0" if x == 0 else "<.001" if x < 0.0005 else form.format(x) for x in row] for row in table]
        shade = np.sqrt(table)
        heat_map(each, shade, title, words, entries=entries, cmap="Blues", vmax=1.15 * shade.max())
        each.set(xlabel="next word w", ylabel="preceding word h")
    figure.suptitle("Section 2: eight words of the bigram table (colour: square root of the entry)")
    return figure


def sparsity(orders, c, words, grams, shares):
    """How many n-grams there are, and how maximum likelihood treats the test words: shares {label: (orders,)}"""
    figure, (sizes, parts) = panels(1, 2, (12, 6))
    sizes.semilogy(orders, [float(c) ** order for order in orders], "s--", color=RED, label="possible n-grams, $c^K$")
    sizes.axhline(words, color=GREY, linestyle=":", label=f"words of the training text, {words:,}")
    sizes.semilogy(orders, grams, "o-", color=BLUE, label="different n-grams in it")
    for order, different in zip(orders, grams):
        note(sizes, f"{different:,}", (order, different), (0, -18), ha="center", fontsize=9, color=BLUE)
    sizes.set(ylabel="n-grams (logarithmic)", title="Section 4: the table grows, the text does not", xlim=(0.4, 7.6),
              ylim=(1e1, 1e31))  # fmt: skip
    sizes.legend(frameon=False, loc="upper left")
    stacked_bars(parts, orders, shares, (BLUE, ORANGE, "#BBBBBB"))
    parts.set(ylabel="share of the test words", title="What maximum likelihood says about new text", ylim=(0, 1.2))
    parts.set_yticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    parts.legend(loc="upper center", frameon=False, fontsize=9)
    for axes in (sizes, parts):
        axes.set(xlabel="order K", xticks=orders)
    return figure


def kneser_ney(occurs, company, pairs, worked, D):
    """How often words occur and after how many different words, and three probabilities from order 0 to order 3

    occurs, company   {word: number};   pairs   {word: a word with about the same count and much more company}
    worked            {(word, its case): [(p_0, whether the word has a share of its own), (p_1, …), …]}
    """
    figure, (cloud, steps) = panels(1, 2, (12.5, 5), width_ratios=[1.15, 1])
    x, y = (np.array([numbers[w] for w in company], dtype=float) for numbers in (occurs, company))
    jitter = np.random.default_rng(0).uniform(0.88, 1.12, (2, len(x)))
    cloud.loglog(x * jitter[0], y * jitter[1], ".", markersize=2, color="#9DBBD0", alpha=0.6)
    cloud.loglog([1, x.max()], [1, x.max()], ":", color=GREY, linewidth=1, label="each time after a different word")
    cloud.axhline(1, color=GREY, linestyle="--", linewidth=1, label="always after the same word")
    for word, partner in pairs.items():
        cloud.plot([occurs[word], occurs[partner]], [company[word], company[partner]], color=GREY, linewidth=0.7)
        for w, color, shift, side in ((word, RED, (7, -4), "left"), (partner, "#004D80", (-7, 5), "right")):
            cloud.plot(occurs[w], company[w], "o", color=color, markersize=6)
            note(cloud, w, (occurs[w], company[w]), shift, ha=side, color=color, fontsize=10,
                 bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5})  # fmt: skip
    cloud.set(xlabel="occurrences of the word", ylabel="different words before it", xlim=(0.7, 1e5), ylim=(0.6, 1e4),
              title="Section 1: same count, different company (each dot is a word, jittered)")  # fmt: skip
    cloud.legend(frameon=False, loc="upper left")

    for ((word, case), row), color in zip(worked.items(), (BLUE, RED, GREY)):
        steps.semilogy(range(4), [p for p, _ in row], "-", color=color, linewidth=1.5, label=f"{word}: {case}")
        for order, (p, own) in enumerate(row):
            steps.plot(order, p, "o", markersize=8, markeredgecolor=color, markerfacecolor=color if own else "white")
            if order:
                shift, side = ((-6, 6), "right") if color == BLUE else ((0, -16), "center")
                note(steps, f"{p:.1e}", (order, p), shift, ha=side, color=color)
    p_0 = row[0][0]
    note(steps, f"1/c = {p_0:.1e}", (0, p_0), (0, 10), ha="center")
    steps.plot([], [], "o", color="0.3", label="filled: with a share of its own")
    steps.plot([], [], "o", markeredgecolor="0.3", markerfacecolor="white", label="hollow: only what was passed down")
    steps.set_xticks(range(4), ["p₀\nuniform", "p₁\nno history", "p₂\nafter “of”", "p₃\nafter “Duke of”"])
    steps.set_yticks(10.0 ** np.arange(-7, 1))
    steps.set(ylabel="probability (logarithmic)", xlim=(-0.4, 3.4), ylim=(5e-8, 50),
              title=f"Kneser-Ney by hand, order 3, D = {D}")  # fmt: skip
    steps.legend(frameon=False, loc="upper left", fontsize=9)
    return figure


def smoothing(discounts, valley, best_D, orders, losses, uniform):
    """The choice of D on the validation words, {order: losses}; all smoothings on the test words, {label: losses}"""
    figure, (choice, overview, closer) = panels(1, 3, (14, 4.8))
    curves(choice, discounts, {f"order {order}": row for order, row in valley.items()}, ("^-", "o-", "s-"),
           (ORANGE, BLUE, PURPLE))  # fmt: skip
    choice.axvline(best_D, color=GREY, linestyle=":", linewidth=1)
    choice.set(xlabel="discount D", ylabel="cross-entropy in nats per word",
               title=f"Section 1, validation words: D = {best_D} is chosen")  # fmt: skip
    styles, colors = ("s-", "^-", "v-", "o-", "D-"), (RED, ORANGE, PURPLE, BLUE, GREEN)
    curves(overview, orders, losses, styles, colors, markersize=5)
    level(overview, uniform, f"uniform, ln c = {uniform:.3f}", shift=(8, -12), color="0.35")
    overview.set(xlabel="order K", title="Section 2, test words", ylim=(4.8, 9.9), xticks=orders)
    overview.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.37), fontsize=9)
    curves(closer, orders[1:], {label: row[1:] for label, row in losses.items()}, styles, colors, legend=None,
           markersize=5)  # fmt: skip
    closer.set(xlabel="order K", xticks=orders[1:], xlim=(1.8, 7.2), ylim=(4.98, 5.65),
               title="The same, enlarged (add-δ is above)")  # fmt: skip
    least, best_order = min(zip(list(losses.values())[-1], orders))
    note(closer, f"{least:.3f}", (best_order, least), (0, -15), ha="center", color=GREEN, fontsize=10)
    return figure


def reciting(lengths, of_the_test):
    """How long the copied passages are: lengths {smoothing: {order: (words,)}}, of_the_test (words,)."""
    likely, orders = lengths["maximum likelihood"], list(lengths["maximum likelihood"])
    written = len(likely[7])
    first = min(written, 300)
    figure, (over_time, over_order) = panels(1, 2, (12, 4.6), width_ratios=[1.35, 1])
    over_time.plot(range(1, first + 1), of_the_test[:first], color="0.55", linewidth=1, label="Shakespeare's test text")
    curves(over_time, range(1, first + 1), {f"order {order}": likely[order][:first] for order in (7, 5, 3)},
           ("-", "--", "-"), (BLUE, RED, GREEN))  # fmt: skip
    over_time.legend(frameon=False, loc="upper left", ncols=2)
    over_time.set(xlabel="written word", ylabel="length of the passage, in words", yscale="log", ylim=(0.8, 600),
                  title="Section 3, maximum likelihood: longest copied passage that ends at each word")  # fmt: skip
    for (name, by_order), color, marker in zip(lengths.items(), (BLUE, ORANGE), "o^"):
        for line, label, measure in (("-", "longest", np.max), (":", "mean", np.mean)):
            over_order.plot(orders, [measure(by_order[order]) for order in orders], marker + line, color=color,
                            label=f"{name}: {label}")  # fmt: skip
    for line, label, measure in (("-", "longest", np.max), (":", "mean", np.mean)):
        over_order.axhline(measure(of_the_test), color=GREY, linewidth=1, linestyle=line,
                           label=f"Shakespeare's test text: {label}")  # fmt: skip
    over_order.set(xlabel="order K", ylabel="length of the passages, in words", yscale="log", ylim=(0.8, 2000),
                   xticks=orders, title=f"In {written:,} written words")  # fmt: skip
    over_order.legend(frameon=False, loc="upper left", fontsize=8, ncols=2)
    return figure

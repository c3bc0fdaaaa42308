"""Figures of lab 03d, sequence to sequence."""

from _drawing import BLACK, BLUE, GREY, RED, curves, heat_map, panels

import numpy as np


def by_length_and_place(right, longest):
    """right {name: {S: (S,) share of right letters by place}}: left over S, right by the place in the longest string"""
    figure, (left, by_place) = panels(1, 2, (11, 4), sharey=True)
    colors = (BLACK, GREY, BLUE, RED)
    curves(left, list(next(iter(right.values()))), {name: [of.mean() for of in shares.values()]
                                                    for name, shares in right.items()}, "o-", colors, ms=4)  # fmt: skip
    curves(by_place, np.arange(1, longest + 1), {name: shares[longest] for name, shares in right.items()}, "o-", colors,
           legend=None, ms=4)  # fmt: skip
    left.set(title="Sections 1 and 3: strings written backwards", xlabel="letters of the string", ylim=(0, 1.04),
             ylabel="letters right, given the right ones before")  # fmt: skip
    by_place.set(title=f"The letters of strings of {longest}", xlabel="place of the letter written")
    return figure


def maps(shown):
    """{title: (words read, words about to be written, A (U, S))}"""
    figure, row = panels(1, len(shown), (4.4 * len(shown), 5))
    for axes, (title, (read, written, A)) in zip(np.ravel(row), shown.items()):
        image = heat_map(axes, A, title, written, read, rotation=90, fontsize=10, cmap="Blues", vmin=0, vmax=1)
    np.ravel(row)[0].set_ylabel("about to be written")
    figure.supxlabel("read", fontsize=10)
    figure.colorbar(image, ax=row, shrink=0.7, label="weight")
    return figure

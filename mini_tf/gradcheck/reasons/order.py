"""Right gradients in another order than that of the inputs, or that are not yet summed."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.slopes import Phi, slopes_of_entries
from mini_tf.gradcheck.verdicts import listed
from mini_tf.types import Array

import numpy as np

MOST = 20_000            # entries of a tensor; larger ones are left alone


def other_order(e: Evidence) -> tuple[str, int]:
    """(a sentence, how many are in another place) if what comes back are the right gradients in another order"""
    names = e.subject.floats
    if len(names) < 2 or sum(e.subject.tensors[name].size for name in names if name in e.subject.tensors) > MOST:
        return "", 0
    try:
        came = e.subject.run(e.another_dy)
        right = {name: _slopes(e, name) for name in names}
    except FAILURES:
        return "", 0
    theirs = [next((other for other in names if e.fits(came.get(name), right[other])), None) for name in names]
    if {*theirs} != {*names} or theirs == names:
        return "", 0
    return (
        f"The gradients are right, but come back in the order of {listed(theirs)}: expected that of the inputs, "
        f"{listed(names)}. If yours is meant, return them by name, as in {{{theirs[0]!r}: …}}."
    ), sum(name != other for name, other in zip(names, theirs))


def right_when_summed(e: Evidence, names: Sequence[str]) -> list[str]:
    """A sentence for each of these gradients that has axes too many, if its sum over some of them is right."""
    found = []
    try:
        came = e.subject.run(e.another_dy)
        for name in names:
            if axes := _summed(e, name, came.get(name)):
                over = f"axis {axes[0]}" if len(axes) == 1 else f"axes {listed(list(map(str, axes)))}"
                found.append(f"d{name} summed over {over} is right")
    except FAILURES:
        return []
    return found


def _summed(e: Evidence, name: str, g: Any) -> tuple[int, ...]:
    """The axes over which g is to be summed, or ()"""
    extra = np.ndim(g) - e.subject.tensors[name].ndim
    if not isinstance(g, np.ndarray) or extra <= 0 or g.size > MOST:
        return ()
    right = _slopes(e, name)
    return next((axes for axes in combinations(range(g.ndim), extra) if e.fits(g.sum(axes), right)), ())


def _slopes(e: Evidence, name: str) -> Array:
    """The measured slopes in a tensor, also in one whose gradient could not be compared"""
    if name in e.slopes:
        return e.slopes[name]
    x = e.subject.tensors[name]
    return slopes_of_entries(Phi(e.subject, e.dy, e.patterns), x, np.arange(x.size)).slope.reshape(x.shape)

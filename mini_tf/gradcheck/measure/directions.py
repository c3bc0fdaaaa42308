"""Large tensors: random directions through all entries, which hardly ever miss a wrong one.

A direction v has an entry of +1 or −1, at random, for each entry of the tensor. Its slope is Σ v_i·dx_i, so a gradient
that is off by e_i is off by Σ v_i·e_i along it. Whatever the other signs are, the two signs of the worst entry give two
sums that differ by 2·|e|max, so at least one of them is as large as |e|max. Each direction sees an error of that size
with a chance of ½ or more, and ten directions all miss it with a chance of 2⁻¹⁰ at most.
"""

from mini_tf.gradcheck.measure.slopes import EXACT, Phi, Slopes, slopes_along
from mini_tf.gradcheck.report import Directions
from mini_tf.types import Array

import numpy as np

COUNT = 10
GLANCE = 1e-6                        # what a glance overlooks, relative to Σ |v_i·dx_i|,
NOTHING = 1e-9                       # or, of a gradient of zero, to φ
LEAF = 16                            # the search for a wrong entry stops at so many


def judge_directions(phi: Phi, x: Array, gradient: Array, rng: np.random.Generator) -> Directions:
    """Compare the gradient of x with slopes of φ along COUNT random directions."""
    v = rng.integers(0, 2, (COUNT, x.size)) * 2.0 - 1.0
    found, error, tolerance = _errors(phi, x, gradient, v)
    judged = ~found.kink
    return Directions(
        judged=int(judged.sum()), wrong=int((judged & ~(error <= tolerance)).sum()),
        seen=float(tolerance[judged].max(initial=0)),
    )  # fmt: skip


def glance(phi: Phi, gradients: dict[str, Array], rng: np.random.Generator) -> bool | None:
    """Whether the gradients agree with the slope of φ along one random direction through all of their tensors.

    The quickest look of all, of few values of φ. It sees mistakes above GLANCE; None: φ's slope is not known so well.
    """
    v = {name: rng.standard_normal(g.shape) for name, g in gradients.items()}
    found = slopes_along(phi, [[(phi.subject.tensors[name], one) for name, one in v.items()]])
    slope, uncertainty = float(found.slope[0]), float(found.uncertainty[0])
    along = [g * v[name] for name, g in gradients.items()]
    least = GLANCE * sum(np.abs(one).sum() for one in along)
    if not abs(sum(one.sum() for one in along) - slope) <= uncertainty + least:
        return False
    return True if uncertainty <= max(least, NOTHING * phi.size) else None


def find_wrong_entries(phi: Phi, x: Array, gradient: Array) -> Array:
    """The flat indices of a few entries, the worst one among them, found by repeated halving."""
    rng = np.random.default_rng(0)
    suspects = np.arange(x.size)
    while len(suspects) > LEAF:
        halves = np.array_split(suspects, 2)
        worst = []
        for half in halves:
            v = np.zeros((3, x.size))                    # three, so that errors cancel in all of them hardly ever
            v[:, half] = rng.integers(0, 2, (3, len(half))) * 2.0 - 1.0
            found, error, tolerance = _errors(phi, x, gradient, v)
            worst.append(np.nan_to_num(np.where(found.kink, 0, error / tolerance), nan=np.inf).max())
        suspects = halves[int(worst[1] > worst[0])]
    return suspects


def _errors(phi: Phi, x: Array, gradient: Array, v: Array) -> tuple[Slopes, Array, Array]:
    """(slopes, |backward − measured| along each direction, the tolerance for that)"""
    found = slopes_along(phi, [[(x, one.reshape(x.shape))] for one in v])
    along = v @ gradient.reshape(-1)
    return found, np.abs(along - found.slope), np.maximum(found.uncertainty, EXACT * np.abs(gradient).sum())

"""Patterns of wrong gradients: the right gradient of something else, or under other circumstances."""

import itertools

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import CLOSE, DUST, Evidence
from mini_tf.gradcheck.reasons.fit import close
from mini_tf.gradcheck.reasons.places import place_of_the_wrong
from mini_tf.gradcheck.reasons.words import Words

import numpy as np


def not_finite(e: Evidence, name: str) -> Words | None:
    bad = ~np.isfinite(e.pair(name)[0])
    if bad.any():
        bad_ones = f"{bad.sum()} of {bad.size} entries are NaN or infinite."
        return Words(bad_ones, "there is a division by zero, or ∞ − ∞, on the way back.")
    return None


def exchanged(e: Evidence, name: str) -> Words | None:
    """The right gradient of another tensor, and the other way round."""
    yours, mine, mine_known = e.pair(name)
    for other in e.slopes:
        theirs, right, known = e.pair(other)
        if other != name and close(yours, right, known) and close(theirs, mine, mine_known):
            order = "" if name in e.subject.params else ": gradients come back in the order of the inputs"
            return Words(f"d{name} and d{other} are exchanged{order}.")
    return None


def rearranged(e: Evidence, name: str) -> Words | None:
    """The right entries in other places, or some of them with the other sign."""
    yours, right, known = e.pair(name)
    if close(np.abs(yours), np.abs(right), known):
        return Words(f"Right but for the sign of {e.wrong_entries(name).sum()} of its {right.size} entries.")
    for axes in list(itertools.permutations(range(right.ndim)))[1:]:
        if close(yours, right.transpose(axes), known.transpose(axes)):
            order = f": its axes in the order {axes}" if right.ndim > 2 else ""
            return Words(f"It is the right gradient transposed{order}.")
    if known.all() and right.size > 3:
        a, b = np.sort(yours, axis=None), np.sort(right, axis=None)
        if np.abs(a - b).max() < CLOSE * np.abs(b).max() < np.diff(b).max():
            return Words(
                "It has the right numbers in wrong places.",
                "an index, or the order in which axes are merged, split or exchanged, is not that of the forward.",
            )
    return None


def all_alike(e: Evidence, name: str) -> Words | None:
    """The same everywhere, or along an axis, where the right gradient is not."""
    yours, right, known = e.pair(name)
    if right[known].any() and np.abs(yours).max() <= DUST * np.abs(right[known]).max():
        return Words(f"d{name} is zero everywhere: nothing comes back this way, or what comes back cancels.")
    if not known.all() or right.size < 2:
        return None
    if (yours == yours.flat[0]).all():
        return Words(
            f"All entries are the same number, {yours.flat[0]:.6g}, and the right ones are not.",
            "a sum or mean has no axis, and broadcasting spreads it over them.",
        )
    for axis, size in enumerate(right.shape):
        differ, differ_right = (
            np.abs(a - a.take([0], axis)).max() > CLOSE * np.abs(a).max() for a in (yours, right)
        )
        if size > 1 and differ_right and not differ:
            return Words(
                f"It is constant along axis {axis}, and the right one is not: each of the {size} places should get its "
                "own gradient, but all get the same: a sum, a mean, or that of a single place."
            )
    return None


# Under other circumstances --------------------------------------------------------------------------------------------


def not_linear(e: Evidence, name: str) -> Words | None:
    """A backward is linear in dy."""
    yours, right, known = e.pair(name)
    if known.sum() < 2 or np.abs(yours).max() <= DUST * np.abs(right).max():
        return None                                      # of rounding errors nothing is linear
    dy = e.upstream
    other = np.random.default_rng(0).standard_normal(np.shape(e.dy)) if np.ndim(e.dy) else 0.6
    try:
        theirs, both, none = (np.asarray(e.subject.run(one)[name]) for one in (other, e.dy + 2 * other, 0 * e.dy))
    except FAILURES:
        return None
    if close(both, yours + 2 * theirs, known) or not both.any():
        return None
    if not np.array_equal(both, np.asarray(e.subject.run(e.dy + 2 * other)[name])):
        return Words("It is another one in every call of your backward: something in it is random. It must use what "
                     "the forward drew.")  # fmt: skip
    if close(yours, theirs, known):
        return Words(f"It is the same whatever {dy} is: {dy}, the upstream gradient, is not used.")
    if none.any() and close(both - none, yours - none + 2 * (theirs - none), known):
        worst = np.unravel_index(np.abs(none).argmax(), none.shape)
        at = f" at [{', '.join(map(str, worst))}]" if worst else ""
        seen = f"for {dy} = 0 it should give zeros, and gives {none[worst]:.6g}{at}"
        reason = f"something is added that has no factor {dy}"
    else:
        seen = "backward(a + b) is not backward(a) + backward(b)"
        reason = f"a decision depends on {dy}, or {dy} is multiplied by itself"
    where = place_of_the_wrong(e, name)
    return Words(
        f"Your backward is not linear in {dy}: {seen}. It may only multiply {dy} by what the forward computed; here "
        f"{reason}." + (f" {where.measured}" if where else "")
    )


def part_of_the_batch(e: Evidence, name: str) -> Words | None:
    """One index of dy alone comes back."""
    yours, _, known = e.pair(name)
    for axis, length in enumerate(np.shape(e.dy)[:-1]):
        for index, what in ((0, "first"), (length - 1, "last")):
            where = (slice(None),) * axis + (index,)
            only = np.zeros_like(e.dy)
            only[where] = e.dy[where]
            if length > 1 and close(yours, e.measured(name, dy=only), known):
                where = f"the {length} along axis {axis} of {e.upstream}"
                return Words(f"Only the {what} of {where} comes back: the others are missing.")
    return None


def other_inputs(e: Evidence, name: str) -> Words | None:
    """The right gradient if a mask or another tensor were something else."""
    yours, _, known = e.pair(name)
    for other, array, case, reason in _instead(e, name):
        if close(yours, e.measured(name, others={other: array}), known) and _multiplies(e, name, other, reason):
            return Words(f"It is the right gradient for {case}.", f"{reason}.")
    return None


def other_option(e: Evidence, name: str) -> Words | None:
    """The right gradient if a number, such as eps, were 0 or 1."""
    yours, _, known = e.pair(name)
    for option, number in e.subject.options().items():
        for other in (0.0, 1.0):
            if number != other and close(yours, e.measured(name, option=(option, other)), known):
                left_out = f"{option} is left out on the way back."
                return Words(f"It is the right gradient for {option} = {other:g}.", left_out)
    return None


def sent_forward(e: Evidence, name: str) -> Words | None:
    """J·dy in place of Jᵀ·dy."""
    yours, _, known = e.pair(name)
    if np.shape(e.dy) == yours.shape == e.y.shape and yours.ndim and close(yours, e.along(name, e.dy), known):
        return Words(
            f"It is J·{e.upstream}, the forward's derivative along {e.upstream}. The way back is the transpose, "
            f"Jᵀ·{e.upstream}, whose steps run in reverse: a rotation turns back, a running sum starts at the other "
            "end, W becomes Wᵀ."
        )
    return None


def _multiplies(e, name, other, reason):
    """True unless the reason is that `other` is forgotten and the right gradient is not proportional to it."""
    if not reason.endswith("is forgotten"):
        return True
    _, right, known = e.pair(name)
    twice = e.measured(name, others={other: 2 * e.subject.tensors[other]})
    return twice is not None and close(twice, 2 * right, known)


def _instead(e, name):
    """(input, what it might have been taken for, that in words, and the reason why)"""
    for mask, x in e.subject.masks.items():
        if not x.all():
            yield mask, np.ones_like(x), f"a {mask} that is True everywhere", f"{mask} is not applied on the way back"
        opposite = ~x if x.dtype == bool else 1 - x
        yield mask, opposite, f"the opposite of {mask}", "True and False are exchanged on the way back"
    for other, x in e.subject.tensors.items():
        if other != name:
            if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
                reason = f"a transpose of {other} is missing, or one too many"
                yield other, x.swapaxes(-1, -2), f"{other} transposed", reason
            yield other, np.ones_like(x), f"{other} = 1", f"{other} is forgotten"
            if x.all():
                yield other, 1 / x, f"1/{other}", f"there is a division where {other} should multiply, or the reverse"

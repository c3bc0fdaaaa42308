"""Patterns of wrong gradients: the right gradient of something else, or under other circumstances."""

import itertools

from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, CLOSE
from mini_tf.gradcheck.reasons.fit import close, elementwise, fitted
from mini_tf.gradcheck.reasons.numbers import meanings_of
from mini_tf.gradcheck.reasons.places import place_of_the_wrong

import numpy as np


def not_a_number(e, name):
    yours, _, _ = e.pair(name)
    bad = ~np.isfinite(yours)
    if bad.any():
        return f"{bad.sum()} of {bad.size} entries are NaN or infinite: a division by zero, or ∞ − ∞, on the way back?"
    return None


def nothing(e, name):
    yours, right, known = e.pair(name)
    if not yours.any() and right[known].any():
        return f"d{name} is zero everywhere: nothing comes back this way."
    return None


def constant_factor(e, name):
    yours, right, known = e.pair(name)
    if not right[known].any() or known.sum() < min(2, known.size):
        return None
    factor = float(yours[known] @ right[known] / (right[known] @ right[known]))
    if factor == 0 or abs(factor - 1) < 100 * CLOSE or not _proportional(yours[known], right[known], factor):
        return None
    if abs(factor + 1) < CLOSE:
        return "The sign is wrong: everywhere −1 times the right gradient."
    large = abs(factor) > 1
    ratio = abs(factor) if large else 1 / abs(factor)
    sign = " and the sign is wrong" if factor < 0 else ""
    meanings = meanings_of(e, abs(factor), sizes_count=elementwise(e, name) is None)
    perhaps = "perhaps " if len(meanings) > 1 else ""
    because = f": {perhaps}{'; or '.join(meanings[:3])}" if meanings else ""
    return f"Everywhere {ratio:.6g} × too {'large' if large else 'small'}{sign}{because}."


def _proportional(yours, right, factor):
    return (np.abs(yours - factor * right) <= CLOSE * np.abs(right).max() * max(1.0, abs(factor))).all()


def exchanged(e, name):
    yours, mine, mine_known = e.pair(name)
    for other in _same_shape(e, name):
        theirs, right, known = e.pair(other)
        if close(yours, right, known) and close(theirs, mine, mine_known):
            return f"d{name} and d{other} are exchanged: gradients come back in the order of the inputs."
    return None


def another_ones(e, name):
    for other in _same_shape(e, name):
        _, right, known = e.pair(other)
        if close(e.pair(name)[0], right, known):
            return f"d{name} is what d{other} should be: is one returned twice, or computed from the wrong array?"
    return None


def _same_shape(e, name):
    return [other for other in e.slopes if other != name and e.slopes[other].shape == e.slopes[name].shape]


def turned(e, name):
    """Axes exchanged, an axis backwards, or shifted by one."""
    yours, right, known = e.pair(name)
    for axes in list(itertools.permutations(range(right.ndim)))[1:]:
        if close(yours, right.transpose(axes), known.transpose(axes)):
            order = f": its axes in the order {axes}" if right.ndim > 2 else ""
            return f"It is the right gradient transposed{order}."
    for axis, length in enumerate(right.shape):
        if length > 1 and close(yours, np.flip(right, axis), np.flip(known, axis)):
            return f"It is the right gradient backwards along axis {axis}."
        ahead, behind = (slice(None),) * axis + (slice(None, -1),), (slice(None),) * axis + (slice(1, None),)
        for here, there in ((ahead, behind), (behind, ahead)):
            if length > 2 and close(yours[here], right[there], known[there]):
                return f"It is the right gradient shifted by one along axis {axis}: an index is off by one."
    return None


def right_numbers(e, name):
    yours, right, known = e.pair(name)
    if known.all() and right.size > 3 and right.ndim > 1:
        a, b = np.sort(yours, axis=None), np.sort(right, axis=None)
        if np.abs(a - b).max() < CLOSE * np.abs(b).max() and np.diff(b).max() > CLOSE * np.abs(b).max():
            return (
                "It has the right numbers in wrong places: were axes merged or exchanged in another order than on the "
                "way forward (a reshape without its swapaxes)?"
            )
    return None


def all_alike(e, name):
    """Constant along an axis, or everywhere, where the right gradient is not."""
    yours, right, known = e.pair(name)
    if not known.all() or right.size < 2:
        return None
    if (yours == yours.flat[0]).all():
        return (
            f"All entries are the same number, {yours.flat[0]:.6g}, and the right ones are not: a sum or mean without "
            "its axis, which broadcasting has spread over them?"
        )
    for axis in range(right.ndim):
        alike = np.abs(yours - np.take(yours, [0], axis)).max() < CLOSE * np.abs(yours).max()
        differ = np.abs(right - np.take(right, [0], axis)).max() > CLOSE * np.abs(right).max()
        if right.shape[axis] > 1 and alike and differ:
            return (
                f"It is the same all along axis {axis}, and the right one is not: each of the {right.shape[axis]} "
                "should get its own, and all get a sum or mean of theirs, or the one of a single one."
            )
    return None


# Under other circumstances --------------------------------------------------------------------------------------------


def not_linear(e, name):
    """A backward is linear in dy; nothing in it but dy depends on dy."""
    yours, _, known = e.pair(name)
    rng = np.random.default_rng(0)
    other = rng.standard_normal(np.shape(e.dy)) if np.ndim(e.dy) else 0.6
    try:
        theirs, both = (np.asarray(e.subject.run(dy)[name]) for dy in (other, e.dy + 2 * other))
    except Exception:
        return None
    if close(both, yours + 2 * theirs, known):
        return None
    if np.ndim(e.dy) and close(yours, e.measured(name, dy=np.ones_like(e.dy)), known):
        return "It is the right gradient for dy = 1 everywhere: dy, what comes from above, is not used."
    if close(yours, theirs, known):
        return "It is the same whatever dy is: dy, what comes from above, is not used."
    where = place_of_the_wrong(e, name)
    return (
        "Your backward is not linear in dy: backward(a + b) is not backward(a) + backward(b). dy may only be "
        "multiplied, and by numbers that come from the forward; here something is added to it, or "
        "it decides something itself."
        + (f" {where}" if where else "")
    )


def part_of_the_batch(e, name):
    """One index of an axis of dy alone comes back, or all but one."""
    yours, _, known = e.pair(name)
    for axis, length in enumerate(np.shape(e.dy)[:-1]):
        for index, what in ((0, "first"), (length - 1, "last")):
            if length < 2:
                continue
            only, without = np.zeros_like(e.dy), np.array(e.dy)
            where = (slice(None),) * axis + (index,)
            only[where], without[where] = e.dy[where], 0
            if close(yours, e.measured(name, dy=only), known):
                return f"Only the {what} of the {length} along axis {axis} of dy comes back: the others are missing."
            if length > 2 and close(yours, e.measured(name, dy=without), known):
                return f"The {what} of the {length} along axis {axis} of dy is left out."
    return None


def ignores_mask(e, name):
    yours, _, known = e.pair(name)
    for mask, allowed in e.subject.masks.items():
        if not allowed.all() and close(yours, e.measured(name, **{mask: np.ones_like(allowed)}), known):
            return (
                f"It is the right gradient for a {mask} that is True everywhere: {mask} is not applied on the way back."
            )
        if close(yours, e.measured(name, **{mask: ~allowed}), known):
            return f"It is the right gradient for the opposite of {mask}: True and False are exchanged on the way back."
    return None


def ignores_a_tensor(e, name):
    """The right gradient if another tensor were 1, or transposed, upside down, or had changed places with a third."""
    yours, right, known = e.pair(name)
    if right.size > AFFORDABLE:
        return None
    others = {n: x for n, x in e.subject.tensors.items() if n != name}
    for other, x in others.items():
        square = x.ndim >= 2 and x.shape[-1] == x.shape[-2]
        if square and close(yours, e.measured(name, **{other: x.swapaxes(-1, -2)}), known):
            return (
                f"It is the right gradient for {other} transposed: a transpose of {other} is missing, or one too many."
            )
        without = e.measured(name, **{other: np.ones_like(x)})
        if close(yours, without, known):
            return f"It is the right gradient for {other} = 1: {other} is forgotten."
        spread = fitted(x, right.shape)
        if without is not None and spread is not None and close(yours, without * spread, known):
            return (
                f"It is the right gradient for {other} = 1, multiplied by {other} at the end: {other} belongs to dy "
                "before anything else is done with it."
            )
        if (x != 0).all() and close(yours, e.measured(name, **{other: 1 / x}), known):
            return f"It is the right gradient for 1/{other}: a division where {other} should multiply, or the reverse."
        if close(yours, e.measured(name, **{other: -x}), known):
            return f"It is the right gradient for −{other}: {other} has the wrong sign on the way back."
    for (first, a), (second, b) in itertools.combinations(others.items(), 2):
        if a.shape == b.shape and close(yours, e.measured(name, **{first: b, second: a}), known):
            return f"It is the right gradient if {first} and {second} changed places."
    return None

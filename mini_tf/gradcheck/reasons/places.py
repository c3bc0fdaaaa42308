"""Patterns of wrong gradients: where the wrong entries are, and what is special about them."""

from mini_tf.gradcheck.measuring.evidence import CLOSE, Evidence
from mini_tf.gradcheck.reasons.fit import fitted
from mini_tf.gradcheck.reasons.words import Words

import numpy as np


def repeated_ids(e: Evidence, name: str) -> Words | None:
    """Embeddings: wrong in the rows that several ids name."""
    wrong = e.wrong_entries(name)
    for ids_name, ids in e.subject.ids.items():
        if not wrong.ndim or ids.max() >= len(wrong) or ids.min() < 0:
            continue
        times = np.bincount(ids.reshape(-1), minlength=len(wrong))
        repeated = times > 1
        if repeated.any() and (times == 1).any() and (wrong.reshape(len(wrong), -1).any(-1) == repeated).all():
            return Words(
                f"Right for every row that {ids_name} names once, wrong for those it names more often, where the "
                "gradients of all places must add up.",
                "some are dropped (`G[ids] += d` keeps only the last of them; scatter_add, or np.add.at, adds all), or "
                "they are averaged.",
            )
    return None


def named_once_and_wrong(e: Evidence, name: str) -> bool:
    """True if there are ids for each row, none of which explains why a row is wrong: it is named once, or never."""
    if np.shape(e.gradients.get(name)) != e.slopes[name].shape or np.isnan(e.slopes[name]).any():
        return False
    wrong = e.wrong_entries(name)
    rows = wrong.reshape(len(wrong), -1).any(-1)
    counts = [np.bincount(ids.reshape(-1), minlength=len(wrong)) for ids in e.subject.ids.values()
              if ids.min() >= 0 and ids.max() < len(wrong)]  # fmt: skip
    return bool(counts) and all((rows & (times <= 1)).any() for times in counts)


def where_nothing_should_be(e: Evidence, name: str) -> Words | None:
    """Wrong only where the right gradient is 0."""
    wrong = e.wrong_entries(name)
    _, right, known = e.pair(name)
    zero = known & (np.abs(right) < CLOSE * np.abs(right).max(initial=0))
    if not wrong.any() or not (wrong <= zero).all():
        return None
    for mask, allowed in e.subject.masks.items():
        for shaped in (allowed, allowed[..., None]):
            spread = fitted(shaped, right.shape)
            if spread is not None and not (wrong & spread).any():
                if allowed.dtype == bool:
                    applied = f"{mask} is not applied on the way back; {e.upstream} must become 0 there."
                    return Words(f"Wrong only where {mask} is False.", applied)
                return Words(f"Wrong only where {mask} is 0: no gradient must come back there.")
    rows = zero.reshape(-1, right.shape[-1]).all(-1)
    if right.ndim > 1 and not rows.all() and not wrong.reshape(len(rows), -1)[~rows].any():
        return Words(
            f"Wrong only in rows of {name} that do not count, where the right gradient is 0 (padding, ignored targets, "
            "rows that a mask, a ReLU or a maximum leaves empty): it must stay 0."
        )
    if e.y.ndim and e.y.shape == right.shape:
        return Words(
            "Wrong only where the right gradient is 0: where the function is switched off (a ReLU below 0, a dropped "
            f"entry) {e.upstream} must not come through."
        )
    return None


def where_zero_is_right(e: Evidence, name: str) -> Words | None:
    """Wrong only where the right gradient is 0, and nothing more is known of these places."""
    wrong, right = e.wrong_entries(name), e.pair(name)[1]
    if not wrong.any() or (wrong & (np.abs(right) >= CLOSE * np.abs(right).max())).any():
        return None
    return Words(
        "Wrong only where the right gradient is 0.",
        "the forward switches these entries off (a maximum, a clamp, a mask, a ReLU), and the backward does not.",
    )


def stops_in_time(e: Evidence, name: str) -> Words | None:
    """Right at the last index of an axis only, and later indices of y depend on earlier ones of the tensor."""
    wrong = e.wrong_entries(name)
    for axis in range(min(wrong.ndim - 1, np.ndim(e.dy))):
        by_index = _by_index(wrong, axis)
        if len(by_index) < 3 or by_index[-1] or not by_index[:-1].all() or np.shape(e.dy)[:axis] != wrong.shape[:axis]:
            continue
        last = np.zeros_like(e.dy)
        last[(slice(None),) * axis + (-1,)] = 1.0
        carried = e.measured(name, dy=last)
        if carried is not None and np.take(carried, 0, axis).any() and _right_by_itself(e, name, axis):
            return Words(
                f"Right at the last index of axis {axis}, wrong everywhere before it: what comes back from later steps "
                "is missing or wrong (in a recurrent network: da_{t+1}·Whᵀ; in an LSTM also dc_{t+1}·f)."
            )
    return None


def _right_by_itself(e, name, axis):
    """True if what y gives back at the second to last index, to the same index of the tensor, is right."""
    dy = np.zeros_like(e.dy)
    dy[(slice(None),) * axis + (-2,)] = 1.0
    yours, right = (np.take(d, -2, axis) for d in (e.subject.run(dy)[name], e.measured(name, dy=dy)))
    return bool(np.abs(yours - right).max() < CLOSE * np.abs(right).max())


def place_of_the_wrong(e: Evidence, name: str) -> Words | None:
    """Some entries are right, some are wrong: which ones, and are these 0?"""
    wrong = e.wrong_entries(name)
    yours, right, known = e.pair(name)
    if not wrong.any() or (wrong == known).all():
        return None
    if wrong.sum() == 1:
        place = np.argwhere(wrong)[0].tolist()
        return Words(f"A single entry is wrong, {place}; all {known.sum() - 1} others are right.")
    for ids_name, ids in e.subject.ids.items():
        if right.shape[:-1] == ids.shape:
            named = (np.arange(right.shape[-1]) == ids[..., None]) & right.any(-1, keepdims=True)
            error, everywhere = (yours - right)[wrong], (wrong == named).all()
            if everywhere and np.ptp(error) < CLOSE * np.abs(error).max():
                return Words(
                    f"Wrong at the {ids_name} only, everywhere by the same number.",
                    f"the term −onehot({ids_name}) is missing or wrong.",
                )
            if everywhere:
                return Words(f"Wrong only at the entry that {ids_name} names in each row; all others are right.")
            if (wrong <= named).all() and 2 * wrong.sum() > named.sum():
                some = f"{wrong.sum()} of these {named.sum()}"
                return Words(f"Wrong only at entries that {ids_name} names, {some}; all others are right.")
    zero = not yours[wrong].any()
    for axis, size in enumerate(wrong.shape):
        indices = np.flatnonzero(_by_index(wrong, axis))
        if len(indices) < size and (zero or len(indices) == 1 < size - 1):
            where = f"Wrong only at index {', '.join(map(str, indices))} of axis {axis} of d{name}"
            return Words(where + (", where it is 0: nothing comes back there." if zero else "; the others are right."))
    if zero:
        return Words(f"All {wrong.sum()} wrong entries are 0, the others are right: nothing comes back there.")
    return None


def _by_index(wrong, axis):
    """For each index of the axis, whether anything is wrong there."""
    return wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis))

"""Patterns of wrong gradients: where the wrong entries are, and what is special about them."""

from mini_tf.gradcheck.measuring.evidence import CLOSE
from mini_tf.gradcheck.reasons.fit import close, fitted

import numpy as np


def repeated_ids(e, name):
    """Embeddings: rows that several ids name."""
    wrong = e.wrong_entries(name)
    yours, right, known = e.pair(name)
    for ids_name, ids in e.subject.ids.items():
        if not right.ndim or ids.max() >= len(right) or ids.min() < 0:
            continue
        counts = np.bincount(ids.reshape(-1), minlength=len(right))
        rows = wrong.reshape(len(right), -1).any(-1)
        if not rows.any() or rows[counts < 2].any():
            continue
        often = f"Right for every row that {ids_name} names once, wrong for those it names more often"
        spread = np.maximum(counts, 1).reshape(-1, *[1] * (right.ndim - 1))
        if close(yours * spread, right, known):
            return f"{often}: it is divided by how often. The gradients of all places add up; they are not averaged."
        if np.shape(e.dy)[: ids.ndim] == ids.shape:
            for order in (slice(None), slice(None, None, -1)):
                flat = ids.reshape(-1)[order]
                kept = np.zeros(flat.shape, bool)
                kept[np.unique(flat, return_index=True)[1]] = True
                kept = kept[order].reshape(ids.shape + (1,) * (np.ndim(e.dy) - ids.ndim))
                if close(yours, e.measured(name, dy=e.dy * kept), known):
                    return (
                        f"{often}: only one of several places counts, repeats are dropped. `G[ids] += d` keeps only "
                        "the last of them; scatter_add (np.add.at) adds all."
                    )
        return f"{often}: look at what becomes of repeated ids, whose gradients must add up."
    return None


def targets_only(e, name):
    """Losses: wrong, or right, at the places that the targets point to."""
    wrong = e.wrong_entries(name)
    _, right, known = e.pair(name)
    for ids_name, ids in e.subject.ids.items():
        if right.ndim != ids.ndim + 1 or right.shape[:-1] != ids.shape or ids.max() >= right.shape[-1] or ids.min() < 0:
            continue
        onehot = (np.arange(right.shape[-1]) == ids[..., None]) & known
        counts = (right != 0).any(-1, keepdims=True)
        if wrong.any() and (wrong <= onehot).all() and (onehot & counts <= wrong).all():
            return (
                f"Wrong at the {ids_name} only, in every row that counts: the term −onehot({ids_name}) is missing or "
                "wrong."
            )
        if (onehot & counts).any() and not (wrong & onehot).any() and (~onehot & counts & known <= wrong).all():
            return f"Right at the {ids_name} only: the other entries of each row (the softmax) are missing or wrong."
    return None


def where_nothing_should_be(e, name):
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
                return (
                    f"Wrong only where {mask} is False: {mask} is not applied on the way back, there dy must become 0."
                )
    if right.ndim > 1:
        rows = zero.reshape(-1, right.shape[-1]).all(-1)
        wrong_rows = wrong.reshape(-1, right.shape[-1]).any(-1)
        if (wrong_rows <= rows).all() and not rows.all():
            return (
                f"Wrong only in rows of {name} that do not count, where the right gradient is 0 (padding, ignored "
                "targets, rows that a mask leaves empty): they must give nothing back."
            )
    if e.y.ndim and e.y.shape == right.shape:
        return (
            "Wrong only where the right gradient is 0: where the function is switched off (a ReLU below 0, a dropped "
            "entry) dy must not come through."
        )
    return None


def stops_in_time(e, name):
    """Right at the last index of an axis only, and later indices of y depend on earlier ones of the tensor."""
    wrong = e.wrong_entries(name)
    for axis in range(wrong.ndim - 1):
        by_index = wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis))
        if len(by_index) < 3 or by_index[-1] or not by_index[:-1].all() or np.shape(e.dy)[:axis] != wrong.shape[:axis]:
            continue
        last = np.zeros_like(e.dy)
        last[(slice(None),) * axis + (-1,)] = 1.0
        carried = e.measured(name, dy=last)
        if carried is not None and np.take(carried, 0, axis).any():
            return (
                f"Right at the last index of axis {axis}, wrong at all before it: what comes back from later steps is "
                "missing or wrong (in a recurrent network: da_{t+1}·Whᵀ)."
            )
    return None


def only_zeros(e, name):
    """Every wrong entry is 0."""
    wrong = e.wrong_entries(name)
    yours, right, _ = e.pair(name)
    if not wrong.any() or yours[wrong].any() or wrong.sum() < 2:
        return None
    for axis in range(wrong.ndim):
        by_index = wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis))
        if len(by_index) > 1 and 0 < by_index.sum() < len(by_index):
            there = ", ".join(str(i) for i in np.flatnonzero(~by_index))
            return f"Right at index {there} of axis {axis} of d{name}, and 0 at all others: they get no gradient."
    return f"All {wrong.sum()} wrong entries are 0, the others are right: something keeps their gradient back."


def signs_only(e, name):
    """Every wrong entry has the right size."""
    wrong = e.wrong_entries(name)
    yours, right, known = e.pair(name)
    if wrong.any() and close(np.abs(yours), np.abs(right), known):
        return (
            f"Right in size, but {wrong.sum()} of {known.sum()} entries have the wrong sign: an abs, a square, a "
            "comparison?"
        )
    return None


def place_of_the_wrong(e, name):
    wrong = e.wrong_entries(name)
    where, known = np.argwhere(wrong), e.pair(name)[2].sum()
    if len(where) == 0 or len(where) == known:
        return None
    if len(where) == 1:
        return f"A single entry is wrong, {[int(i) for i in where[0]]}; all {known - 1} others are right."
    for axis in range(wrong.ndim):
        indices = np.unique(where[:, axis])
        if len(indices) == 1 and wrong.shape[axis] > 2:
            return f"All wrong entries have index {int(indices[0])} on axis {axis} of d{name}; the others are right."
    return None

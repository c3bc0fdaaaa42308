"""What is wrong with a gradient, in words.

A wrong gradient often is a right one of something else: of another tensor, of a function without the mask, with γ = 1,
or it is off by a number or by a term that can be recognized. Each pattern below is a question put to the numbers; it
answers with a sentence, or with None. The first that answers is believed: the sharpest questions come first, and the
last ones only say where the wrong entries are. A question is answered when all entries fit, to a part in a million.
"""

import itertools

from mini_tf.gradcheck.measure import Phi, slopes_of_entries
from mini_tf.gradcheck.numbers import known_numbers
from mini_tf.trace import trace

import numpy as np

CLOSE = 1e-6                         # relative to the largest entry: measured slopes are better known than that
AFFORDABLE = 600                     # a tensor with more entries is not measured again under other circumstances


class Evidence:
    """What is known at one point: the subject as it was there, y, dy, gradients from the backward, measured slopes."""

    def __init__(self, subject, y, backward, dy, gradients, patterns):
        self.subject, self.y, self.backward, self.dy = subject, y, backward, dy
        self.gradients, self.patterns = gradients, patterns
        self.slopes = {}                                 # NaN where not known
        self.wrong, self.right = [], []                  # names of the gradients that are so
        self.everything = dict(zip(subject.names, subject.inputs)) | subject.tensors

    def pair(self, name):
        """(your gradient, the measured one, where the measured one is known)"""
        slopes = self.slopes[name]
        return np.asarray(self.gradients[name]), np.nan_to_num(slopes), ~np.isnan(slopes)

    def measured(self, name, dy=None, **others):
        """The gradient measured once more with another dy, or other arrays in the place of inputs; None if it has none."""
        tensors = self.subject.tensors
        if tensors[name].size > AFFORDABLE:
            return None
        try:
            for other, array in others.items():
                self.subject.replace(other, array)
            phi = Phi(self.subject, self.dy if dy is None else dy, self.patterns)
            x = self.subject.tensors[name]
            return slopes_of_entries(phi, x, np.arange(x.size)).slope.reshape(x.shape)
        except Exception:                                # the function may refuse what is tried here
            return None
        finally:
            for other in others:
                self.subject.replace(other, self.everything[other])

    @property
    def masks(self):
        inputs = zip(self.subject.names, self.subject.inputs)
        return {name: x for name, x in inputs if getattr(x, "dtype", None) == bool and np.ndim(x)}

    @property
    def ids(self):
        inputs = zip(self.subject.names, self.subject.inputs)
        return {name: x for name, x in inputs if getattr(getattr(x, "dtype", None), "kind", "") in "iu" and np.size(x)}


def diagnose(evidence):
    """{name: a sentence or two} for those of the wrong gradients that a pattern fits."""
    for name, array in evidence.everything.items():
        evidence.subject.replace(name, array)            # back to the point of the evidence
    with np.errstate(all="ignore"):
        found = {name: _first_answer(evidence, name) for name in evidence.wrong}
    return {name: words for name, words in found.items() if words}


def _first_answer(evidence, name):
    return next(filter(None, (pattern(evidence, name) for pattern in PATTERNS)), "")


def _close(a, b, known):
    """Whether a and b agree at all entries where the measurement is known, and there is something to agree on."""
    if a is None or b is None or np.shape(a) != np.shape(b) or known.sum() < 2:
        return False
    a, b = np.asarray(a)[known], np.asarray(b)[known]
    size = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(size > 0 and (np.abs(a - b) <= CLOSE * size).all())


# Whole gradients that are another one ---------------------------------------------------------------------------------


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
    yours, right = yours[known], right[known]
    if not right.any():
        return None
    factor = float(yours @ right / (right @ right))
    size = np.abs(right).max() * max(1.0, abs(factor))
    if factor == 0 or abs(factor - 1) < 100 * CLOSE or (np.abs(yours - factor * right) > CLOSE * size).any() or yours.size < 2 <= known.size:
        return None
    if abs(factor + 1) < CLOSE:
        return "The sign is wrong: everywhere −1 times the right gradient."
    large = abs(factor) > 1
    ratio = abs(factor) if large else 1 / abs(factor)
    sign = " and the sign is wrong" if factor < 0 else ""
    meanings = [words for value, words in known_numbers(e, name, large) if abs(value / ratio - 1) < CLOSE]
    because = f": {'; or '.join(meanings[:3])}" if meanings else ""
    return f"Everywhere {ratio:.6g} × too {'large' if large else 'small'}{sign}{because}."


def exchanged(e, name):
    yours, mine, mine_known = e.pair(name)
    for other in e.slopes:
        if other != name and e.slopes[other].shape == yours.shape:
            theirs, right, known = e.pair(other)
            if _close(yours, right, known) and _close(theirs, mine, mine_known):
                return f"d{name} and d{other} are exchanged: gradients come back in the order of the inputs."
    return None


def anothers(e, name):
    yours, _, _ = e.pair(name)
    for other in e.slopes:
        if other != name and e.slopes[other].shape == yours.shape and _close(yours, *e.pair(other)[1:]):
            return f"d{name} is what d{other} should be: is one returned twice, or computed from the wrong array?"
    return None


def turned(e, name):
    yours, right, known = e.pair(name)
    for axes in list(itertools.permutations(range(right.ndim)))[1:]:
        if _close(yours, right.transpose(axes), known.transpose(axes)):
            return "It is the right gradient transposed" + (f": its axes in the order {axes}." if right.ndim > 2 else ".")
    for axis, length in enumerate(right.shape):
        if length > 1 and _close(yours, np.flip(right, axis), np.flip(known, axis)):
            return f"It is the right gradient backwards along axis {axis}."
        for shift in (1, -1):
            rolled, visible = np.roll(right, shift, axis), np.roll(known, shift, axis)
            inner = [slice(None)] * right.ndim
            inner[axis] = slice(1, None) if shift == 1 else slice(None, -1)
            inner = tuple(inner)
            if length > 2 and _close(yours[inner], rolled[inner], visible[inner]):
                return f"It is the right gradient shifted by one along axis {axis}: an index is off by one."
    return None


# The right gradient under other circumstances -------------------------------------------------------------------------


def ignores_dy(e, name):
    yours, _, known = e.pair(name)
    if np.ndim(e.dy) and _close(yours, e.measured(name, dy=np.ones_like(e.dy)), known):
        return "It is the right gradient for dy = 1 everywhere: dy, what comes from above, is not used."
    return None


def part_of_the_batch(e, name):
    """Only one index of an axis of dy comes back, or all but one."""
    yours, _, known = e.pair(name)
    for axis, length in enumerate(np.shape(e.dy)[:-1]):
        for index, what in ((0, "first"), (length - 1, "last")):
            if length < 2:
                continue
            only, without = np.zeros_like(e.dy), np.array(e.dy)
            where = (slice(None),) * axis + (index,)
            only[where], without[where] = e.dy[where], 0
            if _close(yours, e.measured(name, dy=only), known):
                return f"Only the {what} of the {length} along axis {axis} of dy comes back: a sum over them is missing."
            if length > 2 and _close(yours, e.measured(name, dy=without), known):
                return f"The {what} of the {length} along axis {axis} of dy is left out."
    return None


def ignores_mask(e, name):
    yours, _, known = e.pair(name)
    for mask, allowed in e.masks.items():
        if not allowed.all() and _close(yours, e.measured(name, **{mask: np.ones_like(allowed)}), known):
            return f"It is the right gradient for a {mask} that is True everywhere: {mask} is not applied on the way back."
    return None


def ignores_a_tensor(e, name):
    yours, _, known = e.pair(name)
    tensors = {n: x for n, x in e.subject.tensors.items() if n != name}
    for other, x in tensors.items():
        if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:
            swapped = np.ascontiguousarray(x.swapaxes(-1, -2))
            if _close(yours, e.measured(name, **{other: swapped}), known):
                return f"It is the right gradient for {other} transposed: a transpose of {other} is missing, or one too many."
        if _close(yours, e.measured(name, **{other: np.ones_like(x)}), known):
            return f"It is the right gradient for {other} = 1: {other} is forgotten."
    return None


def exchanged_in_use(e, name):
    """The right gradient of x if two other tensors changed places."""
    yours, _, known = e.pair(name)
    tensors = [(n, x) for n, x in e.subject.tensors.items()]
    for (first, a), (second, b) in itertools.combinations(tensors, 2):
        if a.shape == b.shape and name not in (first, second):
            if _close(yours, e.measured(name, **{first: b.copy(), second: a.copy()}), known):
                return f"It is the right gradient if {first} and {second} changed places."
    return None


# A term is missing ----------------------------------------------------------------------------------------------------


def dy_passed_on(e, name):
    yours, right, known = e.pair(name)
    if _close(yours, e.dy, known):
        return "dy is handed on as it came: the derivative of the function itself is missing."
    for word, missing in (("missing", right - yours), ("there once too often", yours - right)):
        if _close(missing, e.dy, known):
            return f"dy itself is {word}: the path on which {name} goes straight to y (the residual, the skip connection)."
    return None


def diagonal_only(e, name):
    """dy_i·∂y_i/∂x_i where Σ_j dy_j·∂y_j/∂x_i belongs."""
    yours, right, known = e.pair(name)
    if e.y.shape != right.shape or not 2 <= right.size <= AFFORDABLE // 4:
        return None
    diagonal = np.zeros(right.size)
    x = e.subject.tensors[name]
    for i in range(right.size):
        one = np.zeros(right.shape)
        one.flat[i] = 1.0
        diagonal[i] = slopes_of_entries(Phi(e.subject, one, e.patterns), x, np.array([i])).slope[0]
    if _close(yours, e.dy * diagonal.reshape(right.shape), known):
        return (
            f"It is dy·∂y_i/∂{name}_i, the diagonal of the Jacobian only: every entry of {name} moves other entries of y "
            "too, and what they give back is missing (in softmax: −y_i·Σ_j y_j·dy_j)."
        )
    return None


def part_left_out(e, name):
    """A model or layer: what one of its ops gives back is left out of a sum, or counted twice."""
    yours, right, known = e.pair(name)
    with trace(e.subject.f) as calls:
        try:
            e.subject.run(e.dy)
        except Exception:
            return None
    parts = []
    for call in sorted((c for c in calls if c.ended is not None), key=lambda c: c.depth):
        gradients = call.gradients if isinstance(call.gradients, tuple) else (call.gradients,)
        owned = [p.grad for p in call.f.__self__.parameters().values()] if hasattr(call.f, "__self__") else []
        parts += [(call, g) for g in (*gradients, *owned) if np.shape(g) == right.shape]
    for call, part in parts:
        for word, missing in (("left out", right - yours), ("counted once too often", yours - right)):
            if np.any(part) and _close(missing, part, known):
                return f"What {call.name} gives back (called at {call.line}) is {word}: the paths of a gradient add."
    return None


def multiple_in_every_row(e, name):
    """In every row, the error is a number times a known row."""
    yours, right, known = e.pair(name)
    n = right.shape[-1] if right.ndim else 0
    if n < 3 or right.size < 2 * n or not known.all():
        return None
    error = (yours - right).reshape(-1, n)
    size = np.abs(right).max() + np.abs(yours).max()
    x = e.subject.tensors[name]
    ones, centred = np.ones_like(error), (x - x.mean(-1, keepdims=True)).reshape(-1, n)
    zero_sum = np.abs(right.reshape(-1, n).sum(-1)).max() < CLOSE * size

    def spanned(*rows):
        basis = np.stack(rows, axis=-1)                  # (rows, n, k)
        left = error - (basis @ (np.linalg.pinv(basis) @ error[..., None]))[..., 0]
        return np.abs(left).max() < CLOSE * size

    mean = "the term that a mean (or sum) over the row gives back"
    if zero_sum:
        mean += (
            f" (the right d{name} sums to 0 in every row, because a number added to a whole row of {name} leaves y as it is; "
            "yours does not)"
        )
    variance = f"the term that the variance gives back, a multiple of {name} − mean({name}) (in layer norm: −x̂·mean(g·x̂))"
    if spanned(ones):
        return f"In every row it is off by one number, the same for the whole row: {mean} is missing or wrong."
    if e.y.shape == right.shape and spanned(e.y.reshape(-1, n)):
        return (
            "In every row it is off by a multiple of y: the term −y·Σ_j y_j·dy_j, by which the entries of a softmax depend "
            "on one another, is missing or wrong."
        )
    if spanned(centred):
        return f"In every row it is off by a multiple of {name} − mean({name}): {variance} is missing or wrong."
    if n > 3 and spanned(ones, centred):
        return f"In every row it is off by a number and a multiple of {name}: {mean}, and {variance}, are missing or wrong."
    return None


def factor_entry_by_entry(e, name):
    """yours·a = right, or right·a = yours, for a known array a."""
    yours, right, known = e.pair(name)
    known_arrays = {n: x for n, x in e.subject.tensors.items()} | {n: m.astype(float) for n, m in e.masks.items()}
    if e.y.ndim:
        y = e.y
        known_arrays |= {"y": y, "(1 − y)": 1 - y, "(1 − y²)": 1 - y * y, "y·(1 − y)": y * (1 - y), "(1 + y)": 1 + y}
    for label, a in known_arrays.items():
        a = _fitted(a, right.shape)
        if a is None or (np.abs(a - a.flat[0]) < CLOSE).all():
            continue
        if _close(yours * a, right, known):
            return f"Entry by entry, the factor {label} is missing."
        if _close(right * a, yours, known):
            return f"Entry by entry, the factor {label} is there once too often."
    return None


# Where the wrong entries are ------------------------------------------------------------------------------------------


def _wrong(e, name):
    yours, right, known = e.pair(name)
    size = max(np.abs(right).max(initial=0), 1e-300)
    return known & (np.abs(yours - right) > CLOSE * size), yours, right, known


def repeated_ids(e, name):
    wrong, yours, right, known = _wrong(e, name)
    for ids_name, ids in e.ids.items():
        if not right.ndim or ids.max() >= len(right) or ids.min() < 0:
            continue
        counts = np.bincount(ids.reshape(-1), minlength=len(right))
        rows = wrong.reshape(len(right), -1).any(-1)
        if rows.any() and not rows[counts < 2].any() and (counts > 1).any():
            return (
                f"Right for every row that {ids_name} names once, wrong for those it names more often: repeats are dropped. "
                "`G[ids] += d` keeps only the last of them; scatter_add (np.add.at) adds all."
            )
    return None


def targets_only(e, name):
    wrong, yours, right, known = _wrong(e, name)
    for ids_name, ids in e.ids.items():
        if right.ndim != ids.ndim + 1 or right.shape[:-1] != ids.shape or ids.max() >= right.shape[-1] or ids.min() < 0:
            continue
        onehot = np.arange(right.shape[-1]) == ids[..., None]
        rows = (np.abs(right) > 0).any(-1, keepdims=True) | np.zeros_like(onehot)
        if wrong.any() and (wrong <= onehot).all() and (onehot & rows & known <= wrong).all():
            return f"Wrong at the {ids_name} only, in every row that counts: the term −onehot({ids_name}) is missing or wrong."
        if (onehot & known & rows).any() and not (wrong & onehot).any() and (wrong | onehot | ~known | ~rows).all():
            return f"Right at the {ids_name} only: the other entries of each row (softmax) are missing or wrong."
    return None


def where_nothing_should_be(e, name):
    """Wrong only where the right gradient is 0."""
    wrong, yours, right, known = _wrong(e, name)
    zero = known & (np.abs(right) < CLOSE * np.abs(right).max(initial=0))
    if not wrong.any() or not (wrong <= zero).all():
        return None
    for mask, allowed in e.masks.items():
        for shaped in (allowed, allowed[..., None]):
            fitted = _fitted(shaped, right.shape)
            if fitted is not None and not (wrong & fitted).any():
                return f"Wrong only where {mask} is False: {mask} is not applied on the way back, there dy must become 0."
    rows = zero.reshape(-1, right.shape[-1]).all(-1) if right.ndim > 1 else np.array([False])
    wrong_rows = wrong.reshape(-1, right.shape[-1]).any(-1) if right.ndim > 1 else rows
    if (wrong_rows <= rows).all() and rows.any() and not rows.all():
        return (
            f"Wrong only in rows of {name} that do not count, where the right gradient is 0 (padding, ignored targets, "
            "rows that a mask leaves empty): they must give nothing back."
        )
    if e.y.ndim:
        return (
            "Wrong only where the right gradient is 0, right everywhere else: where the function is switched off (a ReLU "
            "below 0, a dropped entry) dy must not come through."
        )
    return None


def stops_in_time(e, name):
    """Right at one end of an axis only: what is carried from step to step is lost."""
    wrong, yours, right, known = _wrong(e, name)
    for axis in range(right.ndim - 1):
        by_index = wrong.any(axis=tuple(a for a in range(right.ndim) if a != axis))
        if len(by_index) > 2 and by_index.any() and not by_index[-1] and by_index[:-1].all():
            return (
                f"Right at the last index of axis {axis}, wrong at all before it: what comes back from later steps is "
                "missing or wrong (in a recurrent network: da_{t+1}·Whᵀ)."
            )
    return None


def place_of_the_wrong(e, name):
    wrong, yours, right, known = _wrong(e, name)
    where = np.argwhere(wrong)
    if len(where) == 0 or len(where) == known.sum():
        return None
    if len(where) == 1:
        return f"A single entry is wrong, {[int(i) for i in where[0]]}; all {known.sum() - 1} others are right."
    for axis in range(wrong.ndim):
        indices = np.unique(where[:, axis])
        if len(indices) == 1 and wrong.shape[axis] > 2:
            return f"All wrong entries have index {int(indices[0])} on axis {axis} of d{name}; the others are right."
    return None


def _fitted(a, shape):
    try:
        return np.broadcast_to(a, shape)
    except ValueError:
        return None


PATTERNS = [
    not_a_number, nothing, constant_factor, exchanged, repeated_ids, ignores_mask, where_nothing_should_be, dy_passed_on,
    turned, part_left_out, anothers, ignores_a_tensor, ignores_dy, part_of_the_batch, exchanged_in_use,
    multiple_in_every_row, targets_only, factor_entry_by_entry, diagonal_only, stops_in_time, place_of_the_wrong,
]  # fmt: skip

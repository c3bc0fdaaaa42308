"""Patterns of wrong gradients: a term is missing, or another one stands in its place."""

import math

from mini_tf import ops
from mini_tf.backend import erf
from mini_tf.gradcheck.measuring.evidence import CLOSE, Evidence
from mini_tf.gradcheck.measuring.returned import flat
from mini_tf.gradcheck.reasons.fit import close, elementwise, fitted
from mini_tf.gradcheck.reasons.theirs import calls_in
from mini_tf.gradcheck.reasons.words import Words

import numpy as np


def dy_passed_on(e: Evidence, name: str) -> Words | None:
    """dy alone, or everything but dy; but a function that acts on every entry by itself is left to `other_slope`."""
    yours, right, known = e.pair(name)
    if close(yours, e.dy, known):
        return Words(f"{e.upstream} is passed on unchanged.", "the derivative of the function itself is missing.")
    if np.shape(e.dy) == right.shape and close(right - yours, e.dy, known) and elementwise(e, name) is None:
        path = f"the path on which {name} goes straight to y (the residual, the skip connection)"
        return Words(f"It lacks exactly {e.upstream}.", f"{path} is left out.")
    return None


def part_left_out(e: Evidence, name: str) -> Words | None:
    """A layer or model: what one of its parts gives back is left out of a sum, or counted twice."""
    yours, right, known = e.pair(name)
    inside = [call for call in calls_in(e.subject, e.dy) if call.ended is not None]
    for call in sorted(inside, key=lambda c: c.depth):
        for part in flat(call.gradients):
            if not isinstance(part, np.ndarray) or close(yours, part, known):
                continue
            place = f"what {call.name} gives back ({'forward ' * isinstance(call.f, tuple)}called at {call.line})"
            if close(right - yours, part, known):
                return Words(f"It lacks exactly {place}.", "that is left out: the gradients along all paths add up.")
            if close(yours - right, part, known):
                return Words(f"It has exactly {place} too much.", "that is added twice, or its negative is left out.")
    return None


# Functions that act on every entry by itself --------------------------------------------------------------------------


def other_slope(e: Evidence, name: str) -> Words | None:
    """dy·f′(x) with another f′; or only dy_i·∂y_i/∂x_i where the function acts on whole rows."""
    yours, _, known = e.pair(name)
    diagonal = e.diagonal(name)
    if diagonal is not None and close(yours, e.dy * diagonal, known):
        return Words(
            f"It is {e.upstream}·∂y_i/∂{name}_i, the diagonal of the Jacobian only: entries of {name} change "
            f"other entries of y, too, and what these give back is missing (in softmax: −y_i·Σ_j y_j·{e.upstream}_j)."
        )
    if elementwise(e, name) is None:
        return None
    slope = yours / e.dy
    at = np.unravel_index(int(np.argmax(np.where(known, np.abs(slope - diagonal), -1))), slope.shape)
    said, true = _formula(e, slope, known), _formula(e, diagonal, known)
    names = f" Yours is {said}" + (f", the right one {true}." if true else ".") if said else ""
    several = len(e.subject.tensors) > 1
    alone = f"An entry of y depends on one of {name} only" if several else "The function acts on every entry by itself"
    return Words(
        f"{alone}, and your derivative of it is wrong: at {name} = {e.subject.tensors[name][at]:.4g} "
        f"yours is {slope[at]:.9g}, the right one {diagonal[at]:.9g}.{names}"
    )


def _formula(e, slope, known):
    """The formula of a derivative, in y or in an input; None if it is none of those that are common."""
    y = e.y
    formulas = {"1 − y²": 1 - y * y, "1 − y": 1 - y, "y·(1 − y)": y * (1 - y), "y": y}
    for name, x in e.subject.tensors.items():
        x = fitted(x, y.shape)
        if x is not None:
            Phi, phi = 0.5 * (1 + erf(x * math.sqrt(0.5))), np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
            s = 1 / (1 + np.exp(-x))
            formulas |= {
                f"the pattern {name} > 0": (x > 0) * 1.0, f"1 − {name}²": 1 - x * x,
                f"Φ({name})": Phi, f"Φ({name}) + {name}·φ({name})": Phi + x * phi,
                f"σ({name})": s, f"σ({name}) + {name}·σ({name})·(1 − σ({name}))": s + x * s * (1 - s),
            }  # fmt: skip
    return next((formula for formula, values in formulas.items() if close(slope, values, known)), None)


# Functions in which the entries of a row depend on one another --------------------------------------------------------


def off_by_a_number(e: Evidence, name: str) -> Words | None:
    """The error is the same number everywhere, times dy where dy has the tensor's shape."""
    yours, right, known = e.pair(name)
    if known.sum() < 3:
        return None
    error, size = (yours - right)[known], np.abs(right).max() + np.abs(yours).max()
    if np.ptp(error) < CLOSE * size < np.abs(error).max():
        error = error if np.ndim(e.dy) else error / e.dy         # of the loss itself
        return Words(
            f"It is off by the same number everywhere, {error[0]:.6g}.",
            f"a term in which {name} does not occur is missing or wrong (the 1 of 1 − y², the constant of a sum).",
        )
    return None


def penalty(e: Evidence, name: str) -> Words | None:
    """The error is a multiple of the tensor itself."""
    yours, right, known = e.pair(name)
    x, size = e.subject.tensors[name], np.abs(right).max() + np.abs(yours).max()
    if known.sum() < 3 or not x[known].any():
        return None
    error, x = (yours - right)[known], x[known]
    multiple = (error @ x) / (x @ x)
    if np.abs(error - multiple * x).max() < CLOSE * size < np.abs(error).max():
        multiple = multiple if np.ndim(e.dy) else multiple / e.dy        # of the loss itself
        return Words(
            f"It is off by {multiple:.4g}·{name}, a multiple of {name} that is the same everywhere.",
            f"a term from Σ{name}² is missing or wrong (a penalty, weight decay: 2·λ·{name}; or a norm of all of it).",
        )
    return None


def multiple_in_every_row(e: Evidence, name: str) -> Words | None:
    """Along one axis, the error is a number times a known row."""
    yours, right, known = e.pair(name)
    x = e.subject.tensors[name]
    for axis in reversed(range(right.ndim if known.all() else 0)):
        n = right.shape[axis]
        if n < 3 or right.size < 2 * n:
            continue
        line = "row" if axis == right.ndim - 1 else "column" if axis == right.ndim - 2 else f"line along axis {axis}"
        arrays = yours, right, x, e.y if e.y.shape == x.shape else np.zeros_like(x)
        words = _multiple(name, line, *(np.moveaxis(a, axis, -1).reshape(-1, n) for a in arrays))
        if words:
            if not _rows_by_themselves(e, name, axis):
                return None
            return Words(f"In every {line} it is off by {words.measured}.", f"{words.perhaps} missing or wrong.")
    return None


def _rows_by_themselves(e, name, axis):
    """True if the right gradient in the first line along the axis does not depend on the other lines."""
    x = e.subject.tensors[name]
    other = np.random.default_rng(0).permutation(x.reshape(-1)).reshape(x.shape)
    first = tuple(slice(None) if k == axis % x.ndim else 0 for k in range(x.ndim))
    other[first] = x[first]
    _, right, _ = e.pair(name)
    again = e.measured(name, others={name: other})
    size = np.abs(right).max()
    return again is not None and bool((np.abs(again[first] - right[first]) < 1e-5 * size).all())


def _multiple(name, row, yours, right, x, y):
    """What the rows of the error are multiples of, and which terms give such rows."""
    error, size = yours - right, np.abs(right).max() + np.abs(yours).max()
    ones, centred = np.ones_like(error), x - x.mean(-1, keepdims=True)

    def spanned(*rows):
        basis = np.stack(rows, axis=-1)                  # (rows, n, k)
        left = error - (basis @ (np.linalg.pinv(basis) @ error[..., None]))[..., 0]
        return np.abs(left).max() < CLOSE * size

    mean, sums_to_0 = f"the term that a mean, or a sum, over the {row} gives back", ""
    if np.abs(right.sum(-1)).max() < CLOSE * size:
        sums_to_0 = (
            f" (the right d{name} sums to 0 in every {row}, because a number added to a whole {row} of {name} leaves y "
            "unchanged; yours does not)"
        )
    centre, variance = f"{name} − mean({name})", "the term that the variance gives back"
    length = "such a term (a square gives one)"
    if np.abs((right * x).sum(-1)).max() < 1e-3 * np.abs(right * x).sum(-1).max():       # y depends on directions only
        length = f"the term that the length of the {row} gives back (√Σ{name}², a norm, the rms)"
    candidates = [
        ([ones], Words(f"one number, the same for the whole {row}{sums_to_0}", f"{mean} is")),
        ([ops.softmax(x)[0]], Words(f"a multiple of softmax({name})", "that term is")),
        ([x], Words(f"a multiple of {name}", f"{length} is")),
        ([centred], Words(f"a multiple of {centre}", f"{variance} (in layer norm: −x̂·mean(g·x̂)) is")),
    ]
    if (y >= 0).all() and np.isin(y.sum(-1).round(9), (0, 1)).all():
        coupling = "the term −y·Σ_j y_j·dy_j, by which the entries of a softmax depend on one another"
        candidates.insert(1, ([y], Words("a multiple of y", f"{coupling}, is")))
    if x.shape[-1] > 3:
        either = f"{mean}, {variance}, or both are"
        candidates.append(([ones, centred], Words(f"a number and a multiple of {centre}{sums_to_0}", either)))
    return next((words for rows, words in candidates if spanned(*rows)), None)


def sum_of_products(e: Evidence, name: str) -> Words | None:
    """A tensor that serves every row, like γ: Σ dy·a with another a."""
    yours, right, known = e.pair(name)
    axes = tuple(range(e.y.ndim - right.ndim))
    if not axes or e.y.shape[len(axes) :] != right.shape:
        return None
    totals = [(label, (e.dy * a).sum(axes)) for label, a in _row_arrays(e)]
    said, true = (next((la for la, total in totals if close(g, total, known)), None) for g in (yours, right))
    instead = f"; right is Σ {e.upstream}·{true}" if true else ""
    return Words(f"It is Σ {e.upstream}·{said} over the rows{instead}.") if said else None


def _row_arrays(e):
    yield from (("y", e.y), ("1", np.ones_like(e.y)))
    for name, x in e.subject.tensors.items():
        if x.shape == e.y.shape:
            centred = x - x.mean(-1, keepdims=True)
            yield from ((name, x), (f"({name} − mean)", centred))
            for eps in (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 0.0):
                yield "x̂", centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps)

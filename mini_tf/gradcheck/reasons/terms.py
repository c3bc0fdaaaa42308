"""Patterns of wrong gradients: a term or a factor is missing, or another one stands in its place."""

import itertools
import math

from mini_tf import ops
from mini_tf.backend import erf
from mini_tf.gradcheck.measuring.evidence import CLOSE
from mini_tf.gradcheck.reasons.fit import close, elementwise, fitted
from mini_tf.gradcheck.reasons.numbers import own_numbers
from mini_tf.trace import trace

import numpy as np


def dy_passed_on(e, name):
    yours, right, known = e.pair(name)
    if close(yours, e.dy, known):
        return "dy is handed on as it came: the derivative of the function itself is missing."
    if np.shape(e.dy) != right.shape or not known.any():
        return None
    error, dy = (yours - right)[known], e.dy[known]
    factor = float(error @ dy / (dy @ dy))
    if factor == 0 or not close(yours - right, factor * e.dy, known):
        return None
    if abs(factor + 1) < CLOSE:
        return f"dy itself is missing: the path on which {name} goes straight to y (the residual, the skip connection)."
    return f"It is off by {factor:.6g}·dy: dy comes through where it should not, or once too often."


def part_left_out(e, name):
    """A layer or model: what one of its parts gives back is left out of a sum, or counted twice."""
    yours, right, known = e.pair(name)
    with trace(e.subject.f) as calls:
        try:
            e.subject.run(e.dy)
        except Exception:
            return None
    for call in sorted((c for c in calls if c.ended is not None), key=lambda c: c.depth):
        for part in call.gradients if isinstance(call.gradients, tuple) else (call.gradients,):
            if np.shape(part) != right.shape or not np.any(part):
                continue
            for word, missing in (("left out", right - yours), ("counted once too often", yours - right)):
                if close(missing, part, known):
                    return (
                        f"What {call.name} gives back (called at {call.line}) is {word}: the paths of a gradient add."
                    )
    return None


# Functions that act on every entry by itself --------------------------------------------------------------------------


def other_slope(e, name):
    """dy·f′(x), entry by entry, with another f′."""
    yours, _, known = e.pair(name)
    true_slope = elementwise(e, name)
    if true_slope is None:
        return None
    slope = yours / e.dy
    at = np.unravel_index(int(np.argmax(np.where(known, np.abs(slope - true_slope), -1))), slope.shape)
    said, true = _named(e, slope, known), _named(e, true_slope, known)
    names = f" Yours is {said}" + (f", the right one {true}." if true else ".") if said and said != true else ""
    return (
        f"The function acts on every entry by itself, and its derivative is another: at {name} = "
        f"{e.subject.tensors[name][at]:.4g} yours is {slope[at]:.9g}, the right one {true_slope[at]:.9g}.{names}"
    )


def _named(e, slope, known):
    """What a slope looks like: a formula in x and y, the pattern of an input; None if like nothing known."""
    y = e.y
    candidates = {
        "1 − y²": 1 - y * y, "1 − y": 1 - y, "y·(1 − y)": y * (1 - y), "y": y, "1": np.ones_like(y), "y²": y * y,
        "the square of y·(1 − y)": (y * (1 - y)) ** 2, "the square of 1 − y²": (1 - y * y) ** 2,
    }  # fmt: skip
    for name, x in e.subject.tensors.items():
        x = fitted(x, y.shape)
        if x is not None:
            Phi_x, phi_x = 0.5 * (1 + erf(x * math.sqrt(0.5))), np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
            s = 1 / (1 + np.exp(-x))
            candidates |= {
                f"the pattern {name} > 0": (x > 0) * 1.0, f"1 − {name}²": 1 - x * x, f"1 − {name}": 1 - x, name: x,
                f"Φ({name})": Phi_x, f"Φ({name}) + {name}·φ({name})": Phi_x + x * phi_x,
                f"Φ({name}) + φ({name})": Phi_x + phi_x, f"exp({name})": np.exp(x), f"σ({name})": s,
                f"σ({name})·(1 − σ({name}))": s * (1 - s),
                f"σ({name}) + {name}·σ({name})·(1 − σ({name}))": s + x * s * (1 - s),
            }  # fmt: skip
    return next((formula for formula, values in candidates.items() if close(slope, values, known)), None)


# Functions in which the entries of a row depend on one another --------------------------------------------------------


def diagonal_only(e, name):
    """dy_i·∂y_i/∂x_i where Σ_j dy_j·∂y_j/∂x_i belongs."""
    yours, _, known = e.pair(name)
    diagonal = e.diagonal(name)
    if diagonal is not None and close(yours, e.dy * diagonal, known):
        return (
            f"It is dy·∂y_i/∂{name}_i, the diagonal of the Jacobian only: every entry of {name} moves other entries of "
            "y too, and what they give back is missing (in softmax: −y_i·Σ_j y_j·dy_j)."
        )
    return None


def multiple_in_every_row(e, name):
    """Along one axis, the error is a number times a known row."""
    yours, right, known = e.pair(name)
    if not known.all():
        return None
    x = e.subject.tensors[name]
    for axis in reversed(range(right.ndim)):
        arrays = [np.moveaxis(a, axis, -1) for a in (yours, right, x, *([e.y] if e.y.shape == x.shape else []))]
        n = arrays[0].shape[-1]
        if n < 3 or right.size < 2 * n:
            continue
        line = "row" if axis == right.ndim - 1 else "column" if axis == right.ndim - 2 else f"line along axis {axis}"
        words = _multiple(name, line, *(a.reshape(-1, n) for a in arrays))
        if words:
            return f"In every {line} it is off by {words}"
    return None


def _multiple(name, row, yours, right, x, y=None):
    """What the rows of the error are multiples of, in words."""
    error, n = yours - right, x.shape[-1]
    size = np.abs(right).max() + np.abs(yours).max()
    ones, centred = np.ones_like(error), x - x.mean(-1, keepdims=True)

    def spanned(*rows):
        basis = np.stack(rows, axis=-1)                  # (rows, n, k)
        left = error - (basis @ (np.linalg.pinv(basis) @ error[..., None]))[..., 0]
        return np.abs(left).max() < CLOSE * size

    mean = f"the term that a mean (or sum) over the {row} gives back"
    if np.abs(right.sum(-1)).max() < CLOSE * size:
        mean += (
            f" (the right d{name} sums to 0 in every {row}, because a number added to a whole {row} of {name} leaves y "
            "as it is; yours does not)"
        )
    variance = f"the term that the variance gives back, a multiple of {name} − mean({name})"
    if spanned(ones):
        return f"one number, the same for the whole {row}: {mean} is missing or wrong."
    if y is not None and spanned(y) and (y >= 0).all() and np.isin(y.sum(-1).round(9), (0, 1)).all():
        return (
            "a multiple of y: the term −y·Σ_j y_j·dy_j, by which the entries of a softmax depend on one another, is "
            "missing or wrong."
        )
    if spanned(ops.softmax(x)[0]):
        return f"a multiple of softmax({name}): that term has a wrong factor, or is missing."
    if spanned(x):
        return (
            f"a multiple of {name}: the term that the length of the {row} gives back (√Σ{name}², a norm, the rms) is "
            "missing or wrong."
        )
    if spanned(centred):
        return f"a multiple of {name} − mean({name}): {variance} (in layer norm: −x̂·mean(g·x̂)), is missing or wrong."
    if y is not None and spanned(y):
        return (
            f"a multiple of y: a term y·Σ_j (…), by which the entries of a {row} depend on one another, is missing or "
            "wrong."
        )
    if n > 3 and spanned(ones, centred):
        return f"a number and a multiple of {name}: {mean}, and {variance}, are missing or wrong."
    return None


def inside_attention(e, name):
    """y = softmax(scale·Q·Kᵀ)·V: the softmax between its two products, or a product with the wrong array."""
    arrays = [x for x in e.subject.tensors.values() if x.ndim >= 2]
    if len(arrays) != 3 or e.subject.params:
        return None
    query, key, value = arrays
    masks = [*e.subject.masks.values()] or [np.array(True), np.tri(query.shape[-2], key.shape[-2], dtype=bool)]
    scales = 1.0, query.shape[-1] ** -0.5, *(number for _, number in own_numbers(e.subject.f))
    for scale, mask in itertools.product(scales, masks):
        try:
            A, _ = ops.masked_softmax(scale * query @ key.swapaxes(-1, -2), mask)
            if close(A @ value, e.y, np.ones(e.y.shape, bool)):
                break
        except ValueError:
            return None
    else:
        return None
    yours, right, known = e.pair(name)
    dA = e.dy @ value.swapaxes(-1, -2)
    dS = A * (dA - (A * dA).sum(-1, keepdims=True))      # not by the op's backward: it may be what is wrong
    diagonal = "differentiated on its diagonal only"
    for dscores, words in (
        (dA, "skipped: dA goes on in the place of dS = A·(dA − Σ_k A_k·dA_k)."),
        (A * dA, f"{diagonal}: −A·Σ_k A_k·dA_k, the term that couples the keys, is missing."),
        (A * (1 - A) * dA, f"{diagonal}: dS = A·(dA − Σ_k A_k·dA_k) is right."),
    ):
        both = scale * dscores @ key, scale * dscores.swapaxes(-1, -2) @ query
        if any(close(yours, gradient, known) for gradient in both):
            return f"The softmax between the two products is {words}"
    if query.shape == key.shape:
        turned = dS.swapaxes(-1, -2)
        products = {"dS·Q": dS @ query, "dSᵀ·Q": turned @ query, "dS·K": dS @ key, "dSᵀ·K": turned @ key}
        belongs = next((w for w in ("dS·K", "dSᵀ·Q") if close(right, scale * products[w], known)), None)
        said = next((w for w, g in products.items() if close(yours, scale * g, known)), None)
        if said and belongs:
            return f"It is scale·{said} where scale·{belongs} belongs."
    return None


def sum_of_products(e, name):
    """A tensor that serves every row, like γ: Σ dy·a with another a."""
    yours, right, known = e.pair(name)
    if e.y.shape == right.shape or e.y.shape[e.y.ndim - right.ndim :] != right.shape:
        return None
    found = {}
    for label, a in _row_arrays(e).items():
        total = (e.dy * a).sum(axis=tuple(range(e.y.ndim - right.ndim)))
        label = label.strip()
        found |= {word: label for word, g in (("yours", yours), ("right", right)) if close(g, total, known)}
    if "yours" not in found:
        return None
    instead = f"; right is Σ dy·{found['right']}" if "right" in found else ""
    return f"It is Σ dy·{found['yours']} over the rows{instead}."


def _row_arrays(e):
    arrays = {"y": e.y, "1": np.ones_like(e.y)}
    for name, x in e.subject.tensors.items():
        if x.shape == e.y.shape:
            centred = x - x.mean(-1, keepdims=True)
            arrays |= {name: x, f"({name} − mean)": centred}
            for eps in (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 0.0):
                arrays["x̂" + " " * len(arrays)] = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps)
    return arrays


def factor_entry_by_entry(e, name):
    """yours·a = right, or right·a = yours, for a known array a."""
    yours, right, known = e.pair(name)
    arrays = dict(e.subject.tensors) | {n: m.astype(float) for n, m in e.subject.masks.items()} | {"y": e.y}
    for label, a in arrays.items():
        a = fitted(a, right.shape)
        if a is None or (np.abs(a - a.flat[0]) < CLOSE).all():
            continue
        if close(yours * a, right, known):
            return f"Entry by entry, the factor {label} is missing."
        if close(right * a, yours, known):
            return f"Entry by entry, the factor {label} is there once too often."
    return None


def factor_in_every_row(e, name):
    """yours = c·right with a c of its own for each row."""
    yours, right, known = e.pair(name)
    n = right.shape[-1] if right.ndim > 1 else 0
    if n < 3 or not known.all():
        return None
    a, b = yours.reshape(-1, n), right.reshape(-1, n)
    c = (a * b).sum(-1, keepdims=True) / (b * b).sum(-1, keepdims=True)
    rows = np.isfinite(c)[:, 0]
    if rows.sum() < 2 or not c[rows].all() or np.abs(a[~rows]).max(initial=0) > 0:
        return None
    if np.abs((a - c * b)[rows]).max() > CLOSE * np.abs(a).max():
        return None
    some = ", ".join(f"{value:.6g}" for value in c[rows][:3, 0])
    return (
        f"Every row is off by a factor of its own ({some}, …): a factor that each row has one of (1/σ in layer norm, "
        "the sum of a softmax, a length) is missing or wrong."
    )

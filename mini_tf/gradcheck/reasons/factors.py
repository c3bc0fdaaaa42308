"""Patterns of wrong gradients: the right one times a factor, and what the factor may mean."""

import inspect
import math
from typing import Any

from mini_tf.gradcheck.measuring.elsewhere import elsewhere
from mini_tf.gradcheck.measuring.evidence import CLOSE, DUST, Evidence
from mini_tf.gradcheck.planting.editing import closure_of
from mini_tf.gradcheck.reasons.fit import elementwise
from mini_tf.gradcheck.reasons.words import Words
from mini_tf.layers import Layer

import numpy as np


def constant_factor(e: Evidence, name: str) -> Words | None:
    """One number for all entries."""
    factor = the_factor(e, name)
    if factor is None:
        return None
    others = [other for other in elsewhere(e) if name in other.wrong and name in other.gradients]
    factors = [the_factor(other, name) for other in others]
    if any(number is None or (number < 0) != (factor < 0) for number in factors):
        return None                                      # one number at this point, by chance
    same_everywhere = others and all(abs(number / factor - 1) < CLOSE for number in factors)
    if abs(factor + 1) < CLOSE:
        return Words("The sign is wrong: everywhere −1 times the right gradient.")
    size = abs(factor)
    words = f"Everywhere {max(size, 1 / size):.6g} × too {'large' if size > 1 else 'small'}"
    words += " and the sign is wrong" if factor < 0 else ""
    each_by_itself = elementwise(e, name) is not None
    meanings = _meanings(e, size, each_by_itself)
    for other, number in zip(others, factors):           # those that fit there, too
        also = _meanings(other, abs(number), each_by_itself)
        meanings = {label: said for label, said in meanings.items() if label in also}
    sizes = [_of_sizes(point, size > 1) for point in (e, *others)]
    same = {}                                            # what is the same number everywhere is said once
    for label, said in meanings.items():
        same.setdefault(tuple(of.get(label, (label,))[0] for of in sizes), said)
    meanings = list(same.values())
    if not (meanings or same_everywhere):
        if e.slopes[name].size < 2:
            return None                                  # any single number is a multiple of another
        if others:
            return _changing(e, factor, others, factors)
    if len(meanings) == 1 and meanings[0].startswith(e.upstream):        # dy is random, and so no other number
        return Words(f"{words}: {meanings[0]}.")
    return Words(f"{words}.", "; or ".join(meanings[:3]) + "." if meanings else "")


def _changing(e, factor, others, factors):
    """What is said of a factor that is not the same everywhere, and that no number of the function explains."""
    farthest = max(factors, key=lambda number: abs(number / factor - 1))
    words = "It is a multiple of the right gradient, but not everywhere by the same number: "
    words += f"{factor:.6g} × at one point, {farthest:.6g} × with"
    alike = [k for k, other in enumerate(others) if other.sizes == e.sizes and other.option == e.option]
    if alike and all(abs(factors[k] / factor - 1) < CLOSE for k in alike):
        return Words(
            f"{words} arrays of other sizes or other options.",
            "a factor made of sizes or options is missing or wrong.",
        )
    return Words(
        f"{words} other arrays.",
        "a factor that depends on the arrays (a length, a norm, a sum, exp(t) of a parameter) is missing or wrong.",
    )


def the_factor(e: Evidence, name: str) -> float | None:
    """The number by which the gradient is off everywhere, or None."""
    yours, right, known = e.pair(name)
    yours, right = yours[known], right[known]
    if not right.any() or right.size < min(2, known.size):
        return None
    factor = float(yours @ right / (right @ right))
    off = np.abs(yours - factor * right).max()
    if abs(factor) < DUST or abs(factor - 1) < 100 * CLOSE:
        return None
    return None if off > CLOSE * np.abs(right).max() * max(1.0, abs(factor)) else factor


def factor_in_every_row(e: Evidence, name: str) -> Words | None:
    """One number for each row."""
    yours, right, known = e.pair(name)
    n = right.shape[-1] if right.ndim > 1 else 0
    if n < 3 or not known.all():
        return None
    yours, right = yours.reshape(-1, n), right.reshape(-1, n)
    factor = (yours * right).sum(-1, keepdims=True) / (right * right).sum(-1, keepdims=True)
    rows = np.isfinite(factor)[:, 0]                     # False where the right gradient is 0: there yours must be, too
    if rows.sum() < 2 or not factor[rows].all() or yours[~rows].any():
        return None
    if np.abs((yours - factor * right)[rows]).max() > CLOSE * np.abs(yours).max():
        return None
    some = ", ".join(list(dict.fromkeys(f"{value:.6g}" for value in factor[rows][:, 0]))[:3])
    return Words(
        f"Every row is the right one times a number of its own ({some}, …).",
        "what each row as a whole is multiplied by (1/σ in layer norm, the sum of a softmax, a length, a count, the "
        "slope of a row's loss) is missing or wrong.",
    )


# What a factor may mean -----------------------------------------------------------------------------------------------


def _meanings(e, factor, each_by_itself):
    """{label: words} of what it may mean that a gradient is `factor` times the right one, the likeliest first.

    The function's own numbers come before sizes, because with few sizes everything can be explained.
    each_by_itself: the function acts on every entry by itself, so that no size can have to do with it
    """
    large, ratio = factor > 1, max(factor, 1 / factor)

    def fits(number):
        return number > 0 and abs(max(number, 1 / number) / ratio - 1) < CLOSE

    if not np.ndim(e.dy) and abs(factor * e.dy - 1) < CLOSE:
        return {"dy": f"{e.upstream}, the upstream gradient, is not used"}
    if not np.ndim(e.dy) and abs(factor / e.dy - 1) < CLOSE:
        return {"dy": f"{e.upstream}, the upstream gradient, is multiplied in twice"}
    own = {}                                             # {number: its first name, a word if it has one}
    numbers = {name: x for name, x in (e.options | e.everything).items() if type(x) in (int, float)}
    given = [(name, float(x)) for name, x in numbers.items() if x not in (0, 1)]
    others = own_numbers(e.subject.f) + own_numbers(e.backward)      # an option's default is not what it is here
    known = given + [(name, x) for name, x in others if name not in numbers and f"self.{name}" not in numbers]
    for label, number in sorted(known, key=lambda one: not one[0][0].isalpha()):
        own.setdefault(number, label)
    rates = {1 - number: f"(1 − {label})" for number, label in own.items() if 0 < number < 1 and label[0].isalpha()}
    squares = {number**2: f"{label}²" for number, label in own.items() if label[0].isalpha()}
    for numbers in (own, rates, squares):
        found = {label: _of_a_number(label, number, large) for number, label in numbers.items() if fits(number)}
        if found:
            return found
    sizes = {} if each_by_itself else _of_sizes(e, large)
    found = {label: words for label, (number, words) in sizes.items() if fits(number)}
    if fits(2):
        found["two"] = "the 2 of a square is counted twice, or something is added twice" if large else (
            "the 2 of a square is missing, or half of a sum")  # fmt: skip
    return found


def _of_a_number(label, number, large):
    extra, missing = (label, f"1/{label}") if (number > 1) == large else (f"1/{label}", label)
    value = f" ({label} = {number:.4g})" if label != f"{number:g}" else ""
    return f"a factor {missing} is missing, or there is a factor {extra} too many{value}"


def _of_sizes(e, large):
    """{label: (number, words)} of the sizes of axes, their square roots, and of the rows that count

    """
    mean, one, other = "a mean where a sum belongs, or divided twice", "√", "1/√"
    if large:
        mean, one, other = "a mean is missing there, or a sum taken twice", "1/√", "√"
    given = e.everything | {"y": e.y}
    sizes = {}
    for name, x in given.items():
        shape = getattr(x, "shape", ())
        if len(shape) > 1:
            sizes[f"the number of rows of {name}"] = math.prod(shape[:-1])
            sizes[f"the number of entries of {name}"] = math.prod(shape)
        sizes |= {f"the size of axis {axis} of {name}": size for axis, size in enumerate(shape)}
    counted = {}                                         # rows that are not padding, nor ignored
    for name, slopes in e.slopes.items():
        if slopes.ndim > 1 and not np.isnan(slopes).any():
            few = int(slopes.reshape(-1, slopes.shape[-1]).any(-1).sum())
            counted[f"the number of rows of {name} that count"] = few
    found = {label: (size, f"{size} is {label}: {mean}") for label, size in (sizes | counted).items() if size > 1}
    if e.subject.ids or e.subject.masks:
        for counts, few in counted.items():
            for what, size in sizes.items():
                if size > few:
                    words = f"{size}/{few}, and {few} is {counts}, {size} is {what}: divided by the wrong one"
                    found[f"{what} over {counts}"] = size / few, words
    for name in e.slopes:
        x = e.everything[name]
        if np.ndim(x) > 1:
            m = np.shape(x)[-1]
            scale = f"a factor {one}{m} is missing, or {other}{m} is used twice"
            words = f"√{m}, and {m} is the size of the last axis of {name}: {scale}"
            found[f"√ of the last axis of {name}"] = math.sqrt(m), words
    return found


def own_numbers(f: Any, depth: int = 3) -> list[tuple[str, float]]:
    """[(name, number)] of the floats that f works with: options, defaults, its closure's, its layer's attributes.

    Those written in its source come last, and are their own names.
    """
    owner = getattr(f, "__self__", f)
    values = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    values |= getattr(f, "keywords", {})                 # of a functools.partial
    function, literals = inspect.unwrap(getattr(f, "__func__", f)), []
    if inspect.isfunction(f) and function is not f:      # what wraps it may hold its options
        values |= closure_of(f)
    if inspect.isfunction(function):
        values |= closure_of(function)
        values |= {name: p.default for name, p in inspect.signature(function).parameters.items()}
        literals = [(f"{c:g}", c) for c in function.__code__.co_consts if type(c) is float]
    values |= {k: v for value in list(values.values()) if isinstance(value, dict) for k, v in value.items()}
    numbers = [(str(name), float(value)) for name, value in values.items() if type(value) is float]
    inside = [v for v in values.values() if isinstance(v, Layer) or inspect.isfunction(v) or inspect.ismethod(v)]
    deeper = [number for g in inside if depth for number in own_numbers(g, depth - 1)]
    return numbers + deeper + literals

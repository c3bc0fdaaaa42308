"""Numbers that a gradient is off by, and what they mean."""

import inspect
import math

from mini_tf.gradcheck.measuring.evidence import CLOSE
from mini_tf.layers import Layer

import numpy as np


def meanings_of(e, factor, sizes_count=True):
    """What it can mean for a gradient to be `factor` times the right one, in words, the likeliest first; [] if nothing.

    The function's own numbers come first, because sizes explain too much: with few of them, they explain everything.
    sizes_count: False for a function that acts on each entry by itself; no size can have to do with it.
    """
    ratio = max(factor, 1 / factor)
    for numbers in (_own_meanings(e, factor), _size_meanings(e, factor > 1, sizes_count)):
        fitting = [words for number, words in numbers if abs(number / ratio - 1) < CLOSE]
        if fitting:
            return fitting
    return []


def _own_meanings(e, factor):
    """[(number > 1, words)] of dy, y and the function's own numbers; 1 − x only where no x fits"""
    large, ratio = factor > 1, max(factor, 1 / factor)
    found = []
    if not np.ndim(e.dy):
        unused = abs(factor * e.dy - 1) < CLOSE
        meaning = "dy, what comes from above, is not used" if unused else "dy, what comes from above, is used twice"
        found.append((max(e.dy, 1 / e.dy), meaning))
    if not e.y.ndim and e.y != 0:
        found.append((max(abs(float(e.y)), 1 / abs(float(e.y))), "y itself is that number: a factor y, or 1/y"))
    names = {value: label for label, value in reversed(own_numbers(e.subject.f) + own_numbers(e.backward))}
    own = [(label, value) for value, label in names.items()]
    rates = [(f"(1 − {label})", 1 - value) for label, value in own if not label[0].isdigit() and 0 < value < 1]
    for numbers in (own, rates):
        for name, number in numbers:
            if number > 0 and number != 1:
                extra, missing = (name, f"1/{name}") if (number > 1) == large else (f"1/{name}", name)
                value_too = f" ({name} = {number:.4g})" if name != f"{number:g}" else ""
                meaning = f"the factor {missing} is missing, or {extra} there once too often{value_too}"
                found.append((max(number, 1 / number), meaning))
        if any(abs(number / ratio - 1) < CLOSE for number, _ in found):
            break
    return found


def _size_meanings(e, large, sizes_count):
    """[(number > 1, words)] of 2 and of the sizes of axes"""
    if large:
        mean, scale = "a mean is missing there, or a sum taken twice", "is missing"
        found = [(2.0, "the 2 of a square is counted twice, or something is added twice")]
    else:
        mean, scale = "a mean where a sum belongs, or divided twice", "is used twice"
        found = [(2.0, "the 2 of a square is missing, or half of a sum")]
    if not sizes_count:
        return found
    sizes = _sizes(e)
    found += [(size, f"{size} is {what}: {mean}") for size, what in sizes.items() if size > 1]
    counted = [size for size, what in sizes.items() if what.endswith("count")]
    if e.subject.ids or e.subject.masks:
        found += [
            (size / few, f"{size}/{few}, and {few} is {sizes[few]}, {size} is {sizes[size]}: divided by the wrong one")
            for few in counted for size in sizes if size > few > 0
        ]  # fmt: skip
    last = {np.shape(x)[-1]: name for name, x in reversed(e.subject.tensors.items()) if np.ndim(x) > 1}
    return found + [
        (math.sqrt(m), f"√{m}, and {m} is the size of the last axis of {name}: the scale 1/√{m} {scale}")
        for m, name in sorted(last.items()) if m > 1
    ]  # fmt: skip


def _sizes(e):
    """{size: what has it}: of axes, of rows, of entries, of the ids that count"""
    sizes = {}
    named = dict(zip(e.subject.names, e.subject.inputs)) | e.subject.tensors | {"y": e.y}
    for name, x in named.items():
        shape = np.shape(x)
        for axis, size in enumerate(shape):
            sizes.setdefault(size, f"the size of axis {axis} of {name}")
        if len(shape) > 1:
            sizes.setdefault(math.prod(shape[:-1]), f"the number of rows of {name}")
            sizes.setdefault(math.prod(shape), f"the number of entries of {name}")
    for name, slopes in e.slopes.items():
        rows = np.nan_to_num(slopes).reshape(-1, slopes.shape[-1]).any(-1).sum() if slopes.ndim > 1 else 0
        sizes.setdefault(int(rows), f"the number of rows of {name} that count")
    return sizes


def own_numbers(f, depth=3):
    """[(name, number)] of the floats that f works with: options, defaults, what it encloses, its layer's attributes.

    Those that stand in its source come last, and are their own names.
    """
    owner = getattr(f, "__self__", f)
    values = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    values |= getattr(f, "keywords", {})                 # of a functools.partial
    function = inspect.unwrap(f) if inspect.isfunction(f) else getattr(f, "__func__", None)
    literals = []
    if function is not None:
        values |= inspect.getclosurevars(function).nonlocals
        values |= {name: p.default for name, p in inspect.signature(function).parameters.items()}
        literals = [(f"{c:g}", c) for c in function.__code__.co_consts if type(c) is float]
    values |= {k: v for value in list(values.values()) if isinstance(value, dict) for k, v in value.items()}
    numbers = [(str(name), float(value)) for name, value in values.items() if type(value) is float]
    inside = [v for v in values.values() if isinstance(v, Layer) or inspect.isfunction(v) or inspect.ismethod(v)]
    deeper = [number for g in inside if depth for number in own_numbers(g, depth - 1)]
    return numbers + deeper + literals

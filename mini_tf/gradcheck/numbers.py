"""Numbers that a gradient is off by, and what they mean."""

import inspect
import math

import numpy as np


def known_numbers(e, name, too_large):
    """[(number > 1, what it means if d{name} is so many times too large, or too small)], the likeliest first."""
    found = []
    if not np.ndim(e.dy):
        ratio = 1 / e.dy if too_large else e.dy
        found += [(ratio, "dy, what comes from above, is not used"), (1 / ratio, "dy, what comes from above, is used twice")]
    for label, value in _own_numbers(e.subject.f):
        for meaning, number in ((f"{label} = {value:g}", value), (f"1 − {label} = {1 - value:g}", 1 - value)):
            if number > 0 and number != 1:
                # A factor below 1 that is missing leaves the gradient too large; one that comes twice, too small.
                missing = too_large == (number < 1)
                found.append((max(number, 1 / number), f"the factor {meaning} is {'missing' if missing else 'used twice or upside down'}"))
    found += [(2.0, "the factor 2 of a square is counted twice" if too_large else "the factor 2 of a square is missing")]
    sizes = {}
    for tensor, x in {**dict(zip(e.subject.names, e.subject.inputs)), **e.subject.tensors, "y": e.y}.items():
        shape = np.shape(x)
        for axis, size in enumerate(shape):
            sizes.setdefault(size, f"the size of axis {axis} of {tensor}")
        if len(shape) > 1:
            sizes.setdefault(math.prod(shape[:-1]), f"the number of rows of {tensor}")
            sizes.setdefault(math.prod(shape), f"the number of entries of {tensor}")
    for size, what in sizes.items():
        if size > 1:
            found.append((size, f"{size} is {what}; {_of_a_mean(too_large)}"))
            found.append((math.sqrt(size), f"{math.sqrt(size):.4g} is the square root of {size}, {what}; {_of_a_scale(too_large)}"))
    return found


def _of_a_mean(too_large):
    return "a mean is missing, or a sum is taken twice" if too_large else "a mean where a sum belongs, or divided twice"


def _of_a_scale(too_large):
    return "the scale 1/√ is missing" if too_large else "the scale 1/√ is used twice"


def _own_numbers(f, depth=3):
    """[(name, number)] of the floats that f works with: what it encloses, its options, its layer's attributes."""
    owner = getattr(f, "__self__", f)
    values = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    values |= getattr(f, "keywords", {})                 # of a functools.partial
    try:
        values |= inspect.getclosurevars(inspect.unwrap(f)).nonlocals
    except TypeError:
        pass
    values |= {k: v for value in list(values.values()) if isinstance(value, dict) for k, v in value.items()}
    numbers = [(name, float(value)) for name, value in values.items() if type(value) is float]
    inside = [value for value in values.values() if inspect.isfunction(value) or inspect.ismethod(value)]
    return numbers + [number for g in inside if depth for number in _own_numbers(g, depth - 1)]

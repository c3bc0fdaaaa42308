"""Shapes: checking them on the way in, undoing a broadcast on the way back."""

import re
from functools import lru_cache

from mini_tf.backend import array_module

import numpy
from numpy import ndarray

KINDS = {"float": "f", "int": "iu", "bool": "b"}


def check(signature, *arrays):
    """Hold the arrays of one call against the op's signature, and give their library (NumPy or CuPy).

    check("linear: x (…, in), W (in, out), b (out)", x, W, b)

    A letter that occurs twice must be the same size twice; "…" stands for any number of leading axes, the same
    ones wherever it occurs; (*) is any shape. Arrays are floating unless `int` or `bool`
    follows the shape. None, an optional argument that was left out, is passed over.

    Raises ValueError (TypeError where two arrays live on different devices) naming op, argument, what came, what
    was expected.
    """
    if all(type(array) is ndarray or array is None for array in arrays):
        xp = numpy
    else:
        op, expected = _parse(signature)
        try:
            xp = array_module(**{name: array for (name, _, _), array in zip(expected, arrays)})
        except TypeError as error:
            raise TypeError(f"{op}: {error}") from None
    _check(signature, tuple([None if array is None else (array.shape, array.dtype) for array in arrays]))
    return xp


@lru_cache(4096)
def _check(signature, given):
    """Raise ValueError unless the (shape, dtype) fit. What has been found to fit is not looked at again."""
    op, expected = _parse(signature)
    sizes = {}                                           # axis letter -> (its size, the argument that fixed it)
    for (name, axes, kind), described in zip(expected, given):
        if described is None:
            continue
        shape, dtype = described
        if dtype.kind not in KINDS[kind]:
            raise ValueError(f"{op}: {name} has dtype {dtype}, expected {_dtype_wanted(name, kind)}")
        if axes is not None and not _fits(shape, axes, sizes, name):
            raise ValueError(f"{op}: {name} has shape {shape}, expected {_explain(axes, sizes)}")


def check_ids(op, name, ids, size, what):
    """Raise ValueError unless every id is in 0 … size − 1; the message names the first that is not."""
    bad = (ids < 0) | (ids >= size)
    if bad.any():
        first = int(ids[bad][0])
        raise ValueError(f"{op}: {name} has the id {first}, expected ids from 0 to {size - 1} ({size} {what})")


def sum_to(gradient, shape):
    """Undo a broadcast: sum the gradient over the axes that the forward repeated, back to `shape`.

    (B, T, n) summed to (n,) adds over B and T; to (B, 1, n) over T.
    """
    if gradient.shape == tuple(shape):
        return gradient
    leading = gradient.ndim - len(shape)
    repeated = tuple(leading + i for i, size in enumerate(shape) if size == 1)
    return gradient.sum(axis=(*range(leading), *repeated), keepdims=True).reshape(shape)


def transpose(x):
    """The last two axes exchanged: a batch of matrices, each transposed.  (…, i, j) → (…, j, i)"""
    return x.swapaxes(-1, -2)


@lru_cache
def _parse(signature):
    op, _, arguments = signature.partition(": ")
    parsed = []
    for name, shape, kind in re.findall(r"(\w+) \(([^)]*)\) ?(int|bool)?", arguments):
        axes = None if shape == "*" else tuple(axis.strip() for axis in shape.split(",") if axis.strip())
        parsed.append((name, axes, kind or "float"))
    return op, tuple(parsed)


def _fits(shape, axes, sizes, name):
    if "…" in axes:
        named = len(axes) - 1
        if len(shape) < named:
            return False
        groups = [shape[: len(shape) - named], *shape[len(shape) - named:]]
    elif len(shape) == len(axes):
        groups = list(shape)
    else:
        return False
    return all(sizes.setdefault(axis, (size, name))[0] == size for axis, size in zip(axes, groups))


def _explain(axes, sizes):
    known = [f"{axis} = {sizes[axis][0]} as in {sizes[axis][1]}" for axis in axes if axis in sizes]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})" + (f" with {', '.join(known)}" if known else "")


def _dtype_wanted(name, kind):
    return {
        "float": f"a floating dtype; try {name}.astype(float)",
        "int": "an integer dtype",
        "bool": f"a boolean dtype; try {name} != 0",
    }[kind]

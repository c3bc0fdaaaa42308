"""Shapes: checking them on the way in, undoing a broadcast on the way back."""

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from mini_tf.backend import array_module, class_and_device, on_current_device, to_device_of
from mini_tf.types import Array

from numpy import generic, ndarray

KINDS = {"float": "f", "int": "iu", "bool": "b"}
TWIN_DTYPES = "f?bhilqBHILQ"                             # as NumPy's letters: float32, booleans, integers
CACHE_SIZE = 4096                                        # combinations of shapes, dtypes and devices, per op
MISSING = "not checked yet"


class Arguments:
    """The array arguments of a function, as a signature such as "x (…, in), W (in, out), b (out)" describes them."""

    def __init__(self, function: Callable[..., Any], signature: str):
        self.op: str = function.__name__
        self.signature = signature
        self.cache: dict[Any, str | None] = {}           # shapes, dtypes and devices -> the result of the check
        positions = {name: position for position, name in enumerate(inspect.signature(function).parameters)}
        self.expected: list[tuple[str, tuple[str, ...] | None, str]] = []        # (name, axes, None for any; kind)
        for name, shape, kind in re.findall(r"(\w+) \(([^)]*)\) ?(int|bool)?", signature):
            axes = None if shape == "*" else tuple(axis.strip() for axis in shape.split(",") if axis.strip())
            self.expected.append((name, axes, kind or "float"))
        self.positions: list[tuple[str, int]] = [(name, positions[name]) for name, _, _ in self.expected]
        self.names: list[str] = [name for name, _ in self.positions]
        self.order: list[str] = list(positions)
        self.leading: int = next((i for i, name in enumerate(self.order) if name not in self.names), len(self.order))

    def option(self, name: str, value: Any) -> Any:
        """The value of an argument; of a number that is none of the arrays, a Python number.

        A NumPy number would turn float32 into float64. Raises ValueError for a number that is not finite.
        """
        if name in self.names:
            return value
        if isinstance(value, generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{self.op}: {name} is {value}, expected a finite number")
        return value

    def by_position(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same for arguments by position"""
        return tuple(map(self.option, self.order, inputs)) + inputs[len(self.order) :]

    def check(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> str | None:
        """Check the arguments of a call. The name of their library, if its twins can take them: floats in float32.

        Raises ValueError for a wrong shape or dtype, TypeError for what is no array and for mixed devices; the message
        names the op, the argument, what was given and what was expected.
        """
        by_position = len(inputs)
        properties: list[Any] = []
        for name, position in self.positions:
            array = inputs[position] if position < by_position else options.get(name)
            if array is None:
                properties.append(None)
            elif type(array) is ndarray:
                properties.append((array.shape, array.dtype))
            else:
                shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
                properties.append((shape, dtype, class_and_device(array)))
        key = tuple(properties)
        library = self.cache.get(key, MISSING)
        if library is MISSING:                           # each combination is checked once
            library = self._library(inputs, options)
            if not self._check(key):
                library = None
            if len(self.cache) >= CACHE_SIZE:
                self.cache.clear()
            self.cache[key] = library
        return library

    def _library(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> str | None:
        """The name of the library of all arrays. None if its twins cannot take them: an array of a derived class, or
        one on a GPU that is not the current one.
        """
        given = {name: inputs[i] if i < len(inputs) else options.get(name) for name, i in self.positions}
        arrays = {name: array for name, array in given.items() if array is not None}
        try:
            library = array_module(**arrays)
        except TypeError as error:
            raise TypeError(f"{self.op}: {error}") from None
        for name, x in arrays.items():
            if not hasattr(x, "shape"):
                raise TypeError(f"{self.op}: {name} is {x!r}, expected an array")
        own = getattr(library, "ndarray", None)
        twins_apply = all(type(x) is own and on_current_device(x) for x in arrays.values())
        return library.__name__ if twins_apply else None

    def _check(self, properties: tuple[Any, ...]) -> bool:
        """Raise ValueError unless shapes and dtypes are as expected; True if a twin can take these dtypes."""
        sizes: dict[str, tuple[Any, str]] = {}           # axis -> (its size, the argument that fixed it)
        for (name, axes, kind), array in zip(self.expected, properties):
            if array is None:
                continue
            shape, dtype, *_ = array
            if dtype.kind not in KINDS[kind]:
                raise ValueError(f"{self.op}: {name} has dtype {dtype}, expected {_expected_dtype(name, kind)}")
            if dtype.kind == "f" and dtype.itemsize < 4:
                raise ValueError(f"{self.op}: {name} has dtype {dtype}, expected float32 or float64: in {dtype} the "
                                 "squares and sums of an op would overflow")  # fmt: skip
            if axes is not None and not _fits(shape, axes, sizes, name):
                raise ValueError(f"{self.op}: {name} has shape {shape}, expected {_expected_shape(axes, sizes)}")
        dtypes = [dtype for _, dtype, *_ in filter(None, properties)]
        return all(dtype.char in TWIN_DTYPES and dtype.isnative for dtype in dtypes)


def check_ids(op: str, name: str, ids: Array, size: int, what: str) -> None:
    """Raise ValueError unless every id is in 0 … size − 1; the message names the first that is outside."""
    bad = (ids < 0) | (ids >= size)
    if bad.any():
        first = int(ids[bad][0])
        raise ValueError(f"{op}: {name} has the id {first}, expected ids from 0 to {size - 1} ({size} {what})")


def ids_to_device_of(
    op: str, name: str, ids: Array, reference: Array, size: int, what: str, absent: int | None = None
) -> Array:  # fmt: skip
    """`to_device_of` for ids, which are checked on the host: on a GPU, that would mean waiting for the result."""
    if isinstance(ids, ndarray) and not isinstance(reference, ndarray):
        check_ids(op, name, ids if absent is None else ids[ids != absent], size, what)
    return to_device_of(ids, reference)


def sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Undo a broadcast: sum the gradient over the axes that the forward repeated, back to `shape`.

    (B, T, n) summed to (n,) adds over B and T; to (B, 1, n) over T.
    """
    if gradient.shape == tuple(shape):
        return gradient
    leading = gradient.ndim - len(shape)
    repeated = tuple(leading + i for i, size in enumerate(shape) if size == 1)
    return gradient.sum(axis=(*range(leading), *repeated), keepdims=True).reshape(shape)


def as_matrix(x: Array) -> Array:
    """x as a matrix with a row for each of its vectors.  (…, k) → (rows, k)

    Unlike x.reshape(-1, k), it works for k = 0, too.
    """
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def transpose(x: Array) -> Array:
    """Swap the last two axes: a batch of matrices, each transposed.  (…, i, j) → (…, j, i)"""
    return x.swapaxes(-1, -2)


def _fits(shape: tuple[int, ...], axes: tuple[str, ...], sizes: dict[str, tuple[Any, str]], name: str) -> bool:
    groups: list[Any]                                    # the size of each axis; of …, a tuple of sizes
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


def _expected_shape(axes: tuple[str, ...], sizes: dict[str, tuple[Any, str]]) -> str:
    known = [f"{axis} = {sizes[axis][0]} as in {sizes[axis][1]}" for axis in axes if axis in sizes]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})" + (f" with {', '.join(known)}" if known else "")


def _expected_dtype(name: str, kind: str) -> str:
    return {
        "float": f"a floating dtype; try {name}.astype(float)",
        "int": "an integer dtype",
        "bool": f"a boolean dtype; try {name} != 0",
    }[kind]

"""The arrays of a page: each once, in part if it is large, with the meaning of its axes."""

import base64
import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

from mini_tf.backend import to_host
from mini_tf.explore.evaluating import is_array
from mini_tf.gradcheck import Slopes
from mini_tf.types import Array

import numpy as np

LONGEST = 128            # entries shown along an axis,
ABOUT = 200              # characters of a page that say what an array is
MOST = 4096              # and of an array, where a page has room for it
ROUNDING = {2: 1e-2, 4: 5e-5, 8: 1e-9}                    # of a gradient in 2, 4, 8 bytes, relative to its largest
FORMS = {"f": "f4", "i": "i4", "u": "i4", "b": "u1"}      # how a page holds dtypes of a kind

Reference = int | dict[str, str]                         # an array's number, or {"text": …} for numbers and the like


@dataclass
class Axes:
    """What the axes of a model's arrays are, by their sizes.

    sizes    {size: kind}: "word", "source word", "vocabulary", …
    labels   {kind: labels of its entries}
    shown    {kind: indices of the entries that are shown}, of a vocabulary too large for a page
    heads    how many; only the second of four axes is taken for the heads
    columns  n, the size of a word's vector: the last axis of fewer than four is taken for its columns first
    words    how many; in a batch of one, the last axis but one is the words', and of scores the last one, too
    m        the size of a head's vector
    """

    sizes: dict = field(default_factory=dict)
    labels: dict = field(default_factory=dict)
    shown: dict = field(default_factory=dict)
    heads: int = 0
    columns: int = 0
    words: int = 0
    m: int = 0

    def kinds(self, shape: tuple[int, ...]) -> list[str]:
        """The kind of each axis, "" where that is not known"""
        kinds = [self.sizes.get(size, "") for size in shape]
        if shape and len(shape) < 4 and shape[-1] == self.columns:
            kinds[-1] = "column"
        if len(shape) == 4 and shape[1] == self.heads:
            kinds[1] = "head"
        if len(shape) > 2 and shape[0] == 1:
            kinds[0] = "example"
            if shape[-2] == self.words:
                kinds[-2] = "word"
            if len(shape) == 4 and shape[-1] == self.words != self.m:
                kinds[-1] = "word"
        return kinds


class Store:
    """Turns values into references: numbers of arrays, or short texts.

    axes     the Axes of the arrays;  most: entries that are shown of one
    arrays   what the page holds of each: see `described`
    coarse   while True, new floating arrays are stored with three or four digits
    """

    coarse = False

    def __init__(self, axes: Axes | None = None, most: int = MOST):
        self.axes, self.most = axes or Axes(), most
        self.arrays: list[dict[str, Any]] = []
        self.numbers: dict[Any, int] = {}                # of arrays, by shape and content
        self.same_entries: dict[Any, list[int]] = {}     # numbers of the arrays with this content, of any shape
        self.disagreeing: list[tuple[int, str, dict[str, Any]]] = []

    def refer(self, value: Any) -> Reference | None:
        """The number of an array; a dict {"text": …} for numbers and the like; None for what cannot be shown."""
        if is_array(value) or is_on_gpu(value):
            value = to_host(value)
            if value.dtype.kind not in FORMS:
                return None
            return self._number(value) if value.ndim else self.text(_scalar(value))
        if isinstance(value, bool) or value is None or isinstance(value, (int, float, str)):
            return self.text(repr(value) if not isinstance(value, float) else _scalar(value))
        if isinstance(value, tuple) and value and all(isinstance(one, (int, float)) for one in value):
            return self.text(repr(value))
        return None

    @property
    def characters(self) -> int:
        """About how many characters the arrays and their slopes take on a page, which has the same bytes once"""
        slopes = [found for about in self.arrays for found in about.get("measured", {}).values()]
        texts = {about["data"] for about in self.arrays} | {text for found in slopes for text in found.values() if text}
        return ABOUT * len(self.arrays) + sum(map(len, texts))

    @staticmethod
    def text(words: str) -> dict[str, str]:
        """The reference for a text, which is shown as it is"""
        return {"text": words if len(words) < 200 else words[:197] + "…"}

    def _number(self, x):
        x = np.asarray(x)
        key = self._key(x)
        if key not in self.numbers:
            number = self.numbers[key] = len(self.arrays)
            self.arrays.append(self.described(x))
            self.same_entries.setdefault(key[1:], []).append(number)
        return self.numbers[key]

    def is_float_array(self, reference: Reference | None) -> bool:
        """True for the number of a floating array"""
        return isinstance(reference, int) and self.arrays[reference]["dtype"].startswith("float")

    def add_slopes(self, gradient: Array, name: str, of: str, entries: Array, slopes: Slopes) -> None:
        """Add measured slopes to a gradient's array, and to every other that has the same entries in another shape.

        name: "dx"; of: "op", Σ dy·y of the op itself, or "loss"; entries: flat indices; slopes: their Slopes. Slopes
        that disagree with the gradient belong to it alone: they go to `disagreeing`, [(number, name, measured)].
        """
        good = ~slopes.kink
        whole = good.all() and np.array_equal(entries, self.entries_shown(np.shape(gradient)))
        found = {
            "entries": None if whole else encoded(entries[good])["data"], "slopes": encoded(slopes.slope[good])["data"],
            "uncertainties": encoded(slopes.uncertainty[good].astype(np.float32))["data"],
            "kinks": encoded(entries[slopes.kink])["data"],
        }  # fmt: skip
        numbers = self.same_entries.get(self._key(np.asarray(gradient))[1:], ())
        if agree(np.asarray(gradient), entries[good], slopes.slope[good], slopes.uncertainty[good]):
            for number in numbers:                       # whatever the array is called, these are its slopes
                self.arrays[number].setdefault("measured", {})[of] = found
        else:                                            # of this gradient alone: another may have the same entries
            self.disagreeing += [(number, name, {of: found}) for number in numbers]

    def lacks_slopes(self, gradient: Array) -> bool:
        """True if this array is on the page, and has no measured slopes of its op yet."""
        numbers = self.same_entries.get(self._key(np.asarray(gradient))[1:], ())
        return any("op" not in self.arrays[number].get("measured", {}) for number in numbers)

    def _key(self, x):
        """An array's identity: its shape, and behind it the identity of its entries in any shape"""
        return x.shape, x.size, x.dtype.str, hashlib.blake2b(np.ascontiguousarray(x)).digest()

    def parts_shown(self, shape: tuple[int, ...]) -> list[Array] | None:
        """The indices shown along each axis, or None if all are."""
        kinds, longest = self.axes.kinds(shape), LONGEST
        chosen = [np.asarray(self.axes.shown.get(kind, range(size)))[:size] for kind, size in zip(kinds, shape)]
        limited = [indices[:longest] for indices in chosen]
        while math.prod(map(len, limited)) > self.most:
            longest //= 2
            limited = [indices[: max(longest, 1)] for indices in limited]
        return None if all(len(a) == size for a, size in zip(limited, shape)) else limited

    def entries_shown(self, shape: tuple[int, ...]) -> Array:
        """Flat indices of the entries of an array of that shape that are shown, in order"""
        shown = self.parts_shown(shape)
        whole = np.arange(math.prod(shape)).reshape(shape)
        return (whole[np.ix_(*shown)] if shown else whole).reshape(-1)

    def described(self, x: Array) -> dict[str, Any]:
        """What a page holds of an array: shape, dtype, statistics, which entries are shown, and their bytes."""
        shown = self.parts_shown(x.shape)
        about = {"shape": list(x.shape), "dtype": x.dtype.name, "kinds": self.axes.kinds(x.shape), **statistics(x)}
        if shown:
            about["shown"] = [None if len(a) == size else a.tolist() for a, size in zip(shown, x.shape)]
        part = x[np.ix_(*shown)] if shown else x
        return about | (half(part) if self.coarse and x.dtype.kind == "f" else encoded(part))


def encoded(part: Array) -> dict[str, str]:
    """{"form": how, "data": base64} of an array: float64 and float32 as they are, integers as int32, booleans bytes"""
    form = "f8" if part.dtype == np.float64 else FORMS[part.dtype.kind]
    if form == "i4" and part.size and not -(2**31) <= part.min() <= part.max() < 2**31:
        form = "f8"
    return {"form": form, "data": base64.b64encode(np.ascontiguousarray(part, dtype=f"<{form}").tobytes()).decode()}


def agree(gradient: Array, entries: Array, slopes: Array, uncertainties: Array) -> bool:
    """True if a gradient is what was measured, but for the measurement's uncertainty and its own rounding."""
    return bool((np.abs(gradient.reshape(-1)[entries] - slopes) <= allowed(gradient, uncertainties)).all())


def allowed(gradient: Array, uncertainties: Array) -> Array:
    """How far a gradient may be from measured slopes: by their uncertainties and its own rounding"""
    finite = np.abs(gradient[np.isfinite(gradient)])
    return uncertainties + ROUNDING[gradient.dtype.itemsize] * finite.max(initial=0)


def half(part: Array) -> dict[str, float | str]:
    """The same where three or four digits are enough: float16 times a scale"""
    finite = np.abs(part[np.isfinite(part)])
    scale = float(finite.max(initial=0)) or 1.0
    with np.errstate(invalid="ignore"):
        data = np.ascontiguousarray(part / scale, dtype="<f2").tobytes()
    return {"form": "f2", "scale": scale, "data": base64.b64encode(data).decode()}


def statistics(x: Array) -> dict[str, float | None]:
    """{"norm", "low", "high", "zeros", "bad"}: of all entries, not only those that are shown"""
    if x.size == 0 or x.dtype.kind == "b":
        return {"norm": None, "low": None, "high": None, "zeros": int(x.size - np.count_nonzero(x)), "bad": 0}
    finite = np.isfinite(x)
    good = x if finite.all() else x[finite]
    if good.size == 0:
        return {"norm": None, "low": None, "high": None, "zeros": 0, "bad": int(x.size)}
    flat = good.reshape(-1).astype(np.float64, copy=False)
    return {
        "norm": float(np.sqrt(flat @ flat)), "low": float(good.min()), "high": float(good.max()),
        "zeros": int(good.size - np.count_nonzero(good)), "bad": int(x.size - good.size),
    }  # fmt: skip


def is_float(x: Any) -> bool:
    """True for a floating array"""
    return hasattr(x, "dtype") and x.dtype.kind == "f"


def is_on_gpu(value: Any) -> bool:
    """True for CuPy's arrays"""
    return type(value).__module__.partition(".")[0] == "cupy" and hasattr(value, "shape") and hasattr(value, "dtype")


def _scalar(value):
    return f"{float(value):.9g}" if getattr(value, "dtype", np.dtype(float)).kind == "f" else str(value.item())

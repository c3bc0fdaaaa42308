"""The arrays of a page: each once, in part if it is large, with what its axes are."""

import base64
import hashlib
import math
from dataclasses import dataclass, field

from mini_tf.backend import to_host

import numpy as np

LONGEST = 128            # entries shown along an axis,
MOST = 4096              # and of an array
FORMS = {"f": "f4", "i": "i4", "u": "i4", "b": "u1"}      # how a page holds dtypes of a kind


@dataclass
class Axes:
    """What the axes of a model's arrays are, by their sizes.

    sizes    {size: kind}: "word", "source word", "vocabulary", …
    labels   {kind: labels of its entries}
    shown    {kind: indices of the entries that are shown}, of a vocabulary too large for a page
    heads    how many; only the second of four axes is taken for the heads
    columns  n, the size of a word's vector: the last axis of fewer than four is taken for its columns first
    """

    sizes: dict = field(default_factory=dict)
    labels: dict = field(default_factory=dict)
    shown: dict = field(default_factory=dict)
    heads: int = 0
    columns: int = 0

    def kinds(self, shape):
        """The kind of each axis, "" where that is not known"""
        kinds = [self.sizes.get(size, "") for size in shape]
        if shape and len(shape) < 4 and shape[-1] == self.columns:
            kinds[-1] = "column"
        if len(shape) == 4 and shape[1] == self.heads:
            kinds[1] = "head"
        if len(shape) > 2 and shape[0] == 1:
            kinds[0] = "example"
        return kinds


class Store:
    """Turns values into references: numbers of arrays, or short texts.

    axes     the Axes of the arrays
    arrays   what the page holds of each: see `described`
    coarse   while True, new floating arrays are kept to three or four digits
    """

    coarse = False

    def __init__(self, axes=None):
        self.axes = axes or Axes()
        self.arrays, self.numbers, self.same_entries = [], {}, {}

    def refer(self, value):
        """The number of an array; a dict {"text": …} for numbers and the like; None for what cannot be shown."""
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            if value.dtype.kind not in FORMS:
                return None
            return self._number(to_host(value)) if np.ndim(value) else self.text(_scalar(value))
        if isinstance(value, bool) or value is None or isinstance(value, (int, float, str)):
            return self.text(repr(value) if not isinstance(value, float) else _scalar(value))
        if isinstance(value, tuple) and value and all(isinstance(one, (int, float)) for one in value):
            return self.text(repr(value))
        return None

    @property
    def letters(self):
        """About how many letters the arrays take on a page"""
        return sum(len(about["data"]) for about in self.arrays)

    @staticmethod
    def text(words):
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

    def add_slopes(self, gradient, of, entries, slopes):
        """Add measured slopes to a gradient's array, and to every other that has the same entries in another shape.

        of: "op", Σ dy·y of the op itself, or "loss"; entries: flat indices; slopes: their Slopes
        """
        good = ~slopes.kink
        found = {
            "entries": encoded(entries[good])["data"], "slopes": encoded(slopes.slope[good])["data"],
            "uncertainties": encoded(slopes.uncertainty[good].astype(np.float32))["data"],
            "kinks": encoded(entries[slopes.kink])["data"],
        }  # fmt: skip
        for number in self.same_entries.get(self._key(np.asarray(gradient))[1:], ()):
            self.arrays[number].setdefault("measured", {})[of] = found

    def lacks_slopes(self, gradient):
        """True if this array is on the page, and has no measured slopes of its op yet."""
        numbers = self.same_entries.get(self._key(np.asarray(gradient))[1:], ())
        return any("op" not in self.arrays[number].get("measured", {}) for number in numbers)

    def _key(self, x):
        shown = self.parts_shown(x.shape)
        part = np.ascontiguousarray(x[np.ix_(*shown)]) if shown else np.ascontiguousarray(x)
        return x.shape, x.size, x.dtype.str, hashlib.blake2b(part.tobytes()).digest(), statistics(x)["norm"]

    def parts_shown(self, shape):
        """The indices shown along each axis, or None if all are."""
        kinds, longest = self.axes.kinds(shape), LONGEST
        chosen = [np.asarray(self.axes.shown.get(kind, range(size)))[:size] for kind, size in zip(kinds, shape)]
        limited = [indices[:longest] for indices in chosen]
        while math.prod(map(len, limited)) > MOST:
            longest //= 2
            limited = [indices[: max(longest, 1)] for indices in limited]
        return None if all(len(a) == size for a, size in zip(limited, shape)) else limited

    def described(self, x):
        """What a page holds of an array: shape, dtype, the entries shown as bytes, which they are, statistics."""
        shown = self.parts_shown(x.shape)
        about = {"shape": list(x.shape), "dtype": x.dtype.name, "kinds": self.axes.kinds(x.shape), **statistics(x)}
        if shown:
            about["shown"] = [None if len(a) == size else a.tolist() for a, size in zip(shown, x.shape)]
        part = x[np.ix_(*shown)] if shown else x
        return about | (half(part) if self.coarse and x.dtype.kind == "f" else encoded(part))


def encoded(part):
    """{"form": how, "data": base64} of an array: float64 and float32 as they are, integers as int32, booleans bytes"""
    form = "f8" if part.dtype == np.float64 else FORMS[part.dtype.kind]
    return {"form": form, "data": base64.b64encode(np.ascontiguousarray(part, dtype=f"<{form}").tobytes()).decode()}


def half(part):
    """The same of an array of which three or four digits are enough: float16 times a scale"""
    finite = np.abs(part[np.isfinite(part)])
    scale = float(finite.max(initial=0)) or 1.0
    with np.errstate(invalid="ignore"):
        data = np.ascontiguousarray(part / scale, dtype="<f2").tobytes()
    return {"form": "f2", "scale": scale, "data": base64.b64encode(data).decode()}


def statistics(x):
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


def _scalar(value):
    return f"{float(value):.9g}" if getattr(value, "dtype", np.dtype(float)).kind == "f" else str(value.item())

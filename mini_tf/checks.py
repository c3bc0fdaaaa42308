"""Checks of the numbers that users give: sizes, shares, seeds."""

from numbers import Integral, Real
from reprlib import repr as shown  # of a long or deeply nested value, only the beginning
from typing import TYPE_CHECKING, Any

from mini_tf.errors import UserError

if TYPE_CHECKING:
    import numpy as np


def check_whole(least: int = 1, most: int | None = None, /, **values: object) -> None:
    """Raises UserError for the first value that is not a whole number, or not between `least` and `most`.

    check_whole(beam=beam, longest=longest)
    """
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
            raise UserError(f"{name} is {shown(value)}, expected a whole number of at least {least}")
        if most is not None and int(value) > most:
            raise UserError(f"{name} is {shown(value)}, expected at most {most:,}")


def is_number(value: object) -> bool:
    """Whether it is a number that can be compared with others: True is not, and neither is "1"."""
    return isinstance(value, Real) and not isinstance(value, bool)


def generator(seed: int) -> "np.random.Generator":
    """NumPy's random numbers from a seed. Raises UserError unless that is a whole number of at least 0."""
    import numpy as np  # here, so that reading data does not need it

    check_whole(0, seed=seed)
    return np.random.default_rng(int(seed))


def check_rng(rng: Any) -> None:
    """Raises UserError unless it draws random numbers: a seed alone would draw the same ones in every call."""
    if not hasattr(rng, "random") or type(rng).__name__ in ("module", "Random", "RandomState"):
        raise UserError(f"rng is {shown(rng)}, expected a NumPy generator: rng = np.random.default_rng(0), made once")


def first_difference(name: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """(name, one value, other value) of the first place where two nested dicts differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        odd = next((key for key in {**other, **one} if one.get(key) != other.get(key)), None)
        if odd is not None:
            return first_difference(odd, one.get(odd), other.get(odd))
    return name, one, other

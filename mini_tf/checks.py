"""Checks of the numbers that users give: sizes, shares, seeds."""

from numbers import Integral, Real
from reprlib import repr as shown  # of a long or deeply nested value, only the beginning

from mini_tf.errors import UserError


def check_whole(least=1, most=None, /, **values):
    """Raises UserError for the first value that is not a whole number, or not between `least` and `most`.

    check_whole(beam=beam, longest=longest)
    """
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise UserError(f"{name} is {shown(value)}, expected a whole number of at least {least}")
        if most is not None and value > most:
            raise UserError(f"{name} is {shown(value)}, expected at most {most:,}")


def is_number(value):
    """Whether it is a number that can be compared with others: True is not, and neither is "1"."""
    return isinstance(value, Real) and not isinstance(value, bool)


def generator(seed):
    """NumPy's random numbers from a seed. Raises UserError unless that is a whole number of at least 0."""
    import numpy as np  # here, so that reading data does not need it

    check_whole(0, seed=seed)
    return np.random.default_rng(int(seed))

"""The blanks of the labs' student versions and of the exercises: hints, and checks of what is filled in.

One file for each lab, lab_04.py for 04_….py and lab_01b.py for 01b_….py, with a list BLANKS, and exercises.py for all
exercises. The solutions are not here: they are the labs themselves, and labs/exercises/solutions.
"""

import functools
import inspect
import tempfile
from collections import namedtuple
from pathlib import Path

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.command import check_all, chosen

import numpy as np

SHOWN = 6                            # entries of an array that are printed

# name: a function, or "f.backward" for its inner function
# hints: from the first idea to almost the line itself: for a body, or {variable: hints} for the lines that set them
# check(function): prints its findings and returns whether the function is right
Blank = namedtuple("Blank", "name hints check")


def same(oracle, *cases, within=1e-9):
    """A check: the function returns what the oracle returns, for each case, a tuple of arguments.

    oracle: a function that computes the same in another way, so that it gives nothing away; or a known value
    """

    def check(function):
        for arguments in cases:
            expected = oracle(*arguments) if callable(oracle) else oracle
            result = function(*arguments)
            if problem := _difference(result, expected, within):
                print(f"FAIL  {function.__name__}({', '.join(map(_in_short, arguments))}): {problem}")
                _keep_arrays(function.__name__, arguments)
                return False
        print(f"PASS  {function.__name__}: right for {len(cases)} case{'s' * (len(cases) > 1)}")
        return True

    return check


def gradients(make, name=None):
    """A check: make(function) → (f, inputs…) is given to the gradient checker, where f(*inputs) → y, backward."""

    def check(function):
        f, *inputs = make(function)
        has_source = inspect.isfunction(function)        # not so when it runs in another process, to be graded:
        if not has_source and (problem := _difference(f(*inputs)[0], make(function.right)[0](*inputs)[0], 1e-9)):
            print(f"FAIL  y, which the lab computes, has been changed: {problem}")
            return False
        report = gradcheck(f, *inputs, name=name or function.__name__, explain=has_source)
        print(report)
        return bool(report)

    return check


def command(function):
    """A check: the verdict of `mini-tf gradcheck` on a function with an Example line."""
    return check_all(chosen([f"{function.__code__.co_filename}::{function.__name__}"], [], seed=0), seed=0) == 0


def forward(check):
    """A check of y alone, for a function that returns (y, backward)."""

    def check_y(function):
        @functools.wraps(function)
        def y(*arguments):
            result = function(*arguments)
            return result[0] if isinstance(result, tuple) else result

        return check(y)

    return check_y


def both(*checks):
    """A check: all of these in order, up to the first failure."""
    return lambda function: all(check(function) for check in checks)


def _difference(result, expected, within):
    """What is wrong with an answer, in words; "" if nothing."""
    if result is None or result is ...:
        return "returned nothing; is there a return?"
    if isinstance(expected, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(expected):
            return f"returned {_in_short(result)}, expected {len(expected)} values"
        for number, pair in enumerate(zip(result, expected)):
            if problem := _difference(*pair, within):
                return f"value {number}: {problem}"
        return ""
    if isinstance(expected, str) or not np.issubdtype(np.asarray(expected).dtype, np.number):
        is_same = np.array_equal(result, expected)
        return "" if is_same else f"returned {_in_short(result)}, expected {_in_short(expected)}"
    try:
        result_array = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        return f"returned {_in_short(result)}, expected numbers"
    if result_array.shape != np.shape(expected):
        return f"returned shape {result_array.shape}, expected {np.shape(expected)}"
    off = np.abs(result_array - expected)
    if np.all(off <= within * (1 + np.abs(expected))):   # not true of NaN
        return ""
    at = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
    place = f" at {', '.join(map(str, at))}" if at else ""
    return f"returned {result_array[at]:.6g}{place}, expected {np.asarray(expected)[at]:.6g}"


def _keep_arrays(name, arguments):
    """The arrays that are too long to be printed go into a file, so that the call can be repeated."""
    arrays = {f"argument_{i}": x for i, x in enumerate(arguments) if isinstance(x, np.ndarray) and x.size > SHOWN}
    if arrays:
        path = Path(tempfile.gettempdir()) / f"{name}_failed.npz"
        np.savez(path, **arrays)
        print(f"      to repeat it: arrays = np.load({str(path)!r}); {', '.join(arrays)}")


def _in_short(value):
    if isinstance(value, np.ndarray) and value.size > SHOWN:
        return f"array {value.shape}"
    if isinstance(value, np.ndarray):
        return f"np.{' '.join(repr(value).split())}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "…"

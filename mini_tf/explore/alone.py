"""One traced call of an op or a layer by itself: φ = Σ dy·y as a function of its inputs, or of a variable inside it."""

import copy
import sys
from collections.abc import Callable, Collection
from inspect import Parameter, Signature
from types import CodeType
from typing import Any

from mini_tf.backend import to_host
from mini_tf.gradcheck.adapters import signature_of
from mini_tf.gradcheck.measure.slopes import ROUNDING
from mini_tf.gradcheck.weights import is_float
from mini_tf.kernels import reference_only
from mini_tf.trace import Call
from mini_tf.types import Array

import numpy as np

FAR = 50.0               # e⁻⁵⁰ is nothing beside 1


def alone(call: Call) -> tuple[Callable, list[Any]]:
    """(f, inputs) of the call by itself: f takes the arrays that it was given; all else stays as it was."""
    inputs = [_finite(x) for x in call.inputs]
    arrays = [i for i, x in enumerate(inputs) if hasattr(x, "dtype")]

    def f(*given):
        for i, x in zip(arrays, given):
            inputs[i] = x
        drawn = [copy.deepcopy(x) if isinstance(x, np.random.Generator) else x for x in inputs]
        return call.f(*drawn, **call.options)

    names = [*signature_of(call.f).names, *(f"input_{i}" for i in range(len(inputs)))]
    f.__signature__ = Signature([Parameter(names[i], Parameter.POSITIONAL_ONLY) for i in arrays])
    return f, [inputs[i] for i in arrays]


def _finite(x):
    """Scores of −∞, which a mask has made, become large finite ones: at ∞ there are no slopes."""
    if not is_float(x) or np.isfinite(to_host(x)).all():
        return x
    return np.nan_to_num(to_host(x), posinf=FAR, neginf=-FAR)


class Inside:
    """φ = Σ dy·y as a function of one variable of the function that computes y: of attention's A, for its dA.

    x takes the variable's place as soon as its statement has run. Python lets a trace function change the variables of
    the function that it follows.
    run     gives y
    code    of the function; lines: the numbers of the statement's lines
    name    of the variable
    """

    def __init__(self, run: Callable[[], Array], dy: Array | float, code: CodeType, lines: Collection[int], name: str):
        self.run, self.dy, self.code, self.lines, self.name = run, dy, code, lines, name
        self.x = None
        self.noise = ROUNDING * float(np.abs(self._y() * self.dy).sum())

    def __call__(self) -> tuple[float, bytes]:
        return float((self._y() * self.dy).sum()), b""

    def _y(self):
        has_run = False

        def follow(frame, event, _):
            nonlocal has_run
            if event == "line" and frame.f_lineno in self.lines:
                has_run = True
            elif event == "line" and has_run:
                has_run = False
                self._exchange(frame.f_locals)
            return follow

        before = sys.gettrace()
        sys.settrace(lambda frame, event, _: follow if frame.f_code is self.code else None)
        try:
            with reference_only():
                return np.asarray(self.run())
        finally:
            sys.settrace(before)

    def _exchange(self, variables):
        if self.x is None:
            self.x = np.array(variables[self.name], dtype=float, order="C")
        else:
            variables[self.name] = np.copy(self.x)

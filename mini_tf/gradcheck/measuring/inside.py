"""φ as a function of a variable inside f: of attention's A, where the backward computes dA."""

import sys
from collections.abc import Callable, Collection
from types import CodeType

from mini_tf.gradcheck.measuring.slopes import ROUNDING
from mini_tf.kernels import reference_only
from mini_tf.types import Array

import numpy as np


class Inside:
    """φ = Σ dy·y as a function of one variable of the function that computes y.

    x takes the variable's place as soon as its statement has run. Python lets a trace function change the variables of
    the function that it follows.
    run     gives y
    code    of the function; lines: the numbers of the statement's lines
    name    of the variable: "A", or "self.A"
    """

    def __init__(self, run: Callable[[], Array], dy: Array | float, code: CodeType, lines: Collection[int], name: str):
        self.run, self.dy, self.code, self.lines, self.name = run, dy, code, lines, name
        self.x = None
        self.size = float(np.abs(self._y() * self.dy).sum())
        self.noise = ROUNDING * self.size

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
        owner, _, own = self.name.rpartition(".")
        if owner:
            variables = vars(variables[owner])
        if self.x is None:
            self.x = np.array(variables[own], dtype=float, order="C")
        else:
            variables[own] = np.copy(self.x)

"""Variables inside f: φ as a function of attention's A, or φ as x moves and A does not."""

import sys
from collections.abc import Callable, Collection
from types import CodeType

from mini_tf.gradcheck.measuring.slopes import ROUNDING
from mini_tf.gradcheck.measuring.subject import is_float
from mini_tf.kernels import reference_only
from mini_tf.types import Array

import numpy as np


class Followed:
    """φ = Σ dy·y, while a trace function follows the function that computes y, and may change its variables.

    run     gives y
    code    of the function; lines: numbers of some of its lines
    name    of a variable: "A", or "self.A"
    """

    def __init__(self, run: Callable[[], Array], dy: Array | float, code: CodeType, lines: Collection[int], name: str):
        self.run, self.dy, self.code, self.lines = run, dy, code, lines
        self.owner, _, self.own = name.rpartition(".")
        self.size = float(np.abs(self._y() * self.dy).sum())
        self.noise = ROUNDING * self.size

    def __call__(self) -> tuple[float, bytes]:
        return float((self._y() * self.dy).sum()), b""

    def _y(self):
        def follow(frame, event, _):
            self._see(frame, event)
            return follow

        self._begin()
        before = sys.gettrace()
        sys.settrace(lambda frame, event, _: follow if frame.f_code is self.code else None)
        try:
            with reference_only():
                return np.asarray(self.run())
        finally:
            sys.settrace(before)

    def _variables(self, frame):
        """The dict that has the variable: the function's locals, or the attributes of its owner"""
        return vars(frame.f_locals[self.owner]) if self.owner else frame.f_locals

    def _begin(self):
        """Before a run"""

    def _see(self, frame, event):
        """Before each line, and at the end"""


class Inside(Followed):
    """φ as a function of one variable: x takes its place as soon as its statement, at `lines`, has run."""

    x = None

    def _begin(self):
        self.has_run = False

    def _see(self, frame, event):
        if event == "line" and frame.f_lineno in self.lines:
            self.has_run = True
        elif event == "line" and self.has_run:
            self.has_run, variables = False, self._variables(frame)
            if self.x is None:
                self.x = np.array(variables[self.own], dtype=float, order="C")
            else:
                variables[self.own] = np.copy(self.x)


class Held(Followed):
    """φ with one variable held constant: wherever `lines` read it, it is what it was in the first run.

    In a loop, that is what it was the first time in the first time's place, and so on.
    """

    values = None            # of the first run: one each time that one of the lines begins

    def _begin(self):
        self.is_first = self.values is None
        self.values = self.values or []
        self.count, self.moved, self.held = 0, None, None

    def _see(self, frame, event):
        begins = event == "line" and frame.f_lineno in self.lines
        if self.held is None and not begins:
            return
        variables = self._variables(frame)
        if self.held is not None:
            self._let_go(variables)
        if begins:
            self._hold(variables)

    def _let_go(self, variables):
        if variables.get(self.own) is self.held:         # the line has set no other one, but perhaps entries of it
            written = self.held != self.values[self.count - 1]
            if written.any():
                self.moved[written] = self.held[written]
            variables[self.own] = self.moved
        self.held = None

    def _hold(self, variables):
        self.moved = variables[self.own]
        if self.is_first:
            if not is_float(np.asarray(self.moved)):
                raise TypeError(f"{self.own} is {type(self.moved).__name__}, expected an array or a number")
            self.values.append(np.copy(self.moved))
        variables[self.own] = self.held = np.copy(self.values[self.count])
        self.count += 1

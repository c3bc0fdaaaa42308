"""What a check found out at one point, and what can still be measured there."""

import time
from functools import cached_property
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.slopes import STEPS, Phi, slopes_of_entries
from mini_tf.gradcheck.measuring.subject import Subject, copied, upstream_name
from mini_tf.types import Array, Backward

import numpy as np

CLOSE = 1e-6             # relative to the largest entry: measured slopes are known better than this
DUST = 1e-9              # relative to the right gradient: yours is 0 but for rounding
ZERO = 1e-10             # relative to Σ |dy·y|: a slope below it is 0, as far as one can tell
AFFORDABLE = 600         # tensors with more entries are not measured again with other inputs,
SECONDS = 0.1            # of processor time: the forwards of entries that are measured again, if each took one
FORWARDS = 5             # by which their time is measured
FEW = 5                  # nor are functions with more tensors than this (layers of many parts, models)


class Evidence:
    """A subject at one point: its y, dy, the gradients from its backward, and the measured slopes."""

    def __init__(
        self, subject: Subject, y: Array, backward: Backward, dy: Array | float, gradients: dict[str, Array | float],
        patterns: list[bytes], option: tuple[str, float] | None = None,
    ):  # fmt: skip
        self.subject, self.y, self.backward, self.dy, self.option = subject, y, backward, dy, option
        self.gradients, self.patterns = gradients, patterns
        self.slopes = {}                                 # {name: array}, NaN where not known
        self.wrong, self.right = [], []                  # names of the wrong and of the right gradients
        self.zero = ZERO * float(np.abs(y * dy).sum())
        self.diagonals = {}                              # what `diagonal` has measured
        self.everything = {name: copied(x) for name, x in zip(subject.names, subject.inputs)}
        self.everything |= {name: np.array(x) for name, x in subject.tensors.items()}
        self.options = subject.options()                 # {name: number}
        self.other_point = {}                            # the arrays of the given point, if this is the generic one
        self.siblings = []                               # [{name: array}] of other calls of this step in a model
        # Evidence at other points, once `elsewhere` has looked there
        self.others = self.apart = self.larger_still = self.draws = self.scaled = None
        self.run = self.fed = None                       # what `theirs` and `feeding` have found

    def back_to_the_point(self) -> None:
        """Give the subject its arrays of this point again: copies, because a wrong backward may write into them."""
        self.subject.set_option(self.option)
        for name, array in self.everything.items():
            self.subject.replace(name, copied(array))

    @cached_property
    def seconds(self) -> float:
        """How much processor time a forward takes"""
        option, now = self.subject.option, dict(zip(self.subject.names, self.subject.inputs)) | self.subject.tensors
        self.back_to_the_point()
        began = time.process_time()
        for _ in range(FORWARDS):
            self.subject.forward()
        seconds = (time.process_time() - began) / FORWARDS
        self.subject.set_option(option)
        for name, x in now.items():
            self.subject.replace(name, x)
        return seconds

    def can_afford(self, entries: int) -> bool:
        """True if so many entries can be measured again, in some tenths of a second"""
        return entries <= AFFORDABLE and entries * self.seconds <= SECONDS

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """{name: shape} of the tensors and all other inputs"""
        return {name: getattr(x, "shape", ()) for name, x in self.everything.items()}

    @property
    def is_finite(self) -> bool:
        """True if y and all slopes that were measured are finite: f is defined here."""
        return bool(np.isfinite(self.y).all()) and not any(np.isinf(slopes).any() for slopes in self.slopes.values())

    @property
    def upstream(self) -> str:
        """What the learner's backward calls dy."""
        return upstream_name(self.backward)

    @property
    def another_dy(self) -> Array | float:
        """A copy of dy, for a backward that may write into it."""
        return np.copy(self.dy) if np.ndim(self.dy) else self.dy

    @cached_property
    def dy_stays(self) -> bool:
        """True unless your backward writes into dy."""
        self.back_to_the_point()
        dy = self.another_dy
        try:
            self.subject.forward()[1](dy)
        except FAILURES:
            return True
        return np.array_equal(dy, self.dy)

    def measure(self, name: str, phi: Phi, entries: Array) -> None:
        """Measure these entries of a tensor's slopes, at this point; the others are not known."""
        x = self.subject.tensors[name]                   # which is moved in its place
        found, slopes = slopes_of_entries(phi, x, entries), np.full(x.size, np.nan)
        slopes[entries] = np.where(found.kink, np.nan, found.slope)
        self.slopes[name] = slopes.reshape(x.shape)

    def pair(self, name: str) -> tuple[Array, Array, Array]:
        """(your gradient, the measured one, a mask: True where the measured one is known)"""
        slopes = self.slopes[name]
        return np.asarray(self.gradients[name]), np.nan_to_num(slopes), ~np.isnan(slopes)

    def wrong_entries(self, name: str) -> Array:
        """A mask of the tensor's shape: True where your gradient is known to be wrong."""
        yours, right, known = self.pair(name)
        return known & (np.abs(yours - right) > CLOSE * np.abs(right).max(initial=0) + self.zero)

    def agrees(self, name: str, gradient: Any) -> bool:
        """True if `gradient` is the measured one, wherever that is known."""
        return self.fits(gradient, self.slopes[name])

    def fits(self, gradient: Any, slopes: Array) -> bool:
        """`agrees`, for slopes that were measured apart."""
        if np.shape(gradient) != slopes.shape or not np.isfinite(gradient).all():
            return False
        size = np.nanmax(np.abs(slopes), initial=1e-300)
        return bool((np.nan_to_num(np.abs(gradient - slopes)) <= CLOSE * size + self.zero).all())

    def is_zero(self, name: str) -> bool:
        """True if the right gradient is 0 everywhere, as that of a bias before a normalization: any lines give that."""
        sizes = {one: np.abs(np.nan_to_num(slopes)).max(initial=0) for one, slopes in self.slopes.items()}
        return bool(sizes[name] <= CLOSE * max(sizes.values()) + self.zero)

    def measured(
        self, name: str, dy: Array | float | None = None, others: dict[str, Array] | None = None,
        option: tuple[str, float] | None = None,
    ) -> Array | None:  # fmt: skip
        """Measure the gradient again, with another dy, with other arrays for some inputs, {name: array}, or with
        another number for an option, (name, number).

        None if that costs too much, or if the function does not accept these inputs.
        """
        if option:
            with self.subject.with_option(*option):
                return self.measured(name, dy, others)
        others = others or {}
        if len(self.subject.tensors) > FEW or not self.can_afford(self.subject.tensors[name].size):
            return None
        try:
            for other, array in others.items():
                self.subject.replace(other, np.array(array))
            phi = Phi(self.subject, self.dy if dy is None else dy, self.patterns)
            x = self.subject.tensors[name]
            return slopes_of_entries(phi, x, np.arange(x.size)).slope.reshape(x.shape)
        except FAILURES:
            return None
        finally:
            for other in others:
                self.subject.replace(other, copied(self.everything[other]))

    def along(self, name: str, direction: Array) -> Array | None:
        """J·direction: how y changes as the tensor moves in that direction. Measured; None if f fails there."""
        x = self.subject.tensors[name]

        def difference(h):
            ahead, behind = (self._y_at(name, x + step * direction) for step in (h, -h))
            return (ahead - behind) / (2 * h)

        try:
            return (4 * difference(STEPS[0] / 2) - difference(STEPS[0])) / 3
        except FAILURES:
            return None
        finally:
            self.subject.replace(name, x)

    def _y_at(self, name, array):
        self.subject.replace(name, array)
        return np.asarray(self.subject.forward()[0])

    def diagonal(self, name: str) -> Array | None:
        """∂y_i/∂x_i for every entry, measured; None if y has another shape than x, or it costs too much."""
        x = self.subject.tensors[name]
        if self.y.shape != x.shape or x.size > AFFORDABLE // 4 or not x.ndim:
            return None
        if name not in self.diagonals:
            diagonal = np.zeros(x.size)
            for i in range(x.size):
                one = np.zeros(x.shape)
                one.flat[i] = 1.0
                diagonal[i] = slopes_of_entries(Phi(self.subject, one, self.patterns), x, np.array([i])).slope[0]
            self.diagonals[name] = diagonal.reshape(x.shape)
        return self.diagonals[name]

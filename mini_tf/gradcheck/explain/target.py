"""What a repaired backward has to give: the measured slopes, by the judge's own tolerance, at several points."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import Phi
from mini_tf.types import Array

import numpy as np

MOST = 600               # entries of all tensors together that are compared
LARGEST = 2000           # entries of a tensor whose gradient lacks
RIDGE, REFINED = 1e-13, 3                                # of normal equations: relative, and how often they are solved


class Target:
    """The gradients of some tensors at the evidence's point, in a row, compared with what was measured.

    names   of the tensors; by default all, wrong and right: an edit that repairs one must not spoil another
    """

    wrong: Array = np.zeros(0, bool)     # which of the gradients the judge calls wrong, once they are compared,
    in_right: Array          # and which belong to right tensors

    def __init__(self, evidence: Evidence, names: Sequence[str] | None = None):
        self.evidence = evidence
        evidence.back_to_the_point()
        for name in evidence.misfits:                    # their gradients could not be compared
            size = evidence.subject.tensors[name].size
            if name not in evidence.slopes and size <= LARGEST:
                evidence.measure(name, Phi(evidence.subject, evidence.dy, evidence.patterns), np.arange(size))
        every = [name for name in evidence.subject.tensors if name in evidence.slopes]
        self.names: list[str] = [name for name in every if names is None or name in names]
        rng, total = np.random.default_rng(0), sum(evidence.slopes[name].size for name in self.names)
        self.entries: dict[str, Array] = {}              # that are compared of each, as flat indices
        for name in self.names:
            known = np.flatnonzero(~np.isnan(evidence.slopes[name].reshape(-1)))
            share = max(MOST * known.size // max(total, 1), 8) if total > MOST else known.size
            self.entries[name] = np.sort(rng.choice(known, share, replace=False)) if share < known.size else known
        self.goal: Array = self._row(evidence.slopes)
        self.tolerance: Array = self._row(evidence.tolerances)           # how far off the judge allows each to be

    def row(self, gradients: dict[str, Any]) -> Array | None:
        """These gradients in a row; None if one has another shape"""
        with suppress(TypeError, ValueError):
            if all(np.shape(gradients[name]) == self.evidence.slopes[name].shape for name in self.names):
                return self._row(gradients).astype(float)
        return None

    def _row(self, arrays: dict[str, Any]) -> Array:
        rows = [np.asarray(arrays[name]).reshape(-1)[self.entries[name]] for name in self.names]
        return np.concatenate(rows or [np.empty(0)])

    def compare(self, row: Array) -> None:
        """Note which of these gradients, in a row, are wrong."""
        self.wrong = ~(np.abs(row - self.goal) <= self.tolerance)
        ends = np.cumsum([self.entries[name].size for name in self.names])
        right = [~np.full_like(part, part.any()) for part in np.split(self.wrong, ends[:-1])]
        self.in_right = np.concatenate(right)

    def solution(self, J: Array, missing: Array) -> Array | None:
        """What has to be added to a value so that the gradients are right; None if nothing helps"""
        squares, step, rest = J.T @ J, np.zeros(J.shape[1]), missing
        squares += RIDGE * max(squares.diagonal().max(initial=0), 1e-300) * np.eye(len(step))
        for _ in range(REFINED):                         # faster than singular values, and exact enough
            step += np.linalg.solve(squares, J.T @ rest)
            rest = missing - J @ step
        return step if self.near(rest) else None

    def near(self, rows: Array) -> Array:
        """Whether deviations from the right gradients are within the tolerance, for each row"""
        slack = 3 * self.tolerance + 1e-9 * np.abs(self.goal).max(initial=0)
        return np.asarray((np.abs(rows) <= slack).all(-1))


def holds(evidence: Evidence, names: Sequence[str]) -> bool:
    """Whether the code as it is now gives right gradients at the evidence's point, and the same y."""
    with suppress(*FAILURES):
        evidence.back_to_the_point()
        y, backward = evidence.subject.forward()
        gradients = backward(evidence.dy_again())
        return same_output(y, evidence) and all(evidence.fits(name, gradients.get(name)) for name in names)
    return False


def same_output(y: Any, evidence: Evidence) -> bool:
    """Whether y is the evidence's"""
    return np.shape(y) == np.shape(evidence.y) and np.allclose(y, evidence.y, rtol=1e-9, atol=1e-12)

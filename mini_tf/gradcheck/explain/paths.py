"""A missing path: the gradient through one expression of the forward is missing, has the wrong sign, or is there twice.

Where an expression of the forward is held while x moves, the slope of φ lacks exactly the paths through it. If that
explains the whole error, these are wrong: those through the std of a layer norm, or the step before in an RNN.
"""

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.sites import Expression, sites_in
from mini_tf.gradcheck.hooks import copied, is_tensor, running_with, with_hooks
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import moved
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.gradcheck.weights import is_float
from mini_tf.gradcheck.wording import listed
from mini_tf.types import Array

import numpy as np

TIMES = {0: "is missing", -1: "has the wrong sign", 2: "is there twice"}
STEP = 1e-5              # of the central differences, whose errors are far below CLOSE
CLOSE = 1e-6             # relative to the whole gradient,
LEAST = 1e-4             # and of a path
MOST = 500               # expressions that are held
HOLDABLE = ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp


class HeldForward:
    """The forward with one of its expressions held constant, at first none."""

    def __init__(self, evidence: Evidence):
        self.evidence = evidence
        self.codes: dict[FunctionType, CodeType] = {}
        self.places: list[Expression] = []
        self.values: dict[int, list[Array]] = {}         # {number of a place: its values in one run}
        self.held: int | None = None                     # the number of a place
        self.ran: int = 0                                # how often it has run
        evidence.back_to_the_point()
        for function in functions_that_run(evidence.subject.forward, evidence.sound):
            with suppress(Unavailable):
                source = source_of(function)
                found = [e for site in sites_in(source) if site.is_value for e in site.expressions]
                found = [e for e in found if isinstance(e.node, HOLDABLE)]
                self.codes[function] = with_hooks(source, [e.node for e in found], len(self.places))
                self.places += found

    def hook(self, k: int, x: Any) -> Any:
        """An expression's value: the first run records it, later runs give the recorded one where it is held"""
        if self.held is None and (is_float(x) or (is_tensor(x) and x.is_floating_point())):
            self.values.setdefault(k, []).append(copied(x))
        if k != self.held:
            return x
        self.ran += 1
        return copied(self.values[k][self.ran - 1])

    def phi(self) -> float:
        """φ = Σ dy·y"""
        self.ran = 0
        return float((np.asarray(self.evidence.subject.forward()[0]) * self.evidence.dy).sum())

    def paths(self, name: str, among: Iterable[int]) -> dict[int, int]:
        """{expression: how often the gradient has the paths through it} where that explains all of its error

        Measured along one random direction, in which entries of unknown slope stay where they are.
        """
        slopes, rng, found = self.evidence.slopes[name], np.random.default_rng(0), {}
        v = ~np.isnan(slopes) * rng.choice([-1, 1], slopes.shape) * rng.uniform(0.5, 1.5, slopes.shape)
        right, error = np.nan_to_num(slopes), np.nan_to_num(self.evidence.gradients[name] - slopes)
        size = np.linalg.norm(right) * np.linalg.norm(v)
        phi_at = moved(self.phi, [(self.evidence.subject.tensors[name], ..., v)])
        for self.held in [*among][:MOST]:
            rest = (phi_at(STEP) - phi_at(-STEP)) / (2 * STEP)
            path = (right * v).sum() - rest
            fits = [n for n in TIMES if abs((error * v).sum() - (n - 1) * path) <= CLOSE * size]
            # Where a path has none of the gradient, or all of it, a factor says more
            if len(fits) == 1 and min(abs(path), abs(rest)) >= LEAST * size:
                found[self.held] = fits[0]
        self.held = None
        return found


def missing_paths(points: Sequence[Evidence], names: Sequence[str]) -> dict[str, str]:
    """{tensor: a sentence} of those whose gradient's whole error is that through one expression of the forward"""
    found: dict[str, dict[int, int]] = {}
    for point in points[:2] if names else ():
        try:
            forward = HeldForward(point)
            with running_with(forward.codes, forward.hook):
                forward.phi()
                for name in names:                       # what is found at the first point has to hold at the second
                    before = found.get(name, {})
                    again = forward.paths(name, before if name in found else forward.values)
                    found[name] = {k: n for k, n in again.items() if before.get(k, n) == n}
        except FAILURES:                                 # it does not run with hooks
            return {}
        finally:
            point.back_to_the_point()
    return {name: _sentence(forward.places, paths) for name, paths in found.items() if paths}


def _sentence(places: Sequence[Expression], paths: dict[int, int]) -> str:
    """The path in words: by the variables on it, else by the shortest expression"""
    times = next(n for n in TIMES if n in paths.values())                # missing first
    on_it = [places[k] for k, n in paths.items() if n == times]
    assigned = [(e.site.statement, e.node) for e in on_it]
    found = {ast.unparse(s.targets[0]): node.lineno for s, node in assigned
             if isinstance(s, ast.Assign) and s.value is node}           # fmt: skip
    shortest = min(on_it, key=lambda e: len(e.text))
    found = found or {shortest.text: shortest.node.lineno}
    said = [f"`{text}` (line {line})" for text, line in [*found.items()][:3]]
    return f"The gradient through {listed(said)} {TIMES[times]}; all else is right."

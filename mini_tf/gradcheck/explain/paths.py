"""A missing path: the gradient through one expression of the forward is missing, has the wrong sign, or is there twice.

Gradients add up over all paths from an input to y. Hold an expression of the forward at what it was while x moves, and
the slope of φ lacks exactly the paths through it. If that explains the whole error, these are the paths that the
backward has wrong: the std of a layer norm that it takes for a constant, the step before in a recurrent network.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.hooks import HOOK, copied, expressions_in, functions_in, hooked, nodes_of
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import ROUNDING, slopes_along
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.report import listed
from mini_tf.gradcheck.source import Unavailable, compiled, own_nodes, running_as, source_of
from mini_tf.types import Array

import numpy as np

TIMES = {0: "is missing", -1: "has the wrong sign", 2: "is there twice"}
DIRECTIONS = 3           # in which the tensor is moved: the first gives how often the path is there, the others confirm
CLOSE = 1e-6
LEAST = 1e-4             # of a path, relative to the whole gradient
MOST = 400               # expressions that are held
CALLS = 3000             # of the forward, for one gradient
NUMBERS = 2_000_000      # in all of them together
HELD = ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp


class Place(NamedTuple):
    """An expression of the forward: its text and line, and the variable that is set to it, or "" """

    text: str
    line: int
    variable: str


class Held:
    """φ with some expressions of the forward held at what they were, `which`: () to hold none."""

    def __init__(self, evidence: Evidence):
        self.evidence, self.places, self.codes = evidence, [], {}
        self.which, self.values, self.counts, self.first, self.room, self.calls = (), {}, Counter(), True, NUMBERS, 0
        evidence.back_to_the_point()
        for function in functions_that_run(evidence.subject.forward):
            try:
                source = source_of(function)
            except Unavailable:
                continue
            found = list(_expressions(source.node))[: MOST - len(self.places)]
            text = hooked(source, [node for node, _ in found], len(self.places))
            self.codes[function] = compiled(function, text, source.file.text)
            self.places += [Place(" ".join(source.file.of(node).split()), node.lineno, name) for node, name in found]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, φ can be asked for."""
        spaces = [function.__globals__ for function in self.codes]
        with ExitStack() as stack:
            stack.enter_context(running_as(self.codes))
            for space in spaces:
                space[HOOK] = self._hold
                stack.callback(space.pop, HOOK, None)
            self.size = float(np.abs(self._y() * self.evidence.dy).sum())
            self.noise, self.first = ROUNDING * self.size, False
            yield

    def __call__(self) -> tuple[float, bytes]:
        return float((self._y() * self.evidence.dy).sum()), b""

    def _y(self) -> Array:
        self.calls += 1
        if self.calls > CALLS:
            raise RuntimeError("the budget of calls is used up")
        self.counts.clear()
        return np.asarray(self.evidence.subject.forward()[0])

    def _hold(self, k, x):
        if self.first and getattr(getattr(x, "dtype", None), "kind", "") == "f":
            self.room -= np.size(x)
            if self.room < 0:
                raise MemoryError(f"more than {NUMBERS} numbers to keep")
            self.values.setdefault(k, []).append(copied(x))
        if k not in self.which:
            return x
        self.counts[k] += 1
        return copied(self.values[k][self.counts[k] - 1])

    @property
    def candidates(self) -> list[tuple[int, ...]]:
        """Which to hold together: each alone, and all places that read a variable"""
        reads = {}
        for k in self.values:
            if self.places[k].text.isidentifier():
                reads.setdefault(self.places[k].text, []).append(k)
        return [(k,) for k in self.values] + [tuple(several) for several in reads.values() if len(several) > 1]


def missing_path(evidence: Evidence, name: str) -> str:
    """A sentence: the error of this gradient is that through one expression of the forward; "" if it is not"""
    slopes = evidence.slopes[name].reshape(-1)
    if np.isnan(slopes).any() or name not in evidence.gradients:
        return ""
    yours, rng = evidence.gradients[name].reshape(-1), np.random.default_rng(0)
    directions = rng.choice([-1, 1], (DIRECTIONS, slopes.size)) * rng.uniform(0.5, 1.5, (DIRECTIONS, slopes.size))
    try:
        held, found = Held(evidence), {}
        with held.running(), np.errstate(all="ignore"):
            for which in held.candidates if held.calls <= CALLS else ():
                times = _times(held, which, evidence.subject.tensors[name], yours, slopes, directions)
                if times is not None:
                    found[which] = times
    except FAILURES:                                     # it cannot be run like this
        return ""
    finally:
        evidence.back_to_the_point()
    return _sentence(held, found) if found else ""


def _times(held, which, x, yours, right, directions):
    """How often your gradient has these paths, if that explains all of its error: 0, −1 or 2; else None"""
    times, held.which = None, which
    for v in directions:
        try:
            slopes = slopes_along(held, x, v[None])
        except FAILURES:                                 # it cannot be held: an array that the lines below fill
            return None
        error, path = (yours - right) @ v, right @ v - slopes.slope[0]
        size = np.linalg.norm(right) * np.linalg.norm(v)
        if slopes.kink[0] or abs(path) < LEAST * size or abs(slopes.slope[0]) < LEAST * size:
            return None                                  # none of the gradient, or all of it: then a factor says more
        times = 1 + error / path if times is None else times
        times = next((k for k in TIMES if abs(times - k) < 1e-4), None)
        if times is None or not abs(error - (times - 1) * path) < slopes.uncertainty[0] * abs(times - 1) + CLOSE * size:
            return None
    return times


def _sentence(held, found):
    """The path in words: by the variables on it, else by the shortest expression"""
    times = next(times for times in TIMES if times in found.values())    # missing first
    places = [held.places[which[0]] for which, other in found.items() if other == times]
    variables = {place.variable: place.line for place in places if place.variable}
    if variables:
        said = [f"`{name}` (line {line})" for name, line in [*variables.items()][:3]]
    else:
        shortest = min(places, key=lambda place: len(place.text))
        said = [f"`{shortest.text}` (line {shortest.line})"]
    return f"The gradient through {listed(said)} {TIMES[times]}; all else is right."


def _expressions(function):
    """(expression, the variable that its statement sets to it) of a function, and of those inside it"""
    for statement in own_nodes(function):
        if isinstance(statement, ast.stmt):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            variable = ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
            for part, is_value in expressions_in(statement):
                for node in nodes_of(part) if is_value else ():
                    if isinstance(node, HELD):
                        yield node, variable if node is getattr(statement, "value", None) else ""
    for inner in functions_in(function):
        yield from _expressions(inner)

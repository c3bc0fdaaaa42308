"""A missing path: the gradient through one expression of the forward is missing, has the wrong sign, or is there twice.

Gradients add up over all paths from an input to y. Hold an expression of the forward at what it was while x moves, and
the slope of φ lacks exactly the paths through it. If that explains the whole error, these are the paths that the
backward has wrong: the std of a layer norm that it takes for a constant, the step before in a recurrent network.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.hooks import HOOK, copied, expressions_in, functions_in, hooked, nodes_of
from mini_tf.gradcheck.explain.sites import one_line
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import Phi, slopes_along
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.report import listed
from mini_tf.gradcheck.source import Unavailable, compiled, own_nodes, running_as, source_of

import numpy as np

TIMES = {0: "is missing", -1: "has the wrong sign", 2: "is there twice"}
DIRECTIONS = 3           # in which the tensor is moved: the first gives how often the path is there, the others confirm
CLOSE = 1e-6
LEAST = 1e-4             # of a path, relative to the whole gradient
CALLS = 3000             # of the forward
NUMBERS = 2_000_000      # in all values together
HELD = ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp


class Held(Phi):
    """φ with an expression of the forward held at what it was: number `held` of `places`, at first none.

    places: (text, line, the variable that is set to it, or "") of each;  values: {number: all that it was in one run}
    """

    def __init__(self, evidence: Evidence):
        self.evidence, self.places, self.codes = evidence, [], {}
        self.held, self.values, self.ran, self.calls, self.room, self.recording = None, {}, 0, 0, NUMBERS, True
        evidence.back_to_the_point()
        for function in functions_that_run(evidence.subject.forward, evidence.sound):
            with suppress(Unavailable):
                source = source_of(function)
                found = list(_expressions(source.node))
                text = hooked(source, [node for node, _ in found], len(self.places))
                self.codes[function] = compiled(function, text, source.file.text)
                self.places += [(one_line(source.file.of(one)), one.lineno, variable) for one, variable in found]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, φ can be asked for."""
        with ExitStack() as stack:
            stack.enter_context(running_as(self.codes))
            for space in [function.__globals__ for function in self.codes]:
                space[HOOK] = self._hook
                stack.callback(space.pop, HOOK, None)
            super().__init__(self.evidence.subject, self.evidence.dy, self.evidence.patterns)
            self.recording = False
            yield

    def scatter(self) -> float:
        """Not measured: what it would say is far below CLOSE."""
        return 0.0

    def __call__(self) -> tuple[float, bytes]:
        self.ran, self.calls = 0, self.calls + 1
        return super().__call__()

    def _hook(self, k, x):
        if self.recording and getattr(getattr(x, "dtype", None), "kind", "") == "f":
            self.room -= np.size(x)
            if self.room < 0:
                raise MemoryError(f"more than {NUMBERS} numbers to keep")
            self.values.setdefault(k, []).append(copied(x))
        if k != self.held:
            return x
        self.ran += 1
        return copied(self.values[k][self.ran - 1])

    def paths(self, name: str, among: Iterable[int]) -> dict[int, int]:
        """{expression: how often the gradient has the paths through it} where that explains all of its error"""
        slopes, rng = self.evidence.slopes[name], np.random.default_rng(0)
        right, error = np.nan_to_num(slopes), np.nan_to_num(self.evidence.gradients[name] - slopes)
        moves = []                                       # entries whose slopes are not known stay where they are
        for _ in range(DIRECTIONS):
            v = ~np.isnan(slopes) * rng.choice([-1, 1], slopes.shape) * rng.uniform(0.5, 1.5, slopes.shape)
            moves.append((v.ravel(), (right * v).sum(), (error * v).sum(), np.linalg.norm(right) * np.linalg.norm(v)))
        times = {k: self._times(k, self.subject.tensors[name], moves) for k in among}
        return {k: n for k, n in times.items() if n is not None}

    def _times(self, k, x, moves):
        times, self.held = None, k
        for v, right, error, size in moves if self.calls < CALLS else ():
            slopes = slopes_along(self, x, v[None])
            path = right - slopes.slope[0]
            if slopes.kink[0] or min(abs(path), abs(slopes.slope[0])) < LEAST * size:
                return None                              # none of the gradient, or all of it: then a factor says more
            times = 1 + error / path if times is None else times
            times = next((n for n in TIMES if abs(times - n) < 1e-4), None)
            if times is None or abs(error - (times - 1) * path) > slopes.uncertainty[0] * abs(times - 1) + CLOSE * size:
                return None
        return times


def missing_paths(points: Sequence[Evidence], names: Sequence[str]) -> dict[str, str]:
    """{tensor: a sentence} of those whose gradient's whole error is that through one expression of the forward"""
    found = {}
    for point in points[:2]:
        try:
            held = Held(point)
            with held.running():
                for name in names:
                    if point is not points[0]:
                        again = held.paths(name, found[name])
                        found[name] = {k: n for k, n in again.items() if n == found[name][k]}
                    else:                                # most often several tensors lack the same
                        known = dict.fromkeys(k for paths in found.values() for k in paths)
                        found[name] = held.paths(name, known) or held.paths(name, held.values)
        except FAILURES:                                 # it cannot be run like this
            return {}
        finally:
            point.back_to_the_point()
    return {name: _sentence(held.places, paths) for name, paths in found.items() if paths}


def _sentence(places, paths):
    """The path in words: by the variables on it, else by the shortest expression"""
    times = next(n for n in TIMES if n in paths.values())                # missing first
    on_it = [places[k] for k, n in paths.items() if n == times]
    variables = {variable: line for _, line, variable in on_it if variable}
    if not variables:
        text, line, _ = min(on_it, key=lambda place: len(place[0]))
        variables = {text: line}
    said = [f"`{text}` (line {line})" for text, line in [*variables.items()][:3]]
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

"""Patterns of wrong gradients: the gradient through one expression of the forward is missing, or there too often.

Gradients add up over all paths from an input to y. Hold an expression of the forward at what it was while x moves, and
the slope of φ lacks exactly the paths through it. If that explains the whole error, these are the paths that the
backward has wrong: the std of a layer norm that it takes for a constant, the step before in a recurrent network.
"""

import ast
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import combinations, pairwise
from textwrap import shorten
from types import FunctionType
from typing import NamedTuple

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import CLOSE, FEW, Evidence
from mini_tf.gradcheck.measuring.slopes import ROUNDING, slopes_along
from mini_tf.gradcheck.measuring.subject import is_float
from mini_tf.gradcheck.planting.editing import function_of, recompiled, running_as, source_of
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.lines import pairs_of
from mini_tf.gradcheck.reasons.theirs import parts_of, written_forward
from mini_tf.gradcheck.reasons.words import Words
from mini_tf.gradcheck.verdicts import listed
from mini_tf.kernels import reference_only
from mini_tf.types import Array

import numpy as np

DIRECTIONS = 3           # in which the tensor is moved: the first gives how often the path is there, the others confirm
PLAIN = 0, -1, 2         # times: a path that is missing, has the wrong sign, is there twice
LEAST = 1e-4             # of a path, relative to the whole gradient
SECONDS = 1.0            # of processor time, for all expressions
LARGEST = 2_000_000      # numbers in all expressions together
NAMED = 3                # variables of one path at most
WIDTH = 100              # letters of a line that is shown
LARGEST_OF = re.compile(r"max|largest")  # which a softmax takes away: no gradient needs to come back there
HOLD = "_held_at_what_it_was"            # the name of the function that is put around each expression
DEFINES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef
READ = ast.Name, ast.Attribute, ast.Subscript            # of what was computed before
HELD = *READ, ast.Call, ast.BinOp, ast.UnaryOp


class Expression(NamedTuple):
    """An expression of the forward, its statement, and the variable that the statement sets to it, or ''."""

    node: ast.expr
    text: str
    line: str                # the statement's text, in one line
    variable: str
    inside: frozenset[int]   # numbers of the expressions around it


def one_path(e: Evidence, name: str) -> Words | None:
    """The error is a multiple of the gradient through one expression of the forward."""
    if np.isnan(e.slopes[name]).any() or len(e.subject.tensors) > 2 * FEW:
        return None
    yours, right, _ = (np.reshape(a, -1) for a in e.pair(name))
    rng, until = np.random.default_rng(0), time.process_time() + SECONDS
    directions = rng.choice([-1, 1], (DIRECTIONS, right.size)) * rng.uniform(0.5, 1.5, (DIRECTIONS, right.size))
    e.back_to_the_point()
    try:
        held, found = Held(e), {}
        with held.running(), np.errstate(all="ignore"):
            for several, candidates in enumerate((held.candidates, held.pairs)):
                for which in candidates if not found else ():
                    times = _times(held, which, e.subject.tensors[name], yours, right, directions)
                    if times is not None and not (several and abs(times) > CLOSE):
                        found[which] = times
                    if time.process_time() > until:
                        return None
    except FAILURES:                                     # there is no source, or f cannot be run like this
        return None
    finally:
        e.back_to_the_point()
    return _words(held, found) if found else None


def _times(held, which, x, yours, right, directions):
    """How often your gradient has these paths, if that explains all of its error; right is 1. None if it does not."""
    times = None
    held.which = which
    for v in directions:
        slopes = slopes_along(held, x, v[None])
        error, path, size = (yours - right) @ v, right @ v - slopes.slope[0], np.linalg.norm(right) * np.linalg.norm(v)
        if slopes.kink[0] or abs(path) < LEAST * size or abs(slopes.slope[0]) < LEAST * size:
            return None                                  # none of the gradient, or all of it: then a factor says more
        times = 1 + error / path if times is None else times
        unsure = slopes.uncertainty[0] * abs(times - 1) + CLOSE * size
        if not abs(error - (times - 1) * path) < unsure < 0.1 * abs(error):
            return None
    return times if _is_plain(times) or right.size > 1 else None         # one number is a multiple of any other


def _is_plain(times):
    return min(abs(times - k) for k in PLAIN) < CLOSE


class Held:
    """φ = Σ dy·y with some expressions of the forward held at what they were, `which`: () to hold none.

    The functions of the forward run with HOLD(k, …) around each expression k. In a loop an expression is, the second
    time, what it was the second time.
    """

    def __init__(self, evidence: Evidence):
        self.evidence, self.expressions, self.codes, self.arguments = evidence, [], [], set()
        for function in _forwards(evidence):
            text, node = source_of(function)
            self.arguments.update(argument.arg for argument in node.args.args)
            source, first = Source(text), len(self.expressions)
            self.expressions += _expressions(source, node, first)
            changed = _wrapped(source, self.expressions[first:], first)
            self.codes.append((function, recompiled(function, changed, text)))
        self.which, self.values, self.counts, self.is_first, self.room = (), {}, Counter(), True, LARGEST

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, φ can be asked for."""
        with ExitStack() as stack, reference_only():
            for function, code in self.codes:
                stack.enter_context(_with_global(function, self._hold))
                stack.enter_context(running_as(function, code))
            self.size = float(np.abs(self._y() * self.evidence.dy).sum())
            self.noise, self.is_first = ROUNDING * self.size, False
            yield

    def __call__(self) -> tuple[float, bytes]:
        return float((self._y() * self.evidence.dy).sum()), b""

    def _y(self) -> Array:
        self.counts.clear()
        return np.asarray(self.evidence.subject.forward()[0])

    def _hold(self, k, x):
        if self.is_first and (is_float(x) or isinstance(x, float)):
            self.values.setdefault(k, []).append(x if isinstance(x, float) else np.copy(x))
            self.room -= np.size(x)
            if self.room < 0:
                raise MemoryError(f"more than {LARGEST} numbers to keep")
        if k not in self.which:
            return x
        self.counts[k] += 1
        then = self.values[k][self.counts[k] - 1]
        return then if isinstance(then, float) else np.copy(then)

    @cached_property
    def candidates(self) -> list[tuple[int, ...]]:
        """Which expressions to hold together: each alone; and all places that read a variable."""
        alone = [k for k in range(len(self.expressions)) if k in self.values]
        reads = {}
        for k in alone:
            if isinstance(self.expressions[k].node, ast.Name):
                reads.setdefault(self.expressions[k].text, []).append(k)
        return [(k,) for k in alone] + [tuple(places) for places in reads.values() if len(places) > 1]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Two variables or calls each, of which neither is part of the other: a mean and a variance"""
        known = {k: self.expressions[k] for k in sorted(self.values) if not LARGEST_OF.search(self.expressions[k].text)}
        calls = [k for k, one in known.items() if isinstance(one.node, ast.Call) and not one.variable]
        pairs = combinations([*(k for k, one in known.items() if one.variable), *calls], 2)
        return [(a, b) for a, b in pairs if not {a, b} & {*known[a].inside, *known[b].inside}]

    def is_chain(self, names: list[str]) -> bool:
        """True if each variable is computed from the one before."""
        return all(a in self._needed(b) for a, b in pairwise(names))

    def _needed(self, name):
        """The names from which a variable is computed, and what they are computed from"""
        needed, waiting = set(), [name]
        while waiting:
            read = self._read.get(waiting.pop(), set())
            waiting += read - needed
            needed |= read
        return needed

    @cached_property
    def _read(self):
        """{variable: names that are read where it is set}"""
        read = {}
        for one in self.expressions:
            names = {ast.unparse(node) for node in ast.walk(one.node) if isinstance(node, (ast.Name, ast.Attribute))}
            if one.variable:
                read.setdefault(one.variable, set()).update(names)
        return read


# The expressions of a function ----------------------------------------------------------------------------------------


def _forwards(evidence):
    """The functions of the forward: itself, and helpers that it calls, but for those that are steps"""
    forward = function_of(written_forward(evidence))
    return list(dict.fromkeys([forward, *(part.function for part in parts_of(evidence) if part.is_forward)]))


def _expressions(source, function, first):
    """[Expression] of a function, the outer ones first; their numbers begin with `first`"""
    found = []

    def visit(one, inside, line="", variable=""):
        if isinstance(one, (*DEFINES, ast.JoinedStr, ast.Starred)):
            return
        line = _first_line(source, one) if isinstance(one, ast.stmt) else line
        is_read = isinstance(getattr(one, "ctx", None), (ast.Load, type(None)))
        if isinstance(one, HELD) and is_read:
            found.append(Expression(one, source.within(source.span(one)), line, variable, inside))
            inside |= {first + len(found) - 1}
        if isinstance(one, ast.Assign):
            for target, value in pairs_of(one.targets[0], one.value):
                visit(value, inside, line, ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else "")
            return
        for child in _children(one):
            visit(child, inside, line)

    for statement in function.body if isinstance(function, ast.FunctionDef) else ():
        visit(statement, frozenset())
    return found


def _first_line(source, statement):
    """The text of a statement in one line; of a loop, its first line"""
    if hasattr(statement, "body"):
        return source.lines[statement.lineno - 1].partition("  #")[0].strip()
    return shorten(source.within(source.span(statement)), WIDTH, placeholder=" …")


def _children(node):
    """The nodes inside a node that may be held: not the f of f(x), the x of x[i] and x.T, nor i"""
    if isinstance(node, ast.Call):
        method = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        children = [*method, *node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        children = [node.value] if isinstance(node.value, (ast.Call, ast.BinOp, ast.Subscript)) else []
    else:
        children = ast.iter_child_nodes(node)
    return [child for child in children if isinstance(child, (ast.expr, ast.stmt, ast.comprehension, ast.withitem))]


def _wrapped(source, expressions, first):
    """The file's text with HOLD(k, …) around each expression k"""
    marks = []
    for k, expression in enumerate(expressions, first):
        start, end = source.span(expression.node)
        marks += [(start, 1, -end, f"{HOLD}({k}, "), (end, 0, -start, ")")]      # at one place: ends before beginnings
    changed, at = [], 0
    for place, _, _, mark in sorted(marks):
        changed += [source.text[at:place], mark]
        at = place
    return "".join([*changed, source.text[at:]])


@contextmanager
def _with_global(function: FunctionType, hold):
    function.__globals__[HOLD] = hold
    try:
        yield
    finally:
        function.__globals__.pop(HOLD, None)


# Words ----------------------------------------------------------------------------------------------------------------


def _words(held, found):
    """Variables first; of a chain, a = f(x), b = g(a), all, and of others all that it may be. Then what is read."""
    times = min(found.items(), key=lambda one: (not _is_plain(one[1]), not held.expressions[one[0][0]].variable))[1]
    hits = [which for which, other in found.items() if abs(other - times) < CLOSE * (1 + abs(times))]
    alone = {which[0]: held.expressions[which[0]] for which in hits if len(which) == 1}
    variables = {one.variable: one for one in alone.values() if one.variable}
    if variables:
        said = [f"{name} (line {one.node.lineno})" for name, one in [*variables.items()][:NAMED]]
        gradient = f"through {listed(said) if held.is_chain(list(variables)) else ' or, the same, '.join(said)}"
    elif alone:
        kept = [one for one in alone.values() if isinstance(one.node, READ) and one.text not in held.arguments]
        one = (kept or [one for one in alone.values() if not one.inside & alone.keys()])[0]
        where = f"line {one.node.lineno} ({one.line})"
        gradient = f"{'of' if isinstance(one.node, READ) else 'through'} {one.text} from {where}"
    else:
        both = [held.expressions[k] for k in hits[0]]    # or all places of one variable
        said = [f"through {one.variable or one.text} (line {one.node.lineno})" for one in both]
        gradient = f"through {both[0].text}" if both[0].text == both[1].text else f"{said[0]} and {said[1]}"
    if abs(times) < CLOSE:
        fault = "both are missing" if " and through " in gradient else "that is missing"
    elif abs(times + 1) < CLOSE:
        fault = "that has the wrong sign"
    else:
        fault = f"that counts {times:.4g} times"
    return Words(f"It is right but for the gradient {gradient}: {fault}.")

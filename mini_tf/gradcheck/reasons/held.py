"""φ with some expressions of the forward held at what they were, while x moves: it lacks the paths through them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import combinations, pairwise
from textwrap import shorten
from types import FunctionType
from typing import NamedTuple

from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.slopes import ROUNDING
from mini_tf.gradcheck.measuring.subject import is_float
from mini_tf.gradcheck.planting.editing import function_of, recompiled, running_as, source_of
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.inside import DEFINES
from mini_tf.gradcheck.reasons.lines import pairs_of
from mini_tf.gradcheck.reasons.theirs import parts_of, written_forward
from mini_tf.kernels import reference_only
from mini_tf.types import Array

import numpy as np

LARGEST = 2_000_000      # numbers in all expressions together
WIDTH = 100              # letters of a line that is shown
SHIFT = re.compile(r"max|largest")       # which a softmax takes away: no gradient needs to come back there
HOLD = "_held_at_what_it_was"            # the name of the function that is put around each expression
READ = ast.Name, ast.Attribute, ast.Subscript            # of what was computed before
HELD = *READ, ast.Call, ast.BinOp, ast.UnaryOp


class Expression(NamedTuple):
    """An expression of the forward, its statement, and the variable that the statement sets to it, or ''."""

    node: ast.expr
    text: str
    line: str                # the statement's text, in one line
    variable: str
    inside: frozenset[int]   # numbers of the expressions around it


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
        known = {k: self.expressions[k] for k in sorted(self.values) if not SHIFT.search(self.expressions[k].text)}
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
        for k in self.values:
            one = self.expressions[k]
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
        if isinstance(one, ast.FunctionDef):             # in the forward; its backward does not run here
            for statement in one.body:
                visit(statement, frozenset())
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

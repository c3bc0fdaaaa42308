"""The statements that run, with a hook at each expression: what it was, and what the gradients were if it were else.

    with Program(subject, evidence) as program:
        y, gradients = program.run()                     # and program.sites have their values and names
        y, gradients = program.run({site: [another value]})

Every statement's expression E becomes _at_(k, E), once, in all of the author's functions together. The hook
notes the value and the names, or puts another value in its place. A gradient is an affine function of nearly every such
value: the matrix of that function is measured by putting in one number after another.
"""

import ast
import builtins
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cached_property
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.target import Target
from mini_tf.gradcheck.program import at_most, functions_that_run
from mini_tf.gradcheck.source import Source, Unavailable, compiled, own_nodes, running_as, source_of
from mini_tf.types import Array

import numpy as np

HOOK = "_at_"
INNER = ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp            # have names of their own
LIBRARIES = ("np", "xp", "numpy", "cupy", "math")
MOST_RUNS = 40           # of one statement, in a loop: with more it is not looked at
RUNS = 4000              # in which matrices are measured; what is not measured by then is not looked at by value
LARGEST = 500            # numbers in all values of a statement: more take too long to put in one after another
UNLIMITED = 10**9        # calls
AFFINE = 1e-7            # relative: how well the gradients have to be an affine function


class Site:
    """An expression of a statement, or a lambda's body: all that it was in one run.

    source, statement, node   where it is written;  functions: nodes of the functions around it, the outermost first
    is_value                  True if it is what a statement assigns, adds, returns, or hands to what it calls
    values, scopes            of each time that it ran, in order: its value, and the names that it could read
    backward                  whether it ran in the backward
    """

    def __init__(self, source: Source, statement: ast.AST, node: ast.expr, functions: Sequence[ast.AST],
                 is_value: bool = False):                # fmt: skip
        self.source, self.statement, self.node, self.functions = source, statement, node, list(functions)
        self.is_value = is_value
        self.values, self.scopes, self.times, self.backward = [], [], 0, False
        self.jacobian = self.base = self.missing = None
        self.reachable = True                            # False if no value could make the gradients right

    @property
    def line(self) -> int:
        return self.statement.lineno

    @property
    def text(self) -> str:
        """The statement in one line"""
        return one_line(self.source.file.of(self.statement))

    @property
    def is_control(self) -> bool:
        """True for what a loop runs over, and for what a condition asks"""
        return self.node in (getattr(self.statement, "iter", None), getattr(self.statement, "test", None))

    @property
    def complete(self) -> bool:
        return 0 < self.times == len(self.values)

    @property
    def live(self) -> bool:
        """True if other values could make the gradients right, and the matrix is known"""
        return self.jacobian is not None and self.reachable

    @property
    def plural(self) -> bool:
        """True if its value is a tuple or a list of arrays"""
        return isinstance(self.values[0], (tuple, list))

    def parts(self, values: Sequence[Any]) -> list[Array]:
        """The arrays in all of its values, in a row"""
        return [np.asarray(part) for value in values for part in (value if self.plural else (value,))]

    def flat(self, values: Sequence[Any]) -> Array:
        """All numbers of these values, in a row"""
        return np.concatenate([part.ravel() for part in self.parts(values)]).astype(float)

    def shaped(self, flat: Array) -> list[Any]:
        """Values like its own, from a row of numbers"""
        parts = self.parts(self.values)
        pieces = np.split(flat, np.cumsum([part.size for part in parts])[:-1])
        pieces = [piece.reshape(part.shape) for piece, part in zip(pieces, parts)]
        pieces = [piece if piece.ndim else np.float64(piece) for piece in pieces]
        if not self.plural:
            return pieces
        each = len(pieces) // len(self.values)
        return [type(self.values[0])(pieces[k : k + each]) for k in range(0, len(pieces), each)]

    def widened(self, value: Any, scope: dict[str, Any]) -> Any:
        """What is added to a wider array, as wide"""
        target = getattr(self.statement, "target", None)
        if isinstance(self.statement, ast.AugAssign) and isinstance(target, ast.Name):
            held = scope.get(target.id)
            if isinstance(held, np.ndarray) and np.shape(value) != held.shape:
                return np.broadcast_to(value, held.shape).copy()
        return value


class Program:
    """The author's functions with hooks in them; inside its block they can be run."""

    def __init__(self, target: Target):
        self.target, self.sites, self.runs = target, [], 0
        subject, evidence = target.subject, target.evidence
        evidence.back_to_the_point()
        functions = functions_that_run(lambda: subject.run(evidence.dy_again()), evidence.sound)
        self.sources, self._codes = [], {}
        for function in functions:
            try:
                source = source_of(function)
                sites = list(_sites(source))
                text = hooked(source, [site.node for site in sites], len(self.sites))
                self._codes[function] = compiled(function, text, source.file.text)
            except (Unavailable, SyntaxError, StopIteration):
                continue
            self.sources.append(source)
            self.sites += sites
        self.originals = {function: function.__code__ for function in self._codes}
        self._put, self._recording, self._in_backward, self._calls = {}, False, False, UNLIMITED
        self._has_while = any(isinstance(node, ast.While) for source in self.sources for node in ast.walk(source.node))

    def __enter__(self):
        self._stack = ExitStack()
        self._stack.enter_context(running_as(self._codes))
        self._spaces = {id(f.__globals__): f.__globals__ for f in self._codes}.values()
        for space in self._spaces:
            space[HOOK] = self._hook
        self.record()
        return self

    def __exit__(self, *_):
        for space in self._spaces:
            space.pop(HOOK, None)
        self._stack.close()

    def _hook(self, k, value):
        site = self.sites[k]
        if self._recording:
            scope = sys._getframe(1).f_locals            # the names that the author's function has now
            site.times += 1
            site.backward = site.backward or self._in_backward
            if len(site.values) < MOST_RUNS:
                site.scopes.append({name: copied(x) for name, x in scope.items()})
                site.values.append(copied(site.widened(value, scope)))
        if site in self._put:
            values = self._put[site]
            return values.pop(0) if values else value
        return value

    def run(self, put: dict[Site, list[Any]] | None = None) -> tuple[Any, Array | None]:
        """(y, the gradients in a row, None where one has another shape), with other values put in"""
        self.runs += 1
        self._put = {site: list(map(copied, values)) for site, values in (put or {}).items()}
        try:
            self.target.evidence.back_to_the_point()
            self._in_backward = False
            with self.ends():
                y, backward = self.target.subject.forward()
                y = np.copy(y)
                self._in_backward = True
                return y, self.target.row(backward(self.target.evidence.dy_again()))
        finally:
            self._put = {}

    def ends(self) -> AbstractContextManager:
        """A block that ends: where there are while-loops, which a change may make endless, calls are counted"""
        return at_most(self._calls) if self._has_while else nullcontext()

    def record(self) -> None:
        """Note the values and names of all sites in one run; of functions inside others also the names around them."""
        self._recording = True
        try:
            with at_most(UNLIMITED) if self._has_while else nullcontext([0]) as count:
                self.y, self.row = self.run()
            self._calls = 20 * count[0] + 1000
        except FAILURES:
            self.y = self.row = None
        finally:
            self._recording = False
        last = {}                                        # node of a function -> its names when it returned
        for site in self.sites:
            if site.scopes:
                last[site.functions[-1]] = {**last.get(site.functions[-1], {}), **site.scopes[-1]}
        for site in self.sites:
            space = site.source.function.__globals__
            around = {name: x for node in site.functions[:-1] for name, x in last.get(node, {}).items()}
            site.scopes = [{**around, **scope} for scope in site.scopes]
            site.own_names = [*dict.fromkeys([*(site.scopes[0] if site.scopes else ())])]
            site.scopes = [{**space, **scope} for scope in site.scopes]

    @cached_property
    def eligible(self) -> list[Site]:
        """The sites on which a gradient may depend, and y does not; their matrices are measured"""
        found = []
        for site in self.sites:
            if site.complete and self.y is not None and self._probe(site):
                found.append(site)
                self._measure(site)
        return sorted(found, key=lambda site: not site.live)

    def _probe(self, site):
        """Whether another value of the site leaves y as it is; one that moves no wrong gradient is out at once"""
        if not site.is_value or not _is_numeric(site):
            return site.backward
        flat = site.flat(site.values)
        try:
            y, row = self.run({site: site.shaped(flat + np.random.default_rng(0).uniform(0.3, 1, flat.size))})
        except FAILURES:
            return site.backward
        if np.shape(y) != np.shape(self.y) or not np.array_equal(y, self.y, equal_nan=True):
            return False
        if row is not None and self.row is not None:
            wrong = ~(np.abs(self.target.goal - self.row) <= self.target.tolerance)      # also where it is not a number
            site.reachable = bool(np.any((row != self.row)[wrong]))
        return site.backward or row is None or self.row is None or not np.array_equal(row, self.row)

    def _measure(self, site):
        """The gradients as an affine function of the site's values, of all times that it ran together."""
        if not site.is_value or not _is_numeric(site) or self.row is None or not site.reachable:
            return
        base = site.flat(site.values)
        if base.size > LARGEST or self.runs + base.size > RUNS:
            return

        def row(flat):
            return self.run({site: site.shaped(flat)})[1]

        try:
            again = row(base)
            if again is None or not np.array_equal(again, self.row):
                return
            columns = [row(base + one) for one in np.eye(base.size)]
            step = np.random.default_rng(0).normal(size=base.size)
            moved = row(base + step)
        except FAILURES:
            return
        if moved is None or any(column is None for column in columns):
            return
        J = np.stack(columns, 1) - self.row[:, None]
        slack = AFFINE * max(1e-3, np.abs(self.row).max(initial=0))
        if not np.allclose(moved - self.row, J @ step, rtol=AFFINE, atol=slack):
            return
        site.base, site.jacobian, site.missing = base, J, self.target.goal - self.row
        solution = self.target.solution(J, site.missing)
        site.reachable = solution is not None
        if site.reachable and len(site.scopes) > 1 and not site.plural:
            self._live_again(site, base + solution)

    def _live_again(self, site, flat):
        """In a loop, names are what they would be if the values of the rounds before were those that are right."""
        names, values = site.scopes, site.shaped(flat)
        seen = []

        def hook(k, value):
            if self.sites[k] is site:
                seen.append({name: copied(x) for name, x in sys._getframe(1).f_locals.items()})
                return copied(values[len(seen) - 1]) if len(seen) <= len(values) else value
            return value

        for space in self._spaces:
            space[HOOK] = hook
        try:
            self.run()
        except FAILURES:
            return
        finally:
            for space in self._spaces:
                space[HOOK] = self._hook
        if len(seen) == len(names):
            for scope, again in zip(names, seen):
                scope.update(again)


def _is_numeric(site):
    try:
        parts = site.parts(site.values)
        return all(part.dtype.kind in "fiu" for part in parts) and sum(part.size for part in parts) > 0
    except (TypeError, ValueError):
        return False


def _sites(source):
    """The Sites of a function and of those inside it"""
    def visit(node, functions):
        if isinstance(node, ast.Lambda):
            yield from (Site(source, node, part, functions, True) for part in _values_in(node.body))
        for child in own_nodes(node):
            if isinstance(child, ast.stmt):
                yield from (Site(source, child, part, functions, is_value) for part, is_value in expressions_in(child))
        for inner in functions_in(node):
            yield from visit(inner, [*functions, inner])

    yield from visit(source.node, [source.node])


def expressions_in(statement: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """(expression, whether it is a value) of one statement: what it assigns, returns, calls, loops over or asks"""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr):
        call = value if isinstance(value, ast.Call) else None
        yield from ((part, True) for part in (call.args if call else []) if not isinstance(part, ast.Starred))
        value = None if call and next(_given_to_authors(ast.Expression(call)), None) in call.args else value
    elif isinstance(value, ast.expr):
        yield from ((part, True) for part in _values_in(value))
    for part in (getattr(statement, "iter", None), getattr(statement, "test", None)):
        if isinstance(part, ast.expr):
            yield part, False
    yield from ((part, True) for part in _given_to_authors(value))
    for place in getattr(statement, "targets", [getattr(statement, "target", None)]):
        if isinstance(place, ast.Subscript) and not _has_slice(place.slice):
            yield place.slice, False


def _given_to_authors(node):
    """What is given to the author's own functions and methods, which may keep it: self.layer.backward(dy * mask)"""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and not hasattr(np.ndarray, node.func.attr)
        function = isinstance(node.func, ast.Name) and not hasattr(builtins, node.func.id)
        if function or (method and not is_library(node.func)):
            yield from (part for part in node.args if not isinstance(part, (ast.Starred, ast.Constant)))
    if isinstance(node, ast.AST) and not isinstance(node, INNER):
        for child in ast.iter_child_nodes(node):
            yield from _given_to_authors(child)


def is_library(node: ast.AST) -> bool:
    """True for np of np.sum, and np.add of np.add.at"""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in LIBRARIES


def _values_in(value):
    """An expression; of a tuple, a list or a dict that is written out, those in it"""
    if isinstance(value, (ast.Tuple, ast.List)) and value.elts:
        for part in value.elts:
            yield from _values_in(part) if not isinstance(part, ast.Starred) else ()
    elif isinstance(value, ast.Dict) and value.values:
        for part in value.values:
            yield from _values_in(part)
    elif not isinstance(value, (ast.Yield, ast.YieldFrom, ast.Await)):
        yield value


def functions_in(node: ast.AST) -> Iterator[ast.AST]:
    """The functions directly inside a function"""
    waiting = list(node.body) if isinstance(node.body, list) else [node.body]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, (ast.FunctionDef, ast.Lambda)):
            yield one
        elif not isinstance(one, ast.ClassDef):
            waiting += ast.iter_child_nodes(one)


def _has_slice(node):
    return any(isinstance(one, (ast.Slice, ast.Starred)) for one in ast.walk(node))


def hooked(source: Source, nodes: Sequence[ast.expr], first: int) -> str:
    """The file's text with _at_(k, …) around each of these expressions, k counted from `first`"""
    marks = []
    for k, node in enumerate(nodes, first):
        start, end = source.file.span(node)
        before, behind = ("(", ")") if isinstance(node, ast.Tuple) else ("", "")         # of an index: dW[i, j]
        marks += [(start, 1, -end, f"{HOOK}({k}, {before}"), (end, 0, -start, f"{behind})")]
    changed, at = [], 0
    for place, _, _, mark in sorted(marks):              # at one place: ends before beginnings, outer ones first
        changed += [source.file.text[at:place], mark]
        at = place
    return "".join([*changed, source.file.text[at:]])


def copied(x: Any) -> Any:
    """A copy of an array, also of those in tuples and lists, which others may write into; all else as it is"""
    if isinstance(x, np.ndarray):
        return x.copy()
    return type(x)(map(copied, x)) if type(x) in (tuple, list) else x


def one_line(text: str) -> str:
    """A statement in one line, without the comment behind it"""
    lines = [line.partition("  #")[0].strip() for line in text.split("\n")]
    return " ".join(line for line in lines if not line.startswith("#"))

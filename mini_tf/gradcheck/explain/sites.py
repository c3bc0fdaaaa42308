"""A statement's expression and its parts: their values in a run, and the gradients as a function of them.

The gradients are an affine function of the value of nearly every expression. A Site has the matrix of that function,
which was measured; its Expressions carry it inwards, by evaluating only what stands around them.
"""

import ast
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.hooks import expressions_in, is_tensor, nodes_of, values_in
from mini_tf.gradcheck.source import Source, own_nodes
from mini_tf.types import Array

import numpy as np

LARGEST = 500            # numbers in all values of an expression: more take too long to vary one by one
PART = "_part_"          # the name that stands for the part whose value varies
AFFINE = 1e-7            # relative: how close to an affine function it has to be
Functions = Sequence[ast.FunctionDef | ast.Lambda]
Statement = ast.stmt | ast.Lambda


@dataclass(eq=False)
class Site:
    """An expression of a statement, or a lambda's body, with its values in one run."""

    source: Source
    statement: Statement
    node: ast.expr
    functions: Functions                                 # around it, the outermost first
    is_value: bool                                       # assigned, added, returned, or handed to what is called
    values: list[Any] = field(default_factory=list)      # of each time that it ran, in order
    scopes: list[dict[str, Any]] = field(default_factory=list)       # and the names that it could read then
    own_names: list[str] = field(default_factory=list)   # those names, without the file's
    phases: set[str] = field(default_factory=set)        # "forward" and "backward", if it ran there
    replaceable: bool = False                          # all its values are known, and others can take their place
    moves: Array | None = None                           # which entries of the gradients another value moves, if known
    moves_all_wrong: bool = True                         # whether those are all the wrong ones, as far as that is known
    jacobian: Array | None = None                        # the matrix of the gradients in its values, if measured
    missing: Array = field(default_factory=lambda: np.zeros(0))      # what the gradients lack
    solution: Array | None = None                        # added to the values, it makes the gradients right

    @property
    def is_parameter(self) -> bool:
        """True for `dy = dy`, which stands for a function's parameter"""
        return self.text_of(self.statement) == f"{(name := self.text_of(self.node))} = {name}"

    @cached_property
    def may_be_endless(self) -> bool:
        """True in a function with a while-loop, which an edit could make endless: only values are replaced there"""
        return any(isinstance(node, ast.While) for node in own_nodes(self.functions[-1]))

    @property
    def is_numeric(self) -> bool:
        """True if all its values are numbers, or arrays of numbers"""
        return self.replaceable and all(is_numeric(value) for value in self.values) and self.base.size > 0

    @property
    def may_repair(self) -> bool:
        """True if it is not ruled out that another value makes all gradients right"""
        return self.moves_all_wrong and (self.jacobian is None or self.solution is not None)

    @cached_property
    def base(self) -> Array:
        return flat(self.values)

    def shaped(self, row: Array) -> list[Any]:
        """Values like its own, from a row of numbers"""
        pieces = np.split(row, np.cumsum([*map(size_of, self.values)])[:-1])
        return [like(value, piece) for piece, value in zip(pieces, self.values)]

    @cached_property
    def expressions(self) -> list["Expression"]:
        """All parts of its expression, the outermost first"""
        return [Expression(self, node) for node in nodes_of(self.node)]

    def text_of(self, node: ast.AST) -> str:
        """A node's text in one line"""
        return one_line(self.source.file.of(node))

    def with_replaced(self, node: ast.AST, new: str) -> str:
        """The text of its expression with another text in the place of a node"""
        file, (first, last), (start, end) = self.source.file, *map(self.source.file.span, (self.node, node))
        new = new if isinstance(node, ast.Slice) else f"({new})"
        return file.text[first:start] + new + file.text[end:last]

    def evaluated(self, text: str) -> list[Any]:
        """An expression's values, each time that the site runs; none if it cannot be evaluated by itself"""
        try:
            code = code_of(text)
            return [eval(code, scope) for scope in self.scopes]
        except FAILURES:                                 # a slice; a name of a comprehension
            return []


class Expression:
    """A part of a site's expression, with its node in the file's tree and its text as the author wrote it."""

    def __init__(self, site: Site, node: ast.expr):
        self.site = site
        self.node = node
        self.is_whole: bool = node is site.node
        self.text: str = site.text_of(node)

    @cached_property
    def values(self) -> list[Any]:
        """Its values, of each time that the site ran"""
        return self.site.values if self.is_whole else self.site.evaluated(self.text)

    @property
    def is_numeric(self) -> bool:
        return bool(self.values) and is_numeric(self.values[0])

    @cached_property
    def jacobian(self) -> Array | None:
        """The matrix of the gradients in its values; None where they are no affine function"""
        J = self.site.jacobian
        if J is None or self.is_whole:
            return J
        if not self.is_numeric or sum(map(size_of, self.values)) > LARGEST:
            return None
        ends = np.cumsum([*map(size_of, self.site.values)])[:-1]
        try:
            context, columns = code_of(self.site.with_replaced(self.node, PART)), []
            for scope, value, after in zip(self.site.scopes, self.values, np.split(J, ends, 1)):
                columns.append(after @ matrix_of(_within(context, scope, value), flat([value])))
        except FAILURES:
            return None
        return np.concatenate(columns, 1)


def _within(context: Any, scope: dict[str, Any], value: Any) -> Callable[[Array], Array]:
    """The site's value, in a row, as a function of the part's"""
    return lambda v: flat([eval(context, {**scope, PART: like(value, v)})])


def matrix_of(f: Callable[[Array], Any], base: Array) -> Array:
    """D of f(base + step) = f(base) + D @ step. Raises ValueError if f is no such affine function."""
    here, step = f(base), np.random.default_rng(0).normal(size=base.size)
    D = np.stack([f(base + one) - here for one in np.eye(base.size)], 1)
    slack = AFFINE * max(1e-3, np.abs(here).max(initial=0))
    if not np.allclose(f(base + step) - here, D @ step, rtol=AFFINE, atol=slack):
        raise ValueError("no affine function")
    return D


def sites_in(source: Source, node: ast.AST | None = None, functions: Functions = ()) -> Iterator[Site]:
    """The Sites of a function and of those inside it; or of one of its nodes, with the functions around that"""
    node = node or source.node
    inside: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef):
        functions, inside = [*functions, node], node.body
    elif isinstance(node, ast.Lambda):
        functions, inside = [*functions, node], [node.body]
        yield from (Site(source, node, part, functions, True) for part in values_in(node.body))
    elif isinstance(node, ast.stmt):
        yield from (Site(source, node, part, functions, is_value) for part, is_value in expressions_in(node))
    for child in inside:
        if not isinstance(child, ast.ClassDef):
            yield from sites_in(source, child, functions)


def like(value: Any, row: Array) -> Any:
    """The numbers of a row as what the value is: a tensor, an array or a number"""
    array = np.array(row).reshape(np.shape(value))
    return sys.modules["torch"].from_numpy(array) if is_tensor(value) else array if array.ndim else float(array)


def size_of(value: Any) -> int:
    """How many numbers are in an array, a tensor or a number"""
    return math.prod(np.shape(value))


def flat(values: Sequence[Any]) -> Array:
    """All numbers of some arrays in a row"""
    return np.concatenate([np.ravel(value) for value in values]).astype(float)


def code_of(text: str) -> Any:
    """The code that evaluates an expression"""
    return compile(f"({text}\n)", "<change>", "eval")


def is_numeric(value: Any) -> bool:
    """True for a number or an array of numbers"""
    if isinstance(value, bool) or not (isinstance(value, (np.ndarray, np.generic, int, float)) or is_tensor(value)):
        return False
    return np.asarray(value).dtype.kind in "fiub"


def one_line(text: str) -> str:
    """A statement in one line, without the comment behind it"""
    lines = [line.partition("  #")[0].strip() for line in text.split("\n")]
    return " ".join(line for line in lines if not line.startswith("#"))

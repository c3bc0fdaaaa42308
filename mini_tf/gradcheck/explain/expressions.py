"""The parts of a statement's expression, each with its values and the matrix of the gradients in them."""

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.sites import LARGEST, Site, is_library
from mini_tf.gradcheck.explain.target import Target
from mini_tf.types import Array

import numpy as np

PUT = "_put_"            # the name that stands for the part whose value is another


class Expression:
    """A part of a site's expression.

    node      in the file's tree;  text: as the author wrote it
    values    its values, of each time that the site ran; None where it cannot be evaluated by itself
    """

    def __init__(self, site: Site, node: ast.expr, target: Target):
        self.site, self.node, self.target = site, node, target
        self.text = site.source.file.of(node)
        self.is_whole = node is site.node
        self.values = self._evaluated()

    def _evaluated(self):
        if isinstance(self.node, ast.Slice):
            return None
        once = self.is_whole and len(self.site.scopes) == 1
        try:
            code = code_of(self.node)
            values = list(self.site.values) if once else [eval(code, scope) for scope in self.site.scopes]
        except FAILURES:
            return None
        return [self.site.widened(v, scope) for v, scope in zip(values, self.site.scopes)] if self.is_whole else values

    @property
    def is_numeric(self) -> bool:
        return self.values is not None and is_numeric(self.values[0])

    @cached_property
    def context(self) -> Any:
        """The code of the site's expression with PUT in the place of this part; None if there is none"""
        try:
            return code_of(replaced(self.site.node, self.node, ast.Name(PUT, ast.Load())))
        except (SyntaxError, ValueError, TypeError):
            return None

    def within(self, k: int, value: Any) -> Any:
        """The site's k-th value if this part's value were this one"""
        if self.is_whole:
            return self.site.widened(value, self.site.scopes[k])
        scope = self.site.scopes[k]
        try:
            scope[PUT] = value
            return self.site.widened(eval(self.context, scope), scope)
        finally:
            scope.pop(PUT, None)

    @cached_property
    def missing(self) -> Array:
        """What the gradients lack; in a loop, beside the rounds before that are right"""
        _ = self.jacobian
        return self._missing

    @cached_property
    def jacobian(self) -> Array | None:
        """The gradients as an affine function of the values; None where they are not, or where no values help"""
        site, self._missing = self.site, self.site.missing
        if not site.live or not self.is_numeric or sum(np.size(v) for v in self.values) > LARGEST:
            return None
        if self.is_whole and len(site.scopes) == 1:
            return site.jacobian
        columns, start, missing = [], 0, site.missing
        try:
            for k, v in enumerate(np.asarray(v, float) for v in self.values):
                base = self._flat(self.within(k, v if v.ndim else float(v)))
                J = site.jacobian[:, start : start + base.size]
                missing = missing - J @ (base - site.base[start : start + base.size])    # in a loop lived again
                start += base.size
                step = np.random.default_rng(1).normal(size=v.shape)
                moves = [*np.eye(v.size).reshape(v.size, *v.shape), step]
                moved = [self._flat(self.within(k, v + d if v.ndim else float(v + d.item()))) - base for d in moves]
                D = np.stack(moved[:-1], 1)
                if not np.allclose(moved[-1], D @ step.ravel(), rtol=1e-7, atol=1e-9):
                    return None
                columns.append(J @ D)
        except FAILURES:
            return None
        self._missing = missing
        J = np.concatenate(columns, 1)
        return J if self.target.solution(J, missing) is not None else None

    def _flat(self, value):
        return np.concatenate([np.ravel(part) for part in (value if self.site.plural else (value,))]).astype(float)


def expressions_of(site: Site, target: Target) -> list[Expression]:
    """All parts of a site's expression, the outermost first"""
    return [Expression(site, node, target) for node in nodes_of(site.node)]


def nodes_of(node: ast.expr) -> Iterator[ast.expr]:
    """A node and all expressions in it: not inside lambdas, and not the name of what is called"""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, (ast.expr, ast.Slice)) and not isinstance(getattr(node, "ctx", None), ast.Store):
        yield node
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.Call) and field == "func":
            if isinstance(value, ast.Attribute) and not is_library(value.value):
                yield from nodes_of(value.value)
        else:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.keyword):
                    yield from nodes_of(one.value)
                elif isinstance(one, (ast.expr, ast.Slice, ast.comprehension)):
                    yield from nodes_of(one)


def replaced(node: ast.AST, old: ast.AST, new: ast.AST) -> ast.AST:
    """A copy of a tree in which one node is another; the rest is shared"""
    if node is old:
        return new
    if not any(one is old for one in ast.walk(node)):
        return node
    fields = {}
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[field] = [replaced(one, old, new) if isinstance(one, ast.AST) else one for one in value]
        else:
            fields[field] = replaced(value, old, new) if isinstance(value, ast.AST) else value
    return ast.copy_location(type(node)(**fields), node)


def code_of(node: ast.expr) -> Any:
    """The code that evaluates a node"""
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<change>", "eval")


def is_numeric(value: Any) -> bool:
    """True for a number or an array of numbers"""
    if isinstance(value, bool) or not isinstance(value, (np.ndarray, np.generic, int, float)):
        return False
    return np.asarray(value).dtype.kind in "fiub"

"""What a line's expression is made of: the terms of its sums, the factors of its products, with their values.

    dx = r * (g - g.mean(-1, keepdims=True))
    →  a product of r and the rest;  the rest is a sum of g and −g.mean(…);  that is a mean of g over the last axis

The parts are read from the source and evaluated with the variables that the line itself had, by `evaluating.py`, which
does only what has no side effects. What other functions returned was recorded when they ran. Parts that together do not
give what the line gave are left out.
"""

import ast
import inspect
from collections.abc import Mapping
from functools import reduce
from types import CodeType
from typing import Any

from mini_tf.explore.arrays import Store
from mini_tf.explore.evaluating import Evaluator, NotPure, is_array
from mini_tf.explore.sheets import WrittenCode
from mini_tf.ops import shapes

import numpy as np

DEEPEST = 6
SIGNS = {ast.Add: 1, ast.Sub: -1}
SYMBOLS = {ast.Div: "/", ast.MatMult: "@", ast.Pow: "**"}
DEFERRED = ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
SUMS = "+", "sum", "mean", "sum_to"
CLOSE = 1e-4             # relative to the largest entry, of a sum also of its terms: their order changes its rounding

Parts = dict[str, Any]   # {"src": its text, "value": a reference, "op": what joins its parts, "of": [Parts], …}


class PartFinder:
    """Finds the parts of the expressions of one statement.

    variables   {name: value} of the function before the statement ran, and its globals
    calls       [(Frame, what it returned)] of the functions that the statement called
    """

    def __init__(self, store: Store, written: WrittenCode, variables: Mapping[str, Any], calls: list[tuple]):
        self.store, self.written, self.calls = store, written, calls
        self.evaluator = Evaluator(variables)

    def of(self, node: ast.expr, value: Any) -> Parts | None:
        """The parts of an expression that gave `value`, or None if it has none that can be shown."""
        if not is_array(value) or np.ndim(value) == 0:
            return None
        try:
            node = self.chosen(node)
            self._match_calls(node)
            found = self._parts(node, value, 0)
        except Exception:                                # an expression of an unforeseen kind
            return None
        return found if "op" in found else None

    def chosen(self, node: ast.expr) -> ast.expr:
        """The branch that was taken of a if … else b; any other expression itself"""
        try:
            while isinstance(node, ast.IfExp):
                node = node.body if self.evaluator.plain(node.test) else node.orelse
        except NotPure:
            pass
        return node

    def of_change(
        self, before: dict[str, Any], statement: ast.AugAssign, name: str, value: Any
    ) -> Parts | None:
        """Of x += y: what x was before, and what the statement has added to it"""
        old: Any = before.get(name)
        if not (is_array(value) and is_array(old)) or np.shape(old) != np.shape(value) or value.dtype.kind != "f":
            return None
        with np.errstate(all="ignore"):
            terms = [self._leaf(f"{name} before", old), self._leaf(f"what the line has added to {name}", value - old)]
        part = self._leaf(self.written.source_of(statement), value)
        return part | {"op": "+", "of": terms, "signs": [1, 1], "change": True}

    # The parts ------------------------------------------------------------------------------------------------------

    def _parts(self, node, value, depth):
        part = self._leaf(self.written.source_of(node), value)
        if depth >= DEEPEST or not is_array(value) or id(node) in self.evaluator.recorded:
            return part
        found = self._operation(node, value)
        if found is None:
            return part
        symbol, nodes, more = found
        try:
            operands = [self.evaluator.value(one) for one in nodes]
        except NotPure:
            return part
        if not _gives(symbol, operands, more, value):
            return part
        of = [self._parts(one, operand, depth + 1) for one, operand in zip(nodes, operands)]
        return part | {"op": symbol, "of": of} | more

    def _leaf(self, source, value):
        return {"src": source, "value": self.store.refer(value)}

    def _operation(self, node, value):
        """(symbol, the operands' expressions, further fields of its Parts) of an expression; None of any other"""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return "+", [node.operand], {"signs": [-1]}
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            terms = _terms(node, 1)
            return "+", [one for one, _ in terms], {"signs": [sign for _, sign in terms]}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return "*", _factors(node), {}
        if isinstance(node, ast.BinOp) and type(node.op) in SYMBOLS:
            return SYMBOLS[type(node.op)], [node.left, node.right], {}
        if isinstance(node, ast.Call):
            return self._call(node, value)
        return None

    def _call(self, node, value):
        f, options = node.func, {keyword.arg: keyword.value for keyword in node.keywords}
        if isinstance(f, ast.Attribute) and is_array(owner := self._known(f.value)):
            name, of, rest = f.attr, f.value, node.args
        elif (called := self._known(f)) is not None and node.args:
            owner, of, rest = self._known(node.args[0]), node.args[0], node.args[1:]
            name = {shapes.transpose: "T", shapes.sum_to: "sum_to"}.get(called) or getattr(called, "__name__", "")
            if isinstance(called, np.ufunc):
                return (name, [of], {}) if called.nin == 1 else None
        else:
            return None
        if not is_array(owner):
            return None
        if name in ("sum", "mean"):
            axis = options.get("axis", rest[0] if rest else None)
            axis = None if axis is None else self.evaluator.value(axis)
            axes = range(owner.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
            keep = bool(self.evaluator.value(options["keepdims"])) if "keepdims" in options else False
            return name, [of], {"axes": [int(a) % owner.ndim for a in axes], "keep": keep}
        if name in ("reshape", "ravel", "astype", "copy"):
            return "reshape", [of], {}
        if name == "swapaxes" and len(rest) == 2:
            return name, [of], {"axes": [int(self.evaluator.value(axis)) % owner.ndim for axis in rest]}
        if name == "T":
            return "swapaxes", [of], {"axes": [value.ndim - 2, value.ndim - 1]}
        return (name, [of], {}) if name == "sum_to" else None

    def _known(self, node):
        try:
            return self.evaluator.value(node)
        except NotPure:
            return None

    # What other functions returned ----------------------------------------------------------------------------------

    def _match_calls(self, node):
        """Give the node of each recorded call what the call returned; they are matched in order and by their code."""
        waiting = list(self.calls)
        for call in _in_order(node):
            if not waiting:
                return
            frame, returned = waiting[0]
            if self._code_called(call.func) is frame.written.code:
                self.evaluator.recorded[id(call)] = returned
                waiting.pop(0)

    def _code_called(self, node: ast.expr) -> CodeType | None:
        """The code that a call of this expression runs, or None if that cannot be known"""
        try:
            f = self.evaluator.value(node)
        except NotPure:
            return None
        f = getattr(f, "formula", getattr(f, "__func__", f))             # of an op, of a method
        if not inspect.isfunction(f):
            f = getattr(type(f), "__call__", None)               # noqa: B004
        return getattr(inspect.unwrap(f), "__code__", None) if callable(f) else None


def _gives(symbol, operands, more, value):
    """True if the operands together give the value, but for rounding."""
    try:
        with np.errstate(all="ignore"):
            together = _together(symbol, operands, more, np.shape(value))
            off = np.abs(np.subtract(together, value, dtype=float))
    except Exception:
        return False
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in map(np.asarray, [value, *operands * (symbol in SUMS)])]
    same = np.array_equal(together, value, equal_nan=True) or bool((off <= CLOSE * max(sizes) + 1e-12).all())
    return same and np.shape(together) == np.shape(value)


def _together(symbol, operands, more, shape):
    """What the operands give together"""
    x = np.asarray(operands[0])
    match symbol:
        case "+":
            return sum(sign * np.asarray(one) for sign, one in zip(more["signs"], operands))
        case "*":
            return reduce(np.multiply, operands)
        case "/" | "@" | "**":
            return {"/": np.divide, "@": np.matmul, "**": np.power}[symbol](*operands)
        case "sum" | "mean":
            return getattr(np, symbol)(x, axis=tuple(more["axes"]), keepdims=more["keep"])
        case "sum_to":
            return shapes.sum_to(x, shape)
        case "reshape":
            return x.reshape(shape)
        case "swapaxes":
            return x.swapaxes(*more["axes"])
    return getattr(np, symbol)(x)


def _in_order(node):
    """The calls of an expression in the order in which Python makes them, without those made later or several times"""
    if isinstance(node, DEFERRED):
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)
    if isinstance(node, ast.Call):
        yield node


def _terms(node, sign):
    """[(expression, sign)] of a sum, left to right"""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        return _terms(node.left, sign) + _terms(node.right, sign * SIGNS[type(node.op)])
    return [(node, sign)]


def _factors(node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) + _factors(node.right)
    return [node]

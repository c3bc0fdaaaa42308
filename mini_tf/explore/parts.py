"""What a line's expression is made of: the terms of its sums, the factors of its products, with their values.

    dx = r * (g - g.mean(-1, keepdims=True))
    →  a product of r and the rest;  the rest is a sum of g and −g.mean(…);  that is a mean of g over the last axis

The parts are read from the source and evaluated with the variables that the line itself had. Only what has no side
effects is evaluated again: arithmetic, NumPy's functions, methods of arrays. What other functions returned was recorded
when they ran. A part that does not give what the line gave is left out.
"""

import ast
import types

from mini_tf import backend
from mini_tf.ops import shapes

import numpy as np

METHODS = {
    "sum", "mean", "max", "min", "reshape", "swapaxes", "transpose", "astype", "copy", "ravel", "dot", "var", "std",
    "repeat", "squeeze", "cumsum", "prod", "any", "all", "argmax",
}  # fmt: skip
OURS = {shapes.transpose, shapes.sum_to, backend.array_module, backend.beside, backend.to_host, len, float, int, abs}
NOT_PURE = {"put", "copyto", "place", "putmask", "fill_diagonal", "save", "savez", "load", "seterr"}
DEEPEST = 6
SIGNS = {ast.Add: 1, ast.Sub: -1}


class NotPure(Exception):
    """An expression that is not evaluated a second time."""


class PartFinder:
    """Finds the parts of the expressions of one statement.

    before, space    the function's variables before the statement ran, and its globals
    calls            [(Frame, what it returned)] of the functions that the statement called
    """

    def __init__(self, store, written, before, space, calls):
        self.store, self.written, self.before, self.space, self.calls = store, written, before, space, calls
        self.values, self.recorded = {}, {}              # of expressions, by id; of those that are not evaluated again
        self.returned = set()                            # ids of the calls among them

    def of(self, node, value):
        """The parts of an expression that gave `value`, or None if it has none that can be shown."""
        if not _is_array(value) or value.ndim == 0:
            return None
        try:
            while isinstance(node, ast.IfExp):
                node = node.body if self._value(node.test) else node.orelse
            self._match_calls(node)
            found = self._parts(node, value, 0)
        except Exception:                                # an expression of a kind that nobody has thought of
            return None
        return found if "op" in found else None

    def of_change(self, before, statement, name, value):
        """Of x += y: what x was before, and what the statement has added to it"""
        old = before.get(name)
        if not (_is_array(value) and _is_array(old)) or old.shape != value.shape or value.dtype.kind not in "fiu":
            return None
        added = value - old
        terms = [self._leaf(f"{name} before", old), self._leaf(f"what the line has added to {name}", added)]
        return self._leaf(self.written.source_of(statement), value) | {"op": "+", "of": terms, "signs": [1, 1]}

    # The parts ------------------------------------------------------------------------------------------------------

    def _parts(self, node, value, depth):
        part = self._leaf(self.written.source_of(node), value)
        if depth >= DEEPEST or isinstance(node, (ast.Name, ast.Constant, ast.Attribute)) or not _is_array(value):
            return part
        found = self._operation(node, value, depth)
        return part | found if found else part

    def _operation(self, node, value, depth):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._with("+", [(node.operand, -1)], depth)
        if isinstance(node, ast.BinOp):
            if type(node.op) in SIGNS:
                return self._with("+", _terms(node, 1), depth)
            if isinstance(node.op, ast.Mult):
                return self._with("*", [(one, 1) for one in _factors(node)], depth)
            symbol = {ast.Div: "/", ast.MatMult: "@", ast.Pow: "**"}.get(type(node.op))
            return self._with(symbol, [(node.left, 1), (node.right, 1)], depth) if symbol else None
        if isinstance(node, ast.Call):
            return self._call(node, value, depth)
        return None

    def _call(self, node, value, depth):
        f = node.func
        if id(node) in self.returned:                    # what another function returned
            return None
        if isinstance(f, ast.Attribute) and f.attr in METHODS and _is_array(self._value(f.value)):
            if f.attr in ("sum", "mean"):
                return self._reduced(f.attr, f.value, node, depth)
            if f.attr in ("reshape", "ravel", "astype", "copy"):
                return self._with("reshape", [(f.value, 1)], depth)
            if f.attr == "swapaxes" and len(node.args) == 2:
                axes = [self._value(argument) % value.ndim for argument in node.args]
                return self._with("swapaxes", [(f.value, 1)], depth) | {"axes": axes}
            return None
        called = self._value(f)
        if called is shapes.transpose:
            return self._with("swapaxes", [(node.args[0], 1)], depth) | {"axes": [value.ndim - 2, value.ndim - 1]}
        if called is shapes.sum_to:
            return self._with("sum_to", [(node.args[0], 1)], depth)
        if getattr(called, "__name__", "") in ("sum", "mean") and getattr(called, "__module__", "") == "numpy":
            return self._reduced(called.__name__, node.args[0], node, depth, node.args[1:])
        if isinstance(called, np.ufunc) and called.nin == 1:
            return self._with(called.__name__, [(node.args[0], 1)], depth)
        return None

    def _reduced(self, how, of, node, depth, args=None):
        options = {keyword.arg: self._value(keyword.value) for keyword in node.keywords}
        args = node.args if args is None else args
        axis = options.get("axis", self._value(args[0]) if args else None)
        x = self._value(of)
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        found = self._with(how, [(of, 1)], depth)
        return found | {"axes": [int(a) % x.ndim for a in axes], "keep": bool(options.get("keepdims", False))}

    def _with(self, symbol, parts, depth):
        of = [self._parts(node, self._value(node), depth + 1) for node, _ in parts]
        return {"op": symbol, "of": of, "signs": [sign for _, sign in parts]}

    def _leaf(self, source, value):
        return {"src": source, "value": self.store.refer(value)}

    # Their values ---------------------------------------------------------------------------------------------------

    def _value(self, node):
        if id(node) in self.recorded:
            return self.recorded[id(node)]
        if id(node) not in self.values:
            self._check_pure(node)
            names = {**self.space, **self.before}
            self.values[id(node)] = eval(compile(ast.Expression(node), "<part>", "eval"), names)
        return self.values[id(node)]

    def _check_pure(self, node):
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and not self._is_pure_call(one):
                raise NotPure
            if isinstance(one, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.JoinedStr)):
                raise NotPure

    def _is_pure_call(self, node):
        f = node.func
        if any(keyword.arg == "out" for keyword in node.keywords):
            return False
        if isinstance(f, ast.Attribute) and f.attr in METHODS and not isinstance(self._root(f), types.ModuleType):
            return True
        if not isinstance(f, (ast.Name, ast.Attribute)):
            return False
        called = self._value(f)
        if isinstance(called, np.ufunc):
            return True
        module = getattr(called, "__module__", None) or ""
        return called in OURS or (module == "numpy" and getattr(called, "__name__", "") not in NOT_PURE)

    def _root(self, node):
        while isinstance(node, ast.Attribute):
            node = node.value
        return self.before.get(node.id, self.space.get(node.id)) if isinstance(node, ast.Name) else None

    def _match_calls(self, node):
        """Give each call in the expression that is not pure what it returned, if it is clear which that is."""
        calls = []
        for one in _in_order(node):
            try:
                pure = self._is_pure_call(one)
            except Exception:
                pure = False
            if not pure:
                calls.append(one)
        if len(calls) != len(self.calls):
            return
        self.recorded = {id(one): value for one, (_, value) in zip(calls, self.calls)}
        self.returned = set(self.recorded)
        for one in reversed(list(ast.walk(node))):       # the innermost first
            if id(one) not in self.recorded and any(id(inner) in self.recorded for inner in ast.walk(one)):
                self._combine(one)

    def _combine(self, node):
        """The value of an expression that has recorded calls in it: they are not made again."""
        known = {id(inner): f"_{i}" for i, inner in enumerate(ast.walk(node)) if id(inner) in self.recorded}
        try:
            replaced = _replaced(node, known)
            self._check_pure(replaced)
            names = {**self.space, **self.before, **{name: self.recorded[inner] for inner, name in known.items()}}
            self.recorded[id(node)] = eval(compile(ast.Expression(replaced), "<part>", "eval"), names)
        except Exception:                                # no expression, or not pure
            return


def _replaced(node, names):
    """A copy of an expression with some of its nodes, by id, replaced by names"""
    if id(node) in names:
        return ast.copy_location(ast.Name(names[id(node)], ast.Load()), node)
    copy = type(node)(**{
        field: [_replaced(one, names) if isinstance(one, ast.AST) else one for one in value] if isinstance(value, list)
        else _replaced(value, names) if isinstance(value, ast.AST) else value
        for field, value in ast.iter_fields(node)
    })  # fmt: skip
    return ast.copy_location(copy, node) if hasattr(node, "lineno") else copy


def _in_order(node):
    """The calls of an expression in the order in which Python makes them"""
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


def _is_array(x):
    return hasattr(x, "dtype") and hasattr(x, "shape")

"""Evaluate parts of an expression a second time, but only what has no side effects.

Somebody else's code may draw random numbers, count, print or write when it is merely read: by a property, an operator
of its own, a method called `mean`. So an expression is evaluated node by node, and each operand has to be a plain array
or number before anything is done with it. Functions are on a list, one by one.
"""

import ast
import inspect
import operator
from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from mini_tf import backend
from mini_tf.ops import shapes

import numpy as np

BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.MatMult: operator.matmul, ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
COMPARED = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
ATTRIBUTES = {"T", "shape", "size", "ndim", "dtype"}     # of arrays, as these methods
METHODS = {
    "sum", "mean", "max", "min", "var", "std", "prod", "any", "all", "argmax", "reshape", "swapaxes", "transpose",
    "astype", "copy", "ravel", "dot", "repeat", "squeeze",
}  # fmt: skip
FUNCTIONS = {
    np.sum, np.mean, np.max, np.min, np.var, np.std, np.prod, np.where, np.zeros_like, np.ones_like, np.zeros, np.ones,
    np.eye, np.arange, np.transpose, np.swapaxes, np.reshape, np.outer, np.dot, np.einsum, np.tri, np.tril, np.triu,
    np.expand_dims, np.clip, np.copy, np.ravel, np.squeeze, np.full_like, np.repeat, np.argmax, np.concatenate,
    np.stack, np.broadcast_to, np.diag, np.float32, np.float64, shapes.transpose, shapes.sum_to, backend.array_module,
    backend.to_device_of, backend.to_host, len, float, int, abs, tuple,
}  # fmt: skip
OPTIONS = {"axis", "keepdims", "dtype", "k"}
NUMBERS = bool, int, float, complex, type(None), type(Ellipsis), str


class NotPure(Exception):
    """An expression that is not evaluated a second time."""


class Evaluator:
    """Gives the values of expressions, by these variables.

    recorded   {id of a node: its value} of calls that are not made again, because what they returned is known
    """

    def __init__(self, variables: Mapping[str, Any]):
        self.variables = variables
        self.recorded: dict[int, Any] = {}
        self.known: dict[int, Any] = {}                  # what has been evaluated already

    def value(self, node: ast.expr) -> Any:
        """The value of an expression. Raises NotPure, or whatever the expression raises."""
        if id(node) in self.recorded:
            return self.recorded[id(node)]
        if id(node) not in self.known:
            evaluate = getattr(self, f"_{type(node).__name__}", None)
            if evaluate is None:
                raise NotPure(type(node).__name__)
            with np.errstate(all="ignore"):
                self.known[id(node)] = evaluate(node)
        return self.known[id(node)]

    def plain(self, node: ast.expr) -> Any:
        """The value of an expression that arithmetic can be done with"""
        found = self.value(node)
        if not is_plain(found):
            raise NotPure(type(found).__name__)
        return found

    def _Constant(self, node):
        return node.value

    def _Name(self, node):
        if node.id in self.variables:
            return self.variables[node.id]
        builtin = {f.__name__: f for f in (len, float, int, abs, tuple)}.get(node.id)
        if builtin is None:
            raise NotPure(node.id)
        return builtin

    def _Attribute(self, node):
        owner = self.value(node.value)
        if is_array(owner):
            if node.attr not in ATTRIBUTES:
                raise NotPure(node.attr)
            return getattr(owner, node.attr)
        if isinstance(owner, ModuleType):
            if node.attr in vars(owner):
                return vars(owner)[node.attr]
            raise NotPure(node.attr)
        of_class = inspect.getattr_static(type(owner), node.attr, None)
        if isinstance(of_class, property) or hasattr(type(of_class), "__set__"):
            raise NotPure(node.attr)                     # it runs code
        with suppress(AttributeError):                   # it has slots
            own = object.__getattribute__(owner, "__dict__")
            if node.attr in own:
                return own[node.attr]
        if inspect.isfunction(of_class):
            return of_class                              # a method; it is only asked what it is
        raise NotPure(node.attr)

    def _UnaryOp(self, node):
        return UNARY[type(node.op)](self.plain(node.operand))

    def _BinOp(self, node):
        if type(node.op) not in BINARY:
            raise NotPure(type(node.op).__name__)
        return BINARY[type(node.op)](self.plain(node.left), self.plain(node.right))

    def _Compare(self, node):
        compare = COMPARED.get(type(node.ops[0]))
        if compare is None or len(node.ops) > 1:
            raise NotPure("compare")
        if compare in (operator.is_, operator.is_not):
            return compare(self.value(node.left), self.value(node.comparators[0]))
        return compare(self.plain(node.left), self.plain(node.comparators[0]))

    def _IfExp(self, node):
        return self.value(node.body if self.plain(node.test) else node.orelse)

    def _Tuple(self, node):
        return tuple(self._elements(node.elts))

    def _List(self, node):
        return list(self._elements(node.elts))

    def _elements(self, nodes):
        for one in nodes:
            if isinstance(one, ast.Starred):
                found = self.plain(one.value)
                if not isinstance(found, (tuple, list)):
                    raise NotPure("*")
                yield from found
            else:
                yield self.plain(one)

    def _Slice(self, node):
        return slice(*(None if one is None else self.plain(one) for one in (node.lower, node.upper, node.step)))

    def _Subscript(self, node):
        owner, index = self.value(node.value), self.plain(node.slice)
        if not is_array(owner) and type(owner) not in (list, tuple, dict):
            raise NotPure("[]")
        return owner[index]

    def _Call(self, node):
        if not all(keyword.arg in OPTIONS for keyword in node.keywords):
            raise NotPure("an option")
        options = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        arguments = list(self._elements(node.args))
        if isinstance(node.func, ast.Attribute) and is_array(owner := self.value(node.func.value)):
            if node.func.attr not in METHODS:
                raise NotPure(node.func.attr)
            return getattr(owner, node.func.attr)(*map(_copied, arguments), **options)
        f = self.value(node.func)
        if isinstance(f, np.ufunc):
            if getattr(np, f.__name__, None) is not f or len(arguments) != f.nin or options:
                raise NotPure(f.__name__)
        elif not (inspect.isroutine(f) or inspect.isclass(f)) or f not in FUNCTIONS:
            raise NotPure("a call")
        return f(*map(_copied, arguments), **options)


def _copied(x):
    return x.copy("K") if isinstance(x, np.ndarray) else x               # it may be `out`


def is_array(x: Any) -> bool:
    """True for NumPy's own arrays and numbers, not for classes derived from them"""
    return type(x) is np.ndarray or isinstance(x, np.generic)


def is_plain(x: Any) -> bool:
    """True for arrays, numbers, and tuples, lists and slices of them: what can be read without running other code"""
    if is_array(x):
        return x.dtype.kind in "fiubcU"
    if type(x) in (tuple, list):
        return all(map(is_plain, x))
    if type(x) is slice:
        return all(map(is_plain, (x.start, x.stop, x.step)))
    return type(x) in NUMBERS or (isinstance(x, type) and issubclass(x, np.generic)) or isinstance(x, np.dtype)

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
OF_ARRAYS = {"T", "shape", "size", "ndim", "dtype"}      # attributes
# How many positional arguments each may have, so that none of them is `out`.
METHODS = {
    "sum": 1, "mean": 1, "max": 1, "min": 1, "var": 1, "std": 1, "prod": 1, "any": 1, "all": 1, "argmax": 1,
    "reshape": 4, "swapaxes": 2, "transpose": 4, "astype": 1, "copy": 0, "ravel": 0, "dot": 1, "repeat": 2,
    "squeeze": 1,
}  # fmt: skip
FUNCTIONS = {
    np.sum: 2, np.mean: 2, np.max: 2, np.min: 2, np.var: 2, np.std: 2, np.prod: 2, np.where: 3, np.zeros_like: 1,
    np.ones_like: 1, np.zeros: 1, np.ones: 1, np.eye: 1, np.arange: 3, np.transpose: 2, np.swapaxes: 3, np.reshape: 2,
    np.outer: 2, np.dot: 2, np.einsum: 4, np.tri: 2, np.tril: 2, np.triu: 2, np.expand_dims: 2, np.clip: 3, np.copy: 1,
    np.ravel: 1, np.squeeze: 2, np.full_like: 2, np.repeat: 3, np.argmax: 2, np.concatenate: 2, np.stack: 2,
    np.broadcast_to: 2, np.diag: 2, np.float32: 1, np.float64: 1,
    shapes.transpose: 1, shapes.sum_to: 2, backend.array_module: 1, backend.to_device_of: 2, backend.to_host: 1,
    len: 1, float: 1, int: 1, abs: 1, tuple: 1,
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
            if node.attr not in OF_ARRAYS:
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
        arguments = list(self._elements(node.args))
        if not all(keyword.arg in OPTIONS for keyword in node.keywords):
            raise NotPure("an option")
        options = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute) and is_array(owner := self.value(node.func.value)):
            if len(arguments) > METHODS.get(node.func.attr, -1):
                raise NotPure(node.func.attr)
            return getattr(owner, node.func.attr)(*arguments, **options)
        f = self.value(node.func)
        if isinstance(f, np.ufunc):
            if getattr(np, f.__name__, None) is not f or len(arguments) != f.nin or options:
                raise NotPure(f.__name__)
            return f(*arguments)
        known = inspect.isroutine(f) or inspect.isclass(f)
        if not known or len(arguments) > FUNCTIONS.get(f, -1):
            raise NotPure("a call")
        return f(*arguments, **options)


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

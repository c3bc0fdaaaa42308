"""Which expressions of a source can be seen and changed while it runs: _at_(k, …) is put around them."""

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any

from mini_tf.gradcheck.source import Source, compiled, running_as, source_in

import numpy as np

HOOK = "_at_"
INNER = ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp            # have names of their own
LIBRARIES = ("np", "xp", "numpy", "cupy", "math", "torch")


def expressions_in(statement: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """(expression, whether it is a value) of one statement: what it assigns, returns, passes, loops over or tests"""
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr):
        values = inside = [one for one in getattr(value, "args", ()) if not isinstance(one, ast.Starred)]
    else:
        values, inside = ([*values_in(value)], [value]) if value is not None else ([], [])
    yield from ((one, True) for one in values)
    for part in (getattr(statement, "iter", None), getattr(statement, "test", None)):
        if isinstance(part, ast.expr):
            yield part, False
    yield from ((part, True) for one in inside for part in _given_to_authors(one))
    for place in getattr(statement, "targets", [getattr(statement, "target", None)]):
        if isinstance(place, ast.Subscript) and not any(isinstance(one, ast.Slice) for one in ast.walk(place.slice)):
            yield place.slice, False


def values_in(value: ast.expr) -> Iterator[ast.expr]:
    """An expression; of a tuple, a list or a dict that is written out, those in it"""
    parts = getattr(value, "values" if isinstance(value, ast.Dict) else "elts", None)
    if parts and not isinstance(value, ast.Set):
        for part in parts:
            yield from values_in(part)
    elif not isinstance(value, (ast.Yield, ast.YieldFrom, ast.Await, ast.Starred)):
        yield value


def _given_to_authors(node: ast.AST) -> Iterator[ast.expr]:
    """What is given to the author's own functions and methods, which may keep it: self.layer.backward(dy * mask)"""
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute) and not hasattr(np.ndarray, node.func.attr)
        function = isinstance(node.func, ast.Name) and not hasattr(builtins, node.func.id)
        if function or (method and not is_library(node.func)):
            yield from (part for part in node.args if not isinstance(part, (ast.Starred, ast.Constant)))
    if not isinstance(node, INNER):
        for child in ast.iter_child_nodes(node):
            yield from _given_to_authors(child)


def is_library(node: ast.AST) -> bool:
    """True for np of np.sum, and np.add of np.add.at"""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in LIBRARIES


def nodes_of(node: ast.AST) -> Iterator[ast.expr]:
    """A node and all expressions in it: not inside lambdas, and not the name of what is called"""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and child is node.func:
            if isinstance(child, ast.Attribute) and not is_library(child.value):         # the object of a method
                yield from nodes_of(child.value)
        elif isinstance(child, (ast.expr, ast.comprehension, ast.keyword)):
            yield from nodes_of(child)


def with_parameters(source: Source) -> Source:
    """The source with `dy = dy; ` before a function's first statement: a parameter is a value, too, and can be changed

    A derivative that each use of dy lacks is one change there. Lines keep their numbers.
    """
    marks, text = {}, source.file.text
    for node in ast.walk(source.node):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            names = [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
            if body and not hasattr(body[0], "body") and not isinstance(body[0], (ast.Global, ast.Nonlocal)):
                marks[source.file.span(body[0])[0]] = "".join(f"{name} = {name}; " for name in names)
    for start, mark in sorted(marks.items(), reverse=True):
        text = text[:start] + mark + text[start:]
    return source_in(text, source.function)


def with_hooks(source: Source, nodes: Sequence[ast.expr], first: int) -> CodeType:
    """The function's code with _at_(k, …) around each of these expressions, k counted from `first`"""
    marks, text = [], source.file.text
    for k, node in enumerate(nodes, first):
        start, end = source.file.span(node)
        before, behind = ("(", ")") if isinstance(node, ast.Tuple) else ("", "")         # of an index: dW[i, j]
        marks += [(start, 1, -end, f"{HOOK}({k}, {before}"), (end, 0, -start, f"{behind})")]
    changed, at = [], 0
    for place, _, _, mark in sorted(marks):              # at one place: ends before beginnings, outer ones first
        changed += [text[at:place], mark]
        at = place
    return compiled(source.function, "".join([*changed, text[at:]]), text)


@contextmanager
def running_with(codes: dict[FunctionType, CodeType], hook: Callable[[int, Any], Any]) -> Iterator[None]:
    """Inside the block these functions run as codes with hooks: hook(k, value) gives what takes the value's place."""
    with ExitStack() as stack:
        stack.enter_context(running_as(codes))
        for space in [function.__globals__ for function in codes]:
            space[HOOK] = hook
            stack.callback(space.pop, HOOK, None)
        yield


def is_tensor(x: Any) -> bool:
    """True for a tensor of PyTorch in the host's memory, which NumPy can read"""
    return hasattr(x, "new_tensor") and x.device.type == "cpu"


def copied(x: Any) -> Any:
    """A copy of an array, also of those in tuples and lists, which others may write into; all else as it is"""
    if isinstance(x, np.ndarray):
        return x.copy()
    if hasattr(x, "new_tensor"):                         # a tensor of PyTorch
        return x.detach().clone()
    return type(x)(map(copied, x)) if type(x) in (tuple, list) else x

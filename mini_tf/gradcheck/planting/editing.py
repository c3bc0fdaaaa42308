"""Planting a bug: a function whose source has one small edit.

    wrong = edited(ops.tanh, "1 - y * y", "1 - y")       # as a new function
    with planted(bug):                                   # or in place: every caller runs the edited code
        ...

The edited source is compiled under the name of its file, with the same line numbers, so that a backward's place is
reported correctly. Nothing is written to disk.
"""

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from mini_tf import kernels
from mini_tf.errors import UserError
from mini_tf.gradcheck.measuring.points import random_dy
from mini_tf.gradcheck.turns import turn
from mini_tf.layers import MemoryFreed
from mini_tf.ops.op import Op
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.planting.bugs import Bug


class Edit(NamedTuple):
    """What can be planted: in the source of target, `find` becomes `replace`."""

    target: object
    find: str
    replace: str


def edited(target: Callable, find: str, replace: str) -> FunctionType:
    """A copy of the function `target` (for a class, its __call__) with `find` replaced in its source.

    Raises UserError unless `find` occurs exactly once in the source, if the source is not available, and if the edit
    changes the number of lines, because the line numbers below it would be wrong.
    """
    target = function_of(target)
    return rebuilt(target, recompiled(target, _edited_text(target, find, replace)))


def edited_line(target: Callable, find: str) -> tuple[str, int]:
    """(file, line) of `find` in the source of target."""
    target = function_of(target)
    text, at = _place(target, find)
    return target.__code__.co_filename, text.count("\n", 0, at) + 1


@contextmanager
def planted(bug: "Bug | Edit") -> Iterator[None]:
    """Inside the block, every caller of bug.target runs it with bug.find replaced by bug.replace.

    The function object stays the same and gets the edited code. So every module, class and closure that holds it has
    the bug at once, and loses it at the end of the block, even after an exception.
    """
    target = function_of(bug.target)
    with turn, kernels.reference_only():                 # an op's twin would not have the bug
        right, path = target.__code__, target.__code__.co_filename
        wrong = _edited_text(target, bug.find, bug.replace)
        linecache.checkcache(path)
        cached = linecache.cache.get(path)
        try:
            target.__code__ = recompiled(target, wrong)
            if cached is not None:                       # readers of the source see the edited one
                linecache.cache[path] = cached[0], cached[1], wrong.splitlines(keepends=True), path
            yield
        finally:
            target.__code__ = right
            if cached is not None:
                linecache.cache[path] = cached


def function_of(target: Any) -> FunctionType:
    """The plain function that runs when `target` is called: a function, method, class of layers, or layer.

    Of a backward that was brought to the contract, the learner's own.
    """
    if isinstance(target, FunctionType):
        target = inspect.unwrap(target)
    if isinstance(target, MethodType):
        return inspect.unwrap(target.__func__)
    if isinstance(target, Op):
        return target.formula
    if isinstance(target, FunctionType):
        return target
    call = getattr(target if isinstance(target, type) else type(target), "__call__", None)   # noqa: B004, it is edited
    if isinstance(call, FunctionType):
        return inspect.unwrap(call)
    raise UserError(f"{target!r} is no Python function, and has no __call__ written in Python: nothing to edit")


def source_of(function: FunctionType | MethodType) -> tuple[str, ast.FunctionDef | ast.Lambda]:
    """(the text of the whole file, the function's node in its syntax tree); UserError if there is no source.

    The whole file, because compiling it keeps line numbers, enclosing functions and closure variables right.
    """
    code = function.__code__
    try:
        text, found = written(code)
    except (OSError, SyntaxError):
        raise UserError(f"{function.__qualname__}: its source is not available, so it cannot be edited") from None
    if len(found) != 1:
        raise UserError(
            f"{function.__qualname__}: {len(found)} functions of that name begin at line {code.co_firstlineno} of "
            f"{code.co_filename}, expected one; if they are lambdas, give each a line; if the file has changed, reload"
        )
    return text, found[0]


def is_current(function: Any) -> bool | None:
    """True if a function's code is that of its source, False if the file has changed since it was imported.

    None if that cannot be known: there is no source, or several functions begin on one line.
    """
    try:
        function = function_of(function)
        text, found = written(function.__code__)
        if len(found) > 1:
            return None
        return len(found) == 1 and _same_code(recompiled(function, text), function.__code__)
    except (UserError, OSError):
        return None
    except (SyntaxError, StopIteration):                 # the file now holds something else
        return False


def written(code: CodeType) -> tuple[str, list[ast.FunctionDef | ast.Lambda]]:
    """(text of the code's file, nodes of the functions in it that may be its source)"""
    text = "".join(inspect.findsource(code)[0])
    return text, _functions(text).get((code.co_name, code.co_firstlineno), [])


@lru_cache(16)
def _functions(text):
    """{(name, first line): nodes} of all functions in a file; one line may begin several lambdas"""
    found = {}
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef):
            found.setdefault((node.name, first_line(node)), []).append(node)
    return found


@lru_cache(16)
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _same_code(a, b):
    simple = [[c for c in code.co_consts if not isinstance(c, CodeType)] for code in (a, b)]
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (a, b)]
    return (
        a.co_code == b.co_code and a.co_names == b.co_names and repr(simple[0]) == repr(simple[1])
        and len(inner[0]) == len(inner[1]) and all(map(_same_code, *inner))
    )  # fmt: skip


def recompiled(function: FunctionType, text: str, before: str | None = None) -> CodeType:
    """The code object of `function`, compiled from `text`, a changed text of its file.

    before: the text as it was, if only the function has changed: then only what it stands in is compiled
    """
    code = function.__code__
    text, above = (text, 0) if before is None else _excerpt(before, code.co_firstlineno, text)
    place = code.co_qualname, code.co_firstlineno - above
    codes = codes_inside(_compiled(text, code.co_filename))
    return _lowered(next(c for c in codes if (c.co_qualname, c.co_firstlineno) == place), above)


def _lowered(code, lines):
    """The code with all its line numbers raised: as if it stood so many lines further down"""
    inner = tuple(_lowered(c, lines) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=inner)


def _excerpt(before, line, text):
    """(the statement of a file that has this line in it, of a class the method, as it is in `text`; lines above it)

    before: the file's text before it was changed in this statement
    """
    head, above, start, rest = _holder(before, line)
    return head + text[start : len(text) - rest], above


@lru_cache(16)
def _holder(text, line):
    """(what a compiler needs before it, lines above that, characters above it and below) of the statement at a line"""
    head, holder = "", next((one for one in parsed(text).body if first_line(one) <= line <= one.end_lineno), None)
    if isinstance(holder, ast.ClassDef):
        methods = (one for one in holder.body if holder.lineno < first_line(one) <= line <= one.end_lineno)
        method = next(methods, None)
        head, holder = ("", holder) if method is None else (f"class {holder.name}:\n", method)
    if holder is None:
        return "", 0, 0, 0
    lines = text.split("\n")
    above, below = lines[: first_line(holder) - 1], lines[holder.end_lineno :]
    start, rest = (sum(len(one) + 1 for one in some) for some in (above, below))
    return head, len(above) - head.count("\n"), start, rest


@lru_cache(4)
def _compiled(text, file):
    return compile(text, file, "exec", dont_inherit=True)


def rebuilt(function: FunctionType, code: CodeType) -> FunctionType:
    """A copy of `function` that runs `code`: same globals, same defaults, same closure variables."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    closure = tuple(cells[name] for name in code.co_freevars)
    new = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__, new.__qualname__, new.__doc__ = function.__kwdefaults__, function.__qualname__, function.__doc__
    return new


@contextmanager
def running_as(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Inside the block, every caller of the function runs this code."""
    before = function.__code__
    try:
        function.__code__ = code
        yield
    finally:
        function.__code__ = before


def outcome(
    f: Callable, inputs: Sequence[Any], params: dict[str, Any] | None = None, seed: int = 0
) -> list[Array | None]:
    """All that a caller can see of two calls of f's backward: a list of arrays (None for a missing gradient).

    It has the gradients of both calls and of the parameters {name: Parameter}, then dy and the inputs as they are
    afterwards. Two backwards that agree in all of this, for several random draws, count as the same.
    """
    params = params or {}
    inputs = [np.copy(x) if isinstance(x, np.ndarray) else x for x in inputs]
    for p in params.values():
        p.grad = None
    y, backward = f(*inputs)
    rng = np.random.default_rng((seed, 1))               # not `seed` itself: the inputs may be drawn from it
    dy = random_dy(y, rng)
    seen = []
    for call in range(2):
        try:
            gradients = backward(dy)
        except MemoryFreed:                              # a model's backward runs once: run the model again
            if not call:
                raise
            gradients = f(*inputs)[1](dy)
        for gradient in [*(gradients if isinstance(gradients, tuple) else [gradients]), *_grads(params)]:
            seen.append(None if gradient is None else np.copy(gradient))
    return [*seen, np.copy(dy), *(np.copy(x) for x in inputs if isinstance(x, np.ndarray))]


def difference(right: list[Array | None], wrong: list[Array | None]) -> float:
    """The largest relative difference between two outcomes; infinite if their arrays differ in shape or number."""
    if [np.shape(a) for a in right] != [np.shape(a) for a in wrong]:
        return np.inf
    if any((a is None) != (b is None) for a, b in zip(right, wrong)):
        return np.inf
    pairs = [(a.astype(float), b.astype(float)) for a, b in zip(right, wrong) if a is not None and a.size]
    sizes = [np.abs(a).max() for a, _ in pairs]
    floor = 1e-3 * max(sizes, default=1.0) or 1.0        # so that a gradient of mere rounding errors does not count
    differences = [np.abs(a - b).max() / max(size, floor) for size, (a, b) in zip(sizes, pairs)]
    return max((np.inf if np.isnan(d) else float(d) for d in differences), default=0.0)


def _grads(params):
    return [p.grad for p in params.values()]


def closure_of(function: FunctionType) -> dict[str, Any]:
    """{name: value} of a function's closure variables, without those that were never set."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _edited_text(function, find, replace):
    """The text of the function's file with the edit made."""
    text, at = _place(function, find)
    if find.count("\n") != replace.count("\n"):
        raise UserError(f"{function.__qualname__}: {find!r} and {replace!r} must have the same number of lines")
    return text[:at] + replace + text[at + len(find):]


def _place(function, find):
    """(text of the file, position of `find` in it), which must be unique within the function."""
    text, node = source_of(function)
    lines = [line + "\n" for line in text.split("\n")]
    start = sum(map(len, lines[: node.lineno - 1]))
    source = text[start: sum(map(len, lines[: node.end_lineno]))]
    times = source.count(find)
    if times != 1:
        raise UserError(f"{function.__qualname__}: {find!r} occurs {times} times in its source, expected once")
    return text, start + source.index(find)


def first_line(node: ast.AST) -> int:
    """The number of the line at which a statement begins, of a function that of its first decorator"""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])

"""A function's source: its text, its syntax tree, where each part stands, and the function with a changed text.

A changed text is compiled under the name of its file, with the same line numbers, so that places are reported rightly.
Nothing is written to disk.
"""

import ast
import gc
import inspect
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import accumulate
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from mini_tf.places import codes_inside


class Unavailable(ValueError):
    """A function has no source that can be read, or its file has changed since."""


class Source(NamedTuple):
    """A function with its file's text and its node in the file's syntax tree."""

    function: Any            # a FunctionType, which type checkers would take for a bound method
    file: "Text"
    node: ast.FunctionDef | ast.Lambda

    @property
    def path(self) -> str:
        return str(self.function.__code__.co_filename)


class Text:
    """A file's text, its syntax tree, and where in the text the tree's nodes stand."""

    def __init__(self, text: str):
        self.text = text
        self.lines: list[str] = text.split("\n")
        self.starts: list[int] = [0, *accumulate(len(line) + 1 for line in self.lines)]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> dict[tuple[str, int], list[ast.FunctionDef | ast.Lambda]]:
        """{(name, first line): nodes}; one line may begin several lambdas"""
        found: dict[tuple[str, int], list[ast.FunctionDef | ast.Lambda]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                found.setdefault((getattr(node, "name", "<lambda>"), first_line(node)), []).append(node)
        return found

    def span(self, node: Any) -> tuple[int, int]:
        """(start, end) in the text. The tree counts bytes of UTF-8 within a line, the text letters."""
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def of(self, node: Any) -> str:
        """The node's text"""
        start, end = self.span(node)
        return self.text[start:end]

    def line_of(self, place: int) -> int:
        """The number of the line with this place of the text in it, from 1"""
        return bisect(self.starts, place)


def function_of(target: Any) -> FunctionType:
    """The plain function that runs when `target` is called: a function, a method, an op, a layer or its class.

    Raises Unavailable if it is none that is written in Python.
    """
    target = getattr(target, "__func__", target)         # of a method
    if isinstance(formula := getattr(target, "formula", None), FunctionType):            # of an op
        target = formula
    if not isinstance(target, FunctionType):
        target = getattr(target if isinstance(target, type) else type(target), "__call__", None)   # noqa: B004
    target = inspect.unwrap(target) if target is not None else None
    if not isinstance(target, FunctionType):
        raise Unavailable(f"{target!r} is no Python function, and has no __call__ written in Python: it has no source")
    return target


def source_of(function: Callable[..., Any]) -> Source:
    """The Source of a function, method or layer. Raises Unavailable if there is none, or not that one."""
    function = function_of(function)
    try:
        return source_in("".join(inspect.findsource(function.__code__)[0]), function)
    except (OSError, IndexError, SyntaxError):
        raise Unavailable(f"the source of {function.__qualname__} is not available") from None


def source_in(text: str, function: FunctionType) -> Source:
    """The Source of a function in the text of its file, or in that text changed. Raises Unavailable."""
    code, file = function.__code__, text_of(text)
    begins = code.co_name, code.co_firstlineno
    found = file.functions.get(begins, [])
    inside = [one for one in codes_inside(code) if (one.co_name, one.co_firstlineno) == begins]
    found = found[:1] if len(inside) == len(found) else found            # a lambda with lambdas in it, in one line
    if len(found) != 1:
        raise Unavailable(
            f"{len(found)} functions named {code.co_name} begin at line {code.co_firstlineno} of {code.co_filename}, "
            "expected one; if they are lambdas, give each a line of its own; if the file has changed, import it anew"
        )
    return Source(function, file, found[0])


text_of = lru_cache(32)(Text)


def first_line(node: Any) -> int:
    """The number of the line at which a statement begins, of a function that of its first decorator"""
    lines: list[int] = [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
    return min(lines)


def is_current(function: Callable[..., Any]) -> bool | None:
    """True if a function's code is that of its source, False if the file has changed since; None if unknown"""
    try:
        source = source_of(function)
        return bool(compiled(source.function, source.file.text) == source.function.__code__)
    except Unavailable as error:
        return False if str(error).startswith("0 functions") else None
    except (SyntaxError, StopIteration):                 # the file now holds something else
        return False


def compiled(function: FunctionType, text: str, before: str | None = None) -> CodeType:
    """The code object of `function` in `text`, a changed text of its file.

    before: the text as it was, if only the function has changed: then only what it stands in is compiled
    """
    code = function.__code__
    if before is not None:
        first, above, below = statement_at(before, code.co_firstlineno)
        text = "\n" * (first - 1) + text[above : len(text) - below]
    codes = codes_inside(compile(text, code.co_filename, "exec", dont_inherit=True))
    place = code.co_qualname, code.co_firstlineno
    return next(c for c in codes if (c.co_qualname, c.co_firstlineno) == place)


@lru_cache(32)
def statement_at(text: str, line: int) -> tuple[int, int, int]:
    """(first line, characters above, characters below) of the file's statement, a function or a class, at this line"""
    file = text_of(text)
    for node in file.tree.body:
        first, last = first_line(node), node.end_lineno or 0
        if first <= line <= last:
            return first, file.starts[first - 1], len(text) - file.starts[last]
    return 1, 0, 0


@contextmanager
def running_as(codes: dict[FunctionType, CodeType]) -> Iterator[None]:
    """Inside the block, every caller of these functions runs other code, {function: code}."""
    every = functions_sharing_code(tuple(codes))
    before = {one: one.__code__ for one, _ in every}
    try:
        for one, function in every:
            one.__code__ = codes[function]
        yield
    finally:
        for one, code in before.items():
            one.__code__ = code


@lru_cache(None)
def functions_sharing_code(functions: tuple[FunctionType, ...]) -> list[tuple[FunctionType, FunctionType]]:
    """[(function, the given one whose code it shares)]: dense(4, 3) and dense(3, 2) are two closures of one def"""
    found = [one for one in gc.get_referrers(*[one.__code__ for one in functions]) if isinstance(one, FunctionType)]
    return [(one, function) for function in functions for one in found if one.__code__ is function.__code__]


def own_nodes(node: ast.FunctionDef | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of the functions inside it"""
    inside: list[ast.AST] = [*node.body] if isinstance(node.body, list) else [node.body]
    while inside:
        child = inside.pop(0)
        if not isinstance(child, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield child
            inside[:0] = ast.iter_child_nodes(child)

"""Lines that nobody needs who follows a computation: docstrings, checks, type hints, the choice of an array library."""

import ast
import re
from collections.abc import Collection, Iterator
from io import StringIO
from tokenize import COMMENT, generate_tokens
from typing import Any, NamedTuple

from mini_tf.gradcheck.source import first_line

FOR_TOOLS = re.compile(r" *# *(fmt: \w+|type: ignore(\[[^\]]*\])?|noqa(: \w+)?)(?= *(#|$))")


class Fold(NamedTuple):
    """Lines of a file, from first to last, that are folded: says what they are.

    short, head    of a def line: what is shown instead of it, and its number
    """

    first: int
    last: int
    says: str
    short: str = ""
    head: int = 0


def folds(node: ast.AST, text: str) -> list[Fold]:
    """The Folds of a function in a file's text, one for each statement, in their order"""
    functions = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef)]
    kinds = {one: kind for one in _statements(node) if (kind := _kind(one))}
    while more := [one for one in _statements(node) if one not in kinds and _prepares_a_check(one, node, kinds)]:
        kinds |= dict.fromkeys(more, "checks")
    kinds |= {one.body[0]: "docstring" for one in functions if ast.get_docstring(one) is not None}
    inside = {part for one in kinds for part in ast.walk(one) if part is not one}
    found = [Fold(one.lineno, one.end_lineno, kind) for one, kind in kinds.items() if one not in inside]
    return sorted(found + [header for one in functions if (header := _header(one, text.split("\n")))])


def joined(folded: list[Fold], needed: Collection[int], lines: list[str], first: int) -> list[Fold]:
    """The folds without a needed line, neighbours as one. lines: the source, from the line `first` on"""
    found: list[Fold] = []
    for one in folded:
        before = found[-1] if found else None
        if one.short:
            found.append(one)
        elif any(one.first <= line <= one.last for line in needed):
            continue
        elif before and not before.short and not "".join(lines[before.last + 1 - first : one.first - first]).strip():
            says = dict.fromkeys([*before.says.split(", "), one.says])
            found[-1] = Fold(before.first, one.last, ", ".join(says))
        else:
            found.append(one)
    return found


def without_notes_to_tools(line: str) -> str:
    """A line without "# fmt: skip" and the like"""
    return FOR_TOOLS.sub("", line)


def _statements(node: ast.AST) -> Iterator[Any]:
    return (one for one in ast.walk(node) if isinstance(one, ast.stmt))


def _kind(statement):
    """What a statement does that can be folded; else "" """
    match statement:
        case ast.Assert() | ast.If(body=[ast.Raise()], orelse=[]):
            return "checks"
        case ast.Expr(value=ast.Call(func=function)):
            name = ast.unparse(function).rpartition(".")[2]
            return "checks" if name.lstrip("_").startswith("check") else ""
        case ast.Assign(value=ast.Call(func=ast.Name(id="array_module"))):
            return "array library"
        case ast.Assign(value=ast.Attribute(attr="dtype")):
            return "dtype"
    return ""


def _prepares_a_check(statement, node, kinds):
    """True if only checks, which are folded, read what it writes"""
    if not isinstance(statement, (ast.Assign, ast.Try)):
        return False
    parts, folded = set(ast.walk(statement)), {part for one in kinds for part in ast.walk(one)}
    written = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    reads = {part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in written} - parts
    reads = {part for part in reads if isinstance(part.ctx, ast.Load)}
    return bool(reads) and reads <= folded


def _header(function, lines):
    """The Fold of a function's decorators and def line, shown without type hints; None if it has neither"""
    depth, end, comment = 0, 0, ""
    source = "\n".join(lines[function.lineno - 1 : function.end_lineno]) + "\n"
    for token in generate_tokens(StringIO(source).readline):
        if token.type == COMMENT:                        # of several the last
            comment = without_notes_to_tools(token.string).strip() or comment
        if end:
            break
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        end = token.start[0] if token.string == ":" and depth == 0 else 0
    arguments, last = function.args, function.lineno - 1 + end
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    hints = [function.returns, *(one.annotation for one in every if one is not None)]
    if function.body[0].lineno == last or (not any(hints) and end == 1 and not function.decorator_list):
        return None
    stars = {arguments.vararg: "*", arguments.kwarg: "**"}
    names = ", ".join(f"{stars.get(one, '')}{one.arg}" for one in every if one is not None)
    indent = lines[function.lineno - 1][: function.col_offset]
    short = f"{indent}def {function.name}({names}):" + (f"  {comment}" if comment else "")
    return Fold(first_line(function), last, "type hints", short, function.lineno)

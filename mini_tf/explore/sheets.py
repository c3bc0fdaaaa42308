"""Sheets: the source of a function as it stands in its file, its backward below its forward."""

import ast
import inspect
from functools import cached_property
from types import CodeType
from typing import Any

from mini_tf.gradcheck.source import first_line, text_of
from mini_tf.places import place

FOUND: dict[tuple[str, CodeType], "WrittenCode | None"] = {}         # by file; None if its source cannot be had


class Sheet:
    """The outermost function, or method, that some code belongs to.

    title      "layer_norm", "MultiHeadAttention.across"
    file       relative, "mini_tf/ops/normalization.py";  first: the number of its first line in the file
    source     its lines
    summary    the first paragraph of its class's docstring, or of its own
    formula    the docstring's text without its source: the function's own, or its class's
    docstring  (first, last) line of it, or None
    """

    def __init__(self, text: str, path: str, node: Any, owner: ast.ClassDef | None):
        self.path, self.node = path, node
        self.first = first_line(node)
        self.source = text.split("\n")[self.first - 1 : node.end_lineno]
        self.file = place(path, 0).rpartition(":")[0]
        name = getattr(node, "name", "lambda")
        self.title = name if owner is None else owner.name if name == "__call__" else f"{owner.name}.{name}"
        self.docstring = _docstring_lines(node)
        own = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        of_class = ast.get_docstring(owner) if owner is not None else None
        self.formula = _formula(own or of_class or "")
        self.summary = (of_class or own or "").split("\n\n")[0].strip()


class WrittenCode:
    """A code object, with the statements of its source.

    key, outer    (file, name, first line) of the function, and of the one around it, or None
    """

    def __init__(self, code: CodeType, text: str, functions: list[Any], owner: ast.ClassDef | None):
        self.code, self.text, self.node, self.name = code, text, functions[-1], code.co_name
        keys = [(code.co_filename, getattr(one, "name", "<lambda>"), first_line(one)) for one in functions]
        self.key, self.outer = keys[-1], keys[-2] if len(keys) > 1 else None
        self.sheet = Sheet(text, code.co_filename, functions[0], owner)

    @cached_property
    def statements(self) -> dict[int, tuple[ast.AST, ...]]:
        """{line: (statement, …)}: all that have this line"""
        found: dict[int, list[ast.AST]] = {}
        if isinstance(body := self.node.body, list):
            _collect(body, found)
        else:                                            # of a lambda
            _add(found, range(self.node.lineno, self.node.end_lineno + 1), body)
        return {line: tuple(statements) for line, statements in found.items()}

    @cached_property
    def beginnings(self) -> set[int]:
        """The offsets in the code at which a statement, or a line with several, begins; see f_lasti of a frame"""
        offsets: dict[Any, int] = {}
        for number, (line, *_) in enumerate(self.code.co_positions()):
            if line in self.statements:
                offsets.setdefault(self.statements[line], 2 * number)
        return set(offsets.values())

    def source_of(self, node: ast.AST) -> str:
        """The text of an expression, on one line."""
        return " ".join((ast.get_source_segment(self.text, node) or ast.unparse(node)).split())


def written_code(code: CodeType) -> WrittenCode | None:
    """The WrittenCode of a code object; None for comprehensions, and for what has no source."""
    key = code.co_filename, code
    if key not in FOUND:
        FOUND[key] = _find(code)
    return FOUND[key]


def _find(code):
    is_comprehension = code.co_name.startswith("<") and code.co_name != "<lambda>"
    if is_comprehension or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return None
    try:
        text = "".join(inspect.findsource(code)[0])
        paths = list(_paths(text_of(text).tree, [], (code.co_name, code.co_firstlineno)))
    except (OSError, SyntaxError, TypeError):
        return None
    if len(paths) != 1:                                  # one line may begin several lambdas
        return None
    classes = [one for one in paths[0] if isinstance(one, ast.ClassDef)]
    functions = [one for one in paths[0] if not isinstance(one, ast.ClassDef)]
    return WrittenCode(code, text, functions, classes[-1] if classes else None)


def _paths(node, around, begins):
    """[class or function, …], from the outermost in, of each function with this (name, first line)"""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, (ast.FunctionDef, ast.Lambda))
        path = [*around, child] if is_function or isinstance(child, ast.ClassDef) else around
        if is_function and (getattr(child, "name", "<lambda>"), first_line(child)) == begins:
            yield path
        yield from _paths(child, path, begins)


def _collect(body, found):
    """Add {line: [statement]} of a function's body, without the statements of functions inside it."""
    for statement in body:
        inner = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        inner += [handler.body for handler in getattr(statement, "handlers", [])]
        inner += [case.body for case in getattr(statement, "cases", [])]
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            _add(found, range(first_line(statement), max(statement.body[0].lineno, statement.lineno + 1)), statement)
            continue
        last = statement.end_lineno
        if any(inner):
            last = max(statement.lineno, min(part[0].lineno for part in inner if part) - 1)
        _add(found, range(statement.lineno, last + 1), statement)
        for part in inner:
            _collect(part, found)


def _add(found, lines, statement):
    for line in lines:
        found.setdefault(line, []).append(statement)


def _docstring_lines(node):
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    is_text = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return (first.lineno, first.end_lineno) if is_text else None


def _formula(doc):
    """A docstring without its source and its example"""
    lines = (line for line in doc.split("\n") if not line.lstrip().startswith(("Source:", "Example:")))
    return "\n".join(lines).strip()

"""Sheets: the source of a function as it stands in its file, forward and backward under each other."""

import ast
import inspect
from functools import cached_property
from types import CodeType

from mini_tf.gradcheck.source import first_line, text_of
from mini_tf.places import place

FOUND = {}                           # (file, code) -> WrittenCode, or None if its source cannot be had


class Sheet:
    """The outermost function, or method, that some code belongs to.

    title      "layer_norm", "MultiHeadAttention.across"
    file       relative, "mini_tf/ops/normalization.py"; `first` is the number of its first line there
    source     its lines
    formula    the docstring's text without its source: the function's own, or its class's
    docstring  (first, last) line of it, or None
    """

    def __init__(self, text: str, path: str, node: ast.AST, owner: ast.ClassDef | None):
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


class WrittenCode:
    """A code object, with the statements of its source.

    key, outer    (file, name, first line) of the function, and of the one around it, or None
    """

    def __init__(self, code: CodeType, text: str, way: list[ast.AST], owner: ast.ClassDef | None):
        self.code, self.text, self.node, self.name = code, text, way[-1], code.co_name
        keys = [(code.co_filename, getattr(one, "name", "<lambda>"), first_line(one)) for one in way]
        self.key, self.outer = keys[-1], keys[-2] if len(keys) > 1 else None
        self.sheet = Sheet(text, code.co_filename, way[0], owner)

    @cached_property
    def statements(self) -> dict[int, tuple[ast.AST, ...]]:
        """{line: (statement, …)}: all that have this line"""
        found = {}
        if isinstance(self.node, ast.Lambda):
            found = {line: [self.node.body] for line in range(self.node.lineno, self.node.end_lineno + 1)}
        else:
            _collect(self.node.body, found)
        return {line: tuple(statements) for line, statements in found.items()}

    def statements_at(self, line: int) -> tuple[ast.AST, ...]:
        return self.statements.get(line, ())

    @cached_property
    def beginnings(self) -> set[int]:
        """The offsets in the code at which a statement, or a line with several, begins; see f_lasti of a frame"""
        offsets = {}
        for number, (line, *_) in enumerate(self.code.co_positions()):
            statements = self.statements.get(line)
            if statements:
                offsets.setdefault(statements, 2 * number)
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
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) or code.co_name.startswith("<") != (
        code.co_name == "<lambda>"
    ):
        return None
    try:
        text = "".join(inspect.findsource(code)[0])
        nodes = _nodes_of(code, text_of(text).tree)
    except (OSError, SyntaxError, TypeError):
        return None
    if len(nodes) != 1:
        return None
    way = _way_to(text_of(text).tree, nodes[0])
    classes = [one for one in way if isinstance(one, ast.ClassDef)]
    functions = [one for one in way if not isinstance(one, ast.ClassDef)]
    return WrittenCode(code, text, functions, classes[-1] if classes else None)


def _nodes_of(code, tree):
    """The functions in a file's tree that may be the code's: one line may begin several lambdas"""
    functions = (one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.Lambda)))
    there = (one for one in functions if first_line(one) == code.co_firstlineno)
    return [one for one in there if getattr(one, "name", "<lambda>") == code.co_name]


def _way_to(tree, node):
    """The classes and functions from the outermost to the node, itself included"""
    way = [
        one for one in ast.walk(tree)
        if isinstance(one, (ast.FunctionDef, ast.ClassDef, ast.Lambda)) and _spans(one, node)
    ]  # fmt: skip
    return sorted(way, key=lambda one: (one.lineno, one.col_offset, -one.end_lineno, -one.end_col_offset))


def _spans(outer, inner):
    begins = (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
    return begins and (inner.end_lineno, inner.end_col_offset) <= (outer.end_lineno, outer.end_col_offset)


def _collect(body, found):
    """Add {line: [statement]} of a function's body, without those of functions inside it."""
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
    said = first.value.value if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None
    return (first.lineno, first.end_lineno) if isinstance(said, str) else None


def _formula(doc):
    """A docstring without its source and its example"""
    lines = (line for line in doc.split("\n") if not line.lstrip().startswith(("Source:", "Example:")))
    return "\n".join(lines).strip()

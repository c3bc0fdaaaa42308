"""Sheets: the source of a function as it stands in its file, its backward below its forward."""

import ast
import inspect
import re
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

from mini_tf import ops
from mini_tf.explore.folding import folds
from mini_tf.explore.formulas import explained
from mini_tf.gradcheck.source import first_line, text_of
from mini_tf.places import place

OPS = Path(ops.__file__).parent
FORWARD = "__call__", "forward", "fwd", "loss"
FOUND: dict[tuple[str, CodeType], "WrittenCode | None"] = {}         # by file; None if its source cannot be had


class Sheet:
    """The outermost function, or method, that some code belongs to.

    title      "layer_norm", "MultiHeadAttention.across"
    file       relative, "mini_tf/ops/normalization.py";  first: the number of its first line in the file
    is_op      it is in mini_tf/ops
    source     its lines
    summary    the first paragraph of its class's docstring, or of its own
    names      the names in it, and of attributes of self: {"x", "dx", "self.W"}
    formulas   of its docstring, or else of its class's, typeset;  text: what else its docstring says
    folds      lines that are not needed to follow what it computes
    """

    def __init__(self, text: str, path: str, node: Any, owner: ast.ClassDef | None):
        self.path, self.node = path, node
        self.first = first_line(node)
        self.source = text.split("\n")[self.first - 1 : node.end_lineno]
        self.file = place(path, 0).rpartition(":")[0]
        self.is_op = Path(path).parent == OPS
        name = getattr(node, "name", "lambda")
        self.title = name if owner is None else owner.name if name == "__call__" else f"{owner.name}.{name}"
        self.names, self.folds = _names(node), folds(node, text)
        stored = {ast.unparse(one) for one in ast.walk(node) if isinstance(getattr(one, "ctx", None), ast.Store)}
        self.own = [name for name in self.names - stored if name.startswith("self.")]
        own, of_class = (
            _without_source(ast.get_docstring(one) or "") if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else ""
            for one in (node, owner)
        )
        self.summary = (of_class or own).split("\n\n")[0]
        is_its_class = owner is not None and _computes_what_its_class_says(name, self.names, owner)
        said = [explained(doc, self.names) for doc in (own, of_class if is_its_class else "") if doc]
        self.text: str = said[0].text if said else ""
        self.formulas: list[str] = next((one.formulas for one in said if one.formulas), [])


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


def _names(node):
    """The names in a function's code, "self.W" of an attribute of self; and those of what it and its backward return"""
    names, arguments = set(), [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            names.add(one.id)
        elif isinstance(one, ast.arg):
            names.add(one.arg)
        elif isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
            names.add(f"self.{one.attr}")
        elif isinstance(one, (ast.FunctionDef, ast.Lambda)) and one is not node:         # of dy: y and dx are returned
            names |= {re.sub("^d(?=.)", "", first.arg) for first in one.args.args[:1]}
            names |= {f"d{name}" for name in arguments}
    return names


def _computes_what_its_class_says(name, names, owner):
    """True for forward and loss, and for a method with a backward that the forward calls, such as across"""
    if name in FORWARD:
        return True
    called = [_names(one) for one in owner.body if isinstance(one, ast.FunctionDef) and one.name in FORWARD]
    return any(f"self.{name}" in one for one in called) and any(one.endswith("backward") for one in names)


def _without_source(doc):
    """A docstring without its source and its example"""
    lines = (line for line in doc.split("\n") if not line.lstrip().startswith(("Source:", "Example:")))
    return "\n".join(lines).strip()

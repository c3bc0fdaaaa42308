"""Edits of the author's text: how they are written, what they cost, and those that are more than another value."""

import ast
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import combinations, product

from mini_tf.gradcheck.explain.sites import Site, one_line
from mini_tf.gradcheck.explain.values import bracketed, filled, same_code
from mini_tf.gradcheck.hooks import is_library, is_tensor

import numpy as np

ALIKE = [("sum", "mean"), ("argmax", "argmin"), ("max", "min"), ("maximum", "minimum"), ("exp", "log"), ("sin", "cos"),
         ("abs", "sign"), ("zeros_like", "ones_like"), ("cumsum", "sum")]        # fmt: skip
REDUCTIONS = ("sum", "mean", "max", "min", "argmax", "var", "std")
# What does nothing in a changed statement: 1 *, / 1, + 0, --
NEUTRAL = re.compile(r"(?<![\w.])1(\.0)? \*|[*/]=? 1(\.0)?(?![\w.])|[+-]=? 0(\.0)?(?![\w.])|\b0 [*+]|--|-\(-")
AXES = (-1, 0, 1, 2, (0, 1), (0, 2), (1, 2), None)
OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}
Written = Callable[[ast.AST], str]                       # how a part of the author's code is written
COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


class Kind(Enum):
    """What kind of change it is, in words"""

    VALUE = "another value belongs here"
    TERM = "a term is missing"
    FACTOR = "a factor is missing, or one too many"
    TRANSPOSE = "a transpose is missing"
    OPERATION = "another operation"
    DROPPED = "something is too much here"
    AXIS = "another axis, or its shape kept"
    ORDER = "the order"
    INDEX = "another index"
    ASSIGNMENT = "= and += confused"
    REPEATS = "repeated ids: each time counts"
    STATEMENT = "a statement in the wrong place, missing, or too much"
    COPY = "a copy is missing: it is written into"


@dataclass(eq=False)
class Edit:
    """One change of a file's text: from start to end becomes `new`."""

    kind: Kind
    site: Site
    start: int
    end: int
    new: str
    first: ast.AST | None = None                         # the first statement that changes, if it is not the site's

    @property
    def line(self) -> int:
        return self.site.source.file.line_of(self.start)

    @property
    def before(self) -> str:
        """The statement as it is, of a loop or a condition its first line"""
        if self.site.is_parameter:
            return "(a first line is missing)"
        start, end = self._shown
        return one_line(self.site.source.file.text[start:end])

    @property
    def after(self) -> str:
        """The statement as it would be"""
        start, end = self._shown
        text = self.site.source.file.text
        changed = text[start : self.start] + self.new + text[self.end : max(end, self.end)]
        return "(without this line)" if self.new == "pass" else one_line(changed)

    @property
    def _shown(self) -> tuple[int, int]:
        statement = self.first or self.site.statement
        start, end = self.site.source.file.span(statement)
        body = getattr(statement, "body", None)
        return start, self.site.source.file.span(body[0])[0] if isinstance(body, list) else end

    @cached_property
    def cost(self) -> tuple[int, bool, int, int]:
        """How much it changes, the smaller the likelier: size, whether a word is repeated, new words, letters"""
        old, new = words(self.site.source.file.text[self.start : self.end]), words(self.new)
        added, dropped = Counter(new) - Counter(old), Counter(old) - Counter(new)
        known = words(self.site.source.file.of(self.site.functions[0]))
        neutral = NEUTRAL.search(self.after) and not NEUTRAL.search(self.before)
        amount = 1 if self.kind is Kind.REPEATS else max(added.total(), dropped.total())     # one thing, in many words
        amount += 2 * (self.kind is Kind.STATEMENT) + 3 * self.site.is_parameter         # a whole line more
        size = round(2 * math.log2(1 + amount + 3 * bool(neutral)))
        twice = old != [] and self.kind is Kind.TERM and new.count(old[0]) > old.count(old[0])         # e - e * v
        return size, twice, sum(n for word, n in added.items() if word not in known), len(self.after)


def changed(edits: Sequence[Edit]) -> str:
    """The text of the file, one for all of them, with these edits"""
    text = edits[0].site.source.file.text
    for edit in sorted(edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


@lru_cache(256)
def words(text: str) -> list[str]:
    """The words, numbers with their signs, and other signs of a text, without its brackets"""
    return re.findall(r"(?<![\w)\]] )-\d[\d.]*|\w+|[=!<>]=|[^\w\s()]", text)


def replacing(site: Site, node: ast.AST, new: str, kind: Kind) -> Edit:
    """The Edit that puts a text in the place of a node, in brackets if it needs them, np as the file calls it"""
    new = re.sub(r"\bnp\.", f"{numpy_in(site)}.", new)
    more = new.replace(site.text_of(node), "", 1).strip().partition(" ")[0] if kind is Kind.VALUE else ""
    kind = {"*": Kind.FACTOR, "/": Kind.FACTOR, ".T": Kind.TRANSPOSE}.get(more, kind)
    text, (start, end), (first, last) = site.source.file.text, *map(site.source.file.span, (node, site.node))
    if site.node is getattr(site.statement, "value", None) and text[first - 1] + text[last : last + 1] == "()":
        first, last = first - 1, last + 1
    before, after = text[first:start], text[end:last]
    if not isinstance(node, ast.Slice):
        if before[-1:] + after[:1] == "()" and same_code(before[:-1] + new + after[1:], f"{before}({new}){after}"):
            return Edit(kind, site, start - 1, end + 1, new)
        new = bracketed(before, new, after)
    return Edit(kind, site, start, end, new)


def numpy_in(site: Site) -> str:
    """What the author's code calls NumPy; or PyTorch, where there are tensors"""
    library = sys.modules["torch"] if any(map(is_tensor, site.values)) else np
    names = [name for name, x in site.scopes[0].items() if x is library] if site.scopes else []
    return "np" if "np" in names or not names else names[0]


def of_syntax(node: ast.AST, text: Written) -> Iterator[tuple[Kind, str]]:
    """(kind, another text) for small changes of this node itself"""
    if isinstance(node, ast.BinOp):
        yield from _of_operator(node, text)
    elif isinstance(node, ast.UnaryOp):
        yield Kind.DROPPED, text(node.operand)
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        yield Kind.DROPPED, text(node.value)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, text)
    elif isinstance(node, ast.Compare):
        for op in COMPARISONS:
            yield Kind.OPERATION, filled(f"a {op} b", a=text(node.left), b=text(node.comparators[0]))
    elif isinstance(node, (ast.Tuple, ast.List)) and not any(isinstance(one, ast.Slice) for one in node.elts):
        for parts in _swapped([*map(text, node.elts)]):
            yield Kind.ORDER, f"[{', '.join(parts)}]" if isinstance(node, ast.List) else ", ".join(parts)
    elif isinstance(node, ast.Slice):
        parts = [text(part) if part else "" for part in (node.lower, node.upper, *([node.step] if node.step else []))]
        for k in range(len(parts)):
            yield Kind.INDEX, ":".join([*parts[:k], "", *parts[k + 1 :]])
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node, text(node))


def _of_operator(node: ast.BinOp, text: Written) -> Iterator[tuple[Kind, str]]:
    sides = {"a": text(node.left), "b": text(node.right)}
    yield from ((Kind.DROPPED, side) for side in sides.values())
    sign = OPERATORS.get(type(node.op), "")
    if sign in ("-", "/", "@"):
        yield Kind.ORDER, filled(f"b {sign} a", **sides)
    for other in {"+": "-", "-": "+", "*": "/@", "/": "*", "@": "*"}.get(sign, ""):
        yield Kind.OPERATION, filled(f"a {other} b", **sides)


def _of_call(node: ast.Call, text: Written) -> Iterator[tuple[Kind, str]]:
    arguments = [*map(text, node.args)]
    named = [f"{one.arg}={text(one.value)}" if one.arg else f"**{text(one.value)}" for one in node.keywords]
    yield from ((Kind.DROPPED, argument) for argument in arguments)
    called, name, method = text(node.func), "", False
    if isinstance(node.func, ast.Attribute):
        name, method = node.func.attr, not is_library(node.func.value)
        yield from [(Kind.DROPPED, text(node.func.value))] * method
    for pair in ALIKE:
        if name in pair:
            other = called.removesuffix(name) + pair[1 - pair.index(name)]
            yield Kind.OPERATION, f"{other}({', '.join([*arguments, *named])})"
    if name in REDUCTIONS:
        for axis, keep in product(AXES, (True, False)):
            options = [] if axis is None else [f"axis={axis}"]
            options += ["keepdims=True"] if keep and name != "argmax" else []
            yield Kind.AXIS, f"{called}({', '.join([*([] if method else arguments[:1]), *options])})"
    for parts in _swapped(arguments):
        yield Kind.ORDER, f"{called}({', '.join([*parts, *named])})"


def _of_constant(node: ast.Constant, text: str) -> Iterator[tuple[Kind, str]]:
    value = node.value
    if isinstance(value, bool):
        yield Kind.VALUE, str(not value)
    elif isinstance(value, (int, float)):
        others = value + 1, value - 1, 2 * value, value / 2, -value, 0, 1
        yield from ((Kind.VALUE, str(other)) for other in others if other != value)
    elif isinstance(value, str) and "->" in value:       # the letters of an einsum
        for i, j in combinations([i for i, letter in enumerate(text) if letter.isalpha()], 2):
            if not set(",->") & set(text[i:j]):
                yield Kind.AXIS, text[:i] + text[j] + text[i + 1 : j] + text[i] + text[j + 1 :]


def _swapped(items: list[str]) -> Iterator[list[str]]:
    for i, j in combinations(range(len(items)), 2):
        new = list(items)
        new[i], new[j] = new[j], new[i]
        yield new


def of_statement(site: Site) -> Iterator[Edit]:
    """Edits of a whole statement: = and +=, np.add.at, values exchanged, without it, moved up"""
    statement, source = site.statement, site.source
    if isinstance(statement, ast.Lambda):
        return
    text, (start, end) = source.file.text, source.file.span(statement)
    blocks = [getattr(one, which, None) for one in ast.walk(site.functions[-1]) for which in ("body", "orelse")]
    body = next((some for some in blocks if isinstance(some, list) and any(one is statement for one in some)), ())
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        where, value = source.file.of(target), source.file.of(statement.value)
        for op in ("=", "+=", "-=", "*=", "/=") if not isinstance(target, ast.Tuple) else ():
            yield Edit(Kind.ASSIGNMENT, site, start, end, f"{where} {op} {value}")
        if isinstance(target, ast.Subscript):
            array, index, np = source.file.of(target.value), source.file.of(target.slice), numpy_in(site)
            index = f"{np}.s_[{index}]" if ":" in index else f"({index})" if "," in index else index
            added = f"{np}.add.at({array}, {index}, {value})"
            if any(map(is_tensor, site.values)):
                added = f"{array}.index_put_(({index},), {value}, accumulate=True)"
            yield Edit(Kind.REPEATS, site, start, end, added)
    several = getattr(statement, "value", None)
    if isinstance(several, (ast.Tuple, ast.List)):
        yield from (Edit(kind, site, *source.file.span(several), new) for kind, new in of_syntax(several, site.text_of))
    if len(body) > 1 and not isinstance(statement, ast.Return):
        here = next(k for k, one in enumerate(body) if one is statement)
        if not source.file.lines[statement.lineno - 1][: statement.col_offset].strip():
            yield Edit(Kind.STATEMENT, site, start, end, "pass")
        if here:
            before = body[here - 1]
            a, b = source.file.span(before)
            yield Edit(Kind.STATEMENT, site, a, end, f"{text[start:end]}{text[b:start]}{text[a:b]}", before)

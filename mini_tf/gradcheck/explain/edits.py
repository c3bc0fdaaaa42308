"""Edits of a source: what is changed, how it is written, and the edits that are no other value.

An operand or a call dropped, sum and mean, axis, index, the letters of an einsum, the order of a product, = and +=,
np.add.at, a statement dropped or moved, returned values exchanged, a copy missing.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from itertools import combinations, product

from mini_tf.gradcheck.explain.sites import Site, is_library, one_line
from mini_tf.gradcheck.explain.values import filled
from mini_tf.gradcheck.source import Source, text_of

import numpy as np

ALIKE = [("sum", "mean"), ("argmax", "argmin"), ("max", "min"), ("maximum", "minimum"), ("exp", "log"), ("sin", "cos"),
         ("abs", "sign"), ("zeros_like", "ones_like"), ("cumsum", "sum")]        # fmt: skip
REDUCTIONS = ("sum", "mean", "max", "min", "argmax", "var", "std")
# What says nothing, in a changed statement: 1 *, / 1, + 0, --
NEUTRAL = re.compile(r"(?<![\w.])1(\.0)? \*|[*/]=? 1(\.0)?(?![\w.])|[+-]=? 0(\.0)?(?![\w.])|\b0 [*+]|--|-\(-")
AXES = (-1, 0, 1, 2, (0, 1), (0, 2), (1, 2), None)
ASSIGNMENTS = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}


class Kind(Enum):
    """What kind of change it is, in words"""

    VALUE = "another value belongs here"
    TERM = "a term is missing"
    FACTOR = "a factor is missing, or one too many"
    OPERATION = "another operation"
    DROPPED = "something is too much here"
    AXIS = "another axis, or its shape kept"
    ORDER = "the order"
    INDEX = "another index"
    ASSIGNMENT = "= and += confused"
    REPEATS = "repeated ids: each time counts"
    STATEMENT = "a statement in the wrong place, missing, or too much"
    COPY = "a copy is missing: it is written into"
    FORWARD = "what the forward keeps"


class Edit:
    """One change of a file's text: from start to end becomes `new`."""

    def __init__(self, kind: Kind, site: Site, start: int, end: int, new: str, statement: ast.AST | None = None):
        self.kind, self.site, self.start, self.end, self.new = kind, site, start, end, new
        self.source: Source = site.source
        self.statement = statement or site.statement

    @cached_property
    def text(self) -> str:
        """The file's text with the change"""
        text = self.source.file.text
        return text[: self.start] + self.new + text[self.end :]

    @property
    def line(self) -> int:
        return self.source.file.line_of(self.start)

    @property
    def before(self) -> str:
        """The statement as it is"""
        return one_line(self.source.file.of(self.statement)).split("\n")[0]

    @property
    def after(self) -> str:
        """The statement as it would be"""
        start, end = self.source.file.span(self.statement)
        start, end = min(start, self.start), max(end, self.end)
        text = self.source.file.text
        changed = text[start : self.start] + self.new + text[self.end : end]
        return "(without this line)" if self.new == "pass" else one_line(changed)

    @cached_property
    def cost(self) -> tuple[int, int, int]:
        """How much it changes, and how strange it is: words and signs, those that occur nowhere else there, letters"""
        old, new = words(self.source.file.text[self.start : self.end]), words(self.new)
        left = list(old)
        added = [word for word in new if word not in left or left.remove(word)]
        known = words(self.source.file.of(self.site.functions[0]))
        neutral = NEUTRAL.search(self.after) and not NEUTRAL.search(self.before)
        strange = sum(map(bool, (neutral, self._is_a_number, {"==", "!="} & {*added})))
        amount = 1 if self.kind is Kind.REPEATS else max(len(added), len(left))          # one thing, in many words
        amount += 2 * (self.kind is Kind.STATEMENT)
        return amount + 3 * strange, sum(w not in known for w in added), len(self.after)

    @property
    def _is_a_number(self):
        """Whether a number that is written out takes the place of a name: by chance, most often"""
        old, new = (text.replace(".", "") for text in (self.source.file.text[self.start : self.end], self.new))
        return new.isdigit() and not old.isdigit()


def words(text: str) -> list[str]:
    """The words, numbers with their signs, and other signs of a text"""
    return re.findall(r"(?<![\w)\]] )-\d[\d.]*|\w+|[=!<>]=|[^\w\s]", text)


def replacing(site: Site, node: ast.AST, new: str, kind: Kind) -> Edit:
    """The Edit that puts a text in the place of a node, in brackets if it needs them, np as the file calls it"""
    new = re.sub(r"\bnp\.", f"{numpy_in(site)}.", new)
    start, end = site.source.file.span(node)
    text, whole = site.source.file.text, site.source.file.span(site.statement)

    def tree(start, end, new):
        return _tree(" ".join((text[whole[0] : start] + new + text[end : whole[1]]).split()))

    if isinstance(node, ast.Slice):
        return Edit(kind, site, start, end, new)
    wanted = tree(start, end, f"({new})")
    in_brackets = text[start - 1] == "(" and text[end : end + 1] == ")" and whole[0] < start
    if in_brackets and tree(start - 1, end + 1, new) == wanted:
        return Edit(kind, site, start - 1, end + 1, new)
    return Edit(kind, site, start, end, new if tree(start, end, new) == wanted else f"({new})")


def numpy_in(site: Site) -> str:
    """What the author's code calls NumPy"""
    names = [name for name, x in site.scopes[0].items() if x is np] if site.scopes else []
    return "np" if "np" in names or not names else names[0]


def _tree(text):
    for one in (text, f"def _():\n {text}", f"({text})"):
        try:
            return ast.dump(ast.parse(one))
        except SyntaxError:
            continue
    return text


# Edits of one node ----------------------------------------------------------------------------------------------------


def of_syntax(node: ast.AST) -> Iterator[tuple[Kind, ast.AST]]:
    """(kind, another node) for small changes of this node itself"""
    if isinstance(node, ast.BinOp):
        yield from _of_operator(node)
    elif isinstance(node, ast.UnaryOp):
        yield Kind.DROPPED, node.operand
    elif isinstance(node, (ast.Attribute, ast.Subscript)):
        yield Kind.DROPPED, node.value
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Compare):
        for op in (ast.Gt, ast.Lt, ast.GtE, ast.LtE, ast.Eq, ast.NotEq):
            if not isinstance(node.ops[0], op):
                yield Kind.OPERATION, _new(node, ops=[op()])
    elif isinstance(node, (ast.Tuple, ast.List)) and not any(isinstance(one, ast.Slice) for one in node.elts):
        yield from ((Kind.ORDER, _new(node, elts=elts)) for elts in _swapped(node.elts))
    elif isinstance(node, ast.Slice):
        there = [part for part in ("lower", "upper", "step") if getattr(node, part)]
        yield from ((Kind.INDEX, _new(node, **{part: None})) for part in there)
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)


def _of_operator(node):
    yield from ((Kind.DROPPED, part) for part in (node.left, node.right))
    if not isinstance(node.op, (ast.Add, ast.Mult)):
        yield Kind.ORDER, _new(node, left=node.right, right=node.left)
    others = {ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div, ast.MatMult], ast.Div: [ast.Mult],
              ast.MatMult: [ast.Mult]}                   # fmt: skip
    yield from ((Kind.OPERATION, _new(node, op=op())) for op in others.get(type(node.op), []))
    if isinstance(node.op, ast.MatMult):
        left, right = _turned(node.left), _turned(node.right)
        yield Kind.ORDER, _new(node, left=right, right=left)
        yield Kind.ORDER, _new(node, left=left, right=right)


def _of_call(node):
    yield from ((Kind.DROPPED, argument) for argument in node.args)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    method = bool(name) and not is_library(node.func.value)
    if method:
        yield Kind.DROPPED, node.func.value
    for pair in ALIKE:
        if name in pair:
            func = ast.Attribute(node.func.value, pair[1 - pair.index(name)], ast.Load())
            yield Kind.OPERATION, _new(node, func=func)
    if name in REDUCTIONS:
        for axis, keep in product(AXES, (True, False)):
            keywords = {"axis": axis} if axis is not None else {}
            keywords |= {"keepdims": True} if keep and name != "argmax" else {}
            named = [ast.keyword(key, ast.Constant(value)) for key, value in keywords.items()]
            yield Kind.AXIS, _new(node, args=[] if method else node.args[:1], keywords=named)
    yield from ((Kind.ORDER, _new(node, args=args)) for args in _swapped(node.args))


def _of_constant(node):
    value = node.value
    if isinstance(value, bool):
        yield Kind.VALUE, ast.Constant(not value)
    elif isinstance(value, (int, float)):
        others = value + 1, value - 1, 2 * value, value / 2, -value, 0, 1
        yield from ((Kind.VALUE, ast.Constant(other)) for other in others if other != value)
    elif isinstance(value, str) and "->" in value:       # the letters of an einsum
        for i, j in combinations([i for i, letter in enumerate(value) if letter.isalpha()], 2):
            if not set(",->") & set(value[i:j]):
                yield Kind.AXIS, ast.Constant(value[:i] + value[j] + value[i + 1 : j] + value[i] + value[j + 1 :])


def _turned(node):
    """The transpose, or without it"""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "T" else ast.Attribute(node, "T", ast.Load())


def _new(node, **fields):
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _swapped(items):
    for i, j in combinations(range(len(items)), 2):
        new = list(items)
        new[i], new[j] = new[j], new[i]
        yield new


def written(new: ast.AST, source: Source) -> str:
    """A new node's text: parts of the author's as they were written"""
    authors, kept = _nodes_of(source.node), {}
    if id(new) in authors:
        return source.file.of(new)

    class Names(ast.NodeTransformer):
        """Parts that stand in the author's file become names, which are put back as text."""

        def visit(self, node):
            if isinstance(node, ast.expr) and id(node) in authors and not isinstance(node, (ast.Name, ast.Slice)):
                name = f"kept_{len(kept)}_"
                kept[name] = " ".join(source.file.of(node).split())
                return ast.Name(name, ast.Load())
            return self.generic_visit(_copied_top(node) if id(node) in authors else node)

    text = ast.unparse(ast.fix_missing_locations(Names().generic_visit(_copied_top(new))))
    return filled(text, **kept) if kept and not isinstance(new, ast.Slice) else text


@lru_cache(32)
def _nodes_of(tree):
    """The identities of all nodes in a tree, which the cache keeps alive"""
    return {id(node) for node in ast.walk(tree)}


def _copied_top(node):
    fields = {name: list(value) if isinstance(value, list) else value for name, value in ast.iter_fields(node)}
    return type(node)(**fields)


# Edits of statements --------------------------------------------------------------------------------------------------


def of_statement(site: Site, values: Sequence[tuple[str, list]]) -> Iterator[Edit]:
    """Edits of a whole statement: = and +=, without it, moved up, one more in front of it"""
    statement, source = site.statement, site.source
    if isinstance(statement, ast.Lambda):
        return
    text, (start, end) = source.file.text, source.file.span(statement)
    body = next((block for block in _blocks(site.functions[-1]) if any(one is statement for one in block)), None)
    if body is None:
        return
    indent = source.file.lines[statement.lineno - 1][: statement.col_offset]
    arrays = [(name, v[0]) for name, v in values if isinstance(v[0], np.ndarray) and v[0].ndim and name.isidentifier()]
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        where, value = source.file.of(target), source.file.of(statement.value)
        now = ASSIGNMENTS.get(type(statement.op)) if isinstance(statement, ast.AugAssign) else "="
        for op in ("=", "+=", "-=", "*=", "/=") if not isinstance(target, ast.Tuple) else ():
            if op != now:
                yield Edit(Kind.ASSIGNMENT, site, start, end, f"{where} {op} {value}")
        yield from _of_target(site, target, value, now, start, end)
    if isinstance(getattr(statement, "value", None), (ast.Tuple, ast.List)):
        for new in _swapped(statement.value.elts):
            yield replacing(site, statement.value, ", ".join(source.file.of(one) for one in new), Kind.ORDER)
    if isinstance(statement, ast.Return):
        for (d, v), (ids, k), (t, w) in product(arrays, repeat=3):
            if k.dtype.kind in "ib" and w.shape == k.shape + v.shape[1:] and d != t:
                yield Edit(Kind.REPEATS, site, start, start, f"{numpy_in(site)}.add.at({d}, {ids}, {t})\n{indent}")
    elif len(body) > 1:
        here = next(k for k, one in enumerate(body) if one is statement)
        if text_of(text).lines[statement.lineno - 1][: statement.col_offset].strip() == "":
            yield Edit(Kind.STATEMENT, site, start, end, "pass")
        if here:
            before = body[here - 1]
            a, b = source.file.span(before)
            yield Edit(Kind.STATEMENT, site, a, end, f"{text[start:end]}{text[b:start]}{text[a:b]}", before)


def _of_target(site, target, value, now, start, end):
    """Edits of what a statement sets"""
    source, scope = site.source, site.scopes[0]
    if isinstance(target, ast.Name):
        for loop in [one for one in ast.walk(site.functions[-1]) if isinstance(one, ast.For)]:
            if isinstance(loop.target, ast.Name) and any(one is site.statement for one in ast.walk(loop)):
                yield Edit(Kind.INDEX, site, start, end, f"{target.id}[{loop.target.id}] {now} {value}")
    if isinstance(target, ast.Subscript):
        where, index = source.file.of(target.value), source.file.of(target.slice)
        as_one = f"({index})" if isinstance(target.slice, ast.Tuple) else index
        as_one = f"{numpy_in(site)}.s_[{index}]" if ":" in index else as_one
        yield Edit(Kind.REPEATS, site, start, end, f"{numpy_in(site)}.add.at({where}, {as_one}, {value})")
        for name in site.own_names:
            if isinstance(scope.get(name), (int, np.integer)) and not isinstance(scope.get(name), bool):
                yield Edit(Kind.INDEX, site, start, end, f"{where}[{index}, {name}] {now} {value}")


def _blocks(function):
    """The lists of statements in a function, without those of functions inside it"""
    body = function.body
    if not isinstance(body, list):
        return
    yield body
    for one in body:
        if not isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            for inner in (getattr(one, "body", None), getattr(one, "orelse", None)):
                if isinstance(inner, list) and inner:
                    yield from _blocks(ast.For(target=None, iter=None, body=inner, orelse=[]))

"""Mutations: all the small ways in which a backward's source could have been written wrong.

    for mutation in mutations(text, node): …      # node: the backward's def or lambda in the file's text

Places are found in the syntax tree; the change is made in the text, so that what is shown is what runs.
"""

import ast
import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "std")
TRANSPOSES = ("transpose", "swapaxes", "permute", "moveaxis", "matrix_transpose")
SIMPLE = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List)


@dataclass(frozen=True)
class Mutation:
    """One small change of a file's text."""

    name: str                # what is done: "a factor dropped"
    source: "Source"
    node: ast.AST            # the part that changes
    start: int               # in the text, from where to where `new` takes the place of what is there
    end: int
    new: str
    shown: tuple[str, str] = ()          # what `before` and `after` say, if these lines do not say it best

    @property
    def old(self) -> str:
        return self.source.text[self.start : self.end]

    @cached_property
    def line(self) -> int:
        """The number of the line where it begins, from 1"""
        return self.source.line_of(self.start)

    @property
    def before(self) -> str:
        """The source line(s)"""
        first, last = self._lines
        return self.shown[0] if self.shown else _shown(self.source.text[first:last])

    @property
    def after(self) -> str:
        """What becomes of them"""
        (first, last), text = self._lines, self.source.text
        return self.shown[1] if self.shown else _shown(text[first : self.start] + self.new + text[self.end : last])

    @property
    def text(self) -> str:
        """The whole file, changed"""
        text = self.source.text
        return text[: self.start] + self.new + text[self.end :]

    @property
    def probe(self) -> str:
        """The whole file with 1/0 in the place of the node: it raises if the place is ever reached."""
        start, end = self.source.span(self.node)
        return self.source.text[:start] + "(1 / 0)" + self.source.text[end:]

    @property
    def _lines(self):
        starts = self.source.starts
        return starts[self.line - 1], starts[self.source.line_of(self.end)] - 1


def mutations(text: str, node: ast.FunctionDef | ast.Lambda, arrays: dict[str, str] | tuple[()] = ()) -> list[Mutation]:
    """Every mutation of the function at `node` of the file's `text`, in the order of the source.

    arrays: {name: "an input" or "what the forward kept"} of arrays in the function's closure; some mutants write into
    them.

    Functions inside the function are left alone, and so are loops by `while`, which might never end.
    """
    source = Source(text)
    changes = [(part, change) for part in own_nodes(node) for change in _changes(source, part)]
    changes += [(value, change) for value in returned_values(node) for change in _changes_of_returned(source, value)]
    if isinstance(node, ast.FunctionDef):
        arguments = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
        writes = [(f"{name} *= 2", "written into dy") for name in arguments[:1]]
        writes += [(f"{name}[...] = 2 * {name}", f"written into {what}") for name, what in dict(arrays).items()]
        returns = [part for part in own_nodes(node) if isinstance(part, ast.Return) and part.value]
        changes += [(part, change) for part in returns for change in _changes_by_writing(source, part, writes)]
    made = [source.mutation(part, *change) for part, change in changes]
    return sorted({m.text: m for m in made if m.text != text}.values(), key=lambda m: m.line)


def _changes(source, part):
    """(name, start, end, new text) for one node of the syntax tree"""
    if not hasattr(part, "end_lineno"):
        return
    start, end = source.span(part)
    if isinstance(part, ast.BinOp):
        yield from _changes_of_operator(source, part, start, end)
    elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and not isinstance(part.operand, ast.Constant):
        yield "a sign flipped", start, end, source.atom(part.operand)
    elif isinstance(part, ast.Call):
        yield from _changes_of_call(source, part, start, end)
    elif isinstance(part, ast.Attribute) and part.attr in ("T", "mT"):
        yield "a transpose left out", start, end, source.atom(part.value)
    elif isinstance(part, ast.AugAssign):
        target, value = (source.within(source.span(x)) for x in (part.target, part.value))
        yield "replaced, not accumulated", start, end, f"{target} = {value}"
        yield "a statement dropped", start, end, "pass"
        if isinstance(part.op, (ast.Add, ast.Sub)):
            yield "a sign flipped", start, end, f"{target} {'-' if isinstance(part.op, ast.Add) else '+'}= {value}"
    elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        yield "a statement dropped", start, end, "pass"


def _changes_of_operator(source, part, start, end):
    right = source.atom(part.right)
    between = source.span(part.left)[1], source.span(part.right)[0]
    # An operand without brackets needs none where the whole stood.
    alone = source.within(source.span(part.left)) if source.span(part.left)[0] == start else source.atom(part.left)
    other = source.within(source.span(part.right)) if source.span(part.right)[1] == end else right
    if isinstance(part.op, (ast.Add, ast.Sub)):
        minus = isinstance(part.op, ast.Sub)
        yield "a term dropped", start, end, alone
        yield "a term dropped", start, end, f"-{right}" if minus else other
        flipped = re.sub(r"[+-]", "+" if minus else "-", source.within(between), count=1)
        yield "a sign flipped", *between, flipped
    elif isinstance(part.op, (ast.Mult, ast.Div)):
        yield "a factor dropped", start, end, alone
        yield "a factor dropped", start, end, other if isinstance(part.op, ast.Mult) else f"1 / {right}"


def _changes_of_call(source, part, start, end):
    name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
    owner = part.func.value if isinstance(part.func, ast.Attribute) else None
    library = isinstance(owner, ast.Name) and owner.id in ("np", "xp", "numpy", "cupy")
    text = [source.within(source.span(argument)) for argument in part.args]
    if name in REDUCTIONS:
        # np.sum(x, axis) or x.sum(axis): the axis is named, or stands behind the array
        places = [k.value for k in part.keywords if k.arg == "axis"] or part.args[1 if library else 0:][:1]
        for axis in places:
            number = whole_number(axis)
            if number is not None:
                yield "an axis changed", *source.span(axis), "0" if number == -1 else "-1"
    if name in ("sum", "mean") and owner is not None:
        at = source.span(part.func)[1]
        yield "sum for mean, or mean for sum", at - len(name), at, "mean" if name == "sum" else "sum"
    if name in TRANSPOSES:
        array = part.args[0] if owner is None or library else owner
        yield "a transpose left out", start, end, source.atom(array)
    if name == "reversed" and len(part.args) == 1:
        yield "an order reversed", start, end, text[0]
    if name == "accumulate" and owner is not None and len(part.args) == 1:
        yield "replaced, not accumulated", start, end, f"{source.atom(owner)}.grad = {text[0]}"
        yield "a gradient doubled", *source.span(part.args[0]), f"2 * {source.atom(part.args[0])}"
        yield "a sign flipped", *source.span(part.args[0]), f"-{source.atom(part.args[0])}"
    if (name == "scatter_add" or ast.unparse(part.func).endswith(".add.at")) and len(part.args) == 3:
        target, index, values = (source.atom(argument) for argument in part.args)
        yield "repeated ids dropped", start, end, f"{target}[{index}] += {values}"


def _changes_of_returned(source, value):
    """Changes of the returned gradients."""
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    gradients = [e for e in elements if not (isinstance(e, ast.Constant) and e.value is None)]
    for gradient in gradients:
        span, atom = source.span(gradient), source.atom(gradient)
        yield "a gradient doubled", *span, f"2 * {atom}"
        yield "a sign flipped", *span, f"-{atom}"
        yield "a gradient zero", *span, f"0 * {atom}"
    for one, other in zip(gradients, gradients[1:]):
        (start, end), (start_other, end_other) = source.span(one), source.span(other)
        swapped = [source.within(s) for s in ((start_other, end_other), (end, start_other), (start, end))]
        yield "two gradients swapped", start, end_other, "".join(swapped)


def _changes_by_writing(source, statement, writes):
    """The gradients are right, but an array that others hold is overwritten."""
    gradients = source.within(source.span(statement.value))
    for write, name in writes:
        yield name, *source.span(statement), f"gradients_ = ({gradients}); {write}; return gradients_"


def returned_values(node: ast.FunctionDef | ast.Lambda) -> Iterator[ast.expr]:
    """The values that the function returns: of `a if … else b`, both."""
    if isinstance(node, ast.Lambda):
        values = [node.body]
    else:
        values = [part.value for part in own_nodes(node) if isinstance(part, ast.Return) and part.value]
    while values:
        value = values.pop(0)
        if isinstance(value, ast.IfExp):
            values += [value.body, value.orelse]
        else:
            yield value


def own_nodes(node: ast.FunctionDef | ast.Lambda, loops: bool = False) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of the functions inside it.

    loops: with what while-loops have inside, too, which a change may make endless
    """
    others = (ast.FunctionDef, ast.Lambda, ast.ClassDef, *([] if loops else [ast.While]))
    for child in node.body if isinstance(node.body, list) else [node.body]:
        yield from _inside(child, others)


def _inside(node, others):
    if isinstance(node, others):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _inside(child, others)


def whole_number(node: ast.AST) -> int | None:
    """The value of a node that is a whole number, as −1; else None"""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Source:
    """A file's text, and where in it the nodes of its syntax tree stand."""

    def __init__(self, text: str):
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """(start, end) in the text. The tree counts bytes of UTF-8 within a line, the text letters."""
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line, column):
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def within(self, span: tuple[int, int]) -> str:
        return self.text[span[0]: span[1]]

    def atom(self, node: ast.AST) -> str:
        """The node's text, in brackets where needed, so that it can stand in any formula."""
        text = self.within(self.span(node))
        return text if isinstance(node, SIMPLE) and not isinstance(node, ast.Tuple) else f"({text})"

    def product(self, node: ast.AST) -> str:
        """The node's text, so that a factor can stand behind it: a product or quotient needs no brackets."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            return self.within(self.span(node))
        return self.atom(node)

    def mutation(self, node: ast.AST, name: str, start: int, end: int, new: str) -> Mutation:
        """The text from start to end becomes `new`; the probe shows whether `node`, around it, ever runs."""
        if self.text[start - 1: start] == "(" and self.text[end: end + 1] == ")" and _in_brackets(new):
            new = new[1:-1]
        return Mutation(name, self, node, start, end, new)

    def line_of(self, place: int) -> int:
        """The number of the line with this place of the text in it, from 1"""
        return bisect(self.starts, place)


def _in_brackets(text):
    """True if one pair of brackets encloses all of it."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at > 0 and at == len(text) - 1
    return False


def _shown(text):
    """Lines as one, without the comment at their end."""
    return " ".join(line.partition("  #")[0].strip() for line in text.split("\n"))

"""What an expression could be in place of what it is: values in scope, and simple functions of one and of two of them.

A candidate is a Formula, a template with texts in the places of its letters, and its values: one for each time that the
statement ran. As rows of a matrix, thousands are tried at once.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.expressions import Expression, code_of, is_numeric, nodes_of
from mini_tf.gradcheck.explain.sites import LARGEST, Site
from mini_tf.gradcheck.program import is_theirs
from mini_tf.gradcheck.weights import parts
from mini_tf.types import Array

import numpy as np

OF_ONE = (
    "-e", "e.T", "e.swapaxes(-1, -2)", "e.swapaxes(1, 2)", "e ** 2", "e ** 3", "1 / e", "1 - e", "1 + e", "e - 1",
    "e * (1 - e)", "1 - e ** 2", "np.exp(e)", "np.exp(-e)", "np.log(e)", "np.tanh(e)", "1 / (1 + np.exp(-e))",
    "np.sqrt(e)", "1 / np.sqrt(e)", "np.sign(e)", "np.abs(e)", "e > 0", "e < 0", "~e", "(e > 0)[:, None]",
    "e[..., None]", "e[:, None]",
    "e.sum(0)", "e.sum(1)", "e.sum(-1)", "e.sum((0, 1))", "e.sum()", "e.mean()", "e.sum(-1, keepdims=True)",
    "e.sum(1, keepdims=True)", "e.sum(0, keepdims=True)", "e.mean(0)", "e.mean(-1, keepdims=True)",
    "e - e.mean(-1, keepdims=True)", "e[..., ::-1]", "np.diagflat(e)",
)  # fmt: skip
WITH = ("e @ v", "v @ e", "e @ v.T", "v.T @ e", "v[e]", "e[v]", "e ** v", "1 + e * v", "1 - e * v", "v - e", "v / e",
        "np.clip(e, -v, v)")  # fmt: skip
OF_TWO = (
    "v * w", "v / w", "v @ w", "v.T @ w", "v @ w.T", "v == w[..., None]", "v + w", "v - w",
    "(v * w).sum(-1, keepdims=True)",
    "(v * w).mean(-1, keepdims=True)", "v * (v * w).mean(-1, keepdims=True)",
    "v.reshape(-1, v.shape[-1]).T @ w.reshape(-1, w.shape[-1])", "v * (w - (v * w).sum(-1, keepdims=True))",
    "v - w * v.sum(-1, keepdims=True)",
)  # fmt: skip
NARROW, WIDE = 25, 60    # how many values are paired with how many functions of values
FUNCTIONS, ADAPTED, VALUES = 1200, 400, 120              # at most of each kind
SCALARS = 25             # whose products and quotients are candidates for a factor


class Formula(NamedTuple):
    """A template with texts, or other Formulas, in the places of its letters."""

    template: str
    parts: tuple[tuple[str, "str | Formula"], ...] = ()

    def text(self) -> str:
        """The formula as it is written, with brackets only where they are needed"""
        return filled(self.template, **{letter: text_of(part) for letter, part in self.parts})


def text_of(one: "str | Formula") -> str:
    return one.text() if isinstance(one, Formula) else one


def formula(template: str, **letters: "str | Formula") -> Formula:
    return Formula(template, tuple(letters.items()))


def filled(template: str, **texts: str) -> str:
    """The template with texts in the places of its letters; brackets where the meaning would be another without"""
    tree = ast.parse(template, mode="eval")
    places = sorted(((node.col_offset, node.end_col_offset, node.id) for node in ast.walk(tree)
                     if isinstance(node, ast.Name) and node.id in texts), reverse=True)  # fmt: skip

    def written(bracketed):
        text = template
        for k, (start, end, letter) in enumerate(places):
            text = text[:start] + (f"({texts[letter]})" if bracketed[k] else texts[letter]) + text[end:]
        return text

    brackets = [True] * len(places)
    wanted = _shape_of(written(brackets))
    for k in range(len(places)):
        brackets[k] = False
        brackets[k] = _shape_of(written(brackets)) != wanted
    return written(brackets)


def _shape_of(text):
    try:
        return ast.dump(ast.parse(text, mode="eval"))
    except SyntaxError:
        return None


@cache
def _function(template):
    return eval(f"lambda e=None, v=None, w=None: {template}", {"np": np})


def computed(template: str, **letters: Sequence[Any]) -> list[Any] | None:
    """The template's value for each time that the statement ran; None where it has none"""
    if template == "~e" and np.asarray(letters["e"][0]).dtype.kind != "b":
        return None
    try:
        return [_function(template)(**dict(zip(letters, each))) for each in zip(*letters.values())]
    except FAILURES:
        return None


class Scope:
    """What a site's expression could use: (text, values) of names, attributes, elements, sizes, and of expressions that
    stand elsewhere in the same function.
    """

    def __init__(self, site: Site, sites: Sequence[Site]):
        self.site, self.sites = site, sites
        self._functions = self._adapted = self._numbers = None
        self._pairs = {}
        self.values = list(self._visible())

    def _visible(self):
        found, scope = {}, self.site.scopes[0]
        names = [name for name in self.site.own_names if name in scope]
        names += [name for name in self._read_elsewhere() if name in scope and name not in names]
        for name in sorted(names, key=lambda name: not is_numeric(scope[name])):         # P before cache[10]
            self._add(found, name, scope[name], 0)
        whole = [name for name in names if isinstance(scope[name], int) and len(self.site.scopes) > 1]
        for name, k in product([name for name in names if isinstance(scope[name], (list, tuple, dict))], whole):
            for index in (k, f"{k} - 1", f"{k} + 1"):    # of a list or a dict, in a loop: states[t + 1]
                self._add(found, f"{name}[{index}]", _at(scope, name, index), 2)
        for name, x in [(name, x) for name, x in found.items() if np.ndim(x)][:12]:
            found |= {f"len({name})": len(x), f"{name}.size": x.size}
            found |= {f"{name}.shape[{k}]": size for k, size in enumerate(x.shape) if k and size > 1}
        known = {_identity(x, text) for text, x in found.items()}
        for text, node in self._written():
            if len(found) >= VALUES:
                break
            try:
                x = eval(code_of(node), scope)
            except FAILURES:
                continue
            if is_numeric(x) and np.size(x) <= LARGEST * 10 and _identity(x, text) not in known:
                found[text] = x
                known.add(_identity(x, text))
        times = Counter()
        for text, x in found.items():
            if not np.ndim(x):                           # of equal numbers, a few
                times[float(x)] += 1
                if times[float(x)] > 4:
                    continue
            try:
                yield text, [x, *(eval(text, scope) for scope in self.site.scopes[1:])]
            except FAILURES:
                continue

    def _add(self, found, text, x, depth):
        if is_numeric(x):
            found.setdefault(text, x)
        elif depth < 2 and isinstance(x, (dict, tuple, list)) and len(x) <= 12:
            for key, part in parts(x).items():
                self._add(found, f"{text}[{key!r}]", part, depth + 1)
        elif depth < 2 and is_theirs(getattr(getattr(type(x), "__init__", None), "__code__", None).co_filename
                                     if hasattr(getattr(type(x), "__init__", None), "__code__") else "<"):   # fmt: skip
            for name, part in parts(x).items():
                self._add(found, f"{text}.{name}", part, depth + 1)

    def _read_elsewhere(self):
        """The names of the file's numbers and arrays that the function reads"""
        for node in ast.walk(self.site.functions[0]):
            if isinstance(node, ast.Name) and is_numeric(self.site.scopes[0].get(node.id)):
                yield node.id

    def _written(self):
        """(text, node) of the expressions in other statements of the same function"""
        for other in self.sites:
            if other.functions[0] is self.site.functions[0] and other.statement is not self.site.statement:
                for node in nodes_of(other.node):
                    if isinstance(node, (ast.BinOp, ast.Call, ast.Subscript, ast.Attribute, ast.Compare, ast.UnaryOp)):
                        yield " ".join(other.source.file.of(node).split()), node

    @property
    def functions(self) -> list[tuple[Formula | str, list]]:
        """The values, and simple functions of one of them"""
        if self._functions is None:
            found = [(text, v) for text, v in self.values if np.ndim(v[0]) or text.isidentifier()]
            found += [(formula(t, e=text), made) for t in OF_ONE for text, v in found
                      if (made := computed(t, e=v)) and np.size(made[0]) <= LARGEST]     # fmt: skip
            self._functions = found[:FUNCTIONS]
        return self._functions

    @property
    def adapted(self) -> list[tuple[Formula, list]]:
        """Expressions of this function with one name changed: as what is done for b, done for W"""
        if self._adapted is None:
            self._adapted = []
            others = [(text, v) for text, v in self.values if text.isidentifier() and np.ndim(v[0])][:14]
            known = {t: n for t, n in self._written() if len(t) < 90 and isinstance(n, (ast.BinOp, ast.Call))}
            for text, node in known.items():
                code = code_of(node)
                for old in sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {"np"}):
                    for new, v in others if len(self._adapted) < ADAPTED else ():
                        try:
                            made = [eval(code, {**scope, old: v[k]}) for k, scope in enumerate(self.site.scopes)]
                        except FAILURES:
                            continue
                        if is_numeric(made[0]) and new != old:
                            self._adapted.append((formula(text, **{old: new}), made))
        return self._adapted

    def pairs(self, e: Expression) -> tuple[list, Array]:
        """Functions of two values, as rows for this expression"""
        key = tuple(np.shape(v) for v in e.values)
        if key not in self._pairs:
            made = self._pairs.setdefault("made", [])
            if not made and len(self.site.scopes) <= 6:
                narrow = [one for one in self.values if _is_array(one[1])][:NARROW]
                wide = [one for one in self.functions if _is_array(one[1])][:WIDE]
                for template, (a, v), (b, w) in product(OF_TWO, narrow, wide):
                    if values := computed(template, v=v, w=w):
                        made.append((formula(template, v=a, w=b), values))
            self._pairs[key] = rows(e, made)
        return self._pairs[key]

    @property
    def numbers(self) -> dict[str, list[str]]:
        """{number, to six digits: expressions for it}: sizes, scalars, their products and quotients"""
        if self._numbers is None:
            scalars = [("1", 1.0), *((t, float(v[0])) for t, v in self.values if not np.ndim(v[0]) and v[0])][:SCALARS]
            forms = sorted(product((1, -1, 2, 0.5, 3, -2, -0.5), scalars, scalars), key=_simplicity)
            self._numbers = {}
            for factor, (a, x), (b, y) in forms:
                for value, sign in ((x / y, "/"), (x * y, "*")):
                    text = " ".join([a if factor == 1 else f"{factor} * {a}", *([sign, b] if b != "1" else [])])
                    text = text.replace("* 1 *", "*").removesuffix(" * 1")
                    self._numbers.setdefault(f"{factor * value:.6g}", []).append(text)
        return self._numbers


def _simplicity(form):
    """How much there is in factor·a/b: a plain number first, then names, then both"""
    factor, (a, _), (b, _) = form
    names = (a != "1") + (b != "1")
    return 0 if not names else names + 2.5 * (abs(factor) != 1)


def rows(e: Expression, candidates: Sequence[tuple[Any, list]]) -> tuple[list, Array]:
    """(formulas, a matrix with a row for each): values as wide as the expression's; equal ones once"""
    shapes = [np.shape(v) for v in e.values]
    size = sum(int(np.prod(shape)) for shape in shapes)
    texts, found, known = [], [], set()
    for text, values in candidates:
        try:
            if np.size(values[0]) > size:
                continue
            row = np.concatenate([np.broadcast_to(v, shape).ravel() for v, shape in zip(values, shapes)]).astype(float)
        except FAILURES:
            continue
        key = np.round(row, 9).tobytes()
        if key not in known and np.isfinite(row).all() and row.any():
            known.add(key)
            texts.append(text)
            found.append(row)
    return texts, np.array(found).reshape(len(found), size)


def near(e: Expression, scope: Scope) -> Iterator[tuple[Any, list]]:
    """Values in scope, functions of the expression itself, and of it and another value"""
    yield "1", [1.0] * len(e.values)
    yield from scope.values
    own = e.text
    for template in OF_ONE:
        if values := computed(template, e=e.values):
            yield formula(template, e=own), values
    for template in WITH:
        for text, v in scope.values:
            if values := computed(template, e=e.values, v=v):
                yield formula(template, e=own, v=text), values


def _at(scope, name, index):
    """An element of a list in scope; None if there is none"""
    try:
        return eval(f"{name}[{index}]", scope)
    except FAILURES:
        return None


def _is_array(v):
    return isinstance(v[0], np.ndarray) and v[0].ndim and v[0].dtype.kind in "fb"


def _identity(x, text):
    return (x.shape, x.tobytes()) if isinstance(x, np.ndarray) else text

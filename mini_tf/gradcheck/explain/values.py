"""What could replace an expression: values in scope, and simple functions of one or two of them.

A candidate has a text and its values, one for each time that the statement ran. As rows of a matrix, thousands are
tried at once.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import product
from typing import Any, NamedTuple

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.sites import LARGEST, Expression, Site, code_of, flat, is_numeric, size_of
from mini_tf.gradcheck.weights import parts
from mini_tf.places import is_theirs
from mini_tf.types import Array

import numpy as np

OF_ONE = (
    "-e", "e.T", "e.swapaxes(-1, -2)", "e.swapaxes(1, 2)", "e ** 2", "e ** 3", "1 / e", "1 - e", "1 + e", "e - 1",
    "e * (1 - e)", "1 - e ** 2", "np.exp(e)", "np.exp(-e)", "np.log(e)", "np.tanh(e)", "1 / (1 + np.exp(-e))",
    "np.sqrt(e)", "1 / np.sqrt(e)", "e > 0", "e < 0", "np.sign(e)", "np.abs(e)", "~e", "(e > 0)[:, None]",
    "e[..., None]", "e[:, None]",
    "e.sum(0)", "e.sum(1)", "e.sum(-1)", "e.sum((0, 1))", "e.sum()", "e.mean()", "e.sum(-1, keepdims=True)",
    "e.sum(1, keepdims=True)", "e.sum(0, keepdims=True)", "e.mean(0)", "e.mean(-1, keepdims=True)",
    "e - e.mean(-1, keepdims=True)", "e[..., ::-1]", "np.diagflat(e)",
)  # fmt: skip
WITH = ("e @ v", "v @ e", "e @ v.T", "v.T @ e", "v[e]", "e[v]", "e ** v", "1 + e * v", "1 - e * v", "v - e", "v / e",
        "np.clip(e, -v, v)")  # fmt: skip
OF_TWO = (
    "e * v", "e / v", "e @ v", "e.T @ v", "e @ v.T", "e == v[..., None]", "e + v", "e - v",
    "(e * v).sum(-1, keepdims=True)", "(e * v).mean(-1, keepdims=True)", "e * (e * v).mean(-1, keepdims=True)",
    "e * (v - (e * v).sum(-1, keepdims=True))", "e - v * e.sum(-1, keepdims=True)",
    "e * (e * v).sum(-1, keepdims=True)", "e.reshape(-1, e.shape[-1]).T @ v.reshape(-1, v.shape[-1])",
)  # fmt: skip
NARROW, WIDE = 25, 60    # how many values are paired with how many functions of values
FUNCTIONS, VALUES = 1200, 120                            # at most of each kind
WRITTEN = ast.BinOp, ast.Call, ast.Subscript, ast.Attribute, ast.Compare, ast.UnaryOp
SCALARS = 25             # whose products and quotients are candidates for a factor
FEW = 3                  # expressions for a number that are tried
ONE: dict[str, list[str]] = {"1": ["1"], "-1": []}


class Candidate(NamedTuple):
    """What could replace an expression: its text, or a function that writes it, and its values."""

    make: str | Callable[[], str]
    values: list[Any]

    @property
    def text(self) -> str:
        return self.make if isinstance(self.make, str) else self.make()


def applied(template: str, e: Candidate | Expression, v: Candidate | None = None) -> Candidate | None:
    """A template applied to one or two candidates; None where it has no value"""
    try:
        made = [_function(template)(*each) for each in zip(e.values, *([v.values] if v else []))]
    except FAILURES:
        return None
    if not is_numeric(made[0]):
        return None
    return Candidate(lambda: filled(template, e=e.text, **({"v": v.text} if v else {})), made)


@cache
def _function(template: str) -> Any:
    return eval(f"lambda e, v=None: {template}", {"np": np})


def filled(template: str, **texts: str) -> str:
    """The template with texts in place of its letters, in brackets where the meaning would change without"""
    places = sorted(((node.col_offset, node.end_col_offset, node.id) for node in ast.walk(_parsed(template))
                     if isinstance(node, ast.Name) and node.id in texts), reverse=True)  # fmt: skip
    for start, end, letter in places:
        template = template[:start] + bracketed(template[:start], texts[letter], template[end:]) + template[end:]
    return template


def bracketed(before: str, new: str, after: str) -> str:
    """A text between two others, in brackets if it needs them there"""
    return new if new.isidentifier() or same_code(f"{before}{new}{after}", f"{before}({new}){after}") else f"({new})"


def same_code(one: str, other: str) -> bool:
    """Whether two texts compile to the same expression"""
    try:
        codes = code_of(one), code_of(other)
    except SyntaxError:
        return False
    return len({(code.co_code, code.co_consts, code.co_names) for code in codes}) == 1


@cache
def _parsed(template: str) -> ast.Expression:
    return ast.parse(template, mode="eval")


class Scope:
    """What a site's expression could use: names, attributes, elements, sizes, and expressions that stand elsewhere in
    the same function.
    """

    def __init__(self, site: Site, sites: Sequence[Site]):
        self.site = site
        self.sites = sites
        self._composed: dict[tuple[tuple[int, ...], ...], tuple[list[Candidate], Array]] = {}

    @cached_property
    def values(self) -> list[Candidate]:
        """All of them: of equal numbers and names of one array a few, of other equal arrays one"""
        found, times = list[Candidate](), Counter[bytes]()
        for text in self._visible():
            values = self.site.evaluated(text)
            if values and all(map(is_numeric, values)) and size_of(values[0]) <= LARGEST * 10:
                key = b"".join(np.asarray(x).tobytes() for x in values)
                times[key] += 1
                most = 1 if np.ndim(values[0]) and not text.isidentifier() else FEW
                found += [Candidate(text, values)] * (times[key] <= most)
        return found[:VALUES]

    def _visible(self) -> list[str]:
        """Names, parts of what they stand for, sizes, and the expressions in other statements of the same function"""
        found, scope, function = dict[str, Any](), self.site.scopes[0], self.site.functions[0]
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        names = [*dict.fromkeys([*self.site.own_names, *sorted(read & {*scope})])]
        for name in sorted(names, key=lambda name: not is_numeric(scope[name])):         # P before cache[10]
            found |= self._numbers_in(name, scope[name])
        whole = [name for name in names if isinstance(scope[name], int) and len(self.site.scopes) > 1]
        for name, k in product([name for name in names if isinstance(scope[name], (list, tuple, dict))], whole):
            found |= dict.fromkeys([f"{name}[{k}]", f"{name}[{k} - 1]", f"{name}[{k} + 1]"])       # in a loop
        for name, x in [(name, x) for name, x in found.items() if np.ndim(x)][:12]:
            sizes = [f"{name}.shape[{axis}]" for axis, size in enumerate(x.shape) if axis and size > 1]
            found |= dict.fromkeys([f"len({name})", f"{name}.size", *sizes])
        for other in self.sites:
            if other.functions[0] is function and other.statement is not self.site.statement:
                found |= {e.text: e for e in other.expressions if isinstance(e.node, WRITTEN)}
        return [*found]

    def _numbers_in(self, text: str, x: Any, depth: int = 0) -> dict[str, Any]:
        """{text: number or array} of what a name stands for, and of what is in that"""
        theirs = is_theirs(getattr(getattr(type(x).__init__, "__code__", None), "co_filename", "<"))
        theirs = theirs or hasattr(type(x), "saved_tensors")             # ctx of a torch.autograd.Function
        if is_numeric(x):
            return {text: x}
        found = dict[str, Any]()
        if depth < 2 and ((isinstance(x, (dict, tuple, list)) and len(x) <= 12) or theirs):
            for key, part in parts(x).items():
                found |= self._numbers_in(f"{text}.{key}" if theirs else f"{text}[{key!r}]", part, depth + 1)
        return found

    def of_itself(self, e: Expression) -> Iterator[Candidate]:
        """Values in scope, and functions of the expression itself"""
        yield from (Candidate("1", [1.0] * len(e.values)), *self.values)
        yield from filter(None, (applied(template, e) for template in OF_ONE))

    def near(self, e: Expression) -> Iterator[Candidate]:
        """Those, and functions of the expression and another value"""
        yield from self.of_itself(e)
        yield from filter(None, (applied(template, e, v) for template, v in product(WITH, self.values)))

    @cached_property
    def functions(self) -> list[Candidate]:
        """The values, and simple functions of one of them"""
        simple = [one for one in self.values if np.ndim(one.values[0]) or one.text.isidentifier()]
        made = (applied(template, one) for template, one in product(OF_ONE, simple))
        return [*simple, *(one for one in made if one and size_of(one.values[0]) <= LARGEST)][:FUNCTIONS]

    def composed(self, e: Expression) -> tuple[list[Candidate], Array]:
        """Functions of a value and of two, as rows for this expression"""
        key = tuple(np.shape(value) for value in e.values)
        if key not in self._composed:
            self._composed[key] = rows(e, [*self.functions, *self._of_two])
        return self._composed[key]

    @cached_property
    def _of_two(self) -> list[Candidate]:
        narrow, wide = ([one for one in some if _is_array(one)][:most]
                        for some, most in ((self.values, NARROW), (self.functions, WIDE)))          # fmt: skip
        some = product(OF_TWO, narrow, wide) if len(self.site.scopes) <= 6 else ()
        return [*filter(None, (applied(template, one, other) for template, one, other in some))]

    @cached_property
    def numbers(self) -> dict[str, list[str]]:
        """{number, to six digits: a few expressions for it}: sizes, scalars, their products and quotients"""
        plain = [Candidate(text, [float(text)]) for text in ("2", "3", "0.5")]
        named = [one for one in self.values if not np.ndim(one.values[0]) and one.values[0]][:SCALARS]
        found = defaultdict[str, list[str]](list)
        made = [*plain, *named, *(applied("1 / e", one) for one in named)]
        for some, others in (named, named), (plain, named), (named, plain):
            made += [applied(template, *pair) for template, pair in product(("e / v", "e * v"), product(some, others))]
        for one in filter(None, made):
            found[f"{one.values[0]:.6g}"].append(one.text)
        return {number: [*dict.fromkeys(texts)][:FEW] for number, texts in found.items()} | ONE


def rows(e: Expression, candidates: Iterable[Candidate]) -> tuple[list[Candidate], Array]:
    """(candidates, a matrix with a row for each): values as wide as the expression's; equal ones once"""
    shapes, size = [np.shape(v) for v in e.values], flat(e.values).size
    chosen, found, known = [], [], set()
    for one in candidates:
        try:
            if size_of(one.values[0]) > size:
                continue
            row = flat([np.broadcast_to(v, shape) for v, shape in zip(one.values, shapes)])
        except FAILURES:
            continue
        sign = np.sign(row[np.abs(row).argmax()]) if row.size else 0
        key = "one number" if np.ptp(row) == 0 else np.round(sign * row, 9).tobytes()    # a factor is solved for
        if key not in known and np.isfinite(row).all() and row.any():
            known.add(key)
            chosen.append(one)
            found.append(row)
    return chosen, np.array(found).reshape(len(found), size)


def _is_array(one: Candidate) -> bool:
    return np.ndim(one.values[0]) > 0 and np.asarray(one.values[0]).dtype.kind in "fb"

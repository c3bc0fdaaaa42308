"""Parts of a formula: what is an array, which shape it has, what is multiplied."""

import ast
import re
from collections.abc import Collection, Iterator
from types import SimpleNamespace
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.stored import is_floating
from mini_tf.gradcheck.planting.mutations import Source

import numpy as np

SIZE = re.compile(r"""[\w."'\[\]]+\.shape\[-?\d\]|[\w."'\[\]]+\.size|len\([\w."'\[\]]+\)""")
SINGLE = int, float, np.number
NUMPY = "np", "numpy"
REDUCED = {"sum", "mean", "max", "min", "std", "var"}
SHAPED = {"reshape", "transpose", "swapaxes", "moveaxis", "ravel", "flatten", "squeeze", "repeat"}

Atoms = dict[str, Any]               # {text: value} of what stands for arrays and numbers inside a function
Changes = Iterator[tuple[str, ast.AST | tuple[int, int], str]]       # (what is wrong, what is replaced, by which text)


def exchanged(source: Source, a: ast.AST, b: ast.AST) -> tuple[tuple[int, int], str]:
    """(span, text) that exchanges two parts, the first before the second."""
    (start, end), (start_b, end_b) = source.span(a), source.span(b)
    return (start, end_b), source.within((start_b, end_b)) + source.text[end:start_b] + source.within((start, end))


def plus_or_minus(term: str, where: ast.AST | tuple[int, int], text: str, bracketed: bool = False) -> Changes:
    """A term that is missing, with either sign; bracketed: in parentheses, because the sum stands inside a product"""
    for sign, shown in (("+", ""), ("-", "−")):
        changed = f"{text} {sign} {term}"
        yield f"a term is missing, {shown}{term}", where, f"({changed})" if bracketed else changed


def is_own_function(call: ast.AST) -> bool:
    """True for a call of a function that is not NumPy's"""
    return isinstance(call, ast.Call) and ast.unparse(call.func).partition(".")[0] not in NUMPY


def names_read(node: ast.AST) -> set[str]:
    """The names that a part of a function reads"""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def texts_of_factors(source: Source, part: ast.AST) -> list[str]:
    """The texts of a product's factors, sums and differences in parentheses"""
    factors = multiplied(part)
    texts = [source.within(source.span(factor)) for factor in factors]
    return [f"({text})" if isinstance(factor, ast.BinOp) else text for factor, text in zip(factors, texts)]


def multiplied(part: ast.AST) -> list[ast.AST]:
    """The factors of a product, from left to right"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        return [*multiplied(part.left), *multiplied(part.right)]
    return [part]


def added(part: ast.AST) -> list[ast.AST]:
    """The terms of a sum, from left to right, those that are taken away included"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
        return [*added(part.left), *added(part.right)]
    return [part]


def is_atom(part: ast.AST) -> bool:
    """True for a name, or an attribute or constant index of one: x, self.W, cache["h"]."""
    if isinstance(part, ast.Attribute):
        return part.attr not in ("T", "mT", "shape", "size", "ndim", "dtype") and is_atom(part.value)
    if isinstance(part, ast.Subscript):
        return isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str) and is_atom(part.value)
    return isinstance(part, ast.Name)


def is_mask(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "b"


def shape_of(part: ast.AST, source: Source, atoms: Atoms) -> tuple[int, ...] | None:
    """The shape of an expression of atoms, indices, and NumPy's functions; None if that is not known."""
    text = source.within(source.span(part))
    if text in atoms:
        return None if callable(atoms[text]) else np.shape(atoms[text])
    calls = [one.func for one in ast.walk(part) if isinstance(one, ast.Call)]
    names = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
    owners = {owner: _owner(owner, atoms) for owner in names & {"self", "ctx"}}
    if not all(isinstance(f, ast.Attribute) and f.attr != "at" for f in calls) or not names <= {"np", *owners, *atoms}:
        return None
    try:
        with np.errstate(all="ignore"):
            return np.shape(eval(text, {"np": np}, dict(atoms) | owners))
    except FAILURES:
        return None


def _owner(name, atoms):
    """An object that has what the atoms say that self has"""
    return SimpleNamespace(**{text.removeprefix(f"{name}."): x for text, x in atoms.items()
                              if re.fullmatch(rf"{name}\.\w+", text)})  # fmt: skip


def is_array(value: Any) -> bool:
    """True for a floating array that is no single number."""
    return is_floating(value) and value.ndim > 0


def fits(value: Any, shape: tuple[int, ...] | None, larger: bool = False) -> bool:
    """True if value can multiply an array of that shape, without making it larger unless that is allowed."""
    try:
        return shape is None or np.broadcast_shapes(np.shape(value), shape) == tuple(shape) or larger
    except ValueError:
        return False


def first_of_each_shape(atoms: Atoms) -> dict[tuple[int, ...], str]:
    """{shape: the first atom that has it}"""
    return {np.shape(value): name for name, value in reversed(atoms.items()) if not callable(value)}


def array_in(part: ast.AST) -> ast.expr | None:
    """x of x.sum(…), np.mean(x, …), x.reshape(…); None for what is no such call."""
    return reduced(part, REDUCED | SHAPED)


def reduced(part: ast.AST, names: Collection[str] = frozenset(REDUCED)) -> ast.expr | None:
    """x of x.sum(…), np.mean(x, …); None for what is no such call."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or part.func.attr not in names:
        return None
    if getattr(part.func.value, "id", "") in NUMPY:
        return part.args[0] if part.args else None
    return part.func.value


def transposed(text: str) -> str:
    """W for W.T, and W.T for W"""
    return text.removesuffix(".T") if text.endswith(".T") else f"{text}.T"

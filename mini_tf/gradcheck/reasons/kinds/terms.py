"""Changes that add a term to a sum."""

import ast
import itertools
import re
from collections.abc import Collection

from mini_tf.gradcheck.measuring.naming import is_upstream
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.kinds.factors import PAIRS
from mini_tf.gradcheck.reasons.kinds.formulas import (
    SINGLE,
    Atoms,
    Changes,
    fits,
    is_array,
    is_atom,
    is_own_function,
    plus_or_minus,
    shape_of,
    transposed,
)

import numpy as np

DIVISOR = re.compile(r" / [A-Za-z_][\w.]*")
BOUNDS = re.compile(r"(?<=[\[ ])([^\[\]:,]+):([^\[\]:,]+)(?=[\],])")  # of a slice between two numbers


def terms_inside(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """A term that is missing from a sum inside a product: 0.5 * (a - b - 1 / nu)"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
        whole, shape = source.within(source.span(part)), shape_of(part, source, atoms)
        for name, x in atoms.items():
            if isinstance(x, SINGLE) or (shape and is_array(x) and x.shape == shape):
                if np.all(x > 0):
                    yield f"a term is missing, 1/{name}", part, f"({whole} + 1 / {name})"
                    yield f"a term is missing, −1/{name}", part, f"({whole} - 1 / {name})"
                yield from plus_or_minus(name, part, whole, True)


def terms_of_arguments(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """A term that is missing from what a function of the learner's own is given: back_embed(dx + dx_residual)."""
    if not is_own_function(part):
        return
    for argument in part.args:
        text, shape = source.within(source.span(argument)), shape_of(argument, source, atoms)
        for name, x in atoms.items():
            if shape and is_array(x) and x.shape == shape and name != text:
                yield f"a term is missing, {name}", argument, f"{source.atom(argument)} + {name}"


def terms(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """A product that is missing as a term: a path on which nothing comes back, such as da @ W.T; or one of entries."""
    span, atom, shape = source.span(whole), source.atom(whole), shape_of(target, source, atoms)
    if shape is None or not shape:
        return
    matrices = {name: x for name, x in atoms.items() if is_array(x) and x.ndim >= 2}
    for (one, a), (other, b) in itertools.permutations(matrices.items(), 2):
        products = (f"{one} @ {other}.T", a, b.T), (f"{one}.T @ {other}", a.T, b), (f"{one} @ {other}", a, b)
        for product, left, right in products:
            if (a if left is not a else b).ndim == 2 and _product_shape(left, right) == tuple(shape):
                yield f"a term is missing, {product}", span, f"{atom} + {product}"
    vectors = {name: x for name, x in atoms.items() if is_array(x) and x.ndim == 1} if len(shape) == 1 else {}
    for (one, a), (other, b) in itertools.product(matrices.items(), vectors.items()):
        if a.ndim == 2 and a.shape == (*b.shape, *shape):
            yield from plus_or_minus(f"{one}.T @ {other}", span, atom)
        if a.ndim == 2 and a.shape == (*shape, *b.shape):
            yield from plus_or_minus(f"{one} @ {other}", span, atom)
    alike = [name for name, x in atoms.items() if is_array(x) and x.shape == tuple(shape)]
    larger = [name for name, x in atoms.items() if is_array(x) and x.ndim == len(shape)
              and all(m in (1, n) for m, n in zip(shape, x.shape))]  # fmt: skip
    for name, x in atoms.items():                        # a gate of each channel: dy * g[:, :, None, None]
        if is_array(x) and x.ndim < len(shape) and x.shape == tuple(shape)[: x.ndim]:
            gate = f"{name}[{', '.join([':'] * x.ndim + ['None'] * (len(shape) - x.ndim))}]"
            behind = [one for one, y in atoms.items() if is_array(y) and y.shape == tuple(shape)[x.ndim :]]    # a query
            for term in [f"{one} * {gate}" for one in larger] + [f"{gate} * {one}" for one in behind]:
                yield f"a term is missing, {term}", span, f"{atom} + {term}"
    for term in _outer_products(shape, atoms):
        yield f"a term is missing, {term}", span, f"{atom} + {term}"
    spread = [name for name, x in atoms.items() if isinstance(x, np.ndarray) and x.ndim and x.shape != tuple(shape)
              and fits(x, shape)]  # fmt: skip
    gates = [name for name in spread if (atoms[name] >= 0).all() and (atoms[name] <= 1).all()            # a mask
             and not name.startswith("(1 - ")]  # fmt: skip
    for one in alike:                                    # a peephole, dao * Wp[2]; a state that is kept, dh * (1 - m)
        for term in [f"{one} * {other}" for other in spread] + [f"{one} * (1 - {other})" for other in gates]:
            yield from plus_or_minus(term, span, atom)
    for count, one in itertools.product(_counts(atoms), alike + spread):         # what a mean gives back, dmu / n
        yield f"a term is missing, {one} / {count}", span, f"{atom} + {one} / {count}"
    rates = [name for name, x in atoms.items() if isinstance(x, float) and x not in (0, 1)]
    for rate, one in itertools.product(rates, alike):    # of a penalty, reg * W; of exp(−C/eps), −dS / eps
        for term in (f"{rate} * {one}", f"{one} / {rate}"):
            yield from plus_or_minus(term, span, atom)
    numbers = [name for name, x in atoms.items() if is_upstream(name) and np.ndim(x) == 0]
    for dy, rate, one in itertools.product(numbers, rates, alike):       # of the same penalty in a loss
        yield from plus_or_minus(f"{dy} * {rate} * {one}", span, atom)
    for one, other in itertools.permutations(alike, 2):
        over = [f"{one} / {other}"] if (atoms[other] > 0).all() else []
        for term in (f"{one} * {other}", f"{one} * (1 - {other})", *over):
            yield from plus_or_minus(term, span, atom)


def _counts(atoms):
    """The names of whole numbers by which one may divide: n of a mean"""
    return [name for name, x in atoms.items() if type(x) is int and x > 1 and "(" not in name]


def terms_of_unused(
    source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms, unused: Collection[str]
) -> Changes:  # fmt: skip
    """A term of what is computed and not used: 2 * centred * dvar / n"""
    shape = shape_of(target, source, atoms)
    arrays = {name: x for name, x in atoms.items() if shape and isinstance(x, np.ndarray) and fits(x, shape)}
    counts = [f" / {name}" for name in _counts(atoms)]
    # r * (g - s1 - x_hat * s2), w * (u / p + du * np.log(p)), (dy[t] + dh_next) * (1 - h ** 2)
    inside = [one for one in ast.walk(whole) if isinstance(one, (ast.BinOp, ast.Subscript)) and one is not whole]
    for name in unused & arrays.keys():
        others = [f"{other} * " for other in arrays if other not in unused]
        over = [f" / {other}" for other, x in arrays.items() if other not in unused and (x > 0).all()]
        divided = ("", *dict.fromkeys(DIVISOR.findall(source.within(source.span(whole)))))       # as another term is
        for part, every in [(whole, ("", *counts, *over)), *((one, divided) for one in inside)]:
            where, atom = source.span(part), source.atom(part)
            for twice, other, count in itertools.product(("", "2 * "), ("", *others), every):
                yield from plus_or_minus(f"{twice}{other}{name}{count}", where, atom, bracketed=part is not whole)


def mirrored_terms(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """X.T @ A @ P missing beside X @ A @ P.T: A is twice in A @ P @ A.T, and in xᵀAx is x."""
    for part in ast.walk(whole):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
            first = part.left.left if isinstance(part.left, ast.BinOp) else part.left
            middle = part.left.right if isinstance(part.left, ast.BinOp) else None
            chain = [source.atom(one) for one in (first, middle, part.right) if one is not None]
            for turned in ((0, 2), (0, 1)):
                if len(chain) > max(turned):
                    other = [transposed(text) if k in turned else text for k, text in enumerate(chain)]
                    term = " @ ".join(other)
                    yield f"a term is missing, {term}", whole, f"{source.atom(whole)} + {term}"


def terms_of_gates(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """What goes back through a sigmoid or a tanh, missing as a term: dx = … + dt * t * (1 - t)"""
    span, atom, shape = source.span(whole), source.atom(whole), shape_of(target, source, atoms)
    alike = {name: x for name, x in atoms.items() if shape and is_array(x) and x.shape == shape}
    for y, x in alike.items():
        slopes = [f"{y} * (1 - {y})"] * bool((x >= 0).all() and (x <= 1).all())
        slopes += [f"(1 - {y} ** 2)"] * bool((np.abs(x) <= 1).all())
        for d, slope in itertools.product(alike, slopes):
            if d != y:
                yield f"a term is missing, {d} * {slope}", span, f"{atom} + {d} * {slope}"


def _outer_products(shape, atoms):
    """["w[:, :, None] * d[:, None, :]", …]: products of two smaller arrays that have this shape"""
    arrays = [(name, x.shape) for name, x in atoms.items() if is_array(x)]
    if len(shape) == 2:
        yield from (f"{one}[:, None] * {other}" for one, n in arrays for other, m in arrays if (*n, *m) == shape)
    elif len(shape) == 3:
        behind = [(name, size) for name, size in arrays if size in (shape[:2], shape[1:])]
        between = [name for name, size in arrays if size == (shape[0], shape[2])]
        for (one, size), other in itertools.product(behind, between):
            yield f"{one}[:, :, None] * {other}[:, None, :]" if size == shape[:2] else f"{other}[:, None, :] * {one}"


def terms_of_sums(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """An array times the sum of another, missing as a term: w − π·Σg, of a softmax whose weights serve all rows."""
    span, atom, shape = source.span(whole), source.atom(whole), shape_of(target, source, atoms)
    alike = [name for name, x in atoms.items() if is_array(x) and x.shape == shape]
    for name, x in atoms.items() if shape else ():
        for axis in range(x.ndim if is_array(x) else 0):
            left = (*x.shape[:axis], *x.shape[axis + 1 :])
            behind = "" if left == shape else "[:, None]" if left == shape[:1] and len(shape) == 2 else None
            if left and behind is not None:
                term = f"{name}.sum(axis={axis}){behind}"
                yield from plus_or_minus(term, span, atom)
    for name in [name for name, x in atoms.items() if is_array(x) and x.shape != shape and is_upstream(name)]:
        yield from plus_or_minus(f"{name}.sum()", span, atom)
    rates = [name for name, x in atoms.items() if isinstance(x, SINGLE) and not isinstance(x, int)]
    for name, rate in itertools.product(alike, rates):   # of (1 − c)·x + c·mean(x)
        yield from plus_or_minus(f"{rate} * {name}.mean()", span, atom)
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, ast.Div) and is_atom(whole.right):
        d, w = source.atom(whole.left), source.atom(whole.right)         # of log(w / Σ w), d / w − Σ d / Σ w
        yield f"a term is missing, −{d}.sum() / {w}.sum()", span, f"{atom} - {d}.sum() / {w}.sum()"
    for one, other in itertools.product(alike, [name for name, x in atoms.items() if is_array(x)]):
        yield f"a term is missing, −{one} * {other}.sum()", span, f"{atom} - {one} * {other}.sum()"


def is_slice(part: ast.AST) -> bool:
    """True for x[..., 0::2] where its value is used; not for x[0]."""
    if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Load):
        return False
    return any(isinstance(one, ast.Slice) for one in ast.walk(part.slice))


def terms_of_slices(
    source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms, slices: dict[str, tuple[int, ...] | None]
) -> Changes:
    """A slice times an array, missing as a term: dx[..., 1::2] = … − dy[..., 0::2] * s."""
    span, shape = source.span(whole), shape_of(target, source, atoms)
    atom = source.within(span) if isinstance(whole, (ast.BinOp, ast.UnaryOp)) else source.atom(whole)
    if not shape:
        return
    factors = [name for name, x in atoms.items() if is_array(x) and fits(x, shape)]
    alike = [text for text, known in slices.items() if known == tuple(shape)]
    for term in (f"{one} * {other}" for one in alike for other in factors):
        yield from plus_or_minus(term, span, atom)
    for text in alike:                                   # dxh[:, D:] beside dxrh[:, D:]
        of, _, index = text.partition("[")
        like_it = [name for name, x in atoms.items() if is_array(x) and x.shape == np.shape(atoms.get(of))]
        for part in (f"{other}[{index}" for other in like_it):
            if part not in slices:
                yield f"a term is missing, {part}", span, f"{atom} + {part}"
    for text in slices:                                  # of d[:, k:2 * k] and d[:, 2 * k:], the first
        for found in BOUNDS.finditer(text):
            for bounds in (f":{found[1]}", f"{found[2]}:"):
                part = text[: found.start()] + bounds + text[found.end() :]
                if part not in slices:
                    yield f"a term is missing, {part}", span, f"{atom} + {part}"


def _product_shape(a, b):
    """The shape of a @ b; None if they do not fit."""
    if a.shape[-1] != b.shape[-2] or (b.ndim > 2 and a.ndim > 2 and a.shape[:-2] != b.shape[:-2]):
        return None
    return (*(a.shape[:-2] or b.shape[:-2]), a.shape[-2], b.shape[-1])


def differences(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """An array in a product that should be a difference or a sum."""
    for part in ast.walk(whole):
        one = source.within(source.span(part)) if hasattr(part, "end_lineno") and is_atom(part) else ""
        if is_array(atoms.get(one)) and isinstance(part.ctx, ast.Load):
            for other, x in atoms.items():
                if is_array(x) and x.shape == atoms[one].shape and not np.array_equal(x, atoms[one]):  # x + x
                    yield f"a factor is missing, {other}", part, f"({one} * {other})"
                    yield f"a term is missing, −{other}", part, f"({one} - {other})"
                    yield f"a term is missing, {other}", part, f"({one} + {other})"
                    if (x > 0).all():
                        yield f"a term is missing, −1/{other}", part, f"({one} - 1 / {other})"
                        yield f"a term is missing, 1/{other}", part, f"({one} + 1 / {other})"
                elif isinstance(x, SINGLE) and x not in (0, 1):
                    yield f"a factor is missing, {other}", part, f"({one} * {other})"


def symmetric(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """(X + Xᵀ)·Y for 2·X·Y, which is the same only if X is symmetric."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.MatMult, ast.Div)):
        text = source.within(source.span(part))
        without = re.sub(r"\b2(\.0)? ?\* ?", "", text, count=1)
        for name in {one.id for one in ast.walk(part) if isinstance(one, ast.Name)} if without != text else ():
            x = atoms.get(name)
            if is_array(x) and x.ndim > 1 and x.shape[-1] == x.shape[-2]:
                transposed = f"{name}.T" if x.ndim == 2 else f"{name}.swapaxes(-1, -2)"
                both = re.sub(rf"(?<![\w.]){name}\b", f"({name} + {transposed})", without)
                yield f"2·{name} is {name} + {name}ᵀ only if {name} is symmetric", part, both


def couplings(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """What a mean, a variance or a softmax gives back to every entry, missing where d is: d − x̂·mean(d·x̂), …"""
    of = "a term is missing, as {} gives it back to every entry"
    for part in ast.walk(whole):
        d = source.within(source.span(part)) if is_atom(part) and isinstance(part.ctx, ast.Load) else ""
        if not is_array(atoms.get(d)):
            continue
        shape = atoms[d].shape
        for axis, (other, x) in itertools.product((-1, 0, 1)[: len(shape)], atoms.items()):
            if other != d and is_array(x) and x.shape == shape:
                along = f"axis={axis}, keepdims=True"
                yield of.format("a variance"), part, f"({d} - {other} * ({d} * {other}).mean({along}))"
                yield of.format("a length"), part, f"({d} - {other} * ({d} * {other}).sum({along}))"
                yield of.format("a common sum (in a softmax)"), part, f"({d} - ({d} * {other}).sum({along}))"
        for other in [name for name, x in atoms.items() if name != d and is_array(x) and x.shape == shape]:
            yield of.format("a variance"), part, f"({d} - {other} * ({d} * {other}).mean())"
        for axis in (-1, 0, 1)[: len(shape)] + (PAIRS if len(shape) > 2 else ()):
            yield of.format("a mean"), part, f"({d} - {d}.mean(axis={axis}, keepdims=True))"
        for own in [name for name, g in atoms.items() if callable(g) and f"{name}(" in source.text]:
            yield f"a term is missing, −{own}({d})", part, f"({d} - {own}({d}))"

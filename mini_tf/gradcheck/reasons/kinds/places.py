"""Changes that put another array or number in the place of one."""

import ast
import inspect
import itertools
import re

from mini_tf.gradcheck.measuring.naming import is_upstream
from mini_tf.gradcheck.planting.mutations import Source, whole_number
from mini_tf.gradcheck.reasons.kinds.factors import UPSTREAM
from mini_tf.gradcheck.reasons.kinds.formulas import (
    SINGLE,
    SIZE,
    Atoms,
    Changes,
    exchanged,
    is_array,
    is_atom,
    is_mask,
    names_read,
    reduced,
    shape_of,
)
from mini_tf.gradcheck.verdicts import listed

import numpy as np

BOUNDS = re.compile(r", -([\d.]+), \1\)")               # of np.clip(e, -1.0, 1.0)


def of_padding(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """dx[:, :, p:p + H, p:p + W] for dx[:, :, :H, :W], or q:q + W for p:p + W, if p and q are whole numbers."""
    if isinstance(part, ast.Slice) and part.lower is not None and part.upper is not None:
        text = source.within(source.span(part))
        for one in {n.id for n in ast.walk(part.lower) if isinstance(n, ast.Name)} & names_read(part.upper):
            for other, x in atoms.items():
                if type(x) is int and other != one:
                    yield f"{other} belongs where {one} is", part, re.sub(rf"(?<![\w.]){one}\b", other, text)
    if isinstance(part, ast.Subscript) and isinstance(part.slice, (ast.Tuple, ast.Slice)):
        several = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        indices = [(source.within(source.span(i)), i) for i in several]
        slices = [i for _, i in indices if isinstance(i, ast.Slice)]
        plain = [i for i in slices if i.lower is i.step is None and i.upper is not None]
        for name, x in atoms.items() if plain else ():
            if isinstance(x, int):
                moved = [f"{name}:{name} + {text[1:].strip()}" if i in plain else text for text, i in indices]
                yield f"an index is off by {name}", part.slice, ", ".join(moved)


def of_index_arrays(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """d[np.arange(n), labels] for d[np.arange(n), np.arange(n)]"""
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
        for index in part.slice.elts:
            if isinstance(index, ast.Call) and ast.unparse(index.func).endswith("arange"):
                text = source.within(source.span(index))
                for name, x in atoms.items():
                    if isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.ndim == 1:
                        yield f"{name} belongs where {text} is", index, name


def of_keywords(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """What another call of the same function is given by name, rope(dk, sign=-1); or a number's other sign."""
    g = atoms.get(ast.unparse(part.func)) if isinstance(part, ast.Call) else None
    if not inspect.isfunction(g):
        return
    given, text = {one.arg for one in part.keywords}, source.within(source.span(part))[:-1]
    said = re.findall(rf"(?<![\w.]){re.escape(ast.unparse(part.func))}\([^\n]*?\b(\w+)=(-?[\w.]+)", source.text)
    numbers = [(p.name, p.default) for p in inspect.signature(g).parameters.values() if type(p.default) in (int, float)]
    for name, value in dict.fromkeys([*said, *((name, f"{-number}") for name, number in numbers)]):
        if name not in given and name in inspect.signature(g).parameters:
            yield f"{name}={value} is missing", part, f"{text}, {name}={value})"


def of_numbers(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """A number that is off by one, by its sign, or by a factor of two; or that has a name."""
    if isinstance(part, ast.Call) and (bounds := BOUNDS.search(source.within(source.span(part)))):
        for name, x in atoms.items():
            if type(x) in (int, float) and x > 0:        # np.clip(e, -δ, δ) for np.clip(e, -1, 1)
                text = source.within(source.span(part)).replace(bounds[0], f", -{name}, {name})")
                yield f"the bounds are ±{name}", part, text
    text = source.within(source.span(part))
    number = whole_number(part)
    if number is not None and number < 0 or SIZE.fullmatch(text):
        for name, value in sorted(atoms.items(), key=lambda one: np.ndim(one[1])):       # n before mask.sum()
            if callable(value):
                continue
            if np.ndim(value) <= 1 or 1 in np.shape(value):
                yield f"{name} belongs where {text} is", part, name
            if number is not None and type(value) is int:                # tags[n - 1], not tags[-1]
                yield f"{name} - 1 belongs where {text} is", part, f"{name} - 1"
            if np.ndim(value) <= 2:
                if SIZE.fullmatch(text) and np.ndim(value) == 1:
                    yield f"{name} belongs where {text} is", part, f"{name}[:, None]"
                if SIZE.fullmatch(text) and isinstance(value, np.ndarray) and value.ndim:            # a mask, weights
                    yield f"{name}.sum() belongs where {text} is", part, f"{name}.sum()"
        if SIZE.fullmatch(text):
            array = re.sub(r"len\(|\)|\.shape.*|\.size", "", text)
            sizes = "len({})", "{}.shape[0]", "{}.shape[1]", "{}.shape[-1]", "{}.size", "{}.sum()"
            for size in (*sizes, "({0}.size // {0}.shape[1])"):
                yield f"{size.format(array)} belongs where {text} is", part, size.format(array)
        return
    if is_atom(part) and isinstance(atoms.get(text), int):               # Σ dy for n, the sum of dy = 1
        for name in UPSTREAM:
            if is_array(atoms.get(name)):
                yield f"{name}.sum() belongs where {text} is", part, f"{name}.sum()"
    if not isinstance(part, ast.Constant) or type(part.value) not in (int, float):
        return
    for name, value in atoms.items():
        if not callable(value) and (np.ndim(value) == 0 or value.dtype.kind in "iub") and name[0] != "(":
            yield f"{name} belongs where {part.value:g} is", part, name
        elif is_array(value) and value.ndim == 1:
            yield f"{name}[:, None] belongs where {part.value:g} is", part, f"{name}[:, None]"
    value = part.value
    others = [value + 1, value - 1, 2 * value, value / 2, -value, value + 2, value - 2]
    for other in dict.fromkeys(others):
        if other != value and abs(other) < 1e6:
            text = f"{other:g}" if float(other) != int(other) else str(int(other))
            yield "a number is wrong", part, f"({text})" if other < 0 else text


def of_exponents(source: Source, part: ast.AST, _: Atoms) -> Changes:
    """The derivative of 1/s is −1/s ** 2, that of s ** 3 is 3 * s ** 2."""
    exponent = part.right if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) else None
    if isinstance(exponent, ast.Constant) and type(exponent.value) in (int, float):
        for other in (exponent.value + 1, exponent.value - 1):
            yield "a number is wrong", exponent, f"{other:g}" if other >= 0 else f"({other:g})"


def of_signs(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """np.where(small, e, δ·sign(e)) for np.where(small, e, δ), the slope of a Huber loss"""
    branches = part.args[1:] if isinstance(part, ast.Call) and len(part.args) == 3 else ()
    branches = [part.body, part.orelse] if isinstance(part, ast.IfExp) else branches
    if isinstance(part, ast.Assign) and is_atom(part.value):             # in a branch of its own: g = delta
        branches = [part.value]
    for branch in branches:
        text = source.within(source.span(branch))
        if isinstance(branch, ast.Constant) or (is_atom(branch) and not np.ndim(atoms.get(text))):
            for e, x in atoms.items():
                if isinstance(x, (float, np.floating)) or is_array(x) and x.dtype.kind == "f":
                    yield f"a factor is missing, np.sign({e})", branch, f"{text} * np.sign({e})"


def of_transposed_calls(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """np.exp(b) for np.exp(a).T"""
    call = part.value if isinstance(part, ast.Attribute) and part.attr == "T" else None
    if isinstance(call, ast.Call) and len(call.args) == 1 and is_atom(call.args[0]) and not call.keywords:
        text, called = (source.within(source.span(one)) for one in (call.args[0], call.func))
        for other, x in atoms.items():
            if other != text and is_array(x) and is_array(atoms.get(text)) and x.shape == atoms[text].T.shape:
                yield f"{other} belongs where {text} is, without a transpose", part, f"{called}({other})"


def of_bounds(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """gap > 0 for gap > margin, where gap has the margin already"""
    bound = part.comparators[0] if isinstance(part, ast.Compare) and len(part.comparators) == 1 else None
    if bound is not None and is_atom(bound):
        text = source.within(source.span(bound))
        if isinstance(atoms.get(text), (int, float)):
            yield f"0 belongs where {text} is", bound, "0"


def of_complements(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """1 − z for z, if z is a gate"""
    z = atoms.get(source.within(source.span(part))) if is_atom(part) else None
    if isinstance(getattr(part, "ctx", None), ast.Load) and is_array(z) and (z > 0).all() and (z < 1).all():
        text = source.within(source.span(part))
        yield f"1 - {text} belongs where {text} is", part, f"(1 - {text})"


def another_atom(source: Source, part: ast.AST, atoms: Atoms, alike: bool = False) -> Changes:
    """Another array in its place: of the same shape if alike is True, else of other shapes, or a number."""
    text = source.within(source.span(part))
    if alike and isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and not is_atom(part):
        shape = shape_of(part, source, atoms)
        for other, value in atoms.items() if shape else ():
            if is_array(value) and value.shape == shape:
                yield f"{other} belongs where {text} is", part, other
    if not alike and reduced(part) is not None:         # e.sum(axis=0), where the forward has kept s
        for other, value in atoms.items():
            if is_array(value):
                yield f"{other} belongs where {text} is", part, other
    if alike and text.endswith(".T") and is_array(atoms.get(text[:-2])):
        for other, value in atoms.items():
            if is_array(value) and value.shape == atoms[text[:-2]].T.shape and other != text[:-2]:
                yield f"{other} belongs where {text} is", part, other
    if not is_atom(part) or not isinstance(getattr(part, "ctx", None), ast.Load):
        return
    if text not in atoms:
        return
    shape = np.shape(atoms[text])
    for other, value in atoms.items():
        same_kind = (np.shape(value) == shape) == alike and callable(value) == callable(atoms[text])
        same_kind &= not alike or is_mask(value) <= is_mask(atoms[text])           # no mask for numbers
        another = value is not atoms[text] or other[-1] == "]"           # xs[l] is x0 only in the last round of a loop
        if other != text and same_kind and (not shape or not alike or another):
            yield _missing_factor(text, other) or f"{other} belongs where {text} is", part, other


def _missing_factor(text, product):
    """What is missing where x stands in the place of (x * L), (L * x) or (x / L); None where something else stands."""
    if found := re.fullmatch(rf"\({re.escape(text)} ([*/]) (\S+)\)", product):
        return f"a factor is missing, {'1/' * (found[1] == '/')}{found[2]}"
    found = re.fullmatch(rf"\((\S+) \* {re.escape(text)}\)", product)
    return found and f"a factor is missing, {found[1]}"


def atom_for_a_formula(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """An array of the same shape where a formula stands, or a number: what the forward used, or kept."""
    if isinstance(part, (ast.BinOp, ast.Call)) and (shape := shape_of(part, source, atoms)) is not None:
        text = source.within(source.span(part))
        (start, end), file = source.span(part), source.text
        bare = file[start - 1] == "(" and file[end : end + 1] == ")" and not re.match(r"[\w)\]]", file[start - 2])
        where = (start - 1, end + 1) if bare else (start, end)           # q for (h @ Un)
        for other, value in atoms.items():
            if is_array(value) and value.shape == shape or shape == () and isinstance(value, SINGLE):
                yield f"{other} belongs where {text} is", where, other


def of_atoms(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """A square, an exponential, 1 − x, x ± 1 in place of x; np.exp(x) − 1 in place of np.exp(x)."""
    if isinstance(part, ast.Call) and ast.unparse(part.func) == "np.exp":
        text = source.within(source.span(part))
        yield f"{text} - 1 belongs where {text} is", part, f"({text} - 1)"
    if not is_atom(part) or not isinstance(getattr(part, "ctx", None), ast.Load):
        return
    text = source.within(source.span(part))
    value = atoms.get(text)
    if value is None or callable(value):
        return
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        yield f"{text} is of booleans, and numbers are needed", part, f"{text}.astype(float)"
        return
    end = source.span(part)[1]
    square = f"({text}**2)" if source.text[end : end + 1] in (".", "[") else f"{text}**2"            # of V in V.T
    others = [square, f"(1 - {text})", f"({text} - 1)", f"({text} + 1)", f"-{text}"]
    if is_array(value) and value.ndim == 2 and value.shape[0] == value.shape[1]:
        yield f"a term is missing, {text}.T", part, f"({text} + {text}.T)"
    if np.iscomplexobj(value):
        yield f"the complex conjugate of {text} belongs there", part, f"np.conj({text})"
    if is_array(value):
        others += [f"np.exp({text})", f"np.sqrt({text})", f"({text} > 0)", f"{text}.T"]
        others.append(f"{text}.sum()" if value.ndim == 1 else f"{text}.sum(axis=-1, keepdims=True)")
        own = [name for name, g in atoms.items() if callable(g)]
        others += [f"{g}({text})" for g in ("np.tanh", *own) if f"{g}({text})" in source.text]       # as in the forward
        others += [f"{g}({text})" for g in own if f"{g}(" not in source.text]    # which nothing calls
        flipped = f"{text}[::-1]" if value.ndim == 1 else f"{text}[..., ::-1, ::-1]" if value.ndim > 2 else None
        if flipped:
            yield f"{text} is not flipped", part, flipped            # as a convolution's kernel on the way back
        for number, x in atoms.items():
            if isinstance(x, (int, float)) and x > 0 and "clip" not in source.text:      # beyond a Huber loss's bound
                yield f"it is not bounded by ±{number}", part, f"np.clip({text}, -{number}, {number})"
        for turned in ("[::-1]", "[:, ::-1]")[: value.ndim]:
            if f"{text}{turned}" != flipped and turned in source.text:           # as elsewhere in the file
                yield "its order is not reversed", part, f"{text}{turned}"
    for other in others:
        shown = other[1:-1] if other[0] == "(" else other
        yield f"{shown} belongs where {text} is", part, other


def of_targets(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """dv += g where dx += g stands; i, j = divmod(k, W) where j, i stand"""
    if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Tuple) and len(part.targets[0].elts) == 2:
        yield "two results are exchanged", *exchanged(source, *part.targets[0].elts)
    if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and is_array(atoms.get(part.target.id)):
        name = part.target.id
        for other, x in atoms.items():
            if other.isidentifier() and other != name and is_array(x) and x.shape == atoms[name].shape:
                yield f"{other} belongs where {name} is", part.target, other


def in_each_others_place(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """Two arrays of one shape, exchanged wherever they are: a·sin + b·cos for a·cos + b·sin."""
    text = source.within(source.span(whole))
    names = dict.fromkeys(part.id for part in ast.walk(whole) if isinstance(part, ast.Name))
    known = [name for name in names if is_array(atoms.get(name)) or isinstance(atoms.get(name), SINGLE)]
    for name in known:
        both = re.compile(rf"\(1(?:\.0?)? - {name}\)|(?<![\w.]){name}\b")
        if len({len(match) == len(name) for match in both.findall(text)}) == 2:
            turned = both.sub(lambda match, p=name: f"(1 - {p})" if match[0] == p else p, text)
            yield f"{name} and 1 − {name} are in each other's place", whole, turned
    for one, other in itertools.combinations(known, 2):
        if np.shape(atoms[one]) == np.shape(atoms[other]):
            place_of = {one: other, other: one}
            turned = re.sub(rf"(?<![\w.])({one}|{other})\b", lambda m, place_of=place_of: place_of[m[0]], text)
            yield f"{one} and {other} are in each other's place", whole, turned


def of_blocks(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """x[:, h * m : (h + 1) * m], the h-th block of columns, for x[:, h::H], every H-th column"""
    if isinstance(part, ast.Slice) and part.lower is not None and part.upper is None and part.step is not None:
        h = source.atom(part.lower)
        for m, x in atoms.items():
            if type(x) is int and m != h:
                text = f"{h} * {m} : ({h} + 1) * {m}"
                step = source.within(source.span(part.step))
                yield f"a block of entries belongs there, not every {step}-th one", part, text


def of_namesakes(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """cos_q and sin_q, for cos_k[:n] and sin_k[:n]"""
    text = source.within(source.span(whole))
    read = {one.id for one in ast.walk(whole) if isinstance(one, ast.Name) and is_array(atoms.get(one.id))}
    endings = {name.rpartition("_")[2] for name in read if "_" in name.strip("_")}
    for ending in endings:
        names = {name for name in read if name.endswith(f"_{ending}")}
        for other in {name.rpartition("_")[2] for name in atoms if "_" in name} - {ending}:
            others = {name: f"{name.removesuffix(ending)}{other}" for name in names}
            others = {name: own for name, own in others.items() if is_array(atoms.get(own)) and not is_upstream(name)}
            if len(others) > 1:
                words = f"{listed([*others.values()])} belong where {listed([*others])} are"
                one_of_them = "|".join(map(re.escape, others))
                for subscript in (r"\[[^\[\]]*\]", ""):
                    pattern = re.compile(rf"(?<![\w.])({one_of_them})\b{subscript}")
                    changed = pattern.sub(lambda found, own=others: own[found[1]], text)
                    if changed != text:
                        yield words, whole, changed


def everywhere(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """The same mistake more than once in a statement, or in a lambda: another name, another axis."""
    if not isinstance(part, (ast.stmt, ast.Lambda, ast.Tuple)) or isinstance(part, ast.stmt) and hasattr(part, "body"):
        return
    whole = part.body if isinstance(part, ast.Lambda) else part
    text = source.within(source.span(whole))
    for name in {one.id for one in ast.walk(whole) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}:
        word = re.compile(rf"(?<![\w.]){name}\b")
        known = atoms.get(name)
        if isinstance(known, (np.ndarray, *SINGLE)) and len(word.findall(text)) > 1:
            for other, value in atoms.items():
                alike = np.shape(value) == np.shape(known) and isinstance(value, int) == isinstance(known, int)
                alike = alike and is_array(value) == is_array(known)
                if other != name and alike and not callable(value):
                    yield f"{other} belongs where {name} is", whole, word.sub(other, text)
            if is_array(known) or isinstance(known, float):
                yield f"the sign of {name} is wrong, as a rotation goes back", whole, word.sub(f"(-{name})", text)
    if isinstance(whole, ast.Tuple):                     # return d * self.b, d * self.a
        read = [one for one in ast.walk(whole) if is_atom(one) and isinstance(getattr(one, "ctx", None), ast.Load)]
        texts = [text for text in dict.fromkeys(map(ast.unparse, read)) if is_array(atoms.get(text))]
        texts = [text for text in texts if not is_upstream(text)]        # gradients are exchanged where they are made
        for one, other in itertools.combinations(texts, 2):
            if atoms[one].shape == atoms[other].shape:
                both = re.compile(rf"(?<![\w.])({re.escape(one)}|{re.escape(other)})\b")
                turned = both.sub(lambda m, pair=(one, other): pair[m[0] == pair[0]], text)
                yield f"{one} and {other} are in each other's place", whole, turned
    compared = {source.within(source.span(one)) for one in ast.walk(whole) if isinstance(one, ast.Compare)}
    for condition in compared:                           # dx[dy < 0] = slope * dy[dy < 0]
        name, sign, number = condition.partition(" < ") if " < " in condition else condition.partition(" > ")
        if text.count(condition) > 1 and is_array(atoms.get(name)):
            for other, value in atoms.items():
                if other != name and np.shape(value) == atoms[name].shape and not callable(value):
                    yield f"{other} belongs where {name} is", whole, text.replace(condition, f"{other}{sign}{number}")
    if len(re.findall(r"axis=", text)) > 1:
        for axis in ("0", "1", "-1"):
            changed = re.sub(r"axis=-?\d", f"axis={axis}", text)
            yield "they run over the wrong axis", whole, changed

"""Small changes of a wrong function, among which `repair.py` looks for the one that makes it right.

    for change in changes(source, node, atoms): …        # Mutations; change.name says what is wrong, in words

The likeliest come first: the self-test's mutations the other way round, then another array in its place, then a factor
or a term that is missing. Arrays are first exchanged for arrays of the same shape, and multiplied by those that fit.
"""

import ast
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.styles import is_floating
from mini_tf.gradcheck.planting.mutations import Mutation, Source, mutations, own_nodes, returned_values, whole_number

import numpy as np

NOT_ADDED, NOT_SET = ACCUMULATED = "it is set where it should add up", "it adds up where it should be set"
# What is wrong, if undoing it is that mutation of the self-test.
UNDONE = {
    "an axis changed": "it runs over the wrong axis", "sum for mean, or mean for sum": "a sum and a mean are confused",
    "a transpose left out": "there is a transpose too many", "two gradients swapped": "two gradients are exchanged",
    "a sign flipped": "a sign is wrong", "a factor dropped": "there is a factor too many",
    "a term dropped": "there is a term too many", "an order reversed": "the order is wrong",
    "a statement dropped": "there is a statement too many",
    "replaced, not accumulated": NOT_SET,
}  # fmt: skip
OTHER_FUNCTIONS = [
    ("argmax", "argmin"), ("maximum", "minimum"), ("max", "min"), ("sin", "cos"), ("sinh", "cosh"), ("exp", "log"),
    ("sum", "mean"), ("zeros_like", "ones_like"), ("sqrt", "square"), ("amax", "amin"),
]  # fmt: skip
COMPARED = {ast.Gt: "<", ast.Lt: ">", ast.GtE: "<=", ast.LtE: ">=", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Gt: ">", ast.Lt: "<", ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
AXES = "0", "1", "-1", "-2", "(0, 1)", "(0, 2)", "(0, 2, 3)", "(1, 2)", "(2, 3)", "None"
PAIRS = (0, 1), (0, 2), (0, 2, 3), (1, 2), (2, 3)
SIZE = re.compile(r"[\w.]+\.shape\[-?\d\]|[\w.]+\.size|len\([\w.]+\)")
SLICE = re.compile(r"\b([a-z]\w*) ?: ?([a-z]\w*)\b(?=[],])")           # start:stop
EINSUM = re.compile(r"[\w,. ]+->[\w.]*")
SIGMOID = re.compile(                                    # s = 1/(1 + np.exp(-x)), s = sigmoid(x)
    r"\b(\w+) ?= ?(?:1\.?0? ?/ ?\(1\.?0? ?\+ ?(?:\w+\.)?exp\(-(\w+)\)\)|(?:\w+\.)?(?:sigmoid|expit)\((\w+)\))"
)
LEAKY = re.compile(r"where\((\w+) > 0, \1, (\w+|[\d.]+) ?\* ?\1\)")        # np.where(x > 0, x, slope * x)
SOFTMAX = re.compile(r"([\w.]+) \* \(([\w.]+) - \((?:\1 \* \2|\2 \* \1)\)\.sum\(([^()]*)\)\)")
HALF_OF_BOTH = re.compile(r"([\w.]+) - \((.+) \* \1\)\.sum\(([^()]*)\)")
LOG_SOFTMAX = re.compile(r"([\w.]+) - ([\w.]+) \* \1\.sum\(([^()]*)\)")
UPSTREAM = "dy", "dout", "dloss", "d", "g", "grad", "grad_output", "upstream", "delta"      # the usual names
SINGLE = int, float, np.number
NUMPY = "np", "numpy"
SOLVING = {"solve", "inv", "solve_triangular", "lstsq", "pinv"}
REDUCED = {"sum", "mean", "max", "min", "std", "var"}
BOUNDS = {"minimum", "maximum", "clip"}
JOINED = {"concatenate", "hstack", "vstack", "dstack", "stack", "column_stack", "block"}
RARE = re.compile(
    r"is missing, (1/np\.sqrt|1/\(1 \+ np\.exp|[^\W\d]\w*/\w+$|.*\.(size|sum\(|shape)|np\.sign|1/\S+\*\*2)"
    r"|as a (variance|length|common sum|mean) "
)
SHAPED = {"reshape", "transpose", "swapaxes", "moveaxis", "ravel", "flatten", "squeeze", "repeat"}


def changes(
    source: Source, node: ast.FunctionDef | ast.Lambda, atoms: dict[str, Any], here: Callable[[int], bool]
) -> list[Mutation]:
    """[Mutation] of the function at `node`, each text once, the likeliest first.

    atoms   {text: value} of names, attributes and such that stand for arrays and numbers inside the function
    here    True for the numbers of the lines that may change
    """
    everything = [part for part in own_nodes(node, loops=True) if hasattr(part, "end_lineno")]
    everything += [node] * isinstance(node, ast.Lambda)
    sums = dict.fromkeys(one.id for one in everything if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    slices = {source.within(source.span(one)): _shape_of(one, source, atoms) for one in everything if _is_slice(one)}
    parts = [part for part in everything if here(part.lineno)]
    wholes = [(w, t) for w, t in _wholes(node) if not isinstance(t, ast.Name) or t.id in atoms or t is w]
    wholes = [(whole, target) for whole, target in wholes if here(whole.lineno)]
    wholes.sort(key=lambda one: (isinstance(one[0], ast.Name), -one[0].lineno))      # the last formula comes first

    def of_parts(kind, *known):
        return [_made(source, part, *change) for part in parts for change in kind(source, part, *known)]

    def of_wholes(kind, *known):
        return [_made(source, w, *change) for w, target in wholes for change in kind(source, w, target, *known)]

    found = of_parts(_of_indices)
    found += [_by_one(change) for change in mutations(source.text, node) if change.name in UNDONE]
    found += of_parts(_not_added, sums)
    for kind in OF_SYNTAX:
        found += of_parts(kind)
    found += [change for part in [node, *everything] for change in _of_order(source, part)]
    found += [change for part in [node, *everything] for change in _of_a_later_order(source, part)]
    found += of_parts(_another_atom, atoms, True) + of_parts(_of_numbers, atoms) + of_wholes(_of_wholes, atoms)
    found += of_parts(_of_quotients, atoms) + of_parts(_of_padding, atoms) + of_parts(_symmetric, atoms)
    found += of_wholes(_in_each_others_place, atoms) + of_wholes(_differences, atoms) + of_wholes(_couplings, atoms)
    for kind in (_everywhere, _of_keywords, _of_atoms, *OF_OPERANDS, _terms_inside, _terms_of_arguments, _another_atom):
        found += of_parts(kind, atoms)
    found += of_wholes(_terms, atoms) + of_wholes(_terms_of_sums, atoms) + of_wholes(_terms_of_slices, atoms, slices)
    found += of_parts(_atom_for_a_formula, atoms)
    return _once(change for change in found if here(change.line))


def _by_one(change):
    """The Mutation; if a dropped term is a whole number, as in range(n - 1), it says so."""
    before, after = (Counter(re.findall(r"[+-] ?\d+\b", text)) for text in (change.before, change.after))
    return replace(change, name="a number is wrong") if change.name == "a term dropped" and before - after else change


def changes_of_what_is_kept(
    source: Source, node: ast.FunctionDef | ast.Lambda, atoms: dict[str, Any]
) -> list[Mutation]:
    """Changes of a forward that leave y as it is, perhaps, but not what its backward is given."""
    parts = [part for part in own_nodes(node, loops=True) if hasattr(part, "end_lineno")]
    found = [_made(source, part, *change) for part in parts for change in _another_atom(source, part, atoms, True)]
    found += [_made(source, part, *change) for part in parts for change in _atom_for_a_formula(source, part, atoms)]
    for whole, target in _wholes(node):                  # n = B, where B·L are averaged
        if isinstance(target, ast.Name) and isinstance(atoms.get(target.id), SINGLE):
            for name, x in atoms.items():
                if isinstance(x, SINGLE) and name != target.id:
                    span, atom = source.span(whole), source.product(whole)
                    found.append(_made(source, whole, f"a factor is missing, {name}", span, f"{atom} * {name}"))
                    found.append(_made(source, whole, f"a factor is missing, 1/{name}", span, f"{atom} / {name}"))
    for block in ast.walk(node):
        body = getattr(block, "body", None)
        for one, other in zip(body, body[1:]) if isinstance(body, list) else ():
            change = _made(source, one, "two lines are in the wrong order", *_exchanged(source, one, other))
            first, then = (" ".join(source.within(source.span(line)).split()) for line in (one, other))
            found.append(replace(change, shown=(f"{first}; {then}", f"{then}; {first}")))
    return _once(found)


def _made(source, part, words, where, text):
    """The Mutation that puts text in the place of `where`, a node or (start, end)."""
    return source.mutation(part, words, *(where if isinstance(where, tuple) else source.span(where)), text)


def _once(found):
    first = {}                                           # several may make the same change: the first says it best
    for change in found:
        first.setdefault((change.start, change.end, change.new), change)
    return [change for change in first.values() if change.new != change.old]


def _wholes(node):
    """(expression, the target it is assigned to or None): right sides, and each returned gradient"""
    for part in own_nodes(node, loops=True):
        if isinstance(part, ast.Assign):
            target, value = part.targets[0], part.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from zip(value.elts, target.elts)  # da, db = dy * b, dy * a
            elif not isinstance(target, ast.Tuple) and not isinstance(value, ast.Tuple):
                yield value, target
        elif isinstance(part, ast.AugAssign) and not isinstance(part.op, ast.Div):
            yield part.value, part.target
        elif isinstance(part, ast.Call) and ast.unparse(part.func).endswith(".at") and len(part.args) == 3:
            yield part.args[2], part.args[2]             # np.add.at(dtable, ids, d)
    for value in returned_values(node):
        for element in value.elts if isinstance(value, ast.Tuple) else [value]:
            yield element, element


def _of_indices(source, part):
    """An index that is off, or too many."""
    if isinstance(part, ast.Subscript):
        yield from _of_index(source, part.slice)
        if isinstance(part.ctx, ast.Load):
            yield "there is an index too many", part, source.atom(part.value)
            text = source.within(source.span(part))
            step = re.search(r"(?<![\w\]])::([234])\b", text)
            if step and text.count(f"::{step[1]}") == 2:                 # x[::2, ::2]
                before, between, behind = re.split(r"(?<![\w\]])(?=::)", text)
                copies = itertools.product(range(int(step[1])), repeat=2)
                others = (f"{before}{i}{between}{j}{behind}" for i, j in copies)
                yield "the gradients of the other copies are missing", part, f"({' + '.join(others)})"
            for first, step in re.findall(r"\b([01])::([234])\b", text):            # x[..., 0::2] + x[..., 1::2]
                others = (text.replace(f"{first}::{step}", f"{k}::{step}") for k in range(int(step)))
                yield "the gradients of the other copies are missing", part, f"({' + '.join(others)})"


def _of_shape(source, part):
    """A transpose, an order of axes."""
    text = source.within(source.span(part))
    for side in _matrices(part):
        yield "a transpose is missing", side, f"{source.atom(side)}.T"
        yield "a transpose is missing", side, f"{source.atom(side)}.swapaxes(-1, -2)"
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
        exchanged = f"{source.atom(part.right)} @ {source.atom(part.left)}"
        yield "the order of a product is wrong", part, exchanged
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "reshape":
        array, count = source.atom(part.func.value), len(part.args)
        for axes in _orders(count):
            yield f"the axes need another order, {axes}", part, f"{text}.transpose{axes}"
        for first in range(1, count - 1):                # heads: split into (B, T, H, m), then (B, H, T, m)
            a, b = part.args[first : first + 2]
            start, end = source.span(part)
            split, exchange = _exchanged(source, a, b)
            axes = (*range(first), first + 1, first, *range(first + 2, count))
            changed = source.text[start : split[0]] + exchange + source.text[split[1] : end] + f".transpose{axes}"
            yield "the axes are split in the wrong order", part, changed
        for axes in [*_orders(4), *_orders(3)]:
            end = source.span(part.func.value)[1]
            changed = f"{array}.transpose{axes}{source.text[end : source.span(part)[1]]}"
            yield f"the axes need another order first, {axes}", part, changed
    elif isinstance(part, ast.Constant) and isinstance(part.value, str) and EINSUM.fullmatch(part.value):
        for other in _of_einsum(part.value):
            yield "the indices are wrong", part, f"{text[0]}{other}{text[0]}"


def _of_groups(source, part):
    """x.reshape(T, n, rep, d).sum(2), where each of n has rep copies beside it, for x.reshape(T, rep, n, d).sum(1)."""
    shaped = _reduced(part, {"sum", "mean"})
    if not isinstance(shaped, ast.Call) or getattr(shaped.func, "attr", "") != "reshape":
        return
    over = [k.value for k in part.keywords if k.arg == "axis"] + [one for one in part.args if one is not shaped]
    axis = whole_number(over[0]) if over else None
    for other in (axis - 1, axis + 1) if axis is not None else ():
        if min(axis, other) >= 0 and max(axis, other) < len(shaped.args):
            split, exchange = _exchanged(source, *shaped.args[min(axis, other) : max(axis, other) + 1])
            (start, end), (first, last) = source.span(part), source.span(over[0])
            text = source.text[start : split[0]] + exchange + source.text[split[1] : first] + f"{other}"
            yield "copies are summed that do not belong together", part, text + source.text[last:end]


def _orders(count):
    return list(itertools.permutations(range(count)))[1:] if 3 <= count <= 4 else []


def _of_einsum(subscripts):
    inputs, _, output = subscripts.partition("->")
    terms = [*inputs.split(","), output]
    for k, term in enumerate(terms):
        letters = term.strip()
        for i, j in itertools.combinations(range(len(letters)), 2):
            swapped = list(letters)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            others = [*terms[:k], "".join(swapped), *terms[k + 1 :]]
            yield ",".join(others[:-1]) + "->" + others[-1]


def _of_index(source, index):
    off = "an index is off by one"
    if isinstance(index, ast.Slice):
        first, last = (None if end is None else whole_number(end) for end in (index.lower, index.upper))
        if (first, last) == (1, None):
            yield off, index, ":-1"
        elif (first, last) == (None, -1):
            yield off, index, "1:"
        elif index.lower is index.upper is index.step is None:
            return
        for end in (index.lower, index.upper):
            if end is not None:
                yield off, end, f"{source.atom(end)} + 1"
                yield off, end, f"{source.atom(end)} - 1"
        if index.upper is not None and last is None:     # :L for 1:L + 1, the middle of what was padded
            upper, lower = source.atom(index.upper), "0" if index.lower is None else source.atom(index.lower)
            yield off, index, f"1:{upper} + 1" if lower == "0" else f"{lower} + 1:{upper} + 1"
            if lower != "0":
                yield off, index, f"{lower} - 1:{upper} - 1"
        if index.lower is not None and index.upper is None:
            yield "it is the other part", index, f":{source.within(source.span(index.lower))}"
        if index.upper is not None and index.lower is None:
            yield "it is the other part", index, f"{source.within(source.span(index.upper))}:"
    elif isinstance(index, ast.Tuple):
        for k, element in enumerate(index.elts):
            yield from _of_index(source, element)
            if isinstance(element, ast.Slice) and not (element.lower or element.upper):
                for other in index.elts[:k] + index.elts[k + 1 :]:
                    if is_atom(other):
                        rows = f"np.arange(len({source.within(source.span(other))}))"
                        yield "every row is taken, not each row's own", element, rows
        for a, b in zip(index.elts, index.elts[1:]):
            yield "two indices are exchanged", *_exchanged(source, a, b)
            if isinstance(a, (ast.Name, ast.BinOp)) and isinstance(b, (ast.Name, ast.BinOp)):
                where = source.span(a)[0], source.span(b)[1]
                for by in ("", " + 1", " - 1"):          # D[i, j] for D[i - 1, j - 1]
                    ends = [e.left if not by and isinstance(e, ast.BinOp) else e for e in (a, b)]
                    both = ", ".join(f"{source.within(source.span(e))}{by}" for e in ends)
                    yield "two indices are off by one", where, both
        mirrored = [e for e in index.elts if isinstance(e, ast.BinOp) and isinstance(e.right, ast.Name)]
        if mirrored:                                     # K - 1 - i
            text = source.within(source.span(index))
            for element in mirrored:
                text = text.replace(source.within(source.span(element)), element.right.id)
            yield "an axis is reversed", index, text
    elif isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        yield "the mask is the opposite one", index, source.atom(index.operand)
    elif isinstance(index, (ast.Name, ast.Attribute, ast.BinOp)):
        if isinstance(index, ast.BinOp):
            if isinstance(index.op, ast.Sub) and isinstance(index.right, ast.Name):
                yield "an axis is reversed", index, index.right.id                   # K - 1 - i
            yield off, index, source.atom(index.left)
        yield off, index, f"{source.atom(index)} + 1"
        yield off, index, f"{source.atom(index)} - 1"
        if not isinstance(index, ast.BinOp):
            yield "the mask is the opposite one", index, f"~{source.atom(index)}"
            yield "the inverse permutation belongs there", index, f"np.argsort({source.atom(index)})"


def _of_padding(source, part, atoms):
    """dx[:, :, p:p + H, p:p + W] for dx[:, :, :H, :W], or q:q + W for p:p + W, if p and q are whole numbers."""
    if isinstance(part, ast.Slice) and part.lower is not None and part.upper is not None:
        text = source.within(source.span(part))
        for one in {n.id for n in ast.walk(part.lower) if isinstance(n, ast.Name)} & names_read(part.upper):
            for other, x in atoms.items():
                if type(x) is int and other != one:
                    yield f"{other} belongs where {one} is", part, re.sub(rf"(?<![\w.]){one}\b", other, text)
    if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
        indices = [(source.within(source.span(i)), i) for i in part.slice.elts]
        slices = [i for _, i in indices if isinstance(i, ast.Slice)]
        plain = [i for i in slices if i.lower is i.step is None and i.upper is not None]
        for name, x in atoms.items() if plain else ():
            if isinstance(x, int):
                moved = [f"{name}:{name} + {text[1:].strip()}" if i in plain else text for text, i in indices]
                yield f"an index is off by {name}", part.slice, ", ".join(moved)


def _exchanged(source, a, b):
    """(span, text) that exchanges two parts, the first before the second."""
    (start, end), (start_b, end_b) = source.span(a), source.span(b)
    return (start, end_b), source.within((start_b, end_b)) + source.text[end:start_b] + source.within((start, end))


def _of_operators(source, part):
    """A sign, a product, a comparison, an exponent."""
    if isinstance(part, ast.BinOp):
        left, right = source.atom(part.left), source.atom(part.right)
        between = source.span(part.left)[1], source.span(part.right)[0]
        operator = source.within(between)
        if isinstance(part.op, (ast.Mult, ast.Div)) and isinstance(part.left, ast.BinOp):
            a, b, sign = part.left.left, part.left.right, {ast.Add: "+", ast.Sub: "-"}.get(type(part.left.op))
            if sign:                                     # a / n + b for (a + b) / n
                by, words = operator.strip(" ()"), "it is of one part of the sum only"
                yield words, part, f"({source.product(a)} {by} {right} {sign} {source.atom(b)})"
                yield words, part, f"({source.within(source.span(a))} {sign} {source.product(b)} {by} {right})"
        if isinstance(part.op, ast.Mult):
            yield "it is multiplied where it should be divided", between, operator.replace("*", "/", 1)
            if isinstance(part.left, ast.BinOp) and isinstance(part.left.op, ast.Mult):
                middle = source.atom(part.left.right)
                yield f"there are two factors too many, {middle} * {right}", part, source.atom(part.left.left)
            yield "a product of entries stands for a matrix product", between, operator.replace("*", "@", 1)
        elif isinstance(part.op, ast.Div):
            yield "it is divided where it should be multiplied", between, operator.replace("/", "*", 1)
        elif isinstance(part.op, ast.MatMult):
            yield "a matrix product stands for a product of entries", between, operator.replace("@", "*", 1)
        elif isinstance(part.op, ast.Sub):
            yield "a difference is the wrong way round", part, f"{right} - {left}"
        elif isinstance(part.op, ast.Add):
            yield "a sum stands for a product", between, operator.replace("+", "*", 1)
        elif isinstance(part.op, ast.Pow):
            yield "there is a power too many", part, left
            if isinstance(part.left, ast.BinOp):
                a, b = source.span(part.left.left), source.span(part.left.right)
                inner = source.within((a[0], b[1]))
                power = source.text[source.span(part.left)[1] : source.span(part)[1]].lstrip(" )")
                yield "the power is of the whole, not of one part", part, f"({inner}{power})"
    elif isinstance(part, ast.Compare) and len(part.ops) == 1 and type(part.ops[0]) in COMPARED:
        left, right = source.atom(part.left), source.atom(part.comparators[0])
        for other in (COMPARED[type(part.ops[0])], SIGN[type(part.ops[0])] + "=", SIGN[type(part.ops[0])][:1]):
            if other in ("<", ">", "<=", ">=", "==", "!="):
                yield "a comparison is wrong", part, f"{left} {other} {right}"
        if type(part.ops[0]) in (ast.Gt, ast.GtE):
            for axis in (-1, 0, 1):
                highest = f"{left} == {left}.max(axis={axis}, keepdims=True)"
                yield "the mask is not where the maximum is", part, highest
    elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) and isinstance(part.operand, ast.Constant):
        yield "a sign is wrong", part, source.atom(part.operand)
    elif isinstance(part, ast.UnaryOp) and isinstance(part.op, (ast.Invert, ast.Not)):
        yield "there is a not too many", part, source.atom(part.operand)


def _over_a_slice(source, part):
    """1 / (stop - start), the length of a slice that stands in the same function, for 1 / k"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
        for start, stop in dict.fromkeys(SLICE.findall(source.text)):
            yield f"{stop} − {start} belongs there, the length of the slice", part.right, f"({stop} - {start})"


def _of_calls(source, part):
    """Another function, arguments exchanged, an axis, keepdims."""
    if not isinstance(part, ast.Call):
        return
    name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
    end = source.span(part.func)[1]
    for one, other in OTHER_FUNCTIONS:
        if name in (one, other):
            better = other if name == one else one
            yield f"it is {better}, not {name}", (end - len(name), end), better
    if name in ("maximum", "minimum") and len(part.args) == 2:
        value, bounds = part.args[0], ("0, 1", "-1, 1")
        for both in bounds:
            yield "a bound is missing", part, f"np.clip({source.within(source.span(value))}, {both})"
    if len(part.args) == 1 and not part.keywords and name not in ("range", "len", "reversed", "zip", "enumerate"):
        yield f"{name} is too much", part, source.atom(part.args[0])
    if (bounded := _reduced(part, BOUNDS)) is not None:
        yield f"{name} is too much", part, source.atom(bounded)
    for value in part.args if name not in REDUCED else ():               # -np.sum(x) is tried as a whole
        yield "a sign is missing", value, f"-{source.atom(value)}"
    for a, b in zip(part.args, part.args[1:]):
        yield "two arguments are exchanged", *_exchanged(source, a, b)
    if name == "sum" and (x := _reduced(part)) is not None:
        of = "trace" if len(part.args) + len(part.keywords) == (x in part.args) else "diag"
        yield "only the diagonal counts", part, f"np.{of}({source.within(source.span(x))})"
    for value in [*part.args, *(k.value for k in part.keywords)]:
        if isinstance(value, (ast.Tuple, ast.List)):
            for a, b in itertools.combinations(value.elts, 2):
                words = "two arrays are joined in the wrong order" if name in JOINED else "two axes are exchanged"
                yield words, *_exchanged(source, a, b)
    if name in ("transpose", "moveaxis", "swapaxes"):
        for a, b in itertools.combinations(part.args, 2):
            yield "two axes are exchanged", *_exchanged(source, a, b)
    if name == "cumsum" and part.args:                   # what comes back is a sum over the places behind
        x, axis = source.within(source.span(part.args[0])), next((k.value for k in part.keywords), part.args[-1])
        k = source.within(source.span(axis)) if axis is not part.args[0] else "0"
        yield "a cumulative sum goes back from the end", part, f"np.flip(np.cumsum(np.flip({x}, {k}), {k}), {k})"
    if name == "range":
        yield "the order is wrong", part, f"reversed({source.within(source.span(part))})"
    if name not in REDUCED:                              # logsumexp(x, axis=0)
        for axis in [k.value for k in part.keywords if k.arg == "axis"]:
            yield from (("it runs over the wrong axis", axis, other) for other in AXES)
    if name in REDUCED:
        inside, keywords = source.within(source.span(part))[:-1], {k.arg: k.value for k in part.keywords}
        if "keepdims" not in keywords:
            yield "keepdims=True is missing", part, f"{inside}, keepdims=True)"
        library = isinstance(part.func, ast.Attribute) and getattr(part.func.value, "id", "") in NUMPY
        if "axis" not in keywords and len(part.args) == library:
            for axis in (0, -1, 1, (1, 2), (2, 3)):
                comma = ", " if part.args or part.keywords else ""
                yield "an axis is missing", part, f"{inside}{comma}axis={axis})"
                yield "an axis is missing", part, f"{inside}{comma}axis={axis}, keepdims=True)"
        for axis in [keywords["axis"]] if "axis" in keywords else part.args[int(library) : int(library) + 1]:
            yield from (("it runs over the wrong axis", axis, other) for other in AXES)
            if isinstance(axis, ast.Tuple) and len(axis.elts) > 2:
                for some in itertools.combinations(axis.elts, len(axis.elts) - 1):
                    several = ", ".join(source.within(source.span(one)) for one in some)
                    yield "it runs over an axis too many", axis, f"({several})"
            first, last = source.text[source.span(part)[0] : source.span(axis)[0]], source.text[source.span(axis)[1] :]
            if "keepdims" not in keywords:
                last = last[: source.span(part)[1] - source.span(axis)[1] - 1]
                words = "it runs over the wrong axis, and keepdims=True is missing"
                yield from ((words, part, f"{first}{other}{last}, keepdims=True)") for other in AXES)


def _of_arguments(source, part):
    """An argument of a learner's function that should be reversed; a term that belongs behind the call."""
    if not isinstance(part, ast.Call) or ast.unparse(part.func).partition(".")[0] in NUMPY:
        return
    for value in part.args if "[::-1]" in source.text else ():
        yield "its order is not reversed", value, f"{source.atom(value)}[::-1]"
    for value in part.args if len(part.args) > 1 else ():                # back(d, cache) + reg * W
        if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
            (start, end), (first, last) = source.span(part), source.span(value)
            minus = isinstance(value.op, ast.Sub)
            for one, other in ((value.left, value.right), (value.right, value.left))[: 2 - minus]:
                call = source.text[start:first] + source.within(source.span(one)) + source.text[last:end]
                behind = f"{'-' if minus else '+'} {source.product(other)}"
                yield "a term belongs behind the call, not into it", part, f"({call} {behind})"


def _matrices(part):
    """a and b of a @ b, np.matmul(a, b), np.dot(a, b) and a.dot(b); [] for what is no such product"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
        return [part.left, part.right]
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("matmul", "dot"):
        return part.args if getattr(part.func.value, "id", "") in NUMPY else [part.func.value, *part.args]
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in SOLVING:
        return part.args[:1]
    return []


def _of_statements(source, part):
    """= for +=, and the reverse."""
    if isinstance(part, ast.Assign) and len(part.targets) == 1 and not isinstance(part.targets[0], ast.Tuple):
        target, value = (source.within(source.span(x)) for x in (part.targets[0], part.value))
        yield NOT_ADDED, part, f"{target} += {value}"
        if isinstance(part.targets[0], ast.Name):        # of an array that somebody else has, too
            yield NOT_ADDED, part, f"{target} = {target} + {value}"
        if is_atom(part.value):
            yield f"{value} itself is changed below: a copy is missing", part.value, f"{value}.copy()"
        yield from _added_at(source, part, part.targets[0])
    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Tuple):
        for a, b in itertools.combinations(part.value.elts, 2):
            yield "two results are exchanged", *_exchanged(source, a, b)
    elif isinstance(part, ast.AugAssign):
        target, value = (source.within(source.span(x)) for x in (part.target, part.value))
        yield from _of_a_part(source, part)
        if isinstance(part.op, (ast.Add, ast.Sub)):
            yield from _added_at(source, part, part.target)
        if isinstance(part.op, (ast.Mult, ast.Div)):
            yield "it is divided or multiplied the wrong way", part, (
                f"{target} {'/' if isinstance(part.op, ast.Mult) else '*'}= {value}")  # fmt: skip


def _of_a_part(source, part):
    """dW[:-1] += reg * W[:-1] for dW += reg * W, because the biases in the last row have no penalty."""
    arrays = [one for one in ast.walk(part.value) if is_atom(one)]
    if is_atom(part.target) and isinstance(part.op, (ast.Add, ast.Sub)):
        for array, index in itertools.product(arrays, ("[:-1]", "[1:]", "[:, :-1]", "[:, 1:]")):
            (start, end), (_, last) = source.span(part), source.span(array)
            behind = source.span(part.target)[1]
            text = source.text[start:behind] + index + source.text[behind:last] + index + source.text[last:end]
            yield "it is of a part of the array only", part, text


def _of_loops(source, part):
    """A loop over lists that should run from the end to the start."""
    if isinstance(part, ast.For):
        text = source.within(source.span(part.iter))
        if not re.match(r"reversed\(|range\(", text):
            yield "the order is wrong", part.iter, f"reversed(list({text}))"


def _not_added(source, part, sums):
    """A backward that is called, and what it gives back is not used: dx = dx + self.router.backward(dw)"""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        text = source.within(source.span(part))
        for name in sums:
            yield "what comes back is not added", part, f"{name} = {name} + {text}"


def _of_order(source, block):
    """Mutations: a statement before the one that changes, in place, what it reads."""
    body = getattr(block, "body", None)
    for k, late in enumerate(body if isinstance(body, list) else ()):
        read = {one.id for one in ast.walk(late) if isinstance(one, ast.Name)}
        for early in body[:k]:
            array = _changed_in_place(early)
            if array in read:
                between = source.text[source.span(early)[0] : source.span(late)[0]].rstrip()
                yield _in_the_other_order(source, early, late, late, array, source.within(source.span(late)), between)


def _of_a_later_order(source, block):
    """Mutations: a statement such as h = h * decay behind the last that should read the old h."""
    body = getattr(block, "body", None)
    for k, early in enumerate(body if isinstance(body, list) else ()):
        name = _overwritten(early)
        readers = [late for late in body[k + 1 :] if name and name in names_read(late)]
        if readers:
            between = source.text[source.span(body[k + 1])[0] : source.span(readers[-1])[1]]
            first = source.within(source.span(early))
            yield _in_the_other_order(source, early, readers[0], readers[-1], name, between, first)


def _in_the_other_order(source, early, late, last, array, *lines):
    """The Mutation that puts these lines in the place of all from `early` to `last`; `early` and `late` are shown."""
    first, second = (source.within(source.span(one)) for one in (early, late))
    start, end = source.span(early)[0], source.span(last)[1]
    moved = ("\n" + " " * early.col_offset).join(lines)
    change = source.mutation(early, f"{array} is changed before it was read", start, end, moved)
    return replace(change, shown=(f"{first}  …  {second}", f"{second}  …  {first}"))


def _overwritten(statement):
    """h of h = f(h), or of h *= 2; None for other statements"""
    if isinstance(statement, ast.AugAssign):
        return getattr(statement.target, "id", None)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        return name if name in names_read(statement.value) else None
    return None


def names_read(node: ast.AST) -> set[str]:
    """The names that a part of a function reads"""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _changed_in_place(statement):
    """The name of the array that `h *= 2` or `h[i] = 0` changes, or None"""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return target.value.id
    return None


def _diagonal(source, part):
    """A·(D − Σ A·D) for A·(1 − A)·D, the diagonal of softmax's Jacobian alone."""
    factors = _multiplied(part)
    if len(factors) != 3:
        return
    texts = [source.within(source.span(factor)) for factor in factors]
    for a, one_minus, d in itertools.permutations(texts):
        if one_minus.replace(" ", "").strip("()") == f"1-{a}".replace(" ", ""):
            for axis in (-1, 0):
                right = f"{a} * ({d} - ({d} * {a}).sum(axis={axis}, keepdims=True))"
                yield "it is the diagonal of softmax's Jacobian alone", part, right


def _of_keywords(source, part, atoms):
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


def _of_log_softmax(source, part):
    """d − p·Σ d, what goes back through log softmax, for p·(d − Σ p·d), through softmax; and the reverse."""
    if not isinstance(part, ast.BinOp):
        return
    text = source.within(source.span(part))
    if found := SOFTMAX.fullmatch(text):
        p, d, axis = found[1], found[2], found[3]
        yield "log softmax belongs there, not softmax", part, f"{d} - {p} * {d}.sum({axis})"
    if found := HALF_OF_BOTH.fullmatch(text):
        d, p, axis = found[1], found[2], found[3]
        yield "log softmax belongs there", part, f"{d} - {p} * {d}.sum({axis})"
        yield "softmax belongs there", part, f"{p} * ({text})"
    if found := LOG_SOFTMAX.fullmatch(text):
        d, p, axis = found[1], found[2], found[3]
        yield "softmax belongs there, not log softmax", part, f"{p} * ({d} - ({p} * {d}).sum({axis}))"


def _of_gates(source, part):
    """1 − y², the derivative of tanh, for y·(1 − y), that of the sigmoid; and the reverse."""
    texts = _texts_of_factors(source, part)
    plain = [text.replace(" ", "").replace("1.0-", "1-").strip("()") for text in texts]
    plain = [re.sub(r"^1-(.+)\*\1$", r"1-\1**2", text) for text in plain]        # 1 - y * y
    for k, text in enumerate(plain):
        y = text.removeprefix("1-")
        if len(texts) > 1 and text == f"1-{y}" and y in plain:
            rest = [one for i, one in enumerate(texts) if i not in (k, plain.index(y))]
            yield f"{y} comes from tanh: its derivative is 1 − {y}²", part, " * ".join([*rest, f"(1 - {y} ** 2)"])
        y = y.removesuffix("**2")
        if len(texts) > 1 and text == f"1-{y}**2":
            rest = [one for i, one in enumerate(texts) if i != k]
            words = f"{y} comes from a sigmoid: its derivative is {y}·(1 − {y})"
            yield words, part, " * ".join([*rest, y, f"(1 - {y})"])


def _of_swish(source, part):
    """s + x·s·(1 − s), the derivative of x·s with s = sigmoid(x), for s alone or for s·(1 − s)."""
    texts = _texts_of_factors(source, part)
    said = dict.fromkeys((s, of_exp or of_call) for s, of_exp, of_call in SIGMOID.findall(source.text))
    for s, x in said if len(texts) > 1 else ():          # in the whole file, where other functions may have an s, too
        if s in texts:
            gates = [i for i, text in enumerate(texts) if text.replace(" ", "") == f"(1-{s})"]
            rest = [one for i, one in enumerate(texts) if i not in (texts.index(s), *gates[:1])]
            words = f"the derivative of {x}·{s} belongs there, {s} + {x}·{s}·(1 − {s}): {s}, too, depends on {x}"
            yield words, part, " * ".join([*rest, f"({s} + {x} * {s} * (1 - {s}))"])


OF_SYNTAX = (                                            # kinds of changes for which no values are needed
    _of_groups, _of_shape, _of_operators, _over_a_slice, _of_calls, _of_arguments, _of_statements, _of_loops,
    _diagonal, _of_log_softmax, _of_gates, _of_swish,
)  # fmt: skip


def _texts_of_factors(source, part):
    """The texts of a product's factors, sums and differences in parentheses"""
    factors = _multiplied(part)
    texts = [source.within(source.span(factor)) for factor in factors]
    return [f"({text})" if isinstance(factor, ast.BinOp) else text for factor, text in zip(factors, texts)]


def _multiplied(part):
    """The factors of a product, from left to right"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        return [*_multiplied(part.left), *_multiplied(part.right)]
    return [part]


def _added_at(source, part, target):
    """np.add.at for G[ids] = d, G[ids] += d and G[ids] -= d"""
    if isinstance(target, ast.Subscript):
        array, index, value = (source.within(source.span(x)) for x in (target.value, target.slice, part.value))
        if ":" in index:
            index = f"np.s_[{index}]"
        elif isinstance(target.slice, ast.Tuple) and index[0] != "(":
            index = f"({index})"
        if isinstance(getattr(part, "op", None), ast.Sub):
            value = f"-{source.atom(part.value)}"
        yield "of repeated indices only one is added", part, f"np.add.at({array}, {index}, {value})"


def _of_numbers(source, part, atoms):
    """A number that is off by one, by its sign, or by a factor of two; or that has a name."""
    text = source.within(source.span(part))
    number = whole_number(part)
    if number is not None and number < 0 or SIZE.fullmatch(text):
        for name, value in atoms.items():
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
            for size in ("len({})", "{}.shape[0]", "{}.shape[1]", "{}.shape[-1]", "{}.size", "{}.sum()"):
                yield f"{size.format(array)} belongs where {text} is", part, size.format(array)
        return
    if not isinstance(part, ast.Constant) or type(part.value) not in (int, float):
        return
    for name, value in atoms.items():
        if not callable(value) and (np.ndim(value) == 0 or value.dtype.kind in "iub") and name[0] != "(":
            yield f"{name} belongs where {part.value:g} is", part, name
    value = part.value
    others = [value + 1, value - 1, 2 * value, value / 2, -value, value + 2, value - 2]
    for other in dict.fromkeys(others):
        if other != value and abs(other) < 1e6:
            text = f"{other:g}" if float(other) != int(other) else str(int(other))
            yield "a number is wrong", part, f"({text})" if other < 0 else text


def is_atom(part: ast.AST) -> bool:
    """True for a name, or an attribute or constant index of one: x, self.W, cache["h"]."""
    if isinstance(part, ast.Attribute):
        return part.attr not in ("T", "mT", "shape", "size", "ndim", "dtype") and is_atom(part.value)
    if isinstance(part, ast.Subscript):
        return isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str) and is_atom(part.value)
    return isinstance(part, ast.Name)


def _another_atom(source, part, atoms, alike=False):
    """Another array in its place: of the same shape if alike is True, else of other shapes, or a number."""
    text = source.within(source.span(part))
    if alike and isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and not is_atom(part):
        shape = _shape_of(part, source, atoms)
        for other, value in atoms.items() if shape else ():
            if _is_array(value) and value.shape == shape:
                yield f"{other} belongs where {text} is", part, other
    if not alike and _reduced(part) is not None:         # e.sum(axis=0), where the forward has kept s
        for other, value in atoms.items():
            if _is_array(value):
                yield f"{other} belongs where {text} is", part, other
    if not is_atom(part) or not isinstance(getattr(part, "ctx", None), ast.Load):
        return
    if text not in atoms:
        return
    shape = np.shape(atoms[text])
    for other, value in atoms.items():
        same_kind = (np.shape(value) == shape) == alike and callable(value) == callable(atoms[text])
        same_kind &= not alike or _is_mask(value) <= _is_mask(atoms[text])           # no mask for numbers
        another = value is not atoms[text] or other[-1] == "]"           # xs[l] is x0 only in the last round of a loop
        if other != text and same_kind and (not shape or not alike or another):
            times = re.fullmatch(rf"\({re.escape(text)} ([*/]) (\S+)\)", other)      # w * L for w
            factor = times and f"a factor is missing, {'1/' * (times[1] == '/')}{times[2]}"
            yield factor or f"{other} belongs where {text} is", part, other


def _is_mask(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "b"


def _atom_for_a_formula(source, part, atoms):
    """An array of the same shape where a formula stands, or a number: what the forward used, or kept."""
    if isinstance(part, (ast.BinOp, ast.Call)) and (shape := _shape_of(part, source, atoms)) is not None:
        text = source.within(source.span(part))
        (start, end), file = source.span(part), source.text
        bare = file[start - 1] == "(" and file[end : end + 1] == ")" and not re.match(r"[\w)\]]", file[start - 2])
        where = (start - 1, end + 1) if bare else (start, end)           # q for (h @ Un)
        for other, value in atoms.items():
            if _is_array(value) and value.shape == shape or shape == () and isinstance(value, SINGLE):
                yield f"{other} belongs where {text} is", where, other


def _shape_of(part, source, atoms):
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


def _is_array(value):
    """True for a floating array that is no single number."""
    return is_floating(value) and value.ndim > 0


def _fits(value, shape, larger=False):
    """True if value can multiply an array of that shape, without making it larger unless that is allowed."""
    try:
        return shape is None or np.broadcast_shapes(np.shape(value), shape) == tuple(shape) or larger
    except ValueError:
        return False


def _factors(name, value, shape, larger=False, sizes=True):
    """Factors made of one array or number, for an array of that shape: (words, "* x" or "/ x")

    sizes: with False no sizes of the array, because another array of this shape has the same
    """
    for words, factor, *often in _all_factors(name, value, shape, larger, sizes):
        if factor[0] == "/" and name in UPSTREAM:
            continue                                     # a backward never divides by what it is given
        factor_in_words = factor[2:] if factor[0] == "*" else f"1/{factor[2:]}"
        yield f"{words} is missing, {factor_in_words}" + "".join(f" ({remark})" for remark in often), factor


def _first_of_each_shape(atoms):
    """{shape: the first atom that has it}"""
    return {np.shape(value): name for name, value in reversed(atoms.items()) if not callable(value)}


def _all_factors(name, value, shape, larger, sizes):
    """(what it is, "* x" or "/ x"), with a third string if such a factor is often something that has a name"""
    missing = "a factor"
    if not isinstance(value, np.ndarray):
        rates = (f"/ (1 - {name})", f"* (1 - {name})") if 0 < value < 1 else ()
        for factor in (f"* {name}", f"/ {name}", f"/ np.sqrt({name})", *rates):
            yield missing, factor
        return
    shapes = [(name, value)]
    if value.ndim and shape is not None and value.ndim < len(shape):
        shapes += [(f"{name}[:, None]", value[:, None]), (f"{name}[..., None]", value[..., None])]
    for text, x in shapes:
        if _fits(x, shape, larger):
            yield missing, f"* {text}"
            if x.dtype != bool and (not _is_array(x) or (x > 0).all()):          # a norm, a standard deviation
                yield missing, f"/ {text}"
            if _is_array(x):
                if (x >= 0).all() and (x <= 1).all():    # a sigmoid, a gate, a probability
                    yield missing, f"* (1 - {text})"
                    yield missing, f"* {text} * (1 - {text})", "of a sigmoid, this is the derivative"
                if (np.abs(x) <= 1).all():
                    yield missing, f"* (1 - {text} ** 2)", "of a tanh, this is the derivative"
                yield missing, f"* ({text} > 0)", "the derivative of a ReLU, or a mask"
                yield missing, f"/ {text}**2" if (x > 0).all() else f"* np.sign({text})"
                yield missing, f"/ (1 + np.exp(-{text}))", "the derivative of a softplus, or a sigmoid"
    if _is_array(value) and shape is not None and value.shape == tuple(shape):
        for axis in (-1, 0):
            yield "a factor", f"* {name}.sum(axis={axis}, keepdims=True)"
    if value.ndim and sizes:
        yield "a factor", f"/ {name}.shape[0]"
        yield "a factor", f"/ {name}.size"
        yield "a scale", f"/ np.sqrt({name}.shape[-1])"


def _of_wholes(source, whole, target, atoms):
    """A sign, a factor, a term or a transpose that is missing from a whole right side."""
    span, atom, shape = source.span(whole), source.atom(whole), _shape_of(target, source, atoms)
    yield "a sign is missing", span, f"-{atom}"
    if not isinstance(whole, ast.Name) or shape is None or len(shape) == 2:
        yield "a transpose is missing", span, f"{atom}.T"
    for axis in (0, -1, (0, 1)):
        yield "an axis is not summed", span, f"{atom}.sum(axis={axis})"
    for axis in (0, -1, *PAIRS):
        yield "the mean is not taken away", span, f"{atom} - {atom}.mean(axis={axis}, keepdims=True)"
    if isinstance(target, ast.Subscript):                # dx[x < 0] = alpha
        index, of = source.within(source.span(target.slice)), _shape_of(target.value, source, atoms)
        for name, value in sorted(atoms.items(), key=lambda item: item[0] not in UPSTREAM):
            if of and _is_array(value) and value.shape == of:
                yield f"a factor is missing, {name}[{index}]", span, f"{atom} * {name}[{index}]"
    if isinstance(target, ast.Subscript) and isinstance(whole, ast.Constant):        # beta[-1] = 0
        for name, value in atoms.items():
            if _is_array(value):
                yield f"{name} belongs where {whole.value} is", span, name
    first_of_a_shape = _first_of_each_shape(atoms)
    for name, value in atoms.items():
        if not callable(value):
            sizes = first_of_a_shape[np.shape(value)] == name
            factors = _factors(name, value, shape, larger=shape == (), sizes=sizes)      # a rate, one for each row
            yield from ((words, span, f"{source.product(whole)} {factor}") for words, factor in factors)
            itself = name == (target and source.within(source.span(target)))         # dx + dx is 2·dx
            if _is_array(value) and value.shape == (shape or value.shape) and not itself:
                yield f"a term is missing, {name}", span, f"{atom} + {name}"
                yield f"a term is missing, −{name}", span, f"{atom} - {name}"
        if isinstance(value, SINGLE) and value > 0 or _is_array(value) and value.shape == shape and (value > 0).all():
            yield f"a term is missing, −1/{name}", span, f"{atom} - 1 / {name}"
            yield f"a term is missing, 1/{name}", span, f"{atom} + 1 / {name}"
        if shape == () and isinstance(value, SINGLE) and value:          # d - smooth / C
            yield f"a term is missing, {name}", span, f"{atom} + {name}"
            yield f"a term is missing, −{name}", span, f"{atom} - {name}"
        if _is_array(value) and shape and len(shape) == 2 and value.shape == shape[:1]:
            yield f"a term is missing, {name}[:, None]", span, f"{atom} + {name}[:, None]"
        if _is_array(value) and shape and value.ndim and value.shape != tuple(shape) and _fits(value, shape):
            yield f"a term is missing, {name}", span, f"{atom} + {name}"
    for x, slope in LEAKY.findall(source.text):          # in the whole file: often a forward, or a helper, has it
        leaky = f"np.where({x} > 0, 1.0, {slope})"
        words = f"a factor is missing, {leaky} (the derivative of a leaky ReLU)"
        yield words, span, f"{source.product(whole)} * {leaky}"
    for factor in ("2", "0.5"):
        yield f"a factor is missing, {factor}", span, f"{factor} * {atom}"
    yield from _over_two_numbers(span, atom, atoms)
    yield from _of_each_entry(source, whole, target, atoms)


def _of_quotients(source, part, atoms):
    """A factor that is missing in d /= n"""
    if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Div):
        target, n = source.within(source.span(part.target)), source.atom(part.value)
        for name, value in atoms.items():
            if not callable(value):
                for words, factor in _factors(name, value, _shape_of(part.target, source, atoms)):
                    yield words, part, f"{target} = {target} / {n} {factor}"


def _over_two_numbers(span, atom, atoms):
    """1/(H·W), what a mean over two axes leaves; a ratio of two numbers, such as alpha/rank."""
    sizes = [name for name, value in atoms.items() if isinstance(value, (int, np.integer)) and value > 1]
    for one, other in itertools.combinations(sizes, 2):
        yield f"a factor is missing, 1/({one}·{other})", span, f"{atom} / ({one} * {other})"
        yield f"a factor is missing, 1/({one} + {other})", span, f"{atom} / ({one} + {other})"
    numbers = [name for name, x in atoms.items() if isinstance(x, SINGLE) and x > 0 and "(" not in name]
    for one, other in itertools.permutations(numbers, 2):
        yield f"a factor is missing, {one}/{other}", span, f"{atom} * {one} / {other}"


def _of_each_entry(source, whole, target, atoms):
    """A factor mask[i, t] that is missing in a loop: an array at an index that stands in the same statement."""
    parts = [one for one in (*ast.walk(target), *ast.walk(whole)) if isinstance(one, ast.Subscript)] if target else []
    for index in {source.within(source.span(one.slice)) for one in parts}:
        if re.fullmatch(r"\w+(, \w+)*", index):
            for name, value in atoms.items():
                if isinstance(value, np.ndarray) and value.ndim >= index.count(",") + 1:
                    behind = ("",) if value.ndim == index.count(",") + 1 else ("", "[:, None]")
                    for factor in (f"{name}[{index}]{more}" for more in behind):
                        yield f"a factor is missing, {factor}", whole, f"{source.product(whole)} * {factor}"


def _of_atoms(source, part, atoms):
    """A square, an exponential, 1 − x, x ± 1 in place of x."""
    if not is_atom(part) or not isinstance(getattr(part, "ctx", None), ast.Load):
        return
    text = source.within(source.span(part))
    value = atoms.get(text)
    if value is None or callable(value):
        return
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        yield f"{text} is of booleans, and numbers are needed", part, f"{text}.astype(float)"
        return
    others = [f"{text}**2", f"(1 - {text})", f"({text} - 1)", f"({text} + 1)", f"-{text}"]
    if _is_array(value) and value.ndim == 2 and value.shape[0] == value.shape[1]:
        yield f"a term is missing, {text}.T", part, f"({text} + {text}.T)"
    if np.iscomplexobj(value):
        yield f"the complex conjugate of {text} belongs there", part, f"np.conj({text})"
    if _is_array(value):
        others += [f"np.exp({text})", f"np.sqrt({text})", f"({text} > 0)", f"{text}.T"]
        others.append(f"{text}.sum()" if value.ndim == 1 else f"{text}.sum(axis=-1, keepdims=True)")
        own = [name for name, g in atoms.items() if callable(g)]
        others += [f"{g}({text})" for g in ("np.tanh", *own) if f"{g}({text})" in source.text]       # as in the forward
    for other in others:
        shown = other[1:-1] if other[0] == "(" else other
        yield f"{shown} belongs where {text} is", part, other


def _inside_a_sum(source, part, atoms):
    """A factor that is missing inside x.sum(…)"""
    if inside := _array_in(part):
        shape = _shape_of(inside, source, atoms)
        for name, x in atoms.items():
            if shape and not callable(x):
                for words, factor in _factors(name, x, shape):
                    if factor in (f"* {name}", f"* {name}[:, None]", f"* {name}[..., None]"):
                        yield words, inside, f"({source.product(inside)} {factor})"


def _of_listed(source, part, atoms):
    """A sign, a factor or a term of one of the arrays in np.concatenate([dz, dr, dn], axis=1)"""
    for one, other in itertools.combinations(_listed_in(part), 2):
        yield "two arrays are joined in the wrong order", *_exchanged(source, one, other)
    for element in _listed_in(part):
        shape = _shape_of(element, source, atoms)
        yield "a sign is missing", element, f"-{source.atom(element)}"
        for name, x in atoms.items():
            if shape and not callable(x):
                factors = _factors(name, x, shape)
                yield from ((words, element, f"{source.product(element)} {factor}") for words, factor in factors)
            if shape is not None and not callable(x) and np.shape(x) == shape:
                yield f"a term is missing, {name}", element, f"{source.atom(element)} + {name}"
                yield f"a term is missing, −{name}", element, f"{source.atom(element)} - {name}"


def _of_entries(source, part, atoms):
    """beta[t + 1], where E[t + 1] belongs, too"""
    if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and isinstance(part.value, ast.Name):
        text, array, index = (source.within(source.span(one)) for one in (part, part.value, part.slice))
        if _is_array(atoms.get(array)) and ":" not in index:
            for name, x in atoms.items():
                if name != array and _is_array(x) and x.ndim == atoms[array].ndim:
                    yield f"a term is missing, {name}[{index}]", part, f"({text} + {name}[{index}])"
                    yield f"a term is missing, −{name}[{index}]", part, f"({text} - {name}[{index}])"


def _of_what_is_given(source, part, atoms):
    """A factor of what a function is given: np.exp(s / temperature), kl_back(g * beta), np.add.at(dE, ids, d * mask)"""
    if not isinstance(part, ast.Call):
        return
    called, factors = ast.unparse(part.func), []
    if called.endswith(".at") and len(part.args) == 3:   # which may be broadcast there
        value, shape = part.args[2], _shape_of(part.args[2], source, atoms)
        factors = [(value, *factor) for name, x in atoms.items() if isinstance(x, np.ndarray)
                   for factor in _factors(name, x, shape, larger=True)]  # fmt: skip
    elif len(part.args) == 1 and re.search(r"\b(exp|log|tanh)$", called):
        numbers = [name for name, x in atoms.items() if isinstance(x, SINGLE)]
        factors = [(part.args[0], words, factor) for name in numbers for words, factor in _times_and_over(name)]
    elif called.partition(".")[0] not in NUMPY:
        for value in part.args:
            text, shape = source.within(source.span(value)), _shape_of(value, source, atoms)
            for name, x in atoms.items() if shape is not None else ():
                if isinstance(x, SINGLE) or (_is_array(x) and x.shape == shape and name != text):
                    factors += [(value, *one) for one in _times_and_over(name)[: 1 + isinstance(x, SINGLE)]]
    yield from ((words, value, f"{source.product(value)} {factor}") for value, words, factor in factors)


def _times_and_over(name):
    return (f"a factor is missing, {name}", f"* {name}"), (f"a factor is missing, 1/{name}", f"/ {name}")


def _of_where(source, part, atoms):
    """A factor or a term of one case of np.where(x > 0, d, 0)"""
    if isinstance(part, ast.Call) and ast.unparse(part.func).endswith("where"):
        for value, other in zip(part.args[1:], part.args[:0:-1]):
            for name, x in atoms.items():
                if isinstance(value, ast.Constant) and isinstance(x, SINGLE):            # where(x > 0, d, slope * d)
                    text = f"{name} * {source.product(other)}"
                    yield f"{text} belongs where {value.value} is", value, text
                elif not callable(x):
                    yield from ((words, value, f"{source.product(value)} {factor}")
                                for words, factor in _factors(name, x, None))  # fmt: skip
                    yield f"a term is missing, {name}", value, f"{source.atom(value)} + {name}"
                    yield f"a term is missing, −{name}", value, f"{source.atom(value)} - {name}"


def _of_sides(source, part, atoms):
    """A factor that is missing from one term of a sum, or one side of a matrix product; a square of a divisor"""
    if not isinstance(part, ast.BinOp):
        return
    sums, first_of_a_shape = isinstance(part.op, (ast.Add, ast.Sub)), _first_of_each_shape(atoms)
    for side in (part.left, part.right) if sums else ():
        span, atom, shape = source.span(side), source.atom(side), _shape_of(side, source, atoms)
        text = source.within(span)
        whole_numbers = isinstance(atoms.get(text), (int, np.integer))   # t − k, an index
        for number in (2, 3, 0.5):
            yield f"a factor is missing, {number}", span, f"{number} * {atom}"
        if shape is None or len(shape) == 2:
            yield "a transpose is missing", span, f"{atom}.T"
        for name, value in atoms.items():
            if not callable(value) and (not whole_numbers or isinstance(value, (int, np.integer))):
                factors = _factors(name, value, shape, True, sizes=first_of_a_shape[np.shape(value)] == name)
                for words, factor in factors:
                    if text == "1" and factor.startswith("* "):           # 1 * n is n
                        yield f"{factor[2:]} belongs where 1 is", span, factor[2:]
                    else:
                        yield words, span, f"{source.product(side)} {factor}"
        yield from _over_two_numbers(span, atom, atoms)
    for side in (part.left, part.right) if isinstance(part.op, ast.MatMult) else ():
        shape = _shape_of(side, source, atoms)
        for name, value in atoms.items():
            if shape and _is_array(value):
                yield from ((words, side, f"({source.product(side)} {factor})") for words, factor in
                            _factors(name, value, shape) if factor in (f"* {name}", f"* {name}[:, None]"))  # fmt: skip
    if isinstance(part.op, ast.Div) and not isinstance(part.right, ast.Constant):
        yield "it should be divided by the square", part.right, f"{source.atom(part.right)} ** 2"
        root = f"np.sqrt({source.within(source.span(part.right))})"
        yield "it should be divided by the square root", part.right, root


def _of_ones(source, part, atoms):
    """A 1 that is missing: 1 - x for x, f(x) - 1"""
    whole = source.within(source.span(part))
    if isinstance(part, ast.Call) and len(part.args) == 1 and callable(atoms.get(ast.unparse(part.func))):
        for other in (f"({whole} - 1)", f"(1 - {whole})", f"({whole} + 1)"):
            yield "a 1 is missing", part, other
    if not isinstance(part, ast.BinOp):
        return
    if isinstance(part.op, (ast.Add, ast.Sub)):
        yield "a 1 is missing", part, f"{whole} + 1"
        yield "a 1 is missing", part, f"{whole} - 1"
    if isinstance(part.op, (ast.Mult, ast.Div)):
        for number in ("1", "0.5"):
            yield f"a term is missing, {number}", part, f"({whole} + {number})"
            yield f"a term is missing, −{number}", part, f"({whole} - {number})"
    if isinstance(part.op, (ast.Mult, ast.Pow)):
        yield "a 1 is missing", part, f"(1 - {whole})"
        yield "a 1 is missing", part, f"({whole} - 1)"
        yield "a 1 is missing", part, f"(1 + {whole})"


def _terms_inside(source, part, atoms):
    """A term that is missing from a sum inside a product: 0.5 * (a - b - 1 / nu)"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
        whole, shape = source.within(source.span(part)), _shape_of(part, source, atoms)
        for name, x in atoms.items():
            if isinstance(x, SINGLE) or (shape and _is_array(x) and x.shape == shape):
                if np.all(x > 0):
                    yield f"a term is missing, 1/{name}", part, f"({whole} + 1 / {name})"
                    yield f"a term is missing, −1/{name}", part, f"({whole} - 1 / {name})"
                yield f"a term is missing, {name}", part, f"({whole} + {name})"
                yield f"a term is missing, −{name}", part, f"({whole} - {name})"


OF_OPERANDS = _inside_a_sum, _of_listed, _of_entries, _of_ones, _of_what_is_given, _of_where, _of_sides


def _listed_in(part):
    """The elements of lists and tuples that a call is given: of np.concatenate([a, b]) a and b."""
    lists = [one for one in part.args if isinstance(one, (ast.List, ast.Tuple))] if isinstance(part, ast.Call) else []
    return [element for one in lists for element in one.elts if not isinstance(element, ast.Constant)]


def _terms_of_arguments(source, part, atoms):
    """A term that is missing from what a function of the learner's own is given: back_embed(dx + dx_residual)."""
    if not isinstance(part, ast.Call) or ast.unparse(part.func).partition(".")[0] in NUMPY:
        return
    for argument in part.args:
        text, shape = source.within(source.span(argument)), _shape_of(argument, source, atoms)
        for name, x in atoms.items():
            if shape and _is_array(x) and x.shape == shape and name != text:
                yield f"a term is missing, {name}", argument, f"{source.atom(argument)} + {name}"


def _array_in(part):
    """x of x.sum(…), np.mean(x, …), x.reshape(…); None for what is no such call."""
    return _reduced(part, REDUCED | SHAPED)


def _reduced(part, names=REDUCED):
    """x of x.sum(…), np.mean(x, …); None for what is no such call."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute) or part.func.attr not in names:
        return None
    if getattr(part.func.value, "id", "") in NUMPY:
        return part.args[0] if part.args else None
    return part.func.value


def _terms(source, whole, target, atoms):
    """A product that is missing as a term: a path on which nothing comes back, such as da @ W.T; or one of entries."""
    span, atom, shape = source.span(whole), source.atom(whole), _shape_of(target, source, atoms)
    if shape is None or not shape:
        return
    matrices = {name: x for name, x in atoms.items() if _is_array(x) and x.ndim >= 2}
    for (one, a), (other, b) in itertools.permutations(matrices.items(), 2):
        products = (f"{one} @ {other}.T", a, b.T), (f"{one}.T @ {other}", a.T, b), (f"{one} @ {other}", a, b)
        for product, left, right in products:
            if (a if left is not a else b).ndim == 2 and _product_shape(left, right) == tuple(shape):
                yield f"a term is missing, {product}", span, f"{atom} + {product}"
    alike = [name for name, x in atoms.items() if _is_array(x) and x.shape == tuple(shape)]
    larger = [name for name, x in atoms.items() if _is_array(x) and x.ndim == len(shape)
              and all(m in (1, n) for m, n in zip(shape, x.shape))]  # fmt: skip
    for name, x in atoms.items():                        # a gate of each channel: dy * g[:, :, None, None]
        if _is_array(x) and x.ndim < len(shape) and x.shape == tuple(shape)[: x.ndim]:
            gate = f"{name}[{', '.join([':'] * x.ndim + ['None'] * (len(shape) - x.ndim))}]"
            for term in (f"{one} * {gate}" for one in larger):
                yield f"a term is missing, {term}", span, f"{atom} + {term}"
    for term in _outer_products(shape, atoms):
        yield f"a term is missing, {term}", span, f"{atom} + {term}"
    spread = [name for name, x in atoms.items() if isinstance(x, np.ndarray) and x.ndim and x.shape != tuple(shape)
              and _fits(x, shape)]  # fmt: skip
    gates = [name for name in spread if (atoms[name] >= 0).all() and (atoms[name] <= 1).all()]           # a mask
    for one in alike:                                    # a peephole, dao * Wp[2]; a state that is kept, dh * (1 - m)
        for term in [f"{one} * {other}" for other in spread] + [f"{one} * (1 - {other})" for other in gates]:
            yield f"a term is missing, {term}", span, f"{atom} + {term}"
            yield f"a term is missing, −{term}", span, f"{atom} - {term}"
    rates = [name for name, x in atoms.items() if isinstance(x, float) and x not in (0, 1)]
    for rate, one in itertools.product(rates, alike):    # of a penalty, reg * W; of exp(−C/eps), −dS / eps
        for term in (f"{rate} * {one}", f"{one} / {rate}"):
            yield f"a term is missing, {term}", span, f"{atom} + {term}"
            yield f"a term is missing, −{term}", span, f"{atom} - {term}"
    for one, other in itertools.permutations(alike, 2):
        for term in (f"{one} * {other}", f"{one} * (1 - {other})"):
            yield f"a term is missing, {term}", span, f"{atom} + {term}"
            yield f"a term is missing, −{term}", span, f"{atom} - {term}"


def _outer_products(shape, atoms):
    """["w[:, :, None] * d[:, None, :]", …]: products of two smaller arrays that have this shape"""
    arrays = [(name, x.shape) for name, x in atoms.items() if _is_array(x)]
    if len(shape) == 2:
        yield from (f"{one}[:, None] * {other}" for one, n in arrays for other, m in arrays if (*n, *m) == shape)
    elif len(shape) == 3:
        behind = [(name, size) for name, size in arrays if size in (shape[:2], shape[1:])]
        between = [name for name, size in arrays if size == (shape[0], shape[2])]
        for (one, size), other in itertools.product(behind, between):
            yield f"{one}[:, :, None] * {other}[:, None, :]" if size == shape[:2] else f"{other}[:, None, :] * {one}"


def _terms_of_sums(source, whole, target, atoms):
    """An array times the sum of another, missing as a term: w − π·Σg, of a softmax whose weights serve all rows."""
    span, atom, shape = source.span(whole), source.atom(whole), _shape_of(target, source, atoms)
    alike = [name for name, x in atoms.items() if _is_array(x) and x.shape == shape]
    for name, x in atoms.items() if shape else ():
        for axis in range(x.ndim if _is_array(x) else 0):
            left = (*x.shape[:axis], *x.shape[axis + 1 :])
            behind = "" if left == shape else "[:, None]" if left == shape[:1] and len(shape) == 2 else None
            if left and behind is not None:
                term = f"{name}.sum(axis={axis}){behind}"
                yield f"a term is missing, {term}", span, f"{atom} + {term}"
                yield f"a term is missing, −{term}", span, f"{atom} - {term}"
    for one, other in itertools.product(alike, [name for name, x in atoms.items() if _is_array(x)]):
        yield f"a term is missing, −{one} * {other}.sum()", span, f"{atom} - {one} * {other}.sum()"


def _is_slice(part):
    """True for x[..., 0::2] where its value is used; not for x[0]."""
    if not isinstance(part, ast.Subscript) or not isinstance(part.ctx, ast.Load):
        return False
    return any(isinstance(one, ast.Slice) for one in ast.walk(part.slice))


def _terms_of_slices(source, whole, target, atoms, slices):
    """A slice times an array, missing as a term: dx[..., 1::2] = … − dy[..., 0::2] * s."""
    span, shape = source.span(whole), _shape_of(target, source, atoms)
    atom = source.within(span) if isinstance(whole, (ast.BinOp, ast.UnaryOp)) else source.atom(whole)
    if not shape:
        return
    factors = [name for name, x in atoms.items() if _is_array(x) and _fits(x, shape)]
    alike = [text for text, known in slices.items() if known == tuple(shape)]
    for term in (f"{one} * {other}" for one in alike for other in factors):
        yield f"a term is missing, {term}", span, f"{atom} + {term}"
        yield f"a term is missing, −{term}", span, f"{atom} - {term}"


def _product_shape(a, b):
    """The shape of a @ b; None if they do not fit."""
    if a.shape[-1] != b.shape[-2] or (b.ndim > 2 and a.ndim > 2 and a.shape[:-2] != b.shape[:-2]):
        return None
    return (*(a.shape[:-2] or b.shape[:-2]), a.shape[-2], b.shape[-1])


def _differences(source, whole, target, atoms):
    """An array in a product that should be a difference or a sum."""
    for part in ast.walk(whole):
        one = source.within(source.span(part)) if hasattr(part, "end_lineno") and is_atom(part) else ""
        if _is_array(atoms.get(one)) and isinstance(part.ctx, ast.Load):
            for other, x in atoms.items():
                if other != one and _is_array(x) and x.shape == atoms[one].shape:
                    yield f"a factor is missing, {other}", part, f"({one} * {other})"
                    yield f"a term is missing, −{other}", part, f"({one} - {other})"
                    yield f"a term is missing, {other}", part, f"({one} + {other})"
                    if (x > 0).all():
                        yield f"a term is missing, −1/{other}", part, f"({one} - 1 / {other})"
                        yield f"a term is missing, 1/{other}", part, f"({one} + 1 / {other})"
                elif isinstance(x, SINGLE) and x not in (0, 1):
                    yield f"a factor is missing, {other}", part, f"({one} * {other})"


def _symmetric(source, part, atoms):
    """(X + Xᵀ)·Y for 2·X·Y, which is the same only if X is symmetric."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.MatMult, ast.Div)):
        text = source.within(source.span(part))
        without = re.sub(r"\b2(\.0)? ?\* ?", "", text, count=1)
        for name in {one.id for one in ast.walk(part) if isinstance(one, ast.Name)} if without != text else ():
            x = atoms.get(name)
            if _is_array(x) and x.ndim > 1 and x.shape[-1] == x.shape[-2]:
                transposed = f"{name}.T" if x.ndim == 2 else f"{name}.swapaxes(-1, -2)"
                both = re.sub(rf"(?<![\w.]){name}\b", f"({name} + {transposed})", without)
                yield f"2·{name} is {name} + {name}ᵀ only if {name} is symmetric", part, both


def _in_each_others_place(source, whole, target, atoms):
    """Two arrays of one shape, exchanged wherever they are: a·sin + b·cos for a·cos + b·sin."""
    text = source.within(source.span(whole))
    names = dict.fromkeys(part.id for part in ast.walk(whole) if isinstance(part, ast.Name))
    known = [name for name in names if _is_array(atoms.get(name)) or isinstance(atoms.get(name), SINGLE)]
    for name in known:
        both = re.compile(rf"\(1(?:\.0?)? - {name}\)|(?<![\w.]){name}\b")
        if len({len(match) == len(name) for match in both.findall(text)}) == 2:
            exchanged = both.sub(lambda match, p=name: f"(1 - {p})" if match[0] == p else p, text)
            yield f"{name} and 1 − {name} are in each other's place", whole, exchanged
    for one, other in itertools.combinations(known, 2):
        if np.shape(atoms[one]) == np.shape(atoms[other]):
            place_of = {one: other, other: one}
            exchanged = re.sub(rf"(?<![\w.])({one}|{other})\b", lambda m, place_of=place_of: place_of[m[0]], text)
            yield f"{one} and {other} are in each other's place", whole, exchanged


def _couplings(source, whole, target, atoms):
    """What a mean, a variance or a softmax gives back to every entry, missing where d is: d − x̂·mean(d·x̂), …"""
    of = "a term is missing, as {} gives it back to every entry"
    for part in ast.walk(whole):
        if not isinstance(part, ast.Name) or not _is_array(atoms.get(part.id)):
            continue
        d, shape = part.id, atoms[part.id].shape
        for axis, (other, x) in itertools.product((-1, 0, 1)[: len(shape)], atoms.items()):
            if other != d and _is_array(x) and x.shape == shape:
                along = f"axis={axis}, keepdims=True"
                yield of.format("a variance"), part, f"({d} - {other} * ({d} * {other}).mean({along}))"
                yield of.format("a length"), part, f"({d} - {other} * ({d} * {other}).sum({along}))"
                yield of.format("a common sum (in a softmax)"), part, f"({d} - ({d} * {other}).sum({along}))"
        for axis in (-1, 0, 1)[: len(shape)] + (PAIRS if len(shape) > 2 else ()):
            yield of.format("a mean"), part, f"({d} - {d}.mean(axis={axis}, keepdims=True))"
        for own in [name for name, g in atoms.items() if callable(g) and f"{name}(" in source.text]:
            yield f"a term is missing, −{own}({d})", part, f"({d} - {own}({d}))"


def _everywhere(source, part, atoms):
    """The same mistake more than once in a statement, or in a lambda: another name, another axis."""
    if not isinstance(part, (ast.stmt, ast.Lambda, ast.Tuple)) or isinstance(part, ast.stmt) and hasattr(part, "body"):
        return
    whole = part.body if isinstance(part, ast.Lambda) else part
    text = source.within(source.span(whole))
    for name in {one.id for one in ast.walk(whole) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}:
        word = re.compile(rf"(?<![\w.]){name}\b")
        known = atoms.get(name)
        if (_is_array(known) or isinstance(known, SINGLE)) and len(word.findall(text)) > 1:
            for other, value in atoms.items():
                alike = np.shape(value) == np.shape(known) and isinstance(value, int) == isinstance(known, int)
                if other != name and alike and not callable(value):
                    yield f"{other} belongs where {name} is", whole, word.sub(other, text)
            if not isinstance(known, (int, np.integer)):
                yield f"the sign of {name} is wrong, as a rotation goes back", whole, word.sub(f"(-{name})", text)
    compared = {source.within(source.span(one)) for one in ast.walk(whole) if isinstance(one, ast.Compare)}
    for condition in compared:                           # dx[dy < 0] = slope * dy[dy < 0]
        name, sign, number = condition.partition(" < ") if " < " in condition else condition.partition(" > ")
        if text.count(condition) > 1 and _is_array(atoms.get(name)):
            for other, value in atoms.items():
                if other != name and np.shape(value) == atoms[name].shape and not callable(value):
                    yield f"{other} belongs where {name} is", whole, text.replace(condition, f"{other}{sign}{number}")
    if len(re.findall(r"axis=", text)) > 1:
        for axis in ("0", "1", "-1"):
            changed = re.sub(r"axis=-?\d", f"axis={axis}", text)
            yield "they run over the wrong axis", whole, changed

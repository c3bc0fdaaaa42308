"""Changes that the syntax alone shows: indices, axes, operators, calls, the order of statements."""

import ast
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache

from mini_tf.gradcheck.planting.editing import parsed
from mini_tf.gradcheck.planting.mutations import Mutation, Source, whole_number
from mini_tf.gradcheck.reasons.kinds.formulas import (
    NUMPY,
    REDUCED,
    Changes,
    added,
    exchanged,
    is_atom,
    is_own_function,
    multiplied,
    names_read,
    reduced,
    texts_of_factors,
    transposed,
)
from mini_tf.gradcheck.verdicts import listed

NOT_ADDED = "it is set where it should add up"
OTHER_FUNCTIONS = [
    ("argmax", "argmin"), ("maximum", "minimum"), ("max", "min"), ("sin", "cos"), ("sinh", "cosh"), ("exp", "log"),
    ("sum", "mean"), ("zeros_like", "ones_like"), ("sqrt", "square"), ("amax", "amin"),
]  # fmt: skip
COMPARED = {ast.Gt: "<", ast.Lt: ">", ast.GtE: "<=", ast.LtE: ">=", ast.Eq: "!=", ast.NotEq: "=="}
SIGN = {ast.Gt: ">", ast.Lt: "<", ast.GtE: ">=", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
AXES = "0", "1", "-1", "-2", "(0, 1)", "(0, 2)", "(0, 2, 3)", "(1, 2)", "(2, 3)", "None"
SLICE = re.compile(r"\b([a-z]\w*) ?: ?([a-z]\w*)\b(?=[],])")           # start:stop
EINSUM = re.compile(r"[\w,. ]+->[\w.]*")
SIGMOID = re.compile(                                    # s = 1/(1 + np.exp(-x)), s = sigmoid(x)
    r"\b(\w+) ?= ?(?:1\.?0? ?/ ?\(1\.?0? ?\+ ?(?:\w+\.)?exp\(-(\w+)\)\)|(?:\w+\.)?(?:sigmoid|expit)\((\w+)\))"
)
SOFTMAX = re.compile(r"([\w.]+) \* \(([\w.]+) - \((?:\1 \* \2|\2 \* \1)\)\.sum\(([^()]*)\)\)")
HALF_OF_BOTH = re.compile(r"([\w.]+) - \((.+) \* \1\)\.sum\(([^()]*)\)")
LOG_SOFTMAX = re.compile(r"([\w.]+) - ([\w.]+) \* \1\.sum\(([^()]*)\)")
SOLVING = {"solve", "inv", "solve_triangular", "lstsq", "pinv"}
CALLED = re.compile(r"(?<!def )\b(\w+)\([A-Za-z_][\w. @\[\]\"']*((?:, [\w.]+)*)\)")
BOUNDS = {"minimum", "maximum", "clip"}
JOINED = {"concatenate", "hstack", "vstack", "dstack", "stack", "column_stack", "block"}


def of_indices(source: Source, part: ast.AST) -> Changes:
    """An index that is off, or too many."""
    if isinstance(part, ast.Subscript):
        yield from _of_index(source, part.slice)
        if isinstance(part.ctx, ast.Load):
            if getattr(part.value, "attr", "") not in ("c_", "r_", "s_"):            # of np, which only take an index
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
        yield "the order of a product is wrong", part, f"{source.atom(part.right)} @ {source.atom(part.left)}"
        first, last = part.left.left if isinstance(part.left, ast.BinOp) else None, source.atom(part.right)
        if first is not None and transposed(source.atom(first)) == last:                 # A.T @ dy @ A
            changed = f"{last} @ {source.atom(part.left.right)} @ {source.atom(first)}"
            yield "the transpose belongs to the other one", part, changed
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "reshape":
        array, count = source.atom(part.func.value), len(part.args)
        given, (start, end) = source.text, source.span(part.func.value)
        like = [source.within(source.span(one.value)) for one in part.args if getattr(one, "attr", "") == "shape"]
        calls = [call for call in CALLED.findall(given) if f"def {call[0]}(" in given]
        calls += [(g, f", {other}.shape[1]") for g, others in calls if others.count(",") == 1 for other in like]
        for g, others in dict.fromkeys(calls):           # split_heads(d, H), as elsewhere in the file
            yield f"{g} belongs where reshape is", part, f"{g}({given[start:end].strip('()')}{others})"
        for axes in _orders(count):
            yield f"the axes need another order, {axes}", part, f"{text}.transpose{axes}"
        for first in range(1, count - 1):                # heads: split into (B, T, H, m), then (B, H, T, m)
            a, b = part.args[first : first + 2]
            start, end = source.span(part)
            split, exchange = exchanged(source, a, b)
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
    shaped = reduced(part, {"sum", "mean"})
    if not isinstance(shaped, ast.Call) or getattr(shaped.func, "attr", "") != "reshape":
        return
    over = [k.value for k in part.keywords if k.arg == "axis"] + [one for one in part.args if one is not shaped]
    axis = whole_number(over[0]) if over else None
    for other in (axis - 1, axis + 1) if axis is not None else ():
        if min(axis, other) >= 0 and max(axis, other) < len(shaped.args):
            split, exchange = exchanged(source, *shaped.args[min(axis, other) : max(axis, other) + 1])
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
            yield _einsum_with(terms, k, "".join(swapped))
    every = sorted({letter for term in terms for letter in term if letter.isalpha()})
    for k, term in [*enumerate(terms)][::-1]:            # the result first
        letters = term.strip()
        for i, other in itertools.product(range(len(letters)), every):
            if other not in letters:
                yield _einsum_with(terms, k, letters[:i] + other + letters[i + 1 :])


def _einsum_with(terms, k, term):
    *inputs, output = [*terms[:k], term, *terms[k + 1 :]]
    return ",".join(inputs) + "->" + output


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
        for end in (index.lower, index.upper):           # d: and :-d, for :d and -d:
            if end is not None and [index.lower, index.upper].count(None) == 1:
                minus = isinstance(end, ast.UnaryOp) and isinstance(end.op, ast.USub)
                text, other = source.within(source.span(end)), source.atom(end.operand if minus else end)
                for bound in (text, other if minus else f"-{other}"):
                    yield "it is the other part", index, f":{bound}" if end is index.lower else f"{bound}:"
    elif isinstance(index, ast.Tuple):
        for k, element in enumerate(index.elts):
            yield from _of_index(source, element)
            if isinstance(element, ast.Slice) and not (element.lower or element.upper):
                for other in index.elts[:k] + index.elts[k + 1 :]:
                    if is_atom(other):
                        rows = f"np.arange(len({source.within(source.span(other))}))"
                        yield "every row is taken, not each row's own", element, rows
        for a, b in zip(index.elts, index.elts[1:]):
            yield "two indices are exchanged", *exchanged(source, a, b)
            if isinstance(a, (ast.Name, ast.BinOp)) and isinstance(b, (ast.Name, ast.BinOp)):
                where = source.span(a)[0], source.span(b)[1]
                for by in ("", " + 1", " - 1"):          # D[i, j] for D[i - 1, j - 1]
                    ends = [e.left if not by and isinstance(e, ast.BinOp) else e for e in (a, b)]
                    both = ", ".join(f"{source.within(source.span(e))}{by}" for e in ends)
                    yield "two indices are off by one", where, both
        text = source.within(source.span(index))
        if text.count("::-1") > 1:
            yield "the axes are reversed", index, text.replace("::-1", ":")
        if found := re.search(r"(?<![\w\])]):-(\d+)\b", text):            # dxp[:, :-2, :-2], of a padding of 1
            cropped, half = found[0], int(found[1]) // 2
            yield "it is cropped at the wrong side", index, text.replace(cropped, f"{found[1]}:")
            if half:
                yield "it is cropped at the wrong side", index, text.replace(cropped, f"{half}:-{half}")
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


def of_functions(source: Source, part: ast.AST) -> Changes:
    """cos for sin, a sum for a mean"""
    name, other_way = _name_of(part), [(other, one) for one, other in OTHER_FUNCTIONS]
    for one, better in [*OTHER_FUNCTIONS, *other_way]:
        if name == one:
            end = source.span(part.func)[1]
            yield f"it is {better}, not {name}", (end - len(name), end), better


def _name_of(part):
    """sin of a call of np.sin or sin; "" if it is no call"""
    func = getattr(part, "func", None)
    return getattr(func, "attr", getattr(func, "id", ""))


def of_outputs(source: Source, part: ast.AST) -> Changes:
    """`out=x`, which overwrites x"""
    for given in [one.value for one in getattr(part, "keywords", ()) if one.arg == "out"]:
        text, x = source.within(source.span(part)), source.within(source.span(given))
        yield f"it overwrites {x}, which is needed", part, re.sub(rf", out={re.escape(x)}(?=[,)])", "", text)


def _of_calls(source, part):
    """Another function, arguments exchanged, an axis, keepdims."""
    if not isinstance(part, ast.Call):
        return
    yield from of_functions(source, part)
    yield from of_outputs(source, part)
    name = _name_of(part)
    if name == "zeros_like" and len(part.args) == 1 and is_atom(part.args[0]):
        x = source.within(source.span(part.args[0]))
        yield f"it begins as zeros, and not as {x}", part, f"{x}.copy()"
    for dtype in [one for one in part.keywords if one.arg == "dtype"]:
        yield "the dtype is wrong", dtype.value, "float"
    if name == "tile" and len(part.args) == 2 and isinstance(part.args[1], ast.Tuple):
        repeated = source.atom(part.args[0])
        for axis, times in enumerate(part.args[1].elts):
            count = source.within(source.span(times))
            repeated += "" if count == "1" else f".repeat({count}, axis={axis})"
        yield "each entry is repeated, not the whole", part, repeated
    if name == "zeros_like" and len(part.args) == 1:
        text = source.within(source.span(part))
        yield "it has the dtype of a mask, or of whole numbers", part, f"{text[:-1]}, float)"
    if name in ("maximum", "minimum") and len(part.args) == 2:
        value, bounds = part.args[0], ("0, 1", "-1, 1")
        for both in bounds:
            yield "a bound is missing", part, f"np.clip({source.within(source.span(value))}, {both})"
    if len(part.args) == 1 and not part.keywords and name not in ("range", "len", "reversed", "zip", "enumerate"):
        yield f"{name} is too much", part, source.atom(part.args[0])
    if (bounded := reduced(part, BOUNDS)) is not None:
        yield f"{name} is too much", part, source.atom(bounded)
    for one in part.args if name in JOINED else ():
        if isinstance(one, ast.Name) and f"{one.id}.append(" in source.text:
            yield "its order is not reversed", one, f"{one.id}[::-1]"
    for value in part.args if name not in {*REDUCED, "range"} else ():   # -np.sum(x) is tried as a whole
        yield "a sign is missing", value, f"-{source.atom(value)}"
    for a, b in zip(part.args, part.args[1:]):
        yield "two arguments are exchanged", *exchanged(source, a, b)
    if name == "sum" and (x := reduced(part)) is not None:
        of = "trace" if len(part.args) + len(part.keywords) == (x in part.args) else "diag"
        yield "only the diagonal counts", part, f"np.{of}({source.within(source.span(x))})"
    if name == "copy" and (triangle := re.search(r"np\.(tril|triu)\((?:[^()]|\([^()]*\))*?(, -?1)?\)", source.text)):
        x = part.func.value if not part.args else part.args[0]
        for by in {triangle[2] or "", "", ", -1", ", 1"}:
            yield "only a triangle counts", part, f"np.{triangle[1]}({source.within(source.span(x))}{by})"
    for value in [*part.args, *(k.value for k in part.keywords)]:
        if isinstance(value, (ast.Tuple, ast.List)):
            for a, b in itertools.combinations(value.elts, 2):
                words = "two arrays are joined in the wrong order" if name in JOINED else "two axes are exchanged"
                words = "two entries are exchanged" if name in ("array", "asarray") else words
                yield words, *exchanged(source, a, b)
    if name in ("transpose", "moveaxis", "swapaxes"):
        for a, b in itertools.combinations(part.args, 2):
            yield "two axes are exchanged", *exchanged(source, a, b)
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
        elif re.search(r", keepdims=True$", inside):
            yield "keepdims=True is too much", part, f"{inside.removesuffix(', keepdims=True')})"
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
    if not is_own_function(part):
        return
    for turned in [one for one in ("[::-1]", "[:, ::-1]") if one in source.text]:
        for value in part.args:
            yield "its order is not reversed", value, f"{source.atom(value)}{turned}"
        yield "its order is not reversed", part, f"{source.within(source.span(part))}{turned}"
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


def late_bindings(source: Source, function: ast.FunctionDef | ast.Lambda) -> Changes:
    """h=h, for a function that is made in a loop which changes h: when it runs, h is what the last round has left."""
    if not function.args.args:
        return
    loops = [one for one in ast.walk(parsed(source.text)) if isinstance(one, ast.For)]
    loops = [one for one in loops if one.lineno < function.lineno <= one.end_lineno]
    inside = {id(one) for one in ast.walk(function)}
    changed = {one.id for loop in loops for one in ast.walk(loop) if isinstance(one, ast.Name)
               and isinstance(one.ctx, ast.Store) and id(one) not in inside}             # fmt: skip
    own = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    last = (function.args.defaults or function.args.args)[-1]
    names, text = sorted((names_read(function) - own) & changed), source.within(source.span(last))
    for name in names:
        words = f"when it runs, {name} is what the last round of the loop has left: keep it, {name}={name}"
        yield words, last, f"{text}, {name}={name}"
    if len(names) > 1:
        words = f"when it runs, {listed(names)} are what the last round of the loop has left: keep them"
        yield words, last, ", ".join([text, *(f"{name}={name}" for name in names)])


def _dict_of(target):
    """The name of the dict in grads["b" + str(L)] and grads[f"b{L}"], or None"""
    key = getattr(target, "slice", ast.Constant(None))
    has_text = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(key))
    return getattr(target.value, "id", None) if has_text and not isinstance(key, ast.Constant) else None


def of_statements(source: Source, part: ast.AST) -> Changes:
    """= for +=, and the reverse."""
    if isinstance(part, ast.Assign) and len(part.targets) == 1 and not isinstance(part.targets[0], ast.Tuple):
        target, value = (source.within(source.span(x)) for x in (part.targets[0], part.value))
        known = _dict_of(part.targets[0]) or target      # grads["b" + str(L)], after grads["b" + str(l)]
        if re.search(rf"(?<![\w.]){re.escape(known)}\b[^=\n]*= ", source.text[: source.span(part)[0]]):
            yield "it is set anew, and what it was is lost", part, "pass"
        again = target in names_read(part.value)
        if not again:
            yield NOT_ADDED, part, f"{target} += {value}"
            yield "it is set where it should be taken away", part, f"{target} -= {value}"
        if isinstance(part.value, ast.BinOp) and value.startswith(f"{target} + "):
            words = f"{target} is a new array: += adds to the one that it was"
            yield words, part, f"{target} += {value.removeprefix(f'{target} + ')}"
        adds = target in map(ast.unparse, added(part.value)) or f"_like({target})" in value
        if isinstance(part.targets[0], ast.Name) and not adds:
            yield NOT_ADDED, part, f"{target} = {target} + {value}"      # of an array that somebody else has, too
        if is_atom(part.value):
            yield f"{value} itself is changed below: a copy is missing", part.value, f"{value}.copy()"
        yield from _added_at(source, part, part.targets[0])
    elif isinstance(part, ast.Expr) and _name_of(part.value) == "clip":
        yield "it is clipped, which is no gradient", part, "pass"
    elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Tuple):
        for a, b in itertools.combinations(part.value.elts, 2):
            yield "two results are exchanged", *exchanged(source, a, b)
    elif isinstance(part, ast.AugAssign):
        target, value = (source.within(source.span(x)) for x in (part.target, part.value))
        yield from _of_a_part(source, part)
        yield from _of_differences(source, part)
        if isinstance(part.op, (ast.Add, ast.Sub)):
            yield from _added_at(source, part, part.target)
        if isinstance(part.op, (ast.Mult, ast.Div)):
            yield "it is divided or multiplied the wrong way", part, (
                f"{target} {'/' if isinstance(part.op, ast.Mult) else '*'}= {value}")  # fmt: skip


def _of_differences(source, part):
    """d[:-1] -= g beside d[1:] += g: of x[1:] - x[:-1] the other side"""
    target, value = (source.within(source.span(x)) for x in (part.target, part.value))
    signs = {ast.Add: "-=", ast.Sub: "+="}
    for side, other in (("1:", ":-1"), (":-1", "1:")):
        found = re.search(rf"(?<=[\[ ]){side}(?=[],])", target) if type(part.op) in signs else None
        if found and isinstance(part.target, ast.Subscript):
            mirrored = f"{target[: found.start()]}{other}{target[found.end() :]} {signs[type(part.op)]} {value}"
            yield "the other side of a difference is missing", part, f"{source.within(source.span(part))}; {mirrored}"


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
    """A loop over lists that should run from the end to the start; a sum that should begin anew in each round."""
    if isinstance(part, ast.For):
        last, text = part.body[-1], source.within(source.span(part.body[-1]))
        sums = dict.fromkeys(one.targets[0].id for one in part.body if isinstance(one, ast.Assign)
                             and isinstance(one.targets[0], ast.Name) and one.targets[0].id in names_read(one.value))
        for name in sums if not hasattr(last, "body") else ():
            yield f"{name} is not set to 0 again", last, f"{text}; {name} = np.zeros_like({name})"
        text = source.within(source.span(part.iter))
        if not re.match(r"reversed\(|range\(", text):
            yield "the order is wrong", part.iter, f"reversed(list({text}))"


def not_added(source: Source, part: ast.AST, sums: Collection[str]) -> Changes:
    """A backward that is called, and what it gives back is not used: dx = dx + self.router.backward(dw)"""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        text = source.within(source.span(part))
        for name in sums:
            yield "what comes back is not added", part, f"{name} = {name} + {text}"


def of_order(source: Source, block: ast.AST) -> Iterator[Mutation]:
    """Mutations: a statement before the one that changes, in place, what it reads."""
    body = getattr(block, "body", None)
    for k, late in enumerate(body if isinstance(body, list) else ()):
        read = {one.id for one in ast.walk(late) if isinstance(one, ast.Name)}
        for early in body[:k]:
            array = _changed_in_place(early)
            if array in read:
                between = source.text[source.span(early)[0] : source.span(late)[0]].rstrip()
                yield _in_the_other_order(source, early, late, late, array, source.within(source.span(late)), between)


def of_a_later_order(source: Source, block: ast.AST) -> Iterator[Mutation]:
    """Mutations: a statement such as h = h * decay behind those that should read the old h."""
    body = getattr(block, "body", None)
    for k, early in enumerate(body if isinstance(body, list) else ()):
        name = _overwritten(early)
        readers = [late for late in body[k + 1 :] if name and name in names_read(late)]
        for last in [late for late in readers if not isinstance(late, ast.Return)][::-1]:
            between = source.text[source.span(body[k + 1])[0] : source.span(last)[1]]
            first = source.within(source.span(early))
            yield _in_the_other_order(source, early, readers[0], last, name, between, first)


def of_neighbours(source: Source, block: ast.AST) -> Iterator[Mutation]:
    """Mutations of two neighbouring lines: their formulas exchanged, ds = dm * u and du = dm * s; or the lines."""
    body = getattr(block, "body", None)
    for one, other in zip(body, body[1:]) if isinstance(body, list) else ():
        pair = one, other
        if all(isinstance(line, ast.Assign) and isinstance(line.value, (ast.BinOp, ast.Call)) for line in pair):
            (start, end), text = exchanged(source, one.value, other.value)
            change = source.mutation(one, "the formulas of two lines are exchanged", start, end, text)
            targets, values = ([source.within(source.span(part)) for part in parts] for parts in
                               ((one.targets[0], other.targets[0]), (one.value, other.value)))  # fmt: skip
            shown = ("; ".join(f"{t} = {v}" for t, v in zip(targets, some)) for some in (values, values[::-1]))
            yield replace(change, shown=tuple(shown))
        set_there = {part.id for part in ast.walk(other) if isinstance(getattr(part, "ctx", None), ast.Store)
                     and isinstance(part, ast.Name)}  # fmt: skip
        if not any(hasattr(line, "body") for line in pair) and names_read(one) & set_there:
            yield in_the_wrong_order(source, one, other)


def in_the_wrong_order(source: Source, one: ast.stmt, other: ast.stmt) -> Mutation:
    """The Mutation that exchanges two neighbouring statements"""
    (start, end), text = exchanged(source, one, other)
    change = source.mutation(one, "two lines are in the wrong order", start, end, text)
    first, then = (" ".join(source.within(source.span(line)).split()) for line in (one, other))
    return replace(change, shown=(f"{first}; {then}", f"{then}; {first}"))


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
    factors = multiplied(part)
    if len(factors) != 3:
        return
    texts = [source.within(source.span(factor)) for factor in factors]
    for a, one_minus, d in itertools.permutations(texts):
        if one_minus.replace(" ", "").strip("()") == f"1-{a}".replace(" ", ""):
            for axis in (-1, 0):
                right = f"{a} * ({d} - ({d} * {a}).sum(axis={axis}, keepdims=True))"
                yield "it is the diagonal of softmax's Jacobian alone", part, right


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
    texts = texts_of_factors(source, part)
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
    texts = texts_of_factors(source, part)
    for s, x in _sigmoids(source.text) if len(texts) > 1 else ():
        if s in texts:
            gates = [i for i, text in enumerate(texts) if text.replace(" ", "").replace("1.0-", "1-") == f"(1-{s})"]
            rest = [one for i, one in enumerate(texts) if i not in (texts.index(s), *gates[:1])]
            words = f"the derivative of {x}·{s} belongs there, {s} + {x}·{s}·(1 − {s}): {s}, too, depends on {x}"
            yield words, part, " * ".join([*rest, f"({s} + {x} * {s} * (1 - {s}))"])


@lru_cache(16)
def _sigmoids(text):
    """[(s, x)] of all s = sigmoid(x) in a file, where other functions may have an s, too"""
    return list(dict.fromkeys((s, of_exp or of_call) for s, of_exp, of_call in SIGMOID.findall(text)))


OF_SYNTAX = (                                            # kinds of changes for which no values are needed
    _of_groups, _of_shape, _of_operators, _over_a_slice, _of_calls, _of_arguments, of_statements, _of_loops,
    _diagonal, _of_log_softmax, _of_gates, _of_swish,
)  # fmt: skip


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

"""Changes that add a factor, or a sign, a transpose, a 1."""

import ast
import itertools
import re

from mini_tf.gradcheck.measuring.subject import is_zeros_and_ones
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.kinds.formulas import (
    REDUCED,
    SINGLE,
    SIZE,
    Atoms,
    Changes,
    array_in,
    exchanged,
    first_of_each_shape,
    fits,
    is_array,
    is_own_function,
    names_read,
    plus_or_minus,
    shape_of,
)

import numpy as np

PAIRS = (0, 1), (0, 2), (0, 2, 3), (1, 2), (2, 3)
MASKED = re.compile(r"where\(([\w.]+), (\w+), ([\w.]+) ?\* ?\2\)")      # np.where(positive, x, slope * x)
LEAKY = re.compile(r"where\((\w+) > 0, \1, (\w+|[\d.]+) ?\* ?\1\)")        # np.where(x > 0, x, slope * x)
OF_RELU = "the derivative of a ReLU, or a mask"
UPSTREAM = "dy", "dout", "dloss", "d", "g", "grad", "grad_output", "upstream", "delta"      # the usual names


def _factors(name, value, shape, larger=False, sizes=True):
    """Factors made of one array or number, for an array of that shape: (words, "* x" or "/ x")

    sizes: with False no sizes of the array, because another array of this shape has the same
    """
    for words, factor, *often in _all_factors(name, value, shape, larger, sizes):
        if factor[0] == "/" and name in UPSTREAM:
            continue                                     # a backward never divides by what it is given
        factor_in_words = factor[2:] if factor[0] == "*" else f"1/{factor[2:]}"
        yield f"{words} is missing, {factor_in_words}" + "".join(f" ({remark})" for remark in often), factor


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
        if fits(x, shape, larger):
            yield (missing, f"* {text}", *[OF_RELU] * text.endswith(" > 0)"))
            if x.dtype != bool and (not is_array(x) or (x > 0).all()):          # a norm, a standard deviation
                yield missing, f"/ {text}"
            if is_array(x):
                if (x >= 0).all() and (x <= 1).all():    # a sigmoid, a gate, a probability
                    yield missing, f"* (1 - {text})"
                    yield missing, f"* {text} * (1 - {text})", "of a sigmoid, this is the derivative"
                if (np.abs(x) <= 1).all():
                    yield missing, f"* (1 - {text} ** 2)", "of a tanh, this is the derivative"
                yield missing, f"* ({text} > 0)", OF_RELU
                yield missing, f"/ {text}**2" if (x > 0).all() else f"* np.sign({text})"
                yield missing, f"/ (1 + np.exp(-{text}))", "the derivative of a softplus, or a sigmoid"
    if is_array(value) and shape is not None and value.shape == tuple(shape):
        for axis in (-1, 0):
            yield "a factor", f"* {name}.sum(axis={axis}, keepdims=True)"
    if value.ndim and sizes:
        yield "a factor", f"/ {name}.shape[0]"
        yield "a factor", f"/ {name}.size"
        yield "a scale", f"/ np.sqrt({name}.shape[-1])"


def of_a_whole(source: Source, whole: ast.expr, target: ast.expr | None, atoms: Atoms) -> Changes:
    """A sign, a factor, a term or a transpose that is missing from a whole right side."""
    span, atom, shape = source.span(whole), source.atom(whole), shape_of(target, source, atoms)
    yield "a sign is missing", span, f"-{atom}"
    if not isinstance(whole, ast.Name) or shape is None or len(shape) == 2:
        yield "a transpose is missing", span, f"{atom}.T"
    for axis in (0, -1, (0, 1)):
        yield "an axis is not summed", span, f"{atom}.sum(axis={axis})"
    for axis in (0, -1, *PAIRS):
        yield "the mean is not taken away", span, f"{atom} - {atom}.mean(axis={axis}, keepdims=True)"
    if isinstance(target, ast.Subscript):                # dx[x < 0] = alpha
        index, of = source.within(source.span(target.slice)), shape_of(target.value, source, atoms)
        for name, value in sorted(atoms.items(), key=lambda item: item[0] not in UPSTREAM):
            if of and is_array(value) and value.shape == of:
                yield f"a factor is missing, {name}[{index}]", span, f"{atom} * {name}[{index}]"
    if isinstance(target, ast.Subscript) and isinstance(whole, ast.Constant):        # beta[-1] = 0
        for name, value in atoms.items():
            if is_array(value):
                yield f"{name} belongs where {whole.value} is", span, name
    first_of_a_shape = first_of_each_shape(atoms)
    for name, value in atoms.items():
        if not callable(value):
            sizes = first_of_a_shape[np.shape(value)] == name
            factors = _factors(name, value, shape, larger=shape == (), sizes=sizes)      # a rate, one for each row
            yield from ((words, span, f"{source.product(whole)} {factor}") for words, factor in factors)
            itself = name == (target and source.within(source.span(target)))         # dx + dx is 2·dx
            if is_array(value) and value.shape == (shape or value.shape) and not itself:
                yield from plus_or_minus(name, span, atom)
        if isinstance(value, SINGLE) and value > 0 or is_array(value) and value.shape == shape and (value > 0).all():
            yield f"a term is missing, −1/{name}", span, f"{atom} - 1 / {name}"
            yield f"a term is missing, 1/{name}", span, f"{atom} + 1 / {name}"
        if shape == () and isinstance(value, SINGLE):    # d - smooth / C, p - label
            yield from plus_or_minus(name, span, atom)
        if is_array(value) and shape and len(shape) == 2 and value.shape == shape[:1]:
            yield f"a term is missing, {name}[:, None]", span, f"{atom} + {name}[:, None]"
        if is_array(value) and shape and value.ndim and value.shape != tuple(shape) and fits(value, shape):
            yield f"a term is missing, {name}", span, f"{atom} + {name}"
    for x, slope in LEAKY.findall(source.text):          # in the whole file: often a forward, or a helper, has it
        leaky = f"np.where({x} > 0, 1.0, {slope})"
        words = f"a factor is missing, {leaky} (the derivative of a leaky ReLU)"
        yield words, span, f"{source.product(whole)} * {leaky}"
    for factor in ("2", "0.5"):
        yield f"a factor is missing, {factor}", span, f"{factor} * {atom}"
    yield from _over_two_numbers(span, atom, atoms)
    yield from _of_each_entry(source, whole, target, atoms)


def of_upstream(source: Source, statement: ast.AST, function: ast.AST, atoms: Atoms) -> Changes:
    """dy = dy * mask before the first statement that reads dy, if others read it, too"""
    if not isinstance(statement, ast.stmt) or hasattr(statement, "body") or not getattr(function, "body", None):
        return
    for name in [argument.arg for argument in function.args.args if argument.arg not in ("self", "ctx")][:1]:
        reading = [one for one in ast.walk(function) if isinstance(one, ast.stmt) and not hasattr(one, "body")
                   and name in names_read(one)]  # fmt: skip
        if len(reading) > 1 and statement is min(reading, key=lambda one: one.lineno) and name in atoms:
            text, shape = source.within(source.span(statement)), np.shape(atoms[name])
            for other, x in atoms.items():
                for factor in (other, f"{other}[:, None]", f"{other}[..., None]")[: 1 + 2 * ("[" not in other)]:
                    if isinstance(x, np.ndarray) and is_zeros_and_ones(x) and fits(_spread(x, factor), shape):
                        yield f"a factor is missing, {factor}", statement, f"{name} = {name} * {factor}; {text}"


def _spread(x, text):
    """mask[:, None] of a mask"""
    return x[:, None] if x.ndim and text.endswith("[:, None]") else x[..., None] if text.endswith("[..., None]") else x


def of_quotients(source: Source, part: ast.AST, atoms: Atoms) -> Changes:
    """A factor that is missing in d /= n"""
    if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Div):
        target, n = source.within(source.span(part.target)), source.atom(part.value)
        for name, value in atoms.items():
            if not callable(value):
                for words, factor in _factors(name, value, shape_of(part.target, source, atoms)):
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


def of_loop_entries(source: Source, whole: ast.expr, counters: dict[str, range], atoms: Atoms) -> Changes:
    """A factor cont[t] that is missing in a loop over t"""
    text = source.within(source.span(whole))
    for counter, lines in counters.items():
        if whole.lineno in lines and f"[{counter}]" not in text:
            for name, value in atoms.items():
                if isinstance(value, np.ndarray) and value.ndim and name[0] != "(":
                    factor = f"{name}[{counter}]"
                    yield f"a factor is missing, {factor}", whole, f"{source.product(whole)} * {factor}"


def _inside_a_sum(source, part, atoms):
    """A factor that is missing inside x.sum(…)"""
    if inside := array_in(part):
        shape = shape_of(inside, source, atoms)
        for name, x in atoms.items():
            if shape and is_array(x) and fits(x, shape):
                yield from plus_or_minus(name, inside, source.atom(inside), True)
            if shape and not callable(x):
                for words, factor in _factors(name, x, shape, larger=1 in shape):
                    if factor in (f"* {name}", f"* {name}[:, None]", f"* {name}[..., None]", f"* np.sign({name})"):
                        yield words, inside, f"({source.product(inside)} {factor})"


def _of_listed(source, part, atoms):
    """A sign, a factor or a term of one of the arrays in np.concatenate([dz, dr, dn], axis=1)"""
    for one, other in itertools.combinations(_listed_in(part), 2):
        yield "two arrays are joined in the wrong order", *exchanged(source, one, other)
    for element in _listed_in(part):
        shape = shape_of(element, source, atoms)
        yield "a sign is missing", element, f"-{source.atom(element)}"
        for name, x in atoms.items():
            if shape and not callable(x):
                factors = _factors(name, x, shape)
                yield from ((words, element, f"{source.product(element)} {factor}") for words, factor in factors)
            if shape is not None and not callable(x) and np.shape(x) == shape:
                yield from plus_or_minus(name, element, source.atom(element))


def _of_entries(source, part, atoms):
    """beta[t + 1], where E[t + 1] belongs, too"""
    if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and isinstance(part.value, ast.Name):
        text, array, index = (source.within(source.span(one)) for one in (part, part.value, part.slice))
        others = re.findall(rf"(?<![\w.]){array}\[(\w+)\]", source.text)
        for other in dict.fromkeys(others):              # dr[home] - dr[away]
            if other != index and is_array(atoms.get(array)) and not other.isdigit():
                yield from plus_or_minus(f"{array}[{other}]", part, text, True)
        if is_array(atoms.get(array)) and ":" not in index:
            for name, x in atoms.items():
                if name != array and is_array(x) and x.ndim == atoms[array].ndim:
                    yield from plus_or_minus(f"{name}[{index}]", part, text, True)


def _of_indexed(source, part, atoms):
    """(dout / count[:, None])[ids] for dout[ids]"""
    if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load) and isinstance(part.slice, ast.Name):
        array, shape = part.value, shape_of(part.value, source, atoms)
        for name, x in atoms.items():
            if shape and isinstance(x, np.ndarray):
                for words, factor in _factors(name, x, shape):
                    yield words, array, f"({source.product(array)} {factor})"


def _of_what_is_given(source, part, atoms):
    """A factor of what a function is given: np.exp(s / temperature), kl_back(g * beta), np.add.at(dE, ids, d * mask)"""
    if not isinstance(part, ast.Call):
        return
    called, factors = ast.unparse(part.func), []
    if called.endswith(".at") and len(part.args) == 3:   # which may be broadcast there
        value, shape = part.args[2], shape_of(part.args[2], source, atoms)
        factors = [(value, *factor) for name, x in atoms.items() if isinstance(x, np.ndarray)
                   for factor in _factors(name, x, shape, larger=True)]  # fmt: skip
    elif len(part.args) == 1 and re.search(r"\b(exp|log|tanh)$", called):
        numbers = [name for name, x in atoms.items() if isinstance(x, SINGLE)]
        factors = [(part.args[0], words, factor) for name in numbers for words, factor in _times_and_over(name)]
    elif is_own_function(part):
        for value in part.args:
            text, shape = source.within(source.span(value)), shape_of(value, source, atoms)
            for name, x in atoms.items() if shape is not None else ():
                if isinstance(x, SINGLE) or (is_array(x) and fits(x, shape, larger=1 in shape) and name != text):
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
                    yield from plus_or_minus(name, value, source.atom(value))


def _of_sides(source, part, atoms):
    """A factor that is missing from one term of a sum, or one side of a matrix product; a square of a divisor"""
    if not isinstance(part, ast.BinOp):
        return
    sums, first_of_a_shape = isinstance(part.op, (ast.Add, ast.Sub)), first_of_each_shape(atoms)
    for side in (part.left, part.right) if sums else ():
        span, atom, shape = source.span(side), source.atom(side), shape_of(side, source, atoms)
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
        shape = shape_of(side, source, atoms)
        for name, value in atoms.items():
            if shape and is_array(value):
                yield from ((words, side, f"({source.product(side)} {factor})") for words, factor in
                            _factors(name, value, shape) if factor in (f"* {name}", f"* {name}[:, None]"))  # fmt: skip
    if isinstance(part.op, ast.Div) and not isinstance(part.right, ast.Constant):
        yield "it should be divided by the square", part.right, f"{source.atom(part.right)} ** 2"
        root = f"np.sqrt({source.within(source.span(part.right))})"
        yield "it should be divided by the square root", part.right, root


def _of_leaky(source, part, atoms):
    """np.where(z > 0, 1.0, 0.1) for z > 0, and dz[z < 0] *= 0.1 for dz[z < 0] = 0"""
    text, slopes = source.within(source.span(part)), dict.fromkeys(slope for _, slope in LEAKY.findall(source.text))
    if isinstance(part, ast.Compare) and len(part.ops) == 1 and text.endswith(" > 0"):
        for slope in slopes:
            leaky = f"np.where({text}, 1.0, {slope})"
            yield f"{leaky} belongs where {text} is (the derivative of a leaky ReLU)", part, leaky
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):    # d * self.positive
        sides = [source.within(source.span(side)) for side in (part.left, part.right)]
        for mask, _, slope in MASKED.findall(source.text) if len({*sides}) == 2 else ():
            if mask in sides:
                d = next(side for side in sides if side != mask)
                leaky = f"np.where({mask}, {d}, {slope} * {d})"
                yield f"{leaky} belongs there (the derivative of a leaky ReLU)", part, leaky
    if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Subscript) and _is_zero(part.value):
        target = source.within(source.span(part.targets[0]))
        numbers = [one for slope in slopes for one in (slope, *re.findall(rf"\b{slope} ?= ?([\d.]+)", source.text))]
        for number in dict.fromkeys(numbers):
            yield f"a leaky ReLU has the slope {number} there", part, f"{target} *= {number}"


def _is_zero(part):
    return isinstance(part, ast.Constant) and part.value == 0


def _of_gates(source, part, atoms):
    """s + z * s * (1 - s), the derivative of z·σ(z), for s"""
    text = source.within(source.span(part))
    s = atoms.get(text) if isinstance(getattr(part, "ctx", None), ast.Load) else None
    if is_array(s) and (s > 0).all() and (s < 1).all():
        for z, x in atoms.items():
            if is_array(x) and x.shape == s.shape and z != text and z[0] != "(":
                term = f"{z} * {text} * (1 - {text})"
                yield f"a term is missing, {term}", part, f"({text} + {term})"


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
            yield from plus_or_minus(number, part, whole, True)
    if isinstance(part.op, (ast.Mult, ast.Pow)):
        yield "a 1 is missing", part, f"(1 - {whole})"
        yield "a 1 is missing", part, f"({whole} - 1)"
        yield "a 1 is missing", part, f"(1 + {whole})"


def _of_sums(source, part, atoms):
    """(x * y).sum(…) for x.sum(…) * y, and for x.sum() * y.mean()"""
    if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
        return
    words = "it is the sum of a product, not a product of sums"
    for call, other in ((part.left, part.right), (part.right, part.left)):
        x, y = array_in(call), array_in(other)
        if x is not None and isinstance(call.func, ast.Attribute) and call.func.attr in REDUCED:
            (start, end), (first, last) = source.span(call), source.span(x)
            within = f"({source.product(x)} * {source.product(other if y is None else y)})"
            yield words, part, source.text[start:first] + within + source.text[last:end]


def _of_means(source, part, atoms):
    """d * w[:, None] for d / len(w): of a weighted mean each row has its weight"""
    if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Div):
        return
    if SIZE.fullmatch(source.within(source.span(part.right))) or shape_of(part.right, source, atoms) == ():
        left = source.product(part.left)
        for name, x in atoms.items():
            if is_array(x) and x.ndim == 1 and not name.startswith("("):
                words = f"it is a mean with the weights {name}"
                yield words, part, f"{left} * {name}[:, None]"
                yield words, part, f"{left} * {name}"


def _of_several_arguments(source, part, atoms):
    """back(-da, -db): of a difference all gradients have the other sign"""
    if is_own_function(part) and len(part.args) > 1 and not part.keywords:
        (start, _), (_, end) = source.span(part.args[0]), source.span(part.args[-1])
        yield "the signs are wrong", (start, end), ", ".join(f"-{source.atom(one)}" for one in part.args)


OF_OPERANDS = (
    _of_sums, _of_means, _of_several_arguments, _inside_a_sum, _of_listed, _of_entries, _of_indexed, _of_ones,
    _of_what_is_given, _of_where, _of_leaky, _of_gates, _of_sides,
)  # fmt: skip


def _listed_in(part):
    """The elements of lists and tuples that a call is given: of np.concatenate([a, b]) a and b."""
    lists = [one for one in part.args if isinstance(one, (ast.List, ast.Tuple))] if isinstance(part, ast.Call) else []
    return [element for one in lists for element in one.elts if not isinstance(element, ast.Constant)]

"""What can stand in a changed line: a function's names, attributes, indices and formulas, with their values."""

import ast
import builtins
import inspect
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.elsewhere import elsewhere
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.planting.editing import closure_of, function_of, source_of
from mini_tf.gradcheck.planting.mutations import own_nodes
from mini_tf.gradcheck.reasons.kinds.formulas import REDUCED, is_atom
from mini_tf.gradcheck.reasons.kinds.syntax import SIGN
from mini_tf.gradcheck.reasons.lines import pairs_of
from mini_tf.gradcheck.reasons.theirs import Part, locals_at_the_end, run_forward, written_forward

import numpy as np

PHRASES = 24             # formulas of the forward, such as gamma[:, None], that are tried as factors
NUMBERS = np.ndarray, np.generic, float, int
BOUNDED = {"np.maximum": ">", "np.minimum": "<"}
OPPOSITE = {ast.Gt: "<=", ast.Lt: ">=", ast.GtE: "<", ast.LtE: ">"}
DERIVATIVES = {                                          # of the forward's functions
    "log": "(1 / {0})", "sqrt": "(0.5 / np.sqrt({0}))", "abs": "np.sign({0})", "sin": "np.cos({0})",
    "cos": "(-np.sin({0}))", "tanh": "(1 - np.tanh({0}) ** 2)", "square": "(2 * {0})",
}  # fmt: skip
SOFTPLUS = re.compile(r"np\.logaddexp\(0(?:\.0)?, ([\w.'[\]]+)\)|np\.log1p\(np\.exp\(([\w.'[\]]+)\)\)")
BACK = re.compile(r"back|bwd|bprop|grad")               # in the name of a function that goes back
FILLED = re.compile(r"\b(zeros|ones|empty|full)(_like)?$")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")            # not the T of x.T


def atoms_of(evidence: Evidence, part: Part, node: ast.AST) -> dict[str, Any]:
    """{text: value} of the names, attributes and indices in a function that stand for arrays, numbers, functions.

    Their values are those at the function's end. Of numbers that are equal, and the same wherever the function was
    run, none: one would be right by chance.
    """
    found = {text: x for text, x in values_of(evidence, part, node).items() if text != "_"}        # that is not wanted
    arrays = {text: x for text, x in found.items() if isinstance(x, NUMBERS) and not isinstance(x, bool)}
    numbers = {text: (float(x),) for text, x in arrays.items() if not np.ndim(x)}
    if len(set(numbers.values())) < len(numbers):
        for other in elsewhere(evidence):
            there = values_of(other, part, node)
            numbers = {text: (*known, _number(there.get(text))) for text, known in numbers.items()}
        evidence.back_to_the_point()
    how_many, of_names = Counter(numbers.values()), Counter(x for text, x in numbers.items() if text[0] != "(")
    by_chance = {text for text, known in numbers.items() if len(set(known)) == 1
                 and (how_many if text[0] == "(" else of_names)[known] > 1}  # fmt: skip
    by_chance -= _of_two_names(evidence, node, by_chance)
    arrays = {text: x for text, x in arrays.items() if text not in by_chance}
    own = part.function.__code__                         # a backward that called itself would never end
    functions = {t: g for t, g in found.items() if inspect.isfunction(g) and is_theirs(g) and g.__code__ is not own}
    in_order = sorted(arrays.items(), key=lambda item: (np.asarray(item[1]).dtype != bool, *_rank_of(item[0])))
    return dict(in_order) | dict(sorted(functions.items()))


def _of_two_names(evidence, node, texts):
    """Those of the texts that are L in L = self.L, here or in the forward: one number with two names"""
    with suppress(ValueError):                           # UserError: no source
        node = ast.Module([node, source_of(function_of(written_forward(evidence)))[1]], [])
    assigned = [one for one in ast.walk(node) if isinstance(one, ast.Assign)]
    pairs = [pair for one in assigned for pair in pairs_of(one.targets[0], one.value)]
    return {ast.unparse(target) for target, value in pairs if ast.unparse(value) in texts}


def _rank_of(text):
    """Names come first, pad before conv_param["pad"], then formulas."""
    return "(" in text, "[" in text, text


def _number(x):
    return float(x) if isinstance(x, NUMBERS) and not np.ndim(x) else None


def values_of(evidence: Evidence, part: Part, node: ast.AST, more: Collection[str] = ()) -> dict[str, Any]:
    """{text: value} of all that has a value at the end of a function, and of `more`, at the evidence's point"""
    values = locals_at_the_end(evidence, part.runs.__code__) | closure_of(part.function)
    values |= locals_at_the_end(evidence, part.function.__code__)
    texts = [ast.unparse(one) for one in ast.walk(node) if is_atom(one)] + [*values, *more]
    texts += _of_lists(values, node)
    texts += [name for name in evidence.subject.params if name in part.function.__globals__]     # weights of the file
    constants = _numbers_of_the_files(evidence) | evidence.subject.constants()
    values, texts = constants | values, [*texts, *constants]
    texts += [f"{name}[{k}]" for name, x in values.items() if _is_a_shape(x) for k in range(len(x))]
    found = {}
    for text in texts:
        try:
            found[text] = eval(text, part.function.__globals__, values)      # a name, attributes, constant indices
        except FAILURES:
            continue
    for name, value in values.items():                   # what else could stand there: self.W for self.b, cache["x"]
        if isinstance(value, dict):
            found |= {f"{name}[{key!r}]".replace("'", '"'): x for key, x in value.items() if isinstance(key, str)}
        elif name in ("self", "ctx") or _is_of_theirs(value):
            constants_of_class = {own: x for own, x in vars(type(value)).items() if type(x) in (int, float)}
            kept = constants_of_class | getattr(value, "__dict__", {})
            found |= {f"{name}.{own}": x for own, x in kept.items()}
            dicts = [(own, x) for own, x in kept.items() if isinstance(x, dict)]
            found |= {f'{name}.{own}["{key}"]': x for own, several in dicts for key, x in several.items()}
    phrases = 0
    for phrase in _phrases(evidence, part, values, found):
        with suppress(*FAILURES):
            x = eval(phrase, part.function.__globals__, values)
            if not phrase.startswith("(-") or not any(np.array_equal(x, -y) for y in found.values() if _alike(x, y)):
                found[phrase] = x                        # not -np.sin(t), where s is np.sin(t)
                phrases += 1
        if phrases == PHRASES:
            break
    return found


def _numbers_of_the_files(evidence):
    """{name: number} of the learner's files that the functions use which run: KEEP = 0.8"""
    names = [(name, space) for code, space in run_forward(evidence).items() for name in code.co_names]
    return {name: space[name] for name, space in names if type(space.get(name)) in (int, float)}


def _is_a_shape(x):
    return isinstance(x, tuple) and len(x) > 1 and {*map(type, x)} == {int}


def _alike(x, y):
    return isinstance(y, (np.ndarray, float)) and np.shape(x) == np.shape(y) and np.asarray(y).dtype.kind == "f"


def _of_lists(values, node):
    """["masks[n]", "self.hs[t + 1]", …]: the places in a function that have a variable in their index, and lists of
    arrays, and dicts with numbers as keys, at all such indices
    """
    places = [one for one in ast.walk(node) if isinstance(one, ast.Subscript) and _is_counted(one.slice)]
    lists = [name for name, x in values.items() if isinstance(x, (list, dict)) and x and _has_arrays(x)]
    indices = {ast.unparse(one.slice) for one in places if isinstance(one.slice, ast.Name)}
    own = [ast.unparse(one) for one in places if is_atom(one.value) and isinstance(one.ctx, ast.Load)]
    return [*dict.fromkeys(own), *(f"{name}[{i}]" for name in lists for i in indices)]


def _is_counted(index):
    """True for t, t + 1 and t - 1"""
    if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.Add, ast.Sub)):
        return isinstance(index.left, ast.Name) and isinstance(index.right, ast.Constant)
    return isinstance(index, ast.Name)


def _is_of_theirs(x):
    """True for an object with arrays that a learner's functions are given: model, of model.W and model.b"""
    kept = getattr(x, "__dict__", {})
    return not isinstance(x, (type, ModuleType, FunctionType)) and any(isinstance(y, np.ndarray) for y in kept.values())


def _has_arrays(x):
    """True for a list of arrays, and for a dict of them whose keys are whole numbers"""
    items = x.items() if isinstance(x, dict) else enumerate(x)
    return all(type(key) is int and isinstance(value, np.ndarray) for key, value in items)


def _phrases(evidence, part, values, kept):
    """Formulas of the forward that a factor or a term may need in this form: gamma[None, :, None], np.exp(t), Wp[2].

    Those that have a name among the values are left out; of a bound it is where it does not hold, (x > FLOOR). What
    the forward calls x may be ctx.x in the backward: one of the arrays that are kept, {text: value}.
    """
    try:
        forward = function_of(written_forward(evidence))
        _, node = source_of(forward)
    except ValueError:                                   # UserError: no source
        return []
    inner = [one for one in ast.walk(node) if isinstance(one, ast.FunctionDef) and one is not node]
    if part.is_inside and part.runs is not forward:      # Tape.exp, around the closure that goes back
        inner += [source_of(part.runs)[1]]
    inner = [one for one in inner if not BACK.search(one.name)]
    parts = [part for one in [node, *inner] for part in own_nodes(one, loops=True)]      # without those of a backward
    named = [one.value for one in parts if isinstance(one, ast.Assign)
             and isinstance(one.targets[0], ast.Name) and one.targets[0].id in values]  # fmt: skip
    found = dict.fromkeys(text for one in parts for text in _phrase_of(one) if one not in named or ">" in text)
    at_the_end, names = locals_at_the_end(evidence, forward.__code__), {}
    lists = [name for name, x in at_the_end.items() if isinstance(x, (list, tuple))]
    found |= dict.fromkeys(f"len({name})" for name in lists if f"len({name})" in map(ast.unparse, parts))
    for name, x in at_the_end.items():
        if name not in values and isinstance(x, np.ndarray):
            names[name] = next((text for text, y in kept.items() if y is x or np.array_equal(x, y)), name)
    return [NAME.sub(lambda word: names.get(word[0], word[0]), text) for text in found]


def _phrase_of(one):
    """[text] of a part of the forward, if it is such a formula, or of a derivative that goes with one"""
    if slope := _slope_of_softplus(one):
        return slope
    if isinstance(one, ast.Subscript) and is_atom(one.value):
        indices = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
        spread = any(isinstance(index, ast.Constant) and index.value is None for index in indices)
        return [ast.unparse(one)] if spread or isinstance(getattr(one.slice, "value", None), int) else []
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv):
        return [f"({ast.unparse(one)})"]
    if isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Mult, ast.Div)):           # xb * np.exp(s), smooth / C
        return [f"({ast.unparse(one)})"] if all(map(_is_simple, (one.left, one.right))) else []
    if isinstance(one, ast.Compare) and len(one.ops) == 1 and type(one.ops[0]) in OPPOSITE:
        left, right = one.left, one.comparators[0]
        simple = is_atom(left) and (is_atom(right) or isinstance(right, ast.Constant))
        text, signs = ast.unparse(left), (SIGN[type(one.ops[0])], OPPOSITE[type(one.ops[0])])
        return [f"({text} {sign} {ast.unparse(right)})" for sign in signs] if simple else []
    if _is_a_complement(one):
        return [f"({ast.unparse(one)})"]
    if isinstance(one, ast.Call) and not one.args and not one.keywords:              # weight.sum()
        return [ast.unparse(one)] if _is_simple(getattr(one.func, "value", one)) and one.func.attr in REDUCED else []
    if not isinstance(one, ast.Call) or one.keywords or not one.args:
        return []
    if len(one.args) == 1 and _is_a_complement(one.args[0]) and isinstance(one.func, ast.Attribute):
        return [ast.unparse(one)]                        # np.sqrt(1 - a)
    if not is_atom(one.args[0]):
        return []
    called, *bounds = ast.unparse(one.func), *map(ast.unparse, one.args)
    if FILLED.search(called):
        return []
    if len(one.args) == 1:                               # len(x) is a size, which has its own changes
        derivative = DERIVATIVES.get(called.rpartition(".")[2])
        slopes = [derivative.format(*bounds)] if derivative else []
        return [] if hasattr(builtins, called) else [ast.unparse(one), *slopes]
    if called in BOUNDED and len(bounds) == 2:
        return [f"({bounds[0]} {BOUNDED[called]} {bounds[1]})"]
    if called == "np.clip" and len(bounds) == 3:
        return ["(({0} > {1}) & ({0} < {2}))".format(*bounds)]
    return []


def _is_a_complement(one):
    """True for 1 - a"""
    is_one = isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) and isinstance(one.left, ast.Constant)
    return is_one and is_atom(one.right)


def _slope_of_softplus(one):
    """[text] of σ(x), if a part of the forward is np.logaddexp(0, x) or np.log1p(np.exp(x))"""
    found = SOFTPLUS.fullmatch(ast.unparse(one)) if isinstance(one, ast.Call) else None
    return [f"(1 / (1 + np.exp(-{found[1] or found[2]})))"] if found else []


def _is_simple(one):
    """True for a name or attribute, or a function of one: s, self.s, np.exp(s)"""
    if isinstance(one, ast.Call) and len(one.args) == 1 and not one.keywords:
        return is_atom(one.args[0])
    return is_atom(one)

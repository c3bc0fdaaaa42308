"""One change that makes a wrong backward right, searched for among small changes of its source.

This is the self-test the other way round: each change is made, run, and its gradients are compared with the measured
slopes. A change is shown only if all gradients then agree: at both points, and with arrays of other sizes.
"""

import ast
import builtins
import inspect
import itertools
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import MappingProxyType

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.elsewhere import apart, elsewhere, other_draws
from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, CLOSE, Evidence
from mini_tf.gradcheck.measuring.slopes import Phi
from mini_tf.gradcheck.measuring.styles import Brought
from mini_tf.gradcheck.planting.editing import (
    closure_of,
    function_of,
    rebuilt,
    recompiled,
    running_as,
    source_of,
    statement_around,
)
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.changes import RARE, SIZE, UNDONE, changes, changes_of_what_is_kept, is_atom
from mini_tf.gradcheck.reasons.inside import Inner, states_of
from mini_tf.gradcheck.reasons.theirs import following, is_theirs, locals_at_the_end, parts_of, written_forward
from mini_tf.trace import codes_inside, place

import numpy as np

NONE = MappingProxyType({})
SOON = 2000              # changes of the backward that are tried before those of what the forward keeps
SECONDS = 8.0            # of processor time, for the whole search
AT_ONCE = 400            # changes of one function, before it is another one's turn
TRIED_AGAIN = 20         # changes that make some gradients right, but not all
ANOTHER = 1.0            # for another repair, where the first takes something away
ENOUGH = 10_000          # lines, of a changed function with a while-loop
LEAST = 4.0              # and for trying changes, however long it took to find out which to try
PHRASES = 16             # formulas of the forward, such as gamma[:, None], that are tried as factors
NUMBERS = np.ndarray, np.generic, float, int
TAKES_AWAY = re.compile(r"a power too many|sqrt is too much")
DIVIDES = re.compile(r"a factor is missing, 1/[^\W\d]\w*$")
CENTRES = re.compile(r"mean is not taken away|as a mean ")           # twice is as good as once
MADE_UP_FOR = re.compile(f"{TAKES_AWAY.pattern}|{DIVIDES.pattern}|{CENTRES.pattern}| belongs where ")
ADDS = re.compile(r"by the square")                      # or by the square root
BOUNDED = {"np.maximum": ">", "np.minimum": "<"}
LIKE_GRADIENT = re.compile("d|g$|grad|up")
ZEROS = re.compile(r"\.zeros(_like)?\(")                 # dW = np.zeros_like(W): sums begin there
WORD = re.compile(r"[A-Za-z_]\w*")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")            # not the T of x.T


def find_repair(
    evidence: Evidence, lines: Sequence[Collection[int]] = (), inside: Mapping[str, Inner] = NONE
) -> tuple[list[str], list[str], list[str]]:
    """(a repair, names of the gradients that it makes right, another repair in another line)

    A repair is [place, what is wrong, the line as it is, the line as it would be right], or [] if there is none.
    lines     [numbers of suspected lines, of less suspected ones, …], in the order in which they are tried
    inside    the backward's variables (see `measured_inside`): a change that makes another value of one that is right
              makes up for a mistake elsewhere
    Where no single change makes all gradients right, the one that makes most of them right. Another one is looked for
    where the first takes something away, because what is missing elsewhere may be what is wrong; and where the first
    puts one name for another, because that may belong in another line. Every change runs in a fresh forward, on copies,
    because many changes write where they should not.
    """
    began = time.process_time()
    if not _measured(evidence) or time.process_time() >= began + SECONDS:
        return [], [], []
    texts, in_part = {}, []                              # file -> its text; changes that make some gradients right
    candidates = _candidates(evidence, lines, texts)
    deadline = max(began + SECONDS, time.process_time() + LEAST)
    first, told = None, []
    for part, change in candidates:
        if time.process_time() > deadline:
            break
        if first is not None and not _is_another(first, change):
            continue
        try:
            with warnings.catch_warnings():              # of what Python thinks of the change
                warnings.simplefilter("ignore")
                code = _code_of(part, change, texts)
        except (SyntaxError, StopIteration):
            continue
        right = _made_right(evidence, part, code)
        if len(right) < len(evidence.slopes):
            if right > set(evidence.right):
                in_part.append((part, change, code, right - set(evidence.right)))
            continue
        if _is_right_everywhere(evidence, part, change, code, right) and _leaves(evidence, part, code, inside):
            if first is not None:
                return told, list(evidence.wrong), _told(evidence, part, change)
            told = _told(evidence, part, change)
            if not MADE_UP_FOR.search(told[1]):
                return told, list(evidence.wrong), []
            first, deadline = change, time.process_time() + ANOTHER
    if first is not None:
        return told, list(evidence.wrong), []
    in_part.sort(key=lambda one: -len(one[3]))
    certain = any(_other_sizes(evidence, other) for other in elsewhere(evidence)) if in_part else False
    for part, change, code, right in in_part[:TRIED_AGAIN] if certain else ():
        if _is_right_everywhere(evidence, part, change, code, right) and _leaves(evidence, part, code, inside):
            return _told(evidence, part, change), [name for name in evidence.wrong if name in right], []
    return [], [], []


def _is_another(first, change):
    """True for a change in another line that may be what was meant where `first` makes all right, too."""
    if DIVIDES.search(first.name):                       # it may make up for what the forward kept in place of another
        like_it = " belongs where " in change.name or change.name == first.name
    elif TAKES_AWAY.search(_words(first)):
        like_it = ADDS.search(change.name)
    elif CENTRES.search(first.name):
        like_it = not CENTRES.search(change.name)
    else:
        like_it = change.name == first.name
    return change.line != first.line and bool(like_it)


def _words(change):
    return UNDONE.get(change.name, change.name)


def _told(evidence, part, change):
    where = place(part.function.__code__.co_filename, change.line)
    number, alike = _number_of(change), []
    if number is not None:                               # a 2 that may be D, which has always been 2
        _, node = source_of(part.function)
        points = [_values(other, part, node) for other in [evidence, *elsewhere(evidence), *apart(evidence)]]
        evidence.back_to_the_point()
        alike = [name for name, x in points[0].items() if name.isidentifier() and type(x) is int
                 and name not in evidence.options and all(values.get(name) == number for values in points)]  # fmt: skip
    other = f" ({number}, or {' or '.join(alike)}, which is {number} wherever it was tried)" if alike else ""
    return [where, _words(change) + other, change.before, change.after]


def _number_of(change):
    """The whole number above 1 that a change puts there, or None"""
    if change.name not in ("a number is wrong", "a factor is missing, 2"):
        return None
    new = Counter(re.findall(r"\b\d+\b", change.after)) - Counter(re.findall(r"\b\d+\b", change.before))
    return next((int(number) for number in new if int(number) > 1), None)


def _is_right_everywhere(evidence, part, change, code, names):
    """True if the change makes these gradients right with other arrays, sizes and options, too, and no others wrong."""
    if _stands_by_chance(evidence, part, change):
        return False
    points = (other for find in (elsewhere, apart, other_draws) for other in find(evidence))
    return all(_made_right(other, part, code) >= {*names, *other.right} & other.slopes.keys() for other in points)


def _leaves(evidence, part, code, inside):
    """True if the variables of the backward that are right have the same values with the changed code."""
    own = function_of(evidence.backward).__code__
    where = own.co_qualname, own.co_firstlineno
    changed = next((one for one in codes_inside(code) if (one.co_qualname, one.co_firstlineno) == where), own)
    states = states_of(evidence, changed, lambda: _made_right(evidence, part, code))
    return all(any(_same(x, y) for _, x in states[name] for _, y in inner.right)
               for name, inner in inside.items() if inner.right and name in states)  # fmt: skip


def _same(x, y):
    return x.shape == y.shape and bool((np.abs(x - y) <= CLOSE * np.abs(y).max(initial=0)).all())


def _stands_by_chance(evidence, part, change):
    """True if a size in the changed text, such as B or x.shape[0], has been the same number wherever f was run."""
    text = _changed_text(change)
    _, node = source_of(part.function)
    counters = {one.id for loop in ast.walk(node) if isinstance(loop, (ast.For, ast.comprehension))
                for one in ast.walk(loop.target) if isinstance(one, ast.Name)}  # fmt: skip
    more = Counter(WORD.findall(change.after)) - Counter(WORD.findall(change.before))    # than the line had
    sizes = ({*WORD.findall(text)} & more.keys() | {*SIZE.findall(text)}) - {*evidence.options} - counters
    here = {size: x for size, x in _values(evidence, part, node, sizes).items() if size in sizes and type(x) is int}
    there = [_values(other, part, node, sizes) for other in elsewhere(evidence) + apart(evidence)] if here else []
    evidence.back_to_the_point()
    return any(all(values.get(size, x) == x for values in there) for size, x in here.items())


def _changed_text(change):
    """What differs from the line as it was: of "/ np.sqrt(D)", where "/ D" was, "np.sqrt(D"."""
    before, after = change.before, change.after
    first = len(os.path.commonprefix([before, after]))
    last = len(os.path.commonprefix([before[first:][::-1], after[first:][::-1]]))
    while first and after[first - 1].isidentifier():     # whole words
        first -= 1
    return after[first : len(after) - last]


def _other_sizes(evidence, other):
    """True if every size of an axis is another one there."""
    pairs = [(x, other.everything[name]) for name, x in evidence.everything.items() if isinstance(x, np.ndarray)]
    return all(n != m for x, y in pairs for n, m in zip(x.shape, y.shape) if n > 1)


def _code_of(part, change, texts):
    """The changed code of part.runs. Only the statement of the file that it stands in is compiled."""
    text = texts[part.runs.__code__.co_filename]
    first, last = statement_around(text, part.runs.__code__.co_firstlineno)
    return recompiled(part.runs, change.text, (first, last + change.text.count("\n") - text.count("\n")))


def _candidates(evidence, lines, texts):
    """[(Part, Mutation)] to try: first in the suspected lines, then in the rest of the backward, then what is kept."""
    found, kept, begins, parts = [], [], {}, parts_of(evidence)
    of_note, formulas, without_dy = {}, {}, {}           # {Part: …}
    for part in parts:
        try:
            text, node = source_of(part.function)
        except ValueError:                               # UserError: written in C, or at a prompt
            continue
        if part.runs is not part.function and _has_while(part.runs):
            continue                                     # changed, it might never end
        texts[part.function.__code__.co_filename] = text
        atoms, source = _atoms(evidence, part, node), Source(text)
        if part is parts[0]:
            without_dy[part] = _without(_upstreams(evidence), node)
        of_note[part], begins = _unused(node) | _unread(atoms, node), begins | _beginnings(node)
        formulas[part] = [t for t in atoms if t.startswith("(1 - ") and t.strip("()") not in ast.unparse(node)]
        if part.is_forward:
            kept += [(part, change) for change in changes_of_what_is_kept(source, node, atoms)]
        else:
            counted = _counters(node)
            found += [(part, change, number // AT_ONCE) for number, change in enumerate(changes(source, node, atoms))
                      if not _counts_outside(change, counted)]  # fmt: skip

    def rank(one):                                       # the sort is stable: the likeliest stay first
        part, change, turn = one
        new_words = {*NAME.findall(change.after)} - {*NAME.findall(change.before)}
        line = begins.get(change.line, change.line)
        unsuspected = next((k for k, some in enumerate(lines) if line in some), len(lines))
        unlikely = RARE.search(change.name) or ZEROS.search(change.before)
        in_helper = part is not parts[0]                 # such as sigmoid: it may be right where others call it
        of_forward = line in without_dy.get(part, ())    # Kinv = Linv.T @ Linv, once more
        noted = bool(of_note[part] & new_words)          # what nothing uses belongs into the last line that lacks it
        noted |= any(formula in change.after for formula in formulas[part])          # (1 - m), as in the forward
        return unsuspected, in_helper, not noted, of_forward, noted and -line, unlikely is not None, turn

    found = [(part, change) for part, change, _ in sorted(found, key=rank)]
    return found[:SOON] + kept + found[SOON:]


def _upstreams(evidence):
    """The arguments of the backward that are gradients: dout, or dh and dc; none of a loss that takes none"""
    arguments = inspect.signature(function_of(evidence.backward)).parameters
    names = [name for name in arguments if name not in ("self", "ctx")]
    like_gradients = [name for name in names if LIKE_GRADIENT.match(name)]
    return (like_gradients or names[:1]) if getattr(evidence.backward, "takes_dy", True) else []


def _without(names, node):
    """The numbers of the lines that set a variable which does not come from these names, or, if there are none, from
    what is named as a gradient
    """
    statements = [one for one in ast.walk(node) if isinstance(one, (ast.Assign, ast.AugAssign))]
    stored = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    read = set(names) or set(filter(LIKE_GRADIENT.match, stored))
    for one in [*statements, *statements]:               # twice: in a loop, a later line feeds an earlier one
        if read & {*_read(one)}:
            read |= {*_set_by(one)}
    return {one.lineno for one in statements if read and not read & {*_set_by(one), *_read(one)}}


def _set_by(statement):
    """The names that an assignment sets, as a whole or in part"""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            while isinstance(part, ast.Subscript):
                part = part.value
            yield from [part.id] if isinstance(part, ast.Name) else []


def _read(statement):
    return [one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]


def _unread(atoms, node):
    """The names of numbers and masks that a function does not read: STRIDE, temperature, keep."""
    read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    known = {name for name, x in atoms.items() if isinstance(x, NUMBERS) and (not np.ndim(x) or x.dtype == bool)}
    return known - read


def _counters(node):
    """{name: [range of lines]} of the loops in which a name counts"""
    loops = [one for one in ast.walk(node) if isinstance(one, ast.For)]
    found = {}
    for loop in loops:
        for one in ast.walk(loop.target):
            if isinstance(one, ast.Name):
                found.setdefault(one.id, []).append(range(loop.lineno, loop.end_lineno + 1))
    return found


def _counts_outside(change, counted):
    """True if the change puts a loop's counter outside the loop: there it is what the last round has left."""
    new = {*NAME.findall(change.after)} - {*NAME.findall(change.before)}
    return any(not any(change.line in lines for lines in counted[name]) for name in new & counted.keys())


def _beginnings(node):
    """{number of a line: that of the first line of its statement}, for statements of several lines"""
    statements = [one for one in ast.walk(node) if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return {line: one.lineno for one in statements for line in range(one.lineno, one.end_lineno + 1)}


def _unused(node):
    """The names that a function computes, or is given, and does not use."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    made, used = ({one.id for one in names if isinstance(one.ctx, way)} for way in (ast.Store, ast.Load))
    return (made | {one.arg for one in node.args.args}) - used


def _measured(evidence):
    """Measure the slopes of tensors whose gradients could not be compared. False if that costs too much."""
    missing = {name: x for name, x in evidence.subject.tensors.items() if name not in evidence.slopes}
    if any(x.size > AFFORDABLE for x in missing.values()):
        return False
    if missing:
        evidence.back_to_the_point()
        phi = Phi(evidence.subject, evidence.dy, evidence.patterns)
        for name, x in missing.items():
            evidence.measure(name, phi, np.arange(x.size))
    return True


# Running a changed function -------------------------------------------------------------------------------------------


def _made_right(evidence, part, code):
    """Names of the gradients that agree with the measured slopes when part.runs runs this code; none if y changes."""
    subject, dy_stays = evidence.subject, evidence.dy_stays
    evidence.back_to_the_point(copies=True)
    for p in subject.params.values():
        p.grad = None
    dy = evidence.another_dy
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if part.runs is function_of(evidence.backward) and not isinstance(subject.f, Brought):
                with _ending(part.runs, code):
                    gradients = subject.named(rebuilt(function_of(subject.forward()[1]), code)(dy))
            else:
                with running_as(part.runs, code), _ending(part.runs, code):
                    y, backward = subject.forward()
                    if not np.array_equal(y, evidence.y):
                        return set()
                    gradients = subject.named(backward(dy))
        if dy_stays and not np.array_equal(dy, evidence.dy):             # dx = dy, then dx += …
            return set()
        return {name for name in evidence.slopes if evidence.agrees(name, gradients.get(name))}
    except FAILURES:                                    # most changes make no sense
        return set()
    finally:
        evidence.back_to_the_point()


@cache
def _has_while(function):
    return any(isinstance(one, ast.While) for one in ast.walk(source_of(function)[1]))


@contextmanager
def _ending(function, code):
    """Inside the block, this code may run so many lines, if it has a while-loop, which a change may make endless."""
    if not _has_while(function):
        yield
        return
    lines = itertools.count()

    def see(frame, _):
        if next(lines) > ENOUGH:
            raise RuntimeError(f"{frame.f_code.co_name} does not end")

    with following(code, see):
        yield


# What the arrays are ------------------------------------------------------------------------------------------------


def _atoms(evidence, part, node):
    """{text: value} of the names, attributes and indices in a function that stand for arrays, numbers, functions.

    Their values are those at the function's end. Of numbers that are equal, and the same wherever the function was
    run, none: one would be right by chance.
    """
    found = {text: x for text, x in _values(evidence, part, node).items() if text != "_"}        # that is not wanted
    arrays = {text: x for text, x in found.items() if isinstance(x, NUMBERS) and not isinstance(x, bool)}
    numbers = {text: (float(x),) for text, x in arrays.items() if not np.ndim(x)}
    if len(set(numbers.values())) < len(numbers):
        for other in elsewhere(evidence):
            there = _values(other, part, node)
            numbers = {text: (*known, _number(there.get(text))) for text, known in numbers.items()}
        evidence.back_to_the_point()
    how_many = Counter(numbers.values())
    by_chance = {text for text, known in numbers.items() if how_many[known] > 1 and len(set(known)) == 1}
    arrays = {text: x for text, x in arrays.items() if text not in by_chance}
    own = part.function.__code__                         # a backward that called itself would never end
    functions = {t: g for t, g in found.items() if inspect.isfunction(g) and is_theirs(g) and g.__code__ is not own}
    in_order = sorted(arrays.items(), key=lambda item: (np.asarray(item[1]).dtype != bool, *_rank_of(item[0])))
    return dict(in_order) | dict(sorted(functions.items()))


def _rank_of(text):
    """Names come first, pad before conv_param["pad"], then formulas."""
    return "(" in text, "[" in text, text


def _number(x):
    return float(x) if isinstance(x, NUMBERS) and not np.ndim(x) else None


def _values(evidence, part, node, more=()):
    """{text: value} of all that has a value at the end of a function, and of `more`, at the evidence's point"""
    evidence.back_to_the_point()
    values = locals_at_the_end(evidence, part.runs.__code__) | closure_of(part.function)
    values |= locals_at_the_end(evidence, part.function.__code__)
    texts = [ast.unparse(one) for one in ast.walk(node) if is_atom(one)] + [*values, *more]
    texts += _of_lists(values, node)
    constants = evidence.subject.constants()
    values, texts = constants | values, [*texts, *constants]
    found = {}
    for text in texts:
        try:
            found[text] = eval(text, part.function.__globals__, values)      # a name, attributes, constant indices
        except FAILURES:
            continue
    for name, value in values.items():                   # what else could stand there: self.W for self.b, cache["x"]
        if isinstance(value, dict):
            found |= {f"{name}[{key!r}]".replace("'", '"'): x for key, x in value.items() if isinstance(key, str)}
        elif name in ("self", "ctx"):
            kept = getattr(value, "__dict__", {})
            found |= {f"{name}.{own}": x for own, x in kept.items()}
            dicts = [(own, x) for own, x in kept.items() if isinstance(x, dict)]
            found |= {f'{name}.{own}["{key}"]': x for own, several in dicts for key, x in several.items()}
    for phrase in _phrases(evidence, values, found):
        with suppress(*FAILURES):
            found[phrase] = eval(phrase, part.function.__globals__, values)
    return found


def _of_lists(values, node):
    """["masks[n]", …]: lists of arrays at the indices that occur in a function."""
    lists = [name for name, x in values.items() if isinstance(x, list) and x and isinstance(x[0], np.ndarray)]
    indices = [one.slice for one in ast.walk(node) if isinstance(one, ast.Subscript)]
    return [f"{name}[{i}]" for name in lists for i in {ast.unparse(i) for i in indices if isinstance(i, ast.Name)}]


def _phrases(evidence, values, kept):
    """Formulas of the forward that a factor or a term may need in this form: gamma[None, :, None], np.exp(t), Wp[2].

    Those that have a name among the values are left out; of a bound it is where it does not hold, (x > FLOOR). What
    the forward calls x may be ctx.x in the backward: one of the arrays that are kept, {text: value}.
    """
    try:
        forward = function_of(written_forward(evidence))
        _, node = source_of(forward)
    except ValueError:                                   # UserError: no source
        return []
    named = [one.value for one in ast.walk(node) if isinstance(one, ast.Assign)
             and isinstance(one.targets[0], ast.Name) and one.targets[0].id in values]  # fmt: skip
    found = dict.fromkeys(text for one in ast.walk(node) for text in _phrase_of(one) if one not in named or ">" in text)
    at_the_end, names = locals_at_the_end(evidence, forward.__code__), {}
    for name, x in at_the_end.items():
        if name not in values and isinstance(x, np.ndarray):
            names[name] = next((text for text, y in kept.items() if y is x or np.array_equal(x, y)), name)
    return [WORD.sub(lambda word: names.get(word[0], word[0]), text) for text in found][:PHRASES]


def _phrase_of(one):
    """[text] of a part of the forward, if it is such a formula, or of the derivative of one that a bound makes"""
    if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name):
        indices = one.slice.elts if isinstance(one.slice, ast.Tuple) else [one.slice]
        spread = any(isinstance(index, ast.Constant) and index.value is None for index in indices)
        return [ast.unparse(one)] if spread or isinstance(getattr(one.slice, "value", None), int) else []
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv):
        return [f"({ast.unparse(one)})"]
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
        return [f"({ast.unparse(one)})"] if isinstance(one.left, ast.Constant) and is_atom(one.right) else []
    if not isinstance(one, ast.Call) or one.keywords or not one.args or not is_atom(one.args[0]):
        return []
    called, *bounds = ast.unparse(one.func), *map(ast.unparse, one.args)
    if len(one.args) == 1:                               # len(x) is a size, which has its own changes
        return [] if hasattr(builtins, called) else [ast.unparse(one)]
    if called in BOUNDED and len(bounds) == 2:
        return [f"({bounds[0]} {BOUNDED[called]} {bounds[1]})"]
    if called == "np.clip" and len(bounds) == 3:
        return ["(({0} > {1}) & ({0} < {2}))".format(*bounds)]
    return []

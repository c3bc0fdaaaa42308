"""In which order changes are tried: the likeliest lines first, and in them what nothing uses."""

import ast
import builtins
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.naming import is_upstream
from mini_tf.gradcheck.planting.editing import function_of, source_of
from mini_tf.gradcheck.planting.mutations import Mutation, Source, own_nodes
from mini_tf.gradcheck.reasons.atoms import NAME, NUMBERS, atoms_of, values_of
from mini_tf.gradcheck.reasons.changes import (
    ADDED,
    AS_IN_THE_FORWARD,
    RARE,
    UNDONE,
    changes,
    changes_of_a_step,
    changes_of_what_is_kept,
)
from mini_tf.gradcheck.reasons.kinds.formulas import (
    array_in,
    is_array,
    is_atom,
    is_own_function,
    multiplied,
    names_read,
)
from mini_tf.gradcheck.reasons.kinds.syntax import NOT_ADDED
from mini_tf.gradcheck.reasons.lines import array_of
from mini_tf.gradcheck.reasons.running import has_while
from mini_tf.gradcheck.reasons.theirs import Part, called_by, functions_of_steps, parts_of, written_forward

import numpy as np

SOON = 2000              # changes of the backward that are tried before those of what the forward keeps
LIKELY = 2               # the last stage of them: see `_stage`
AT_ONCE = 400            # changes of one line, before it is another one's turn
INSIDE_EACH_OTHER = 2    # formulas of the forward, in a name's place: h // rep is h // (H // G)
ATOM = re.compile(r'[A-Za-z_][\w.]*(\["\w+"\])?')
MISSING = re.compile(r"a (term|factor) is missing, (\S.*?)( \(.*)?$")
IN_PLACE = re.compile(r"(.+) belongs where (.+) is$")
SIGN = re.compile(r"a sign (is|flipped)|-(\S+) belongs where \2 is$")
OFF = re.compile(r"an? (index|number) is ")
SHIFTED = re.compile(r"\(?(?:1 - )?([^()]+?)(?:\*\*2| - 1| \+ 1)?\)? belongs where (.+) is$")
FORMULA = re.compile(r"\(1 - |\w+\[\d\]$")              # of the forward: (1 - m), peep[2]
SPLIT = re.compile(r"the axes (are split|need another order)")
ZEROS = re.compile(r"\.zeros(_like)?\(")
OF_SHAPE = re.compile(r"([A-Za-z_][\w.]*)\.shape\[(\d)\]")
KEY = re.compile(r"""["'][\w.]+["'] \+|\+ ["'][\w.]+["']""")         # "W" + str(i), name + ".bias"
CLIPS = re.compile(r"\s*np\.clip\(.*out=")
OUT = re.compile(r"out=([^,)]*)")
MASK_OF = re.compile(r"~\(?([A-Za-z_][\w.]*)|\(([A-Za-z_][\w.]*) > 0\)")
SIZE_OF_FORMULA = re.compile(r"\)\.(?:shape|size|ndim)\b")
WITH_ITSELF = re.compile(r"\b([\w.]+) (?:==|!=|<|>|<=|>=) \1\b(?![\w.\[])")
GIVEN_ON = re.compile(r"[A-Za-z_][\w.]*\((?:1 - )?[\w.]+ ?\*\* ?2\)")        # df(a**2), of any activation
MASK_COMPARED = re.compile(r"\([^()]+ [<>]=? [^()]+\) [<>]|[<>]=? \([^()]+ [<>]=? [^()]+\)")
# What is in changes that may have no meaning
MARKS = re.compile(r"str\(|clip\(|out=|~| > 0\)|\.shape\[|= -\(| (?:[=!]=|[<>]=?) |\)\.[sn]|\) [<>]|[<>=] \(|"
                   r"[\"'] \+|\+ [\"']")
TINY = 1e-5
NEGATED = re.compile(r"([\w.]+) = -\(\1 [+-] ")
AS_TEXT = re.compile(r"\bstr\(([\w.]+)\)")
MEANS = "sum for mean, or mean for sum"
CENTRED = re.compile("mean is not taken away")           # which makes up for a mean that is taken away, and is wrong
OF_NUMBERS = re.compile(r"a number is wrong|a factor dropped|a sign flipped")


class Rank(NamedTuple):
    """How likely a change is, before it is tried: those that sort first come first."""

    of_note: int                                         # 0: a sum for a mean, the forward's own; 1: what nothing uses
    of_forward: bool                                     # in a line that does not come from dy
    unlikely: int                                        # 2: in a line that only hands things on, or see CENTRED
    line: int


@dataclass
class Place:
    """What is known of a part of the backward: its source, and what may be missing there."""

    part: Part
    source: Source
    node: ast.FunctionDef | ast.Lambda
    atoms: dict[str, Any]
    degrees: dict[str, int]                              # see _degrees
    of_note: set[str]                                    # names that it does not use
    formulas: list[str]                                  # of the forward, which it does not have
    without_dy: set[int]                                 # numbers of lines that do not come from dy
    zeros: set[int]                                      # … in which sums begin, dW = np.zeros_like(W)
    begins: dict[int, int]                               # see _beginnings
    bare: set[int]                                       # … that only hand names on: return dx, dW
    renamed: set[int]                                    # … that give an array of the forward a name: q = self.q
    again: dict[str, list[str]]                          # {name: formulas} of the forward

    @cached_property
    def tiny(self) -> set[str]:
        """The names of tiny numbers, such as eps"""
        return {name for name, x in self.atoms.items() if isinstance(x, float) and 0 < abs(x) < TINY}

    @cached_property
    def with_dy(self) -> set[int]:
        """The numbers of the lines that have dy, or what comes from it"""
        numbers = range(self.node.lineno, self.node.end_lineno + 1)
        return {number for number in numbers if self.degree(self.source.lines[number - 1])}

    def changes(
        self, here: Callable[[int], bool], only_commonest: bool = False
    ) -> Iterator[tuple[Rank, int, Mutation]]:
        """(rank, turn, change) of the statements that begin in lines that are `here`: those of low ranks come first."""
        counted = _counters(self.node)
        changed = changes(self.source, self.node, self.atoms, lambda line: here(self.begins.get(line, line)),
                          self.again, only_commonest)
        of_a_line = Counter()
        for change in changed:
            of_a_line[change.line] += 1
            new = {*NAME.findall(change.new)} - {*NAME.findall(change.old)}
            renames = change.line in self.renamed and change.line not in self.with_dy
            nonsense = self._shifts_a_gradient(change) or (renames and ADDED.search(change.name))
            nonsense = nonsense or self._has_no_meaning(change)
            if not nonsense and not _counts_outside(change.line, new & counted.keys(), counted):
                yield self._rank(change, new), of_a_line[change.line] // AT_ONCE, change

    def _rank(self, change, new):
        line = self.begins.get(change.line, change.line)
        unlikely = RARE.search(change.name) or not self._is_linear(change) or GIVEN_ON.search(change.after)
        hands_on = line in self.bare and (ADDED.search(change.name) or SIGN.search(change.name))
        hands_on = hands_on and "-= " not in change.before               # which may itself be wrong
        unlikely = unlikely or (SPLIT.match(change.name) and self._transposes_elsewhere(line))
        unlikely = unlikely or (OF_NUMBERS.search(change.name) and
                                _power_rules(change.before) > _power_rules(change.after))
        unlikely = unlikely or (line in self.zeros and change.new != "pass" and "dtype" not in change.name)
        noted = bool(new & self.of_note) or any(formula in change.new for formula in self.formulas)
        noted = noted or self._begins_with_zeros(change)
        again = AS_IN_THE_FORWARD.match(change.name) is not None
        off = change.name in UNDONE or OFF.match(change.name) or "wrong way round" in change.name        # h = hs[t + 1]
        of_forward = line in self.without_dy and not (again or off)      # Kinv = Linv.T @ Linv, once more
        of_note = 0 if again or change.name == MEANS else 1 if noted else 2
        unlikely = 2 if hands_on or CENTRED.search(change.name) else int(bool(unlikely))
        # What nothing uses belongs into the last line that lacks it.
        return Rank(of_note, of_forward, unlikely, bool(new & self.of_note) and -line)

    def _begins_with_zeros(self, change):
        """True for dW += g in place of dW = g, where dW began as np.zeros_like(W): it was meant to add up"""
        target = re.compile(rf"\b{re.escape(change.before.partition('=')[0].strip())}\b")
        return change.name == NOT_ADDED and any(target.search(self.source.lines[number - 1]) for number in self.zeros)

    def _transposes_elsewhere(self, line):
        """True if another line has a transpose(…), whose axes are more likely wrong than those of a reshape"""
        numbers = range(self.node.lineno, self.node.end_lineno + 1)
        return any(".transpose(" in self.source.lines[number - 1] for number in numbers if number != line)

    def _has_no_meaning(self, change):
        """True for what makes right by chance only: keys of a dict, "W" + str(b) or "W"; b.shape[1] where that is 1,
        and np.exp(-eps), which take a factor away; (w > 0) of positive weights, ~ids; out=(A * B); dx = -(dx + …);
        x.sum(axis=0).shape; (x > 0) > margin
        """
        before, after = change.before, change.after
        if self.tiny and self.tiny & ({*NAME.findall(after)} - {*NAME.findall(before)}):
            return True
        if not (MARKS.search(before) or MARKS.search(after)):            # most have none, and there are many
            return False
        if change.new != "pass" and (KEY.findall(after) != KEY.findall(before) or CLIPS.match(before)):
            return True
        nonsense = SIZE_OF_FORMULA, MASK_COMPARED, WITH_ITSELF
        if any(len(one.findall(after)) > len(one.findall(before)) for one in nonsense):
            return True
        patterns = OUT, MASK_OF, OF_SHAPE, AS_TEXT
        new = {pattern: {*pattern.findall(after)} - {*pattern.findall(before)} for pattern in patterns}
        if NEGATED.match(after) or not all(map(str.isidentifier, new[OUT])):
            return True
        for not_a, positive in new[MASK_OF]:
            x = self.atoms.get(not_a or positive)
            if x is not None and (np.asarray(x).dtype.kind != "b" if not_a else np.all(np.asarray(x) > 0)):
                return True
        shapes = ((np.shape(self.atoms.get(name)), int(axis)) for name, axis in new[OF_SHAPE])
        ones = any(shape[axis : axis + 1] == (1,) for shape, axis in shapes)
        return ones or any(is_array(self.atoms.get(name)) for name in new[AS_TEXT])

    def _shifts_a_gradient(self, change):
        """True for 1 - d, d + 1 or d**2 in the place of d, if d comes from dy"""
        found = SHIFTED.match(change.name)
        return bool(found) and found[2] in (found[1], f"({found[1]})") and self.degree(found[2]) > 0

    def _is_linear(self, change):
        """False if a change puts a term without dy where others have it, or a product of two gradients.

        Because a backward is linear in dy, each term has it once.
        """
        if found := MISSING.match(change.name):
            if found[1] == "factor":
                return change.line not in self.with_dy or not self.degree(found[2])
            within_a_product = ATOM.fullmatch(change.old)                # dy * (h - x)
            return self.degree(found[2]) == (self.degree(change.old) if within_a_product else 1)
        if found := IN_PLACE.match(change.name):
            return self.degree(found[1]) == self.degree(found[2])
        return True

    def degree(self, text: str) -> int:
        """How often a product has dy."""
        if text in self.degrees:
            return self.degrees[text]
        return sum(self.degrees.get(one[0], 0) for one in ATOM.finditer(text))


@lru_cache(1000)
def _power_rules(text):
    """How many derivatives of powers a line has: 3 * x ** 2, 0.5 * v ** -0.5, and -0.5 * s ** 3 of s = v ** -0.5"""
    try:
        tree = ast.parse(text.strip())
    except SyntaxError:                                  # a part of a statement of several lines
        return 0
    found = 0
    for one in ast.walk(tree):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult):
            factors = multiplied(one)
            numbers = {number for number in map(_number, factors) if number is not None}
            powers = [_number(f.right) for f in factors if isinstance(f, ast.BinOp) and isinstance(f.op, ast.Pow)]
            found += any(p + 1 in numbers or (p == 3 and -0.5 in numbers) for p in powers if p is not None)
    return found


def _number(node):
    with suppress(ValueError, SyntaxError):
        number = ast.literal_eval(node)
        return number if isinstance(number, (int, float)) else None
    return None


def candidates(
    evidence: Evidence, lines: Sequence[Collection[int]], texts: dict[str, str], missing: Collection[str] = ()
) -> Iterator[tuple[Part, Mutation]]:
    """(Part, Mutation) to try: first in the suspected lines, then in the rest of the backward, then what is kept.

    They are made when it is their turn, because there may be a hundred thousand, and the first is often right.
    lines, missing   as in `repair.find_repair`
    texts   gets {file: its text} of the parts
    """
    places, forwards = [], []
    for part in parts_of(evidence):
        try:
            text, node = source_of(part.function)
        except ValueError:                               # UserError: written in C, or at a prompt
            continue
        if part.runs is not part.function and has_while(part.runs):
            continue                                     # changed, it might never end
        texts[part.function.__code__.co_filename] = text
        source = Source(text)
        if part.is_forward:
            forwards.append((part, source, node))
        else:
            places.append(_place(evidence, part, source, node, bool(places), () if places else missing))

    places[1:] = sorted(places[1:], key=lambda place: not place.part.is_handed)          # a rule, before its tape

    def of_the_backward():
        before, later = set(), []
        loops = [one for place in places for one in ast.walk(place.node) if isinstance(one, ast.For)]
        around = [{one.lineno for one in loops if not {*range(one.lineno, one.end_lineno + 1)}.isdisjoint(some)}
                  for some in lines]  # fmt: skip
        for some in [*({*some} | more for some, more in zip(lines, around)), None]:
            def here(line, some=some):
                return line not in before and (some is None or line in some)

            found = [(_stage(rank, turn, is_helper), part, change)
                     for is_helper, some_places in enumerate((places[:1], places[1:]))
                     for turn, (rank, part, change) in enumerate(_in_order(some_places, here))]  # fmt: skip
            found.sort(key=lambda one: one[0])           # it is stable
            if some is None:
                yield from later                         # what is unlikely in suspected lines comes before all others
            first = [one for one in found if one[0] <= LIKELY or some is None]
            yield from ((part, change) for _, part, change in first)
            later += [(part, change) for _, part, change in found[len(first) :]]
            before.update(some or ())

    def in_turn():
        found = of_the_backward()
        yield from itertools.islice(found, AT_ONCE)
        yield from _of_steps(evidence, texts)
        yield from itertools.islice(_commonest(places), SOON - AT_ONCE)
        yield from itertools.islice(found, SOON - AT_ONCE)
        for part, source, node in forwards:
            atoms = {name: x for name, x in atoms_of(evidence, part, node).items() if "(" not in name}   # no formulas
            yield from ((part, change) for change in changes_of_what_is_kept(source, node, atoms))
        yield from found

    tried = set()
    for part, change in in_turn():
        one = part.runs, change.start, change.end, change.new
        if one not in tried:
            tried.add(one)
            yield part, change


def _commonest(places):
    """(Part, Mutation) of the commonest mistakes in any line, suspected or not, which are soon tried"""
    for place in places:
        found = [(rank, change) for rank, _, change in place.changes(lambda line: True, only_commonest=True)]
        found.sort(key=lambda one: one[0])
        yield from ((place.part, change) for rank, change in found if not rank.unlikely)


def _of_steps(evidence, texts):
    """(Part, Mutation) of steps that set a gradient, self.dW = g, where others add to it"""
    for function in filter(is_theirs, functions_of_steps(evidence.subject)):
        with suppress(ValueError):                       # UserError: no source
            text, node = source_of(function)
            texts[function.__code__.co_filename] = text
            yield from ((Part(function, function), change) for change in changes_of_a_step(Source(text), node))


def _in_order(places, here):
    """[(rank, part, change)], the likeliest first"""
    found = [(rank, turn, place.part, change) for place in places for rank, turn, change in place.changes(here)]
    found.sort(key=lambda one: one[:2])
    return [(rank, part, change) for rank, _, part, change in found]


def _stage(rank, turn, is_helper):
    """0 for what is of note, wherever it is; then the likely changes of the backward, of its helpers, and the rest."""
    unlikely = max(rank.unlikely, int(turn >= SOON or rank.of_forward))
    return 1 + 2 * unlikely + is_helper if rank.of_note == 2 else 0


def _place(evidence, part, source, node, is_helper, missing):
    atoms, written = atoms_of(evidence, part, node), ast.unparse(node)
    unread = {*part.function.__code__.co_varnames} if part.is_inside else {*atoms}           # which others may read
    of_note = (_unused(node) | _unread(atoms, node) & unread) - _of_others(node) | {*missing}
    return Place(
        part, source, node, atoms, _degrees(evidence, part, node, atoms), of_note,
        formulas=[one for one in atoms if not part.is_inside and FORMULA.match(one) and one.strip("()") not in written],
        without_dy=set() if is_helper else _without(_upstreams(evidence), node), begins=_beginnings(node),
        zeros={number for number, line in enumerate(source.lines, 1) if ZEROS.search(line)}, bare=_bare(node),
        renamed=_renamed(node, atoms), again={} if part.is_inside else _formulas_of_the_forward(evidence, part, atoms),
    )  # fmt: skip


def _formulas_of_the_forward(evidence, part, atoms):
    """{name: [formula]} of what the forward computes, in the names of a part; of a loss with its gradients, nothing"""
    forward, found = function_of(written_forward(evidence)), {}
    for function in [forward, *called_by(forward)] if forward is not function_of(evidence.backward) else ():
        with suppress(ValueError):                       # UserError: no source
            assigned = [one for one in own_nodes(source_of(function)[1], loops=True) if isinstance(one, ast.Assign)]
            for one in [one for one in assigned if isinstance(one.targets[0], ast.Name)]:
                found.setdefault(one.targets[0].id, []).append(ast.unparse(one.value))
    code = part.function.__code__
    known = {*atoms, *code.co_varnames, *code.co_freevars, *part.function.__globals__, *vars(builtins)}
    alone = {name: f"({formulas[0]})" for name, formulas in found.items() if len(formulas) == 1 and name not in known}

    def in_its_names(formula):
        for _ in range(INSIDE_EACH_OTHER):
            formula = NAME.sub(lambda word: alone.get(word[0], word[0]), formula)
        return formula

    return {name: [in_its_names(formula) for formula in formulas] for name, formulas in found.items() if name in known}


def _upstreams(evidence):
    """The arguments of the backward that are gradients: dout, or dh and dc; none of a loss that takes none"""
    arguments = inspect.signature(function_of(evidence.backward)).parameters
    names = [name for name in arguments if name not in ("self", "ctx")]
    like_gradients = [name for name in names if is_upstream(name)]
    return (like_gradients or names[:1]) if getattr(evidence.backward, "takes_dy", True) else []


def _without(names, node):
    """The numbers of the lines that set a variable which does not come from these names, or, if there are none, from
    what is named as a gradient
    """
    statements = [one for one in ast.walk(node) if isinstance(one, (ast.Assign, ast.AugAssign))]
    stored = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    read = set(names) or set(filter(is_upstream, stored))
    for one in [*statements, *statements]:               # twice: in a loop, a later line feeds an earlier one
        if read & names_read(one):
            read |= {*_set_by(one)}
    return {one.lineno for one in statements if read and not read & {*_set_by(one), *names_read(one)}}


def _set_by(statement):
    """The names that an assignment sets, as a whole or in part"""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        for part in map(array_of, target.elts if isinstance(target, ast.Tuple) else [target]):
            yield from [part.id] if isinstance(part, ast.Name) else []


def _degrees(evidence, part, node, atoms):
    """{text: 1} of the atoms that are twice as large for twice the dy, and {text: 0} of those that stay as they are.

    If the backward is given no dy, those named as gradients have a 1.
    """
    if not getattr(evidence.backward, "takes_dy", True):
        return {text: int(is_upstream(text.rpartition(".")[2])) for text in atoms}
    dy, evidence.dy = evidence.dy, 2 * evidence.dy
    try:
        there = values_of(evidence, part, node)
    finally:
        evidence.dy = dy
    known = {text: (x, there.get(text)) for text, x in atoms.items() if isinstance(x, NUMBERS) and np.any(x)}
    found = {text: [degree for degree in (0, 1) if _are_close(y, 2**degree * x)] for text, (x, y) in known.items()}
    return {text: degrees[0] for text, degrees in found.items() if degrees}


def _are_close(x, y):
    return np.shape(x) == np.shape(y) and bool(np.allclose(x, y, rtol=1e-9, atol=0))


def _of_others(node):
    """The names that are `nonlocal` or `global` in a function: others read them"""
    declared = [one.names for one in ast.walk(node) if isinstance(one, (ast.Global, ast.Nonlocal))]
    return {name for names in declared for name in names}


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
                found.setdefault(one.id, []).append(range(loop.lineno + 1, loop.end_lineno + 1))
    return found


def _counts_outside(line, counters, counted):
    """True if a line outside its loop gets a counter: there it is what the last round has left."""
    return any(not any(line in lines for lines in counted[name]) for name in counters)


def _beginnings(node):
    """{number of a line: that of the first line of its statement}, for statements of several lines"""
    statements = [one for one in ast.walk(node) if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return {line: one.lineno for one in statements for line in range(one.lineno, one.end_lineno + 1)}


def _bare(node):
    """The numbers of the lines that only hand things on: `return dx, dW`, `self.dW = dW`, `return self.back(dy)`"""
    kinds = ast.Assign, ast.AugAssign, ast.Return
    statements = [one for one in ast.walk(node) if isinstance(one, kinds) and one.value is not None]
    found = set()
    for one in statements:
        values = _parts(one.value)
        kept = not isinstance(getattr(one, "targets", [None])[0], ast.Name)
        calls = [any(map(_calls_own, multiplied(value))) for value in values]
        if all(is_call or (kept and isinstance(value, ast.Name)) for is_call, value in zip(calls, values)):
            found.add(one.lineno)
    return found


def _calls_own(value):
    """True for back(dy), and back(dy) / n; not for da.sum()"""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return _calls_own(value.left)
    return is_own_function(_call(value)) and array_in(_call(value)) is None


def _parts(value):
    """The values in a tuple or a list, and in those inside it"""
    several = isinstance(value, (ast.Tuple, ast.List))
    return [one for part in value.elts for one in _parts(part)] if several else [value]


def _renamed(node, atoms):
    """The numbers of the lines such as `q = self.q`; but in `n = self.n`, of a whole number, a factor may be missing"""
    statements = [one for one in ast.walk(node) if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
    statements = [one for one in statements if is_atom(one.value)]
    known = {one.lineno: atoms.get(ast.unparse(one.value)) for one in statements}
    return {line for line, x in known.items() if is_array(x) or isinstance(x, float)}


def _call(value):
    """Of self.back(dy).reshape(shape) the inner call"""
    inner = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    return _call(inner) if isinstance(inner, ast.Call) else value


def _unused(node):
    """The names that a function computes, or is given, and does not use; or computes in each round of a loop, and
    does not use there, though it sets them before the loop: dh_next = np.zeros_like(h)
    """
    made, used = _set_and_read(node)
    found = (made | {one.arg for one in node.args.args}) - used
    for loop in [one for one in ast.walk(node) if isinstance(one, ast.For)]:
        set_there, read_there = _set_and_read(loop)
        before = {name for one in ast.walk(node) if isinstance(one, ast.Assign) and one.lineno < loop.lineno
                  for name in _set_by(one)}  # fmt: skip
        found |= (set_there & before) - read_there
    return found


def _set_and_read(node):
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return ({one.id for one in names if isinstance(one.ctx, way)} for way in (ast.Store, ast.Load))

"""In which order changes are tried: the likeliest lines first, and in them what nothing uses."""

import ast
import inspect
import re
from collections.abc import Collection, Sequence
from functools import cache
from types import FunctionType

from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.planting.editing import function_of, source_of
from mini_tf.gradcheck.planting.mutations import Mutation, Source
from mini_tf.gradcheck.reasons.atoms import NAME, NUMBERS, atoms_of
from mini_tf.gradcheck.reasons.changes import RARE, changes, changes_of_what_is_kept, names_read
from mini_tf.gradcheck.reasons.lines import array_of
from mini_tf.gradcheck.reasons.theirs import Part, parts_of

import numpy as np

SOON = 2000              # changes of the backward that are tried before those of what the forward keeps
AT_ONCE = 400            # changes of one function, before it is another one's turn
FORMULA = re.compile(r"\(1 - |\w+\[\d\]$")              # of the forward: (1 - m), peep[2]
LIKE_GRADIENT = re.compile("d|g$|grad|up")
ZEROS = re.compile(r"\.zeros(_like)?\(")                 # dW = np.zeros_like(W): sums begin there


def candidates(
    evidence: Evidence, lines: Sequence[Collection[int]], texts: dict[str, str]
) -> list[tuple[Part, Mutation]]:
    """[(Part, Mutation)] to try: first in the suspected lines, then in the rest of the backward, then what is kept.

    lines   as in `repair.find_repair`
    texts   gets {file: its text} of the parts
    """
    found, kept, begins, parts = [], [], {}, parts_of(evidence)
    of_note, formulas, without_dy = {}, {}, {}           # {Part: …}
    for part in parts:
        try:
            text, node = source_of(part.function)
        except ValueError:                               # UserError: written in C, or at a prompt
            continue
        if part.runs is not part.function and has_while(part.runs):
            continue                                     # changed, it might never end
        texts[part.function.__code__.co_filename] = text
        atoms, source = atoms_of(evidence, part, node), Source(text)
        if part is parts[0]:
            without_dy[part] = _without(_upstreams(evidence), node)
        of_note[part], begins = _unused(node) | _unread(atoms, node), begins | _beginnings(node)
        written = ast.unparse(node)
        formulas[part] = [one for one in atoms if FORMULA.match(one) and one.strip("()") not in written]
        if part.is_forward:
            kept += [(part, change) for change in changes_of_what_is_kept(source, node, atoms)]
        else:
            counted = _counters(node)
            for number, change in enumerate(changes(source, node, atoms)):
                new = {*NAME.findall(change.after)} - {*NAME.findall(change.before)}
                if not _counts_outside(change.line, new & counted.keys(), counted):
                    found.append((part, change, number // AT_ONCE, bool(new & of_note[part])))

    def rank(one):                                       # the sort is stable: the likeliest stay first
        part, change, turn, noted = one                  # what nothing uses belongs into the last line that lacks it
        line = begins.get(change.line, change.line)
        unsuspected = next((k for k, some in enumerate(lines) if line in some), len(lines))
        unlikely = RARE.search(change.name) or ZEROS.search(change.before)
        in_helper = part is not parts[0]                 # such as sigmoid: it may be right where others call it
        of_forward = line in without_dy.get(part, ())    # Kinv = Linv.T @ Linv, once more
        noted |= any(formula in change.after for formula in formulas[part])          # as in the forward
        return unsuspected, in_helper, not noted, of_forward, noted and -line, unlikely is not None, turn

    found = [(part, change) for part, change, *_ in sorted(found, key=rank)]
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
        if read & names_read(one):
            read |= {*_set_by(one)}
    return {one.lineno for one in statements if read and not read & {*_set_by(one), *names_read(one)}}


def _set_by(statement):
    """The names that an assignment sets, as a whole or in part"""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        for part in map(array_of, target.elts if isinstance(target, ast.Tuple) else [target]):
            yield from [part.id] if isinstance(part, ast.Name) else []


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


def _counts_outside(line, counters, counted):
    """True if a line outside its loop gets a counter: there it is what the last round has left."""
    return any(not any(line in lines for lines in counted[name]) for name in counters)


def _beginnings(node):
    """{number of a line: that of the first line of its statement}, for statements of several lines"""
    statements = [one for one in ast.walk(node) if isinstance(one, ast.stmt) and not hasattr(one, "body")]
    return {line: one.lineno for one in statements for line in range(one.lineno, one.end_lineno + 1)}


def _unused(node):
    """The names that a function computes, or is given, and does not use."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    made, used = ({one.id for one in names if isinstance(one.ctx, way)} for way in (ast.Store, ast.Load))
    return (made | {one.arg for one in node.args.args}) - used


@cache
def has_while(function: FunctionType) -> bool:
    """True if a function has a while-loop, which a change may make endless."""
    return any(isinstance(one, ast.While) for one in ast.walk(source_of(function)[1]))

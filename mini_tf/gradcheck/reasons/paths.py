"""Patterns of wrong gradients: what comes back on one of several paths is missing, or is there too often.

Gradients add up over all paths from an input to y. Hold a variable of the forward constant where it is read, and the
slope of φ lacks exactly the paths through it. Where your gradient lacks the same, nothing comes back to you that way.
"""

import ast
import time
from itertools import pairwise
from typing import NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import CLOSE, Evidence
from mini_tf.gradcheck.measuring.inside import Held
from mini_tf.gradcheck.measuring.slopes import slopes_along
from mini_tf.gradcheck.planting.editing import function_of, source_of
from mini_tf.gradcheck.reasons.theirs import written_forward
from mini_tf.gradcheck.reasons.words import Words
from mini_tf.gradcheck.verdicts import listed

import numpy as np

DIRECTIONS = 3           # in which the tensor is moved: the first gives how often the path is there, the others confirm
PLAIN = 0, -1, 2         # times: a path that is missing, has the wrong sign, is there twice
SECONDS = 1.0            # of processor time, for all variables of a function
DEFINES = ast.FunctionDef, ast.Lambda, ast.ClassDef
SIMPLE = ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return


class Reading(NamedTuple):
    """A variable of the forward, and lines that read it: all that do, or those of one statement."""

    name: str
    lines: frozenset[int]
    statement: ast.stmt | None = None


def one_path(e: Evidence, name: str) -> Words | None:
    """The error is a multiple of the gradient through one variable of the forward, or that it gets from one line."""
    yours, right, known = e.pair(name)
    if not known.all():
        return None
    try:
        forward = function_of(written_forward(e))
        text, node = source_of(forward)
    except UserError:
        return None
    rng, until, found = np.random.default_rng(0), time.process_time() + SECONDS, {}
    directions = rng.choice([-1, 1], (DIRECTIONS, right.size)) * rng.uniform(0.5, 1.5, (DIRECTIONS, right.size))
    for reading in _readings(node, forward.__code__):
        if time.process_time() > until:
            return None
        times = _times(e, name, forward.__code__, reading, directions)
        if times is not None:
            found[reading] = times
    e.back_to_the_point()
    return _words(found, _assigned(node), text.split("\n"))


def _words(found, assigned, lines):
    """Of variables as a whole, if there are such: of a chain, a = f(x), b = g(a), all; of others, all that it may be.

    assigned: {name: its assignments}
    """
    if not found:
        return None
    times = min(found.values(), key=lambda times: min(abs(times - k) for k in PLAIN))
    found = [reading for reading, other in found.items() if abs(other - times) < CLOSE * (1 + abs(times))]
    whole = [reading.name for reading in found if reading.statement is None]
    if whole:
        said = [_said_once(name, assigned) for name in whole]
        through = listed(said) if _is_chain(whole, assigned) else " or, the same, ".join(said)
        gradient = f"the gradient through {through}"
    else:
        name, line = found[0].name, found[0].statement.lineno
        gradient = f"the gradient of {name} from line {line} ({lines[line - 1].strip()})"
    if abs(times) < CLOSE:
        fault = "is missing"
    elif abs(times + 1) < CLOSE:
        fault = "has the wrong sign"
    else:
        fault = f"counts {times:.4g} times"
    return Words(f"It is right but for {gradient}: that {fault}.")


def _said_once(name, assigned):
    lines = [statement.lineno for statement in assigned.get(name, ())]
    return f"{name} (line {lines[0]})" if len(lines) == 1 else name


def _is_chain(names, assigned):
    """True if each variable is computed from the one before."""
    return all(a in _needed(b, assigned) for a, b in pairwise(names))


def _needed(name, assigned):
    """The names from which a variable is computed, and what they are computed from"""
    needed, waiting = set(), [name]
    while waiting:
        read = {other for statement in assigned.get(waiting.pop(), ()) for other in _names(statement)}
        waiting += read - needed
        needed |= read
    return needed


def _times(e, name, code, reading, directions):
    """How often the reading's paths are in your gradient, if that explains all of its error; right is 1."""
    yours, right, _ = (np.reshape(a, -1) for a in e.pair(name))
    e.back_to_the_point()
    x, times = e.subject.tensors[name], None
    try:
        with np.errstate(all="ignore"):
            phi = Held(lambda: e.subject.forward()[0], e.dy, code, reading.lines, reading.name)
            for v in directions:
                held = slopes_along(phi, x, v[None])
                total, error = right @ v, (yours - right) @ v
                path, size = total - held.slope[0], np.linalg.norm(right) * np.linalg.norm(v)
                if held.kink[0] or abs(path) < 1e-4 * size or abs(held.slope[0]) < 1e-4 * size:
                    return None                          # none, or all of it: then a factor says more
                times = 1 + error / path if times is None else times
                unsure = held.uncertainty[0] * abs(times - 1) + CLOSE * size
                if not abs(error - (times - 1) * path) < unsure or unsure > 0.1 * abs(error):
                    return None
    except FAILURES:                                     # the variable is no array, or f fails with it held
        return None
    is_plain = min(abs(times - k) for k in PLAIN) < CLOSE
    return times if is_plain or right.size > 1 else None                 # one number is a multiple of any other


def _readings(function, code):
    """[Reading] of all variables, first as a whole, then statement by statement."""
    found, local = {}, {*code.co_varnames, *code.co_cellvars}
    for statement in ast.walk(function):
        if isinstance(statement, SIMPLE) and not any(statement in ast.walk(inner) for inner in _inner(function)):
            for name in _names(statement):
                if name.partition(".")[0] in local:
                    found.setdefault(name, []).append(statement)
    whole = [Reading(name, frozenset(line for one in statements for line in _lines(one)))
             for name, statements in found.items()]  # fmt: skip
    single = [Reading(name, frozenset(_lines(one)), one) for name, statements in found.items() if len(statements) > 1
              for one in statements]  # fmt: skip
    return whole + single


def _assigned(function):
    """{name: the statements that assign to it}"""
    found = {}
    for statement in ast.walk(function):
        for target in getattr(statement, "targets", ()):
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                found.setdefault(ast.unparse(name), []).append(statement)
    return found


def _lines(statement):
    return range(statement.lineno, statement.end_lineno + 1)


def _inner(function):
    return [one for one in ast.walk(function) if isinstance(one, DEFINES) and one is not function]


def _names(statement):
    """The names of the variables that a statement reads: h, self.h; in h[t] = …, and in h += …, h is read, too"""
    nodes = list(ast.walk(statement))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    own = [node for node in nodes if isinstance(node, ast.Name)
           or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))]  # fmt: skip
    read = [node for node in own if isinstance(node.ctx, ast.Load) and id(node) not in called]
    changed = [statement.target] if isinstance(statement, ast.AugAssign) else []
    return list(dict.fromkeys(ast.unparse(node) for node in read + changed))

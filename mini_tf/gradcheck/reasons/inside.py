"""Which gradients inside a backward are right?  dA is, if it is the slope of φ in the forward's A.

Up to there the backward is right, then; if gradients are wrong all the same, the mistake is behind it.
"""

import ast
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from types import CodeType
from typing import Any, NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import CLOSE, Evidence
from mini_tf.gradcheck.measuring.inside import Inside
from mini_tf.gradcheck.measuring.naming import in_this_case, is_gradient_name, plain
from mini_tf.gradcheck.measuring.slopes import slopes_along
from mini_tf.gradcheck.measuring.subject import is_float
from mini_tf.gradcheck.planting.editing import function_of, recompiled, source_of
from mini_tf.gradcheck.reasons.feeding import scaled
from mini_tf.gradcheck.reasons.lines import array_of, lines_of, pairs_of
from mini_tf.gradcheck.reasons.running import gradients_with
from mini_tf.gradcheck.reasons.theirs import Part, following, parts_of, written_forward
from mini_tf.gradcheck.verdicts import listed
from mini_tf.trace import codes_inside
from mini_tf.types import Array

import numpy as np

LARGEST = 20_000         # entries: of larger variables no states are kept
DIRECTIONS = 2           # in which a variable is moved: a wrong gradient has the right slope in neither
SECONDS = 1.0            # of processor time, for all variables of a function
DEFINES = ast.FunctionDef, ast.Lambda, ast.ClassDef
WINDOWS = re.compile(r"sliding_window_view\(|as_strided\(")
LOOPS = ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp


class Inner(NamedTuple):
    """A variable of a backward, such as dA: what its name says it is the gradient of; its states; those that are right.

    A state is (number of the line after which it is, value). Later lines may make another gradient of one that is
    right: `dA[~mask] = 0`. fits(x) says whether an array is the slope, too; multiplied(x), whether it is some
    multiple of it: dscores may be divided by N later.
    """

    of: str
    states: list[tuple[int, Array]]
    right: list[tuple[int, Array]]
    fits: Callable[[Array], bool]
    multiplied: Callable[[Array], bool]


def measured_inside(evidence: Evidence) -> dict[str, Inner]:
    """{name: Inner} of a backward's variables that are named as gradients.

    dA is compared with the slope in the forward's A, if A is set once and in no loop, and the gradients of the tensors
    with theirs. Of dA + dB, dA may be what comes back on one path only: it is left out if it is not all of it.
    """
    try:
        forward, backward = (function_of(f) for f in (written_forward(evidence), evidence.backward))
        node = source_of(backward)[1]
        made, terms, windows = _set_once(source_of(forward)[1]), _terms(node), _windows(node)
    except UserError:
        return {}
    states, found = states_of(evidence, backward.__code__, lambda: _there_and_back(evidence)), {}
    until = time.process_time() + SECONDS
    for said, name in _pairs(states, [*made, *evidence.slopes]):
        tests = None
        if name in evidence.slopes:
            if evidence.is_zero(name):
                continue
            tests = partial(evidence.agrees, name), partial(_is_multiple, evidence, name)
        elif time.process_time() < until:
            shapes = {x.shape for _, x in states[said]}
            tests = _slope_tests(evidence, forward.__code__, made[name], name, shapes)
        right = [(line, x) for line, x in states[said] if tests[0](x)] if tests else []
        if right or (tests and said not in terms | windows):
            found[said] = Inner(name, states[said], right, *tests)
    local = _local_derivatives(evidence, backward.__code__, states) if found else set()
    return {said: inner for said, inner in found.items() if inner.right or said not in local}


def _local_derivatives(evidence, code, states):
    """The names of variables that are the same with another dy: dbasis may be a derivative, and no gradient of basis"""
    if not getattr(evidence.backward, "takes_dy", bool(np.ndim(evidence.dy))):           # as a loss's may not
        return set()
    others = states_of(evidence, code, lambda: evidence.subject.forward()[1](2.0 * evidence.another_dy))
    return {name for name, those in states.items() if len(those) == len(others.get(name, ()))
            and all(np.array_equal(x, y) for (_, x), (_, y) in zip(those, others[name]))}  # fmt: skip


def right_after(evidence: Evidence, inside: Mapping[str, Inner]) -> dict[str, list[int]]:
    """{name: numbers of the lines after which it is right} of the backward's variables, for `lines.suspects`.

    Without those that a wrong variable before them feeds, but does not change: dmean = -ddiff.sum(0) is right for any
    dvar, because Σ diff is 0.
    """
    lines = {name: [line for line, _ in inner.right] for name, inner in inside.items()}
    own = function_of(evidence.backward)
    part = next((one for one in parts_of(evidence) if one.function is own and not one.is_forward), None)
    for name, inner in inside.items() if part else ():
        line = inner.states[0][0]
        later = [other for other in lines if max(lines[other], default=0) > line
                 and line in lines_of(evidence, other, {})] if not inner.right else []           # fmt: skip
        states = _states_scaled(evidence, part, line, name) if later else {}
        for other in later:
            after = max(lines[other])
            there = dict(states.get(other, ())).get(after)
            if there is not None and same(there, dict(inside[other].states)[after]):
                lines[other] = []
    return lines


def _states_scaled(evidence, part, line, name):
    """`states_with` a variable of the backward scaled behind the statement in a line; {} if that does not run"""
    try:
        text, node = source_of(part.function)
        changed = scaled(text, node, line, name)
        return states_with(evidence, part, recompiled(part.runs, changed, text)) if changed else {}
    except (*FAILURES, SyntaxError, StopIteration):
        return {}


def first_wrong(inside: Mapping[str, Inner], lines: Collection[int]) -> str:
    """The first variable that one of these lines sets and that is not what its name says; "" if there is none.

    lines: numbers of suspected lines. Names that mean something else are wrong in a right backward, too
    """
    wrong = [name for name, inner in inside.items() if not inner.right and inner.states[0][0] in lines
             and not any(inner.multiplied(x) for _, x in inner.states)]                  # fmt: skip
    return min(wrong, key=lambda name: inside[name].states[0][0], default="")


def told_inside(evidence: Evidence, inside: Mapping[str, Inner]) -> dict[str, Inner]:
    """Those that are neither dy nor the gradient of a tensor, of which the verdicts say enough"""
    tensors = [name.rpartition(".")[2] for name in evidence.subject.tensors]
    return {name: inner for name, inner in inside.items()
            if name != evidence.upstream and not any(is_gradient_name(name, tensor) for tensor in tensors)}  # fmt: skip


def about_inside(evidence: Evidence, inside: Mapping[str, Inner], first: str) -> str:
    """What `measured_inside` found, in a sentence; "" if that is only what the verdicts say of the tensors.

    first: the first wrong variable
    """
    told = told_inside(evidence, inside)
    told = dict(sorted(told.items(), key=lambda one: one[1].states[0][0]))
    right = [name + (f" (line {inner.right[-1][0]})" if len(inner.states) > 1 else "")               # it is set again
             for name, inner in told.items() if inner.right]  # fmt: skip
    said = [f"{listed(right)} {'is' if len(right) == 1 else 'are'} right"] if right else []
    said += [f"{first} is wrong, if it is meant as the gradient of {told[first].of}"] if first in told else []
    return f"Measured inside: {'; '.join(said)}." if said else ""


def _is_multiple(evidence, name, x):
    """Whether an array is a multiple of the slopes of a tensor"""
    slopes = evidence.slopes[name]
    if np.shape(x) != slopes.shape:
        return False
    place = np.abs(slopes).argmax()
    factor = x.reshape(-1)[place] / slopes.reshape(-1)[place]
    return bool(factor) and evidence.agrees(name, x / factor)


def _slope_tests(evidence, code, lines, name, shapes):
    """Functions that say whether an array is the slope in the forward's variable, and whether it is a multiple of it;
    None if that cannot be measured.

    shapes: of the backward's variable, of which one must be the forward's
    """
    evidence.back_to_the_point()
    try:
        phi = Inside(lambda: evidence.subject.forward()[0], evidence.dy, code, lines, name)
        if phi.x is None or phi.x.shape not in shapes:
            return None
        shape = phi.x.shape
        rng = np.random.default_rng(0)
        directions = rng.choice([-1, 1], (DIRECTIONS, phi.x.size)) * rng.uniform(0.5, 1.5, (DIRECTIONS, phi.x.size))
        with np.errstate(all="ignore"):
            found = slopes_along(phi, phi.x, directions)
    except FAILURES:                                     # a variable that is not set on this way, or no array
        return None
    finally:
        evidence.back_to_the_point()
    if found.kink.any() or not found.slope.any():        # y does not come from it, behind this line
        return None
    sizes = CLOSE * np.linalg.norm(directions, axis=1)

    def is_right(x, factor=1.0):
        if x.shape != shape or not factor:
            return False
        x = x.reshape(-1) / factor
        return bool((np.abs(directions @ x - found.slope) <= found.uncertainty + sizes * np.linalg.norm(x)).all())

    def is_multiple(x):
        return x.shape == shape and is_right(x, (directions[0] @ x.reshape(-1)) / (found.slope[0] or np.inf))

    return is_right, is_multiple


def _pairs(states, names):
    """[(dA, A)] of the backward's variables and what they are the gradients of, by their names"""
    pairs, own = {}, {name: name.rpartition(".")[2] for name in names}
    for said in states:
        called = [name for name in names if is_gradient_name(said, own[name]) and plain(said) != plain(own[name])]
        if called:
            pairs[said] = min(called, key=lambda name: (not in_this_case(said, own[name]), -len(own[name])))
    return list(pairs.items())


def states_of(evidence: Evidence, code: CodeType, run: Callable[[], Any]) -> dict[str, list[tuple[int, Array]]]:
    """{name: [(number of a line, its value after that line)]} of the float variables of a backward, while run() runs"""
    states, line = {}, 0

    def see(frame, _):
        nonlocal line
        for name, x in frame.f_locals.items() if line else ():
            before = states.get(name)
            if is_float(x) and x.size <= LARGEST and (before is None or not np.array_equal(before[-1][1], x)):
                states.setdefault(name, []).append((line, np.array(x)))
        line = frame.f_lineno

    evidence.back_to_the_point()
    with suppress(*FAILURES), following(code, see):
        run()
    evidence.back_to_the_point()
    return states


def states_with(evidence: Evidence, part: Part, code: CodeType) -> dict[str, list[tuple[int, Array]]]:
    """`states_of` the backward's variables when part.runs runs this code."""
    own = function_of(evidence.backward).__code__
    where = own.co_qualname, own.co_firstlineno
    changed = next((one for one in codes_inside(code) if (one.co_qualname, one.co_firstlineno) == where), own)
    return states_of(evidence, changed, lambda: gradients_with(evidence, part, code))


def same(x: Array, y: Array) -> bool:
    """True if two states of a variable differ by no more than rounding."""
    return x.shape == y.shape and bool((np.abs(x - y) <= CLOSE * np.abs(y).max(initial=0)).all())


def _there_and_back(evidence):
    evidence.subject.forward()[1](evidence.another_dy)


def _terms(function):
    """The names that are terms of a sum in a function"""
    sums = [one for one in ast.walk(function) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)]
    return {part.id for one in sums for part in (one.left, one.right) if isinstance(part, ast.Name)}


def _windows(function):
    """The names of views of sliding windows: gwin are windows of g, whatever the forward calls win"""
    return {one.targets[0].id for one in ast.walk(function) if isinstance(one, ast.Assign)
            and isinstance(one.targets[0], ast.Name) and WINDOWS.search(ast.unparse(one.value))}  # fmt: skip


def _set_once(function):
    """{name: numbers of the lines that set it} of a function's variables that one statement sets, in no loop"""
    own, waiting = [], [function]
    while waiting:
        one = waiting.pop()
        own.append(one)
        waiting += [] if one is not function and isinstance(one, DEFINES) else ast.iter_child_nodes(one)
    set_at = Counter(ast.unparse(array_of(one)) for one in own if isinstance(getattr(one, "ctx", None), ast.Store))
    set_at.update(one.arg for one in own if isinstance(one, ast.arg))
    starts = Counter(one.lineno for one in own if isinstance(one, ast.stmt))
    looped = {id(inside) for one in own if isinstance(one, LOOPS) for inside in ast.walk(one)}
    found = {}
    for one in own:
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and id(one) not in looped and starts[one.lineno] == 1:
            for target, value in pairs_of(one.targets[0], one.value):
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                targets = [] if isinstance(value, ast.Name) else targets         # ctx.m, ctx.y = m, y: too late
                for name in (ast.unparse(t) for t in targets if isinstance(t, (ast.Name, ast.Attribute))):
                    if set_at[name] == 1:
                        found[name] = range(one.lineno, one.end_lineno + 1)
    return found

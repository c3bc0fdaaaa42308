"""Which gradients does a line of a backward feed?  Those that change when what it computes is changed, and it runs.

The mistake is in a line that wrong gradients come from, and no right one. `lines` reads that in the source; here it is
measured: through helpers, closures, and whatever else a value may take on its way.
"""

import ast
import time
from collections.abc import Collection, Iterator

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.styles import BACK
from mini_tf.gradcheck.planting.editing import recompiled, source_of
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.running import gradients_with
from mini_tf.gradcheck.reasons.theirs import Part, parts_of
from mini_tf.types import Array

import numpy as np

SECONDS = 2.0            # of processor time, for all lines
SAME = 1e-10             # relative: a gradient that differs by less has not changed
TIMES, PLUS = "* 1.25", "+ 0.375"        # what is done to what a line computes; the second, if the first does nothing
BEGINS = "zeros", "ones", "empty", "full"                # of functions whose arrays are filled later
WRITES = "at", "append", "insert", "extend"              # np.add.at(dtable, ids, dy)
DROPPED = "_"            # a gradient that comes back, and is not used: it may be what is missing elsewhere

Line = tuple[str, int]                                   # a file, and the number of one of its lines


def fed_by_lines(evidence: Evidence) -> dict[Line, tuple[str, list[frozenset[str]]]]:
    """{line: (its code, [names of the gradients that change with one thing it computes])} of the lines; looked for once

    Of `return dx, dW` there are two such things. Without lines that y depends on, and those that do not run with other
    values; without any if the backward does not run, or gives other gradients when it runs again.
    """
    if evidence.fed is None:
        evidence.fed = _fed_by_lines(evidence)
    return evidence.fed


def _fed_by_lines(evidence):
    found, seen, until = {}, set(), time.process_time() + SECONDS
    for part in parts_of(evidence):
        if part.is_forward:
            continue
        try:
            text, node = source_of(part.function)
            as_it_is = _gradients(evidence, part, text, text)
        except (*FAILURES, StopIteration):
            continue
        if as_it_is is None or _changed(as_it_is, _gradients(evidence, part, text, text)):
            continue
        source = Source(text)
        for statement, changes in _changes(source, node):
            if time.process_time() > until:
                return {}
            if (statement.lineno, *changes) in seen:     # of a function inside one that was looked at
                continue
            seen.add((statement.lineno, *changes))
            names = None if changes else {DROPPED}
            for change in changes:
                other = _gradients(evidence, part, change, text)
                names = None if other is None else _changed(as_it_is, other)
                if names:
                    break
            if names is not None:
                path, code = part.function.__code__.co_filename, " ".join(ast.unparse(statement).split())
                found.setdefault((path, statement.lineno), (code, []))[1].append(frozenset(names))
    return found


def scaled(text: str, node: ast.AST, line: int, name: str) -> str | None:
    """A file's text with a variable scaled behind the statement in this line that sets it; None if there is none"""
    sets = (one for one in ast.walk(node) if isinstance(one, (ast.Assign, ast.AugAssign)))
    one = next((one for one in sets if one.lineno <= line <= one.end_lineno), None)
    if one is None:
        return None
    end = Source(text).span(one)[1]
    return _put(text, end, end, _again(name, TIMES))


def of_wrong_ones(
    fed: dict[Line, tuple[str, list[frozenset[str]]]], wrong: Collection[str], right: Collection[str]
) -> set[Line]:
    """The lines that feed a wrong gradient and no right one, or drop one."""
    return {line for line, (_, things) in fed.items() for names in things
            if DROPPED in names or (names & {*wrong} and not names & {*right})}  # fmt: skip


def feeds_a_right_one(evidence: Evidence, line: Line) -> bool:
    """True if a right gradient comes from all that a line computes, as measured"""
    _, things = fed_by_lines(evidence).get(line, ("", []))
    right = _right_and_not_zero(evidence)
    return bool(things) and all(names & right for names in things)


def of_all_wrong_ones(evidence: Evidence) -> set[int]:
    """The numbers of the lines that every wrong gradient comes from, and no right one"""
    right = _right_and_not_zero(evidence)
    return {line for (_, line), (_, things) in fed_by_lines(evidence).items()
            if evidence.wrong and any(names >= {*evidence.wrong} and not names & right for names in things)}


def _right_and_not_zero(evidence):
    """The names of the right gradients that say something: any line gives zeros"""
    return {name for name in evidence.right if not evidence.is_zero(name)}


def _gradients(evidence: Evidence, part: Part, text: str, before: str) -> dict[str, Array] | None:
    """{name: gradient} that come back with a changed text; None if it does not run, or changes y"""
    try:
        return gradients_with(evidence, part, recompiled(part.runs, text, before))
    except (*FAILURES, SyntaxError, StopIteration):
        return None


def _changed(gradients, others):
    """The names of the gradients that are not the same"""
    return {name for name, g in gradients.items() if not _same(g, others.get(name))}


def _same(x, y):
    if x is None or y is None or np.shape(x) != np.shape(y):
        return x is y
    size = np.abs(np.nan_to_num(x)).max(initial=0)
    return bool(np.allclose(x, y, rtol=0, atol=SAME * size, equal_nan=True))


def _changes(source: Source, node: ast.AST) -> Iterator[tuple[ast.stmt, list[str]]]:
    """(statement, [texts]) for each thing that a statement of a function computes: the file's text with it changed

    No text for a call whose result is dropped.
    """
    for one in ast.walk(node):
        if isinstance(one, ast.Assign):
            end = source.span(one)[1]
            called = ast.unparse(one.value.func).rpartition(".")[2] if isinstance(one.value, ast.Call) else ""
            if BACK.search(called) and "_" in map(ast.unparse, _single(one.targets[0])):
                yield one, []                            # dm, _ = back(dy)
                continue
            if isinstance(one.value, ast.Constant):      # dW[...] = 0
                continue
            ways = [TIMES] if called.startswith(BEGINS) else [TIMES, PLUS]
            for text in [ast.unparse(target) for each in one.targets for target in _single(each)]:
                yield one, [_put(source.text, end, end, _again(text, way)) for way in ways]
        elif isinstance(one, ast.AugAssign):
            yield one, [_times(source, one.value)]
        elif isinstance(one, ast.Return) and one.value is not None:
            for value in _single(one.value):
                yield from [] if isinstance(value, ast.Name) else [(one, [_times(source, value)])]
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and one.value.args:
            called = ast.unparse(one.value.func).rpartition(".")[2]
            yield from [(one, [_times(source, one.value.args[-1])])] if called in WRITES else []


def _single(part):
    """The parts of a tuple or a list, or [part]; no starred ones"""
    if isinstance(part, (ast.Tuple, ast.List)):
        return [single for each in part.elts for single in _single(each)]
    return [] if isinstance(part, ast.Starred) else [part]


def _times(source, part):
    start, end = source.span(part)
    return _put(source.text, start, end, f"({source.within((start, end))}) {TIMES}")


def _again(name, way):
    return f"; {name} = {name} {way}"


def _put(text, start, end, new):
    return text[:start] + new + text[end:]

"""Where a deviation is no mistake: tiny constants, clipped gradients, and too few digits.

    loss = −log(p + 1e-7), dz = p − t        is right up to that constant: the deviation shrinks as the constant does
    np.clip(dW, -5, 5, out=dW)               is what its author wants, beyond the bound
    log(1 − σ(34))                           has hardly a digit left, in float64
"""

import ast
import dis
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import CodeType, FunctionType

from mini_tf.gradcheck.errors import FAILURES, Broken
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import EXACT, Phi, slopes_of_entries
from mini_tf.gradcheck.program import codes_that_run, functions_that_run
from mini_tf.gradcheck.report import Comparison
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.weights import objects_in
from mini_tf.places import codes_inside
from mini_tf.types import Array

import numpy as np

TINY = 1e-4              # the largest constant that may be one against log 0 and 1/0
LARGEST = 1e-2           # of a deviation that such a constant explains, relative to the largest entry
SMALLER = 0.1            # times which the constants are made, and about which the deviation shrinks
STEADY = 1e-3            # relative error by rounding, of y and of gradients, at a far point
ENTRIES = 200            # measured again
GUARDING = "log", "log2", "sqrt", "maximum", "max", "clip", "reciprocal"


def tiny_constant(evidence: Evidence, anywhere: bool = False) -> str:
    """A note, if the deviation shrinks with the tiny constants of forward and backward; "" if it does not.

    anywhere: however large the deviation is, as at a far point; or if y depends on the constants there, as −log(p +
    1e-12) does where p is below
    """
    subject, off = evidence.subject, {name: evidence.off(name) for name in evidence.wrong}
    if evidence.misfits or not evidence.wrong or (max(off.values()) > LARGEST and not anywhere):
        return ""
    evidence.back_to_the_point()
    functions = functions_that_run(lambda: subject.run(evidence.dy_again()))
    forward = {code.co_code: None for code in codes_that_run(subject.forward)}
    with np.errstate(all="ignore"), _shrunk(functions, subject, forward) as constants:
        try:
            decides = anywhere and constants and not _are_close(subject.forward()[0], evidence.y)
            if not decides and (not constants or not all(_shrinks(evidence, name) for name in evidence.wrong)):
                return ""
        except (*FAILURES, Broken):
            return ""
        finally:
            evidence.back_to_the_point()
    worst = max(off, key=off.get)
    where = ", ".join(dict.fromkeys(constants))
    return f"agrees up to {where}: d{worst} is off by {off[worst]:.1g} of its largest entry"


def _shrinks(evidence, name):
    """Whether the deviation of a gradient is so much smaller now"""
    subject = evidence.subject
    slopes, gradient = evidence.slopes[name].reshape(-1), evidence.gradients[name].reshape(-1)
    before = np.nan_to_num(np.abs(gradient - slopes))
    entries = np.argsort(-before)[:ENTRIES]
    now = np.asarray(subject.run(evidence.dy_again())[name]).reshape(-1)[entries]
    phi = Phi(subject, evidence.dy, evidence.patterns)
    found = slopes_of_entries(phi, subject.tensors[name], np.sort(entries))
    measured = found.slope[np.argsort(np.argsort(entries))]
    unsure = 3 * evidence.tolerances[name].reshape(-1)[entries] + EXACT * evidence.size(name)
    return bool((np.abs(now - measured) <= 3 * SMALLER * before[entries] + unsure).all())


@contextmanager
def _shrunk(functions: list[FunctionType], subject: Subject, forward: dict[bytes, None]) -> Iterator[list[str]]:
    """Inside the block, tiny constants are smaller, wherever they stand. Gives their places.

    forward: the code of what runs in the forward; elsewhere only constants that guard a division or a logarithm count
    """
    codes = {g: _in_code(g.__code__, forward, _guards(g)) for g in functions}
    found = [one for g in functions for one in _constants_of(g, codes[g], forward)]
    found += [(f"{name} = {x:g}", subject.options, name, x) for name, x in subject.options.items() if _is_tiny(x)]
    owners = [one for _, one in objects_in(subject.adapter.owner) if hasattr(one, "__dict__")]
    found += [(f"{type(one).__name__}.{name} = {x:g}", vars(one), name, x)
              for one in owners for name, x in vars(one).items() if _is_tiny(x)]         # fmt: skip
    inputs = [(k, x) for k, x in enumerate(subject.inputs) if _is_tiny(x)]
    found += [(f"{subject.names[k]} = {x:g}", subject.inputs, k, x) for k, x in inputs]
    before = [(g, g.__code__, g.__defaults__, g.__kwdefaults__) for g in functions]
    try:
        for g, _, defaults, by_name in before:
            g.__code__, g.__defaults__ = codes[g], _smaller(defaults)
            g.__kwdefaults__ = by_name and {name: _smaller(x) for name, x in by_name.items()}
        for _, holder, key, x in found:
            _put(holder, key, _smaller(x))
        yield [place for place, *_ in found]
    finally:
        for g, code, defaults, by_name in before:
            g.__code__, g.__defaults__, g.__kwdefaults__ = code, defaults, by_name
        for _, holder, key, x in found:
            _put(holder, key, x)


def _constants_of(g, changed, forward):
    """(place in words, what holds it, key, number) of a function's tiny constants; changed: its code with smaller ones

    The holder is None for those in its code and its defaults, a cell of the function around, or its file's variables.
    """
    for code, smaller in zip(codes_inside(g.__code__), codes_inside(changed)):
        lines = [line for *_, line in code.co_lines() if line]
        yield from ((f"the {x:g} in line {_line_of(code, x) or lines[0]}", None, "", x)
                    for x, y in zip(code.co_consts, smaller.co_consts) if _is_tiny(x) and x is not y)    # fmt: skip
        if code.co_code in forward:
            variables = ((name, g.__globals__.get(name)) for name in code.co_names)
            yield from ((f"{name} = {x:g}", g.__globals__, name, x) for name, x in variables if _is_tiny(x))
    defaults = [*(g.__defaults__ or ()), *(g.__kwdefaults__ or {}).values()]
    yield from ((f"the {x:g} of {g.__name__}'s defaults", None, "", x) for x in defaults if _is_tiny(x))
    for name, cell in zip(g.__code__.co_freevars, g.__closure__ or ()):
        with suppress(ValueError):                       # an empty cell
            codes = [code for code in codes_inside(g.__code__) if code.co_code in forward]
            if _is_tiny(cell.cell_contents) and any(_loads(code, name) for code in codes):
                yield f"{name} = {cell.cell_contents:g}", cell, "cell_contents", cell.cell_contents


def _loads(code, name):
    """Whether a code object uses a variable of the function around it, and does not only hand it on"""
    return any(i.argval == name and i.opname.startswith("LOAD_DEREF") for i in dis.get_instructions(code))


def _put(holder, key, x):
    if isinstance(holder, (dict, list)):
        holder[key] = x
    elif holder is not None:
        setattr(holder, key, x)


def _is_tiny(x):
    return isinstance(x, float) and (0 < abs(x) <= TINY or 0 < abs(1 - x) <= TINY)


def _smaller(x):
    """10⁻¹³ for 10⁻¹², and 1 − 10⁻⁸ for 1 − 10⁻⁷; tuples with such numbers, too"""
    if isinstance(x, tuple):
        return tuple(map(_smaller, x))
    if not _is_tiny(x):
        return x
    return SMALLER * x if abs(x) <= TINY else 1 - SMALLER * (1 - x)


def _in_code(code, forward, guards):
    """The code with smaller constants; of a function that does not run in the forward, only the guards"""
    def changed(x):
        if isinstance(x, CodeType):
            return _in_code(x, forward, guards)
        return _smaller(x) if code.co_code in forward or x in guards else x

    return code.replace(co_consts=tuple(map(changed, code.co_consts)))


def _guards(function):
    """The tiny numbers of a function that stand in a denominator, a root, a logarithm, a maximum or a clip"""
    try:
        tree = source_of(function).node
    except Unavailable:
        return set()
    inside = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Pow)):
            inside += [node.right] if isinstance(node.op, ast.Div) else [node.left, node.right]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(GUARDING):
            inside += node.args
    constants = [one.value for part in inside for one in ast.walk(part) if isinstance(one, ast.Constant)]
    return {*filter(_is_tiny, constants)}


def _line_of(code, constant):
    """The line in which a code object uses a constant"""
    return next((i.positions.lineno for i in dis.get_instructions(code) if i.argval is constant and i.positions), None)


def is_clipped(evidence: Evidence) -> bool:
    """Whether all wrong entries are some number of the code, ±5, and the slopes lie beyond: np.clip(dW, -5, 5)"""
    evidence.back_to_the_point()
    functions = functions_that_run(lambda: evidence.subject.run(evidence.dy_again()))
    numbers = {abs(x) for g in functions for code in codes_inside(g.__code__) for x in _numbers(code.co_consts)}
    numbers |= {abs(x) for g in functions for x in _numbers((g.__defaults__ or (), *(g.__kwdefaults__ or {}).values()))}
    numbers |= {abs(x) for x in _numbers(tuple(evidence.subject.options.values()))}
    for name in evidence.wrong:
        gradient, slopes = evidence.gradients[name], evidence.slopes[name]
        wrong = np.nan_to_num(np.abs(gradient - slopes)) > evidence.tolerances[name]
        g, slopes = gradient[wrong], slopes[wrong]
        if not g.size or np.ptp(np.abs(g)) or abs(g[0]) not in numbers or not (slopes / g > 1).all():
            return False
    return bool(evidence.wrong)


def _numbers(constants):
    for x in constants:
        if type(x) in (int, float):
            yield x
        elif isinstance(x, tuple):
            yield from _numbers(x)


def is_unsteady(evidence: Evidence, comparisons: dict[str, Comparison], before: dict[str, Array]) -> bool:
    """Whether float64 has too few digits here, or on the way from the point `before`, {name: array}.

    Of (exp(r) − 1)/r hardly a digit is left at r = 10⁻¹⁵; longer floats show it. log(1 − σ(34)) has digits,
    but its slope has none: it goes in steps, higher than what wrong entries are off by over a difference. False where f
    does not run in longer floats, and where they are no longer.
    """
    subject, here = evidence.subject, dict(evidence.subject.tensors)
    try:
        with np.errstate(all="ignore"):
            with subject.in_dtype(np.longdouble):
                longer = subject.run(np.longdouble(evidence.dy))
                y = np.asarray(subject.forward()[0], dtype=float)
            if not all(_are_close(evidence.gradients[name], longer[name]) for name in evidence.wrong):
                return True
            lost = float(np.abs((y - evidence.y) * evidence.dy).sum())
            for name in evidence.wrong:
                c = comparisons[name]
                if 10 * lost > 3e-4 * max(1, abs(here[name][c.index])) * abs(c.yours - c.measured):
                    return True
            for part in np.linspace(0, 1, 16, endpoint=False):
                for name, x in here.items():
                    subject.replace(name, x + part * (before[name] - x))
                y = subject.forward()[0]
                with subject.in_dtype(np.longdouble):
                    if not _are_close(y, subject.forward()[0]):
                        return True
    except FAILURES:
        return False
    finally:
        evidence.back_to_the_point()
    return False


def _are_close(x, y):
    y = np.asarray(y, dtype=float)
    return bool(np.allclose(x, y, rtol=STEADY, atol=EXACT * np.abs(y).max(initial=0), equal_nan=True))

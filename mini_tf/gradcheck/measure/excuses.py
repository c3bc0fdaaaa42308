"""Where a deviation is no mistake: tiny constants, gradients that are clipped, and digits that run out.

    loss = −log(p + 1e-7), dz = p − t        is right but for that constant
    np.clip(dW, -5, 5, out=dW)               is what its author wants, beyond the bound
    log(1 − σ(34))                           has hardly a digit left, in float64

The first two guard against extremes. The guard is taken away wherever it is read, 1e-7 becomes 0 and 5 becomes ∞, and
the gradient is judged again.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.hooks import running_with, with_hooks
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.slopes import Phi
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.types import Array

import numpy as np

TINY = 1e-4              # the largest constant that may guard against log 0 and 1/0
LARGEST = 1e-2           # the largest deviation that it explains, relative to the largest entry; far away any
MOVED = 1e-3             # relative: a far point does not count if y changes by more without such constants,
STEADY = 1e-2            # or if y is off by more in float32, there
WAY = 16                 # or at one of so many points on the way
LONG = 3                 # of a sweep's differences, those over long steps, 0.1 to 0.001
ENTRIES = 200            # entries of a gradient that are judged again
BOUNDING = "clip", "maximum", "minimum", "max", "min"
CLIPPED = "at another point, the gradient is clipped: beyond a bound in the code, that bound comes back"


def excuse(evidence: Evidence, point: str) -> str:
    """Why the wrong gradients of the evidence are no mistakes, in words; "" if they are"""
    if evidence.misfits:
        return ""
    try:
        with np.errstate(all="ignore"):
            return _tiny_constants(evidence, point == "far") or (_bound(evidence) if point != "given" else "")
    finally:
        evidence.back_to_the_point()


def _tiny_constants(evidence: Evidence, far: bool) -> str:
    """A note, if gradients are right without the tiny constants"""
    off = {name: evidence.off(name) for name in evidence.wrong}
    if max(off.values()) > LARGEST and not far:
        return ""
    with _read_as(evidence, lambda x: 0.0 if isinstance(x, float) and 0 < abs(x) <= TINY else x, True) as constants:
        if not _is_right(evidence, far):
            return ""
    worst, said = max(off, key=off.__getitem__), ", ".join(dict.fromkeys(constants))
    return said and f"agrees up to {said}: d{worst} is off by {off[worst]:.1g} of its largest entry"


def _bound(evidence: Evidence) -> str:
    """CLIPPED, if all wrong entries are one number of the code, ±5, the slopes lie beyond, and are right without it"""
    bounds: set[float] = set()
    for name in evidence.wrong:
        g, slopes = evidence.gradients[name], evidence.slopes[name]
        wrong = np.nan_to_num(np.abs(g - slopes)) > evidence.tolerances[name]
        bounds |= {*np.abs(g[wrong]).tolist()}
        if not (slopes[wrong] * np.sign(g[wrong]) > np.abs(g[wrong])).all():
            return ""
    if len(bounds) != 1:
        return ""
    bound = bounds.pop()
    with _read_as(evidence, lambda x: x * np.inf if isinstance(x, (int, float)) and abs(x) == bound else x) as read:
        return CLIPPED if _is_right(evidence) and read else ""


def _is_right(evidence: Evidence, far: bool = False) -> bool:
    """Whether the gradients that were wrong are right now; far away also if y is another, as that of −log(0 + 1e-12)"""
    subject = evidence.subject
    try:
        y, backward = subject.forward()
        if far and not np.allclose(y, evidence.y, rtol=MOVED):
            return True
        now = Evidence(subject, y, backward, evidence.dy, {}, evidence.patterns)
        gradients, phi = backward(evidence.dy_again()), Phi(subject, evidence.dy, evidence.patterns)
        for name in evidence.wrong:
            off = np.nan_to_num(np.abs(evidence.gradients[name] - evidence.slopes[name])).reshape(-1)
            _, known = now.measure(name, phi, np.sort(np.argsort(-off)[:ENTRIES]))
            if not known.any() or not now.fits(name, np.asarray(gradients[name])):
                return False
    except FAILURES:
        return False
    return True


@contextmanager
def _read_as(evidence: Evidence, changed: Callable[[Any], Any], sums: bool = False) -> Iterator[list[str]]:
    """Inside the block, a guard x is read as changed(x). Yields a list that gets those that change, in words."""
    evidence.back_to_the_point()
    read, codes, guards = list[str](), {}, list[tuple[str, ast.expr]]()
    for function in functions_that_run(lambda: evidence.subject.run(evidence.dy)):
        with suppress(Unavailable, SyntaxError, StopIteration):
            source = source_of(function)
            nodes = _guards_in(source.node, sums)
            codes[function] = with_hooks(source, nodes, len(guards))
            guards += [(source.file.of(node), node) for node in nodes]

    def hook(k: int, x: Any) -> Any:
        other, (text, node) = changed(x), guards[k]
        if other is not x:
            read.append(f"the {x:g} in line {node.lineno}" if isinstance(node, ast.Constant) else f"{text} = {x:g}")
        return other

    with running_with(codes, hook):
        yield read


def _guards_in(tree: ast.AST, sums: bool) -> list[ast.expr]:
    """The nodes of numbers and names that may be guards: arguments of a clip or a maximum, and, in sums, p + 1e-12

    A sum that is a factor has none: (y + 1e-5) * dy is no logarithm and no denominator.
    """
    nodes, found = [*ast.walk(tree)], dict[ast.expr, None]()
    products = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.MatMult))]
    factors = {side for node in products for side in (node.left, node.right)}
    for node in nodes:
        if sums and isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and node not in factors:
            found |= dict.fromkeys(_numbers_and_names([node.left, node.right]))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BOUNDING:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                simple = _numbers_and_names([argument])
                found |= dict.fromkeys(simple or _numbers_and_names(ast.iter_child_nodes(argument)))     # -5, 1 - 1e-7
    return [*found]


def _numbers_and_names(nodes: Iterable[ast.AST]) -> list[ast.expr]:
    """Those of the nodes that are a number, a name, or an attribute of one"""
    return [node for node in nodes if isinstance(node, (ast.Constant, ast.Name, ast.Attribute))]


def has_digits(evidence: Evidence, before: dict[str, Array]) -> bool:
    """Whether a far point counts: long differences contradict as short ones do, and float32 gives about the same y.

    That is asked here and on the way from the point `before`, {name: array}. Of log(1 − σ(36)) hardly a digit is left:
    1 − σ(36) is two units in the last place of 1. So the function computed goes in steps, and its slopes over short
    differences are 0 or large, not those of the formula.
    """
    subject, here = evidence.subject, evidence.subject.tensors
    for name in evidence.wrong:
        c = evidence.comparisons[name]
        if c.sweep is None or not (np.abs(c.yours - c.sweep[:LONG]) >= abs(c.yours - c.measured) / 2).all():
            return False
    try:
        with np.errstate(all="ignore"):
            for part in np.linspace(0, 1, WAY, endpoint=False):
                subject.arrays |= {name: x + part * (before[name] - x) for name, x in here.items()}
                y = subject.forward()[0]
                with subject.in_dtype(np.float32):
                    if not np.abs(subject.forward()[0] - y).max() <= STEADY * np.abs(y).max():
                        return False
    except FAILURES:                                     # it does not run in float32
        return True
    finally:
        evidence.back_to_the_point()
    return True

"""Would the checker notice?  Plants bugs in your own backward, one at a time, and judges each.

    result = self_test(ops.layer_norm, x, gamma, beta)
    assert result, result            # no bug was missed

A passing check means something only if it would have failed on a wrong backward. If your inputs are blind (γ = 1 cannot
show a forgotten γ), a mutant is missed, and the report shows its line.
"""

import ast
import copy
import gc
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from types import FunctionType
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck.adapters import Loss
from mini_tf.gradcheck.check import judge
from mini_tf.gradcheck.errors import FAILURES, Broken, Refused
from mini_tf.gradcheck.explain.edits import Kind, of_syntax
from mini_tf.gradcheck.explain.hooks import expressions_in, nodes_of
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.program import codes_that_run
from mini_tf.gradcheck.source import Source, compiled, own_nodes, parsed, running_as, source_of
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged
from mini_tf.gradcheck.weights import is_float
from mini_tf.places import codes_inside

import numpy as np

SAME = 1e-9              # two backwards whose results differ by less, relatively, on every draw are the same
DRAWS = 4                # points to compare them at: the given one, and random ones
MOST = 60                # mutants of one backward, spread evenly over its lines,
OF_ONE = 2               # and of one kind and expression
OVERWRITES = {r"(.+?) [-+*/]= (.+)": r"\1 = \2", r"(.+)\.accumulate\((.+)\)": r"\1.grad = \2"}          # what adds


@dataclass(frozen=True)
class Mutant:
    """A backward with one small change: a node of its file's syntax tree, mostly a statement, is another text."""

    name: str                # what is done: "a part dropped"
    place: str               # "activations.py:55"
    span: tuple[int, int]    # where the node stands in the file's text,
    before: str              # what it is, and
    after: str               # what becomes of it


@dataclass(frozen=True)
class SelfTest:
    """The Mutants of one backward, with what became of each: true if some were caught and none was missed."""

    name: str
    caught: list[Mutant] = field(default_factory=list)
    missed: list[Mutant] = field(default_factory=list)
    equivalent: list[Mutant] = field(default_factory=list)               # not bugs: same results
    unreached: list[Mutant] = field(default_factory=list)                # did not run on these inputs

    def __bool__(self):
        return bool(self.caught) and not self.missed

    def explain(self) -> str:
        """How many of each kind were caught; the lines of those missed, and what never ran"""
        lines = [f"{self.name}: {len(self.caught)} of {len(self.caught + self.missed)} planted bugs caught"]
        lines += [f"  {count:4}  {name}" for name, count in Counter(m.name for m in self.caught).most_common()]
        for m in self.missed:
            lines += [f"  MISSED: {m.name}, {m.place}", f"    right    {m.before}", f"    planted  {m.after}"]
        lines += ["  Not tested, because it did not run on these inputs:"] if self.unreached else []
        return "\n".join([*lines, *dict.fromkeys(f"    {m.place}: {m.before}" for m in self.unreached)])

    __str__ = __repr__ = explain


def self_test(
    f: Any, *inputs, params: Any = None, grads: Any = None, constants: Sequence[str] = (),
    methods: Sequence[str] | None = None, name: str | None = None, seed: int = 0, budget: int | None = None,
    **options: Any,
) -> SelfTest:  # fmt: skip
    """Plant bugs in the backward of f, one at a time, and judge each. The arguments are gradcheck's.

    Only the backward is changed, and functions beside it that run in it alone. A mutant is caught if its verdict is not
    PASS. One that raises needs no checker; one that gives the right gradients, here and at random points, is no bug.
    Raises UserError if the backward does not pass as it is, and source.Unavailable if it has no source.
    """
    weights = {"params": params, "grads": grads, "constants": constants, "methods": methods}

    def fate(wrong, probe):
        evidence.back_to_the_point()
        with running_as({maker: wrong}):
            try:
                with suppress(Refused, Broken):
                    subject.run(evidence.dy_again())
            except FAILURES:
                return []                                # what raises needs no checker
            evidence.back_to_the_point()
            subject.forward()                            # Parameters hold the arrays of this point again
            if not judge(f, *inputs, **weights, name=name, seed=seed, budget=budget, **options):
                return result.caught
            if not _same(right, _outcomes(subject, evidence)):
                return result.missed
        with running_as({maker: probe}):
            return result.unreached if _same(right, _outcomes(subject, evidence)) else result.equivalent

    with judged(lambda: Subject(f, inputs, options, **weights), name, seed, budget) as (report, subject, evidence, _):
        if not report:
            raise UserError(f"the self-test starts from a backward that passes, and this one does not:\n{report}")
        if isinstance(subject.adapter, Loss):
            raise UserError("the self-test changes a backward, and this loss comes with its gradients: it has none")
        backward, result = source_of(evidence.backward.of), SelfTest(report.name)
        maker, ran = _that_run(subject, evidence, backward.function)
        right, text = _outcomes(subject, evidence), backward.file.text
        for m in mutants(backward, ran):
            with suppress(SyntaxError), np.errstate(all="ignore"):       # what is no program needs none either
                texts = [text[: m.span[0]] + new + text[m.span[1] :] for new in (m.after, "(1 / 0)")]
                wrong, probe = (compiled(maker, one, text) for one in texts)
                if wrong.co_freevars == maker.__code__.co_freevars:      # else Python does not let it run in this place
                    fate(wrong, probe).append(m)
    return result


def _that_run(subject, evidence, function):
    """(what makes the backward anew in each run, or itself if it stays; names and lines of what runs in it alone)"""
    before = codes_that_run(subject.forward)
    makers = [code for code in before if any(one is function.__code__ for one in codes_inside(code)[1:])]
    owners = gc.get_referrers(makers[0]) if makers else ()               # of the outermost, which is called first
    maker = next((one for one in owners if isinstance(one, FunctionType)), function)
    ran = {*codes_that_run(lambda: subject.run(evidence.dy_again()))} - {*before}
    return maker, {(code.co_name, code.co_firstlineno) for code in codes_inside(maker.__code__) if code in ran}


def _outcomes(subject, evidence):
    """All that a caller sees of two calls of the backward: gradients, dy, inputs; at this point and at random ones"""
    rng, seen = np.random.default_rng(2), []
    evidence.back_to_the_point()
    for _ in range(DRAWS):
        with suppress(*FAILURES):                        # not every f is defined everywhere
            y, backward = subject.forward()
            dy = random_dy(y, rng, backward)
            for _ in range(2):
                with suppress(*FAILURES):                # nor may every backward be called again
                    seen += [np.copy(g) for g in backward(dy).values() if g is not None]
            seen += [np.copy(dy), *map(np.copy, subject.tensors.values())]
        for name, x in [*subject.tensors.items()]:
            subject.replace(name, rng.standard_normal(x.shape))
    return seen


def _same(right, found):
    """Whether two backwards gave the same, up to rounding errors"""
    least = 1e-3 * SAME * max(np.abs(a[np.isfinite(a)]).max(initial=0) for a in right)
    shapes, others = ([np.shape(a) for a in some] for some in (right, found))
    return shapes == others and all(np.allclose(a, b, SAME, least, equal_nan=True) for a, b in zip(right, found))


def mutants(backward: Source, ran: Collection[tuple[str, int]] = ()) -> list[Mutant]:
    """Small changes of a backward, and of the functions of its file with these names and first lines"""
    found = {}
    for function in ast.walk(parsed(backward.file.text)):
        name = "<lambda>" if isinstance(function, ast.Lambda) else getattr(function, "name", None)
        if function is backward.node or (name and (name, function.lineno) in ran):
            writes = _writes(backward) if function is backward.node else []
            for name, node, new in _changes(function, writes):
                before, after = (one if isinstance(one, str) else ast.unparse(one) for one in (node, new))
                place, span = f"{Path(backward.path).name}:{node.lineno}", backward.file.span(node)
                found.setdefault((span, after), Mutant(name, place, span, before, after))
    every = sorted((m for m in found.values() if m.after != m.before), key=lambda m: m.span)
    return every[:: -(-len(every) // MOST) or 1]


def _changes(function, writes):
    """(what is done, node, what it becomes) for each change of a function, but in loops that might become endless"""
    endless = {id(one) for loop in own_nodes(function) if isinstance(loop, ast.While) for one in ast.walk(loop)}
    parts = [one for one in own_nodes(function) if isinstance(one, ast.stmt) and id(one) not in endless]
    for node in [function.body] if isinstance(function, ast.Lambda) else parts:
        statement = ast.Return(node) if isinstance(function, ast.Lambda) else node
        node = node.iter if isinstance(node, ast.For) else node
        values = [one for one, is_value in expressions_in(statement) if is_value or one is node]
        stores = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name)
        yield from ((name, node, new) for name, new in _of_statement(statement, stores, writes))
        if isinstance(statement, ast.Return) or stores:                  # gradients: returned, or as in self.dW = …
            for one, times in product(values, (2, 0, -1)):
                new = ast.BinOp(ast.Constant(times), ast.Mult(), one)
                yield f"a gradient times {times}", node, _replaced(node, one, new)
            for one, other in zip(values, values[1:]):
                yield "two gradients exchanged", node, _replaced(_replaced(node, other, copy.copy(one)), one, other)
        for part in [part for one in values for part in nodes_of(one)]:
            yield from ((name, node, _replaced(node, part, new)) for name, new in _of_expression(part))


def _of_statement(statement, stores, writes):
    text = ast.unparse(statement)
    if stores:
        yield "+= for =", text.replace(" = ", " += ", 1)
    if stores or isinstance(statement, (ast.AugAssign, ast.Expr)):
        yield "a statement dropped", "pass"
    for pattern, new in OVERWRITES.items():
        if re.fullmatch(pattern, text):
            yield "= for +=", re.sub(pattern, new, text)
    if isinstance(statement, ast.Expr) and len(arguments := getattr(statement.value, "args", ())) == 3:     # np.add.at
        yield "= for +=", "{}[{}] = {}".format(*map(ast.unparse, arguments))
    for write in writes if isinstance(statement, ast.Return) else ():    # right gradients, but an array changes
        yield "written into an array", f"gradients_ = {text.removeprefix('return ')}; {write}; return gradients_"


def _of_expression(node):
    """(what is done, the new node) for the first edits of each kind that the search knows, and only axes that fit"""
    made = Counter()
    for kind, text in of_syntax(node, ast.unparse):
        new = ast.parse(f"_[{text}]", mode="eval").body.slice            # may be a slice
        before, after = (ast.unparse(one).replace("axis=", "") for one in (node, new))
        misfit = kind is Kind.AXIS and ("keepdims" in before) != ("keepdims" in after)
        made[kind] += not misfit and before != after
        if made[kind] <= OF_ONE and not misfit:
            yield "a part dropped" if kind is Kind.DROPPED else f"another {kind.name.lower()}", new


def _replaced(node, old, new):
    """A copy of a tree in which one node is another; the rest is shared"""
    if node is old:
        return new
    if not any(one is old for one in ast.walk(node)):
        return node
    fields = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[name] = [_replaced(one, old, new) if isinstance(one, ast.AST) else one for one in value]
        else:
            fields[name] = _replaced(value, old, new) if isinstance(value, ast.AST) else value
    return ast.copy_location(type(node)(**fields), node)


def _writes(backward):
    """Statements that write into dy, and into arrays that the backward's closure keeps"""
    writes = [f"{one.arg} *= 2" for one in backward.node.args.args if one.arg not in ("self", "cls")][:1]
    for name, cell in zip(backward.function.__code__.co_freevars, backward.function.__closure__ or ()):
        with suppress(ValueError):                       # a variable that was never set
            writes += [f"{name}[...] = 2 * {name}"] if is_float(cell.cell_contents) else []
    return writes[: 1 + OF_ONE]

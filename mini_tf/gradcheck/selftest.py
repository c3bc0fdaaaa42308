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
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise, product
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.adapters import Loss
from mini_tf.gradcheck.check import judge
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.edits import Kind, of_syntax
from mini_tf.gradcheck.explain.hooks import expressions_in, nodes_of
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.program import codes_that_run
from mini_tf.gradcheck.report import FAIL, PASS
from mini_tf.gradcheck.source import Source, compiled, own_nodes, running_as, source_of
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged
from mini_tf.places import codes_inside

import numpy as np

SAME = 1e-9              # two backwards whose results differ by less, relatively, on every draw are the same
DRAWS = 4                # points to compare them at: the given one, and random ones
MOST = 60                # mutants of one backward, spread evenly over its lines,
OF_ONE = 2               # and of one kind and expression
OVERWRITES = {r"(.+?) [-+*/]= (.+)": r"\1 = \2", r"(.+)\.accumulate\((.+)\)": r"\1.grad = \2"}          # what adds


class Mutant(NamedTuple):
    """A backward with one small change: a node of its file's syntax tree, mostly a statement, is another text."""

    name: str                # what is done: "a part dropped"
    place: str               # "activations.py:55"
    span: tuple[int, int]    # where the node stands in the file's text,
    before: str              # what it is, and
    after: str               # what becomes of it


class SelfTest:
    """The Mutants of one backward: true if some were caught and none was missed.

    harmless   those that make no difference: they give the same results, or did not run on these inputs
    """

    def __init__(self, name: str):
        self.name, self.caught, self.missed, self.harmless = name, [], [], []

    def __bool__(self):
        return bool(self.caught) and not self.missed

    def explain(self) -> str:
        """How many of each kind were caught; the lines of those missed; where changes make no difference"""
        lines = [f"{self.name}: {len(self.caught)} of {len(self.caught + self.missed)} planted bugs caught"]
        lines += [f"  {count:4}  {name}" for name, count in Counter(m.name for m in self.caught).most_common()]
        for m in self.missed:
            lines += [f"  MISSED: {m.name}, {m.place}", f"    right    {m.before}", f"    planted  {m.after}"]
        places = ", ".join(dict.fromkeys(m.place for m in self.harmless))
        lines += [f"  Not tested, as changes make no difference on these inputs: {places}"] if places else []
        return "\n".join(lines)

    __str__ = __repr__ = explain


def self_test(
    f: Any, *inputs, params: Any = None, grads: Any = None, constants: Sequence[str] = (),
    methods: Sequence[str] | None = None, name: str | None = None, seed: int = 0, budget: int | None = None,
    **options: Any,
) -> SelfTest:  # fmt: skip
    """Plant bugs in the backward of f, one at a time, and judge each. The arguments are gradcheck's.

    Only the backward itself is changed. One that raises, or leaves a gradient out, is NOT TESTED and does not count;
    one that gives the right gradients, here and at random points, is no bug.
    Raises UserError if the backward does not pass as it is, and source.Unavailable if it has no source.
    """
    weights = {"params": params, "grads": grads, "constants": constants, "methods": methods}

    def fate(wrong):
        with running_as({maker: wrong}):
            verdict = judge(f, *inputs, **weights, name=name, seed=seed, budget=budget, **options).verdict
            if verdict == PASS:
                return result.harmless if _same(right, _outcomes(subject, evidence)) else result.missed
        return result.caught if verdict == FAIL else []

    with judged(lambda: Subject(f, inputs, options, **weights), name, seed, budget) as (report, subject, evidence, _):
        if not report:
            raise UserError(f"the self-test starts from a backward that passes, and this one does not:\n{report}")
        if isinstance(subject.adapter, Loss):
            raise UserError("the self-test changes a backward, and this loss comes with its gradients: it has none")
        backward, result = source_of(evidence.backward.of), SelfTest(report.name)
        maker, right, text = _maker(subject, backward.function), _outcomes(subject, evidence), backward.file.text
        for m in mutants(backward):
            with suppress(SyntaxError), np.errstate(all="ignore"):       # what is no program needs none either
                wrong = compiled(maker, text[: m.span[0]] + m.after + text[m.span[1] :], text)
                if wrong.co_freevars == maker.__code__.co_freevars:      # else Python does not let it run in this place
                    fate(wrong).append(m)
    return result


def _maker(subject, backward):
    """The function that makes the backward anew in each run; the backward itself, if it stays"""
    makers = [code for code in codes_that_run(subject.forward) if backward.__code__ in codes_inside(code)[1:]]
    owners = gc.get_referrers(makers[0]) if makers else ()               # of the outermost, which is called first
    return next((one for one in owners if isinstance(one, FunctionType)), backward)


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


def mutants(backward: Source) -> list[Mutant]:
    """Small changes of a backward"""
    found = {}
    for what, node, new in _changes(backward.node):
        before, after = ast.unparse(node), new if isinstance(new, str) else ast.unparse(new)
        place, span = f"{Path(backward.path).name}:{node.lineno}", backward.file.span(node)
        found.setdefault((span, after), Mutant(what, place, span, before, after))
    every = sorted((m for m in found.values() if m.after != m.before), key=lambda m: m.span)
    return every[:: -(-len(every) // MOST) or 1]


def _changes(function):
    """(what is done, node, what it becomes) for each change of a function, but in loops that might become endless"""
    if isinstance(function, ast.Lambda):
        yield from _of_values(ast.Return(function.body), function.body, True)
        return
    dy = next((one.arg for one in function.args.args if one.arg not in ("self", "cls")), None)
    endless = {id(one) for loop in own_nodes(function) if isinstance(loop, ast.While) for one in ast.walk(loop)}
    for one in own_nodes(function):
        if isinstance(one, ast.stmt) and id(one) not in endless:
            sets = isinstance(one, ast.Assign) and not isinstance(one.targets[0], ast.Name)      # self.dW = …, dx[0] =
            yield from ((what, one, new) for what, new in _of_statement(one, sets, dy))
            node = one.iter if isinstance(one, ast.For) else one
            yield from _of_values(one, node, gives_gradients=sets or isinstance(one, ast.Return))


def _of_statement(statement, sets, dy):
    """(what is done, the new text) for changes of a whole statement"""
    text = ast.unparse(statement)
    if sets:
        yield "+= for =", text.replace(" = ", " += ", 1)
    if sets or isinstance(statement, (ast.AugAssign, ast.Expr)):
        yield "a statement dropped", "pass"
    for pattern, new in OVERWRITES.items():
        if re.fullmatch(pattern, text):
            yield "= for +=", re.sub(pattern, new, text)
    if isinstance(statement, ast.Expr) and len(arguments := getattr(statement.value, "args", ())) == 3:     # np.add.at
        yield "= for +=", "{}[{}] = {}".format(*map(ast.unparse, arguments))
    if isinstance(statement, ast.Return) and dy:         # right gradients, but an array changes
        yield "written into an array", f"gradients_ = {text.removeprefix('return ')}; {dy} *= 2; return gradients_"


def _of_values(statement, node, gives_gradients):
    """(what is done, node, the new node) for changes of the values that a statement returns, sets, adds or hands on"""
    values = [one for one, is_value in expressions_in(statement) if is_value or one is node]
    for one, times in product(values if gives_gradients else (), (2, 0, -1)):
        yield f"a gradient times {times}", node, _replaced(node, one, ast.BinOp(ast.Constant(times), ast.Mult(), one))
    for one, other in pairwise(values if gives_gradients else ()):
        yield "two gradients exchanged", node, _replaced(_replaced(node, other, copy.copy(one)), one, other)
    for part in [part for one in values for part in nodes_of(one)]:
        yield from ((what, node, _replaced(node, part, new)) for what, new in _of_expression(part))


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

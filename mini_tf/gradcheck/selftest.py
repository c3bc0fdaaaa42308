"""Would the checker notice?  Plants bugs in your own backward, one at a time, and judges each.

    result = self_test(ops.layer_norm, x, gamma, beta)
    assert result, result            # no bug was missed

A passing check means something only if it would have failed on a wrong backward. If your inputs are blind (γ = 1 cannot
show a forgotten γ), a mutant is missed, and the report shows its line.
"""

import ast
import gc
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any
from warnings import catch_warnings

from mini_tf.errors import UserError
from mini_tf.gradcheck.adapters import Loss
from mini_tf.gradcheck.check import judge
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.edits import Edit, Kind, changed, of_statement, of_syntax, replacing
from mini_tf.gradcheck.explain.sites import Site, sites_in
from mini_tf.gradcheck.explain.values import filled
from mini_tf.gradcheck.hooks import nodes_of
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.program import codes_that_run
from mini_tf.gradcheck.report import FAIL, NOT_TESTED, PASS
from mini_tf.gradcheck.source import Source, compiled, running_as, source_of
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged
from mini_tf.places import codes_inside, place
from mini_tf.types import Array

import numpy as np

SAME = 1e-9              # two backwards whose results differ by less, relatively, on every draw are the same
DRAWS = 4                # points to compare them at: the given one, and random ones
MOST = 60                # mutants of one backward, spread evenly over its lines


@dataclass(repr=False)
class SelfTest:
    """The mutants of one backward, an Edit each: true if some were caught and none was missed."""

    name: str
    caught: list[Edit] = field(default_factory=list)
    missed: list[Edit] = field(default_factory=list)
    harmless: list[Edit] = field(default_factory=list)   # no difference: the same results, or they did not run

    def __bool__(self) -> bool:
        return bool(self.caught) and not self.missed

    def __repr__(self) -> str:
        lines = [f"{self.name}: {len(self.caught)} of {len(self.caught + self.missed)} planted bugs caught"]
        for m in self.missed:
            at = place(m.site.source.path, m.line)
            lines += [f"  MISSED: {at}", f"    right    {m.before}", f"    planted  {m.after}"]
        places = ", ".join(dict.fromkeys(place(m.site.source.path, m.line) for m in self.harmless))
        lines += [f"  Not tested, as changes make no difference on these inputs: {places}"] if places else []
        return "\n".join(lines)


def self_test(
    f: Any, *inputs: Any, params: Any = None, grads: Any = None, constants: Sequence[str] = (),
    methods: Sequence[str] | None = None, name: str | None = None, seed: int = 0, budget: int | None = None,
    **options: Any,
) -> SelfTest:  # fmt: skip
    """Plant bugs in the backward of f, one at a time, and judge each. The arguments are gradcheck's.

    Only the backward itself is changed. One that raises, or leaves a gradient out, is NOT TESTED and does not count;
    one that gives the right gradients, here and at random points, is no bug.
    Raises UserError if the backward does not pass as it is, and source.Unavailable if it has no source.
    """
    weights = {"params": params, "grads": grads, "constants": constants, "methods": methods}
    with judged(lambda: Subject(f, inputs, options, **weights), name, seed, budget) as (report, _, evidence, _):
        if not report or evidence is None:
            raise UserError(f"the self-test starts from a backward that passes, and this one does not:\n{report}")
        if isinstance(evidence.subject.adapter, Loss):
            raise UserError("the self-test changes a backward, and this loss comes with its gradients: it has none")
        backward, result = source_of(evidence.backward.of), SelfTest(report.name)
        maker, right = _maker(evidence, backward.function), _outcomes(evidence)
        for m in mutants(backward):
            with suppress(SyntaxError), catch_warnings(action="ignore"), np.errstate(all="ignore"):
                wrong = compiled(maker, changed([m]), backward.file.text)            # if it does not compile, no mutant
                if wrong.co_freevars != maker.__code__.co_freevars:      # Python does not let it run in this place
                    continue
                with running_as({maker: wrong}):
                    verdict = judge(f, *inputs, **weights, name=name, seed=seed, budget=budget, **options).verdict
                    harmless = verdict == PASS and _same(right, _outcomes(evidence))
                if verdict != NOT_TESTED:
                    (result.caught if verdict == FAIL else result.harmless if harmless else result.missed).append(m)
    return result


def _maker(evidence: Evidence, backward: FunctionType) -> FunctionType:
    """The function that makes the backward anew in each run; the backward itself, if it stays"""
    makers = [code for code in codes_that_run(evidence.subject.forward) if backward.__code__ in codes_inside(code)[1:]]
    owners = gc.get_referrers(makers[0]) if makers else ()               # of the outermost, which is called first
    return next((one for one in owners if isinstance(one, FunctionType)), backward)


def _outcomes(evidence: Evidence) -> list[Array]:
    """All that a caller sees of two calls of the backward: gradients, dy, inputs; at this point and at random ones"""
    subject, rng, seen = evidence.subject, np.random.default_rng(2), list[Array]()
    evidence.back_to_the_point()
    for _ in range(DRAWS):
        with suppress(*FAILURES):                        # not every f is defined everywhere, or called again
            y, backward = subject.forward()
            dy = random_dy(y, rng, backward)
            seen += [np.copy(g) for _ in range(2) for g in backward(dy).values() if g is not None]
            seen += [np.copy(dy), *map(np.copy, subject.tensors.values())]
        for name, x in [*subject.tensors.items()]:
            subject.arrays[name] = rng.standard_normal(x.shape)
    return seen


def _same(right: list[Array], found: list[Array]) -> bool:
    """Whether two backwards gave the same, up to rounding errors"""
    least = 1e-3 * SAME * max(np.abs(a[np.isfinite(a)]).max(initial=0) for a in right)
    shapes, others = ([np.shape(a) for a in some] for some in (right, found))
    return shapes == others and all(np.allclose(a, b, SAME, least, equal_nan=True) for a, b in zip(right, found))


def mutants(backward: Source) -> list[Edit]:
    """Small changes of a backward, as the search tries them to mend one, but in loops that might become endless"""
    loops = [node for node in ast.walk(backward.node) if isinstance(node, ast.While)]
    endless = {id(node) for loop in loops for node in ast.walk(loop)}
    edits = [edit for site in sites_in(backward) if id(site.statement) not in endless for edit in _edits(site)]
    found = {(edit.start, edit.end, edit.new): edit for edit in edits
             if edit.before.replace("axis=", "") != edit.after.replace("axis=", "")}             # fmt: skip
    every = [found[place] for place in sorted(found)]
    return every[:: -(-len(every) // MOST) or 1]


def _edits(site: Site) -> Iterator[Edit]:
    """The search's edits; and gradients that are returned or set, as self.dW or dx[0], times a number"""
    of, statement = site.source.file.of, site.statement
    for node in nodes_of(site.node):
        yield from (replacing(site, node, new, kind) for kind, new in of_syntax(node, of))
    sets = isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name)
    if site.is_value and (sets or isinstance(statement, (ast.Return, ast.Lambda))):
        scaled = [filled(f"{times} * e", e=of(site.node)) for times in (2, -1)]
        yield from (replacing(site, site.node, new, Kind.FACTOR) for new in scaled)
    yield from of_statement(site)

"""One change that makes a wrong backward right, found by value.

The gradients are an affine function of the value of almost every expression of the backward. Where no value of a
statement could give the measured gradients, the statement is ruled out: usually one to five remain. For each expression
in those, a candidate is a row of numbers, and one matrix product tells which of thousands repair the gradients. Those
few, and the edits that are not values, are compiled and run: at two points, and at other sizes.

Stages go from small changes to large ones. The first that finds something ends the search; of its hits, the one that
changes the least of the author's text is shown.
"""

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.edits import Edit, Kind, changed, of_statement, of_syntax, replacing
from mini_tf.gradcheck.explain.elsewhere import other_sizes
from mini_tf.gradcheck.explain.runs import Program
from mini_tf.gradcheck.explain.sites import Expression, Site, flat, is_numeric, size_of
from mini_tf.gradcheck.explain.target import Target, holds, same_output
from mini_tf.gradcheck.explain.values import ONE, Candidate, Scope, filled, rows
from mini_tf.gradcheck.hooks import is_tensor
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.promises import check_backward
from mini_tf.gradcheck.source import compiled, running_as
from mini_tf.types import Array

import numpy as np

# What may replace an expression e, with a value v and a number n: v·n, e + v·n, e·v·n, e/(v·n)
FORMS: dict[str, tuple[Callable[[Array, Array], Array], bool, Kind]] = {
    "v": (lambda M, e: M, True, Kind.VALUE),
    "e + v": (lambda M, e: M, False, Kind.TERM),
    "e * v": (lambda M, e: M * e, True, Kind.FACTOR),
    "e / v": (lambda M, e: e / M, True, Kind.FACTOR),
}
MINUS = {"v": "-v", "e + v": "e - v", "e * v": "-e * v", "e / v": "-e / v"}
PROGRAMS = 150           # edited programs that are run in one stage, at most
INJECTED = 4000          # values that are injected one by one, at most
ALL_RUNS = 3000          # runs of the author's code with other values, at most
PER_EXPRESSION = 12      # candidates tried for one expression and form
HITS = 6                 # edits that hold: enough to choose from
LARGE = 3000             # the largest array, and the largest number, that is injected


class Search:
    """A search for Edits that make the gradients of all tensors right; or only of `names`, by small edits."""

    sites: list[Site]        # those on which gradients depend,
    lines: list[Site]        # and those where another value can make the gradients right
    tried: int = 0           # how many values were injected,
    programs: int = 0        # and how many edited programs were run

    def __init__(self, evidence: Evidence, other: Evidence | None, names: Sequence[str] | None = None):
        self.evidence = evidence
        self.other = other
        self.target: Target = Target(evidence, names)
        self.is_part: bool = names is not None
        self.hits: list[Edit] = []                       # of the first stage that found any, the simplest first
        self._seen: set[tuple[int, int, str, str]] = set()
        self.program: Program = Program(self.target)
        self._scope = cache(lambda site: Scope(site, self.program.sites))
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"), self.program.running():
            self.sites = [site for site in self.program.sites if site.scopes and self.program.is_backward(site)]
            self._by_stages()
            self.hits.sort(key=lambda edit: edit.cost)
            self.lines = [site for site in self.sites if site.solution is not None and not site.is_parameter]
        evidence.back_to_the_point()

    def _by_stages(self) -> None:
        """Run the stages until one finds something: first where no right gradient is at stake."""
        only = [site for site in self.sites if site.moves is not None and not site.moves[self.target.in_right].any()]
        rest = [site for site in self.sites if site not in only]
        forward = [site for site in self.program.sites if site.scopes and site not in self.sites]
        small = [self._syntax, self._nearby, self._statements]
        groups = [(only, [self._copies, *small]), (rest, small), (self.sites, [self._composed]), (forward, small[:1])]
        for some, stages in groups[: 2 if self.is_part else None]:
            for site in some:
                self.program.measure(site)
            self._some, self._repairable = some, [site for site in some if site.solution is not None]
            for stage in stages:
                self._run_edits(stage())
                if self.hits:
                    return

    def _run_edits(self, edits: Iterable[Edit]) -> None:
        """Compile and run edits, the simplest first; those that hold are hits."""
        left = PROGRAMS
        for edit in sorted(edits, key=lambda edit: edit.cost):
            key = edit.start, edit.end, edit.new, edit.site.source.path
            if key not in self._seen and left and len(self.hits) < HITS:
                self._seen.add(key)
                left -= 1
                self.programs += 1
                if all_hold([edit], self.points, self.target.names, self.program):
                    self.hits.append(edit)

    @property
    def points(self) -> Iterator[Evidence]:
        """The evidence's own point, the other one, and those at other sizes"""
        yield from filter(None, [self.evidence, self.other])
        yield from self.elsewhere

    @cached_property
    def elsewhere(self) -> list[Evidence]:
        with running_as(self.program.originals):         # without hooks: they slow it down
            return other_sizes(self.evidence)

    def _by_value(self, candidates: Callable[[Expression, Scope], tuple[list[Candidate], Array]]) -> Iterator[Edit]:
        """The edits whose values repair the gradients, of candidates(expression, scope) -> (candidates, rows)"""
        for site in self._repairable:
            for e in site.expressions:
                J = e.jacobian
                if J is not None and self.target.solution(J, site.missing) is not None:
                    yield from self._repairing_rows(site, e, J, *candidates(e, self._scope(site)))

    def _repairing_rows(self, site: Site, e: Expression, J: Array, found: list[Candidate], M: Array) -> Iterator[Edit]:
        own, numbers = flat(e.values), ONE if self.evidence.subject.params else self._scope(site).numbers
        any_form = "backward" in site.phases or not self.evidence.subject.adapter.takes_dy
        forms = FORMS if any_form else {"v": FORMS["v"]}                 # y may need a cache, too
        for form, (terms, instead, kind) in forms.items() if len(M) else ():
            values = np.nan_to_num(terms(M, own), posinf=0, neginf=0)
            multiples = self._multiples(values, J, site.missing + (J @ own if instead else 0))
            for row, c in sorted(multiples, key=lambda one: abs(abs(one[1]) - 1) > 1e-6)[:PER_EXPRESSION]:
                for sign, template in ((1, form), (-1, MINUS[form])):
                    for number in numbers.get(f"{sign * c:.6g}", ()):
                        new = _with_number(template, e.text, found[row].text, number)
                        yield replacing(site, e.node, new, kind)

    def _multiples(self, values: Array, J: Array, goal: Array) -> list[tuple[int, float]]:
        """(row, c) of the rows whose effect on the gradients, times a number c, is the goal"""
        two = np.random.default_rng(0).normal(size=(2, len(goal)))       # two random sums rule out most rows
        a, b = ((values @ (J.T @ u), u @ goal) for u in two)
        chosen = np.flatnonzero(np.abs(a[0] * b[1] - b[0] * a[1]) <= 1e-4 * np.abs(a[0] * b[1]))
        G = values[chosen] @ J.T
        c = (G @ goal) / np.maximum((G * G).sum(1), 1e-300)
        return [(int(chosen[k]), float(c[k])) for k in np.flatnonzero(self.target.near(c[:, None] * G - goal))]

    def _nearby(self) -> Iterator[Edit]:
        """Another value, a function of the expression, one more term or factor"""
        yield from self._by_value(lambda e, scope: rows(e, scope.near(e)))
        for site in reversed([site for site in self._some if site.may_repair and site.replaceable]):
            for e in [e for e in site.expressions if e.is_numeric and e.jacobian is None]:
                small = (one for one in self._scope(site).of_itself(e) if all(_size(v) <= LARGE for v in one.values))
                yield from self._repairing(site, ((e.node, one.text, Kind.VALUE) for one in small))

    def _composed(self) -> Iterator[Edit]:
        """A function of another value, or of two"""
        yield from self._by_value(lambda e, scope: scope.composed(e))

    def _repairs(self, site: Site, text: str) -> bool:
        """Whether this text in place of the site's expression repairs the gradients: by its matrix, or in a run"""
        if self.tried >= INJECTED:
            return False
        self.tried, self.program.calls = self.tried + 1, 0
        values = site.evaluated(text)
        if not values or any(_size(v) > LARGE for v in values):
            return False
        with suppress(*FAILURES):
            alike = not site.is_numeric or [*map(np.shape, values)] == [*map(np.shape, site.values)]
            if alike and site.jacobian is not None:
                return bool(self.target.near(site.jacobian @ (flat(values) - site.base) - site.missing))
            if self.program.runs < ALL_RUNS and (alike or self.program.row is None):     # else its shape is wrong
                y, row = self.program.run(site, values)
                near = row is not None and self.target.near(row - self.target.goal)
                return bool(near) and same_output(y, self.evidence)
        return False

    def _repairing(self, site: Site, edits: Iterable[tuple[ast.AST, str, Kind]]) -> Iterator[Edit]:
        """Edits (node, new text, kind) whose values repair the gradients, or which have to be compiled to know"""
        for node, new, kind in edits:
            if self._repairs(site, site.with_replaced(node, new)) if site.replaceable else not site.may_be_endless:
                yield replacing(site, node, new, kind)

    def _copies(self) -> Iterator[Edit]:
        """A copy is missing: an array is overwritten that something else still needs"""
        right = self.program.row is not None and not self.target.wrong.any()
        for site in self.sites:
            for e in site.expressions[: None if right else 1]:
                array = e.values[0] if e.is_numeric and np.ndim(e.values[0]) else None
                if array is not None and (right or isinstance(e.node, (ast.Name, ast.Attribute, ast.Subscript))):
                    copy = "e.clone()" if is_tensor(array) else "e.copy()"
                    yield replacing(site, e.node, filled(copy, e=e.text), Kind.COPY)

    def _syntax(self) -> Iterator[Edit]:
        """Small changes of one node; in the forward those that leave y as it is, where it caches the wrong thing"""
        for site in [site for site in self._some if site.may_repair]:
            small = ((e.node, new, kind) for e in site.expressions for kind, new in of_syntax(e.node, site.text_of))
            yield from self._repairing(site, small)

    def _statements(self) -> Iterator[Edit]:
        """Edits of whole statements"""
        some = [site for site in self._some if not site.is_parameter]
        for statement in {id(site.statement): site.statement for site in some}.values():
            sites = [site for site in self.sites if site.statement is statement]
            moved = [self.target.wrong if site.moves is None else site.moves for site in sites]
            if np.any(moved, 0)[self.target.wrong].all() and not sites[0].may_be_endless:
                yield from of_statement(sites[0])


def _size(value: Any) -> float:
    """A number itself, else the length: a loop over a large range would take too long"""
    if isinstance(value, np.ndarray) or is_tensor(value):
        return size_of(value)
    return abs(value) if is_numeric(value) else len(value) if hasattr(value, "__len__") else 0


def _with_number(form: str, e: str, v: str, number: str) -> str:
    """The text of a form with a value and a number: e * v / n where the number is 1 / n"""
    over, n = number.startswith("1 / "), number.removeprefix("1 / ")
    if v == "1" and number != "1":
        divided = over and "e * v" in form
        return filled(form.replace("e * v", "e / v") if divided else form, e=e, v=n if divided else number)
    scaled = "v" if number == "1" else "v / n" if over != ("e / v" in form) else "v * n"
    return filled(form, e=e, v=filled(scaled, v=v, n=n))


def all_hold(edits: Sequence[Edit], points: Iterable[Evidence], names: Sequence[str], program: Program) -> bool:
    """Whether the author's code with these edits gives right gradients at these points, and keeps all promises."""
    codes, evidence = dict(program.originals), program.evidence
    with suppress(*FAILURES), np.errstate(all="ignore"):
        for function in {edit.site.source.function for edit in edits}:
            own = [edit for edit in edits if edit.site.source.function is function]
            codes[function] = compiled(function, changed(own), own[0].site.source.file.text)
        with running_as(codes):
            if all(holds(point, [name for name in names if name in point.slopes]) for point in points):
                evidence.back_to_the_point()
                _, backward = evidence.subject.forward()
                broken = check_backward(evidence.subject, backward, evidence.dy_again())[1]
                return not set(broken) - set(evidence.allowed)
    return False

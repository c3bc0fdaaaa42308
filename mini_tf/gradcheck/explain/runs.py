"""The author's code with a hook at each expression: its values are recorded, and replaced by others."""

import ast
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FunctionType
from typing import Any

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.sites import LARGEST, Site, flat, matrix_of, sites_in
from mini_tf.gradcheck.explain.target import Target
from mini_tf.gradcheck.hooks import copied, running_with, with_hooks, with_parameters
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.types import Array

import numpy as np

MOST_ROUNDS = 40         # of one statement, in a loop: with more, its values are not replaced
RUNS = 2500              # in which matrices are measured: sites left by then are not searched by value


class Program:
    """The author's functions with hooks in them; inside its block they can be run."""

    def __init__(self, target: Target):
        self.target = target
        self.evidence: Evidence = target.evidence
        self._subject = target.evidence.subject
        self.sites: list[Site] = []
        self._codes: dict[FunctionType, CodeType] = {}
        self.evidence.back_to_the_point()
        for function in functions_that_run(lambda: self._subject.run(self.evidence.dy), self.evidence.sound):
            with suppress(Unavailable, SyntaxError, StopIteration):
                source = with_parameters(source_of(function))
                sites = [*sites_in(source)]
                self._codes[function] = with_hooks(source, [site.node for site in sites], len(self.sites))
                self.sites += sites
        self.originals: dict[FunctionType, CodeType] = {function: function.__code__ for function in self._codes}
        self._injected: tuple[Site | None, list[Any]] = (None, [])
        self._notes: dict[Site, list[tuple[Any, dict[str, Any]]]] = {}
        self._phase = ""
        self.y: Any = None
        self.row: Any = None                             # the gradients; None if one has another shape
        self.runs: int = 0
        self.calls: int = 0                              # of the hook in one run,
        self._most = np.inf                              # and at most

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block the author's functions run with the hooks; the values of the sites are noted first."""
        with running_with(self._codes, self._hook):
            self._record()
            yield

    def _hook(self, k: int, value: Any) -> Any:
        self.calls += 1
        if self.calls > self._most:                      # with other values a while-loop may be endless
            raise TimeoutError
        site = self.sites[k]
        notes = self._notes.get(site)
        if notes is not None and len(notes) <= MOST_ROUNDS:
            site.phases.add(self._phase)
            notes.append((copied(value), {name: copied(x) for name, x in sys._getframe(1).f_locals.items()}))
        if site is self._injected[0] and self._injected[1]:
            return self._injected[1].pop(0)
        return value

    def run(self, site: Site | None = None, values: Sequence[Any] = ()) -> tuple[Any, Array | None]:
        """(y, the gradients in a row, None where one has another shape), with other values of a site put in"""
        self.runs, self.calls = self.runs + 1, 0
        self._injected = site, [*map(copied, values)]
        try:
            self.evidence.back_to_the_point()
            self._phase = "forward"
            y, backward = self._subject.forward()
            self._phase, y = "backward", np.copy(y)
            return y, self.target.row(backward(self.evidence.dy_again()))
        finally:
            self._injected = None, []

    def _record(self) -> None:
        """Note the values and names of all sites in one run; of functions inside others also the names around them."""
        self._notes = {site: [] for site in self.sites}
        with suppress(*FAILURES):
            self.y, self.row = self.run()
            self._most = 20 * self.calls + 1000
        if self.row is not None:
            self.target.compare(self.row)
        last: dict[ast.AST, dict[str, Any]] = {}         # node of a function -> its names when it returned
        for site, noted in self._notes.items():
            site.replaceable = site.is_value and 0 < len(noted) <= MOST_ROUNDS
            site.values, site.scopes = ([one[k] for one in noted[:MOST_ROUNDS]] for k in (0, 1))
            if noted:
                last[site.functions[-1]] = {**last.get(site.functions[-1], {}), **site.scopes[-1]}
        for site in self.sites:
            around = {name: x for node in site.functions[:-1] for name, x in last.get(node, {}).items()}
            site.own_names = [*around, *(site.scopes[0] if site.scopes else ())]
            site.scopes = [{**site.source.function.__globals__, **around, **scope} for scope in site.scopes]
        self._notes = {}

    def is_backward(self, site: Site) -> bool:
        """Whether another value of the site leaves y as it is, and changes a gradient"""
        ran = self.y is not None and "backward" in site.phases
        if self.y is None or not site.is_numeric:
            return ran
        try:
            y, row = self.run(site, site.shaped(site.base + np.random.default_rng(0).uniform(0.3, 1, site.base.size)))
        except FAILURES:
            return ran
        if np.shape(y) != np.shape(self.y) or not np.array_equal(y, self.y, equal_nan=True):
            return False
        if row is None or self.row is None:
            return True
        site.moves = row != self.row
        site.moves_all_wrong = bool(site.moves[self.target.wrong].all())
        return ran or bool(site.moves.any())

    def measure(self, site: Site) -> None:
        """The gradients as an affine function of the site's values, of all times that it ran together."""
        if site.moves is None or site.jacobian is not None or not site.moves_all_wrong:
            return
        base = site.base
        if base.size > LARGEST or self.runs + base.size > RUNS:
            return
        with suppress(*FAILURES):                        # no affine function, or gradients of another shape
            site.jacobian = matrix_of(lambda row: self.run(site, site.shaped(row))[1], base)
        if site.jacobian is not None:
            site.missing = self.target.goal - self.row
            site.solution = self.target.solution(site.jacobian, site.missing)
            if site.solution is not None and len(site.scopes) > 1:
                self._replay_loop(site)

    def _replay_loop(self, site: Site) -> None:
        """Take a loop's names from a run in which earlier rounds have the right values, as they will once repaired."""
        self._notes = {site: []}
        with suppress(*FAILURES):
            self.run(site, site.shaped(site.base + site.solution))
            noted = self._notes[site]
            for scope, (_, again) in zip(site.scopes, noted if len(noted) == len(site.scopes) else ()):
                scope.update(again)
            site.values = site.evaluated(site.text_of(site.node))
            now = flat(site.values)
            site.missing, site.base = site.missing - site.jacobian @ (now - site.base), now
        self._notes = {}

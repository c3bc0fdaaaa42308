"""One change that makes a wrong backward right, found by value.

The gradients are an affine function of the value of almost every expression of the backward. Where no value of a
statement could give the measured gradients, the statement is out: most often one to five stay. For the expressions in
those, a candidate is a row of numbers, and one product of matrices tells which of thousands repair the gradients. Those
few, and the edits that are no values, are compiled and run: at two points, and at other sizes.

Stages go from small changes to large ones. The first that finds something ends the search; of its hits, the one that
changes least of the author's text is shown.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import product

from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.edits import Edit, Kind, of_statement, of_syntax, replacing, written
from mini_tf.gradcheck.explain.elsewhere import other_sizes
from mini_tf.gradcheck.explain.expressions import Expression, code_of, expressions_of, is_numeric, replaced
from mini_tf.gradcheck.explain.sites import RUNS, Program, Site
from mini_tf.gradcheck.explain.target import Target, holds
from mini_tf.gradcheck.explain.values import OF_ONE, WITH, Scope, computed, filled, formula, near, rows, text_of
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.promises import check_backward
from mini_tf.gradcheck.report import entry
from mini_tf.gradcheck.source import compiled, running_as
from mini_tf.gradcheck.subject import Subject

import numpy as np

# How a value v with a number c may stand in the place of an expression e: v·c, e + v·c, e·v·c, e/(v·c)
FORMS: dict[str, tuple[Callable, bool, Kind]] = {
    "v": (lambda M, e: M, True, Kind.VALUE),
    "e + v": (lambda M, e: M, False, Kind.TERM),
    "e * v": (lambda M, e: M * e, True, Kind.FACTOR),
    "e / v": (lambda M, e: e / M, True, Kind.FACTOR),
}
MINUS = {"v": "-v", "e + v": "e - v", "e * v": "-e * v", "e / v": "-e / v"}
PROGRAMS = 150           # compiled and run at most, in one stage,
PUT_IN = 8000            # and values put in to see what they do,
MORE_RUNS = 1500         # of them where no matrix says it
PER_EXPRESSION = 12      # hits of one expression and form that are tried
NUMBERS = 3              # expressions for a factor that are tried
HITS = 6                 # that hold, of one stage, are enough to choose from
LARGE = 3000             # the largest array, and the largest number, that is put in


class Search:
    """A search for Edits that make the gradients `names` right, and spoil no other.

    hits    the Edits of the first stage that found any, the simplest first;  stage: its name
    sites   those on which gradients depend;  tried, programs: how many values were put in, and edits run
    """

    def __init__(
        self, subject: Subject, evidence: Evidence, other: Evidence | None, names: Sequence[str] | None = None,
        elsewhere: list[Evidence] | None = None,
    ):  # fmt: skip
        self.subject, self.evidence, self.other = subject, evidence, other
        self.target = Target(subject, evidence, names)
        self.hits: list[Edit] = []
        self.programs, self.tried, self.stage = 0, 0, ""
        self._seen: set[tuple] = set()
        if elsewhere is not None:                        # measured already
            self.elsewhere = elsewhere
        with np.errstate(all="ignore"):
            with Program(self.target) as self.program:
                self.sites = self.program.eligible
                self._by_stages()
            evidence.back_to_the_point()

    @property
    def live(self) -> list[Site]:
        """The sites of which another value could make the gradients right"""
        return [site for site in self.sites if site.live]

    @cached_property
    def _open(self) -> list[Site]:
        """The sites of which some value may make the gradients right; without loops and conditions"""
        return [site for site in self.sites if site.reachable and not site.is_control]

    def _by_stages(self):
        """Run the stages until one finds something."""
        stages = (
            self._copies, self._syntax, self._near, self._statements, self._other_values, self._derived, self._pairs,
            self._other_shapes, self._without_a_matrix, self._loops_and_conditions, self._not_put_in,
            self._in_the_forward,
        )  # fmt: skip
        for stage in stages:
            self.stage, left = stage.__name__, PROGRAMS
            for edit in sorted(stage(), key=lambda edit: edit.cost):
                key = edit.start, edit.end, edit.new, edit.source.path
                if key not in self._seen and left and len(self.hits) < HITS:
                    self._seen.add(key)
                    left -= 1
                    self._try(edit)
            if self.hits:
                break
        self.hits.sort(key=lambda edit: edit.cost)

    def _try(self, edit):
        """Compile and run it; what holds is a hit."""
        self.programs += 1
        here = [self.evidence, *filter(None, [self.other])]
        if all(self._holds(edit, points) for points in (here, self.elsewhere)):
            self.hits.append(edit)

    def _holds(self, edit, points):
        return all_hold([edit], points, self.target.names, self.program)

    @property
    def points(self) -> list[Evidence]:
        """The evidence's own point, the other one, and those at other sizes"""
        return [self.evidence, *filter(None, [self.other]), *self.elsewhere]

    @cached_property
    def elsewhere(self) -> list[Evidence]:
        with running_as(self.program.originals):         # without hooks, which take time
            return other_sizes(self.evidence)

    def need(self) -> str:
        """What the smallest expression that stays would have to be; "" if none does, or several"""
        known = [site for site in self.live if len(site.scopes) == 1]
        places = [e for site in known for e in self._expressions(site) if e.jacobian is not None]
        smallest = [e for e in places if not any(o is not e and o.text in e.text and o.site is e.site for o in places)]
        if len(smallest) != 1:
            return ""
        e = smallest[0]
        now = np.asarray(e.values[0], float)
        wanted = now + (np.linalg.lstsq(e.jacobian, e.missing, rcond=1e-10)[0]).reshape(now.shape)
        worst = np.unravel_index(int(np.abs(wanted - now).argmax()), now.shape)
        at = f" at {entry(tuple(int(k) for k in worst))}" if now.ndim else ""
        return (f"Unless a line is missing, only another `{e.text}` in line {e.site.line} can make it right:{at} it is "
                f"{now[worst]:.4g}, and would have to be {wanted[worst]:.4g}")                 # fmt: skip

    def _expressions(self, site: Site) -> list[Expression]:
        if not hasattr(site, "expressions"):
            site.expressions = expressions_of(site, self.target)
        return site.expressions

    def _scope(self, site: Site) -> Scope:
        if not hasattr(site, "scope"):
            site.scope = Scope(site, self.program.sites)
        return site.scope

    # --- by value, all at once

    def _fit(self, candidates: Callable) -> Iterator[Edit]:
        """The edits whose values make the gradients right, of candidates(expression, scope) -> (formulas, rows)"""
        for site in self.live:
            for e in self._expressions(site):
                if e.jacobian is not None:
                    yield from self._hits(site, e, *candidates(e, self._scope(site)))

    def _hits(self, site, e, formulas, M):
        own = np.concatenate([np.ravel(v) for v in e.values]).astype(float)
        numbers = self._scope(site).numbers
        for form, (terms, instead, kind) in FORMS.items() if len(M) else ():
            G = np.nan_to_num(terms(M, own), posinf=0, neginf=0) @ e.jacobian.T
            goal = e.missing + (e.jacobian @ own if instead else 0)
            c = (G @ goal) / np.maximum((G * G).sum(1), 1e-300)
            for row in np.flatnonzero(self.target.near(c[:, None] * G - goal))[:PER_EXPRESSION]:
                plain = abs(abs(c[row]) - 1) < 1e-6
                for number in [f"{c[row]:.0f}"] if plain else numbers.get(f"{c[row]:.6g}", [])[:NUMBERS]:
                    text, shape = text_of(formulas[row]), MINUS[form] if number == "-1" else form
                    if not plain:
                        with_it = "v / n" if form == "e / v" else "v * n"
                        text = number if text == "1" else filled(with_it, v=text, n=number)
                    yield replacing(site, e.node, filled(shape, e=e.text, v=text), kind)

    def _near(self):
        """Another value, a function of the expression, one more term or factor"""
        yield from self._fit(lambda e, scope: rows(e, near(e, scope)))

    def _derived(self):
        """A function of another value; an expression of this function with one name changed"""
        yield from self._fit(lambda e, scope: rows(e, [*scope.functions, *scope.adapted]))

    def _pairs(self):
        """A function of two values"""
        yield from self._fit(lambda e, scope: scope.pairs(e))

    # --- one by one

    def _mends(self, site: Site, e: Expression, values: Sequence | Callable) -> bool:
        """Whether these values in the expression's place make the gradients right; True where that is not known"""
        if not site.reachable:
            return False
        if not site.is_value or e.context is None or not site.complete:
            return False                                 # `_not_put_in` compiles and runs it
        if self.tried >= PUT_IN:
            return False
        self.tried += 1
        try:
            values = [values(k) for k in range(len(site.scopes))] if callable(values) else values
            if any(np.size(v) > LARGE or (not np.ndim(v) and is_numeric(v) and abs(v) > LARGE) for v in values):
                return False
            with self.program.ends():
                outs = [e.within(k, v) for k, v in enumerate(values)]
            shapes = [[part.shape for part in site.parts(some)] for some in (outs, site.values)]
            if site.jacobian is not None and shapes[0] == shapes[1]:
                return bool(self.target.near(site.jacobian @ (site.flat(outs) - site.base) - site.missing))
            if self.program.runs >= RUNS + MORE_RUNS:
                return False
            y, row = self.program.run({site: outs})
            same = np.shape(y) == np.shape(self.program.y) and np.allclose(y, self.program.y, rtol=1e-9, atol=1e-12)
            return same and row is not None and bool(self.target.near(row - self.target.goal))
        except FAILURES:
            return False

    def _mends_as(self, site: Site, e: Expression, new: ast.AST) -> bool:
        """Whether another node in the expression's place makes the gradients right; True where that is not known"""
        if e.values is None:                             # inside a comprehension: the site's expression as a whole
            e, new = self._expressions(site)[0], replaced(site.node, e.node, new)
        try:
            code = code_of(new)
        except (SyntaxError, ValueError, TypeError):     # a slice
            return True
        return self._mends(site, e, lambda k: eval(code, site.scopes[k]))

    def _tried(self, site: Site, e: Expression, candidates: Iterable, kind: Kind = Kind.VALUE) -> Iterator[Edit]:
        """The edits of those candidates, (formula, values), that make the gradients right"""
        for one, values in candidates:
            if values is not None and self._mends(site, e, values):
                yield replacing(site, e.node, text_of(one), kind)

    def _copies(self):
        """A copy is missing: something is written into, though the gradients may be right"""
        right = self.program.row is not None and self.target.near(self.program.row - self.target.goal)
        for site in self.sites:
            for e in self._expressions(site)[: None if right else 1]:
                array = e.is_numeric and np.ndim(e.values[0])
                if array and (right or isinstance(e.node, (ast.Name, ast.Attribute, ast.Subscript))):
                    yield replacing(site, e.node, filled("e.copy()", e=e.text), Kind.COPY)

    def _syntax(self):
        """Small changes of one node"""
        for site in self._open:
            for e in self._expressions(site):
                for kind, new in of_syntax(e.node):
                    if self._mends_as(site, e, new):
                        yield replacing(site, e.node, written(new, site.source), kind)
                if e.values is None and isinstance(e.node, (ast.Name, ast.Call, ast.BinOp)):
                    for text in [filled(template, e=e.text) for template in OF_ONE]:
                        if self._mends_as(site, e, ast.parse(text, mode="eval").body):
                            yield replacing(site, e.node, text, Kind.VALUE)
                if isinstance(e.node, ast.Subscript) and e.is_numeric:
                    yield from self._slices(site, e)

    def _not_put_in(self):
        """Small changes, and other values, where none can be put in: indices, and statements that run very often"""
        for site in [site for site in self._open if not (site.is_value and site.complete)]:
            for e in self._expressions(site):
                for kind, new in of_syntax(e.node):
                    yield replacing(site, e.node, written(new, site.source), kind)
                values = self._scope(site).values if e.is_numeric and site.scopes else ()
                for text, v in values:
                    if np.shape(v[0]) == np.shape(e.values[0]):
                        yield replacing(site, e.node, text, Kind.VALUE)
                        for form, (_, _, kind) in FORMS.items() if site.is_value else ():
                            yield replacing(site, e.node, filled(form, e=e.text, v=text), kind)

    def _slices(self, site, e):
        """Another slice: one that stands elsewhere, one moved by a whole number in scope, all moved by the same"""
        slices = [n for n in ast.walk(e.node.slice) if isinstance(n, ast.Slice)]
        known = {written(n.node, s.source): 0 for s in self.program.sites for n in self._expressions(s)
                 if isinstance(n.node, ast.Slice)}       # fmt: skip
        whole = [t for t, v in self._scope(site).values if t.isidentifier() and np.asarray(v[0]).dtype.kind in "iu"]
        for old in slices:
            for text in dict.fromkeys([*known, *(_moved(site, old, name) for name in whole), *whole]):
                if self._mends_as(site, e, replaced(e.node, old, _slice(text))):
                    yield replacing(site, old, text, Kind.INDEX)
        for name in whole if len(slices) > 1 else ():    # [pad:pad + H, pad:pad + W]
            new = e.node
            for old in slices:
                new = replaced(new, old, _slice(_moved(site, old, name)))
            if self._mends_as(site, e, new):
                yield replacing(site, e.node, written(new, site.source), Kind.INDEX)

    def _statements(self):
        """Edits of statements"""
        done = []
        for site in self.sites:
            if site.scopes and not any(site.statement is one for one in done):
                done.append(site.statement)
                yield from of_statement(site, self._scope(site).values)

    def _other_values(self):
        """Another value where no matrix says what it does"""
        for site in self._open:
            for e in self._expressions(site):
                whole = e.is_numeric and np.asarray(e.values[0]).dtype.kind in "iu"
                if e.is_numeric and (not site.live or (e.jacobian is None and whole)):
                    yield from self._tried(site, e, self._scope(site).values)
                    functions = ((formula(t, e=e.text), computed(t, e=e.values)) for t in OF_ONE)
                    yield from self._tried(site, e, functions)

    def _other_shapes(self):
        """A value of another shape"""
        for site in [site for site in self._open if site.is_value and len(site.scopes) == 1]:
            for e in self._expressions(site):
                if e.is_numeric:
                    shape = np.shape(e.values[0])
                    others = (one for one in self._scope(site).functions if np.shape(one[1][0]) != shape)
                    yield from self._tried(site, e, others)

    def _without_a_matrix(self):
        """The forms of `_near`, where they have to be put in one by one"""
        for site in [site for site in self._open if site.jacobian is None]:
            for e in self._expressions(site):
                for template, (text, v) in product([*FORMS, *WITH], self._scope(site).values) if e.is_numeric else ():
                    kind = FORMS[template][2] if template in FORMS else Kind.VALUE
                    one = formula(template, e=e.text, v=text), computed(template, e=e.values, v=v)
                    yield from self._tried(site, e, [one], kind)

    def _loops_and_conditions(self):
        """Small changes of what loops run over, and of what conditions ask"""
        for site in [site for site in self.sites if site.is_control]:
            for e in self._expressions(site):
                for kind, new in of_syntax(e.node):
                    yield replacing(site, e.node, written(new, site.source), kind)
                for text, v in self._scope(site).values if e.is_numeric else ():
                    if np.shape(v[0]) == np.shape(e.values[0]) and not np.array_equal(v[0], e.values[0]):
                        yield replacing(site, e.node, text, Kind.VALUE)

    def _in_the_forward(self):
        """Edits of the forward that leave y as it is: what it keeps is wrong"""
        for site in [site for site in self.program.sites if site.scopes and site not in self.sites]:
            for e in self._expressions(site):
                for _, new in of_syntax(e.node):
                    yield replacing(site, e.node, written(new, site.source), Kind.FORWARD)


def _moved(site, node, name):
    """The text of a slice moved by a name: pad:pad + H for :H"""
    low, up = (site.source.file.of(x) if x else "" for x in (node.lower, node.upper))
    return f"{f'{name} + {low}' if low else name}:{f'{name} + {up}' if up else ''}"


def _slice(text):
    return ast.parse(f"x[{text}]", mode="eval").body.slice


def all_hold(edits: Sequence[Edit], points: Sequence[Evidence], names: Sequence[str], program: Program) -> bool:
    """Whether the author's code with these edits gives right gradients at these points, and breaks no promise."""
    codes, text = dict(program.originals), edits[0].source.file.text
    try:
        for function in dict.fromkeys(edit.source.function for edit in edits):
            changed = text
            for edit in sorted((e for e in edits if e.source.function is function), key=lambda e: -e.start):
                changed = changed[: edit.start] + edit.new + changed[edit.end :]
            codes[function] = compiled(function, changed, text)
        with running_as(codes), np.errstate(all="ignore"):
            for point in points:
                with program.ends():
                    if not holds(point, [name for name in names if name in point.slopes]):
                        return False
            return not points or _keeps_promises(points[0])
    except (SyntaxError, ValueError, StopIteration, *FAILURES):
        return False


def _keeps_promises(evidence):
    """Whether no promise is broken but those that are allowed, as where a layer works in place on the dy it is given"""
    evidence.back_to_the_point()
    _, backward = evidence.subject.forward()
    broken = check_backward(evidence.subject, backward, evidence.dy_again())[1]
    return not set(broken) - set(evidence.allowed)

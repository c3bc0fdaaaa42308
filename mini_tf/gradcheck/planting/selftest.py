"""Would the checker notice?  Plants bugs in your own backward, one at a time, and checks each.

    result = self_test(ops.layer_norm, x, gamma, beta)
    assert result                    # no bug was missed
    print(result)

A passing check means something only if it would have failed on a wrong backward. If your inputs are blind (γ = 1 cannot
show a forgotten γ), a mutant is missed, and the report shows its line.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, MethodType
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.judge import judge
from mini_tf.gradcheck.measuring.brought import Brought, WithGradients
from mini_tf.gradcheck.measuring.stored import is_floating
from mini_tf.gradcheck.measuring.styles import in_contract
from mini_tf.gradcheck.measuring.subject import name_of, named_parameters
from mini_tf.gradcheck.planting.editing import (
    closure_of,
    difference,
    function_of,
    outcome,
    rebuilt,
    recompiled,
    running_as,
    source_of,
)
from mini_tf.gradcheck.planting.mutations import mutations
from mini_tf.gradcheck.turns import turn
from mini_tf.layers import Parameter

import numpy as np

SAME = 1e-9              # two backwards whose results differ by less, relatively, on every draw are the same
DRAWS = 3                # random inputs to compare them at, besides the given ones
NEVER_RAN = "did not run on these inputs"


@dataclass(frozen=True)
class Mutant:
    """One planted bug: the line of the source before and after, and what became of it."""

    mutation: str
    file: str
    line: int
    before: str
    after: str
    found: str               # how it was found, or why it was not

    @property
    def place(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True)
class SelfTest:
    """The mutants of one backward: true if some were caught and none was missed."""

    name: str
    caught: list = field(default_factory=list)
    missed: list = field(default_factory=list)
    equivalent: list = field(default_factory=list)       # not bugs: same results, or never run

    def __bool__(self):
        return bool(self.caught) and not self.missed

    def explain(self) -> str:
        """A table with a line for each mutation; below it the source lines of those missed, and what never ran."""
        tested = len(self.caught) + len(self.missed)
        raised = sum(m.found.startswith("raised") for m in self.caught)
        lines = [f"{self.name}: {len(self.caught)} of {tested} planted bugs caught"]
        if raised:
            lines[0] += f", {raised} of them because they raised an error"
        if not tested:
            lines = [f"{self.name}: no bug could be planted, so nothing is known"]
        lists = [Counter(m.mutation for m in mutants) for mutants in (self.caught, self.missed, self.equivalent)]
        kinds = sorted(set().union(*lists))
        width = max((len(kind) for kind in kinds), default=0)
        if kinds:
            lines.append(f"  {'':<{width}}  caught  missed  equivalent")
        for kind in kinds:
            caught, missed, equivalent = (counts[kind] for counts in lists)
            lines.append(f"  {kind:<{width}}  {caught:>6}  {missed:>6}  {equivalent:>10}")
        for m in self.missed:
            lines += [f"  MISSED: {m.mutation}, {m.place}", f"    right    {m.before}", f"    planted  {m.after}"]
        silent = {f"{m.place}: {m.before}": None for m in self.equivalent if m.found == NEVER_RAN}
        if silent:
            lines.append("  Did not run on these inputs, or not all of it, and so was not tested:")
            lines += [f"    {line}" for line in silent]
        return "\n".join(lines)

    __str__ = __repr__ = explain


def self_test(
    f: Any, *inputs, params: dict[str, Parameter] | Sequence[Parameter] | None = (), name: str | None = None,
    seed: int = 0,
) -> SelfTest:  # fmt: skip
    """Plant bugs in the backward that f(*inputs) returns, one at a time, and check each. Returns a SelfTest.

    The arguments are gradcheck's. Only the function that f returns is changed, not those that it calls in turn: of a
    layer, its own backward; of an op, the op's. A mutant is caught when gradcheck fails on it, or when it raises. One
    that gives the right gradients, at the inputs and at random ones, is equivalent and does not count.

    Raises UserError when the gradients are wrong as they are, and when the source of the backward is not available.
    """
    f = in_contract(f, inputs)
    if isinstance(f, WithGradients):
        raise UserError("the self-test changes a backward, and this loss comes with its gradients: it has none")
    params = f.parameters if isinstance(f, Brought) and not params else named_parameters(params or {})
    name = name or name_of(f)
    with turn, np.errstate(all="ignore"), _kept(params):
        report = judge(f, inputs, params, name, seed)
        if not report:
            raise UserError(f"the self-test starts from a backward that passes, and this one does not:\n{report}")
        backward = function_of(f(*inputs)[1])
        text, node = source_of(backward)
        draws = list(_draws(f, inputs, params, seed))
        sorted_out = {"caught": [], "missed": [], "equivalent": []}
        for mutation in mutations(text, node, _kept_arrays(f, inputs)):
            try:
                wrong, probe = (
                    with_backward(f, backward.__code__, recompiled(backward, changed, text))
                    for changed in (mutation.text, mutation.probe)
                )
            except SyntaxError:                          # not a program, so not a bug that anyone could have
                continue
            verdict, found = _verdict(wrong, inputs, params, draws, name, seed)
            if verdict == "equivalent" and _runs(probe, params, draws[0]):
                found = NEVER_RAN
            file, m = backward.__code__.co_filename, mutation
            sorted_out[verdict].append(Mutant(m.name, file, m.line, m.before, m.after, found))
    return SelfTest(name, **sorted_out)


def with_backward(f: Callable, code: CodeType, changed: CodeType) -> Callable:
    """A function like f whose backward, where its code is `code`, runs `changed`."""
    if isinstance(f, Brought):
        return f.with_other_backward(lambda backward: _running(backward, changed))

    def wrong(*inputs):
        y, backward = f(*inputs)
        function = function_of(backward)
        if function.__code__ != code:                    # another of f's backwards
            return y, backward
        new = rebuilt(function, changed)
        return y, new if function is backward else MethodType(new, getattr(backward, "__self__", backward))

    wrong.__wrapped__ = f                                # its arguments have the names of f's
    wrong.__name__ = name_of(f)
    return wrong


def _running(backward, code):
    """A backward like this one, during which the learner's function runs that code."""

    def changed(dy):
        with running_as(function_of(backward), code):
            return backward(dy)

    return changed


def _verdict(wrong, inputs, params, draws, name, seed):
    try:
        if all(_same(wrong, params, *draw) for draw in draws):
            return "equivalent", "gives the right gradients"
        if judge(wrong, inputs, params, name, seed):
            return "missed", "the check passed"
    except FAILURES as error:                           # an error is noticed, whatever it is
        return "caught", f"raised {type(error).__name__}: {error}"
    return "caught", "the check failed"


def _runs(f, params, draw):
    try:
        _outcome(f, draw[0], params, *draw[1:3])
    except ZeroDivisionError:
        return False
    return True


def _draws(f, inputs, params, seed):
    """(inputs, parameters' data, a seed for dy, the right outcome), at the given point and at random ones."""
    inputs = [_float64(x) for x in inputs]
    data = {name: _float64(p.data) for name, p in params.items()}
    rng = np.random.default_rng((seed, 2))
    for draw in range(DRAWS + 1):
        try:
            right = _outcome(f, inputs, params, data, draw)
        except FAILURES:
            if not draw:
                raise
            right = [np.array(np.nan)]
        if not draw or all(np.isfinite(a).all() for a in right if a is not None):    # f may not be defined everywhere
            yield inputs, data, draw, right
        inputs = [rng.standard_normal(x.shape) if is_floating(x) else x for x in inputs]
        data = {name: rng.standard_normal(x.shape) if is_floating(x) else x for name, x in data.items()}


def _same(wrong, params, inputs, data, draw, right):
    return difference(right, _outcome(wrong, inputs, params, data, draw)) < SAME


def _outcome(f, inputs, params, data, seed):
    with _kept(params):
        for name, p in params.items():
            p.data = np.copy(data[name])
        return outcome(f, inputs, params, seed)


def _kept_arrays(f, inputs):
    """{name: whose} of the floating arrays in the backward's closure: "an input" or "what the forward kept"."""
    inputs = [_float64(x) for x in inputs]
    backward = function_of(f(*inputs)[1])
    return {
        name: "an input" if any(array is x for x in inputs) else "what the forward kept"
        for name, array in closure_of(backward).items() if is_floating(array)
    }  # fmt: skip


@contextmanager
def _kept(params):
    """At the end of the block the parameters have the data and gradients of its beginning."""
    before = [(p, p.data, p.grad) for p in params.values()]
    try:
        for p, data, _ in before:
            p.data = np.copy(data)                       # a mutant may write into it
        yield
    finally:
        for p, data, grad in before:
            p.data, p.grad = data, grad


def _float64(x):
    return np.array(x, dtype=np.float64) if is_floating(x) else x

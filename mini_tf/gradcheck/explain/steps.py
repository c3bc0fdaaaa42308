"""The first wrong step of a model: its ops, layers and functions are checked one by one, in the order of the way back.

A step is what keeps a contract inside a model: a call of an op or a layer of mini_tf, a function of the author's that
returns y, backward, a pair of functions, an object with forward and backward. Each is checked by itself, on the inputs
that it had in one run.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from mini_tf.gradcheck.adapters import partner_of
from mini_tf.gradcheck.errors import FAILURES, Refused
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.promises import place_of
from mini_tf.gradcheck.measure.slopes import watched_relus
from mini_tf.gradcheck.program import functions_that_run, is_theirs
from mini_tf.gradcheck.report import AFTER, CONTAINS, RIGHT, WRONG, Report, Step
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged, seems_right
from mini_tf.gradcheck.weights import objects_in
from mini_tf.places import place

import numpy as np

BUDGET = 300             # entries measured of each tensor of a step
METHODS = ("forward", "__call__")


@dataclass(eq=False)
class Inner:
    """One call inside a model: what was called, with which inputs, and when its backward ended."""

    name: str
    f: Any
    inputs: list
    options: dict
    line: str
    parents: tuple = ()
    ended: float | None = None
    backward: Any = None
    is_ours: bool = False                                # an op or a layer of mini_tf

    def subject(self) -> Subject:
        return Subject(self.f, self.inputs, self.options)


@dataclass
class Recorder:
    """Calls as they happen: forwards as they begin, backwards as they end."""

    calls: list = field(default_factory=list)
    open: list = field(default_factory=list)
    traced: list = field(default_factory=list)           # calls of mini_tf's, which count for themselves
    ends: int = 0

    def begin(self, name: str, f: Any, inputs: tuple, options: dict) -> Inner:
        """A new call; its inputs are copied, as the model may write into them."""
        given = [_copied(x) for x in inputs], {n: _copied(x) for n, x in options.items()}
        call = Inner(name, f, *given, _calling_line(), tuple(self.open))
        self.calls.append(call)
        return call

    def end(self, call: Inner) -> None:
        self.ends += 1
        call.ended = sum(one.ended is not None for one in self.traced) - 0.5 + 1e-6 * self.ends


def find_steps(report: Report, subject: Subject, evidence: Evidence, seed: int, explain: Callable) -> None:
    """Add the steps inside a failing subject to its report, the first wrong one with a report of its own.

    explain: adds the reasons to that report; called like `reasons.add_reasons`
    """
    calls = [call for call in _calls_in(subject, evidence) if call.ended is not None]
    calls.sort(key=lambda call: call.ended)
    wrong, of_step = None, None
    for look in range(2):                                # the second with another dy
        for call in calls if wrong is None else ():
            if not _seems_right(call, seed + look):
                with judged(call.subject, call.name, seed, BUDGET) as (one, own, found, other):
                    if found is not None and (found.wrong or found.misfits) and not _only_scaled(call, found):
                        wrong, of_step = call, one
                        if not call.is_ours:             # an author's layers may work in place, on dy
                            found.allowed = [f for f in one.findings if "wrote into the dy" in f]
                            one.findings = [f for f in one.findings if f not in found.allowed]
                        explain(one, own, found, other, seed)
                        one.notes = []
                        break
    for call in calls:
        status = RIGHT if wrong is None or call.ended < wrong.ended else AFTER
        status = WRONG if call is wrong else CONTAINS if wrong is not None and call in wrong.parents else status
        where = place_of(getattr(call.backward, "of", call.backward)) if call.backward is not None else place_of(call.f)
        report.steps.append(Step(call.name, call.line, where, status, of_step if call is wrong else None))


def _seems_right(call, seed):
    try:
        with watched_relus() as patterns:
            subject = call.subject()
            with subject.in_float64():
                return seems_right(subject, patterns, seed)
    except (*FAILURES, Refused):
        return True                                      # it cannot be judged by itself


def _only_scaled(call, evidence):
    """Whether an author's step only counts in another unit: dA may stand for m times the gradient, for m examples"""
    if not isinstance(call.f, tuple) or evidence.misfits:
        return False
    factors = []
    for name in evidence.wrong:
        g, slopes = evidence.gradients[name].ravel(), np.nan_to_num(evidence.slopes[name].ravel())
        factors.append(g @ slopes / max(slopes @ slopes, 1e-300))
        if factors[-1] <= 0 or np.abs(g - factors[-1] * slopes).max() > 1e-6 * evidence.size(name):
            return False
    return bool(factors) and np.ptp(factors) <= 1e-6 * factors[0]


def _calls_in(subject, evidence):
    """[Inner] of one run of the subject, at the evidence's point"""
    evidence.back_to_the_point()
    functions = functions_that_run(lambda: subject.run(evidence.dy_again()))
    recorder = Recorder()
    try:
        with _traced(recorder), _watched(recorder, subject, functions):
            subject.run(evidence.dy_again())
    except FAILURES:
        return []
    finally:
        evidence.back_to_the_point()
    own = {id(subject.f), id(getattr(subject.f, "__func__", None))}
    calls = [call for call in recorder.calls if id(call.f) not in own and id(getattr(call.f, "__func__", 0)) not in own]
    return [call for call in calls if getattr(call.f, "formula", call) is not getattr(subject.f, "formula", None)]


@contextmanager
def _traced(recorder: Recorder) -> Iterator[None]:
    """Inside the block, calls of mini_tf's ops and layers are recorded, if it is there at all."""
    if "mini_tf.ops.op" not in sys.modules:
        yield
        return
    from mini_tf.trace import trace

    with trace() as recorder.traced:
        yield
    made = {}
    for call in recorder.traced:
        made[call] = Inner(call.name, call.f, list(call.inputs), call.options, call.line,
                           tuple(made[parent] for parent in call.parents if parent in made), call.ended, call.backward,
                           True)                         # fmt: skip
    recorder.calls += made.values()


@contextmanager
def _watched(recorder: Recorder, subject: Subject, functions: list) -> Iterator[None]:
    """Inside the block, the author's functions and objects are recorded that keep a contract."""
    with ExitStack() as stack:
        for function in [f for f in functions if is_theirs(f.__code__.co_filename)]:
            space = function.__globals__
            if space.get(function.__name__) is function and function is not subject.f:
                partner = partner_of(function)
                if partner in functions:
                    _replace_pair(recorder, stack, space, function, partner)
                elif partner is None:
                    stack.callback(space.__setitem__, function.__name__, function)
                    space[function.__name__] = _closure(recorder, function)
        owners = [one for path, one in objects_in(subject.adapter.owner) if path]
        for cls in {type(one) for one in owners}:
            forward = next((name for name in METHODS if name in vars(cls)), None)
            if forward and "backward" in vars(cls):
                _replace_methods(recorder, stack, cls, forward)
        yield


def _closure(recorder, function):
    """The function, recorded where it returns y, backward"""
    @wraps(function)
    def call(*inputs, **options):
        inner = recorder.begin(function.__name__, function, inputs, options)
        recorder.open.append(inner)
        try:
            result = function(*inputs, **options)
        finally:
            recorder.open.pop()
        if not (isinstance(result, tuple) and len(result) == 2 and callable(result[1])):
            recorder.calls.remove(inner)
            return result
        inner.backward = result[1]

        def backward(*dy):
            came = result[1](*dy)
            recorder.end(inner)
            return came

        return result[0], backward

    return call


def _replace_pair(recorder, stack, space, forward, backward):
    """f_forward and f_backward, recorded together: a backward belongs to the last forward that has not come back"""
    waiting = []

    @wraps(forward)
    def go(*inputs, **options):
        waiting.append(recorder.begin(forward.__name__, (forward, backward), inputs, options))
        return forward(*inputs, **options)

    @wraps(backward)
    def come_back(*inputs, **options):
        came = backward(*inputs, **options)
        if waiting:
            recorder.end(waiting.pop())
        return came

    for function, other in ((forward, go), (backward, come_back)):
        stack.callback(space.__setitem__, function.__name__, function)
        space[function.__name__] = other


def _replace_methods(recorder, stack, cls, name):
    """The forward and backward of a class, recorded together for each object"""
    forward, backward, waiting = vars(cls)[name], vars(cls)["backward"], {}

    @wraps(forward)
    def go(self, *inputs, **options):
        call = recorder.begin(cls.__name__, copy.deepcopy(self), inputs, options)
        call.backward = backward
        waiting.setdefault(id(self), []).append(call)
        recorder.open.append(call)
        try:
            return forward(self, *inputs, **options)
        finally:
            recorder.open.pop()

    @wraps(backward)
    def come_back(self, *dy, **options):
        came = backward(self, *dy, **options)
        if waiting.get(id(self)):
            recorder.end(waiting[id(self)].pop())
        return came

    for method, other in ((name, go), ("backward", come_back)):
        stack.callback(setattr, cls, method, vars(cls)[method])
        setattr(cls, method, other)


def _copied(x):
    try:
        return copy.deepcopy(x)
    except FAILURES:
        return x


def _calling_line():
    """The author's line that called"""
    frame = sys._getframe(3)
    while frame is not None and "/gradcheck/" in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back
    return place(frame.f_code.co_filename, frame.f_lineno) if frame is not None else ""

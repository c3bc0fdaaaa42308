"""The first wrong step of a model: its ops, layers and functions are checked one by one, in the order of the way back.

A step is a part of a model that keeps a contract: a call of an op or a layer of mini_tf, an author's function that
returns y, backward, a pair of functions, an object with forward and backward. Each is checked by itself, on the inputs
that it had in one run.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial, wraps
from types import FunctionType
from typing import Any

from mini_tf.gradcheck.adapters import partner_of
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.promises import THE_DY
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.gradcheck.report import AFTER, RIGHT, WRONG, Report, Step
from mini_tf.gradcheck.source import Unavailable, function_of
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged, seems_right
from mini_tf.gradcheck.weights import everything_in
from mini_tf.places import is_theirs

BUDGET = 300             # entries measured of each tensor of a step
METHODS = ("forward", "__call__")
Author = Callable[..., Any]


def find_steps(report: Report, subject: Subject, evidence: Evidence, seed: int, explain: Callable[..., None]) -> None:
    """Add the steps inside a failing subject to its report, the first wrong one with a report of its own.

    explain: adds the reasons to that report; called like `reasons.add_reasons`
    """
    from mini_tf.trace import source_line  # here, as it imports all of mini_tf's layers

    calls, wrong, own = _calls_in(subject, evidence), None, None
    for call in calls:
        if seems_right(partial(Subject, call.f, call.inputs, call.options), seed):
            evidence.sound |= _functions(call)
        elif (own := _report_of(call, seed, explain)) is not None:
            wrong = call
            break
    for call in calls:
        status = WRONG if call is wrong else RIGHT if wrong is None or call.ended < wrong.ended else AFTER
        where = source_line(call.backward, call.f)
        report.steps.append(Step(call.name, call.line, where, status, own if call is wrong else None))


def _functions(call: Any) -> set[FunctionType]:
    """The functions that run in a step, its forward and its backward"""
    forward, found = call.f[0] if isinstance(call.f, tuple) else getattr(call.f, "forward", call.f), set()
    for one in (forward, call.backward):
        with suppress(Unavailable):
            found.add(function_of(one))
    return found


def _report_of(call: Any, seed: int, explain: Callable[..., None]) -> Report | None:
    """The Report of a step that is wrong, with reasons; None if it is right, or cannot be judged"""
    check = judged(partial(Subject, call.f, call.inputs, call.options), call.name, seed, BUDGET)
    with check as (report, subject, evidence, other):
        if evidence is None or not (evidence.wrong or evidence.misfits):
            return None
        evidence.allowed = [f for f in report.findings if THE_DY in f]      # a layer may work in place
        report.findings = [f for f in report.findings if f not in evidence.allowed]
        explain(report, subject, evidence, other, seed)
        report.notes = []
    return report


def _calls_in(subject: Subject, evidence: Evidence) -> list[Any]:
    """[Call] of all steps in one run of the subject, at the evidence's point, in the order in which backwards end"""
    from mini_tf.trace import trace  # here, as it imports all of mini_tf's layers

    evidence.back_to_the_point()
    functions = functions_that_run(lambda: subject.run(evidence.dy))
    try:
        with trace(lambda tracer: _watched(tracer, subject, functions)) as calls:
            subject.run(evidence.dy)
    except FAILURES:
        return []
    finally:
        evidence.back_to_the_point()
    inner = [call for call in calls if call.ended is not None and _plain(call.f) is not _plain(subject.f)]
    return sorted(inner, key=lambda call: call.ended)


def _plain(f: Any) -> Any:
    """An op's formula, a method's function; others as they are"""
    return getattr(f, "formula", getattr(f, "__func__", f))


@contextmanager
def _watched(tracer: Any, subject: Subject, functions: Sequence[FunctionType]) -> Iterator[None]:
    """Inside the block, the author's functions and objects that keep a contract report to the tracer, too."""
    with ExitStack() as stack:
        for function in [one for one in functions if is_theirs(one.__code__.co_filename)]:
            space, name, partner = function.__globals__, function.__name__, partner_of(function)
            if space.get(name) is not function or function is subject.f or partner not in (None, *functions):
                continue
            others = {name: _closure(tracer, function)}
            if partner is not None:
                others = dict(zip([name, partner.__name__], _pair(tracer, name, function, partner)))
            for key, other in others.items():
                stack.callback(space.__setitem__, key, space[key])
                space[key] = other
        for cls in {type(one) for path, one in everything_in(subject.adapter.owner) if path}:
            forward = next((name for name in METHODS if name in vars(cls)), "")
            if forward and "backward" in vars(cls):
                methods = vars(cls)[forward], vars(cls)["backward"]
                pair = _pair(tracer, cls.__name__, *methods, of_object=True)
                for key, method, other in zip((forward, "backward"), methods, pair):
                    stack.callback(setattr, cls, key, method)
                    setattr(cls, key, other)
        yield


def _closure(tracer: Any, function: Author) -> Author:
    """The function, recorded where it returns y, backward; its inputs are copied, as the model may write into them"""
    @wraps(function)
    def call(*inputs: Any, **options: Any) -> Any:
        copies, run = _copied((inputs, options)), lambda *_, **__: function(*inputs, **options)
        return tracer.watch(function.__name__, function, run, *copies[0], **copies[1])

    return call


def _pair(tracer: Any, name: str, forward: Author, backward: Author, of_object: bool = False) -> tuple[Author, Author]:
    """A forward and its backward as one step; a backward belongs to the last forward that has not come back"""
    waiting: dict[int, list[Any]] = {}                   # of functions, or of each object, those forwards

    @wraps(forward)
    def go(*inputs: Any, **options: Any) -> Any:
        copies = _copied(inputs)
        f, given = (copies[0], copies[1:]) if of_object else ((forward, backward), copies)
        call, out = tracer.forward(name, f, lambda *_, **__: forward(*inputs, **options), *given, **_copied(options))
        call.backward = backward
        waiting.setdefault(of_object and id(inputs[0]), []).append(call)
        return out

    @wraps(backward)
    def come_back(*inputs: Any, **options: Any) -> Any:
        came = backward(*inputs, **options)
        if calls := waiting.get(of_object and id(inputs[0])):
            tracer.end(calls.pop())
        return came

    return go, come_back


def _copied(x: Any) -> Any:
    try:
        return copy.deepcopy(x)
    except FAILURES:
        return x

"""The first wrong step of a model, and the reasons: its ops and layers are checked one by one, in backward order."""

import contextlib
import copy
from dataclasses import dataclass, field
from inspect import Parameter, Signature

from mini_tf.gradcheck.judge import judged
from mini_tf.gradcheck.measuring.subject import argument_names, is_float, told
from mini_tf.gradcheck.planting.editing import is_current
from mini_tf.gradcheck.reasons.diagnosis import diagnose
from mini_tf.gradcheck.reasons.lines import suspects
from mini_tf.gradcheck.reasons.repair import find_repair
from mini_tf.gradcheck.verdicts import FAIL, WRONG
from mini_tf.ops.op import Op
from mini_tf.trace import source_line, trace

import numpy as np

RIGHT = "right"
CONTAINS, FED, AFTER = "contains the wrong one", "fed by a wrong gradient", "after it, not looked at"
BUDGET = 300             # entries measured of each tensor of a step


@dataclass
class Step:
    """One call of an op or of a layer on the way back."""

    name: str
    line: str                # the line that called it
    place: str               # where its backward is written
    status: str
    words: list = field(default_factory=list, repr=False)            # of the wrong one: what is wrong


def first_wrong_step(subject, seed):
    """The steps of subject.f in the order in which their backwards ended, [] if it has none of ours in it.

    Every op, every layer and every method that keeps the contract is a step. A layer ends after the ops inside it, so
    the first wrong one is the innermost. Each is checked by itself, on the inputs that it had in the model and with a
    dy of its own, so that what comes to it from other steps does not matter. Those after a wrong one get wrong
    numbers.
    """
    with trace() as calls, contextlib.suppress(Exception):
        y, backward = subject.f(*subject.inputs)
        backward(np.ones_like(y) if np.ndim(y) else 1.0)
    steps, wrong, fed = [], None, FED
    inner = [call for call in calls if call.ended is not None and call.f is not subject.f]
    for call in sorted(inner, key=lambda call: call.ended):
        if wrong is not None:
            steps.append(_step(call, CONTAINS if call in wrong.parents else fed))
            continue
        f, inputs, params = _alone(call)
        if not any(map(is_float, inputs)) and not any(p.trainable for p in params.values()):
            steps.append(_step(call, RIGHT))             # fixed embeddings: there is no gradient that could be wrong
            continue
        with judged(f, inputs, params, call.name, seed, BUDGET) as (report, _, evidence):
            if report.verdict != FAIL:
                steps.append(_step(call, RIGHT))
                continue
            add_reasons(report, evidence)
        if not any(t.verdict == FAIL for t in report.tensors if t.name not in params):
            fed = AFTER                                  # what goes on from here is right, or was not judged
        wrong, report.notes = call, []                   # a method does not use all that its layer has
        steps.append(_step(call, WRONG, report.explain().splitlines()[1:]))
    raised = next((call for call in calls if call.error is not None), None)
    if wrong is None and raised is not None:             # all that it was fed with was right
        steps.append(_step(raised, WRONG, [f"it raised {told(raised.error, raised.backward)}"]))
    return steps


def add_reasons(report, evidence):
    """Add to the report of a failing function, which has no wrong step inside, suspects, a repair and words."""
    if evidence is None or not evidence.wrong:
        return                                           # only promises were broken
    evidence.back_to_the_point()
    current = is_current(evidence.backward)
    if current:
        report.suspects, report.suspects_are_sharp = suspects(evidence)
    for name, words in diagnose(evidence).items():
        report.tensor(name).diagnosis = words
    report.repair = find_repair(evidence) if current else []


def _step(call, status, words=()):
    line = "the checker" if call.line.startswith("mini_tf/gradcheck/") else call.line
    return Step(call.name, line, source_line(call.backward, call.f), status, list(words))


def _alone(call):
    """(f, inputs, params) for a check of one call by itself: arrays are inputs, all else stays as it was."""
    function, options, inputs = call.f, call.options, list(call.inputs)
    arrays = [i for i, x in enumerate(inputs) if hasattr(x, "dtype")]

    def f(*given):
        for i, x in zip(arrays, given):
            inputs[i] = x
        drawn = [copy.deepcopy(x) if isinstance(x, np.random.Generator) else x for x in inputs]
        return function(*drawn, **options)

    names = argument_names(function, len(inputs))
    f.__signature__ = Signature([Parameter(names[i], Parameter.POSITIONAL_ONLY) for i in arrays])
    if isinstance(function, Op):
        f.arrays = function.arrays
    owner = getattr(function, "__self__", None)
    return f, [inputs[i] for i in arrays], {} if owner is None else owner.parameters()

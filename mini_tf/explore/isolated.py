"""A traced call of an op or a layer by itself: as a function of its inputs, or of a variable inside it."""

import copy
import inspect
import sys
from collections.abc import Callable, Collection
from types import CodeType
from typing import Any

from mini_tf.backend import to_host
from mini_tf.explore.arrays import is_float
from mini_tf.gradcheck import Subject
from mini_tf.gradcheck.adapters import Adapter
from mini_tf.kernels import reference_only
from mini_tf.trace import Call

import numpy as np

FAR = 50.0               # e⁻⁵⁰ is negligible compared with 1


def input_names(call: Call) -> list[str]:
    """The names of the call's positional arguments"""
    return Adapter(call.f, call.inputs).names


def isolated(call: Call) -> Subject:
    """The call as a function of its arrays; all else stays as it was."""
    inputs, names = [_finite(x) for x in call.inputs], input_names(call)
    arrays = [i for i, x in enumerate(inputs) if hasattr(x, "dtype")]

    def f(*new):
        for i, x in zip(arrays, new):
            inputs[i] = x
        drawn = [copy.deepcopy(x) if isinstance(x, np.random.Generator) else x for x in inputs]
        return call.f(*drawn, **call.options)

    return _subject(f, {names[i]: inputs[i] for i in arrays})


def isolated_variable(call: Call, code: CodeType, lines: Collection[int], name: str) -> Subject:
    """The call of an op as a function of one variable of its formula: of attention's A, for its dA.

    code   of the formula;  lines: the numbers of the lines of the statement that gives the variable its value

    A new value takes the variable's place as soon as that statement has run. Python lets a trace function change the
    variables of the function that it follows.
    """
    subject, values = isolated(call), []
    with reference_only():
        _run_with_hook(subject.forward, code, lines, lambda variables: values.append(np.copy(variables[name])))

    def f(x):
        return _run_with_hook(subject.forward, code, lines, lambda variables: variables.update({name: x.copy()}))

    return _subject(f, {name: values[0]})


def _subject(f: Any, inputs: dict[str, Any]) -> Subject:
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in inputs]
    f.__signature__ = inspect.Signature(parameters)      # gradcheck calls the arrays as the call does
    return Subject(f, [*inputs.values()], params={})


def _finite(x: Any) -> Any:
    """x with masked scores, −∞, replaced by large finite ones: at ∞ there are no slopes."""
    if not is_float(x) or np.isfinite(to_host(x)).all():
        return x
    return np.nan_to_num(to_host(x), posinf=FAR, neginf=-FAR)


def _run_with_hook(run: Callable[[], Any], code: CodeType, lines: Collection[int], hook: Callable[[Any], Any]) -> Any:
    """The result of run(), in which hook(variables) is called whenever these lines of the code have run."""
    has_run = False

    def follow(frame, event, _):
        nonlocal has_run
        if event == "line" and frame.f_lineno in lines:
            has_run = True
        elif event == "line" and has_run:
            has_run = False
            hook(frame.f_locals)
        return follow

    before = sys.gettrace()
    sys.settrace(lambda frame, event, _: follow if frame.f_code is code else None)
    try:
        return run()
    finally:
        sys.settrace(before)

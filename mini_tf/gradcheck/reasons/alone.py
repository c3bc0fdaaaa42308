"""A call of a traced model, to be checked by itself, on the inputs that it had."""

import copy
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from mini_tf.backend import to_host
from mini_tf.gradcheck.measuring.brought import Brought, Pair, Several
from mini_tf.gradcheck.measuring.returned import by_their_names, places_by_shape, returned_names
from mini_tf.gradcheck.measuring.styles import in_contract
from mini_tf.gradcheck.measuring.subject import argument_names, as_list, is_float
from mini_tf.ops.op import Op
from mini_tf.trace import Call

import numpy as np

FAR = 50.0               # e⁻⁵⁰ is nothing beside 1


def alone(call: Call) -> tuple[Callable, list[Any], dict[str, Any]]:
    """(f, inputs, params) for checking one call by itself: arrays are the inputs, all else stays as it was."""
    function, options, inputs = in_contract(call.f, call.inputs), call.options, list(call.inputs)
    inputs = [_finite(x) for x in inputs]
    if isinstance(function, Brought):
        return function, inputs, function.parameters
    arrays = _with_gradients(call) or [i for i, x in enumerate(inputs) if hasattr(x, "dtype")]

    def f(*given):
        for i, x in zip(arrays, given):
            inputs[i] = x
        drawn = [copy.deepcopy(x) if isinstance(x, np.random.Generator) else x for x in inputs]
        return function(*drawn, **options)

    f.__wrapped__ = function
    names = argument_names(function, len(inputs))
    f.__signature__ = Signature([Parameter(names[i], Parameter.POSITIONAL_ONLY) for i in arrays])
    if isinstance(function, Op):
        f.arrays = function.arrays
    owner = getattr(function, "__self__", None)
    return f, [inputs[i] for i in arrays], {} if owner is None else owner.parameters()


def gradients_of_inputs(call: Call) -> list[tuple[int, Any]]:
    """[(number of an input, its gradient)] of what a call's backward gave back in the model"""
    floats = [k for k, x in enumerate(call.inputs) if is_float(x)]
    function = in_contract(call.f, call.inputs)
    if isinstance(function, Brought):
        called = returned_names(call.backward) if isinstance(function, Several) else function.returned
        came = by_their_names(call.gradients, function.names_inside(call.inputs))
        came = function.in_order(came, called, call.inputs, None)
        inside = [[k] if is_float(x) else [None] * len(function.inside[k]) for k, x in enumerate(call.inputs)]
        floats = [k for some in inside for k in some]    # None for an array in a dict
    else:
        floats, came = _with_gradients(call) or floats, as_list(call.gradients)
        came = came if len(came) == len(floats) else []
    return [(k, g) for k, g in zip(floats, came) if g is not None and k is not None]


def is_understood(call: Call) -> bool:
    """False for a pair whose backward was given something else in the model than it would be given here."""
    function = in_contract(call.f, call.inputs)
    return not isinstance(function, Pair) or call.given is None or function.goes_with(call.inputs, call.given)


def _with_gradients(call):
    """The places of the inputs that a learner's backward gives gradients for, if these are fewer than the inputs:
    of dice_loss(z, target) the first. [] if it gives one for each, or if that cannot be told by their shapes.
    """
    floats = [i for i, x in enumerate(call.inputs) if is_float(x)]
    gradients = [] if call.gradients is None or isinstance(call.f, Op) else as_list(call.gradients)
    fewer = 0 < len(gradients) < len(floats) and not any(g is None for g in gradients)
    places = places_by_shape(gradients, [call.inputs[i] for i in floats]) if fewer else []
    return [floats[place] for place in places]


def _finite(x):
    """Scores of −∞, which a mask has made, become large finite ones: at ∞ there are no slopes."""
    if not is_float(x) or np.isfinite(to_host(x)).all():
        return x
    return np.nan_to_num(to_host(x), posinf=FAR, neginf=-FAR)

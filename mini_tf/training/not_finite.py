"""Where do inf and nan come from?  The first op or layer that makes them out of finite numbers."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from mini_tf import kernels
from mini_tf.backend import array_module, to_host
from mini_tf.layers import Layer
from mini_tf.trace import source_line, trace
from mini_tf.types import Backward

import numpy as np

REACH_IN = tuple, list
NOTHING = "All numbers of this step are finite, but the sum of the gradients' squares is too large for their dtype."


def origin(model: Layer, forward: Callable[[], tuple[float, Backward]], rng: np.random.Generator | None = None) -> str:
    """One or two sentences about the first call that made inf or nan out of finite numbers: its line, its layer, and
    the range of its inputs. It is searched for in forward(), which returns a loss and its backward, and in the latter.

    model, rng: whose state forward() changes

    The step is traced once more, with the formulas of `mini_tf/ops`; if these stay finite, with their twins.
    """
    for name, parameter in model.parameters().items():
        if not finite(parameter.data):
            return f"The parameter {name} is not finite already: {spread(parameter.data)}."
    carried, random = model.state(), {} if rng is None else rng.bit_generator.state
    for twins in (False, True):
        model.restore(carried)
        if rng is not None:
            rng.bit_generator.state = random
        with trace() as calls, kernels.with_twins() if twins else nullcontext(), np.errstate(all="ignore"):
            try:
                _, backward = forward()
                backward()
            except (ArithmeticError, ValueError):
                pass                                     # its input was no longer finite
        paths = {id(member): path for path, member in model.members()}
        found = _first_maker(calls, paths)
        if found:
            only = " Only its faster twin does; MINI_TF_KERNELS=off runs the formula." if twins else ""
            return found + only
    return NOTHING


def _first_maker(calls, paths):
    """A sentence about the innermost call that first made inf or nan out of finite numbers, or None"""
    def finite_inputs(call):
        return finite(list(_inputs(call).values()), or_minus_infinity=True)

    makers = [call for call in calls if not finite(call.output) and finite_inputs(call)]
    inner = [call for call in makers if not any(call in other.parents for other in makers)]
    if inner:
        first = inner[0]                                 # in the order in which the forwards began
        after = [call for call in calls if first in call.parents and not finite_inputs(call)]
        return _sentence("", first, first.line, _inputs(first), first.output, after, paths)
    makers = [call for call in calls if call.ended is not None and not finite(call.gradients) and finite(call.dy)]
    if makers:
        first = min(makers, key=lambda call: call.ended)
        after = [call for call in calls if first in call.parents and call.ended is not None and not finite(call.dy)]
        line, inputs = source_line(first.backward, first.f), {"dy": first.dy, **_inputs(first)}
        return _sentence("the backward of ", first, line, inputs, first.gradients, after, paths)
    return None


def _sentence(side, call, line, inputs, result, after, paths):
    """What a call made of its inputs; `after` are calls inside it whose inputs were not finite."""
    layers = [getattr(c.f, "__self__", None) for c in (*call.parents, call)]
    inside = next((layer for layer in reversed(layers) if id(layer) in paths), None)
    place = f", in the {type(inside).__name__} {paths[id(inside)]}" if inside is not None else ""
    ranges = "; ".join(f"{name} {spread(x)}" for name, x in inputs.items() if _numbers(x))
    own_lines = f" They arose in its own lines, before {side}{after[0].name}." if after else ""
    return (f"The first numbers that are not finite came from {side}{call.name} ({line}{place}), {spread(result)}, "
            f"out of {ranges or 'nothing'}.{own_lines}")  # fmt: skip


def _inputs(call):
    """{name: array} of the call's inputs"""
    names = getattr(call.f, "arrays", None) or [f"argument {i}" for i, _ in enumerate(call.inputs, 1)]
    return dict(zip(names, call.inputs)) | {name: x for name, x in call.options.items() if hasattr(x, "dtype")}


def _numbers(x):
    """All floating arrays and numbers in x, an array, a number, or a tuple of some."""
    if isinstance(x, REACH_IN):
        return [array for part in x for array in _numbers(part)]
    if isinstance(x, float):
        return [np.array(x)]
    return [x] if hasattr(x, "dtype") and x.dtype.kind == "f" else []


def finite(x: Any, or_minus_infinity: bool = False) -> bool:
    """True if all numbers in x, an array, a number, or a tuple of some, are finite; or −∞, by which a bias masks."""
    good = [array_module(array).isfinite(array) for array in _numbers(x)]
    if or_minus_infinity:
        good = [mask | (array < 0) for mask, array in zip(good, _numbers(x))]
    return all(bool(mask.all()) for mask in good)


def spread(x: Any) -> str:
    """The range of the numbers in x, and how many are not finite: "between −3.2 and 812", "12 of 96 nan, …"."""
    numbers = np.concatenate([to_host(array).ravel() for array in _numbers(x)] or [np.zeros(0)])
    good = numbers[np.isfinite(numbers)]
    between = f"between {good.min():.4g} and {good.max():.4g}" if good.size else ""
    counts = {"nan": np.isnan(numbers).sum(), "inf": np.isinf(numbers).sum()}
    odd = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    if odd:
        odd = f"{odd} of {numbers.size:,} numbers"
    return ", the others ".join(part for part in (odd, between) if part) or "empty"

"""Measured slopes to compare the gradients with: each op's inputs are moved a little, in float64.

For every op that ran, with the dy that its backward got: the slope of φ = Σ dy·y in each entry of each input. By
the chain rule these are the slopes of the loss if every step before it was right. For the largest entries of the
parameters' gradients, the slope of the loss itself is measured as well: the whole model runs again for each.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mini_tf.backend import to_host
from mini_tf.explore.arrays import Store, is_float
from mini_tf.explore.isolated import input_names, isolated, isolated_variable
from mini_tf.explore.recording import Frame, Line, Recorder
from mini_tf.gradcheck import Slopes, Subject, measured_slopes
from mini_tf.layers import Parameter
from mini_tf.ops.op import Op
from mini_tf.trace import Call, trace
from mini_tf.types import Array

import numpy as np

MOST = 4096              # entries of an array that are measured, among the entries that the page shows
MOST_OF_LAYER = 1024     # of an input of a layer, and of a variable inside an op, which take longer
MOST_OF_LOSS = 6         # of a parameter, for the slope of the whole loss
LEAST = 4                # of any
SECONDS = 8.0            # for all, as `_cost` estimates it: of larger models fewer entries are measured
CALL, ENTRY = 1.2e-5, 1.2e-9                             # seconds of a call, and of an entry
EVALUATIONS = 5          # of φ, for a slope


def measure_steps(store: Store, run: Callable[[], Any], recorder: Recorder, most: int = MOST) -> None:
    """Add to the store's arrays the slopes of all ops that run() calls, and of the layers' inputs that no op has.

    run: forward and backward; recorder: a Recorder that has followed it; most: entries of an array
    """
    with trace() as calls:
        run()
    calls = [call for call in calls if call.ended is not None and call.error is None]
    ops, layers = ([call for call in calls if isinstance(call.f, Op) is is_op] for is_op in (True, False))
    formulas = {call.f.formula.__code__ for call in ops}
    frames = [frame for frame in recorder.frames if frame.written.code in formulas]
    costs = {call: _cost(call) for call in ops}
    layer_costs = {call: CALL + sum(cost for op, cost in costs.items() if call in op.parents) for call in layers}
    frame_of = dict(zip(ops, frames)) if len(frames) == len(ops) else {}
    rng = np.random.default_rng(0)
    for call, entries in _affordable(store, costs, most):
        _measure_inputs(store, call, entries, rng)
        if call in frame_of:
            _measure_variables(store, call, frame_of[call], recorder, min(entries, MOST_OF_LAYER), rng)
    for call, entries in _affordable(store, layer_costs, min(most, MOST_OF_LAYER)):
        _measure_inputs(store, call, entries, rng)


def measure_loss(store: Store, f: Callable[..., Any], inputs: Sequence[Any], parameters: dict[str, Parameter]) -> None:
    """Measure the slope of a loss in the largest entries of each parameter's gradient."""
    gradients = {name: to_host(p.grad) for name, p in parameters.items() if p.trainable and p.grad is not None}
    entries = {}
    for name, gradient in gradients.items():
        shown = store.entries_shown(gradient.shape)
        entries[name] = np.sort(shown[np.argsort(-np.abs(gradient.reshape(-1)[shown]))[:MOST_OF_LOSS]])
    for name, slopes in measured_slopes(Subject(f, inputs, params=parameters), 1.0, entries).items():
        store.add_slopes(gradients[name], f"d{name}", "loss", entries[name], slopes)


def measure_function(store: Store, subject: Subject, dy: Any, gradients: dict[str, Any]) -> dict[str, Slopes]:
    """Measure the slopes of φ = Σ dy·y of a Subject that is no op; gradients: {name: array}

    Returns {name: Slopes, in the tensor's shape} of those that are measured whole: what their gradients should be.
    Blank ones, `...`, which gradcheck leaves out, are measured, too.
    """
    subject.wanted += [name for name, g in gradients.items() if g is ... and name not in subject.wanted]
    _measure(store, subject, dy, gradients, MOST, np.random.default_rng(0))
    whole = {name: np.arange(x.size) for name, x in subject.tensors.items() if 0 < x.size <= MOST}
    shapes = {name: x.shape for name, x in subject.tensors.items()}
    return {name: Slopes(*(one.reshape(shapes[name]) for one in (found.slope, found.uncertainty, found.kink)))
            for name, found in measured_slopes(subject, dy, whole).items()}          # fmt: skip


def _measure_inputs(store: Store, call: Call, most: int, rng: np.random.Generator) -> None:
    """The slopes of φ = Σ dy·y in the inputs of one call, where the store has none yet"""
    if gradients := _without_slopes(store, call):
        _measure(store, isolated(call), call.dy, gradients, most, rng)


def _measure_variables(
    store: Store, call: Call, frame: Frame, recorder: Recorder, most: int, rng: np.random.Generator
) -> None:
    """The slopes in the variables of an op's formula whose gradients its backward computes: dA, in attention's A"""
    made = {name: line for line in recorder.lines if line.frame is frame for name, _, _ in line.made}
    for line, name in _gradients_inside(recorder, frame):
        gradient: Any = line.frame.variables.get(name)
        of = name[1:]
        if of in made and of not in call.f.arrays and is_float(gradient) and store.lacks_slopes(to_host(gradient)):
            lines = range(made[of].first, made[of].last + 1)
            _measure(store, isolated_variable(call, frame.written.code, lines, of), call.dy, {of: gradient}, most, rng)


def _gradients_inside(recorder: Recorder, frame: Frame) -> list[tuple[Line, str]]:
    """(line, name) of the arrays called "d…" that a backward defined in this call has made"""
    inner = (one for one in recorder.lines if one.frame.maker is frame and one.frame.written.key != frame.written.key)
    return [(line, name) for line in inner for name, ref, _ in line.made if name[0] == "d" and isinstance(ref, int)]


def _measure(
    store: Store, subject: Subject, dy: Any, gradients: dict[str, Any], most: int, rng: np.random.Generator
) -> None:
    """Measure up to `most` entries of each tensor that has one of these gradients, and add them to the store."""
    dy = 1.0 if dy is None else to_host(dy)
    gradients = {name: to_host(g) for name, g in gradients.items() if g is not None}
    entries = {name: _chosen(gradients[name], most, rng, store.entries_shown(x.shape))
               for name, x in subject.tensors.items()
               if name in gradients and np.shape(gradients[name]) == x.shape and x.size}             # fmt: skip
    for name, slopes in measured_slopes(subject, dy, entries).items():
        store.add_slopes(gradients[name], f"d{name}", "op", entries[name], slopes)


def _without_slopes(store: Store, call: Call) -> dict[str, Array]:
    """{name of an input: its gradient}; of mini_tf's layers, only gradients that have no slopes yet

    A layer returns what its ops have returned, and those have been measured.
    """
    gradients = call.gradients if isinstance(call.gradients, tuple) else (call.gradients,)
    floats = [name for name, x in zip(input_names(call), call.inputs) if is_float(x)]
    names = call.f.arrays if isinstance(call.f, Op) else floats
    found = {name: to_host(g) for name, g in zip(names, gradients) if is_float(g)}
    ours = not isinstance(call.f, Op) and type(getattr(call.f, "__self__", call.f)).__module__.startswith("mini_tf.")
    return {name: g for name, g in found.items() if g.size and (store.lacks_slopes(g) or not ours)}


def _chosen(gradient: Array, most: int, rng: np.random.Generator, shown: Array) -> Array:
    """Flat indices of the entries to be measured: all that are shown, or the largest half and some others at random"""
    if len(shown) <= most:
        return shown
    order = np.argsort(-np.nan_to_num(np.abs(gradient.reshape(-1)[shown])))
    others = rng.choice(len(shown) - most // 2, most - most // 2, replace=False, shuffle=False)
    return np.sort(shown[np.concatenate([order[: most // 2], order[most // 2 :][others]])])


# How many entries time allows -----------------------------------------------------------------------------------------


def _affordable(store: Store, costs: dict[Call, float], most: int) -> list[tuple[Call, int]]:
    """[(call, how many entries of each of its arrays can be measured)]. costs: {call: seconds}"""
    sizes = [(cost, g.size) for call, cost in costs.items() for g in _without_slopes(store, call).values()]
    level = _level(EVALUATIONS * cost * min(size, most) for cost, size in sizes)
    return [(call, int(min(most, max(LEAST, level / (EVALUATIONS * cost))))) for call, cost in costs.items()]


def _cost(call: Call) -> float:
    """About how many seconds one call of an op takes"""
    return CALL + ENTRY * sum(np.size(x) for x in (*call.inputs, call.output) if hasattr(x, "dtype"))


def _level(needs: Iterable[float]) -> float:
    """The most seconds for one array, so that all together take SECONDS; infinite if that is enough for all."""
    left, needs = SECONDS, sorted(needs)
    for number, need in enumerate(needs):
        if need * (len(needs) - number) > left:
            return left / (len(needs) - number)          # this one and all larger ones share what is left
        left -= need
    return np.inf

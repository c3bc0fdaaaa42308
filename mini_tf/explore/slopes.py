"""The slopes beside the gradients: each op's inputs moved a little, in float64, and what that does.

Of every op that ran, with the dy that its backward was given: the slope of φ = Σ dy·y in each entry of each input. By
the chain rule these are the slopes of the loss if every step before it was right. Of the parameters' largest entries
the slope of the loss itself is measured as well: the whole model runs again for each.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mini_tf.backend import to_host
from mini_tf.explore.alone import Inside, alone
from mini_tf.explore.arrays import Store
from mini_tf.explore.recording import Recorder
from mini_tf.gradcheck import Subject
from mini_tf.gradcheck.adapters import signature_of
from mini_tf.gradcheck.measure.slopes import Phi, slopes_of_entries, watched_relus
from mini_tf.gradcheck.weights import is_float
from mini_tf.layers import Parameter
from mini_tf.ops.op import Op
from mini_tf.trace import trace
from mini_tf.types import Array

import numpy as np

MOST = 4096              # entries of an array that are measured, of those that the page shows
MOST_OF_LAYER = 1024     # of an input of a layer, and of a variable inside an op, which take longer
MOST_OF_LOSS = 6         # of a parameter, for the slope of the whole loss
LEAST = 4                # of any
SECONDS = 8.0            # for all, by the reckoning of `_cost`: of larger models fewer entries are measured
CALL, ENTRY, TRACED = 1.2e-5, 1.2e-9, 6e-5                # seconds of a call, of an entry, if traced
EVALUATIONS = 5          # of φ, for a slope


def measure_steps(store: Store, run: Callable[[], Any], recorder: Recorder, most: int = MOST) -> None:
    """Measure the slopes of all ops that run() calls, and of the layers' inputs that no op has.

    run: forward and backward; recorder: a Recorder that has followed it; most: entries of an array. The store's arrays
    get the slopes.
    """
    with trace() as calls:
        run()
    calls = [call for call in calls if call.ended is not None and call.error is None]
    ops, layers = ([call for call in calls if isinstance(call.f, Op) is of_op] for of_op in (True, False))
    formulas = {call.f.formula.__code__ for call in ops}
    frames = [frame for frame in recorder.frames if frame.written.code in formulas]
    costs = {call: _cost(call) for call in ops}
    layer_costs = {call: CALL + sum(cost for op, cost in costs.items() if call in op.parents) for call in layers}
    frame_of = dict(zip(ops, frames)) if len(frames) == len(ops) else {}
    rng = np.random.default_rng(0)
    for call, few in _affordable(store, costs, most):
        _measure(store, call, few, rng)
        if call in frame_of:
            _measure_inside(store, call, frame_of[call], recorder, min(few, MOST_OF_LAYER), rng)
    for call, few in _affordable(store, layer_costs, min(most, MOST_OF_LAYER)):
        _measure(store, call, few, rng)


def _cost(call):
    """About how many seconds one call of an op takes"""
    return CALL + ENTRY * sum(np.size(x) for x in (*call.inputs, call.output) if hasattr(x, "dtype"))


def _level(needs):
    """The most seconds for one array, so that all together take SECONDS; infinite if that is enough for all."""
    left, needs = SECONDS, sorted(needs)
    for number, need in enumerate(needs):
        if need * (len(needs) - number) > left:
            return left / (len(needs) - number)          # this one and all larger ones share what is left
        left -= need
    return np.inf


def _affordable(store, costs, most):
    """[(call, how many entries of each of its arrays can be measured)]. costs: {call: seconds}"""
    wanted = [(cost, g.size) for call, cost in costs.items() for g in _wanted(store, call).values()]
    level = _level(EVALUATIONS * cost * min(size, most) for cost, size in wanted)
    return [(call, int(min(most, max(LEAST, level / (EVALUATIONS * cost))))) for call, cost in costs.items()]


def _wanted(store, call):
    """{name of an input: its gradient}, of mini_tf's layers only those that have no slopes yet

    A layer hands on what its ops gave back, and theirs have been measured.
    """
    f, inputs = alone(call)
    gradients = call.gradients if isinstance(call.gradients, tuple) else (call.gradients,)
    floats = [name for name, x in zip(signature_of(f).names, inputs) if is_float(x)]
    names = call.f.arrays if isinstance(call.f, Op) else floats
    found = {name: to_host(g) for name, g in zip(names, gradients) if is_float(g)}
    ours = not isinstance(call.f, Op) and type(getattr(call.f, "__self__", call.f)).__module__.startswith("mini_tf.")
    return {name: g for name, g in found.items() if g.size and (store.lacks_slopes(g) or not ours)}


def measure_loss(store: Store, f: Callable, inputs: Sequence[Any], parameters: dict[str, Parameter]) -> None:
    """Measure the slope of a loss in the largest entries of each parameter's gradient."""
    gradients = {name: to_host(p.grad) for name, p in parameters.items() if p.trainable and p.grad is not None}
    with watched_relus() as patterns:
        subject = Subject(f, inputs, params=parameters)
        phi = Phi(subject, 1.0, patterns)
        for name, gradient in gradients.items():
            shown = store.entries_shown(gradient.shape)
            entries = np.sort(shown[np.argsort(-np.abs(gradient.reshape(-1)[shown]))[:MOST_OF_LOSS]])
            found = slopes_of_entries(phi, subject.tensors[name], entries)
            store.add_slopes(gradient, f"d{name}", "loss", entries, found)


def measure_function(
    store: Store, subject: Subject, dy: Array | float, gradients: dict[str, Array | None]
) -> dict[str, Array]:
    """Measure the slopes of φ = Σ dy·y of a Subject that is no op; gradients: {name: array}

    Returns {name: slopes} of the tensors that are measured whole: what their gradients should be.
    """
    rng, found = np.random.default_rng(0), {}
    with watched_relus() as patterns:
        _measure_tensors(store, subject, dy, patterns, gradients, MOST, rng)
        phi = Phi(subject, np.asarray(dy, dtype=float), patterns)
        for name, x in subject.tensors.items():
            if 0 < x.size <= MOST:
                slopes = slopes_of_entries(phi, x, np.arange(x.size))
                found[name] = np.where(slopes.kink, np.nan, slopes.slope).reshape(x.shape)
    return found


def _measure(store, call, most, rng):
    """The slopes of φ = Σ dy·y in the inputs of one call, where the store has none yet"""
    gradients = _wanted(store, call)
    if gradients:
        f, inputs = alone(call)
        with watched_relus() as patterns:
            _measure_tensors(store, Subject(f, inputs, params={}), call.dy, patterns, gradients, most, rng)


def _measure_tensors(store, subject, dy, patterns, gradients, most, rng):
    phi = Phi(subject, 1.0 if dy is None else np.asarray(to_host(dy), dtype=float), patterns)
    for name, x in subject.tensors.items():
        gradient = gradients.get(name)
        if gradient is not None and np.shape(gradient) == x.shape and x.size:
            entries = _chosen(to_host(gradient), most, rng, store.entries_shown(x.shape))
            store.add_slopes(to_host(gradient), f"d{name}", "op", entries, slopes_of_entries(phi, x, entries))


def _chosen(gradient, most, rng, shown):
    """Flat indices of the entries to be measured: all that are shown, or the largest half and some others at random"""
    if len(shown) <= most:
        return shown
    order = np.argsort(-np.nan_to_num(np.abs(gradient.reshape(-1)[shown])))
    others = rng.choice(len(shown) - most // 2, most - most // 2, replace=False, shuffle=False)
    return np.sort(shown[np.concatenate([order[: most // 2], order[most // 2 :][others]])])


# Inside an op -------------------------------------------------------------------------------------------------------


def _measure_inside(store, call, frame, recorder, most, rng):
    """The slopes in the variables of an op's forward whose gradients its backward computes: dA, in attention's A."""
    made = {name: line for line in recorder.lines if line.frame is frame for name, _, _ in line.made}
    for line in recorder.lines:
        if line.frame.maker is not frame or line.frame.written.key == frame.written.key:
            continue
        for name, number, _ in line.made:
            if not (name.startswith("d") and name[1:] in made and isinstance(number, int)):
                continue
            gradient = line.frame.variables.get(name)
            if not is_float(gradient) or name[1:] in call.f.arrays or not store.lacks_slopes(to_host(gradient)):
                continue
            phi = _inside(call, frame.written.code, made[name[1:]], name[1:])
            if np.shape(phi.x) == np.shape(gradient):
                entries = _chosen(to_host(gradient), most, rng, store.entries_shown(phi.x.shape))
                store.add_slopes(to_host(gradient), name, "op", entries, slopes_of_entries(phi, phi.x, entries))


def _inside(call, code, line, name):
    """φ of the call of an op as a function of one of the op's own variables"""
    f, inputs = alone(call)
    inputs = [np.asarray(to_host(x), dtype=float) if is_float(x) else x for x in inputs]
    dy = 1.0 if call.dy is None else np.asarray(to_host(call.dy), dtype=float)
    return Inside(lambda: f(*inputs)[0], dy, code, range(line.first, line.last + 1), name)

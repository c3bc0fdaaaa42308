"""The checker: central differences in float64, every element, against the hand-written backward.

The question it asks of y, backward = f(x): with a random dy, does backward(dy) equal the slopes of the one number

    φ(x) = Σ dy·y(x) ?

dy is random because ones would be blind: with dy = 1 the true dx of softmax and of layer norm is zero, and a wrong
one often is too.
"""

import inspect
from contextlib import contextmanager

from mini_tf.gradcheck.report import Report, TensorReport
from mini_tf.layers.layer import MemoryFreed

import numpy as np

STEP = 1e-3              # h, times max(1, |x|)
BUDGET = 2000            # entries measured of one tensor; of a larger one, a random choice
ROUNDING = 1e-15         # relative error of one evaluation of φ
CERTAIN = 1e-4           # an entry whose slope is known no better than this, relative to the tensor's, is set aside,
NOISE = 1e-9             # unless it is known to this, relative to φ: then it is zero for all that can be seen


def gradcheck(f, *inputs, params=(), name=None, seed=0):
    """Check y, backward = f(*inputs) against finite differences, and the op's contract. Returns a Report.

    f         an op, a layer, model.loss, or any function of the contract of `mini_tf.ops`
    inputs    its arguments; floating arrays are checked (in float64 copies), integers, booleans, others are passed on
    params    Parameters that f uses: {name: Parameter}, as layer.parameters() gives, or a list

    The measured slope of entry i is Richardson's  (4·D(h/2) − D(h))/3,   D(h) = (φ(x + h·e_i) − φ(x − h·e_i))/2h,
    with error h⁴. Its distance from D(h/2), plus rounding, is the measurement's uncertainty, and a gradient is wrong
    where it misses the measured slope by more than that. An entry within a step of a kink is set aside and counted.

    The contract: gradients have their inputs' shapes; backward changes neither inputs nor dy; it says the same twice;
    parameters' gradients add; the forward is the same twice.
    """
    name = name or getattr(f, "__name__", type(f).__name__)
    rng = np.random.default_rng(seed)
    inputs = [_as_float64(x) for x in inputs]
    params = params if isinstance(params, dict) else {f"parameter {i}": p for i, p in enumerate(params)}
    names = _argument_names(f, len(inputs))
    findings = []

    with _float64(params):
        params = {name: p for name, p in params.items() if p.trainable}
        y, backward = f(*inputs)
        y = np.asarray(y)
        if not np.isfinite(y).all():
            bad = np.count_nonzero(~np.isfinite(y))
            return Report(name, [], [f"the forward gave {bad} of {y.size} values that are not finite"])
        dy = rng.standard_normal(y.shape) if y.ndim else float(rng.uniform(0.5, 1.5))

        gradients, more = _run(f, inputs, params, dy, backward, names)
        findings += more

        def phi():
            return float((np.asarray(f(*inputs)[0]) * dy).sum())

        if phi() != phi():
            return Report(name, [], ["the forward gave two different results for the same inputs: is it random?"])
        floats = {n: x for n, x in zip(names, inputs) if _is_float(x)}
        tensors = []
        for tensor, array in [*floats.items(), *((n, p.data) for n, p in params.items())]:
            gradient = gradients.get(tensor)
            if gradient is None:
                findings.append(f"backward gave no gradient for {tensor}")
            elif np.shape(gradient) != array.shape:
                findings.append(f"d{tensor} has shape {np.shape(gradient)}, expected {array.shape} as {tensor} has")
            else:
                tensors.append(_compare(tensor, array, np.asarray(gradient), phi, rng))
    return Report(name, tensors, findings)


def _run(f, inputs, params, dy, backward, names):
    """All gradients, {name: array}, and what backward did that it had promised not to do."""
    before = [np.copy(x) for x in inputs if isinstance(x, np.ndarray)]
    dy_before = np.copy(dy)
    returned = backward(dy)
    first = [None if g is None else np.copy(g) for g in _as_list(returned, len(inputs))]
    first_params = {name: None if p.grad is None else np.copy(p.grad) for name, p in params.items()}
    findings = []

    try:
        again = backward(dy)
    except MemoryFreed:                                  # a model's backward runs once: run the model again
        again = f(*inputs)[1](dy)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    if any(not np.array_equal(x, b) for x, b in zip(arrays, before)):
        findings.append("backward or forward wrote into an input")
    if not np.array_equal(dy, dy_before):
        findings.append("backward wrote into dy")
    if not all(_equal(a, b) for a, b in zip(first, _as_list(again, len(inputs)))):
        findings.append("backward gave another answer when it was called a second time")
    for name, p in params.items():
        if p.grad is not None and not np.allclose(p.grad, 2 * first_params[name], rtol=1e-9, atol=1e-300):
            findings.append(f"the gradient of {name} did not add up over two backwards")
    # An op gives None for ids and masks; a layer's backward gives nothing for them at all. Both are clear.
    floating = [name for name, x in zip(names, inputs) if _is_float(x)]
    receivers = names if len(first) == len(names) else floating
    if len(first) != len(receivers) and floating:
        findings.append(f"backward gave {len(first)} gradients, expected one for each of {', '.join(receivers)}")
    return dict(zip(receivers, first)) | first_params, findings


def _compare(name, x, gradient, phi, rng):
    """Measure the slope of φ at the entries of x, which φ reads, and compare the gradient with them."""
    entries = np.arange(x.size) if x.size <= BUDGET else rng.choice(x.size, BUDGET, replace=False)
    phi_0, flat = phi(), x.reshape(-1)
    slopes, uncertain, bent = np.array([_measure(flat, i, phi, phi_0) for i in entries]).reshape(-1, 3).T
    yours = gradient.reshape(-1)[entries]
    scale = max(np.abs(slopes).max(initial=0), np.abs(yours).max(initial=0), 1e-300)
    clear = (bent == 0) & (uncertain < max(CERTAIN * scale, NOISE * max(1.0, abs(phi_0))))
    uncertain = np.maximum(uncertain, 1e-11 * scale)
    error = np.where(clear, np.abs(yours - slopes) / uncertain, 0.0)
    error[np.isnan(yours)] = np.inf
    if not len(entries):
        return TensorReport(name, x.shape, 0, 0, 0)
    worst = int(error.argmax())
    return TensorReport(
        name, x.shape, judged=int(clear.sum()), set_aside=int((~clear).sum()), wrong=int((error > 1).sum()),
        error=float(error[worst]), worst=tuple(int(i) for i in np.unravel_index(entries[worst], x.shape)),
        yours=float(yours[worst]), measured=float(slopes[worst]),
    )  # fmt: skip


def _measure(flat, i, phi, phi_0):
    """(slope, its uncertainty, 1.0 if φ has a kink here) with respect to entry i"""
    x, h = flat[i], STEP * max(1.0, abs(flat[i]))

    def phi_at(value):
        flat[i] = value
        result = phi()
        flat[i] = x
        return result

    right, left, right_half, left_half = phi_at(x + h), phi_at(x - h), phi_at(x + h / 2), phi_at(x - h / 2)
    coarse, fine = (right - left) / (2 * h), (right_half - left_half) / h
    slope = (4 * fine - coarse) / 3
    rounding = ROUNDING * (abs(right) + abs(left) + abs(right_half) + abs(left_half) + 1) / h
    # How much the slopes on either side differ: on a smooth function half as much at half the step.
    bend, bend_half = abs(right - 2 * phi_0 + left) / h, abs(right_half - 2 * phi_0 + left_half) / (h / 2)
    kink = bend_half > 0.7 * bend + 10 * rounding
    return slope, abs(slope - fine) + rounding, float(kink)


@contextmanager
def _float64(params):
    """The parameters with float64 copies of their data and no gradient, for the time of the block."""
    before = [(p, p.data, p.grad) for p in params.values()]
    try:
        for p in params.values():
            p.data, p.grad = _as_float64(p.data), None
        yield
    finally:
        for p, data, grad in before:
            p.data, p.grad = data, grad


def _as_float64(x):
    return np.array(x, dtype=np.float64, order="C") if _is_float(x) else x


def _is_float(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _as_list(gradients, count):
    if isinstance(gradients, tuple):
        return list(gradients)
    return [gradients] if count else []


def _equal(a, b):
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))


def _argument_names(f, count):
    try:
        names = [name for name in inspect.signature(f).parameters if name not in ("args", "kwargs")]
    except (TypeError, ValueError):
        names = []
    return [*names, *(f"input {i}" for i in range(len(names), count))][:count]

"""The checker finds planted bugs, and does not cry wolf."""

from mini_tf import ops
from mini_tf.gradcheck import EXAMPLES, gradcheck
from mini_tf.layers import LayerNorm, Linear, Parameter
from mini_tf.models import LanguageTransformer
from mini_tf.ops.shapes import sum_to

import numpy as np
import pytest


def _buggy(name, change):
    """The example's op with `change` applied to the tuple of its gradients."""

    def make(rng):
        f, inputs, params = EXAMPLES[name](rng)

        def buggy(*inputs):
            y, backward = f(*inputs)

            def wrong(dy=1.0):
                gradients = backward(dy)
                single = not isinstance(gradients, tuple)
                changed = change(*(gradients,) if single else gradients, dy=dy, inputs=inputs)
                return changed[0] if single else tuple(changed)

            return y, wrong

        return buggy, inputs, params

    return make


def _layer_norm_without(term):
    def layer_norm(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        r = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        normal = centred * r

        def backward(dy):
            g = dy if term == "gamma" else dy * gamma
            mean_g = 0 if term == "mean" else g.mean(-1, keepdims=True)
            mean_gx = 0 if term == "variance" else (g * normal).mean(-1, keepdims=True)
            return r * (g - mean_g - normal * mean_gx), sum_to(dy * normal, gamma.shape), sum_to(dy, beta.shape)

        return gamma * normal + beta, backward

    return lambda rng: (layer_norm, EXAMPLES["layer_norm"](rng)[1], {})


def _embedding_without_repeats(table, ids):
    def backward(dx):
        dtable = np.zeros_like(table)
        dtable[ids] += dx                                # drops repeated ids
        return dtable, None

    return table[ids], backward


def _softmax_diagonal_only(z):
    y, _ = ops.softmax(z)
    return y, lambda dy: dy * y * (1 - y)


def _relu_leaks(x):
    return np.maximum(x, 0), lambda dy: dy * (x > -0.5)


PLANTED = {
    "linear: dW scaled": _buggy("linear", lambda dx, dW, db, **_: (dx, 2 * dW, db)),
    "linear: sign of dx": _buggy("linear", lambda dx, dW, db, **_: (-dx, dW, db)),
    "linear: db is a mean": _buggy("linear", lambda dx, dW, db, **_: (dx, dW, db / 6)),
    "softmax: diagonal only": lambda rng: (_softmax_diagonal_only, [rng.standard_normal((2, 5))], {}),
    "softmax: dy passed on": _buggy("softmax", lambda dz, dy, **_: (dy,)),
    "masked_softmax: a leak of 1e-6": _buggy("masked_softmax", lambda dz, dm, **_: (dz + 1e-6, None)),
    "layer_norm: no mean term": _layer_norm_without("mean"),
    "layer_norm: no variance term": _layer_norm_without("variance"),
    "layer_norm: gamma forgotten": _layer_norm_without("gamma"),
    "layer_norm: dgamma and dbeta swapped": _buggy("layer_norm", lambda dx, dg, db, **_: (dx, db, dg)),
    "attention: scale forgotten in dquery": _buggy("attention, scaled", lambda dq, dk, dv, **_: (dq / 0.6, dk, dv)),
    "attention: dquery and dkey swapped": _buggy("attention, causal", lambda dq, dk, dv, dm, **_: (dk, dq, dv, dm)),
    "attention: one entry of dvalue": _buggy("attention", lambda dq, dk, dv, **_: (dq, dk, dv + 1e-4 * (np.arange(dv.size) == 7).reshape(dv.shape))),
    "cross_entropy: sum for mean": _buggy("cross_entropy", lambda d, t, **_: (6 * d, t)),
    "cross_entropy: dloss ignored": _buggy("cross_entropy", lambda d, t, dy, **_: (d / dy, t)),
    "residual_relu: skip path lost": _buggy("residual_relu", lambda dx, dy_, inputs, **_: (dx * 0, dy_)),
    "residual_relu: relu's mask lost": _buggy("residual_relu", lambda dx, dy_, **_: (dx, dx)),
    "relu: leaks": lambda rng: (_relu_leaks, [np.linspace(-1, 1, 9) + 0.01], {}),
    "embedding: repeats dropped": lambda rng: (_embedding_without_repeats, [rng.standard_normal((4, 3)), np.array([1, 1, 2])], {}),
    "dropout: not raised": _buggy("dropout", lambda dx, k, **_: (dx * 0.6, k)),
    "mean_pool: not divided": _buggy("mean_pool", lambda dx, **_: (3 * dx,)),
    "mse: factor 2": _buggy("mse", lambda dp, dt, **_: (dp / 2, dt)),
    "gelu: exact forward, approximate backward": lambda rng: (lambda x: (ops.gelu(x)[0], ops.gelu(x, approximate=True)[1]), [rng.standard_normal(9)], {}),
    "tanh: NaN": _buggy("tanh", lambda dx, **_: (dx * np.nan,)),
    "rnn: time not unrolled": _buggy("rnn", lambda dx, dh0, dWx, dWh, db, **_: (dx, 0.5 * dh0, dWx, dWh, db)),
}  # fmt: skip


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(bug, rng):
    f, inputs, params = PLANTED[bug](rng)
    report = gradcheck(f, *inputs, params=params)
    assert not report, report
    assert report.verdict == "FAIL"
    assert any(t.wrong for t in report.tensors)


def test_the_report_names_the_worst_entry(rng):
    f, inputs, _ = PLANTED["attention: one entry of dvalue"](rng)
    report = gradcheck(f, *inputs)
    assert report.worst.worst == np.unravel_index(7, inputs[2].shape)
    assert report.worst.wrong == 1
    assert report.worst.yours - report.worst.measured == pytest.approx(1e-4, rel=1e-3)
    assert "worst at [0, 0, 1, 3]: your backward" in report.explain()
    assert "FAIL" in repr(report)


def _writes_into_input(x):
    def backward(dy):
        x[...] = 0
        return dy

    return x + 0, backward


def _writes_into_dy(x):
    def backward(dy):
        dy *= 2
        return dy / 2

    return x + 0, backward


def _once_only(x):
    kept = [2.0]
    return 2 * x, lambda dy: dy * (kept.pop() if kept else 1.0)


def _random(x):
    return x * np.random.default_rng().random(), lambda dy: dy


def _wrong_shape(x):
    return 2 * x, lambda dy: (2 * dy).sum(0)


def _nothing(x):
    return 2 * x, lambda dy: None


def _too_many(x):
    return 2 * x, lambda dy: (dy, dy)


BROKEN = {
    "wrote into an input": _writes_into_input,
    "wrote into dy": _writes_into_dy,
    "another answer when it was called a second time": _once_only,
    "two different results": _random,
    r"dx has shape \(3,\), expected \(2, 3\)": _wrong_shape,
    "no gradient for x": _nothing,
    "gave 2 gradients": _too_many,
    "1 of 6 values that are not finite": lambda x: (np.where(x == x.max(), np.nan, x), lambda dy: dy),
}


@pytest.mark.parametrize("finding", BROKEN)
def test_broken_promises_are_findings(finding, rng):
    report = gradcheck(BROKEN[finding], rng.standard_normal((2, 3)))
    assert not report
    assert report.verdict == "FAIL"
    with pytest.raises(AssertionError, match=finding):
        raise AssertionError(report.explain())


def test_parameters_that_do_not_accumulate_are_found(rng):
    class Forgetful(Parameter):
        def accumulate(self, gradient):
            self.grad = gradient

    layer = Linear(3, 2, rng)
    layer.W = Forgetful(layer.W.data)
    report = gradcheck(layer, rng.standard_normal((4, 3)), params=layer.parameters())
    assert any("did not add up" in finding for finding in report.findings)


def test_an_entry_at_a_kink_is_set_aside():
    report = gradcheck(ops.relu, np.array([0.0, 1e-5, -3e-4, 1.0, -1.0]))
    assert report
    assert report.tensors[0].set_aside == 3
    assert report.judged == 2


def test_nothing_judged_is_not_a_pass():
    report = gradcheck(ops.relu, np.zeros(3))
    assert report.verdict == "NOT TESTED"
    assert not report
    assert gradcheck(lambda: (np.float64(1), lambda dy: None)).verdict == "NOT TESTED"


def test_parameters_come_back_as_they_were(rng):
    layer = LayerNorm(4)
    before = layer.gamma.data
    layer.gamma.grad = np.ones(4, np.float32)
    assert gradcheck(layer, rng.standard_normal((2, 4)), params=layer.parameters())
    assert layer.gamma.data is before
    assert layer.gamma.data.dtype == np.float32
    assert layer.gamma.grad.tolist() == [1] * 4


def test_a_bug_in_one_layer_of_a_model_shows_in_its_parameters(rng, monkeypatch):
    right = ops.residual_relu

    def wrong(x, y):
        z, backward = right(x, y)
        return z, lambda dz: (backward(dz)[0], 1.01 * backward(dz)[1])

    monkeypatch.setattr(ops, "residual_relu", wrong)
    model = LanguageTransformer(rng.standard_normal((7, 4)), T=3, L=1, H=1, m=2, readout="shared", causal=True)
    model.A.W.data = rng.standard_normal(model.A.W.data.shape)
    windows = rng.integers(0, 7, (2, 4))
    report = gradcheck(lambda: model.loss(windows), params=model.parameters())
    failed = {t.name for t in report.tensors if t.verdict == "FAIL"}
    assert "layers.0.attention.output.W" in failed
    assert "A.W" not in failed


def test_no_false_alarm_with_large_and_small_numbers(rng):
    for scale in (1e-3, 1.0, 30.0):
        x = scale * rng.standard_normal((3, 6))
        assert gradcheck(ops.softmax, x)
        assert gradcheck(ops.layer_norm, x, np.ones(6), np.zeros(6))
        assert gradcheck(ops.linear, x, rng.standard_normal((6, 2)))


def test_large_tensors_are_sampled(rng):
    report = gradcheck(ops.linear, rng.standard_normal((2, 60)), rng.standard_normal((60, 60)))
    assert report
    assert [t.judged for t in report.tensors] == [120, 2000]

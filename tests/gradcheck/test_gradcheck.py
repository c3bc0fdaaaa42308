"""The checker finds planted bugs, and does not cry wolf."""

import json
import re

from mini_tf import ops
from mini_tf.gradcheck import EXAMPLES, gradcheck
from mini_tf.layers import LayerNorm, Linear, Parameter
from mini_tf.models import LanguageTransformer
from mini_tf.ops.shapes import sum_to
from tests.strict import strict

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
    worst = report.worst.worst                           # the tensor's, and in it the point's
    assert worst.index == np.unravel_index(7, inputs[2].shape)
    assert worst.wrong_entries == 1
    assert worst.yours - worst.measured == pytest.approx(1e-4, rel=1e-3)
    assert "worst at [0, 0, 1, 3]" in report.explain()
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
    "backward wrote into x": _writes_into_input,
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


def test_an_entry_at_a_kink_is_set_aside_and_one_beside_it_is_judged():
    report = gradcheck(ops.relu, np.array([0.0, 1e-4, -3e-5, 1.0, -1.0]))
    assert report
    given = report.tensors[0].comparisons[0]
    assert given.set_aside == 1
    assert given.judged == 4                             # with smaller steps, which do not reach the kink


@pytest.mark.parametrize("distance", [0.3, 0.55, 0.7, 0.99])
def test_a_kink_anywhere_within_the_step_raises_no_alarm(distance):
    """Beyond h/2 the slopes on either side say nothing of it, but the ReLU's pattern does."""
    shift = 0.5 + distance * 3e-4
    report = gradcheck(lambda x: ops.relu(x - shift), np.array([0.5, 1.0, 2.0]))
    assert report
    assert report.tensors[0].comparisons[0].judged == 3


def test_a_kink_in_a_function_that_is_not_of_our_ops_is_seen_by_its_slopes():
    report = gradcheck(lambda x: (np.abs(x), lambda dy: dy * np.sign(x)), np.array([0.0, 0.5, -0.5]))
    assert report
    assert report.tensors[0].comparisons[0].set_aside == 1


def test_padded_rows_with_zero_biases_raise_no_alarm(rng):
    x = rng.standard_normal((3, 4, 5))
    x[:, 2:] = 0                                         # padding: through W alone its rows stay at the kink, 0

    def relu_of_linear(x, W, b):
        y, linear_backward = ops.linear(x, W, b)
        z, relu_backward = ops.relu(y)
        return z, lambda dz: linear_backward(relu_backward(dz))

    report = gradcheck(relu_of_linear, x, rng.standard_normal((5, 6)), np.zeros(6))
    assert report
    bias = report.tensor("b")
    assert bias.comparisons[0].set_aside == 6            # every bias moves the padding over the kink,
    assert bias.comparisons[1].judged == 6               # but not at the generic point


def test_nothing_judged_is_not_a_pass():
    def at_zero_only(x):
        if x.all():
            raise ValueError("made for zeros")
        return ops.relu(x)

    report = gradcheck(at_zero_only, np.zeros(3))
    assert report.verdict == "NOT TESTED"
    assert not report
    assert "3 set aside at a kink" in report.explain()
    assert "checked at the given point only" in report.explain()


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


def test_large_tensors_are_sampled_and_looked_through_in_random_directions(rng):
    report = gradcheck(ops.linear, rng.standard_normal((2, 60)), rng.standard_normal((60, 60)))
    assert report
    assert [t.comparisons[0].judged for t in report.tensors] == [120, 2000]
    directions = report.tensors[1].comparisons[0].directions
    assert (directions.judged, directions.wrong) == (10, 0)
    assert "2000 of 3600 entries" in report.explain()
    assert "99.90% certainty" in report.explain()


@pytest.mark.parametrize("seed", range(6))
def test_a_single_wrong_entry_of_a_large_tensor_is_found_and_named(seed):
    rng = np.random.default_rng(seed)
    entry = tuple(int(i) for i in rng.integers(0, 120, 2))

    def linear(x, W):
        y, backward = ops.linear(x, W)

        def wrong(dy):
            dx, dW = backward(dy)
            dW[entry] += 1e-4
            return dx, dW

        return y, wrong

    report = gradcheck(linear, rng.standard_normal((2, 120)), rng.standard_normal((120, 120)), seed=seed, budget=50)
    assert report.verdict == "FAIL"
    assert report.worst.name == "W"
    assert report.worst.worst.index == entry


def test_a_wrong_gradient_that_the_given_point_hides(rng):
    f, inputs, params = PLANTED["layer_norm: gamma forgotten"](rng)
    report = gradcheck(f, inputs[0], np.ones(4), np.zeros(4))
    dx = report.tensor("x")
    assert [c.wrong for c in dx.comparisons] == [False, True]
    assert "cannot be seen at the point given, where gamma is 1 and beta is 0 everywhere" in report.explain()


def test_a_blind_point_is_named_also_when_all_is_right(rng):
    report = gradcheck(ops.layer_norm, rng.standard_normal((3, 4)), np.ones(4), np.zeros(4))
    assert report
    assert "note: at the point given, gamma is 1 and beta is 0 everywhere" in report.explain()
    assert "note" not in gradcheck(ops.layer_norm, *rng.standard_normal((3, 4, 4))[:, 0]).explain()


def test_a_function_with_a_domain_stays_in_it():
    x = np.array([1e-6, 0.1, 0.5, 0.9])
    assert gradcheck(lambda p: (np.log(p), lambda dy: dy / p), x)
    assert gradcheck(lambda p: (np.arcsin(p), lambda dy: dy / np.sqrt(1 - p * p)), x)


def test_rows_that_a_mask_leaves_empty_must_not_be_nan(rng):
    def careless(z, mask):
        e = np.exp(np.where(mask, z, -np.inf))
        y = e / e.sum(-1, keepdims=True)
        return y, lambda dy: (y * (dy - (y * dy).sum(-1, keepdims=True)), None)

    with np.errstate(invalid="ignore"):
        report = gradcheck(careless, rng.standard_normal((3, 4)), np.tri(3, 4, dtype=bool))
    assert [t.verdict for t in report.tensors] == ["PASS"]
    assert "with a row of mask that allows nothing, the forward fails or gives NaN" in report.explain()


def test_a_gradient_that_leaks_through_an_empty_row_is_found(rng):
    def leaks(z, mask):
        y, backward = ops.masked_softmax(z, mask)
        return y, lambda dy: (backward(dy)[0] + (~mask.any(-1, keepdims=True)) * dy, None)

    mask = np.tri(3, 4, dtype=bool)
    report = gradcheck(leaks, rng.standard_normal((3, 4)), mask)
    assert [c.wrong for c in report.tensor("z").comparisons] == [False, True]
    assert mask[0].any()                                 # the caller's mask is as it was


def test_integers_scalars_lists_and_empty_arrays_are_named():
    square = lambda x: (x * x, lambda dy: 2 * x * dy)    # noqa: E731
    assert "x is int64): integers have no gradient; try .astype(float)" in gradcheck(square, np.arange(3)).explain()
    assert "x is a list, expected an array: try np.array" in gradcheck(square, [1.0, 2.0]).explain()
    assert "x is empty, its shape is (0, 3)" in gradcheck(square, np.zeros((0, 3))).explain()
    assert "x has 1 of 2 entries that are not finite" in gradcheck(square, np.array([1, np.nan])).explain()
    assert "no floating input or parameter" in gradcheck(lambda: (np.float64(1), lambda dy: None)).explain()
    assert gradcheck(square, 3.0)
    assert gradcheck(square, np.array(3.0))
    assert gradcheck(square, np.float64(3.0))
    assert not gradcheck(lambda x: (x * x, lambda dy: 3 * x * dy), 3.0)


def test_a_parameter_that_is_not_used_is_a_note_and_one_without_gradient_a_finding(rng):
    layer, other = Linear(3, 2, rng), Linear(3, 2, rng)
    x = rng.standard_normal((4, 3))
    report = gradcheck(layer, x, params={"W": layer.W, "b": layer.b, "other": other.W})
    assert report
    assert "note: y does not depend on other" in report.explain()
    report = gradcheck(lambda x: (layer(x)[0], lambda dy: ops.linear(x, layer.W.data)[1](dy)[0]), x, params=[layer.W])
    assert "no gradient for parameter 0: backward added none to it" in report.explain()


def test_options_that_are_numbers_are_passed_on(rng):
    assert gradcheck(ops.dropout, rng.standard_normal((2, 3)), np.array([True, False, True]) & np.ones((2, 1), bool), 0.4)
    assert gradcheck(ops.attention, *rng.standard_normal((3, 2, 4, 4)), None, 0.5)


def test_float32_results_are_judged_and_dtypes_must_follow(rng):
    x = rng.standard_normal((3, 4)).astype(np.float32)
    report = gradcheck(ops.softmax, x)
    assert report
    assert report.tensor("z").precision.where == "float32"
    assert x.dtype == np.float32
    report = gradcheck(lambda x: (x * np.sqrt(2.0), lambda dy: dy * np.sqrt(2.0)), x)
    assert "the forward gave float64 for float32" in report.explain()
    assert "dx is float64 for float32" in report.explain()


def test_a_result_that_is_only_wrong_in_float32_is_found(rng):
    def cancels(x):
        big = x.dtype.type(1e4)
        return (x + big) - big, lambda dy: (dy + big) - big

    x = rng.standard_normal(5)
    assert gradcheck(cancels, x, name="in float64")
    report = gradcheck(cancels, x.astype(np.float32))
    assert report.tensor("x").verdict == "FAIL"
    assert "in float32, at [" in report.explain()


def test_results_of_another_library_are_judged_on_the_host(rng):
    report = gradcheck(ops.layer_norm, strict(rng.standard_normal((3, 4))), strict(np.ones(4)), strict(np.zeros(4)))
    assert report
    assert report.tensor("x").precision.where == "float64 on strict"


def test_the_table_has_both_numbers_and_json_can_be_read(rng):
    f, inputs, _ = PLANTED["attention: one entry of dvalue"](rng)
    report = gradcheck(f, *inputs)
    table = report.table()
    assert [str(column.header) for column in table.columns][4:6] == ["your backward", "measured"]
    assert table.row_count == 3
    read = json.loads(report.to_json())
    assert read["verdict"] == "FAIL"
    assert [t["verdict"] for t in read["tensors"]] == ["PASS", "PASS", "FAIL"]
    assert read["tensors"][2]["points"][0]["index"] == [0, 0, 1, 3]
    f, inputs, _ = PLANTED["tanh: NaN"](rng)
    assert json.loads(gradcheck(f, *inputs).to_json())["tensors"][0]["points"][0]["error"] == "inf"


def test_the_page_is_whole_and_needs_nothing_else(rng, tmp_path):
    f, inputs, _ = PLANTED["layer_norm: no mean term"](rng)
    gradcheck(f, *inputs).html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>")
    assert page.count("data:image/svg+xml;base64,") == 2             # the heat map and the curve of the steps
    assert "http" not in re.sub("base64,[^\"]*", "", page)
    assert "In every row it is off by one number" in page
    assert "whatever the step: it is not the step, it is the gradient" in page
    gradcheck(ops.tanh, rng.standard_normal(4)).html(tmp_path / "right.html")
    assert "it agrees with your backward to" in (tmp_path / "right.html").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) != []

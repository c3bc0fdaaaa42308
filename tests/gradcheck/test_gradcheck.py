"""The checker finds planted bugs, and does not cry wolf."""

import json
import re
from functools import partial

from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import EXAMPLES, gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.layers import LayerNorm, Linear, Parameter
from mini_tf.models import LanguageTransformer
from tests.strict import strict

import numpy as np
import pytest


def report_on(bug_name, rng, *inputs):
    """The report while a bug of `planting/bugs.py` is planted, on its own example or on other inputs."""
    bug = next(bug for bug in BUGS if bug.name == bug_name)
    f, example, params = EXAMPLES[bug.example](rng)
    with planted(bug):
        return gradcheck(f, *(inputs or example), params=params)


def test_the_report_names_the_worst_entry(rng):
    report = report_on("attention: one entry of dvalue", rng)
    worst = report.worst.worst                           # the worst point of the worst tensor
    assert worst.index == (0, 0, 1, 1)
    assert worst.wrong_entries == 1
    assert "worst at [0, 0, 1, 1]" in report.explain()
    assert "your backward" in report.explain()
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


class DoublesW(Linear):
    """Linear with a wrong backward: twice dW, and no db."""

    def __call__(self, x):
        y, linear_backward = super().__call__(x)

        def backward(dy):
            dx = linear_backward(dy)
            self.W.grad, self.b.grad = self.W.grad * 2, None
            return dx

        return y, backward

    def method(self, x):
        return self(x)


def test_a_layers_parameters_are_found_and_checked(rng):
    x, layer = rng.standard_normal((4, 3)), DoublesW(3, 2, rng)
    for f in (layer, layer.method, partial(layer.method), lambda x: layer(x)):
        report = gradcheck(f, x)
        assert not report
        assert {tensor.name: tensor.verdict for tensor in report.tensors}["W"] == "FAIL"
        assert any("no gradient for b" in finding for finding in report.findings)
    assert [tensor.name for tensor in gradcheck(Linear(3, 2, rng), x).tensors] == ["x", "W", "b"]
    assert [tensor.name for tensor in gradcheck(Linear(3, 2, rng), x, params={}).tensors] == ["x"]


def test_a_models_parameters_are_found_from_its_loss(rng):
    model = LanguageTransformer(rng.standard_normal((7, 4)), T=3, L=1, H=2, m=3, train_embeddings=True)
    windows = rng.integers(0, 7, (2, 4))
    for f, inputs in ((model.loss, [windows]), (lambda: model.loss(windows), [])):
        report = gradcheck(f, *inputs)
        assert report, report
        assert {tensor.name for tensor in report.tensors} == set(model.parameters())


def test_two_layers_that_a_function_names_are_both_checked(rng):
    first, second = Linear(3, 2, rng), DoublesW(2, 2, rng)

    def both(x):
        h, first_backward = first(x)
        y, second_backward = second(h)
        return y, lambda dy: first_backward(second_backward(dy))

    report = gradcheck(both, rng.standard_normal((4, 3)))
    assert {t.name: t.verdict for t in report.tensors if t.verdict == "FAIL"} == {"second.W": "FAIL"}
    assert {"first.W", "first.b", "second.W"} <= {t.name for t in report.tensors}


def test_an_explanation_that_fails_leaves_the_verdict(rng, monkeypatch):
    def fails(report, evidence):
        raise IndexError("no such row")

    monkeypatch.setattr("mini_tf.gradcheck.check.add_reasons", fails)
    report = gradcheck(lambda x: (x * x, lambda dy: x * dy), rng.standard_normal((2, 3)))
    assert report.verdict == "FAIL"
    assert report.tensors[0].wrong == 12
    assert "the reason could not be looked for: IndexError: no such row" in report.explain()


def test_arrays_given_as_parameters_are_refused_in_a_sentence(rng):
    W = rng.standard_normal((3, 2))
    report = gradcheck(lambda x: (x @ W, lambda dy: dy @ W.T), rng.standard_normal((4, 3)), params={"W": W})
    assert "W is of type ndarray, expected a Parameter" in report.explain()


def test_an_entry_at_a_kink_is_set_aside_and_one_beside_it_is_judged():
    report = gradcheck(ops.relu, np.array([0.0, 1e-4, -3e-5, 1.0, -1.0]))
    assert report
    given = report.tensors[0].comparisons[0]
    assert given.set_aside == 1
    assert given.judged == 4                             # with smaller steps that do not reach the kink


@pytest.mark.parametrize("distance", [0.3, 0.55, 0.7, 0.99])
def test_a_kink_anywhere_within_the_step_raises_no_alarm(distance):
    """Beyond h/2 the slopes on either side do not show it, but the ReLU's pattern does."""
    shift = 0.5 + distance * 3e-4
    report = gradcheck(lambda x: ops.relu(x - shift), np.array([0.5, 1.0, 2.0]))
    assert report
    assert report.tensors[0].comparisons[0].judged == 3


def test_a_kink_outside_our_ops_shows_in_the_slopes():
    report = gradcheck(lambda x: (np.abs(x), lambda dy: dy * np.sign(x)), np.array([0.0, 0.5, -0.5]))
    assert report
    assert report.tensors[0].comparisons[0].set_aside == 1


def test_padded_rows_with_zero_biases_raise_no_alarm(rng):
    x = rng.standard_normal((3, 4, 5))
    x[:, 2:] = 0                                         # padding: whatever W is, its rows stay at the kink, 0

    def relu_of_linear(x, W, b):
        y, linear_backward = ops.linear(x, W, b)
        z, relu_backward = ops.relu(y)
        return z, lambda dz: linear_backward(relu_backward(dz))

    report = gradcheck(relu_of_linear, x, rng.standard_normal((5, 6)), np.zeros(6))
    assert report
    bias = report.tensor("b")
    assert bias.comparisons[0].set_aside == 6            # every bias moves the padding over the kink,
    assert bias.comparisons[1].judged == 6               # but not at the generic point


@pytest.mark.parametrize("seed", range(9))
def test_a_branch_that_the_two_points_may_not_take(seed):
    """A forgotten ReLU matters only where a whole column is below 0: the maximum is one of the positive entries."""
    def max_over_time(x, W, masked):
        a = np.maximum(x @ W, 0)
        first = np.expand_dims(a.argmax(1), 1)

        def backward(dy):
            da = np.zeros_like(a)
            np.put_along_axis(da, first, dy[:, None], 1)
            da = da * (a > 0) if masked else da
            return da @ W.T, np.einsum("bti,bto->io", x, da)

        return a.max(1), backward

    rng = np.random.default_rng(seed)
    x, W = rng.standard_normal((2, 4, 3)), rng.standard_normal((3, 2))
    assert gradcheck(max_over_time, x, W, True, seed=seed)
    assert not gradcheck(max_over_time, x, W, False, seed=seed)


def test_a_bound_that_no_number_given_reaches(rng):
    def hard_tanh(x):
        return np.clip(x, -4, 4), lambda dy: dy          # right: dy·(|x| < 4)

    report = gradcheck(hard_tanh, rng.standard_normal((3, 4)))
    assert [c.point for c in report.tensor("x").comparisons if c.wrong] == ["far"]
    assert "judged at three points" in report.explain()
    assert "wrong for numbers of other signs and sizes" in report.explain()


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
    assert "trunk.layers.0.attention.output.W" in failed
    assert "A.W" not in failed


def test_no_false_alarm_with_large_and_small_numbers(rng):
    for scale in (1e-3, 1.0, 30.0):
        x = scale * rng.standard_normal((3, 6))
        assert gradcheck(ops.softmax, x)
        assert gradcheck(ops.layer_norm, x, np.ones(6), np.zeros(6))
        assert gradcheck(ops.linear, x, rng.standard_normal((6, 2)))


def test_large_tensors_are_sampled_and_checked_along_random_directions(rng):
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
            dx, dW, _ = backward(dy)
            dW[entry] += 1e-4
            return dx, dW

        return y, wrong

    report = gradcheck(linear, rng.standard_normal((2, 120)), rng.standard_normal((120, 120)), seed=seed, budget=50)
    assert report.verdict == "FAIL"
    assert report.worst.name == "W"
    assert report.worst.worst.index == entry


def test_a_wrong_gradient_that_the_given_point_hides(rng):
    report = report_on("layer_norm: γ forgotten", rng, rng.standard_normal((2, 3, 4)), np.ones(4), np.zeros(4))
    dx = report.tensor("x")
    assert [c.wrong for c in dx.comparisons] == [False, True]
    assert "cannot be seen at the point given, where gamma is 1 and beta is 0 everywhere" in report.explain()


def test_a_blind_point_is_noted_even_if_everything_is_right(rng):
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
    assert report                                        # for the mask that was given
    assert "note: right for the mask you gave" in report.explain()
    assert "with an empty row in it, all False, the forward fails or gives NaN" in report.explain()
    mask = np.tri(3, 4, dtype=bool)
    mask[1] = False
    with np.errstate(invalid="ignore"):
        assert not gradcheck(careless, rng.standard_normal((3, 4)), mask)


def test_a_gradient_that_leaks_through_an_empty_row_is_found(rng):
    def leaks(z, mask):
        y, backward = ops.masked_softmax(z, mask)
        return y, lambda dy: (backward(dy)[0] + (~mask.any(-1, keepdims=True)) * dy, None)

    mask = np.tri(3, 4, dtype=bool)
    report = gradcheck(leaks, rng.standard_normal((3, 4)), mask)
    assert report
    assert "with an empty row in it, all False, the gradients are wrong" in report.explain()
    assert mask[0].any()                                 # the caller's mask is as it was
    mask[0] = False
    report = gradcheck(leaks, rng.standard_normal((3, 4)), mask)
    assert [c.wrong for c in report.tensor("z").comparisons] == [True, True]


def test_of_a_large_function_fewer_entries_are_measured_and_a_single_wrong_one_is_found(rng):
    def linear(x, W, at=None):
        def backward(dy):
            dW = x.T @ dy
            if at:
                dW[at] *= 1.01
            return dy @ W.T, dW

        return x @ W, backward

    x, W = rng.standard_normal((2, 500)), rng.standard_normal((500, 1000))
    report = gradcheck(linear, x, W)
    assert report
    assert [t.comparisons[0].judged for t in report.tensors] == [99, 99]
    report = gradcheck(linear, x, W, at=(123, 456))
    assert report.tensor("W").comparisons[0].wrong
    assert gradcheck(linear, x[:, :20], W[:20, :30]).tensor("W").comparisons[0].judged == 600


def test_a_list_of_whole_numbers_is_an_option(rng):
    def first(x, lengths):
        mask = np.arange(x.shape[1]) < np.array(lengths)[:, None]
        return x * x * mask, lambda dy: 2 * x * dy * mask

    assert gradcheck(first, rng.standard_normal((2, 4)), [3, 4])
    assert gradcheck(first, rng.standard_normal((2, 4)), lengths=(3, 4))
    assert gradcheck(lambda x, how: (x * how[0][0], lambda dy: dy * how[0][0]), rng.standard_normal(3), how=[(2, None), "abc"])


def test_integers_scalars_lists_and_empty_arrays_are_named():
    square = lambda x: (x * x, lambda dy: 2 * x * dy)    # noqa: E731
    assert "x is int64): only floating numbers have a slope; try .astype(float)" in gradcheck(square, np.arange(3)).explain()
    assert "x is a list, expected an array: try np.array" in gradcheck(square, [1.0, 2.0]).explain()
    assert "or, if it is an option, gradcheck(lambda x: <lambda>(x, …), x)" in gradcheck(square, [[1.0, 2.0]]).explain()
    assert "x is empty, its shape is (0, 3)" in gradcheck(square, np.zeros((0, 3))).explain()
    assert "x has 1 of 2 entries that are not finite" in gradcheck(square, np.array([1, np.nan])).explain()
    assert "no floating input or parameter" in gradcheck(lambda: (np.float64(1), lambda dy: None)).explain()
    assert gradcheck(square, 3.0)
    assert gradcheck(square, np.array(3.0))
    assert gradcheck(square, np.float64(3.0))
    assert not gradcheck(lambda x: (x * x, lambda dy: 3 * x * dy), 3.0)


def test_given_arrays_are_never_written_to(rng):
    """Not even while the search for a repair tries changes that write into what the backward keeps."""

    def embedding(table, ids):
        def backward(dy):
            seen = np.zeros_like(ids)
            dtable = np.zeros_like(table)
            for j, i in enumerate(ids):
                seen[j] = 1
                dtable[i] = dy[j]
            return dtable, None

        return table[ids], backward

    table, ids = rng.standard_normal((4, 3)), np.array([2, 0, 2, 1])
    before = table.copy(), ids.copy()
    report = gradcheck(embedding, table, ids)
    assert "the gradients of all places must add up" in report.explain()
    assert np.array_equal(table, before[0])
    assert np.array_equal(ids, before[1])


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-6, 1e6, 1e12])
def test_functions_of_any_size_are_judged(scale, rng):
    x = rng.standard_normal(6)
    assert gradcheck(lambda x: (scale * x, lambda dy: scale * dy), x)
    assert not gradcheck(lambda x: (scale * x, lambda dy: 2 * scale * dy), x)
    assert gradcheck(lambda x: (scale * np.tanh(x), lambda dy: scale * dy * (1 - np.tanh(x) ** 2)), x)


def test_what_rounding_hides_is_not_judged(rng):
    report = gradcheck(lambda x: (x + 1e12, lambda dy: 2 * dy), rng.standard_normal(6))
    assert report.verdict == "NOT TESTED"
    assert "below noise" in report.explain()
    report = gradcheck(lambda x, w: (x + 1e-12 * w, lambda dy: (dy, 2e-12 * dy)), *rng.standard_normal((2, 6)))
    assert [t.verdict for t in report.tensors] == ["PASS", "NOT TESTED"]


def test_odd_results_are_named(rng):
    x = rng.standard_normal(3)
    cases = {
        "y has dtype bool, expected a floating one": lambda x: (x > 0, lambda dy: dy),
        "y is empty, its shape is (0,)": lambda x: (x[:0], lambda dy: 0 * x),
        "returned 2 things (ndarray, NoneType), expected y, backward": lambda x: (x, None),
        "dx has dtype object": lambda x: (x, lambda dy: np.array([*dy], dtype=object)),
        "the backward raised TypeError": lambda x: (x, lambda: x),
        "test_gradcheck.py": lambda x: (x, lambda: x),
        "the forward raised TypeError": lambda: (1.0, lambda dy: dy),
    }
    for words, f in cases.items():
        report = gradcheck(f, x)
        assert not report
        assert words in report.explain()
    assert gradcheck(lambda x, nothing: (2 * x, lambda dy: (2 * dy, None)), x, None)


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


@pytest.mark.gpu
def test_results_on_the_gpu_are_judged_on_the_host(rng):
    from mini_tf.backend import to_device

    for dtype in (np.float64, np.float32):
        arrays = [to_device(x.astype(dtype), "gpu") for x in (rng.standard_normal((3, 4)), np.ones(4), np.zeros(4))]
        report = gradcheck(ops.layer_norm, *arrays)
        assert report
        assert report.tensor("x").precision.where == f"{np.dtype(dtype)} on gpu:0"


def test_the_table_has_both_numbers_and_json_can_be_read(rng):
    report = report_on("attention: one entry of dvalue", rng)
    table = report.table()
    assert [str(column.header) for column in table.columns][4:6] == ["your backward", "measured"]
    assert table.row_count == 3
    read = json.loads(report.to_json())
    assert read["verdict"] == "FAIL"
    assert [t["verdict"] for t in read["tensors"]] == ["PASS", "PASS", "FAIL"]
    assert read["tensors"][2]["points"][0]["index"] == [0, 0, 1, 1]
    with np.errstate(invalid="ignore"):
        report = report_on("masked_softmax: NaN where nothing is allowed", rng)
    assert json.loads(report.to_json())["tensors"][0]["points"][0]["error"] == "inf"


def test_the_page_is_whole_and_needs_nothing_else(rng, tmp_path):
    report_on("layer_norm: mean(g) left out", rng).html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>")
    assert page.count("<svg") == 2                       # the heat map and the curve over the step size
    assert not re.findall("#0[123]0[123]0[123]", page)   # all stand-ins have become the page's own colours
    assert "http" not in re.sub("base64,[^\"]*", "", page)
    assert "It is right but for the gradient through x.mean(-1, keepdims=True)" in page
    assert "whatever the step: it is not the step, it is the gradient" in page
    gradcheck(ops.tanh, rng.standard_normal(4)).html(tmp_path / "right.html")
    assert "it agrees with your backward to" in (tmp_path / "right.html").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) != []


def test_the_page_highlights_code_and_escapes_the_rest(rng, tmp_path):
    report = report_on("layer_norm: mean(g) left out", rng)
    report.name = "<b>layer_norm"
    report.html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>layer_norm" not in page
    assert "&lt;b&gt;layer_norm" in page
    assert page.count('<span class="n">dx</span> <span class="o">=</span>') == 2     # the line as it is, put right


@pytest.mark.parametrize("options", [{"budget": 0}, {"budget": 2.5}, {"seed": -1}, {"seed": "x"}, {"seed": None}])
def test_numbers_that_cannot_be_meant_are_refused(options):
    with pytest.raises(UserError, match=rf"{next(iter(options))} is .*, expected a whole number of at least"):
        gradcheck(ops.tanh, np.ones((2, 3)), **options)

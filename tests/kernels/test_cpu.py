"""Each twin against its formula, in every corner case: odd sizes, one row, no row, arrays that are views."""

import inspect

from mini_tf import kernels, ops
from mini_tf.backend import to_host
from mini_tf.kernels import cpu
from mini_tf.ops.op import all_ops

import numpy as np
import pytest

# OpenBLAS may compute with what lies behind the end of a small matrix, in lanes whose results it drops: seen twice on a
# busy machine, with results that were right. A NaN among results fails here all the same.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")

LARGE = (3, 67, 2711)    # too large for one thread alone
SHAPES = [(5,), (1, 1), (1, 7), (3, 5), (0, 5), (2, 0, 3), (2, 3, 17), (33, 129), LARGE]


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def of_rows(name, rng, shape):
    """The inputs of an op on rows of numbers"""
    x = normal(rng, *shape)
    return {
        "relu": [x], "gelu": [x], "softmax": [3 * x],
        "silu": [x], "rotary": [normal(rng, *shape, 6)],
        "residual_relu": [x, normal(rng, *shape)],
        "swiglu": [x, normal(rng, *shape)],
        "rms_norm": [x, normal(rng, shape[-1])],
        "layer_norm": [x, normal(rng, shape[-1]), normal(rng, shape[-1])],
        "masked_softmax": [3 * x, rng.random(shape) < 0.5],
        "dropout": [x, rng.random(shape) < 0.7, 0.3],
        "cross_entropy": [3 * x, rng.integers(0, shape[-1], shape[:-1])],
        "linear": [x, normal(rng, shape[-1], 6), normal(rng, 6)],
        "embedding": [normal(rng, 9, 4), rng.integers(0, 9, shape)],
        "mean_pool": [normal(rng, *shape, 6), rng.random(shape) < 0.5],
    }[name]  # fmt: skip


OF_ROWS = [
    "relu", "gelu", "softmax", "residual_relu", "layer_norm", "masked_softmax", "dropout", "cross_entropy", "linear",
    "embedding", "mean_pool", "silu", "swiglu", "rms_norm", "rotary",
]  # fmt: skip


def test_every_twin_is_tested():
    twins = {name for name in ops.__all__ if inspect.isfunction(vars(cpu).get(name))}
    assert twins == {*OF_ROWS, "attention", "lstm", "gru"} == {name for name in ops.__all__ if kernels.twin_of(getattr(ops, name))}


def test_a_twin_has_the_signature_of_its_op():
    for op in all_ops():
        if kernels.twin_of(op):
            assert parameters(kernels.twin_of(op)) == parameters(op)


def parameters(function):
    """Names, kinds and defaults, without type hints."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def agree(name, rng, *inputs, **options):
    """Twin and formula agree in values and gradients; repeated calls of the twin agree bit for bit."""
    op = getattr(ops, name)
    assert op.implementation(inputs, options) is getattr(cpu, name)
    y, backward = op(*inputs, **options)
    # The reference is the formula in double precision; `near` allows for float32.
    y_exact, backward_exact = op.formula(*map(in_double, inputs), **{name: in_double(x) for name, x in options.items()})
    near(y, y_exact)
    dy = normal(rng, *y.shape) if y.ndim else 0.7
    gradients, expected = as_list(backward(dy)), as_list(backward_exact(np.asarray(dy, np.float64)))
    assert len(gradients) == len(expected)
    for d, d_exact in zip(gradients, expected):
        assert (d is None) == (d_exact is None)
        if d is not None:
            near(d, d_exact)
    y_again, backward_again = op(*inputs, **options)
    np.testing.assert_array_equal(y_again, y)
    for _ in range(2):
        for d, d_again in zip(gradients, as_list(backward_again(dy))):
            assert d is None or np.array_equal(d, d_again)


def in_double(x):
    return x.astype(np.float64) if getattr(x, "dtype", None) == np.float32 else x


def near(found, exact):
    assert found.dtype == np.float32
    assert found.shape == exact.shape
    scale = max(np.abs(exact).max(initial=0), 1)
    np.testing.assert_allclose(to_host(found), exact, rtol=3e-5, atol=3e-6 * scale)


def as_list(gradients):
    return list(gradients) if isinstance(gradients, tuple) else [gradients]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OF_ROWS)
def test_twins_agree_with_their_formulas(name, shape, rng):
    if name == "cross_entropy" and 0 in shape:
        pytest.skip("no row: an error, in the test of errors")
    options = {"eps": 0.1} if "norm" in name else {}       # with one number in a row, r = 1/√ε magnifies rounding
    agree(name, rng, *of_rows(name, rng, shape), **options)


def views(x):
    """The same numbers in three layouts: every second column of a larger array, read-only; Fortran order; reversed."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    wide.flags.writeable = False
    return wide[..., ::2], np.asfortranarray(x), x[..., ::-1].copy()[..., ::-1]


@pytest.mark.parametrize("name", OF_ROWS)
def test_dy_may_be_a_view_or_double(name, rng):
    inputs = of_rows(name, rng, (4, 6, 5))
    y, backward = getattr(ops, name)(*inputs)
    if not y.ndim:
        pytest.skip("the gradient of a loss is a number")
    dy = normal(rng, *y.shape)
    expected = as_list(backward(dy))
    for other in [*views(dy), dy.astype(np.float64), np.broadcast_to(dy[:1], dy.shape)]:
        if other.strides[0] == 0:
            expected = as_list(backward(other.copy()))
        for d, d_expected in zip(as_list(backward(other)), expected):
            if d is not None:
                assert d.dtype == np.float32
                np.testing.assert_allclose(d, d_expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", OF_ROWS)
def test_inputs_and_dy_are_not_changed(name, rng):
    inputs = of_rows(name, rng, (4, 6, 5))
    before = [np.copy(x) for x in inputs]
    y, backward = getattr(ops, name)(*inputs)
    dy = normal(rng, *y.shape) if y.ndim else 0.7
    dy_before = np.copy(dy)
    backward(dy)
    for x, x_before in zip([*inputs, dy], [*before, dy_before]):
        np.testing.assert_array_equal(x, x_before)


# --- attention and masks

MASKS = {
    "none": None, "causal": np.tri(5, dtype=bool), "of each history": np.random.default_rng(1).random((6, 1, 5, 5)) < 0.6,
    "of each head": np.random.default_rng(2).random((3, 5, 5)) < 0.6, "keys": np.array([True, True, False, True, False]),
    "queries": np.array([True, False, True, False, True])[:, None], "of all": np.random.default_rng(3).random((6, 3, 5, 5)) < 0.5,
    "nothing": np.zeros((5, 5), bool),
}  # fmt: skip


WAYS = {
    "in one": {}, "in parts": {"A_IN_CACHE": 2 * 3 * 5 * 5}, "in parts, A computed again": {"A_IN_CACHE": 4 * 3 * 5 * 5, "A_KEPT": 0},
    "by BLAS": {"A_IN_CACHE": 1, "SHARED_BY_BLAS": 0}, "by BLAS, A computed again": {"SHARED_BY_BLAS": 0, "A_KEPT": 0},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", [None, (5, 5), (3, 5, 5), (6, 3, 5, 5), (1,)], ids=str)
def test_attention(mask, bias, way, rng, monkeypatch):
    for name, number in WAYS[way].items():
        monkeypatch.setattr(cpu, name, number)
    query, key, value = (normal(rng, 6, 5, 3, 4).swapaxes(1, 2) for _ in range(3))       # heads, as a layer splits them
    options = {} if bias is None else {"bias": normal(rng, *bias)}
    agree("attention", rng, query, key, value, MASKS[mask], scale=0.7, **options)


@pytest.mark.parametrize("scale", [3, 1.0, 0.0, -0.5])
def test_attention_of_other_scales(scale, rng):
    agree("attention", rng, *normal(rng, 3, 6, 5, 4), np.tri(5, dtype=bool), scale=scale)
    agree("attention", rng, *normal(rng, 3, 6, 5, 4), scale=scale)


@pytest.mark.parametrize(("Tq", "Tk", "m", "d"), [(1, 7, 3, 5), (7, 1, 3, 2), (33, 65, 17, 9), (130, 130, 33, 8)])
def test_attention_of_other_sizes(Tq, Tk, m, d, rng):
    query, key, value = normal(rng, 4, Tq, m), normal(rng, 4, Tk, m), normal(rng, 4, Tk, d)
    agree("attention", rng, query, key, value, np.tri(Tq, Tk, dtype=bool))
    agree("attention", rng, query[0], key[0], value[0])
    agree("attention", rng, query[:, None, None], key[:, None, None], value[:, None, None])


def test_attention_with_a_scale_for_each_head_or_a_larger_bias(rng):
    """In these cases the twin calls the formula."""
    query, key, value = (normal(rng, 2, 3, 5, 4) for _ in range(3))
    for options in ({"scale": normal(rng, 3, 1, 1)}, {"bias": normal(rng, 7, 2, 3, 5, 5)}):
        np.testing.assert_array_equal(
            ops.attention(query, key, value, **options)[0], ops.attention.formula(query, key, value, **options)[0]
        )


def test_masked_softmax_broadcasts_its_mask(rng):
    z = normal(rng, 6, 3, 5, 5)
    for mask in MASKS.values():
        if mask is not None:
            agree("masked_softmax", rng, z, mask)
    agree("masked_softmax", rng, z, np.array(True))


# --- other options of the ops


def test_linear_without_bias(rng):
    x, W = normal(rng, 3, 7, 5), normal(rng, 5, 2100)
    agree("linear", rng, x, W)
    agree("linear", rng, x.swapaxes(0, 1), W.T.copy().T)             # a table, transposed
    agree("linear", rng, normal(rng, 3, 2100), normal(rng, 2100, 5))     # in parts


def test_a_tables_gradient_has_the_tables_layout(rng):
    table = normal(rng, 50, 8)
    _, backward = ops.linear(normal(rng, 4, 8), table.T)
    assert backward(normal(rng, 4, 50))[1].T.flags.c_contiguous


def test_gelu_by_tanh(rng):
    agree("gelu", rng, 4 * normal(rng, 40, 41), approximate=True)


@pytest.mark.parametrize("halves", [False, True])
def test_rotary_of_heads_as_a_layer_splits_them(halves, rng):
    heads = normal(rng, 3, 5, 4, 6).swapaxes(1, 2)
    agree("rotary", rng, heads, first=3, base=100.0, halves=halves)
    assert ops.rotary(heads)[0].swapaxes(1, 2).flags.c_contiguous        # so that they are joined without a copy
    agree("rotary", rng, normal(rng, 2, 300, 1000), halves=halves)


def test_mean_pool_of_all_words_of_some_and_of_none(rng):
    agree("mean_pool", rng, normal(rng, 5, 4))
    agree("mean_pool", rng, normal(rng, 2, 3, 67, 1511))
    agree("mean_pool", rng, normal(rng, 2, 3, 4), np.array([[False] * 3, [True, False, True]]))


def test_cross_entropy_ignores(rng):
    agree("cross_entropy", rng, normal(rng, 4, 3, 9), np.array([[0, 8, 3], [3, 3, 3], [1, 2, 3], [3, 0, 0]]), ignore=3)
    agree("cross_entropy", rng, normal(rng, 3, 9), np.array([2, -1, 4], np.int8), ignore=-1)
    agree("cross_entropy", rng, *forbidden_words(rng), ignore=3)


def forbidden_words(rng):
    """(logits, targets): no row may end in word 3, which is ignored, nor the first in word 0"""
    z, targets = normal(rng, 3, 9), np.array([3, 0, 8])
    z[:, 3] = z[0, 0] = -np.inf
    return z, targets


# --- the contract, for large arrays too


def large(name, rng):
    """Inputs large enough for recycled memory"""
    x = normal(rng, 4, 67, 512)
    heads = [normal(rng, 8, 128, 4, 24).swapaxes(1, 2) for _ in range(3)]
    return {
        "linear": [x, normal(rng, 512, 30), normal(rng, 30)],
        "layer_norm": [x, normal(rng, 512), normal(rng, 512)],
        "cross_entropy": [x, rng.integers(0, 512, (4, 67))],
        "attention": [*heads, np.tri(128, dtype=bool)],
        "softmax": [x], "relu": [x], "gelu": [x], "residual_relu": [x, x + 1], "dropout": [x, x > 0, 0.4],
        "masked_softmax": [x, x > -1], "embedding": [x[0].copy(), rng.integers(0, 67, (9, 5))],
        "mean_pool": [x, rng.random((4, 67)) < 0.5],
        "silu": [x], "swiglu": [x, x + 1], "rms_norm": [x, normal(rng, 512)], "rotary": [x],
    }[name]  # fmt: skip


@pytest.mark.parametrize("held", [True, False], ids=["inputs held", "inputs let go"])
@pytest.mark.parametrize("name", [*OF_ROWS, "attention"])
def test_a_backward_gives_the_same_answer_twice_in_recycled_memory(name, held, rng):
    """Whether or not the caller still holds the inputs and results."""
    inputs = large(name, rng)
    op = getattr(ops, name)
    y, backward = op(*inputs)
    dy = normal(rng, *y.shape) if y.ndim else 0.7
    expected = [d if d is None else d.copy() for d in as_list(backward(dy))]
    with kernels.recycled_memory():
        given = [cpu.copy_of(x) if getattr(x, "dtype", None) == np.float32 else x for x in inputs]
        y, backward = op(*given)
        if not held:
            del given, y
        for _ in range(2):
            gradients = as_list(backward(dy))
            for d, d_expected in zip(gradients, expected):
                assert d is None or np.array_equal(d, d_expected)
            assert np.isfinite(cpu.empty((4, 67, 512))).size             # which reuses free buffers
            del gradients


@pytest.mark.parametrize("name", ["linear", "layer_norm", "attention"])
def test_a_backward_still_works_after_it_refused_a_gradient(name, rng):
    y, backward = getattr(ops, name)(*large(name, rng))
    for wrong in (None, np.ones((3, 1, 7, 1, 5), np.float32)):
        with pytest.raises((TypeError, ValueError)):
            backward(wrong)
    assert np.isfinite(backward(normal(rng, *y.shape))[0]).all()


def test_embedding_takes_every_integer(rng):
    table = normal(rng, 70, 33)
    for dtype in (np.int64, np.int32, np.uint8):
        agree("embedding", rng, table, rng.integers(0, 70, (9, 5)).astype(dtype))
    agree("embedding", rng, table, np.zeros((700, 2), int))          # one word, very often


@pytest.mark.parametrize("absent", [-1, 3])
def test_embedding_of_absent_words(absent, rng):
    table = normal(rng, 70, 33)
    ids = np.where(rng.random((9, 5)) < 0.3, absent, rng.integers(0, 70, (9, 5)))
    agree("embedding", rng, table, ids, absent=absent)
    table[max(absent, 0)] = np.nan                                   # a vector that nobody looks up
    agree("embedding", rng, table, np.full((2, 3), absent), absent=absent)


@pytest.mark.parametrize("size", [1e4, 1e38, 1e-45])
def test_extreme_numbers(size, rng):
    z = (np.sign(normal(rng, 6, 9)) * np.float32(size)).astype(np.float32)
    for name in ("softmax", "relu"):
        agree(name, rng, z)
    agree("gelu", rng, np.clip(z, -1e4, 1e4))
    agree("cross_entropy", rng, z, np.arange(6))


SPECIAL = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45]
OF_SPECIAL = [*OF_ROWS, "attention", "attention, biased", "cross_entropy, smoothed"]


def check_special_numbers(name, special, rng, call, to=lambda x: x):
    """In each of the inputs, and in dy: NaN and ∞ are where the formula has them, and all else is as large.

    call: the twin of that name;  to: brings an input to it
    """
    name, _, kind = name.partition(", ")
    if name == "attention":
        inputs = [*normal(rng, 3, 4, 5, 9), np.tri(5, dtype=bool), 0.5, *([normal(rng, 5, 5)] if kind else [])]
    else:
        inputs = [*of_rows(name, rng, (6, 41)), *([None, 0.1] if kind else [])]
    formula = getattr(ops, name).formula
    given = [*inputs, np.asarray(normal(rng, *formula(*inputs)[0].shape))]       # the last is dy
    for place, x in enumerate(given):
        if getattr(x, "dtype", None) != np.float32:
            continue
        if "norm" in name and x is not inputs[0] and abs(special) > 1e38:
            continue                                     # sums overflow, or not, depending on their order
        x = np.array(x)
        x.reshape(-1)[x.size // 2] = special
        *changed, dy = [*given[:place], x, *given[place + 1 :]]
        with np.errstate(all="ignore"):
            (y, backward), (y_exact, backward_exact) = call(name, *map(to, changed)), formula(*changed)
            pairs = zip([y, *as_list(backward(to(dy)))], [y_exact, *as_list(backward_exact(dy))])
        for found, expected in pairs:
            if expected is not None:
                size = min(np.abs(expected).max(initial=1, where=np.isfinite(expected)), 1e30)
                np.testing.assert_allclose(to_host(found), expected, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", OF_SPECIAL)
def test_special_numbers_come_out_as_in_the_formula(name, special, rng):
    check_special_numbers(name, special, rng, lambda name, *inputs: getattr(cpu, name)(*inputs))


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
def test_nan_and_infinite_logits_show_in_the_loss(bad, rng):
    z = normal(rng, 3, 40)
    z[1, 7] = bad
    with np.errstate(invalid="ignore"):
        assert np.isnan(ops.cross_entropy(z, np.array([1, 2, 3]))[0])
        assert np.isnan(ops.softmax(z)[0][1]).any()


def test_allowed_entries_may_be_minus_infinity(rng):
    """A row of nothing else is a row of zeros, as if nothing were allowed."""
    z = normal(rng, 3, 4)
    z[0, :2] = z[1] = -np.inf
    mask = np.array([True, True, False, True])
    agree("masked_softmax", rng, z, mask)
    bias = np.where(np.arange(4) == 2, 0, -np.inf).astype(np.float32)
    query, key, value = (normal(rng, 2, 4, 3) for _ in range(3))
    agree("attention", rng, query, key, value, np.tri(4, dtype=bool), bias=bias)


@pytest.mark.parametrize("mask", [None, np.tri(4, dtype=bool)], ids=["without", "with a mask"])
def test_a_bias_may_hide_all_keys_of_a_query(mask, rng):
    query, key, value = (normal(rng, 2, 4, 3) for _ in range(3))
    bias = normal(rng, 4, 4)
    bias[1:3] = -np.inf
    agree("attention", rng, query, key, value, mask, bias=bias)
    assert (ops.attention(query, key, value, mask, bias=bias)[0][:, 1:3] == 0).all()


def test_without_keys_attention_gives_zeros(rng):
    query, key, value = normal(rng, 2, 4, 3), normal(rng, 2, 0, 3), normal(rng, 2, 0, 5)
    agree("attention", rng, query, key, value)
    agree("attention", rng, query, key, value, np.ones((4, 0), bool), bias=normal(rng, 1, 0))
    assert (ops.attention(query, key, value)[0] == np.zeros((2, 4, 5))).all()


@pytest.mark.parametrize("name", ["gelu", "softmax"])
def test_far_from_zero(name, rng):
    agree(name, rng, np.linspace(-120, 120, 481, dtype=np.float32).reshape(13, 37))
    if name == "gelu":
        agree(name, rng, np.array([-1e38, 1e38, -1e19, 1e19, 0, -0.0], np.float32))


@pytest.mark.parametrize("name", ["relu", "gelu", "swiglu", "residual_relu", "layer_norm", "rms_norm", "softmax", "dropout"])
def test_dy_is_broadcast_or_refused(name, rng):
    inputs = of_rows(name, rng, (4, 6, 5))
    _, backward = getattr(ops, name)(*inputs)
    for dy in (normal(rng, 5), normal(rng, 6, 1), np.float32(0.7)):
        for d, expected in zip(as_list(backward(dy)), as_list(backward(np.broadcast_to(dy, (4, 6, 5)).copy()))):
            if d is not None:
                np.testing.assert_array_equal(d, expected)
    with pytest.raises(ValueError, match="shape"):
        backward(normal(rng, 7))


def test_axes_may_have_size_0(rng):
    z = normal(rng, 0, 2, 3, 4)
    agree("attention", rng, z, z, z, np.ones((0, 1, 3, 3), bool))
    agree("masked_softmax", rng, z, np.ones((0, 1, 3, 4), bool))


def test_ids_may_be_changed_before_the_backward(rng):
    ids = rng.integers(0, 9, (3, 4))
    before = ids.copy()
    _, backward = ops.embedding(normal(rng, 9, 5), ids)
    ids[...] = 10**9
    dx = normal(rng, 3, 4, 5)
    _, same_backward = ops.embedding(normal(rng, 9, 5), before)
    np.testing.assert_array_equal(backward(dx)[0], same_backward(dx)[0])


# --- errors

WRONG = {
    "shapes": ("linear", (np.ones((2, 3), np.float32), np.ones((4, 5), np.float32))),
    "dtype": ("dropout", (np.ones((2, 3), np.float32), np.ones((2, 3), np.float32), 0.5)),
    "rate": ("dropout", (np.ones((2, 3), np.float32), np.ones((2, 3), bool), 1.5)),
    "mask": ("masked_softmax", (np.ones((2, 3), np.float32), np.ones((5, 3), bool))),
    "too many axes": ("masked_softmax", (np.ones(3, np.float32), np.ones((5, 3), bool))),
    "attention": ("attention", (np.ones((2, 3, 4), np.float32), np.ones((2, 3, 5), np.float32), np.ones((2, 3, 4), np.float32))),
    "attention's mask": ("attention", (*[np.ones((2, 3, 4), np.float32)] * 3, np.ones((3, 2), bool))),
    "target": ("cross_entropy", (np.ones((2, 3), np.float32), np.array([0, 3]))),
    "negative target": ("cross_entropy", (np.ones((2, 3), np.float32), np.array([0, -1]))),
    "no target": ("cross_entropy", (np.ones((2, 3), np.float32), np.array([1, 1]), 1)),
    "no row": ("cross_entropy", (np.ones((0, 3), np.float32), np.zeros(0, int))),
    "word": ("embedding", (np.ones((2, 3), np.float32), np.array([[0, 2]]))),
    "gamma": ("layer_norm", (np.ones((2, 3), np.float32), np.ones(2, np.float32), np.ones(3, np.float32))),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_errors_are_those_of_the_formula(case):
    name, inputs = WRONG[case]
    with pytest.raises(ValueError) as expected, kernels.reference_only():
        getattr(ops, name)(*inputs)
    with pytest.raises(ValueError) as found:
        getattr(ops, name)(*inputs)
    assert str(found.value) == str(expected.value)


# --- the optimizers' loops


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1025,), (7, 11), (300, 301)])
def test_sum_of_squares(shape, rng):
    g = normal(rng, *shape)
    assert cpu.sum_of_squares(g) == pytest.approx(float((g.astype(np.float64) ** 2).sum()), rel=1e-6)
    assert cpu.sum_of_squares(np.asfortranarray(g)) == pytest.approx(cpu.sum_of_squares(g), rel=1e-6)

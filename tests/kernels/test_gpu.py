"""Each twin for CuPy's arrays against its formula: on a GPU, and without one by its kernels compiled for the CPU."""

import inspect
import warnings

from mini_tf import kernels, ops
from mini_tf.backend import to_device, to_host
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.kernels import binding, gpu
from mini_tf.ops.op import all_ops
from mini_tf.twins import check_gpu
from tests.kernels import test_cpu as cases
from tests.kernels.simulator import simulated
from tests.kernels.test_cpu import as_list, in_double, near, normal, of_rows, parameters

import numpy as np
import pytest


class Simulated:
    """NumPy's arrays, and kernels compiled for the CPU"""

    name, library = "simulated", np

    def __init__(self, monkeypatch):
        self.launched = simulated(monkeypatch)

    def call(self, name, *inputs, **options):
        return getattr(gpu, name)(*inputs, **options)

    def to(self, x):
        return x


class OnGPU:
    name = "gpu"

    def __init__(self, monkeypatch):
        import cupy

        self.library, self.launched = cupy, []
        original = gpu.launch
        monkeypatch.setattr(gpu, "launch", lambda kernel, *rest: (self.launched.append(kernel), original(kernel, *rest)))

    def call(self, name, *inputs, **options):
        op = getattr(ops, name)
        assert op.implementation(inputs, options) is getattr(gpu, name)
        return op(*inputs, **options)

    def to(self, x):
        return to_device(x, "gpu") if isinstance(x, np.ndarray) else x


@pytest.fixture(params=[Simulated, pytest.param(OnGPU, marks=pytest.mark.gpu)], ids=["simulated", "gpu"])
def device(request, monkeypatch):
    return request.param(monkeypatch)


def test_every_twin_is_tested():
    twins = {name for name in ops.__all__ if inspect.isfunction(vars(gpu).get(name))}
    assert twins == {*cases.OF_ROWS, "attention"} == {name for name in ops.__all__ if kernels.twin_of(getattr(ops, name), "cupy")}


def test_a_twin_has_the_signature_of_its_op():
    for op in all_ops():
        if twin := kernels.twin_of(op, "cupy"):
            assert parameters(twin) == parameters(op)


def agree(device, name, rng, *inputs, change=lambda xp, x: x, **options):
    """Twin and formula agree in values and gradients; repeated calls of the twin agree bit for bit.

    change(xp, x): another layout of the same numbers, for the twin
    """

    def given(x):
        return change(device.library, device.to(x)) if isinstance(x, np.ndarray) else x

    arguments, named = list(map(given, inputs)), {key: given(x) for key, x in options.items()}
    before = [to_host(x).copy() if isinstance(x, device.library.ndarray) else x for x in arguments]
    y, backward = device.call(name, *arguments, **named)
    exact = [in_double(x) for x in inputs], {key: in_double(x) for key, x in options.items()}
    y_exact, backward_exact = getattr(ops, name).formula(*exact[0], **exact[1])
    near(y, y_exact)
    dy = normal(rng, *y.shape) if y.ndim else 0.7
    gradients, expected = as_list(backward(given(dy))), as_list(backward_exact(np.asarray(dy, np.float64)))
    assert len(gradients) == len(expected)
    for d, d_exact in zip(gradients, expected):
        assert (d is None) == (d_exact is None)
        if d is not None:
            near(d, d_exact)
    y_again, backward_again = device.call(name, *arguments, **named)
    same(y_again, y)
    for _ in range(2):
        for d, d_again in zip(gradients, as_list(backward_again(given(dy)))):
            assert (d is None) == (d_again is None)
            if d is not None:
                same(d, d_again)
    for x, x_before in zip(arguments, before):
        if isinstance(x, device.library.ndarray):
            same(x, x_before)


def same(x, y):
    """Bit for bit"""
    np.testing.assert_array_equal(to_host(x), to_host(y))


@pytest.mark.parametrize("shape", cases.SHAPES, ids=str)
@pytest.mark.parametrize("name", cases.OF_ROWS)
def test_twins_agree_with_their_formulas(device, name, shape, rng):
    if name == "cross_entropy" and 0 in shape:
        pytest.skip("no row: an error, in the test of what is left to the formula")
    if shape == cases.LARGE and device.name == "simulated":
        shape = 3, 5, 700                                # more than one block's worth of threads in a row
    options = {"eps": 0.1} if "norm" in name else {}       # with one number in a row, r = 1/√ε magnifies rounding
    agree(device, name, rng, *of_rows(name, rng, shape), **options)


VIEWS = {
    "every second": lambda xp, x: xp.stack([x, x], axis=-1).reshape(*x.shape[:-1], 2 * x.shape[-1])[..., ::2],
    "Fortran order": lambda xp, x: xp.asfortranarray(x),
    "reversed": lambda xp, x: xp.ascontiguousarray(x[..., ::-1])[..., ::-1],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", cases.OF_ROWS)
def test_arrays_may_be_views(device, name, view, rng):
    agree(device, name, rng, *of_rows(name, rng, (4, 6, 5)), change=lambda xp, x: VIEWS[view](xp, x) if x.ndim else x)


@pytest.mark.parametrize("name", [*cases.OF_ROWS, "attention"])
def test_dy_may_be_double_or_broadcast_or_a_number(device, name, rng):
    inputs = normal(rng, 3, 4, 6, 5) if name == "attention" else of_rows(name, rng, (4, 6, 5))
    y, backward = device.call(name, *map(device.to, inputs))
    xp, dy = device.library, device.to(np.asarray(normal(rng, *y.shape)))
    others = [(dy.astype(np.float64), dy), (0.5, xp.full_like(y, 0.5)), (1, xp.ones_like(y)), (np.float32(2), xp.full_like(y, 2))]
    if y.ndim:
        others += [(xp.broadcast_to(dy[:1], y.shape), xp.broadcast_to(dy[:1], y.shape).copy()), (dy[0], xp.stack([dy[0]] * 4))]
    for other, full in others:
        for d, d_expected in zip(as_list(backward(other)), as_list(backward(full))):
            if d is not None:
                assert d.dtype == np.float32
                np.testing.assert_allclose(to_host(d), to_host(d_expected), rtol=1e-5, atol=1e-6)
    if y.ndim:
        for wrong in (None, xp.ones((3, 1, 7, 1, 5), np.float32)):
            with pytest.raises((TypeError, ValueError)):
                backward(wrong)


# --- attention and masks


@pytest.mark.parametrize("mask", cases.MASKS)
@pytest.mark.parametrize("bias", [None, (5, 5), (3, 5, 5), (6, 3, 5, 5), (1,)], ids=str)
def test_attention(device, mask, bias, rng):
    def heads(xp, x):
        """As a layer splits them: (B, T, H, m), with two axes swapped"""
        return xp.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) if x.shape == (6, 3, 5, 4) else x

    query, key, value = normal(rng, 3, 6, 3, 5, 4)
    options = {} if bias is None else {"bias": normal(rng, *bias)}
    agree(device, "attention", rng, query, key, value, cases.MASKS[mask], change=heads, scale=0.7, **options)


@pytest.mark.parametrize("scale", [3, 1.0, 0.0, -0.5])
def test_attention_of_other_scales(device, scale, rng):
    agree(device, "attention", rng, *normal(rng, 3, 6, 5, 4), np.tri(5, dtype=bool), scale=scale)
    agree(device, "attention", rng, *normal(rng, 3, 6, 5, 4), scale=scale)


SIZES = [(1, 7, 3, 5), (7, 1, 3, 2), (33, 65, 17, 9), (40, 40, 33, 64), (2, 0, 3, 4), (0, 2, 3, 4), (3, 4, 0, 2), (3, 4, 2, 0)]


@pytest.mark.parametrize(("Tq", "Tk", "m", "d"), SIZES)
def test_attention_of_other_sizes(device, Tq, Tk, m, d, rng):
    query, key, value = normal(rng, 4, Tq, m), normal(rng, 4, Tk, m), normal(rng, 4, Tk, d)
    if Tk:                                               # without a mask or a key, the formula's largest score fails
        agree(device, "attention", rng, query, key, value)
        agree(device, "attention", rng, query[0], key[0], value[0])
    agree(device, "attention", rng, query, key, value, np.tri(Tq, Tk, dtype=bool))
    agree(device, "attention", rng, query, key, value, np.tri(Tq, Tk, dtype=bool), change=VIEWS["Fortran order"])


def test_attention_hides_keys_whose_bias_is_minus_infinity(device, rng):
    bias = np.where(rng.random((5, 5)) < 0.5, -np.inf, 0).astype(np.float32)
    bias[2] = -np.inf
    agree(device, "attention", rng, *normal(rng, 3, 6, 5, 4), bias=bias)


def test_masked_softmax_broadcasts_its_mask(device, rng):
    z = normal(rng, 6, 3, 5, 5)
    for mask in cases.MASKS.values():
        if mask is not None:
            agree(device, "masked_softmax", rng, z, mask)
    agree(device, "masked_softmax", rng, z, np.array(True))


# --- other options of the ops


def test_linear_without_bias(device, rng):
    x, W = normal(rng, 3, 7, 5), normal(rng, 5, 70)
    agree(device, "linear", rng, x, W)
    agree(device, "linear", rng, x, W, change=VIEWS["Fortran order"])
    agree(device, "linear", rng, normal(rng, 3, 0), normal(rng, 0, 4), normal(rng, 4))


def test_a_tables_gradient_has_the_tables_layout(device, rng):
    table = device.to(normal(rng, 50, 8))
    _, backward = device.call("linear", device.to(normal(rng, 4, 8)), table.T)
    assert backward(device.to(normal(rng, 4, 50)))[1].T.flags.c_contiguous


def test_gelu_by_tanh(device, rng):
    agree(device, "gelu", rng, 4 * normal(rng, 40, 41), approximate=True)


@pytest.mark.parametrize("halves", [False, True])
def test_rotary_of_heads_as_a_layer_splits_them(device, halves, rng):
    def split(xp, x):
        return xp.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)

    heads = normal(rng, 3, 4, 5, 6)
    agree(device, "rotary", rng, heads, first=3, base=100.0, halves=halves, change=split)
    agree(device, "rotary", rng, heads, first=10**6, halves=halves)      # φ in float32 would be off by 1/16
    y, backward = device.call("rotary", split(device.library, device.to(heads)))
    for joined in (y, backward(y)):
        assert joined.swapaxes(1, 2).flags.c_contiguous                  # so that they are joined without a copy


def test_mean_pool_of_all_words_of_some_and_of_none(device, rng):
    agree(device, "mean_pool", rng, normal(rng, 5, 4))
    agree(device, "mean_pool", rng, normal(rng, 2, 3, 4), np.array([[False] * 3, [True, False, True]]))


def test_cross_entropy_ignores_and_smooths(device, rng):
    targets = np.array([[0, 8, 3], [3, 3, 3], [1, 2, 3], [3, 0, 0]])
    agree(device, "cross_entropy", rng, normal(rng, 4, 3, 9), targets, ignore=3, smoothing=0.2)
    agree(device, "cross_entropy", rng, normal(rng, 3, 9), np.array([2, -1, 4], np.int8), ignore=-1)
    agree(device, "cross_entropy", rng, *cases.forbidden_words(rng), ignore=3)
    agree(device, "cross_entropy", rng, normal(rng, 3, 900), np.array([2, 899, 0]), smoothing=0.1)


def test_a_loss_may_be_scaled_by_a_number_on_the_device(device, rng):
    inputs = of_rows("cross_entropy", rng, (4, 6))
    _, backward = device.call("cross_entropy", *map(device.to, inputs))
    dz = backward(device.to(np.array(0.5, np.float32)))[0]
    np.testing.assert_allclose(to_host(dz), to_host(backward(0.5)[0]), rtol=1e-6)


def test_embedding_takes_every_integer(device, rng):
    table = normal(rng, 70, 33)
    for dtype in (np.int64, np.int32, np.uint8):
        agree(device, "embedding", rng, table, rng.integers(0, 70, (9, 5)).astype(dtype))
    agree(device, "embedding", rng, table, np.zeros((700, 2), int))      # one word, very often
    agree(device, "embedding", rng, normal(rng, 3, 300), rng.integers(0, 3, 500))


@pytest.mark.parametrize("absent", [-1, 3])
def test_embedding_of_absent_words(device, absent, rng):
    table = normal(rng, 70, 33)
    ids = np.where(rng.random((9, 5)) < 0.3, absent, rng.integers(0, 70, (9, 5)))
    agree(device, "embedding", rng, table, ids, absent=absent)
    table[max(absent, 0)] = np.nan                       # a vector that nobody looks up
    agree(device, "embedding", rng, table, np.full((2, 3), absent), absent=absent)


# --- the contract


def test_what_the_formula_refuses_on_the_cpu_is_nan_or_left_to_it(device, rng):
    z, table = device.to(normal(rng, 3, 5)), device.to(normal(rng, 5, 4))
    for bad in (5, -1, 10**12):
        ids = device.to(np.array([1, bad, 2]))
        assert np.isnan(to_host(device.call("cross_entropy", z, ids)[0]))
        x = to_host(device.call("embedding", table, ids)[0])
        assert np.isnan(x[1]).all()
        assert not np.isnan(x[[0, 2]]).any()
    assert np.isnan(to_host(device.call("cross_entropy", z, device.to(np.ones(3, int)), ignore=1)[0]))
    nothing = z[:, :0]
    for twin, arguments in [
        (gpu.cross_entropy, (z[:0], device.to(np.zeros(0, int)))), (gpu.cross_entropy, (nothing, device.to(np.zeros(3, int)))),
        (gpu.cross_entropy, (z, device.to(np.zeros(3, int)), None, 1.0)), (gpu.layer_norm, (nothing, nothing[0], nothing[0])),
        (gpu.mean_pool, (z[:0],)), (gpu.dropout, (z, z > 0, 1.0)), (gpu.masked_softmax, (z, z[:, :2] > 0)),
        (gpu.masked_softmax, (z.reshape(1, 1, 1, 3, 5), z > 0)), (gpu.attention, (z, z, z, None, z[0, 0])),
        (gpu.rms_norm, (nothing, nothing[0])), (gpu.rotary, (z,)), (gpu.rotary, (table, 0, 0.0)), (gpu.rotary, (table, z[0, 0])),
        (gpu.rotary, (z.reshape(1, 1, 1, 5, 3)[..., :2],)),
    ]:  # fmt: skip
        assert twin(*arguments) is NotImplemented


def test_a_gradient_of_the_host_is_refused(device, monkeypatch, rng):
    """A kernel would take its numbers for a pointer."""
    if device.name == "simulated":
        monkeypatch.setattr(gpu, "HOST", np.ndarray)
    for name in ("relu", "linear", "cross_entropy"):
        y, backward = device.call(name, *map(device.to, of_rows(name, rng, (3, 4))))
        with pytest.raises(TypeError, match="dy is on the cpu, expected a gradient of shape .* on the GPU"):
            backward(np.ones(y.shape, np.float32))


@pytest.mark.parametrize("special", cases.SPECIAL)
@pytest.mark.parametrize("name", cases.OF_SPECIAL)
def test_special_numbers_come_out_as_in_the_formula(device, name, special, rng):
    if device.name == "gpu" and special == 1e-45 and "relu" in name:
        pytest.skip("CuPy has kernels compiled with -ftz=true: such a number counts as 0")
    cases.check_special_numbers(name, special, rng, device.call, device.to)


LAUNCHES = {                                             # forward, backward
    "relu": (1, 1), "gelu": (1, 1), "softmax": (1, 1), "residual_relu": (1, 1), "layer_norm": (1, 1), "masked_softmax": (1, 1),
    "dropout": (1, 1), "cross_entropy": (2, 1), "embedding": (1, 1), "mean_pool": (1, 1), "attention": (1, 2),
    "silu": (1, 1), "swiglu": (1, 1), "rms_norm": (1, 1), "rotary": (1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(device, name, rng):
    """linear has, besides its products, one for the bias and one for its gradient."""
    inputs = normal(rng, 3, 4, 6, 5) if name == "attention" else of_rows(name, rng, (4, 6))
    y, backward = device.call(name, *map(device.to, inputs))
    forward = len(device.launched)
    backward(device.to(normal(rng, *y.shape)) if y.ndim else 1.0)
    assert (forward, len(device.launched) - forward) == LAUNCHES[name]


# --- what is read is what runs


@pytest.mark.gpu
def test_on_a_gpu_the_edited_formula_runs(monkeypatch, rng):
    x = to_device(normal(rng, 3, 5), "gpu")
    expected = ops.relu.formula(x)[0]
    assert ops.relu.implementation((x,), {}) is gpu.relu
    assert ops.relu.implementation((x.astype(np.float64),), {}) is ops.relu.formula
    with kernels.reference_only():
        assert ops.relu.implementation((x,), {}) is ops.relu.formula
    monkeypatch.setitem(binding.FINGERPRINTS, "ops.activations.relu", {"relu": "another"})
    kernels.forget(ops.relu)
    try:
        with pytest.warns(kernels.FormulaEdited, match="relu was edited: the formula runs"):
            assert ops.relu.implementation((x,), {}) is ops.relu.formula
        same(ops.relu(x)[0], expected)
    finally:
        kernels.forget(ops.relu)


def test_an_edit_switches_off_the_twins_of_both_libraries(monkeypatch):
    monkeypatch.setitem(binding.FINGERPRINTS, "ops.activations.relu", {"relu": "another"})
    kernels.forget(ops.relu)
    try:
        for library in binding.TWINS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", kernels.FormulaEdited)
                assert kernels.twin_of(ops.relu, library) is None
            with kernels.with_twins(even_if_edited=True):
                assert kernels.twin_of(ops.relu, library) is not None
    finally:
        kernels.forget(ops.relu)


def test_gradcheck_compares_the_twins(monkeypatch, rng):
    """`mini-tf gradcheck --bind-twins` does so on a GPU; here the kernels run on the CPU."""
    launched = simulated(monkeypatch)
    monkeypatch.setitem(binding.TWINS, "numpy", binding.TWINS["cupy"])
    assert check_gpu(EXAMPLES, rng, "cpu") == []
    assert {"layer_norm_backward", "attention_backward_of_keys", "cross_entropy_backward", "embedding"} <= set(launched)
    right = gpu.layer_norm
    monkeypatch.setattr(gpu, "layer_norm", lambda x, gamma, beta, eps=1e-5: right(x, gamma, 1.01 * beta, eps))
    with kernels.with_twins():                           # looks them up anew
        findings = check_gpu(EXAMPLES, rng, "cpu")
    assert len(findings) == 1
    assert "with the twins of layer_norm, on the GPU, in mini_tf/kernels, y at [" in findings[0]


@pytest.mark.gpu
def test_gradcheck_compares_the_twins_on_a_gpu(rng):
    assert check_gpu(EXAMPLES, rng) == []

"""What the ops compute, compared with the same formulas written another way, and with HIPS autograd's derivatives."""

import math

from mini_tf import ops
from mini_tf.gradcheck import gradcheck

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import make_vjp
from autograd.scipy.special import erf, logsumexp
from scipy.special import log_softmax, softmax


def test_linear_on_a_product_worked_by_hand():
    # CS685's softmax layer: the first product is 1.2·(−2.3) − 0.3·0.9 + 0.9·5.4 ≈ 1.8
    x, W = np.array([[-2.3, 0.9, 5.4]]), np.array([[1.2], [-0.3], [0.9]])
    y, _ = ops.linear(x, W)
    assert y.item() == pytest.approx(1.83)


def test_softmax_equals_scipys_and_survives_large_numbers(rng):
    z = 5 * rng.standard_normal((4, 6))
    np.testing.assert_allclose(ops.softmax(z)[0], softmax(z, -1), rtol=1e-12)
    np.testing.assert_allclose(ops.softmax(np.array([[1e4, 1e4, -1e4]]))[0], [[0.5, 0.5, 0]])


def test_masked_softmax_is_softmax_of_the_allowed(rng):
    z, mask = rng.standard_normal((2, 3, 5)), rng.random((2, 3, 5)) < 0.6
    mask[..., 0] = True
    y, _ = ops.masked_softmax(z, mask)
    for row, allowed, expected in zip(y.reshape(-1, 5), mask.reshape(-1, 5), z.reshape(-1, 5)):
        np.testing.assert_allclose(row[allowed], softmax(expected[allowed]), rtol=1e-12)
        assert (row[~allowed] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_with_nothing_allowed_is_zero_both_ways(dtype, rng):
    z = rng.standard_normal((3, 4)).astype(dtype)
    z[1, 2] = np.inf                                     # a masked entry may be anything
    y, backward = ops.masked_softmax(z, np.array([[True], [False], [True]]) & np.ones((3, 4), bool))
    dz, _ = backward(np.ones_like(z))
    assert (y[1] == 0).all()
    assert (dz[1] == 0).all()
    np.testing.assert_allclose(y[[0, 2]].sum(-1), 1, rtol=1e-6)


def test_a_query_without_keys_gets_zeros_and_no_gradient(rng):
    q, k, v = (rng.standard_normal((1, 3, 2)) for _ in range(3))
    mask = np.tri(3, dtype=bool)
    mask[0] = False
    y, backward = ops.attention(q, k, v, mask)
    dq, dk, dv, dmask, dbias = backward(rng.standard_normal(y.shape))
    assert (y[0, 0] == 0).all()
    assert (dq[0, 0] == 0).all()
    assert dmask is None
    assert dbias is None
    assert all(np.isfinite(d).all() for d in (y, dq, dk, dv))


def test_a_bias_of_minus_infinity_hides_a_key_and_may_hide_all(rng):
    """As a mask does: zeros for a query that sees nothing, and right gradients for the others."""
    q, k, v, bias = (rng.standard_normal(shape) for shape in [(2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5)])
    mask = rng.random((3, 5)) < 0.7
    mask[1] = False
    hidden = np.where(mask, 0, -np.inf)
    y, backward = ops.attention(q, k, v, bias=bias + hidden)
    by_mask, mask_backward = ops.attention(q, k, v, mask, bias=bias)
    np.testing.assert_allclose(y, by_mask)
    assert (y[:, 1] == 0).all()
    dy = rng.standard_normal(y.shape)
    for d, expected in zip(backward(dy), mask_backward(dy)):
        assert d is None or np.abs(d - expected).max() < 1e-12
    assert (backward(dy)[0][:, 1] == 0).all()

    def hiding(q, k, v, bias):
        y, backward = ops.attention(q, k, v, bias=bias + hidden)
        return y, lambda dy: [d for d in backward(dy) if d is not None]

    assert gradcheck(hiding, q, k, v, bias)


def test_what_has_no_entries(rng):
    """Softmax of nothing is nothing, a product over nothing is 0, a mean of nothing is an error."""
    z = np.zeros((2, 0))
    assert ops.softmax(z)[0].shape == ops.softmax(z)[1](z).shape == (2, 0)
    assert ops.masked_softmax(z, np.array(True))[0].shape == (2, 0)
    y, backward = ops.linear(z, np.zeros((0, 3)), np.ones(3))
    assert y.tolist() == [[1] * 3] * 2
    assert [d.shape for d in backward(y)] == [(2, 0), (0, 3), (3,)]
    y, backward = ops.attention(np.ones((1, 2, 4)), np.ones((1, 0, 4)), np.ones((1, 0, 3)))
    assert (y == np.zeros((1, 2, 3))).all()
    assert [np.shape(d) for d in backward(y)[:3]] == [(1, 2, 4), (1, 0, 4), (1, 0, 3)]
    assert ops.embedding(np.zeros((3, 0)), np.array([1, 2]))[1](z)[0].shape == (3, 0)


def test_causal_attention_does_not_see_the_future(rng):
    q, k, v = (rng.standard_normal((1, 4, 3)) for _ in range(3))
    y, _ = ops.attention(q, k, v, np.tri(4, dtype=bool))
    k2, v2 = k.copy(), v.copy()
    k2[0, 3], v2[0, 3] = 9.0, -9.0
    changed, _ = ops.attention(q, k2, v2, np.tri(4, dtype=bool))
    np.testing.assert_array_equal(changed[0, :3], y[0, :3])
    assert not np.allclose(changed[0, 3], y[0, 3])


def test_cross_entropy_equals_scipys_and_of_equal_logits_is_ln_c(rng):
    logits, targets = 3 * rng.standard_normal((2, 3, 7)), rng.integers(0, 7, (2, 3))
    loss, _ = ops.cross_entropy(logits, targets)
    expected = -np.take_along_axis(log_softmax(logits, -1), targets[..., None], -1).mean()
    assert float(loss) == pytest.approx(expected, rel=1e-12)
    assert float(ops.cross_entropy(np.zeros((5, 14295)), np.arange(5))[0]) == pytest.approx(math.log(14295))


def test_cross_entropy_of_a_certain_mistake_is_finite():
    loss, backward = ops.cross_entropy(np.array([[1000.0, 0.0]]), np.array([1]))
    assert float(loss) == pytest.approx(1000)
    np.testing.assert_allclose(backward()[0], [[1, -1]])


def test_ignored_targets_do_not_count(rng):
    logits, targets = rng.standard_normal((4, 5)), np.array([1, 0, 3, 0])
    loss, backward = ops.cross_entropy(logits, targets, ignore=0)
    alone, alone_backward = ops.cross_entropy(logits[[0, 2]], targets[[0, 2]])
    assert float(loss) == pytest.approx(float(alone))
    dlogits, _ = backward()
    np.testing.assert_allclose(dlogits[[0, 2]], alone_backward()[0])
    assert (dlogits[[1, 3]] == 0).all()


def test_the_ignored_id_need_not_be_a_word(rng):
    logits = rng.standard_normal((2, 5))
    loss, _ = ops.cross_entropy(logits, np.array([2, -1]), ignore=-1)
    assert float(loss) == pytest.approx(float(ops.cross_entropy(logits[:1], np.array([2]))[0]))


def test_layer_norm_brings_rows_to_mean_0_and_variance_1(rng):
    x = 3 + 5 * rng.standard_normal((4, 50))
    y, _ = ops.layer_norm(x, np.ones(50), np.zeros(50))
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(y.std(-1), 1, rtol=1e-5)


def test_embedding_adds_the_gradients_of_repeated_words():
    _, backward = ops.embedding(np.zeros((3, 2)), np.array([[2, 0], [2, 2]]))
    dtable, dids = backward(np.ones((2, 2, 2)))
    assert dtable.tolist() == [[1, 1], [0, 0], [3, 3]]
    assert dids is None


def test_an_absent_word_has_no_vector_and_gets_no_gradient():
    table = np.array([[1.0, 2], [3, 4], [5, 6]])
    x, backward = ops.embedding(table, np.array([[2, -1], [-1, 0]]), absent=-1)
    np.testing.assert_array_equal(x, [[[5, 6], [0, 0]], [[0, 0], [1, 2]]])
    dtable, dids = backward(np.arange(8.0).reshape(2, 2, 2))
    np.testing.assert_array_equal(dtable, [[6, 7], [0, 0], [0, 1]])
    assert dids is None
    with pytest.raises(ValueError, match="embedding: ids has the id -1, expected ids from 0 to 2"):
        ops.embedding(table, np.array([2, -1]))


def test_mean_pool_takes_the_mean_of_the_words_that_count(rng):
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_allclose(ops.mean_pool(x)[0], x.mean(1))
    y, _ = ops.mean_pool(x, np.array([[True, False, True], [False, False, False]]))
    np.testing.assert_allclose(y[0], (x[0, 0] + x[0, 2]) / 2)
    assert (y[1] == 0).all()


def test_max_pool_gives_the_gradient_to_the_first_of_the_largest():
    x = np.array([[[1.0, 5, 2], [3, 5, 2], [3, 4, 2]]])
    y, backward = ops.max_pool(x)
    np.testing.assert_array_equal(y, [[3, 5, 2]])
    np.testing.assert_array_equal(backward(np.array([[7.0, 8, 9]])), [[[0, 8, 9], [7, 0, 0], [0, 0, 0]]])


@pytest.mark.parametrize("T", [1, 2, 5])
def test_product_pool_needs_no_division(rng, T):
    x = rng.standard_normal((2, T, 3))
    x[0, 0, 0] = x[1, :, 1] = 0                          # a word of 0, and nothing but 0
    y, backward = ops.product_pool(x)
    np.testing.assert_allclose(y, x.prod(1))
    dy = rng.standard_normal(y.shape)
    others = [dy * np.delete(x, t, axis=1).prod(1) for t in range(T)]
    np.testing.assert_allclose(backward(dy), np.stack(others, axis=1))


def test_dropout_keeps_the_mean(rng):
    keep = rng.random(200_000) >= 0.3
    y, _ = ops.dropout(np.ones(200_000), keep, 0.3)
    assert y.mean() == pytest.approx(1, abs=0.01)
    assert set(np.round(np.unique(y), 6)) == {0, round(1 / 0.7, 6)}


def test_sigmoid_does_not_overflow():
    np.testing.assert_allclose(ops.sigmoid(np.array([-1000.0, 0.0, 1000.0]))[0], [0, 0.5, 1])


def test_the_tanh_form_of_gelu_is_near_the_exact_one():
    x = np.linspace(-6, 6, 1001)
    error = np.abs(ops.gelu(x, approximate=True)[0] - ops.gelu(x)[0])
    assert 1e-4 < error.max() < 5e-4


def test_rotary_scores_depend_on_the_distance_alone(rng):
    query, key = rng.standard_normal((2, 1, 8))

    def score(position_of_query, position_of_key):
        return (ops.rotary(query, position_of_query)[0] * ops.rotary(key, position_of_key)[0]).sum()

    assert np.isclose(score(7, 3), score(107, 103), rtol=1e-12)
    assert not np.isclose(score(7, 3), score(7, 4))


def test_rotary_in_halves_is_rotary_of_neighbours_sorted(rng):
    x = rng.standard_normal((2, 5, 8))
    order = np.r_[0:8:2, 1:8:2]
    np.testing.assert_array_equal(ops.rotary(x[..., order], halves=True)[0], ops.rotary(x)[0][..., order])


def test_with_as_many_heads_of_keys_grouped_attention_is_attention(rng):
    query, key, value = rng.standard_normal((3, 2, 4, 5, 3))
    np.testing.assert_array_equal(ops.grouped_attention(query, key, value)[0], ops.attention(query, key, value)[0])


def test_relu_and_the_residual_step(rng):
    x, y = np.array([-1.0, 0.0, 2.0]), np.array([5.0, -5.0, 1.0])
    assert ops.relu(x)[0].tolist() == [0, 0, 2]
    assert ops.residual_relu(x, y)[0].tolist() == [4, 0, 3]


def _autograd_attention(q, k, v):
    scores = 0.5 * anp.matmul(q, anp.swapaxes(k, -1, -2)) + anp.where(np.tri(4, dtype=bool), 0.0, -1e30)
    e = anp.exp(scores - anp.max(scores, -1, keepdims=True))
    return anp.matmul(e / anp.sum(e, -1, keepdims=True), v)


def _autograd_layer_norm(x, gamma, beta):
    mean, var = anp.mean(x, -1, keepdims=True), anp.var(x, -1, keepdims=True)
    return gamma * (x - mean) / anp.sqrt(var + 1e-5) + beta


def _autograd_rotary(x):
    angle = np.arange(3, 3 + x.shape[-2])[:, None] * 100.0 ** (-2 * np.arange(x.shape[-1] // 2) / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    return anp.stack(turned, axis=-1).reshape(x.shape)


def _autograd_rnn(x, h, Wx, Wh, b):
    states = []
    for t in range(x.shape[1]):
        h = anp.tanh(anp.dot(x[:, t], Wx) + anp.dot(h, Wh) + b)
        states.append(h)
    return anp.stack(states, axis=1)


TARGETS = np.array([[0, 3], [3, 1]])

ORACLES = {
    "linear": (ops.linear, lambda x, W, b: anp.matmul(x, W) + b, [(2, 3, 4), (4, 5), (5,)]),
    "softmax": (ops.softmax, lambda z: anp.exp(z - logsumexp(z, -1, keepdims=True)), [(2, 3, 5)]),
    "layer_norm": (ops.layer_norm, _autograd_layer_norm, [(2, 3, 6), (6,), (6,)]),
    "attention": (
        lambda q, k, v: ops.attention(q, k, v, np.tri(4, dtype=bool), 0.5), _autograd_attention, [(2, 4, 3)] * 3,
    ),
    "residual_relu": (ops.residual_relu, lambda x, y: x + anp.maximum(y, 0), [(3, 4), (3, 4)]),
    "cross_entropy": (
        lambda z: ops.cross_entropy(z, TARGETS),
        lambda z: anp.mean(logsumexp(z, -1) - z[np.arange(2)[:, None], np.arange(2), TARGETS]), [(2, 2, 5)],
    ),
    "mse": (ops.mse, lambda p, t: anp.mean((p - t) ** 2), [(3, 4), (3, 4)]),
    "gelu": (ops.gelu, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))), [(3, 4)]),
    "silu": (ops.silu, lambda x: x / (1 + anp.exp(-x)), [(3, 4)]),
    "swiglu": (ops.swiglu, lambda gate, x: gate / (1 + anp.exp(-gate)) * x, [(3, 4), (3, 4)]),
    "rms_norm": (ops.rms_norm, lambda x, g: g * x / anp.sqrt(anp.mean(x * x, -1, keepdims=True) + 1e-5), [(2, 3, 6), (6,)]),
    "rotary": (lambda x: ops.rotary(x, 3, 100.0), _autograd_rotary, [(2, 4, 6)]),
    "grouped_attention": (
        lambda q, k, v: ops.grouped_attention(q, k, v, np.tri(4, dtype=bool), 0.5),
        lambda q, k, v: _autograd_attention(q, *(anp.concatenate([x[:1]] * 3 + [x[1:]] * 3) for x in (k, v))),
        [(6, 4, 3), (2, 4, 3), (2, 4, 3)],
    ),
    "sigmoid": (ops.sigmoid, lambda x: 1 / (1 + anp.exp(-x)), [(3, 4)]),
    "embedding": (
        lambda table: ops.embedding(table, TARGETS), lambda table: table[TARGETS], [(5, 3)],
    ),
    "rnn": (ops.rnn, _autograd_rnn, [(2, 4, 3), (2, 5), (3, 5), (5, 5), (5,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", ORACLES)
def test_autograd_agrees(name, rng):
    op, oracle, shapes = ORACLES[name]
    inputs = [rng.standard_normal(shape) for shape in shapes]
    y, backward = op(*inputs)
    dy = rng.standard_normal(np.shape(y)) if np.ndim(y) else 1.3
    gradients = backward(dy)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for i, gradient in zip(range(len(inputs)), gradients):
        vjp, expected_y = make_vjp(oracle, i)(*inputs)
        np.testing.assert_allclose(y, expected_y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(gradient, vjp(dy), rtol=1e-9, atol=1e-12)

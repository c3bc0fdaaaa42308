"""Parameters and layers: names, gradients, initial values, formulas, bad input."""

import os
import sys
import threading

from mini_tf import layers, ops
from mini_tf.errors import UserError
from mini_tf.layers import Decoder, DecoderLayer, Embedding, Layer, Linear, MemoryFreed, Parameter, chain_rule
from mini_tf.layers import layer as layer_module
from mini_tf.layers.positions import fourier_frequencies, geometric_frequencies, positional_encoding

import numpy as np
import pytest


class Net(Layer):
    def __init__(self, rng):
        self.first = Linear(3, 4, rng)
        self.blocks = [Linear(4, 4, rng), Linear(4, 4, rng, bias=False)]
        self.shared = self.first.W
        self.size = 3


def test_parameters_have_dotted_names_in_order_and_shared_ones_appear_once(rng):
    net = Net(rng)
    assert list(net.parameters()) == ["first.W", "first.b", "blocks.0.W", "blocks.0.b", "blocks.1.W"]
    assert net.parameters()["first.W"] is net.shared


def test_a_misspelt_attribute_raises(rng):
    with pytest.raises(AttributeError):
        _ = Net(rng).frist


def test_gradients_add():
    p = Parameter(np.zeros(2))
    assert p.grad is None
    given = np.array([1.0, 2.0])
    p.accumulate(given)
    p.accumulate(given)
    assert p.grad.tolist() == [2, 4]
    assert given.tolist() == [1, 2]                      # the given gradient is not changed
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\), expected the parameter's \(2,\)"):
        p.accumulate(np.zeros(3))


def test_gradients_apart():
    p, q = Parameter(np.zeros(2)), Parameter(np.zeros(3))
    p.accumulate(np.ones(2))
    with layer_module.separate_gradients() as found:
        p.accumulate(np.full(2, 5.0))
        p.accumulate(np.full(2, 7.0))
        q.accumulate(np.ones(3))
        thread = threading.Thread(target=q.accumulate, args=[np.full(3, 3.0)])       # another thread's go into q
        thread.start()
        thread.join()
    assert {id(parameter): gradient.tolist() for parameter, gradient in found.items()} == {id(p): [12, 12], id(q): [1, 1, 1]}
    assert p.grad.tolist() == [1, 1]
    assert q.grad.tolist() == [3, 3, 3]
    q.accumulate(np.ones(3))
    assert q.grad.tolist() == [4, 4, 4]


def test_clear_gradients(rng):
    layer = Linear(3, 2, rng)
    y, backward = layer(rng.standard_normal((4, 3)))
    backward(y)
    assert all(p.grad is not None for p in layer.parameters().values())
    layer.clear_gradients()
    assert all(p.grad is None for p in layer.parameters().values())


def test_a_layer_used_twice_has_two_right_backwards(rng):
    layer = Linear(2, 2, rng, bias=False)
    x1, x2 = np.array([[1.0, 0.0]]), np.array([[0.0, 10.0]])
    _, backward1 = layer(x1)
    _, backward2 = layer(x2)
    backward1(np.array([[1.0, 1.0]]))                    # after the second call, yet for the first input
    np.testing.assert_allclose(layer.W.grad, [[1, 1], [0, 0]])
    backward2(np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(layer.W.grad, [[1, 1], [10, 20]])


def test_chain_rule_runs_in_reverse_and_once():
    order = []
    backward = chain_rule([lambda d: order.append("first") or d + 1, lambda d: order.append("second") or d * 2])
    assert backward(5) == 11
    assert order == ["second", "first"]
    with pytest.raises(MemoryFreed, match="call the forward again"):
        backward(5)


def test_a_backward_that_ended_in_an_error_does_not_go_on_in_the_middle():
    """The steps that have run cannot run again, and the others must not get the first dy."""
    ran = []

    def out_of_memory(d):
        raise MemoryError

    backward = chain_rule([lambda d: ran.append("first") or d, out_of_memory, lambda d: ran.append("third") or d])
    with pytest.raises(MemoryError):
        backward(5)
    with pytest.raises(MemoryFreed, match="or ended in an error.*; clear the gradients and call the forward again"):
        backward(5)
    assert ran == ["third"]


def test_a_decoders_backward_runs_once_even_if_it_ends_in_an_error(rng, monkeypatch):
    layers = [DecoderLayer(4, 1, 4, rng, f=5) for _ in range(3)]
    decoder = Decoder(Embedding(rng.standard_normal((7, 4)).astype(np.float32)), layers, T=3)
    y, backward = decoder(np.array([[1, 2, 3]]), rng.standard_normal((1, 2, 4)).astype(np.float32))
    calls = []

    def out_of_memory(self, gradient):
        calls.append(gradient)
        if len(calls) == 15:
            raise MemoryError

    monkeypatch.setattr(Parameter, "accumulate", out_of_memory)
    with pytest.raises(MemoryError):
        backward(np.ones_like(y))
    with pytest.raises(MemoryFreed, match="ended in an error"):
        backward(np.ones_like(y))
    assert len(calls) == 15


def test_threads_that_share_a_layer_lose_no_gradient(rng):
    """Each adds 1 to every entry of W's gradient and of b's, many times, while Python switches threads often."""
    layer, rounds = Linear(40, 30, dtype=np.float64), 300
    x, dy = np.ones((1, 40)), np.ones((1, 30))
    together = threading.Barrier(4)

    def work():
        together.wait()
        for _ in range(rounds):
            layer(x)[1](dy)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert (layer.W.grad == 4 * rounds).all()
    assert (layer.b.grad == 4 * rounds).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_gradients_add_up_after_a_fork():
    """Whoever held the lock is not in the child."""
    p = Parameter(np.zeros(3))
    with layer_module._lock:
        child = os.fork()
        if child == 0:
            p.accumulate(np.ones(3))
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_initial_weights_keep_the_variance(rng):
    y, _ = Linear(400, 300, rng)(rng.standard_normal((200, 400)))
    assert y.var() == pytest.approx(1, rel=0.05)
    assert not Linear(4, 3).W.data.any()                 # without an rng: zeros


def test_absent_words_are_zero_vectors_and_get_no_gradient(rng):
    layer = layers.Embedding(rng.standard_normal((4, 3)))
    x, backward = layer(np.array([[-1, 2], [0, -1]]))
    assert not x[0, 0].any()
    assert not x[1, 1].any()
    np.testing.assert_array_equal(x[0, 1], layer.table.data[2])
    backward(np.ones((2, 2, 3)))
    assert layer.table.grad.sum(-1).tolist() == [3, 0, 3, 0]


def test_fixed_embeddings_have_no_gradient(rng):
    layer = layers.Embedding(rng.standard_normal((4, 3)), trainable=False)
    x, backward = layer(np.array([[1, 2]]))
    backward(x)
    assert layer.table.grad is None


def test_ids_out_of_range_are_named(rng):
    layer = layers.Embedding(rng.standard_normal((4, 3)))
    with pytest.raises(ValueError, match="ids has the id -2"):
        layer(np.array([[-2, 1]]))


def test_dropout_needs_an_rng_to_drop(rng):
    layer = layers.Dropout(0.5)
    x = np.ones((50, 50))
    assert layer(x)[0] is x
    y, backward = layer(x, rng)
    assert 0.4 < (y == 0).mean() < 0.6
    np.testing.assert_array_equal(backward(x), y)        # the same mask both ways
    with pytest.raises(ValueError, match="rate is 1"):
        layers.Dropout(1)


def test_positional_encoding_is_the_labs_formula():
    T, n, alpha = 6, 4, [1.0, 2.5]
    P = positional_encoding(T, n, alpha)
    for t in range(T):
        for i in range(1, n // 2 + 1):
            assert P[t, 2 * i - 2] == pytest.approx(np.cos(2 * np.pi * alpha[i - 1] * t / T))
            assert P[t, 2 * i - 1] == pytest.approx(np.sin(2 * np.pi * alpha[i - 1] * t / T))


def test_geometric_frequencies_are_vaswanis_for_every_T():
    for T in (8, 32):
        P = positional_encoding(T, 6, geometric_frequencies(T, 6))
        for t in range(T):
            for i in range(3):
                assert P[t, 2 * i + 1] == pytest.approx(np.sin(t / 10000 ** (2 * i / 6)))


def test_fourier_frequencies_with_n_equal_T_are_the_fourier_basis():
    P = positional_encoding(8, 8, fourier_frequencies(8, 8))
    gram = P.T @ P
    off_diagonal = gram - np.diag(np.diag(gram))
    assert np.abs(off_diagonal).max() < 1e-9


def test_positions_that_do_not_fit_are_named():
    with pytest.raises(UserError, match="n is 5, expected an even n"):
        positional_encoding(4, 5, [1, 2])
    with pytest.raises(UserError, match="'sinus' is unknown, expected one of geometric, fourier"):
        layers.PositionalEncoding(4, 4, "sinus")


def test_heads_are_independent_and_summed(rng):
    """Multi-head attention is the sum of the lab's heads, each computed by itself."""
    n, H, m, T = 5, 3, 2, 4
    layer = layers.MultiHeadAttention(n, H, m, rng, dtype=np.float64)
    X = rng.standard_normal((1, T, n))
    Y, _ = layer(X)
    expected = np.zeros((T, n))
    for h in range(H):
        Q, K, V = (part.W.data[:, h * m : (h + 1) * m] for part in (layer.query, layer.key, layer.value))
        W = layer.output.W.data[h * m : (h + 1) * m]
        scores = (X[0] @ Q) @ (X[0] @ K).T
        A = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        expected += A @ (X[0] @ V) @ W
    np.testing.assert_allclose(Y[0], expected, rtol=1e-10)


def test_a_transformer_layer_is_equation_15_and_then_the_norm(rng):
    layer = layers.TransformerLayer(4, 2, 3, rng, norm="after", dtype=np.float64)
    x = rng.standard_normal((2, 3, 4))
    attended, _ = layer.attention(x)
    z = x + np.maximum(attended, 0)
    y, _ = layer(x)
    np.testing.assert_allclose(y, (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5), rtol=1e-9)


def test_dropout_inside_a_layer_has_a_right_gradient(rng):
    from mini_tf.gradcheck import gradcheck

    layer = layers.TransformerLayer(4, 2, 3, rng, dropout=0.5)

    def with_dropout(x):
        return layer(x, None, np.random.default_rng(3))  # the same masks each time

    assert gradcheck(with_dropout, rng.standard_normal((2, 3, 4)), params=layer.parameters())


def test_training_leaves_the_callers_table_alone(rng):
    """Optimizers update parameters in place; the given word vectors may serve a second model."""
    table = rng.standard_normal((4, 3))
    before = table.copy()
    layer = layers.Embedding(table)
    layer.table.data -= 1
    np.testing.assert_array_equal(table, before)


def test_a_gate_decides_what_passes_feed_forward(rng):
    x, layer = rng.standard_normal((2, 3, 4)), layers.FeedForward(4, 5, rng, np.float64, "swiglu", bias=False)
    assert list(layer.parameters()) == ["inner.W", "gate.W", "outer.W"]
    layer.outer.W.data[...] = rng.standard_normal((5, 4))
    gate, up = x @ layer.gate.W.data, x @ layer.inner.W.data
    np.testing.assert_allclose(layer(x)[0], gate / (1 + np.exp(-gate)) * up @ layer.outer.W.data, rtol=1e-12)


def test_attention_with_fewer_heads_of_keys(rng):
    x, causal = rng.standard_normal((2, 3, 4)), np.tri(3, dtype=bool)
    grouped = layers.MultiHeadAttention(4, 4, 2, rng, dtype=np.float64, G=2, rotary=10.0)
    full = layers.MultiHeadAttention(4, 4, 2, rng, dtype=np.float64, rotary=10.0)
    for name in ("query", "output"):
        getattr(full, name).W.data = getattr(grouped, name).W.data
    for name in ("key", "value"):                        # each head of keys stands twice
        getattr(full, name).W.data = getattr(grouped, name).W.data.reshape(4, 2, 2).repeat(2, axis=1).reshape(4, 8)
    np.testing.assert_allclose(grouped(x, causal)[0], full(x, causal)[0], rtol=1e-12)
    with pytest.raises(ValueError, match="H = 4 heads of queries and G = 3 of keys"):
        layers.MultiHeadAttention(4, 4, 2, rng, G=3)


def test_feed_forward_has_relu_or_one_of_two_gelus(rng):
    x = rng.standard_normal((2, 3, 4))
    for activation, op in (("relu", ops.relu), ("gelu", ops.gelu), ("gelu_tanh", lambda x: ops.gelu(x, approximate=True))):
        layer = layers.FeedForward(4, 5, rng, np.float64, activation)
        layer.outer.W.data[...] = rng.standard_normal((5, 4))
        h, _ = op(x @ layer.inner.W.data)
        np.testing.assert_allclose(layer(x)[0], h @ layer.outer.W.data, rtol=1e-12)
    with pytest.raises(ValueError, match="activation 'swish' is unknown, expected relu, gelu, gelu_tanh or swiglu"):
        layers.FeedForward(4, 5, rng, activation="swish")

"""LSTM, GRU and additive attention: against PyTorch from given states, and what their formulas promise."""

from mini_tf import ops

import numpy as np
import pytest

B, T, n, k = 3, 5, 4, 6
PRESENT = np.arange(T) < np.array([[5], [2], [3]])


def drawn(rng, *shapes):
    return [rng.standard_normal(shape) for shape in shapes]


def lstm_arguments(rng):
    return drawn(rng, (B, T, n), (B, k), (B, k), (n, 4 * k), (k, 4 * k), (4 * k,))


def gru_arguments(rng):
    return drawn(rng, (B, T, n), (B, k), (n, 3 * k), (k, 3 * k), (3 * k,), (k,))


def assert_gradients_are(theirs, gradients):
    """Each of ours is PyTorch's, to 1e-12; transposed where PyTorch has weights (out, in)"""
    for tensor, d in zip(theirs, gradients):
        expected = tensor.grad.numpy()
        np.testing.assert_allclose(d, expected.T if d.shape != expected.shape else expected, atol=1e-12)


def test_lstm_from_given_states_is_pytorchs(rng):
    """With a loss that depends on all h and on the last cell."""
    torch = pytest.importorskip("torch")
    inputs = lstm_arguments(rng)
    hc, backward = ops.lstm(*inputs)
    dhc = np.zeros_like(hc)
    dhc[0], dhc[1, :, -1] = drawn(rng, (B, T, k), (B, k))
    x, h0, c0, Wx, Wh, b = (torch.tensor(a, requires_grad=True) for a in inputs)
    cell = (Wx.T.contiguous(), Wh.T.contiguous(), b, torch.zeros_like(b))
    h, _, c = torch.lstm(x, (h0[None], c0[None]), cell, True, 1, 0.0, False, False, True)
    ((h * torch.tensor(dhc[0])).sum() + (c[0] * torch.tensor(dhc[1, :, -1])).sum()).backward()
    np.testing.assert_allclose(hc[0], h.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(hc[1, :, -1], c[0].detach().numpy(), atol=1e-12)
    assert_gradients_are((x, h0, c0, Wx, Wh, b), backward(dhc))


def test_gru_from_a_given_state_is_pytorchs(rng):
    torch = pytest.importorskip("torch")
    inputs = gru_arguments(rng)
    y, backward = ops.gru(*inputs)
    (dh,) = drawn(rng, y.shape)
    x, h0, Wx, Wh, b, b_g = (torch.tensor(a, requires_grad=True) for a in inputs)
    second = torch.cat([torch.zeros(2 * k, dtype=torch.float64), b_g])
    h, _ = torch.gru(x, h0[None], (Wx.T.contiguous(), Wh.T.contiguous(), b, second), True, 1, 0.0, False, False, True)
    (h * torch.tensor(dh)).sum().backward()
    np.testing.assert_allclose(y, h.detach().numpy(), atol=1e-12)
    assert_gradients_are((x, h0, Wx, Wh, b, b_g), backward(dh))


@pytest.mark.parametrize("masked", [False, True])
def test_additive_attention_is_that_of_pytorchs_autograd(masked, rng):
    torch = pytest.importorskip("torch")
    inputs = drawn(rng, (B, T, n), (B, T + 1, n), (B, T + 1, k), (n,))
    mask = rng.random((B, T, T + 1)) < 0.6
    mask[..., 0] = True
    y, backward = ops.additive_attention(*inputs, mask if masked else None)
    (dy,) = drawn(rng, y.shape)
    query, key, value, v = (torch.tensor(a, requires_grad=True) for a in inputs)
    scores = torch.tanh(query[:, :, None] + key[:, None]) @ v
    if masked:
        scores = scores.masked_fill(~torch.tensor(mask), -torch.inf)
    theirs = torch.softmax(scores, -1) @ value
    (theirs * torch.tensor(dy)).sum().backward()
    np.testing.assert_allclose(y, theirs.detach().numpy(), atol=1e-12)
    assert_gradients_are((query, key, value, v), backward(dy))


@pytest.mark.parametrize(("op", "arguments"), [(ops.lstm, lstm_arguments), (ops.gru, gru_arguments)])
def test_at_padding_the_state_stays_and_nothing_is_learned(op, arguments, rng):
    x, *others = arguments(rng)
    y, backward = op(x, *others, PRESENT)
    changed = np.where(PRESENT[..., None], x, 99)
    np.testing.assert_array_equal(op(changed, *others, PRESENT)[0], y)
    dx = backward(np.ones_like(y))[0]
    assert (dx[~PRESENT] == 0).all()
    states = y.reshape(-1, B, T, k)
    np.testing.assert_array_equal(states[:, 1, 2:], states[:, 1, 1:2].repeat(3, axis=1))


def test_a_forget_gate_of_1_lets_the_gradient_through(rng):
    """Through 40 steps dc is multiplied by nothing but f, here σ(30): no factor, however far. Of a plain network: tanh′·Wh."""
    x, h0, c0, Wx, Wh, b = drawn(rng, (1, 40, n), (1, k), (1, k), (n, 4 * k), (k, 4 * k), (4 * k,))
    b[:k], b[k : 2 * k] = -30, 30                        # i = 0, f = 1, whatever the words are
    Wx[:, : 2 * k], Wh[:, : 2 * k] = 0, 0
    hc, backward = ops.lstm(x, h0, c0, Wx, Wh, b)
    dhc = np.zeros_like(hc)
    dhc[1, :, -1] = 1
    np.testing.assert_allclose(hc[1, :, -1], c0, atol=1e-10)
    np.testing.assert_allclose(backward(dhc)[2], 1, atol=1e-10)


@pytest.mark.parametrize(("op", "arguments"), [(ops.lstm, lstm_arguments), (ops.gru, gru_arguments)])
def test_large_numbers_saturate_the_gates_without_a_warning(op, arguments, rng):
    x, *others = arguments(rng)
    with np.errstate(all="raise"):
        y, backward = op(1e5 * x, *others)
        assert all(d is None or np.isfinite(d).all() for d in (y, *backward(np.ones_like(y))))


def test_what_does_not_fit_is_named(rng):
    x, h0, c0, Wx, Wh, b = lstm_arguments(rng)
    with pytest.raises(ValueError, match="lstm: x has T = 0 words"):
        ops.lstm(x[:, :0], h0, c0, Wx, Wh, b)
    with pytest.raises(ValueError, match="gru: the weights have 24 columns, expected 3·k = 18"):
        ops.gru(x, h0, Wx, Wh, b, np.zeros(k))
    with pytest.raises(ValueError, match="lstm: Wh has shape"):
        ops.lstm(x, h0, c0, Wx, Wh[:, 1:], b)
    with pytest.raises(ValueError, match="additive_attention: key has shape"):
        ops.additive_attention(x, x[..., 1:], x, np.zeros(n))

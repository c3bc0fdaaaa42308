"""LSTM and GRU, stacked, both directions, texts of several lengths: against PyTorch, and what padding must not do."""

from mini_tf.gradcheck import judge
from mini_tf.layers import Linear, gated

import numpy as np
import pytest

B, T, N, K = 3, 5, 4, 6
LENGTHS = np.array([5, 2, 3])
PRESENT = np.arange(T) < LENGTHS[:, None]


def torchs(cell, layers, both):
    torch = pytest.importorskip("torch")
    return torch, {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](
        N, K, num_layers=layers, bidirectional=both, batch_first=True, dtype=torch.float64
    )


def put_into(layer, theirs, suffix):
    """Give the layer PyTorch's weights. Theirs are (gates·k, n), with two biases; a GRU needs the second for g alone."""
    weights = {name: getattr(theirs, f"{name}_{suffix}").detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    layer.Wx.data, layer.Wh.data = weights["weight_ih"].T.copy(), weights["weight_hh"].T.copy()
    second = weights["bias_hh"].copy()
    if isinstance(layer, gated.GRU):
        layer.b_g.data = second[-layer.b_g.data.size :].copy()
        second[-layer.b_g.data.size :] = 0
    layer.b.data = weights["bias_ih"] + second


def agree(layer, theirs, suffix):
    """The layer's gradients are PyTorch's, to 1e-12."""
    grads = {name: getattr(theirs, f"{name}_{suffix}").grad.numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    np.testing.assert_allclose(layer.Wx.grad, grads["weight_ih"].T, atol=1e-12)
    np.testing.assert_allclose(layer.Wh.grad, grads["weight_hh"].T, atol=1e-12)
    np.testing.assert_allclose(layer.b.grad, grads["bias_ih"], atol=1e-12)
    if isinstance(layer, gated.GRU):
        np.testing.assert_allclose(layer.b_g.grad, grads["bias_hh"][-layer.b_g.data.size :], atol=1e-12)


def assert_same_on_packed_texts(torch, theirs, x, dh, h, dx):
    """PyTorch's layer, which skips padding, gives the same h and dx, to 1e-12; its weights get their gradients."""
    their_x = torch.tensor(x, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(their_x, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    their_h, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    (their_h * torch.tensor(dh)).sum().backward()
    np.testing.assert_allclose(h * PRESENT[..., None], their_h.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(dx, their_x.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("cell", gated.CELLS)
def test_two_layers_on_texts_of_several_lengths_are_pytorchs(cell, rng):
    torch, theirs = torchs(cell, 2, both=False)
    stack = [gated.CELLS[cell](size, K, rng, np.float64) for size in (N, K)]
    for number, layer in enumerate(stack):
        put_into(layer, theirs, f"l{number}")
    x, dh = rng.standard_normal((B, T, N)), rng.standard_normal((B, T, K)) * PRESENT[..., None]
    h, backwards = x, []
    for layer in stack:
        states, layer_backward = layer(h, present=PRESENT)
        backwards.append((states, layer_backward))
        h = states[0]
    dx = dh
    for states, layer_backward in reversed(backwards):
        dx = layer_backward(gated.of_h(dx, states))

    assert_same_on_packed_texts(torch, theirs, x, dh, h, dx)
    for number, layer in enumerate(stack):
        agree(layer, theirs, f"l{number}")


@pytest.mark.parametrize("cell", gated.CELLS)
def test_both_directions_on_texts_of_several_lengths_are_pytorchs(cell, rng):
    torch, theirs = torchs(cell, 1, both=True)
    layer = gated.BothDirections(N, 2 * K, rng, cell, np.float64)
    put_into(layer.forwards, theirs, "l0")
    put_into(layer.backwards, theirs, "l0_reverse")
    x, dh = rng.standard_normal((B, T, N)), rng.standard_normal((B, T, 2 * K)) * PRESENT[..., None]
    h, backward = layer(x, PRESENT)
    dx = backward(dh)

    assert_same_on_packed_texts(torch, theirs, x, dh, h, dx)
    agree(layer.forwards, theirs, "l0")
    agree(layer.backwards, theirs, "l0_reverse")


@pytest.mark.parametrize("cell", gated.CELLS)
def test_padding_changes_nothing_and_gets_no_gradient(cell, rng):
    layer = gated.BothDirections(N, 2 * K, rng, cell, np.float64)
    x = rng.standard_normal((B, T, N))
    h, backward = layer(x, PRESENT)
    dx = backward(np.ones_like(h))
    assert (dx[~PRESENT] == 0).all()
    assert (dx[PRESENT] != 0).all()
    for text, length in enumerate(LENGTHS):
        alone, _ = layer(x[text : text + 1, :length])
        np.testing.assert_allclose(h[text, :length], alone[0], atol=1e-15)
        np.testing.assert_array_equal(h[text, length:, :K], np.broadcast_to(h[text, length - 1, :K], (T - length, K)))


@pytest.mark.parametrize("cell", gated.CELLS)
def test_reading_in_two_parts_is_reading_at_once(cell, rng):
    layer = gated.CELLS[cell](N, K, rng, np.float64)
    x = rng.standard_normal((B, T, N))
    whole, _ = layer(x)
    first, _ = layer(x[:, :2])
    second, backward = layer(x[:, 2:], first[:, :, -1])
    np.testing.assert_allclose(np.concatenate([first, second], axis=2), whole, atol=1e-15)
    dx, dstate = backward(np.ones_like(second))
    assert dx.shape == (B, T - 2, N)
    assert dstate.shape == (layer.parts, B, K)


@pytest.mark.parametrize("cell", gated.CELLS)
@pytest.mark.parametrize("present", [None, PRESENT])
def test_gradients_with_a_given_state(cell, present, rng):
    layer = gated.CELLS[cell](N, K, rng, np.float64, start=False)
    state = rng.standard_normal((layer.parts, B, K))
    for parameter in layer.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.7 + 0.1
    report = judge(lambda x, state: layer(x, state, present), rng.standard_normal((B, T, N)), state, params=layer.parameters())
    assert report.verdict == "PASS", report


def test_an_lstm_remembers_at_the_start(rng):
    layer = gated.LSTM(N, K, rng)
    assert (layer.b.data[K : 2 * K] == 1).all()
    assert layer.b.data.sum() == K


def test_what_does_not_fit_is_refused(rng):
    with pytest.raises(ValueError, match="expected a state to start from"):
        gated.GRU(N, K, rng, start=False)(np.zeros((B, T, N), np.float32))
    with pytest.raises(ValueError, match="k is 5, expected an even number"):
        gated.BothDirections(N, 5, rng)
    with pytest.raises(ValueError, match="T = 0 words"):
        gated.LSTM(N, K, rng)(np.zeros((B, 0, N), np.float32))
    layer = gated.LSTM(N, K, rng)
    layer.Wx, layer.Wh, layer.b = (Linear(size, 3 * K, rng).W for size in (N, K, 1))
    with pytest.raises(ValueError, match="18 columns, expected 4·k = 24"):
        layer.b.data = layer.b.data[0]
        layer(np.zeros((B, T, N), np.float32))

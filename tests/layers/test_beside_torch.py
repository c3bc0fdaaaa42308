"""Attention, layers of transformers, and the whole Translator, beside PyTorch's: same weights, outputs, gradients.

PyTorch is a peer and no dependency: without it these tests are skipped. All in float64, so that the only differences
are those of rounding, and a small wrong term cannot hide.
"""

from mini_tf.layers import DecoderLayer, MultiHeadAttention, TransformerLayer
from mini_tf.models import Translator
from mini_tf.training.pair_batches import sentence_batch

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it is only a peer")

from tests.bench import torch_translator  # noqa: E402
from tests.bench.torch_translator import in_our_names  # noqa: E402
from tests.cases import cases  # noqa: E402
from tests.ops.test_beside_torch import turned  # noqa: E402

from torch.nn import functional as F  # noqa: E402

n, H, m, f = 12, 3, 4, 20
B, T, S = 3, 5, 7
CLOSE = {"rtol": 0, "atol": 1e-11}

# Which of T, or S, words are there, for each of the B sentences. No sentence is padding alone: a query that sees no key
# gets zeros in mini_tf, and NaN in PyTorch.
PRESENT = {T: np.arange(T) < np.array([[5], [2], [4]]), S: np.arange(S) < np.array([[3], [7], [1]])}
CAUSAL = np.tri(T, dtype=bool)


def randomize(parameters, rng):
    """No weight, bias, γ or β stays at 0 or 1, where a gradient might be right by accident.

    Vectors stay of size 1, and no softmax is saturated: where it is, the gradient of query and key is almost 0.
    """
    for name, parameter in parameters.items():
        around = 1 if name.endswith("gamma") else 0
        parameter.data[...] = around + n**-0.5 * rng.standard_normal(parameter.data.shape)


def copied(ours, theirs, rng):
    """Random weights, the same for both."""
    randomize(ours.parameters(), rng)
    names = in_our_names(theirs)
    assert set(names) == set(ours.parameters())
    for name, parameter in ours.parameters().items():
        names[name].copy_(torch.from_numpy(parameter.data))


def random(rng, *shape):
    """An array, and the same as a tensor that gets a gradient"""
    array = rng.standard_normal(shape)
    return array, torch.tensor(array, requires_grad=True)


def assert_close(name, ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), **CLOSE, err_msg=name)


def assert_same_gradients(ours, gradients):
    """gradients: PyTorch's, {our name: tensor}"""
    assert set(gradients) == set(ours.parameters())
    for name, parameter in ours.parameters().items():
        # A bias of all keys adds one number to all scores of a query: softmax does not change, and its gradient is 0.
        assert name.endswith("key.b") or abs(parameter.grad).max() > 1e-4, f"{name}: almost 0, nothing is tested"
        assert_close(f"gradient of {name}", parameter.grad, gradients[name])


def gradient(parameter):
    return parameter.grad


def assert_same_results(ours, theirs, result, y_torch, rng, **inputs):
    """Outputs and gradients are the same: result is our (y, backward), inputs are PyTorch's, {"x": tensor, …}."""
    y, backward = result
    dy, dy_torch = random(rng, *y.shape)
    assert_close("y", y, y_torch)
    gradients = backward(dy)
    y_torch.backward(dy_torch)
    for (name, tensor), found in zip(inputs.items(), gradients if len(inputs) > 1 else [gradients], strict=True):
        assert_close(f"d{name}", found, tensor.grad)
    assert_same_gradients(ours, in_our_names(theirs, gradient))


def masks_for(padding, causal, words):
    """Masks as both want them: (ours, True where a word is seen; PyTorch's, True where it is not)"""
    seen, hidden = np.ones((B, 1, 1, words), dtype=bool), {}
    if padding:
        seen = seen & PRESENT[words][:, None, None, :]
        hidden["key_padding_mask"] = torch.from_numpy(~PRESENT[words])
    if causal:
        seen = seen & CAUSAL
        hidden["attn_mask"] = torch.from_numpy(~CAUSAL)
    return (seen if padding or causal else None), hidden


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_self_attention(rng, bias, padding, causal):
    ours = MultiHeadAttention(n, H, m, rng, m**-0.5, np.float64, bias=bias)
    theirs = torch.nn.MultiheadAttention(n, H, bias=bias, batch_first=True, dtype=torch.float64)
    copied(ours, theirs, rng)
    x, x_torch = random(rng, B, T, n)
    mask, masks = masks_for(padding, causal, T)

    y_torch, _ = theirs(x_torch, x_torch, x_torch, need_weights=False, **masks)
    assert_same_results(ours, theirs, ours(x, mask), y_torch, rng, x=x_torch)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_attention_across_sequences_of_other_lengths(rng, bias, padding):
    ours = MultiHeadAttention(n, H, m, rng, m**-0.5, np.float64, bias=bias)
    theirs = torch.nn.MultiheadAttention(n, H, bias=bias, batch_first=True, dtype=torch.float64)
    copied(ours, theirs, rng)
    x, x_torch = random(rng, B, T, n)
    z, z_torch = random(rng, B, S, n)
    mask, masks = masks_for(padding, False, S)

    y_torch, _ = theirs(x_torch, z_torch, z_torch, need_weights=False, **masks)
    assert_same_results(ours, theirs, ours.across(x, z, mask), y_torch, rng, x=x_torch, z=z_torch)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["before", "after"])
def test_encoder_layer(rng, norm, activation, padding):
    ours = TransformerLayer(n, H, m, rng, relu=False, norm=norm, f=f, activation=activation, scale=m**-0.5, bias=True,
                            dtype=np.float64)  # fmt: skip
    theirs = torch.nn.TransformerEncoderLayer(n, H, f, 0.0, activation, batch_first=True, norm_first=norm == "before",
                                              dtype=torch.float64)  # fmt: skip
    copied(ours, theirs, rng)
    x, x_torch = random(rng, B, T, n)
    mask, masks = masks_for(padding, False, T)

    y_torch = theirs(x_torch, src_key_padding_mask=masks.get("key_padding_mask"))
    assert_same_results(ours, theirs, ours(x, mask), y_torch, rng, x=x_torch)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["before", "after"])
def test_decoder_layer(rng, norm, activation, padding):
    ours = DecoderLayer(n, H, m, rng, norm=norm, f=f, activation=activation, scale=m**-0.5, bias=True, dtype=np.float64)
    theirs = torch.nn.TransformerDecoderLayer(n, H, f, 0.0, activation, batch_first=True, norm_first=norm == "before",
                                              dtype=torch.float64)  # fmt: skip
    copied(ours, theirs, rng)
    x, x_torch = random(rng, B, T, n)
    z, z_torch = random(rng, B, S, n)
    mask, masks = masks_for(padding, True, T)
    z_mask, z_masks = masks_for(padding, False, S)

    y_torch = theirs(x_torch, z_torch, tgt_mask=masks["attn_mask"], tgt_key_padding_mask=masks.get("key_padding_mask"),
                     memory_key_padding_mask=z_masks.get("key_padding_mask"))  # fmt: skip
    assert_same_results(ours, theirs, ours(x, z, mask, z_mask), y_torch, rng, x=x_torch, z=z_torch)


def llama_layer(x, W, eps, base):
    """y of Llama's layer by PyTorch's functions, W the weights in our names"""

    def norm(x, name):
        return F.rms_norm(x, (n,), W[f"{name}.gamma"], eps)

    def heads(x, name):
        return (x @ W[f"attention.{name}.W"]).unflatten(-1, (-1, m)).transpose(1, 2)

    z = norm(x, "attention_norm")
    query, key, value = (heads(z, name) for name in ("query", "key", "value"))
    Y = F.scaled_dot_product_attention(turned(query, 0, base), turned(key, 0, base), value, is_causal=True, enable_gqa=True)
    x = x + Y.transpose(1, 2).flatten(-2) @ W["attention.output.W"]
    z = norm(x, "feed_forward_norm")
    h = F.silu(z @ W["feed_forward.gate.W"]) * (z @ W["feed_forward.inner.W"])
    return x + h @ W["feed_forward.outer.W"]


@pytest.mark.parametrize("G", [1, 2, 4])
def test_llama_layer(rng, G):
    ours = TransformerLayer(n, 4, m, rng, relu=False, norm="before", rms=True, eps=1e-6, G=G, rotary=50.0, scale=m**-0.5,
                            f=f, activation="swiglu", plain=True, dtype=np.float64)  # fmt: skip
    randomize(ours.parameters(), rng)
    W = {name: torch.tensor(parameter.data, requires_grad=True) for name, parameter in ours.parameters().items()}
    x, x_torch = random(rng, B, T, n)
    (y, backward), y_torch = ours(x, CAUSAL), llama_layer(x_torch, W, 1e-6, 50.0)
    dy, dy_torch = random(rng, *y.shape)
    y_torch.backward(dy_torch)
    for name, found, theirs in [("y", y, y_torch), ("dx", backward(dy), x_torch.grad)]:
        np.testing.assert_allclose(found, theirs.detach(), rtol=1e-12, atol=1e-12, err_msg=name)
    for name, parameter in ours.parameters().items():
        assert abs(parameter.grad).max() > 1e-4, f"{name}: almost 0, nothing is tested"
        np.testing.assert_allclose(parameter.grad, W[name].grad, rtol=1e-12, atol=1e-12, err_msg=f"gradient of {name}")


@pytest.mark.parametrize("bias", cases([True], [False]))
@pytest.mark.parametrize("tied", cases(["none", "all"], ["readout"]))
@pytest.mark.parametrize("norm", ["before", "after"])
def test_translator(rng, norm, tied, bias):
    """nn.Transformer, with embeddings, positions, readout and loss around it; padding in source and target."""
    words = (11, 11) if tied == "all" else (11, 9)
    ours = Translator(*words, n=n, T=8, L=2, H=H, m=m, f=f, norm=norm, tied=tied, bias=bias, dropout=0.0, smoothing=0.1,
                      dtype="float64")  # fmt: skip
    randomize(ours.parameters(), rng)
    theirs = torch_translator.Translator(ours)
    sources, targets = ([rng.integers(3, 9, length) for length in lengths] for lengths in ((4, 7, 2), (5, 3, 6)))
    batch = sentence_batch(sources, targets)

    loss, backward = ours.loss(batch, rng)               # with an rng there is label smoothing
    loss_torch = theirs.loss(batch)
    assert_close("loss", loss, loss_torch)
    backward()
    loss_torch.backward()
    assert_same_gradients(ours, theirs.in_our_names(gradient))

    theirs.smoothing = 0.0
    assert_close("loss without smoothing", ours.loss(batch)[0], theirs.loss(batch))

"""The ops of today's transformers beside PyTorch's functions: values and gradients, in float64.

PyTorch is a peer and no dependency: without it these tests are skipped.
"""

from mini_tf import ops

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it is only a peer")
from torch.nn import functional as F  # noqa: E402

B, H, G, T, m = 3, 6, 2, 5, 4
CAUSAL = np.tri(T, dtype=bool)


def agree(rng, ours, theirs, *shapes):
    """The same y, and the same gradient of each input: arrays of these shapes, of random numbers"""
    inputs = [rng.standard_normal(shape) for shape in shapes]
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    (y, backward), expected = ours(*inputs), theirs(*tensors)
    dy = rng.standard_normal(y.shape)
    expected.backward(torch.from_numpy(dy))
    gradients = backward(dy)
    found = [d for d in (gradients if isinstance(gradients, tuple) else [gradients]) if d is not None]
    for one, other in zip([y, *found], [expected.detach(), *(x.grad for x in tensors)], strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-12, atol=1e-12)


def test_rms_norm(rng):
    agree(rng, ops.rms_norm, lambda x, gamma: F.rms_norm(x, gamma.shape, gamma, 1e-5), (B, T, m), (m,))


def test_silu(rng):
    agree(rng, ops.silu, F.silu, (B, T, m))


def test_swiglu(rng):
    agree(rng, ops.swiglu, lambda gate, x: F.silu(gate) * x, (B, T, m), (B, T, m))


def angles(x, first, base):
    """φ (T, m/2)"""
    T, m = x.shape[-2:]
    frequencies = base ** (-torch.arange(0, m, 2, dtype=torch.float64) / m)
    return torch.outer(torch.arange(first, first + T, dtype=torch.float64), frequencies)


def turned(x, first, base):
    """As Meta's Llama does it: a pair of neighbours is a complex number, times exp(iφ)"""
    phi = angles(x, first, base)
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(phi), phi)).flatten(-2)


def turned_in_halves(x, first, base):
    """As Hugging Face's Llama does it"""
    a, b = x.chunk(2, -1)
    phi = angles(x, first, base).repeat(1, 2)
    return x * phi.cos() + torch.cat([-b, a], -1) * phi.sin()


@pytest.mark.parametrize(("halves", "theirs"), [(False, turned), (True, turned_in_halves)])
def test_rotary(rng, halves, theirs):
    agree(rng, lambda x: ops.rotary(x, 3, 100.0, halves), lambda x: theirs(x, 3, 100.0), (B, H, T, m))


@pytest.mark.parametrize("mask", [None, CAUSAL], ids=["all words", "causal"])
def test_grouped_attention(rng, mask):
    agree(
        rng, lambda *inputs: ops.grouped_attention(*inputs, mask, 0.7),
        lambda *inputs: F.scaled_dot_product_attention(
            *inputs, None if mask is None else torch.from_numpy(mask), scale=0.7, enable_gqa=True
        ), (B, H, T, m), (B, G, T, m), (B, G, T, m),
    )  # fmt: skip

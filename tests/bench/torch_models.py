"""The timed models in PyTorch, as a user of PyTorch would write them. They start from the weights of mini_tf's."""

from functools import partial

from mini_tf.layers import LearnedPositions, TiedReadout

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {"gelu": F.gelu, "gelu_tanh": partial(F.gelu, approximate="tanh")}


def tensor(array):
    """A copy in PyTorch's own memory: NumPy asks for huge pages, which PyTorch does only when told to."""
    return torch.from_numpy(array).clone(memory_format=torch.contiguous_format)


def linear(W, b=None):
    """nn.Linear with mini_tf's weight (in, out), which PyTorch keeps as (out, in)."""
    layer = nn.Linear(*W.shape, bias=b is not None, device="meta")       # allocates nothing: the numbers come from W and b
    layer.weight = nn.Parameter(tensor(W.T))
    if b is not None:
        layer.bias = nn.Parameter(tensor(b.data))
    return layer


def layer_norm(ours):
    layer = nn.LayerNorm(len(ours.gamma.data))
    layer.weight = nn.Parameter(tensor(ours.gamma.data))
    layer.bias = nn.Parameter(tensor(ours.beta.data)) if ours.beta.trainable else None
    return layer


class Attention(nn.Module):
    """mini_tf.layers.MultiHeadAttention; query, key and value as one product, which is as fast as three.

    mask: added to the scores, if it is not causal
    """

    def __init__(self, ours, causal=True):
        super().__init__()
        self.causal = causal
        self.H, self.m, self.scale = ours.H, ours.m, ours.scale
        self.query_key_value = linear(np.concatenate([ours.query.W.data, ours.key.W.data, ours.value.W.data], axis=1))
        self.output = linear(ours.output.W.data)

    def forward(self, x, mask=None):
        B, T, _ = x.shape
        query, key, value = self.query_key_value(x).view(B, T, 3, self.H, self.m).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(query, key, value, mask, is_causal=self.causal, scale=self.scale)
        return self.output(heads.transpose(1, 2).reshape(B, T, self.H * self.m))


class LabLayer(nn.Module):
    """mini_tf.layers.TransformerLayer as in the lab, with the norm after the sum"""

    def __init__(self, ours):
        super().__init__()
        self.attention = Attention(ours.attention)
        self.norm = layer_norm(ours.attention_norm)

    def forward(self, x):
        return self.norm(x + F.relu(self.attention(x)))


class GPTLayer(nn.Module):
    """mini_tf.layers.TransformerLayer with feed-forward, and the norm before each branch"""

    def __init__(self, ours, causal=True):
        super().__init__()
        self.attention_norm = layer_norm(ours.attention_norm)
        self.attention = Attention(ours.attention, causal)
        self.feed_forward_norm = layer_norm(ours.feed_forward_norm)
        self.inner = linear(ours.feed_forward.inner.W.data, ours.feed_forward.inner.b)
        self.outer = linear(ours.feed_forward.outer.W.data, ours.feed_forward.outer.b)
        self.activation = ACTIVATIONS[ours.feed_forward.activation]

    def forward(self, x, mask=None):
        x = x + self.attention(self.attention_norm(x), mask)
        return x + self.outer(self.activation(self.inner(self.feed_forward_norm(x))))


class Transformer(nn.Module):
    """The model `ours` in PyTorch: a LanguageTransformer with the readout "vec" or "shared", a GPT, or a GPT2 without biases."""

    def __init__(self, ours):
        super().__init__()
        self.T, self.whole = ours.T, getattr(ours, "readout", None) == "vec"     # reads vec(Φ(X)), a whole history
        trunk = ours.trunk
        self.table = nn.Parameter(tensor(trunk.embedding.table.data), trunk.embedding.table.trainable)
        if isinstance(trunk.positions, LearnedPositions):
            self.P = nn.Parameter(tensor(trunk.positions.P.data))
        else:
            self.register_buffer("P", tensor(trunk.positions.P.astype(np.float32)))
        kind = GPTLayer if trunk.layers[0].norm == "before" else LabLayer
        self.layers = nn.Sequential(*map(kind, trunk.layers))
        self.norm = nn.Identity() if trunk.norm is None else layer_norm(trunk.norm)
        self.A = self.table if isinstance(ours.A, TiedReadout) else linear(ours.A.W.data).weight

    def transform(self, histories):
        """Φ(X): (B, T) → (B, T, n)"""
        return self.norm(self.layers(F.embedding(histories, self.table) + self.P[: histories.shape[1]]))

    def forward(self, windows):
        """The loss of a batch of windows (B, T + 1)."""
        Phi, following = self.transform(windows[:, :-1]), windows[:, 1:]
        Phi, following = (Phi.flatten(1), following[:, -1]) if self.whole else (Phi.flatten(0, 1), following.flatten())
        return F.cross_entropy(F.linear(Phi, self.A), following)

    def logits(self, histories):
        """Scores of the word that follows histories (B, T): (B, c)"""
        Phi = self.transform(histories)
        return F.linear(Phi.flatten(1) if self.whole else Phi[:, -1], self.A)


def training_step(ours, preset, compiled, device="cpu"):
    """A function that trains our model's PyTorch version on a batch of windows, and gives the loss.

    device: "cpu" or "gpu"
    """
    model = Transformer(ours).to(name_of(device))
    loss_of = torch.compile(model) if compiled else model
    return step_of(model, preset, lambda windows: loss_of(*sent(device, torch.from_numpy(windows))))


def name_of(device):
    return {"gpu": "cuda"}.get(device, device)


def sent(device, *tensors):
    """The tensors, which may be None, on the device"""
    return [None if tensor is None else tensor.to(name_of(device), non_blocking=True) for tensor in tensors]


def step_of(model, preset, loss_of):
    """A function that trains the model on a batch, whose loss is loss_of(batch), and gives that loss, a tensor."""
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learned, preset.learning_rate, preset.betas, fused=True)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@torch.inference_mode()
def generate(model, prompt, words):
    """Write `words` more words after a prompt of T, always the most probable: an iterator over their ids.

    The histories are those of mini_tf: T words that roll; or, where mini_tf remembers what it has read, T words at most,
    of which the older half is dropped when there are more. Here they are read anew for each word.
    """
    history = torch.from_numpy(prompt)[None]
    for _ in range(words):
        word = model.logits(history).argmax(-1)
        yield word.item()
        if model.whole:
            history = history[:, 1:]
        elif history.shape[1] == model.T:
            history = history[:, model.T - model.T // 2 :]
        history = torch.cat([history, word[:, None]], dim=1)


@torch.inference_mode()
def scores(model, prompt):
    """The scores (1, c) of the first word after the prompt."""
    return model.logits(torch.from_numpy(prompt)[None])

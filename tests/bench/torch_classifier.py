"""The Classifier and the MaskedWordModel in PyTorch, as a user of PyTorch would write them, with mini_tf's weights."""

from mini_tf.layers.embedding import ABSENT
from mini_tf.models import MaskedWordModel

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch_models import GPTLayer, layer_norm, linear, name_of, sent, step_of, tensor


def linear_of(ours):
    return linear(ours.W.data, ours.b)


class Encoder(nn.Module):
    """mini_tf.layers.Encoder with the norm before each branch; the word vectors are trained."""

    def __init__(self, ours):
        super().__init__()
        self.table = nn.Parameter(tensor(ours.embedding.table.data))
        P = None if ours.positions is None else tensor(ours.positions.P.astype(np.float32))
        self.register_buffer("P", P)
        self.layers = nn.ModuleList(GPTLayer(layer, causal=False) for layer in ours.layers)
        self.norm = nn.Identity() if ours.norm is None else layer_norm(ours.norm)

    def forward(self, ids, mask):
        """Φ(X): ids (B, T), mask (B, 1, 1, T), −∞ where there is no word, or None → (B, T, n)

        Padding is read as word 0. No word sees it, so this changes nothing.
        """
        x = F.embedding(ids, self.table)
        if self.P is not None:
            x = x + self.P[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Classifier(nn.Module):
    """mini_tf.models.Classifier that takes the mean over the words"""

    def __init__(self, ours):
        super().__init__()
        if ours.cls is not None:
            raise ValueError("the model reads [CLS], expected one that takes the mean over the words")
        self.encoder = Encoder(ours.trunk)
        self.norms = nn.ModuleList(map(layer_norm, ours.norms))
        self.inner = nn.ModuleList(linear_of(block.inner) for block in ours.blocks)
        self.outer = nn.ModuleList(linear_of(block.outer) for block in ours.blocks)
        self.norm, self.A = layer_norm(ours.norm), linear_of(ours.A)

    def forward(self, ids, mask, weight, labels):
        """The loss of texts ids (B, T); weight (B, 1, T): of each word in the mean"""
        e = (weight @ self.encoder(ids, mask)).squeeze(1)                # (B, n)
        for norm, inner, outer in zip(self.norms, self.inner, self.outer):
            e = e + outer(F.relu(inner(norm(e))))
        return F.cross_entropy(self.A(self.norm(e)), labels)

    def inputs(self, batch):
        """What `forward` reads of a TextBatch"""
        ids, mask = words_and_mask(batch.ids)
        present = batch.ids != ABSENT
        weight = (present / present.sum(1, keepdims=True)).astype(np.float32)[:, None]
        return ids, mask, torch.from_numpy(weight), torch.from_numpy(batch.labels)


class MaskedWords(nn.Module):
    """mini_tf.models.MaskedWordModel; only the hidden words go through the readout, as there."""

    def __init__(self, ours):
        super().__init__()
        self.encoder = Encoder(ours.trunk)
        self.b = nn.Parameter(tensor(ours.A.b.data), ours.A.b.trainable)

    def forward(self, ids, mask, hidden, targets):
        """The loss of texts ids (B, T) in which the words at `hidden`, places in vec(ids), should be `targets`"""
        Phi = self.encoder(ids, mask).flatten(0, 1).index_select(0, hidden)
        return F.cross_entropy(F.linear(Phi, self.encoder.table, self.b), targets)

    def inputs(self, batch):
        """What `forward` reads of a MaskedBatch"""
        hidden = np.flatnonzero(batch.targets != ABSENT)
        return *words_and_mask(batch.ids), torch.from_numpy(hidden), torch.from_numpy(batch.targets.flat[hidden])


def words_and_mask(ids):
    """Tensors: ids (B, T) with 0 for padding, and the mask (B, 1, 1, T) for attention, None if there is no padding"""
    absent = ids == ABSENT
    if not absent.any():
        return torch.from_numpy(ids), None
    mask = np.where(absent, -np.inf, 0).astype(np.float32)[:, None, None]
    return torch.from_numpy(np.maximum(ids, 0)), torch.from_numpy(mask)


def training_step(ours, preset, compiled, device="cpu"):
    """A function that trains our model's PyTorch version on a batch, and gives the loss."""
    model = (MaskedWords if isinstance(ours, MaskedWordModel) else Classifier)(ours).to(name_of(device))
    loss_of = torch.compile(model, dynamic=True) if compiled else model          # each batch has another shape
    return step_of(model, preset, lambda batch: loss_of(*sent(device, *model.inputs(batch))))

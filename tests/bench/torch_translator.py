"""The Translator in PyTorch: nn.Transformer with the weights of mini_tf's, its training step, and its beam search.

`in_our_names` says which of PyTorch's parameters is which of ours; tests/layers/test_beside_torch.py uses it, too.
"""

import warnings

from mini_tf.layers import TiedReadout
from mini_tf.layers.embedding import ABSENT
from mini_tf.text.sentences import EOS, SOS, UNK, padded

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def in_our_names(module, of=lambda parameter: parameter.data):
    """{our name: tensor of our shape} of a module of nn.Transformer; the tensors are views, so they can be written to.

    of: what is wanted of each parameter, itself or its gradient
    """
    if isinstance(module, nn.Linear):                    # PyTorch keeps (out, in), we keep (in, out)
        bias = {} if module.bias is None else {"b": of(module.bias)}
        return {"W": of(module.weight).T, **bias}
    if isinstance(module, nn.LayerNorm):
        return {"gamma": of(module.weight), "beta": of(module.bias)}
    if isinstance(module, nn.MultiheadAttention):        # query, key and value are below each other in one weight
        names = "query", "key", "value"
        found = {f"{name}.W": W.T for name, W in zip(names, of(module.in_proj_weight).chunk(3))}
        if module.in_proj_bias is not None:
            found |= {f"{name}.b": b for name, b in zip(names, of(module.in_proj_bias).chunk(3))}
        return found | _named("output", module.out_proj, of)
    if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        parts = {"attention": module.self_attn, "attention_norm": module.norm1, "feed_forward.inner": module.linear1,
                 "feed_forward.outer": module.linear2, "feed_forward_norm": module.norm2}
        if isinstance(module, nn.TransformerDecoderLayer):
            parts |= {"cross_attention": module.multihead_attn, "cross_attention_norm": module.norm2,
                      "feed_forward_norm": module.norm3}
    elif isinstance(module, nn.TransformerEncoder | nn.TransformerDecoder):
        parts = {f"layers.{k}": layer for k, layer in enumerate(module.layers)}
        if module.norm is not None:
            parts["norm"] = module.norm
    else:
        raise TypeError(f"{type(module).__name__} has no counterpart in mini_tf")
    return {name: x for part, inside in parts.items() for name, x in _named(part, inside, of).items()}


def _named(part, module, of):
    return {f"{part}.{name}": x for name, x in in_our_names(module, of).items()}


class Translator(nn.Module):
    """A mini_tf Translator as a user of PyTorch would write it, with the same weights, in the same precision"""

    def __init__(self, ours):
        super().__init__()
        config, (source_words, target_words) = ours.config, ours.sizes
        n, L, H, self.T, self.smoothing = config["n"], config["L"], config["H"], ours.T, ours.smoothing
        if H * config["m"] != n:
            raise ValueError(f"n = {n}, H = {H}, m = {config['m']}: PyTorch's heads have dimension n/H")
        dtype = getattr(torch, config["dtype"])
        self.scale = n**0.5
        self.source = nn.Embedding(source_words, n, dtype=dtype)
        self.target = self.source if config["tied"] == "all" else nn.Embedding(target_words, n, dtype=dtype)
        self.register_buffer("P", torch.from_numpy(ours.encoder.positions.P).to(dtype))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "enable_nested_tensor")    # an optimization that it cannot use here
            self.transformer = nn.Transformer(n, H, L, L, config["f"], dropout=0.0, batch_first=True, dtype=dtype,
                                              norm_first=config["norm"] == "before")  # fmt: skip
        if config["norm"] == "after":                    # nn.Transformer adds last norms, which Vaswani's has not
            self.transformer.encoder.norm = self.transformer.decoder.norm = None
        if not config["bias"]:                           # of attention; bias=False would take all others away, too
            for module in self.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.in_proj_bias = module.out_proj.bias = None
            self.transformer.encoder.use_nested_tensor = False   # PyTorch's fast path needs biases
        self.readout = nn.Linear(n, target_words, bias=False, dtype=dtype)
        if isinstance(ours.readout, TiedReadout):
            self.readout.weight = self.target.weight
        theirs = self.in_our_names()
        for name, parameter in ours.parameters().items():
            theirs[name].copy_(torch.from_numpy(np.asarray(parameter.data)))

    def in_our_names(self, of=lambda parameter: parameter.data):
        """{our name: tensor of our shape} of all parameters"""
        found = {"encoder.embedding.table": of(self.source.weight)}
        found |= _named("encoder", self.transformer.encoder, of)
        if self.target is not self.source:
            found["decoder.embedding.table"] = of(self.target.weight)
        found |= _named("decoder", self.transformer.decoder, of)
        if self.readout.weight is not self.target.weight:
            found["readout.W"] = of(self.readout.weight).T
        return found

    def vectors(self, embedding, ids, first=0):
        """What the layers read for ids (B, words), −1 for padding, from position `first` on: (B, words, n)

        Padding is read as word 0. No word sees it, so this changes nothing.
        """
        return embedding(ids.clamp(min=0)) * self.scale + self.P[first : first + ids.shape[1]]

    def forward(self, source, target, padding=None):
        """The loss of a batch: source (B, S), target (B, U + 2), padding (B, S), True where source is −1, or None."""
        read = target[:, :-1]
        # In target, padding comes after the words, which do not see it because of the causal mask alone.
        Phi = self.transformer(
            self.vectors(self.source, source), self.vectors(self.target, read),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(read.shape[1], self.P.device, self.P.dtype),
            tgt_is_causal=True, src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return F.cross_entropy(self.readout(Phi).flatten(0, 1), target[:, 1:].flatten(), ignore_index=ABSENT,
                               label_smoothing=self.smoothing)  # fmt: skip

    def loss(self, batch, forward=None, device="cpu"):
        """The loss of a SentenceBatch. forward: this model, compiled"""
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target)
        padding = source == ABSENT
        given = source, target, padding if padding.any() else None
        if device != "cpu":
            from torch_models import sent  # here, because tests, which import this file, would not find it

            given = sent(device, *given)
        return (self if forward is None else forward)(*given)


def training_step(ours, preset, compiled, device="cpu"):
    """A function that trains our Translator's PyTorch version on a SentenceBatch, and gives the loss."""
    from torch_models import name_of, step_of

    model = Translator(ours).to(name_of(device))
    forward = torch.compile(model, dynamic=True) if compiled else model      # each batch has another shape
    return step_of(model, preset, lambda batch: model.loss(batch, forward, device))


class Writer:
    """Writes translations of source (B, S) word by word, k hypotheses of each, and keeps keys and values.

    Those of the words written are (B·k, H, words, m) in each layer; those of the source (B, H, S, m) are computed once
    and serve all k hypotheses.
    """

    def __init__(self, model, source):
        self.model, self.k = model, 1
        padding = source == ABSENT
        self.mask = ~padding[:, None, None, :] if padding.any() else None
        Z = model.transformer.encoder(model.vectors(model.source, source),
                                      src_key_padding_mask=padding if padding.any() else None)  # fmt: skip
        self.layers = list(model.transformer.decoder.layers)
        self.written = [None] * len(self.layers)
        self.read = [heads(attention, Z, slice(1, 3)) for attention in (layer.multihead_attn for layer in self.layers)]

    def scores(self, words):
        """Scores (B, k, c) of what follows one more word of each hypothesis: words (B, k)"""
        B, self.k = words.shape
        past = 0 if self.written[0] is None else self.written[0][0].shape[2]
        x = self.model.vectors(self.model.target, words.reshape(-1, 1), past)
        for number, layer in enumerate(self.layers):
            attended = lambda x, number=number, layer=layer: self.attend(number, layer.self_attn, x)  # noqa: E731
            crossed = lambda x, number=number, layer=layer: self.cross(number, layer.multihead_attn, x)  # noqa: E731
            feed = lambda x, layer=layer: layer.linear2(layer.activation(layer.linear1(x)))  # noqa: E731
            for part, norm in ((attended, layer.norm1), (crossed, layer.norm2), (feed, layer.norm3)):
                x = x + part(norm(x)) if layer.norm_first else norm(x + part(x))
        if self.model.transformer.decoder.norm is not None:
            x = self.model.transformer.decoder.norm(x)
        return self.model.readout(x).view(B, self.k, -1)

    def attend(self, number, attention, x):
        query, *new = heads(attention, x, slice(0, 3))
        old = self.written[number]
        self.written[number] = new if old is None else [torch.cat(both, dim=2) for both in zip(old, new)]
        return joined(attention, F.scaled_dot_product_attention(query, *self.written[number]))

    def cross(self, number, attention, x):
        (query,) = heads(attention, x.view(-1, self.k, x.shape[-1]), slice(0, 1))
        y = F.scaled_dot_product_attention(query, *self.read[number], attn_mask=self.mask)
        return joined(attention, y).view(x.shape)

    def choose(self, sentences, hypotheses):
        """Go on with these sentences (B′,), and these hypotheses of each (B′, k′)."""
        rows = (sentences[:, None] * self.k + hypotheses).flatten()
        if len(rows) < len(self.written[0][0]) or (rows[1:] <= rows[:-1]).any():
            self.written = [[x.index_select(0, rows) for x in layer] for layer in self.written]
        if len(sentences) < len(self.read[0][0]):
            self.read = [[x.index_select(0, sentences) for x in layer] for layer in self.read]
            self.mask = None if self.mask is None else self.mask.index_select(0, sentences)


def heads(attention, x, which):
    """Query, key and value, or some of the three, of x (B, T, n): tensors (B, H, T, m), by one product"""
    n, H = attention.embed_dim, attention.num_heads
    rows = slice(which.start * n, which.stop * n)
    bias = None if attention.in_proj_bias is None else attention.in_proj_bias[rows]
    y = F.linear(x, attention.in_proj_weight[rows], bias)
    return y.view(*x.shape[:2], which.stop - which.start, H, n // H).permute(2, 0, 3, 1, 4).unbind()


def joined(attention, y):
    """(B, H, T, m) → (B, T, n)"""
    return attention.out_proj(y.transpose(1, 2).flatten(2))


def beam_search(model, source, beam):
    """[(words, ln p), …] of source (B, S): the search of mini_tf.decoding.beam_search, without length penalty"""
    writer, longest, everything = Writer(model, source), model.T, len(source)
    best = torch.full((everything,), -torch.inf)
    best_words = torch.full((everything, longest), ABSENT)
    sentence, width = torch.arange(everything), torch.full((everything,), beam)
    log_p, written = torch.zeros(everything, 1), torch.full((everything, 1, 1), SOS)
    for length in range(1, longest + 1):
        logits = writer.scores(written[:, :, -1])                        # (B, k, c)
        total = logits.logsumexp(-1, keepdim=True)
        logits[:, :, [SOS, UNK]] = -torch.inf
        top, word = logits.max(-1, keepdim=True) if beam == 1 else logits.topk(beam)
        log_p, order = (log_p[:, :, None] + (top - total)).flatten(1).topk(beam)     # (B, beam)
        parent, word = order // beam, word.flatten(1).gather(1, order)
        log_p = log_p.masked_fill(torch.arange(beam) >= width[:, None], -torch.inf)
        of = torch.arange(len(written))[:, None]
        written = torch.cat([written[of, parent], word[:, :, None]], dim=2)

        ended = (word == EOS) & (log_p > -torch.inf)
        score, i = (log_p if length == longest else log_p.masked_fill(~ended, -torch.inf)).max(1)
        better = (score > best[sentence]).nonzero()[:, 0]
        best[sentence[better]] = score[better]
        best_words[sentence[better], :length] = written[better, i[better], 1:]
        width = width - ended.sum(1)
        log_p = log_p.masked_fill(ended, -torch.inf)

        on = (log_p.amax(1) > best[sentence]).nonzero()[:, 0]
        if not len(on):
            break
        live = log_p[on].argsort(dim=1, descending=True, stable=True)[:, : width[on].max()]
        writer.choose(on, parent[on].gather(1, live))
        log_p, written = log_p[on].gather(1, live), written[on[:, None], live]
        sentence, width = sentence[on], width[on]
    return [(words[(words != EOS) & (words != ABSENT)], p) for words, p in zip(best_words.numpy(), best.tolist())]


@torch.inference_mode()
def translations(model, sources, beam, batch):
    """[(words, ln p), …]: sentences of about the same length together, as mini_tf.decoding.translations does it"""
    found = [None] * len(sources)
    order = sorted(range(len(sources)), key=lambda k: len(sources[k]))
    for first in range(0, len(order), batch):
        some = order[first : first + batch]
        for k, result in zip(some, beam_search(model, torch.from_numpy(padded([sources[k] for k in some])), beam)):
            found[k] = result
    return found

"""Twelve torch.autograd.Functions as people write them, right; and edits that make each wrong, as it happens in practice."""

from tests.gradcheck.contracts import normal

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LinearGelu(Function):
    """gelu(x·Wᵀ + b), tanh's approximation; gradients only of what needs one"""

    @staticmethod
    def forward(ctx, x, weight, bias):
        z = torch.addmm(bias, x, weight.t())
        t = torch.tanh(0.7978845608 * (z + 0.044715 * z**3))
        ctx.save_for_backward(x, weight, z, t)
        return 0.5 * z * (1 + t)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, z, t = ctx.saved_tensors
        inner = 0.7978845608 * (1 + 3 * 0.044715 * z**2)
        grad = grad_output * 0.5 * (1 + t + z * (1 - t * t) * inner)
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad.t() @ x
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum(0)
        return grad_x, grad_weight, grad_bias


class LayerNorm(Function):
    """Over the last axis of (B, T, n); ctx.eps is no tensor, so None comes back for it"""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + eps)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(x, xhat, rstd, weight)
        return xhat * weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, xhat, rstd, weight = ctx.saved_tensors
        g = grad_output * weight
        grad_x = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        grad_weight = (grad_output * xhat).sum((0, 1))
        return grad_x, grad_weight, grad_output.sum((0, 1)), None


class RMSNorm(Function):
    """setup_context keeps what the backward needs, which can be differentiated once"""

    @staticmethod
    def forward(x, weight, eps):
        rstd = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        return x * rstd * weight, rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _ = inputs
        _, rstd = output
        ctx.mark_non_differentiable(rstd)
        ctx.save_for_backward(x, weight, rstd)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output, _):
        x, weight, rstd = ctx.saved_tensors
        g = grad_output * weight
        grad_x = rstd * g - x * rstd**3 * (g * x).mean(-1, keepdim=True)
        return grad_x, (grad_output * x * rstd).sum(0), None


class CrossEntropy(Function):
    """−log softmax(logits)[target], the mean over all rows but those with the target −100"""

    @staticmethod
    def forward(ctx, logits, target):
        log_p = logits.log_softmax(-1)
        kept = target != -100
        chosen = target.clamp(min=0).unsqueeze(1)
        ctx.count = kept.sum()
        ctx.save_for_backward(log_p, kept, chosen)
        return -(log_p.gather(1, chosen).squeeze(1) * kept).sum() / ctx.count

    @staticmethod
    def backward(ctx, grad_output):
        log_p, kept, chosen = ctx.saved_tensors
        grad = log_p.exp()
        grad.scatter_add_(1, chosen, -torch.ones_like(chosen, dtype=grad.dtype))
        grad *= kept.unsqueeze(1)
        return grad * grad_output / ctx.count, None


def turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Rotary(Function):
    """Rotary position embedding of queries and keys: two outputs; cos and sin get no gradient"""

    @staticmethod
    def forward(ctx, query, key, cos, sin):
        ctx.save_for_backward(cos, sin)
        return turned(query, cos, sin), turned(key, cos, sin)

    @staticmethod
    def backward(ctx, grad_query, grad_key):
        cos, sin = ctx.saved_tensors
        return turned(grad_query, cos, -sin), turned(grad_key, cos, -sin), None, None


class SwiGLU(Function):
    """silu(x·Wᵀ)·(x·Vᵀ), its two products not saved but made again"""

    @staticmethod
    def forward(ctx, x, weight, up_weight):
        ctx.save_for_backward(x, weight, up_weight)
        gate, up = x @ weight.t(), x @ up_weight.t()
        return gate * torch.sigmoid(gate) * up

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, up_weight = ctx.saved_tensors
        gate, up = x @ weight.t(), x @ up_weight.t()
        s = torch.sigmoid(gate)
        grad_gate = grad_output * up * s * (1 + gate * (1 - s))
        grad_up = grad_output * gate * s
        grad_x = grad_gate @ weight + grad_up @ up_weight
        return grad_x, grad_gate.t() @ x, grad_up.t() @ x


class EmbeddingBag(Function):
    """The mean of the rows that each bag of ids names"""

    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return table[ids].mean(1)

    @staticmethod
    def backward(ctx, grad_output):
        ids, = ctx.saved_tensors
        grad = grad_output.new_zeros(ctx.rows, grad_output.shape[-1])
        shares = (grad_output / ids.shape[1]).repeat_interleave(ids.shape[1], 0)
        grad.index_add_(0, ids.reshape(-1), shares)
        return grad, None


class CausalAttention(Function):
    """softmax(scale·q·kᵀ, causal)·v; as in FlashAttention, weights are made again from their log-sum-exp"""

    @staticmethod
    def forward(ctx, query, key, value, scale):
        scores = query @ key.transpose(-2, -1) * scale
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        lse = scores.logsumexp(-1, keepdim=True)
        out = (scores - lse).exp() @ value
        ctx.save_for_backward(query, key, value, out, lse, future)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, grad_output):
        query, key, value, out, lse, future = ctx.saved_tensors
        scores = query @ key.transpose(-2, -1) * ctx.scale
        p = (scores - lse).exp().masked_fill(future, 0)
        delta = (grad_output * out).sum(-1, keepdim=True)
        grad_p = grad_output @ value.transpose(-2, -1)
        grad_scores = p * (grad_p - delta)
        grad_query = grad_scores @ key * ctx.scale
        grad_key = grad_scores.transpose(-2, -1) @ query * ctx.scale
        return grad_query, grad_key, p.transpose(-2, -1) @ grad_output, None


class LeakyReLU(Function):
    """In place: x itself is the output, and says so by mark_dirty"""

    @staticmethod
    def forward(ctx, x, slope):
        x.mul_(torch.where(x > 0, 1.0, slope))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.slope = slope
        return x

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        return grad_output * torch.where(y > 0, 1.0, ctx.slope), None


class Normalize(Function):
    """x / (‖x‖ + eps), each row"""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        norm = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x, norm)
        ctx.eps = eps
        return x / (norm + eps)

    @staticmethod
    def backward(ctx, grad_output):
        x, norm = ctx.saved_tensors
        size = norm + ctx.eps
        along = (grad_output * x).sum(-1, keepdim=True)
        return grad_output / size - x * along / (size * size * norm), None


class Scan(Function):
    """h[t] = a[t]·h[t−1] + x[t], the linear recurrence of state-space models"""

    @staticmethod
    def forward(ctx, a, x):
        h = torch.zeros_like(x)
        for t in range(len(x)):
            h[t] = a[t] * h[t - 1] + x[t] if t else x[t]
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, grad_output):
        a, h = ctx.saved_tensors
        grad_a, grad_x = torch.zeros_like(a), torch.zeros_like(h)
        carried = torch.zeros_like(h[0])
        for t in reversed(range(len(h))):
            grad_x[t] = grad_output[t] + carried
            if t:
                grad_a[t] = grad_x[t] * h[t - 1]
            carried = a[t] * grad_x[t]
        return grad_a, grad_x


class WeightNorm(Function):
    """g·v/‖v‖, each row of v with a length of its own"""

    @staticmethod
    def forward(ctx, v, g):
        norm = v.norm(dim=1, keepdim=True)
        unit = v / norm
        ctx.save_for_backward(unit, norm, g)
        return g.unsqueeze(1) * unit

    @staticmethod
    def backward(ctx, grad_output):
        unit, norm, g = ctx.saved_tensors
        grad_g = (grad_output * unit).sum(1)
        grad_v = g.unsqueeze(1) / norm * (grad_output - unit * grad_g.unsqueeze(1))
        return grad_v, grad_g


class UpcastRMSNorm(Function):
    """In float32 inside, whatever the inputs are; a thirteenth, for the tolerance that follows"""

    @staticmethod
    def forward(ctx, x, weight):
        x32 = x.float()
        r = (x32.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        ctx.save_for_backward(x32, weight, r)
        return weight * (x32 * r).to(weight.dtype)

    @staticmethod
    def backward(ctx, g):
        x, weight, r = ctx.saved_tensors
        n, gw = x * r, (g * weight).float()
        grad_x = r * (gw - n * (gw * n).mean(-1, keepdim=True))
        return grad_x.to(g.dtype), (g * n).sum(0)


ANGLES = np.outer(np.arange(3), [1.0, 0.1])

# name: (what it is given for a seed: inputs, options)
INPUTS = {
    "LinearGelu": lambda seed: ([*normal((5, 3), (4, 3), (4,), seed=seed)], {}),
    "LayerNorm": lambda seed: ([*normal((2, 3, 4), (4,), (4,), seed=seed), 1e-5], {}),
    "RMSNorm": lambda seed: ([*normal((5, 4), (4,), seed=seed), 1e-6], {}),
    "CrossEntropy": lambda seed: ([normal((4, 5), seed=seed), np.array([0, -100, 4, 0])], {}),
    "Rotary": lambda seed: ([*normal((2, 3, 4), (2, 3, 4), seed=seed)], {"sin": np.sin(ANGLES), "cos": np.cos(ANGLES)}),
    "SwiGLU": lambda seed: ([*normal((5, 3), (4, 3), (4, 3), seed=seed)], {}),
    "EmbeddingBag": lambda seed: ([normal((6, 3), seed=seed), np.array([[0, 2], [2, 2], [5, 1]])], {}),
    "CausalAttention": lambda seed: ([*normal((2, 3, 4), (2, 3, 4), (2, 3, 5), seed=seed), 0.5], {}),
    "LeakyReLU": lambda seed: ([normal((3, 4), seed=seed), 0.1], {}),
    "Normalize": lambda seed: ([normal((3, 4), seed=seed)], {}),
    "Scan": lambda seed: ([*normal((4, 3), (4, 3), seed=seed)], {}),
    "WeightNorm": lambda seed: ([*normal((4, 3), (4,), seed=seed)], {}),
}  # fmt: skip

# (what is wrong, name, what is right, its edit, whose gradients are wrong; or how the finding begins)
MISTAKES = [
    ("the mean of the bias's gradients", "LinearGelu", "grad.sum(0)", "grad.mean(0)", "bias"),
    ("1 − tanh", "LinearGelu", "(1 - t * t)", "(1 - t)", "x weight bias"),
    ("asks whether another needs one", "LinearGelu", "needs_input_grad[2]", "needs_input_grad[1]", "no gradient of bias came back when"),
    ("the path through the variance", "LayerNorm", " - xhat * (g * xhat).mean(-1, keepdim=True)", "", "x"),
    ("the wrong saved tensor", "LayerNorm", "(grad_output * xhat).sum", "(grad_output * x).sum", "weight"),
    ("a float32 in between", "LayerNorm", "g = grad_output * weight", "g = (grad_output.float() * weight.float()).double()", "x"),
    ("sum for mean", "RMSNorm", "(g * x).mean(-1", "(g * x).sum(-1", "x"),
    ("a power of the scale", "RMSNorm", "rstd**3", "rstd**2", "x"),
    ("not divided by the count", "CrossEntropy", "grad * grad_output / ctx.count", "grad * grad_output", "logits"),
    ("ignored rows", "CrossEntropy", "grad *= kept.unsqueeze(1)", "grad *= 1", "logits"),
    ("the upstream gradient", "CrossEntropy", "grad * grad_output /", "grad /", "logits"),
    ("turned the wrong way", "Rotary", "turned(grad_key, cos, -sin)", "turned(grad_key, cos, sin)", "key"),
    ("the sigmoid's own slope", "SwiGLU", " * (1 + gate * (1 - s))", "", "x weight"),
    ("one of two paths", "SwiGLU", "grad_gate @ weight + grad_up @ up_weight", "grad_gate @ weight", "x"),
    ("repeated ids overwrite", "EmbeddingBag", "grad.index_add_(0, ids.reshape(-1), shares)", "grad[ids.reshape(-1)] = shares", "table"),
    ("the mask of the forward", "CausalAttention", ".exp().masked_fill(future, 0)", ".exp()", "query key value"),
    ("the scale of one", "CausalAttention", "@ query * ctx.scale", "@ query", "key"),
    ("softmax's second term", "CausalAttention", "p * (grad_p - delta)", "p * grad_p", "query key"),
    ("writes into grad_output", "LeakyReLU", "grad_output * torch.where(y > 0, 1.0, ctx.slope)", "grad_output.mul_(torch.where(y > 0, 1.0, ctx.slope))", "backward wrote into the dy"),
    ("the norm as a constant", "Normalize", " - x * along / (size * size * norm)", "", "x"),
    ("the wrong sign", "Normalize", " - x * along", " + x * along", "x"),
    ("a step too late", "Scan", "grad_x[t] * h[t - 1]", "grad_x[t] * h[t]", "a"),
    ("nothing carried back", "Scan", "grad_output[t] + carried", "grad_output[t]", "a x"),
    ("writes into a saved tensor", "WeightNorm", "(grad_output * unit).sum(1)", "unit.mul_(grad_output).sum(1)", "backward raised when it was called a second time"),
]  # fmt: skip

"""Forty-eight backwards as learners write them, each with one mistake, in many styles: the checker's hold-out.

Their author knew neither the checker's patterns nor its other planted bugs. `CASES` has (name, function, inputs, mistake,
fix); fix is the pairs (old, new) of source that make the function right.
"""

# ruff: noqa: E731, E702

from math import sqrt

import numpy as np
from scipy.special import erf  # noqa: F401

R = np.random.default_rng(20261121)
r = lambda *s: R.standard_normal(s)
CASES = []


def case(mistake, inputs, *fix):
    """fix: (old, new) pairs that make it right"""
    def deco(fn):
        CASES.append((fn.__name__, fn, inputs, mistake, fix))
        return fn
    return deco


# 1
@case("Jacobian's off-diagonal term forgotten: dz = y(1-y)dy", (r(3, 5),),
      ("dout * p * (1 - p)", "p * (dout - (dout * p).sum(axis=1)[:, None])"))
def softmax_diag(z):
    ex = np.exp(z - np.max(z, axis=1, keepdims=True))
    p = ex / np.sum(ex, axis=1, keepdims=True)

    def back(dout):
        return dout * p * (1 - p)
    return p, back


# 2
@case("sum over the wrong axis (0) in the backward", (r(4, 4),),
      ("inner = (g * s).sum(0)", "inner = (g * s).sum(1, keepdims=True)"))
def softmax_wrong_axis(scores):
    s = np.exp(scores)
    s = s / s.sum(1, keepdims=True)

    def backward(g):
        inner = (g * s).sum(0)
        return s * (g - inner)
    return s, backward


# 3
@case("log-softmax: subtracts softmax (as if the incoming gradient were summed to 1) instead of softmax * sum(dy)", (r(3, 6),),
      ("dy - np.exp(lsm)", "dy - np.exp(lsm) * dy.sum(-1, keepdims=True)"))
def log_softmax(x):
    m = x.max(-1, keepdims=True)
    lsm = x - m - np.log(np.exp(x - m).sum(-1, keepdims=True))
    return lsm, lambda dy: dy - np.exp(lsm)


# 4
@case("log-softmax: softmax multiplied by mean instead of sum of dy", (r(2, 5),),
      ("dy.mean(-1, keepdims=True)", "dy.sum(-1, keepdims=True)"))
def log_softmax_mean(x):
    z = x - x.max(-1, keepdims=True)
    out = z - np.log(np.exp(z).sum(-1, keepdims=True))

    def grad(dy):
        return dy - np.exp(out) * dy.mean(-1, keepdims=True)
    return out, grad


# 5
@case("the mean path is forgotten (no - mean(g))", (r(4, 6), r(6), r(6)),
      ("dxhat - xhat * np.mean(dxhat * xhat, 1, keepdims=True)",
       "dxhat - dxhat.mean(1, keepdims=True) - xhat * np.mean(dxhat * xhat, 1, keepdims=True)"))
def ln_no_mean_path(x, g, b):
    mu = x.mean(1, keepdims=True)
    sd = np.sqrt(x.var(1, keepdims=True) + 1e-5)
    xhat = (x - mu) / sd

    def backward(dy):
        dxhat = dy * g
        dx = (dxhat - xhat * np.mean(dxhat * xhat, 1, keepdims=True)) / sd
        return dx, (dy * xhat).sum(0), dy.sum(0)
    return xhat * g + b, backward


# 6
@case("dbeta/dgamma: dgamma multiplies by the output instead of the normalised input", (r(2, 3, 5), r(5), r(5)),
      ("(dy * y).sum((0, 1))", "(dy * h).sum((0, 1))"))
def ln_dgamma_from_output(x, gamma, beta):
    inv = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    h = (x - x.mean(-1, keepdims=True)) * inv
    y = h * gamma + beta

    def backward(dy):
        dh = dy * gamma
        dx = inv * (dh - dh.mean(-1, keepdims=True) - h * (dh * h).mean(-1, keepdims=True))
        return dx, (dy * y).sum((0, 1)), dy.sum((0, 1))
    return y, backward


# 7
@case("gamma forgotten in dx (dxhat = dy)", (r(5, 4), r(4), r(4)),
      ("dn = dout", "dn = dout * scale"))
def ln_gamma_forgotten(x, scale, shift):
    N = x.shape[-1]
    c = x - x.sum(-1, keepdims=True) / N
    var = (c ** 2).sum(-1, keepdims=True) / N
    std = np.sqrt(var + 1e-5)
    n = c / std

    def backward(dout):
        dn = dout
        dvar = (dn * c * -0.5 * std ** -3).sum(-1, keepdims=True)
        dc = dn / std + dvar * 2 * c / N
        dx = dc - dc.mean(-1, keepdims=True)
        return dx, (dout * n).sum(0), dout.sum(0)
    return scale * n + shift, backward


# 8
@case("RMS norm: second term lacks the mean's 1/n (sum instead of mean)", (r(3, 5), r(5)),
      ("(gw * x).sum(-1, keepdims=True) * x * rinv ** 3", "(gw * x).mean(-1, keepdims=True) * x * rinv ** 3"))
def rms_norm(x, w):
    rinv = (np.mean(x * x, axis=-1, keepdims=True) + 1e-6) ** -0.5
    y = x * rinv * w

    def backward(g):
        gw = g * w
        dx = gw * rinv - (gw * x).sum(-1, keepdims=True) * x * rinv ** 3
        return dx, (g * x * rinv).sum(0)
    return y, backward


# 9
@case("RMS norm: power of r wrong (r^2 instead of r^3) in the second term", (r(2, 4, 6), r(6)),
      ("rinv ** 2", "rinv ** 3"))
def rmsnorm_power(x, w):
    rinv = 1.0 / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6)

    def bwd(dy):
        t = dy * w
        dx = rinv * t - x * rinv ** 2 * np.mean(t * x, -1, keepdims=True)
        dw = np.einsum("btn,btn->n", dy, x * rinv)
        return dx, dw
    return x * rinv * w, bwd


# 10
@case("batch norm: mean and variance treated as constants", (r(6, 4), r(4), r(4)),
      ("dxh / s", "(dxh - dxh.mean(0) - xh * (dxh * xh).mean(0)) / s"))
def batch_norm_const_stats(X, gamma, beta):
    mu, s = X.mean(0), np.sqrt(X.var(0) + 1e-5)
    xh = (X - mu) / s

    def backward(dY):
        dxh = dY * gamma
        return dxh / s, np.sum(dY * xh, 0), np.sum(dY, 0)
    return gamma * xh + beta, backward


# 11
@case("batch norm: backward averages over the features (axis 1), as layer norm does, instead of the batch", (r(5, 5), r(5), r(5)),
      ("""dxh.mean(1, keepdims=True)""", """dxh.mean(0)"""), ("(dxh * xh).mean(1, keepdims=True)", "(dxh * xh).mean(0)"))
def batchnorm_as_layernorm(X, gamma, beta):
    mu, s = X.mean(0), np.sqrt(X.var(0) + 1e-5)
    xh = (X - mu) / s

    def backward(dY):
        dxh = dY * gamma
        dX = (dxh - dxh.mean(1, keepdims=True) - xh * (dxh * xh).mean(1, keepdims=True)) / s
        return dX, np.sum(dY * xh, 0), np.sum(dY, 0)
    return gamma * xh + beta, backward


# 12
@case("linear: dx = dy @ W, W not transposed (square)", (r(3, 4), r(4, 4), r(4)),
      ("np.dot(delta, weights)", "np.dot(delta, weights.T)"))
def dense(inp, weights, bias):
    def grads(delta):
        return np.dot(delta, weights), np.dot(inp.T, delta), delta.sum(axis=0)
    return np.dot(inp, weights) + bias, grads


# 13
@case("db averaged over the batch instead of summed", (r(5, 3), r(3, 2), r(2)),
      ("dy.mean(0)", "dy.sum(0)"))
def affine(x, W, b):
    def backward(dy):
        return dy @ W.T, x.T @ dy, dy.mean(0)
    return x @ W + b, backward


# 14
@case("dW uses only the last element of the batch (overwritten in a loop instead of accumulated)", (r(4, 3, 5), r(5, 2)),
      ("dW = x[i].T @ dy[i]", "dW = dW + x[i].T @ dy[i]"))
def linear_overwrites(x, W):
    y = np.stack([xi @ W for xi in x])

    def backward(dy):
        dW = np.zeros_like(W)
        dx = np.empty_like(x)
        for i in range(len(x)):
            dx[i] = dy[i] @ W.T
            dW = x[i].T @ dy[i]
        return dx, dW
    return y, backward


# 15
@case("scaled attention: 1/sqrt(d) forgotten for dK only", (r(4, 3), r(6, 3), r(6, 5)),
      ("dS.T @ Q,", "dS.T @ Q / np.sqrt(d),"))
def attention_scale_dk(Q, K, V):
    d = Q.shape[-1]
    S = Q @ K.T / np.sqrt(d)
    A = np.exp(S - S.max(1, keepdims=True)); A /= A.sum(1, keepdims=True)

    def backward(dO):
        dA = dO @ V.T
        dS = A * (dA - (dA * A).sum(1, keepdims=True))
        return dS @ K / np.sqrt(d), dS.T @ Q, A.T @ dO
    return A @ V, backward


# 16
@case("attention: dV = A @ dY, not A transposed (square)", (r(5, 3), r(5, 3), r(5, 4)),
      ("dv = w @ dy", "dv = w.T @ dy"))
def attention_dv(q, k, v):
    e = np.exp(q.dot(k.T))
    w = e / e.sum(-1, keepdims=True)
    out = w.dot(v)

    def backward(dy):
        dv = w @ dy
        dw = dy @ v.T
        ds = w * dw - w * np.sum(w * dw, -1, keepdims=True)
        return ds @ k, ds.T @ q, dv
    return out, backward


# 17
@case("self attention by x: gradient through the value path forgotten (x used three times, only two added)", (r(5, 4), r(4, 3), r(4, 3), r(4, 2)),
      ("dx = dq @ Wq.T + dk @ Wk.T", "dx = dq @ Wq.T + dk @ Wk.T + dv @ Wv.T"))
def self_attention(x, Wq, Wk, Wv):
    q, k, v = x @ Wq, x @ Wk, x @ Wv
    s = q @ k.T / sqrt(q.shape[1])
    a = np.exp(s - s.max(-1, keepdims=True))
    a = a / a.sum(-1, keepdims=True)

    def backward(dy):
        dv = a.T @ dy
        da = dy @ v.T
        ds = a * (da - (a * da).sum(-1, keepdims=True)) / sqrt(q.shape[1])
        dq, dk = ds @ k, ds.T @ q
        dx = dq @ Wq.T + dk @ Wk.T
        return dx, x.T @ dq, x.T @ dk, x.T @ dv
    return a @ v, backward


# 18
@case("causal attention: softmax's backward forgotten (dS = dA masked)", (r(5, 3), r(5, 3), r(5, 3)),
      ("dS = np.where(M, dA, 0)", "dS = P * (dA - (P * dA).sum(-1, keepdims=True))"))
def causal_attention(Q, K, V):
    T = len(Q)
    M = np.tril(np.ones((T, T), bool))
    S = np.where(M, Q @ K.T, -np.inf)
    P = np.exp(S - S.max(-1, keepdims=True))
    P /= P.sum(-1, keepdims=True)

    def backward(dO):
        dA = dO @ V.T
        dS = np.where(M, dA, 0)
        return dS @ K, dS.T @ Q, P.T @ dO
    return P @ V, backward


# 19
@case("causal attention: the backward recomputes the softmax without the mask, so gradient flows to the future", (r(4, 3), r(4, 3), r(4, 2)),
      ("B = np.exp(Z)", "B = np.exp(np.where(future, -1e9, Z))"))
def causal_leak(Q, K, V):
    Z = Q @ K.T / np.sqrt(Q.shape[1])
    future = np.triu(np.ones(Z.shape), 1) > 0
    A = np.exp(np.where(future, -1e9, Z))
    A = A / A.sum(1, keepdims=True)

    def backward(dO):
        B = np.exp(Z)
        B = B / B.sum(1, keepdims=True)
        dA = dO @ V.T
        dZ = B * (dA - np.sum(B * dA, 1, keepdims=True)) / np.sqrt(Q.shape[1])
        return dZ @ K, dZ.T @ Q, A.T @ dO
    return A @ V, backward


# 20
@case("multi-head: heads joined back without the swapaxes (reshape only) in the backward", (r(2, 4, 6), r(6, 6), r(6, 6), r(6, 6)),
      ("join = lambda t: t.reshape(B, T, n)", "join = lambda t: t.swapaxes(1, 2).reshape(B, T, n)"))
def multi_head(x, Wq, Wk, Wv):
    B, T, n = x.shape
    H, m = 2, 3
    split = lambda t: t.reshape(B, T, H, m).transpose(0, 2, 1, 3)
    q, k, v = split(x @ Wq), split(x @ Wk), split(x @ Wv)
    s = q @ k.swapaxes(-1, -2) / np.sqrt(m)
    a = np.exp(s - s.max(-1, keepdims=True)); a = a / a.sum(-1, keepdims=True)
    y = (a @ v).swapaxes(1, 2).reshape(B, T, n)

    def backward(dy):
        join = lambda t: t.reshape(B, T, n)
        d = split(dy)
        dv = a.swapaxes(-1, -2) @ d
        da = d @ v.swapaxes(-1, -2)
        ds = a * (da - (a * da).sum(-1, keepdims=True)) / np.sqrt(m)
        dq, dk, dv = join(ds @ k), join(ds.swapaxes(-1, -2) @ q), join(dv)
        X = x.reshape(-1, n)
        w = lambda g: X.T @ g.reshape(-1, n)
        return dq @ Wq.T + dk @ Wk.T + dv @ Wv.T, w(dq), w(dk), w(dv)
    return y, backward


# 21
@case("multi-head self attention: scale missing in the backward of the scores (dx and both weights)", (r(2, 3, 4), r(4, 4), r(4, 4)),
      ("dS = P * (dP - (P * dP).sum(-1, keepdims=True))", "dS = 0.5 * P * (dP - (P * dP).sum(-1, keepdims=True))"))
def attention_scores_scale(x, Wq, Wk):
    q, k = x @ Wq, x @ Wk
    S = np.einsum("bim,bjm->bij", q, k) * 0.5
    P = np.exp(S) / np.exp(S).sum(-1, keepdims=True)
    y = np.einsum("bij,bjn->bin", P, x)

    def backward(dy):
        dP = np.einsum("bin,bjn->bij", dy, x)
        dS = P * (dP - (P * dP).sum(-1, keepdims=True))
        dq = np.einsum("bij,bjm->bim", dS, k)
        dk = np.einsum("bij,bim->bjm", dS, q)
        dx = dq @ Wq.T + dk @ Wk.T + np.einsum("bij,bin->bjn", P, dy)
        return dx, np.einsum("bin,bim->nm", x, dq), np.einsum("bin,bim->nm", x, dk)
    return y, backward


# 22
@case("cross-entropy: mean's 1/N forgotten", (r(6, 4), np.array([0, 3, 1, 1, 2, 0])),
      ("return dl * d, None", "return dl * d / len(labels), None"))
def ce_loss(logits, labels):
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    n = len(labels)
    loss = -np.log(p[range(n), labels]).mean()

    def backward(dl=1.0):
        d = p.copy()
        d[range(n), labels] -= 1
        return dl * d, None
    return loss, backward


# 23
@case("cross-entropy with ignored rows: divides by all rows instead of the counted ones", (r(7, 4), np.array([0, 3, -1, 1, 2, -1, 0])),
      ("/ N * dl", "/ keep.sum() * dl"))
def ce_ignore(logits, y):
    keep = y != -1
    N = y.shape[0]
    t = np.where(keep, y, 0)
    ls = logits - logits.max(1, keepdims=True)
    ls = ls - np.log(np.exp(ls).sum(1, keepdims=True))
    loss = -(ls[np.arange(N), t] * keep).sum() / keep.sum()

    def backward(dl=1.0):
        onehot = np.eye(logits.shape[1])[t]
        return ((np.exp(ls) - onehot) * keep[:, None]) / N * dl, None
    return loss, backward


# 24
@case("cross-entropy with ignored rows: ignored rows still receive the gradient of class 0", (r(6, 5), np.array([4, -100, 1, 2, -100, 0])),
      ("return g / cnt * dl, None", "return g * valid[:, None] / cnt * dl, None"))
def ce_ignored_rows_leak(logits, y):
    valid = y >= 0
    cnt = valid.sum()
    yy = y * valid
    rows = np.arange(len(y))
    sh = logits - logits.max(1, keepdims=True)
    lse = np.log(np.exp(sh).sum(1))
    loss = ((lse - sh[rows, yy]) * valid).sum() / cnt

    def backward(dl=1.0):
        g = np.exp(sh - lse[:, None])
        g[rows, yy] -= 1
        return g / cnt * dl, None
    return loss, backward


# 25
@case("label smoothing used in the forward, but the backward subtracts the hard one-hot", (r(4, 6), np.array([5, 0, 2, 2])),
      ("(np.exp(lp) - hard)", "(np.exp(lp) - soft)"))
def ce_label_smoothing(logits, y):
    n, c = logits.shape
    hard = np.eye(c)[y]
    soft = 0.9 * hard + 0.1 / c
    m = logits.max(1, keepdims=True)
    lp = logits - m - np.log(np.exp(logits - m).sum(1, keepdims=True))
    loss = -(soft * lp).sum() / n

    def backward(dloss=1.0):
        return dloss * (np.exp(lp) - hard) / n, None
    return loss, backward


# 26
@case("mse: divides by the batch size, not by the number of entries", (r(4, 3), r(4, 3)),
      ("/ pred.shape[0]", "/ pred.size"))
def mse_batch(pred, target):
    diff = pred - target

    def backward(dl=1.0):
        g = 2 * diff / pred.shape[0] * dl
        return g, -g
    return np.mean(diff ** 2), backward


# 27
@case("mse: dtarget has the sign of dprediction", (r(5, 2), r(5, 2)),
      ("return g, g", "return g, -g"))
def mse_sign(pred, target):
    err = pred - target
    loss = np.square(err).sum() / err.size

    def backward(dl=1.0):
        g = dl * 2.0 * err / err.size
        return g, g
    return loss, backward


# 28
@case("relu's mask taken from the incoming gradient instead of the input", (r(4, 5),),
      ("d[d < 0] = 0", "d[x < 0] = 0"))
def relu_mask_dy(x):
    y = x * (x > 0)

    def backward(dy):
        d = dy.copy()
        d[d < 0] = 0
        return d
    return y, backward


# 29
@case("leaky relu: negative side gets 0 instead of slope 0.1", (r(4, 5),),
      ("np.where(x > 0, dy, 0)", "np.where(x > 0, dy, 0.1 * dy)"))
def leaky_relu(x):
    return np.where(x > 0, x, 0.1 * x), lambda dy: np.where(x > 0, dy, 0)


# 30
@case("ELU: negative side's derivative is y instead of y + alpha", (r(3, 6),),
      ("np.where(x > 0, 1, y)", "np.where(x > 0, 1, y + alpha)"))
def elu(x):
    alpha = 1.0
    y = np.where(x > 0, x, alpha * (np.exp(x) - 1))

    def backward(dy):
        slope = np.where(x > 0, 1, y)
        return slope * dy
    return y, backward


# 31
@case("GELU (tanh): inner derivative lacks the cubic term (du/dx taken as sqrt(2/pi))", (r(3, 4),),
      ("* c\n", "* c * (1 + 3 * 0.044715 * x ** 2)\n"))
def gelu_tanh(x):
    c = np.sqrt(2 / np.pi)
    t = np.tanh(c * (x + 0.044715 * x ** 3))

    def backward(dy):
        left = 0.5 * (1 + t)
        right = 0.5 * x * (1 - t ** 2) * c
        return dy * (left + right)
    return 0.5 * x * (1 + t), backward


# 32
@case("SiLU: product rule's second term forgotten: dx = dy*sigmoid(x)", (r(2, 7),),
      ("dy * sig", "dy * (sig + x * sig * (1 - sig))"))
def silu(x):
    sig = 1 / (1 + np.exp(-x))

    def backward(dy):
        return dy * sig
    return x * sig, backward


# 33
@case("swiglu: gradients of gate and up exchanged", (r(3, 4), r(3, 4)),
      ("return dup, dgate", "return dgate, dup"))
def swiglu(gate, up):
    s = 1 / (1 + np.exp(-gate))
    h = gate * s

    def backward(dy):
        dup = dy * h
        dgate = dy * up * s * (1 + gate * (1 - s))
        return dup, dgate
    return h * up, backward


# 34
@case("residual block: skip connection forgotten in the backward", (r(3, 5), r(5, 5)),
      ("return da @ W.T, x.T @ da", "return dy + da @ W.T, x.T @ da"))
def residual_block(x, W):
    a = np.tanh(x @ W)

    def backward(dy):
        da = dy * (1 - a ** 2)
        return da @ W.T, x.T @ da
    return x + a, backward


# 35
@case("embedding: repeated ids are not added (dtable[ids] = / += keeps only one)", (r(6, 4), np.array([[1, 4, 1], [0, 1, 5]])),
      ("g[idx] += dout", "np.add.at(g, idx, dout)"))
def lookup(E, idx):
    def backward(dout):
        g = np.zeros_like(E)
        g[idx] += dout
        return g, None
    return E[idx], backward


# 36
@case("positional table: gradient of P not cut to the used rows/summed over batch: mean over batch instead of sum", (r(3, 4, 5), r(7, 5)),
      ("dP[:T] = dy.mean(axis=0)", "dP[:T] = dy.sum(axis=0)"))
def add_positions(x, P):
    T = x.shape[1]

    def backward(dy):
        dP = np.zeros_like(P)
        dP[:T] = dy.mean(axis=0)
        return dy, dP
    return x + P[:T], backward


# 37
@case("max pooling: gradient sent to every position instead of the maximum's only", (r(2, 5, 3),),
      ("np.repeat(dy[:, None], x.shape[1], axis=1)", "np.repeat(dy[:, None], x.shape[1], axis=1) * (x == top[:, None])"))
def max_pool(x):
    top = x.max(axis=1)

    def backward(dy):
        return np.repeat(dy[:, None], x.shape[1], axis=1)
    return top, backward


# 38
@case("masked mean pooling: divides by T instead of the count of the mask", (r(3, 5, 2), R.random((3, 5)) < 0.6),
      ("dy[:, None, :] * mask[:, :, None] / x.shape[1]", "dy[:, None, :] * mask[:, :, None] / count[:, None]"))
def masked_mean(x, mask):
    count = np.maximum(mask.sum(1), 1)[:, None]
    y = (x * mask[:, :, None]).sum(1) / count

    def backward(dy):
        return dy[:, None, :] * mask[:, :, None] / x.shape[1], None
    return y, backward


# 39
@case("dropout: 1/(1-p) forgotten in the backward", (r(4, 6), R.random((4, 6)) < 0.75),
      ("return dy * keep, None", "return dy * keep / 0.75, None"))
def inverted_dropout(x, keep):
    def backward(dy):
        return dy * keep, None
    return x * keep / 0.75, backward


# 40
@case("RNN: gradient of the next time step not passed on (truncated to one step)", (r(2, 5, 3), r(2, 4), r(3, 4), r(4, 4)),
      ("da = dh[:, t] * (1 - hs[t + 1] ** 2)", "da = (dh[:, t] + carry) * (1 - hs[t + 1] ** 2)"))
def simple_rnn(x, h0, U, W):
    hs = [h0]
    for t in range(x.shape[1]):
        hs.append(np.tanh(x[:, t] @ U + hs[-1] @ W))

    def backward(dh):
        dx, dU, dW, carry = np.zeros_like(x), np.zeros_like(U), np.zeros_like(W), np.zeros_like(h0)
        for t in range(x.shape[1] - 1, -1, -1):
            da = dh[:, t] * (1 - hs[t + 1] ** 2)
            dx[:, t] = da @ U.T
            dU += x[:, t].T @ da
            dW += hs[t].T @ da
            carry = da @ W.T
        return dx, carry, dU, dW
    return np.stack(hs[1:], 1), backward


# 41
@case("RNN: dWh uses h_t instead of h_{t-1}", (r(3, 4, 2), r(3, 3), r(2, 3), r(3, 3)),
      ("dW += hs[t + 1].T @ da", "dW += hs[t].T @ da"))
def rnn_off_by_one(x, h0, U, W):
    hs = [h0]
    for t in range(x.shape[1]):
        hs.append(np.tanh(x[:, t] @ U + hs[-1] @ W))

    def backward(dh):
        dx, dU, dW, carry = np.zeros_like(x), np.zeros_like(U), np.zeros_like(W), np.zeros_like(h0)
        for t in range(x.shape[1] - 1, -1, -1):
            da = (dh[:, t] + carry) * (1 - hs[t + 1] ** 2)
            dx[:, t] = da @ U.T
            dU += x[:, t].T @ da
            dW += hs[t + 1].T @ da
            carry = da @ W.T
        return dx, carry, dU, dW
    return np.stack(hs[1:], 1), backward


# 42
@case("MLP: relu's derivative forgotten in the hidden layer", (r(5, 3), r(3, 6), r(6), r(6, 2), r(2)),
      ("dz = dh\n", "dz = dh * (z > 0)\n"))
def mlp(x, W1, b1, W2, b2):
    z = x @ W1 + b1
    h = np.maximum(z, 0)

    def backward(dy):
        dh = dy @ W2.T
        dz = dh
        return dz @ W1.T, x.T @ dz, dz.sum(0), h.T @ dy, dy.sum(0)
    return h @ W2 + b2, backward


# 43
@case("MLP: tanh derivative evaluated at the pre-activation (1 - z^2) instead of the output", (r(4, 3), r(3, 5) * .5, r(5, 2)),
      ("(1 - z ** 2)", "(1 - h ** 2)"))
def mlp_tanh(x, W1, W2):
    z = x @ W1
    h = np.tanh(z)

    def backward(dy):
        dz = dy @ W2.T * (1 - z ** 2)
        return dz @ W1.T, x.T @ dz, h.T @ dy
    return h @ W2, backward


# 44
@case("l2 normalisation: norm treated as a constant", (r(4, 5),),
      ("return dy / nrm", "return (dy - y * (y * dy).sum(1, keepdims=True)) / nrm"))
def l2_normalise(x):
    nrm = np.linalg.norm(x, axis=1, keepdims=True)
    y = x / nrm

    def backward(dy):
        return dy / nrm
    return y, backward


# 45
@case("cosine similarity: da's projection term not divided by |a|^2 (power of the norm wrong)", (r(3, 5), r(3, 5)),
      ("g * (b / (na * nb) - c * a / na)", "g * (b / (na * nb) - c * a / na ** 2)"))
def cosine(a, b):
    na = np.sqrt((a * a).sum(-1, keepdims=True))
    nb = np.sqrt((b * b).sum(-1, keepdims=True))
    c = (a * b).sum(-1, keepdims=True) / (na * nb)

    def backward(dc):
        g = dc[:, None]
        da = g * (b / (na * nb) - c * a / na)
        db = g * (a / (na * nb) - c * b / nb ** 2)
        return da, db
    return c[:, 0], backward


# 46
@case("conv1d: kernel not flipped in dx (correlates again)", (r(8), r(3)),
      ('np.convolve(dy, w[::-1], "full")', 'np.convolve(dy, w, "full")'))
def conv1d(x, w):
    y = np.correlate(x, w, "valid")

    def backward(dy):
        return np.convolve(dy, w[::-1], "full"), np.correlate(x, dy, "valid")
    return y, backward


# 47
@case("sigmoid applied twice: derivative sig(y)(1-sig(y)) of the output", (r(3, 4),),
      ("s(y) * (1 - s(y))", "s(x) * (1 - s(x))"))
def sigmoid(x):
    s = lambda t: 1 / (1 + np.exp(-t))
    y = s(x)
    return y, lambda dy: dy * s(y) * (1 - s(y))


# 48
@case("tied weight used twice (encode x@W, decode h@W.T): only the decode's gradient is returned for W", (r(4, 5), r(5, 3)),
      ("dW = dy.T @ h", "dW = dy.T @ h + x.T @ dz"))
def tied_autoencoder(x, W):
    h = np.tanh(x @ W)

    def backward(dy):
        dh = dy @ W
        dz = dh * (1 - h * h)
        dW = dy.T @ h
        return dz @ W.T, dW
    return h @ W.T, backward

"""Right backwards, as people write them; the tests plant mistakes in them."""

import numpy as np


def product(x, w):
    y = x * w
    def backward(dy):
        dx = dy * w
        dw = dy * x
        return dx, dw
    return y, backward


def attention(q, k, v):
    s = np.einsum("bik,bjk->bij", q, k) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    a = e / e.sum(-1, keepdims=True)
    y = np.einsum("bij,bjk->bik", a, v)
    def backward(dy):
        dv = np.einsum("bij,bik->bjk", a, dy)
        da = np.einsum("bik,bjk->bij", dy, v)
        ds = a * (da - (a * da).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
        dq = np.einsum("bij,bjk->bik", ds, k)
        dk = np.einsum("bij,bik->bjk", ds, q)
        return dq, dk, dv
    return y, backward


def layer_norm(x, g):
    m = x.mean(-1, keepdims=True)
    c = x - m
    s = np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
    n = c / s
    y = n * g
    def backward(dy):
        dn = dy * g
        dx = (dn - dn.mean(-1, keepdims=True) - n * (dn * n).mean(-1, keepdims=True)) / s
        return dx, (dy * n).sum(0)
    return y, backward


def joined(x, z):
    k = x.shape[1]
    def backward(dy):
        d = 2 * dy * np.concatenate([x, z], 1)
        return d[:, :k], d[:, k:]
    return np.concatenate([x, z], 1) ** 2, backward


def lookup(W, ids):
    y = W[ids] ** 2
    def backward(dy):
        dW = np.zeros_like(W)
        np.add.at(dW, ids, 2 * dy * W[ids])
        return dW
    return y, backward


def relu(x):
    y = np.maximum(x, 0)
    def backward(dy):
        dx = dy.copy()
        dx[x < 0] = 0
        return dx
    return y, backward


def recurrent(x, U, h0):
    h, hs = h0, [h0]
    for t in range(len(x)):
        h = np.tanh(x[t] + h @ U)
        hs.append(h)
    def backward(dy):
        dx, dU, dh = np.zeros_like(x), np.zeros_like(U), np.zeros_like(h0)
        for t in reversed(range(len(x))):
            dz = (dy[t] + dh) * (1 - hs[t + 1] ** 2)
            dx[t] = dz
            dU += hs[t].T @ dz
            dh = dz @ U.T
        return dx, dU, dh
    return np.stack(hs[1:]), backward


def weighted(x, w):
    y = np.stack([x * one for one in w])
    def backward(dy):
        dx = sum(dy[k] * w[k] for k in range(len(w)))
        dw = np.array([(one * x).sum() for one in dy])
        return dx, dw
    return y, backward


def shifted(x, b):
    y = x * 2 + b * 3
    def sum_to(g, n):
        while g.ndim > n:
            g = g.sum(0)
        return g
    def backward(dy):
        return dy * 2, sum_to(dy * 3, b.ndim)
    return y, backward


def averaged(x):
    def backward(dy):
        dx = np.broadcast_to(dy / x.shape[0], x.shape)
        return dx.copy()
    return x.mean(0), backward


def sech(X, W):
    z = X @ W
    y = np.arctan(np.sinh(z))
    def backward(dy):
        T = X.shape[1]
        dz = dy / np.cosh(z)
        dX = dz @ W.T
        dW = X.T @ dz
        assert len(dW) == T
        return dX, dW
    return y, backward


def scaled_rows(x):
    B, T = x.shape
    def backward(dy):
        return dy / T
    return x / T, backward


def masked(x, mask):
    return np.where(mask, x * x, 0), lambda dy: 2 * dy * x * mask


class Scale:
    def __init__(self, w):
        self.w, self.dw = w, np.zeros_like(w)

    def forward(self, x):
        self.x = x
        return x * self.w

    def backward(self, dy):
        self.dw = (dy * self.x).sum(0)
        return dy * self.w


class Gated:
    """A layer in a layer: what is given to its backward is an argument of the author's own method."""

    def __init__(self, w):
        self.inner = Scale(w)

    def forward(self, x):
        h = self.inner.forward(x)
        self.gate = 1 / (1 + np.exp(-h))
        return h * self.gate

    def backward(self, dy):
        g = self.gate + self.gate * (1 - self.gate) * self.inner.x * self.inner.w
        return self.inner.backward(dy * g)


def softmax_loss(X, W, t):
    z = X @ W
    e = np.exp(z - z.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(t)), t]).mean()
    dz = p.copy()
    dz[np.arange(len(t)), t] -= 1
    dz /= len(t)
    return loss, (dz @ W.T, X.T @ dz)


def dict_loss(params, X, Y):
    h = np.tanh(X @ params["W1"])
    r = h @ params["W2"] - Y
    loss = (r ** 2).sum() / len(X)
    dr = 2 * r / len(X)
    grads = {"W2": h.T @ dr}
    dh = dr @ params["W2"].T
    grads["W1"] = X.T @ (dh * (1 - h ** 2))
    return loss, grads

"""Right networks of right layers, in three styles; the tests plant mistakes in the file."""

import numpy as np


def dense(x, W, b):
    y = np.tanh(x @ W + b)
    def backward(dy):
        dz = dy * (1 - y ** 2)
        dx = dz @ W.T
        dW = x.T @ dz
        db = dz.sum(0)
        return dx, dW, db
    return y, backward


def closures(x, W1, b1, W2, b2, W3, b3):
    h1, back1 = dense(x, W1, b1)
    h2, back2 = dense(h1, W2, b2)
    y, back3 = dense(h2, W3, b3)
    def backward(dy):
        dh2, dW3, db3 = back3(dy)
        dh1, dW2, db2 = back2(dh2)
        dx, dW1, db1 = back1(dh1)
        return dx, dW1, db1, dW2, db2, dW3, db3
    return y, backward


def affine_forward(x, W, b):
    return x @ W + b, (x, W)


def affine_backward(dout, cache):
    x, W = cache
    return dout @ W.T, x.T @ dout, dout.sum(0)


def bend_forward(x):
    return np.tanh(x), np.tanh(x)


def bend_backward(dout, y):
    return dout * (1 - y * y)


def pairs_forward(x, W1, b1, W2, b2):
    a, cache_a = affine_forward(x, W1, b1)
    h, cache_h = bend_forward(a)
    y, cache_y = affine_forward(h, W2, b2)
    return y, (cache_a, cache_h, cache_y)


def pairs_backward(dout, cache):
    cache_a, cache_h, cache_y = cache
    dh, dW2, db2 = affine_backward(dout, cache_y)
    da = bend_backward(dh, cache_h)
    dx, dW1, db1 = affine_backward(da, cache_a)
    return dx, dW1, db1, dW2, db2


class Affine:
    def __init__(self, n, m, rng):
        self.W, self.b = rng.standard_normal((n, m)), rng.standard_normal(m)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW = self.x.T @ dout
        self.db = dout.sum(0)
        return dout @ self.W.T


class Objects:
    def __init__(self, rng):
        self.layers = [Affine(3, 4, rng), Affine(4, 2, rng), Affine(2, 3, rng)]

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dout):
        for layer in reversed(self.layers):
            dout = layer.backward(dout)
        return dout

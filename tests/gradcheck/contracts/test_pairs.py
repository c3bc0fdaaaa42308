"""out, cache = forward(x, W);  dx, dW = backward(dout, cache)"""

import numpy as np

from . import check, judge, normal


def affine_forward(x, w, b):
    out = x.reshape(x.shape[0], -1).dot(w) + b
    cache = (x, w, b)
    return out, cache


def affine_backward(dout, cache):
    x, w, b = cache
    dx = dout.dot(w.T).reshape(x.shape)
    dw = x.reshape(x.shape[0], -1).T.dot(dout)
    db = dout.sum(axis=0)
    return dx, dw, db


def test_f_forward_finds_f_backward_in_its_file_and_a_pair_says_it():
    inputs = normal((5, 2, 3), (6, 4), 4)
    assert judge(affine_forward, *inputs).verdict == "PASS"
    check(affine_backward, lambda back: judge((affine_forward, back), *inputs), "x w b",
          ("dout.sum(axis=0)", "dout.sum()", "db has shape (), expected (4,) as b has"),
          (".T.dot(dout)", ".T.dot(dout) / x.shape[0]", "w"))          # fmt: skip


def relu_forward(x):
    out = np.maximum(0, x)
    cache = x
    return out, cache


def relu_backward(dout, cache):
    dx, x = dout.copy(), cache
    dx[x <= 0] = 0
    return dx


def relu_again(dout, x):
    return dout * (x > 0)


def test_a_cache_that_is_an_array_and_inputs_by_their_names():
    x = normal((4, 5))
    check(relu_backward, lambda back: judge((relu_forward, back), x), "x", ("x <= 0", "dx <= 0", "x"))
    check(relu_again, lambda back: judge((lambda x: np.maximum(0, x), back), x), "x", ("x > 0", "dout > 0", "x"))


def batchnorm_forward(x, gamma, beta, bn_param):
    mode, eps, momentum = bn_param["mode"], bn_param.get("eps", 1e-5), bn_param.get("momentum", 0.9)
    running_mean = bn_param.get("running_mean", np.zeros(x.shape[1], dtype=x.dtype))
    running_var = bn_param.get("running_var", np.zeros(x.shape[1], dtype=x.dtype))
    if mode == "train":
        mean, var = x.mean(axis=0), x.var(axis=0)
        xhat = (x - mean) / np.sqrt(var + eps)
        bn_param["running_mean"] = momentum * running_mean + (1 - momentum) * mean
        bn_param["running_var"] = momentum * running_var + (1 - momentum) * var
        return gamma * xhat + beta, (xhat, gamma, var, eps)
    xhat = (x - running_mean) / np.sqrt(running_var + eps)
    return gamma * xhat + beta, (xhat, gamma, running_var, eps)


def batchnorm_backward(dout, cache):
    xhat, gamma, var, eps = cache
    N = len(dout)
    dgamma, dbeta, dxhat = (dout * xhat).sum(axis=0), dout.sum(axis=0), dout * gamma
    dx = (N * dxhat - dxhat.sum(axis=0) - xhat * (dxhat * xhat).sum(axis=0)) / (N * np.sqrt(var + eps))
    return dx, dgamma, dbeta


def test_a_dict_of_settings_in_which_statistics_are_kept():
    inputs = normal((6, 3), 3, 3)
    check(batchnorm_backward, lambda back: judge((batchnorm_forward, back), *inputs, {"mode": "train"}), "x gamma beta",
          (" - xhat * (dxhat * xhat).sum(axis=0)", "", "x"), ("N * dxhat - ", "dxhat - ", "x"))          # fmt: skip
    settings = {"mode": "train", "running_mean": np.zeros(3), "running_var": np.ones(3)}
    assert judge((batchnorm_forward, batchnorm_backward), *inputs, settings).verdict == "PASS"
    assert not settings["running_mean"].any()            # the caller's dict stays as it is


def lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b):
    H = prev_h.shape[1]
    a = x @ Wx + prev_h @ Wh + b
    i, f, o = (1 / (1 + np.exp(-a[:, k * H : (k + 1) * H])) for k in range(3))
    g = np.tanh(a[:, 3 * H :])
    next_c = f * prev_c + i * g
    next_h = o * np.tanh(next_c)
    return next_h, next_c, (x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c)


def lstm_step_backward(dnext_h, dnext_c, cache):
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    t = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - t**2)
    da = np.hstack([dc * g * i * (1 - i), dc * prev_c * f * (1 - f), dnext_h * t * o * (1 - o), dc * i * (1 - g**2)])
    return da @ Wx.T, da @ Wh.T, dc * f, x.T @ da, prev_h.T @ da, da.sum(axis=0)


def test_several_outputs_and_a_cache():
    inputs = normal((3, 4), (3, 2), (3, 2), (4, 8), (2, 8), 8)
    check(lstm_step_backward, lambda back: judge((lstm_step_forward, back), *inputs), "x prev_h prev_c Wx Wh b",
          ("dnext_c + dnext_h", "dnext_h", "x prev_h prev_c Wx Wh b"), ("dc * f, x.T", "dc, x.T", "prev_c"))       # fmt: skip


class Squared:
    @staticmethod
    def forward(x, w):
        return np.mean(w * x**2), (x, w)

    @staticmethod
    def backward(cache, dloss=1.0):
        x, w = cache
        return dloss * 2 * w * x / x.size, dloss * x**2 / x.size


def test_static_methods_and_a_cache_where_y_is_a_number():
    check(Squared, lambda cls: judge((cls.forward, cls.backward), *normal((4, 3), (4, 3))), "x w", ("* 2 * w", "* w", "x"))


def compute_cost(W, b, X, Y):
    return 0.5 * ((X @ W + b - Y) ** 2).sum()


def compute_gradients(W, b, X, Y):
    error = X @ W + b - Y
    return {"dW": X.T @ error, "db": error.sum(axis=0)}


def as_a_tuple(X, Y, W, b):
    error = X @ W + b - Y
    return X.T @ error, error.sum(axis=0)


def test_a_cost_and_a_function_of_the_same_inputs_that_gives_its_gradients():
    inputs = normal((4, 3), 3, (5, 4), (5, 3))
    check(compute_gradients, lambda back: judge((compute_cost, back), *inputs), "W b", ("error.sum(axis=0)", "2 * error.sum(0)", "b"))
    check(as_a_tuple, lambda back: judge((compute_cost, back), *inputs), "W b", ("X.T @ error", "X.T @ error / len(X)", "W"))
    report = judge((compute_cost, compute_gradients), *inputs)
    assert "X, Y: no gradient came back; taken as data" in report.notes

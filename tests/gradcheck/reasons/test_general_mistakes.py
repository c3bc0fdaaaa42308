"""Mistakes that many backwards share: a path, a statistic's term, an option, the wrong direction. Each is told as such."""

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest

R = np.random.default_rng(7).standard_normal


def gated(x, W, V):
    """What comes back through the gate is missing in dx."""
    a = x @ W
    g = 1 / (1 + np.exp(-(x @ V)))

    def backward(dy):
        da = dy * g
        dg = dy * a * g * (1 - g)
        return da @ W.T, x.T @ da, x.T @ dg

    return a * g, backward


def two_experts(x, Wg, W1, W2):
    """(dp * p).sum, not dp.sum. It takes two experts, whatever the sizes of the arrays."""
    e = np.exp(x @ Wg)
    p = e / e.sum(1, keepdims=True)
    one, two = np.tanh(x @ W1), np.tanh(x @ W2)

    def backward(dy):
        d_one, d_two = dy * p[:, :1] * (1 - one**2), dy * p[:, 1:2] * (1 - two**2)
        dp = np.stack([(dy * one).sum(1), (dy * two).sum(1)], 1)
        dz = p * (dp - dp.sum(1, keepdims=True))
        return dz @ Wg.T + d_one @ W1.T + d_two @ W2.T, x.T @ dz, x.T @ d_one, x.T @ d_two

    return p[:, :1] * one + p[:, 1:2] * two, backward


def weight_norm(x, v, g):
    """Divided by the length once, not three times."""
    n = np.sqrt((v**2).sum(0, keepdims=True))

    def backward(dy):
        dw = x.T @ dy
        return dy @ (g * v / n).T, g / n * (dw - v * (dw * v).sum(0)), (dw * v / n).sum(0)

    return x @ (g * v / n), backward


def group_norm(x):
    """The term of the variance is missing."""
    groups = x.reshape(len(x), 2, -1)
    deviation = np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    h = (groups - groups.mean(-1, keepdims=True)) / deviation

    def backward(dy):
        dh = dy.reshape(groups.shape)
        return ((dh - dh.mean(-1, keepdims=True)) / deviation).reshape(x.shape)

    return h.reshape(x.shape), backward


def heads(x):
    """Split by reshape alone."""
    B, T, D = x.shape
    h = np.tanh(x.reshape(B, T, 2, D // 2).transpose(0, 2, 1, 3))

    def backward(dy):
        dh = dy.reshape(B, 2, T, D // 2)
        return (dh * (1 - h**2)).transpose(0, 2, 1, 3).reshape(B, T, D)

    return h.transpose(0, 2, 1, 3).reshape(B, T, D), backward


def elu(x, alpha=0.7):
    y = np.where(x > 0, x, alpha * (np.exp(x) - 1))
    return y, lambda dy: dy * np.where(x > 0, 1, y)


def correlate(x, w):
    """The kernel is mirrored, as for a convolution."""
    K, T = len(w), len(x) - len(w) + 1
    y = sum(x[i : i + T] * w[i] for i in range(K))

    def backward(dy):
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        for i in range(K):
            dx[i : i + T] += dy * w[K - 1 - i, ...]
            dw[i] = (x[i : i + T] * dy).sum()
        return dx, dw

    return y, backward


def depthwise(x, w):
    """The kernel of each channel is mirrored."""
    K, T = len(w), len(x) - len(w) + 1

    def backward(dy):
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        for i in range(K):
            dx[i : i + T] += dy * w[K - 1 - i]
            dw[i] = (x[i : i + T] * dy).sum(0)
        return dx, dw

    return sum(x[i : i + T] * w[i] for i in range(K)), backward


def low_rank(x, A, B, alpha=8.0):
    """dB without alpha/rank."""
    rank = len(B)
    u = x @ A

    def backward(dy):
        du = alpha / rank * (dy @ B.T)
        return du @ A.T, x.T @ du, u.T @ dy

    return alpha / rank * (u @ B), backward


def instance_norm(x):
    """The term of the variance is a mean over the channels, too."""
    r = 1 / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    h = (x - x.mean((2, 3), keepdims=True)) * r

    def backward(dy):
        through_mean = dy.mean((2, 3), keepdims=True)
        through_variance = h * (dy * h).mean((1, 2, 3), keepdims=True)
        return r * (dy - through_mean - through_variance)

    return h, backward


def squeeze_and_excite(x, W):
    """What comes back past the gate is missing, and so dx has the wrong shape."""
    s = x.mean((2, 3))
    g = 1 / (1 + np.exp(-(s @ W)))

    def backward(dy):
        dz = (dy * x).sum((2, 3)) * g * (1 - g)
        height, width = x.shape[2:]
        dx = (dz @ W.T)[:, :, None, None] / (height * width)
        return dx, s.T @ dz

    return x * g[:, :, None, None], backward


def highway(x, h, z):
    """(h − x), not h, in the second of two gradients that are set together."""
    t = 1 / (1 + np.exp(-z))

    def backward(dy):
        dh, dt = dy * t, dy * h
        return dy * (1 - t), dh, dt * t * (1 - t)

    return t * h + (1 - t) * x, backward


def gather(table, ids):
    """The last of equal ids wins."""

    def backward(dy):
        d = np.zeros_like(table)
        d[ids] = dy
        return d, None

    return table[ids], backward


def ignoring(logits, ids, pad=0):
    """Gradients of ignored targets come back, too."""
    p = np.exp(logits)
    p /= p.sum(-1, keepdims=True)
    keep, rows = ids != pad, np.arange(len(ids))
    n = keep.sum()

    def backward(dloss=1.0):
        d = p.copy()
        d[rows, ids] -= 1
        return dloss * d / n, None

    return -(np.log(p[rows, ids]) * keep).sum() / n, backward


def smoothed(logits, ids, eps=0.1):
    """The gradient without smoothing."""
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    q = np.full(logits.shape, eps / logits.shape[1])
    q[np.arange(len(ids)), ids] += 1 - eps

    def backward(dloss=1.0):
        d = p.copy()
        d[np.arange(len(ids)), ids] -= 1
        return dloss * d / len(ids), None

    return -(q * np.log(p)).sum() / len(ids), backward


class Leaky:
    """The slope below 0 is forgotten, and there are two ways to branch: no single change helps."""

    def __init__(self):
        self.slope = 0.2

    def forward(self, x):
        self.x = x
        return np.maximum(x, self.slope * x) + np.minimum(0, 0 * x)

    def backward(self, dout):
        d = dout.copy()
        for i in np.ndindex(d.shape):
            if self.x[i] < 0:
                d[i] = 0
        return d


def rotated(q):
    """Turned forward once more, not back."""
    angle = np.arange(q.shape[1])[:, None] * np.array([1.0, 0.3])
    c, s = np.cos(angle), np.sin(angle)

    def turn(v):
        a, b = v[..., :2], v[..., 2:]
        return np.concatenate([a * c - b * s, a * s + b * c], -1)

    return turn(q), turn


def below_zero(x, slope=0.1):
    """The slope itself below 0, not slope·dy."""

    def backward(dy):
        dx = dy.copy()
        dx[x < 0] = slope
        return dx

    return np.where(x > 0, x, slope * x), backward


class LargestOf:
    """The winner of one row gets what every row should get."""

    def forward(self, x):
        self.shape, self.winner = x.shape, x.argmax(1)
        return x.max(1)

    def backward(self, dy):
        dx = np.zeros(self.shape)
        dx[:, self.winner] = dy
        return dx


def logistic_loss(z, t):
    """σ′, which p − t holds already, once more."""
    p = 1 / (1 + np.exp(-z))

    def backward(dloss=1.0):
        return dloss * ((p - t) * p * (1 - p)) / z.size, None

    return (np.log1p(np.exp(z)) - t * z).mean(), backward


def diagonal(scores):
    """A·(1 − A), the derivative of a sigmoid, for a softmax."""
    A = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return A, lambda dA: A * (1 - A) * dA


def opposite_mask(x, keep):
    def backward(dy):
        dx = dy.copy()
        dx[keep] = 0
        return dx, None

    return x * keep, backward


def mean_over_rows(x, w):
    """Divided by all entries of x, not by its rows."""
    return (x @ w).mean(0), lambda dy: (np.ones((len(x), 1)) * (dy @ w.T) / len(x), x.sum(0)[:, None] * dy / x.size)


def of_booleans(x, keep):
    """NumPy's booleans have no minus."""
    return np.where(keep, -x, 0), lambda dy: (dy * -keep, None)


class Residual:
    """dy itself becomes dx before it was read for dW."""

    def __init__(self):
        self.W = R((4, 4))

    def forward(self, x):
        self.h = np.tanh(x)
        return x + self.h @ self.W

    def backward(self, dy):
        dh = dy @ self.W.T
        dx = dy
        dx += dh * (1 - self.h**2)
        self.dW = self.h.T @ dy
        return dx


class ResidualSquared(Residual):
    """h is squared in place, and dW reads it afterwards."""

    def backward(self, dy):
        h, dx = self.h, dy.copy()
        h **= 2
        dx += (dy @ self.W.T) * (1 - h)
        self.dW = h.T @ dy
        return dx


def hinge(scores, t):
    """What the right class gets is −1, not minus the number of the others that come too close."""
    N = len(scores)
    rows = np.arange(N)
    margins = np.maximum(0, scores - scores[rows, t][:, None] + 1)
    margins[rows, t] = 0

    def backward(dloss=1.0):
        d = (margins > 0).astype(float)
        d[rows, t] = -1
        return dloss * d / N, None

    return margins.sum() / N, backward


IDS = np.array([1, 0, 3, 2, 0])
REPAIRED = {
    gated: ([R((2, 3)), R((3, 4)), R((3, 4))], "return (da @ W.T) + dg @ V.T, x.T @ da, x.T @ dg"),
    two_experts: ([R((5, 3)), R((3, 2)), R((3, 4)), R((3, 4))], "dz = p * (dp - (dp * p).sum(1, keepdims=True))"),
    weight_norm: ([R((2, 3)), R((3, 4)), R(4)], "v * (dw * v).sum(0) / n**2"),
    group_norm: ([R((3, 4, 5))], "* h).mean(axis=-1, keepdims=True))"),
    heads: ([R((2, 3, 4))], "dh = dy.reshape(B, T, 2, D // 2).transpose(0, 2, 1, 3)"),
    elu: ([R((3, 4))], "np.where(x > 0, 1, y + alpha)"),
    correlate: ([R(7), R(3)], "dy * w[i, ...]"),
    depthwise: ([R((7, 2)), R((3, 2))], "dy * w[i]"),
    low_rank: ([R((5, 4)), R((4, 2)), R((2, 3))], "(u.T @ dy) * (alpha / rank)"),
    instance_norm: ([R((2, 3, 4, 5))], "h * (dy * h).mean((2, 3), keepdims=True)"),
    squeeze_and_excite: ([R((2, 3, 4, 5)), R((3, 3))], " + dy * g[:, :, None, None]"),
    highway: ([R((3, 4)), R((3, 4)), R((3, 4))], "dh, dt = dy * t, dy * (h - x)"),
    gather: ([R((6, 3)), IDS], "np.add.at(d, ids, dy)"),
    ignoring: ([R((5, 4)), IDS], "return dloss * d / n * keep[:, None], None"),
    below_zero: ([R((3, 4))], "dx[x < 0] = slope * dy[x < 0]"),
    LargestOf: ([R((4, 5))], "dx[np.arange(len(self.winner)), self.winner] = dy"),
    diagonal: ([R((3, 4))], "A * (dA - (dA * A).sum(axis=-1, keepdims=True))"),
    opposite_mask: ([R((3, 4)), R((3, 4)) > 0], "dx[~keep] = 0"),
    of_booleans: ([R((3, 4)), R((3, 4)) > 0], "dy * -keep.astype(float)"),
    mean_over_rows: ([R((5, 3)), R((3, 2))], "x.sum(0)[:, None] * dy / len(x)"),
    Residual: ([R((3, 4))], "dx = dy.copy()"),
    ResidualSquared: ([R((3, 4))], "self.dW = h.T @ dy  …  h **= 2"),
    logistic_loss: ([R(5), IDS % 2 > 0], "return dloss * (p - t) / z.size, None"),
}


@pytest.mark.parametrize("f", REPAIRED, ids=lambda f: f.__name__)
def test_the_change_that_makes_it_right(f):
    inputs, right = REPAIRED[f]
    report = gradcheck(f() if isinstance(f, type) else f, *inputs)
    assert not report
    assert right in report.repair[3], report.repair


def test_the_two_sides_of_a_tuple_are_told_apart():
    """dk alone is wrong; dv, which is set beside it, is not."""

    def pair(x, z):
        def backward(dy):
            dx, dz = dy * z * z * 3, dy * x
            return dx, dz

        return x * z, backward

    report = gradcheck(pair, R((3, 4)), R((3, 4)))
    assert [line.partition("  ")[2] for line in report.suspects] == ["dx = dy * z * z * 3", "return dx, dz"]


def test_what_is_computed_and_not_used_is_named():
    def centred(x):
        def backward(dy):
            dmean = -dy.mean(1, keepdims=True)  # noqa: F841
            return dy

        return x - x.mean(1, keepdims=True), backward

    report = gradcheck(centred, R((3, 4)))
    assert not report
    assert any(note.startswith("dmean is computed, and nothing uses it (") for note in report.notes)
    assert not any("nothing uses" in note for note in gradcheck(gated, R((2, 3)), R((3, 4)), R((3, 4))).notes)


def test_right_by_itself_is_not_a_stop_in_time():
    """dy of the last step for that of each: what comes back from later steps is right."""

    def running_sum(x):
        def backward(dy):
            dx, later = np.zeros_like(x), 0.0
            for t in reversed(range(x.shape[1])):
                later = later + dy[:, -1]
                dx[:, t] = later
            return dx

        return x.cumsum(1), backward

    report = gradcheck(running_sum, R((3, 4, 2)))
    assert not report
    assert "comes back from later steps" not in report.explain()


def test_zeros_and_ones_are_not_a_mask_if_there_is_one():
    """Here ids are 0 and 1 only, and `keep` is as true as they are."""
    report = gradcheck(ignoring, R((5, 4)), IDS % 2)
    assert "keep[:, None]" in report.repair[3]
    assert "not applied" not in report.explain()


def scores(seed):
    return np.random.default_rng(seed).standard_normal((4, 5))


TOLD = [
    (smoothed, [R((5, 4)), IDS], "It is the right gradient for eps = 0. Perhaps eps is left out on the way back."),
    (Leaky(), [R((4, 5))], "It is the right gradient for self.slope = 0. Perhaps self.slope is left out on the way back."),
    (rotated, [R((2, 3, 4))], "It is J·dy, the forward's derivative along dy."),
    (hinge, [scores(1), IDS[:4]], "Wrong only at the entry that t names in each row; all others are right."),
    (hinge, [scores(2), IDS[:4]], "Wrong only at entries that t names, 3 of these 4; all others are right."),
]


@pytest.mark.parametrize(("f", "inputs", "words"), TOLD, ids=["smoothed", "Leaky", "rotated", "hinge", "hinge, one other"])
def test_the_words(f, inputs, words):
    report = gradcheck(f, *inputs)
    assert not report
    assert words in report.explain()


def test_an_option_is_as_it_was_afterwards():
    leaky = Leaky()
    gradcheck(leaky, R((4, 5)))
    assert leaky.slope == 0.2


def swiglu(x, W, V, U):
    """The derivative of the sigmoid alone, where that of SiLU belongs."""
    a, b = x @ W, x @ V
    s = 1 / (1 + np.exp(-a))
    h = a * s * b

    def backward(dy):
        dU = h.T @ dy
        dh = dy @ U.T
        db = dh * a * s
        da = dh * b * (s * (1 - s))
        return da @ W.T + db @ V.T, x.T @ da, x.T @ db, dU

    return h @ U, backward


def silu(x):
    """The gate alone: it, too, depends on x."""
    s = 1 / (1 + np.exp(-x))
    return x * s, lambda dy: dy * s


@pytest.mark.parametrize(("f", "shapes", "right"), [
    (swiglu, [(3, 4), (4, 5), (4, 5), (5, 2)], "da = dh * b * (s + a * s * (1 - s))"),
    (silu, [(3, 4)], "return x * s, lambda dy: dy * (s + x * s * (1 - s))"),
])  # fmt: skip
def test_the_gate_depends_on_its_input_too(f, shapes, right):
    report = gradcheck(f, *(R(shape) for shape in shapes))
    assert not report
    assert report.repair[3] == right
    assert "too, depends on" in report.repair[1]


def test_lines_of_gradients_of_which_some_are_returned_by_name():
    """x, W, V, U are in the order of the arguments, although only the last is called what it is, dU."""
    report = gradcheck(swiglu, R((3, 4)), R((4, 5)), R((4, 5)), R((5, 2)))
    lines = [line.partition("  ")[2] for line in report.suspects]
    assert lines == ["da = dh * b * (s * (1 - s))"]


def turned(x):
    """(y, c, s): neighbouring entries as a point in the plane, turned by an angle that depends on the word (RoPE)"""
    angle = np.arange(x.shape[1])[:, None] * 10.0 ** -np.arange(x.shape[2] // 2)
    c, s = np.cos(angle), np.sin(angle)
    y = np.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
    y[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
    return y, c, s


def sine_for_cosine(x):
    y, c, s = turned(x)

    def backward(dy):
        dx = np.empty_like(dy)
        dx[..., 0::2] = dy[..., 0::2] * s + dy[..., 1::2] * c
        dx[..., 1::2] = dy[..., 1::2] * c - dy[..., 0::2] * s
        return dx

    return y, backward


def only_half(x):
    y, c, s = turned(x)

    def backward(dy):
        dx = np.empty_like(dy)
        dx[..., 0::2] = dy[..., 0::2] * c + dy[..., 1::2] * s
        dx[..., 1::2] = dy[..., 1::2] * c
        return dx

    return y, backward


@pytest.mark.parametrize(("f", "words", "right"), [
    (sine_for_cosine, "s and c are in each other's place", "dx[..., 0::2] = dy[..., 0::2] * c + dy[..., 1::2] * s"),
    (only_half, "a term is missing, −dy[..., 0::2] * s", "dx[..., 1::2] = dy[..., 1::2] * c - dy[..., 0::2] * s"),
])  # fmt: skip
def test_every_second_entry(f, words, right):
    report = gradcheck(f, R((2, 3, 4)))
    assert not report
    assert report.repair[1] == words
    assert report.repair[3] == right

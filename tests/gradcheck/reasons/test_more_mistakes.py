"""Mistakes of an author who had not seen the checker, in smaller functions: each is told, and none is told wrongly."""

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judged
from mini_tf.gradcheck.reasons.candidates import candidates
from mini_tf.gradcheck.reasons.theirs import following

import numpy as np
import pytest

R = np.random.default_rng(11).standard_normal
WINDOW, STEP = 4, 2                                      # WINDOW is STEP²: one might stand for the other


def channel_scale(x, gamma):
    """gamma is forgotten, and only gamma[None, :, None], as the forward has it, fits."""
    flat = x.reshape(len(x), -1)

    def backward(dy):
        return dy.reshape(flat.shape).reshape(x.shape), (dy * x).sum((0, 2))

    return gamma[None, :, None] * x, backward


def group_mean(x, groups=2):
    """Divided by H, not by the number of entries of a group."""
    B, C, H = x.shape
    parts = x.reshape(B, groups, C // groups, H)
    mean = parts.mean((2, 3), keepdims=True)

    def backward(dy):
        dparts = dy.reshape(parts.shape)
        m = H
        return (dparts - dparts.sum((2, 3), keepdims=True) / m).reshape(x.shape)

    return (parts - mean).reshape(x.shape), backward


def similarities(x):
    """Each row is in x·xᵀ twice."""
    return x @ x.T, lambda dy: dy @ x


def two_gates(x, W):
    """The factor a is forgotten in one of two arrays that are joined."""
    h = x @ W
    k = W.shape[1] // 2
    a, b, slope = np.tanh(h[:, :k]), np.sin(h[:, k:]), np.cos(h[:, k:])

    def backward(dy):
        dh = np.concatenate([dy * b * (1 - a**2), dy * slope], axis=1)
        return dh @ W.T, x.T @ dh

    return a * b, backward


def mish(x):
    """The sigmoid is computed, and not used."""
    softplus = np.log1p(np.exp(x))
    t = np.tanh(softplus)

    def backward(dy):
        s = 1 / (1 + np.exp(-x))  # noqa: F841, that is the mistake
        return dy * (t + x * (1 - t**2))

    return x * t, backward


def log_variance(mu, lv):
    """½ is missing: the slope of ½·lv."""
    loss = 0.5 * (lv + mu**2 * np.exp(-lv))
    return loss, lambda dy: (dy * mu * np.exp(-lv), dy * (-0.5 * mu**2 * np.exp(-lv)))


def running_sum(x, b):
    """What b[t] adds at each step is forgotten in the recursion back."""
    T = len(x)
    h = np.zeros(T + 1)
    for t in range(T):
        h[t + 1] = np.log(np.exp(h[t] + b[t]) + np.exp(x[t]))

    def backward(dy):
        dx, db, dh = np.zeros(T), np.zeros(T), dy
        for t in reversed(range(T)):
            share = np.exp(h[t] - h[t + 1])
            dx[t] = dh * (1 - share)
            db[t] = dh = dh * share
        return dx, db

    return h[T], backward


def batch_norm(x):
    """n, kept for the backward, counts the texts alone."""
    B, T, _ = x.shape
    n = B
    r = 1 / np.sqrt(x.var((0, 1)) + 1e-5)
    normal = (x - x.mean((0, 1))) * r

    def backward(dy):
        return r / n * (n * dy - dy.sum((0, 1)) - normal * (dy * normal).sum((0, 1)))

    return normal, backward


def windows(x):
    """Divided by STEP, which is √WINDOW only by chance."""
    count = (len(x) - WINDOW) // STEP + 1
    y = np.array([x[k * STEP : k * STEP + WINDOW].mean() for k in range(count)])

    def backward(dy):
        dx = np.zeros_like(x)
        for k in range(count):
            dx[k * STEP : k * STEP + WINDOW] += dy[k] / STEP
        return dx

    return y, backward


def padded(x):
    """The padding is cut at the wrong end."""
    L = x.shape[1]
    wide = np.pad(x, [(0, 0), (1, 1)])

    def backward(dy):
        dwide = np.zeros_like(wide)
        dwide[:, :-2] += dy
        dwide[:, 2:] -= dy
        return dwide[:, :L]

    return wide[:, :-2] - wide[:, 2:], backward


def standardized(x):
    """The square root is forgotten in the slope of √v; or, which is the same in dx, there is a power too many above."""
    m = x - x.mean(0)
    v = (m * m).mean(0)
    s = np.sqrt(v + 0.1)

    def backward(dy):
        first = (dy * m).sum(0) * -1 / s**2
        second = first * 0.5 / (v + 0.1)
        third = dy / s + 2 * m * second / len(x)
        return third - third.mean(0)

    return m / s, backward


def standardized_by_name(x):
    """The same, but the variables have the names of what they are the gradients of."""
    m = x - x.mean(0)
    v = (m * m).mean(0)
    s = np.sqrt(v + 0.1)

    def backward(dy):
        ds = (dy * m).sum(0) * -1 / s**2
        dv = ds * 0.5 / (v + 0.1)
        dm = dy / s + 2 * m * dv / len(x)
        return dm - dm.mean(0)

    return m / s, backward


def leaky(x, a):
    """1 where 0 belongs: a is not used where x > 0. For positive a, another condition would do, too."""
    e = a * (np.exp(np.minimum(x, 0)) - 1)
    return np.where(x > 0, x, e), lambda d: (d * np.where(x > 0, 1, e + a), (d * np.where(x > 0, 1, e / a)).sum(0))


def ridge(W, x):
    """The penalty is forgotten in the gradient."""
    reg = 0.3
    z = x @ W
    dW = x.T @ np.cos(z)
    return np.sin(z).sum() + 0.5 * reg * (W * W).sum(), dW


def gates(x, W):
    """The gates' gradients are joined in another order than that in which they were split."""
    i, f, g = np.split(x @ W, 3, axis=1)

    def backward(dy):
        di = dy * f * g
        df = dy * i * g
        dg = dy * i * f
        dz = np.concatenate([df, di, dg], axis=1)
        return dz @ W.T, x.T @ dz

    return i * f * g, backward


def tanh_layer(x, W):
    """The sum before tanh stands where its output belongs."""
    z = x @ W

    def backward(dy):
        dz = dy * (1 - z**2)
        return dz @ W.T, x.T @ dz

    return np.tanh(z), backward


def both_sides(x, p=1):
    """The padding is cut from one end."""
    H, W = x.shape
    wide = np.pad(x, p)

    def backward(dy):
        dwide = np.zeros_like(wide)
        dwide[p : p + H, p : p + W] += 2 * dy * x
        dwide[:H, :W] += dy
        return dwide[:H, :W]

    return x**2 + wide[:H, :W], backward


def normalized_weights(x, a):
    """What the sum of the softmax gives back to a is forgotten."""
    e = np.exp(a - a.max())
    pi = e / e.sum()

    def backward(dy):
        g = dy[:, None] * x * pi
        da = g.sum(0)
        return dy[:, None] * pi, da

    return x @ pi, backward


def peephole(c, w):
    """The output gate sees the new cell, too: the way through w[2] is forgotten."""
    i, new = 1 / (1 + np.exp(-w[0] * c)), np.tanh(w[1] * c)
    s = i * new
    o = 1 / (1 + np.exp(-w[2] * s))

    def backward(dy):
        do = dy * np.tanh(s)
        dao = do * o * (1 - o)
        ds = dy * o * (1 - np.tanh(s) ** 2)
        dai, dan = ds * new * i * (1 - i), ds * i * (1 - new**2)
        dw = np.stack([(dai * c).sum(0), (dan * c).sum(0), (dao * s).sum(0)])
        return dai * w[0] + dan * w[1], dw

    return o * np.tanh(s), backward


def kept_state(h, x):
    """Where m is 0 the state is kept: what comes back there is forgotten."""
    m = (np.arange(3) % 2)[:, None]
    new = np.tanh(h + x)

    def backward(dy):
        dnew = dy * m
        dz = dnew * (1 - new**2)
        dh = dz
        return dh, dz

    return m * new + (1 - m) * h, backward


def rotated(x, sign=1):
    half = x.shape[-1] // 2
    t = sign * np.arange(len(x))[:, None] / 3
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(t) - b * np.sin(t), a * np.sin(t) + b * np.cos(t)], axis=-1)


def two_rotations(q, k):
    """dq is rotated forward once more; dk goes back."""
    s = np.sum(rotated(q) * rotated(k), axis=-1)

    def backward(dy):
        dq = rotated(dy[:, None] * rotated(k))
        dk = rotated(dy[:, None] * rotated(q), sign=-1)
        return dq, dk

    return s, backward


FLOOR = 0.1


def floored(x):
    """Nothing comes back where the floor is."""
    clamped = np.maximum(x, FLOOR)
    return np.log(clamped), lambda dy: dy / clamped


def centred_channels(x):
    """The mean over examples and places is not taken away on the way back."""
    return x - x.mean(axis=(0, 2), keepdims=True), lambda dy: dy * 1.0


def penalty_but_for_the_bias(W, x):
    z = x @ W
    dW = x.T @ np.cos(z)
    dW += 0.2 * W
    return np.sin(z).sum() + 0.1 * (W[:-1] ** 2).sum(), dW


def trace_of(A):
    """Only the diagonal of dA counts."""
    scale = np.exp(A[0, 0])
    return scale * np.trace(A) + np.sin(A).sum(), lambda dy: dy * (
        np.cos(A) + scale * np.eye(len(A)) + np.pad([[scale * A.sum()]], (0, len(A) - 1)))


def repeated_heads(x, rep=2):
    """Each head is repeated beside itself; the sum takes others together."""
    T, n, d = x.shape
    wide = np.repeat(x, rep, axis=1)
    w = np.arange(wide.size).reshape(wide.shape) / 10

    def backward(dy):
        dwide = dy * w
        return dwide.reshape(T, rep, n, d).sum(axis=1)

    return wide * w, backward


def log_softmax(z):
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    return np.log(p), lambda g: p * (g - (p * g).sum(axis=-1, keepdims=True))


def gathered(x):
    """Rows in another order go back by the inverse permutation."""
    order = np.roll(np.arange(len(x)), 2)
    return x[order] ** 2, lambda dy: (2 * dy * x[order])[order]


def doubled(x):
    """Every entry is there twice."""
    return np.repeat(x, 2, axis=-1), lambda dy: dy[..., 0::2]


def mixture(gate, a):
    """p and 1 − p are exchanged."""
    p = 1 / (1 + np.exp(-gate))
    return np.log(p) * a + np.log(1 - p), lambda dy: (dy * (a * p - (1 - p)), dy * np.log(p))


def recomputed(x):
    """A 2 is missing in the last line; in the line above, which computes again what the forward had, it does as well."""
    s = np.tanh(x)

    def backward(dy):
        again = np.tanh(x)
        return dy * (again + 1) * (1 - s**2)

    return s * s + s, backward


def only_the_states(x, h):
    """The gradient of the last state, dlast, is not used."""
    s = np.tanh(x + h)

    def backward(ds, dlast):
        carry = np.zeros_like(h)
        dz = (carry + ds) * (1 - s**2)
        return dz, dz

    return s, 1.0 * s, backward


def clamped_penalty(x, least=0.3, rate=0.1):
    """Below the least, nothing comes back from the penalty: active is computed, and not used."""
    energy = 0.5 * x**2
    y = np.sin(x).sum() + rate * np.maximum(energy, least).sum()

    def backward(dy):
        active = energy > least                          # noqa: F841, this is the mistake
        weight = dy * rate
        return dy * np.cos(x) + weight * x

    return y, backward


def unit(v):
    """The division by the length is of one part only; or one is missing in the line above."""
    length = np.sqrt((v * v).sum(axis=1, keepdims=True))
    u = v / length

    def backward(dy):
        radial = (dy * u).sum(axis=1, keepdims=True)
        return dy / length - radial * u

    return u, backward


def counted_pages(x):
    """A while-loop in a helper takes the mean where the sum belongs."""
    wide = x + np.zeros((3, *x.shape))
    return wide**2, lambda dy: folded(2 * dy * wide, x.ndim)


def folded(g, ndim):
    while g.ndim > ndim:
        g = g.mean(axis=0)
    return g


@pytest.mark.parametrize(("f", "shapes", "right"), [
    (only_the_states, [(3, 4), (3, 4)], "dlast"),
    (clamped_penalty, [(5, 3)], "* active"),
    (unit, [(4, 3)], "radial * u / length"),
    (counted_pages, [(4, 5)], "g.sum(axis=0)"),
    (peephole, [(4, 5), (3, 5)], "+ dao * w[2]"),
    (kept_state, [(3, 4), (3, 4)], "* (1 - m)"),
    (two_rotations, [(5, 4), (5, 4)], "sign=-1)"),
    (floored, [(4, 3)], "* (x > FLOOR)"),
    (centred_channels, [(2, 3, 4)], "mean(axis=(0, 2), keepdims=True)"),
    (penalty_but_for_the_bias, [(4, 3), (5, 4)], "dW[:-1] += 0.2 * W[:-1]"),
    (trace_of, [(3, 3)], "np.trace(A)"),
    (repeated_heads, [(3, 2, 5)], "dwide.reshape(T, n, rep, d).sum(axis=2)"),
    (log_softmax, [(3, 4)], "g - p * g.sum(axis=-1, keepdims=True)"),
    (gathered, [(7, 2)], "[np.argsort(order)]"),
    (doubled, [(2, 3)], "dy[..., 0::2] + dy[..., 1::2]"),
    (mixture, [(4,), (4,)], "a * (1 - p) - p"),
    (recomputed, [(3, 4)], "return dy * ("),
    (leaky, [(4, 3), (3,)], "(x > 0, 0, e / a)"),
    (ridge, [(3, 2), (5, 3)], "+ reg * W"),
    (gates, [(3, 4), (4, 6)], "[di, df, dg]"),
    (tanh_layer, [(3, 4), (4, 2)], "np.tanh(z) ** 2"),
    (both_sides, [(4, 5)], "dwide[p:p + H, p:p + W]"),
    (normalized_weights, [(4, 3), (3,)], "- pi * g.sum()"),
    (channel_scale, [(2, 3, 4), (3,)], "gamma["),
    (group_mean, [(2, 6, 5)], "/ m / (C // groups)"),
    (similarities, [(4, 3)], "(dy + dy.T) @ x"),
    (two_gates, [(3, 4), (4, 6)], "* a"),
    (mish, [(3, 4)], "* s"),
    (log_variance, [(3, 4), (3, 4)], "+ 0.5"),
    (running_sum, [(5,), (5,)], "+ b"),
    (batch_norm, [(2, 3, 4)], "n = B * T"),
    (windows, [(10,)], "/ WINDOW"),
    (padded, [(2, 5)], "dwide[:, 1:L + 1]"),
])  # fmt: skip
def test_one_change_makes_it_right(f, shapes, right):
    report = gradcheck(f, *(R(shape) for shape in shapes))
    assert not report
    assert report.repair, report
    assert right in " or ".join([report.repair[3], *report.other_repair[3:]])


def test_numbers_of_a_file_are_as_they_were_afterwards():
    gradcheck(windows, R(10))
    assert (WINDOW, STEP) == (4, 2)


# A loss that comes with its gradients, as a step -----------------------------------------------------------------------


def scaled(x, w):
    return x * w, lambda dy: (dy * w, (dy * x).sum(0))


def squared(y, target):
    d = y - target
    loss, dy = (d * d).sum(), d                          # the 2 is forgotten
    return loss, dy


def norm_and_direction(x):
    """A number and an array, which are no loss and its gradient."""
    n = np.sqrt((x * x).sum())
    return n, x / n


def fitted(x, w, target):
    y, back = scaled(x, w)
    loss, dy = squared(y, target)
    norm_and_direction(x)
    dx, dw = back(dy)
    return loss, dx, dw


def test_a_loss_that_comes_with_its_gradients_is_a_step():
    report = gradcheck(fitted, R((4, 3)), R(3), R((4, 3)))
    assert report.wrong_step.name == "squared"
    assert "norm_and_direction" not in [step.name for step in report.steps]


def own_lines(W, x, y):
    """The mistake is in a function that it calls, and that is no step."""
    z = x @ W
    value, slope = _loss_of(z, y)
    return value, x.T @ slope


def _loss_of(z, y):
    return ((z - y) ** 2).sum(), z - y


def test_a_change_is_looked_for_in_what_a_loss_calls():
    report = gradcheck(own_lines, R((3, 2)), R((5, 3)), R((5, 2)))
    assert report.repair, report
    assert "2" in report.repair[3]


# Words that claim no more than was measured ----------------------------------------------------------------------------


def direction(q):
    """1/‖q‖ is forgotten: another factor for every q."""
    r = np.sqrt(q @ q)
    n = q / r
    return n, lambda dn: dn - n * (n @ dn)


def test_a_factor_that_differs_from_point_to_point_is_not_said_to_be_everywhere():
    report = gradcheck(direction, R(4))
    assert "not everywhere by the same number" in report.tensors[0].diagnosis
    assert "Everywhere" not in report.explain()


def cancels(x, w):
    """What comes back to w is rounding errors: a softmax's gradients sum to 0."""
    e = np.exp(x * w - (x * w).max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)

    def backward(dy):
        dz = y * (dy - (dy * y).sum(-1, keepdims=True))
        return dz * w, np.full(w.shape, dz.sum())

    return y, backward


def test_of_rounding_errors_it_is_not_said_that_they_are_not_linear():
    report = gradcheck(cancels, R((3, 4)), R(4))
    assert "linear" not in report.explain()
    assert "zero everywhere" in report.tensors[1].diagnosis


def test_off_by_the_same_number_everywhere():
    report = gradcheck(lambda lv: ((lv + np.exp(-lv)).sum(), lambda dy=1.0: dy * -np.exp(-lv)), R((3, 4)))
    assert "off by the same number everywhere" in report.tensors[0].diagnosis


# Two mistakes, and lines -----------------------------------------------------------------------------------------------


class Halves:
    """Each factor's gradient is multiplied by itself, not by the other: two mistakes, unless the lines are exchanged."""

    sign = 1.0

    def __init__(self, rng):
        self.V, self.W = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))

    def forward(self, x):
        self.x, self.a, self.b = x, x @ self.V, x @ self.W
        return self.a * self.b

    def backward(self, dout):
        da = dout * self.a
        db = dout * self.b * self.sign
        self.dV, self.dW = self.x.T @ da, self.x.T @ db
        return da @ self.V.T + db @ self.W.T


class Unequal(Halves):
    """With a sign that is wrong, too"""

    sign = -1.0


def test_lines_that_are_exchanged():
    report = gradcheck(Halves(np.random.default_rng(0)), R((5, 4)))
    assert report.repair[2:] == ["da = dout * self.a; db = dout * self.b * self.sign",
                                 "da = dout * self.b * self.sign; db = dout * self.a"]  # fmt: skip


def test_of_two_mistakes_one_change_mends_a_part_and_no_more_is_said():
    report = gradcheck(Unequal(np.random.default_rng(0)), R((5, 4)))
    assert not report.repair
    assert report.made_right
    assert "x" not in report.made_right
    assert "One makes d" in report.explain()
    assert "repair_in_part" in report.to_json()


def kept_and_changed(x):
    """Every place of `sums` has the same array."""
    total, sums = np.zeros(x.shape[1]), []
    for row in x:
        total += row
        sums.append(total)
    y = np.array([(x[: t + 1].sum(0) ** 2).sum() for t in range(len(x))])

    def backward(dy):
        dx = np.zeros_like(x)
        for t in range(len(x)):
            dx[: t + 1] += 2 * dy[t] * sums[t]
        return dx

    return y, backward


def test_an_array_that_is_changed_after_it_was_kept():
    report = gradcheck(kept_and_changed, R((3, 2)))
    assert any(note.startswith("total is changed in place") for note in report.notes)


def test_what_the_forward_computes_for_the_wrong_lines_only_is_among_them():
    def pooled(x, w):
        scale = np.sin(x).sum()                          # what should be here, one cannot guess
        return (x * w).mean(0), lambda dy: (np.broadcast_to(dy * w, x.shape) * scale, (dy * x).mean(0))

    report = gradcheck(pooled, R((3, 2)), R(2))
    assert any("scale = np.sin(x).sum()" in line for line in report.suspects), report.suspects


class Inner:
    def __init__(self, rng):
        self.W = rng.standard_normal((4, 4))

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dout):
        self.dW = self.x.T @ dout
        return dout @ self.W.T


class Outer:
    """What comes back through the gate is computed, and not added."""

    def __init__(self, rng):
        self.inner, self.gate = Inner(rng), Inner(rng)

    def forward(self, x):
        self.h, self.g = self.inner.forward(x), self.gate.forward(x)
        return self.h * self.g

    def backward(self, dout):
        dx = self.inner.backward(dout * self.g)
        self.gate.backward(dout * self.h)
        return dx


def test_what_comes_back_and_is_not_added():
    report = gradcheck(Outer(np.random.default_rng(0)), R((3, 4)))
    assert report.repair[3] == "dx = dx + self.gate.backward(dout * self.h)"
    assert any("what self.gate.backward(…) gives back is not used" in note for note in report.notes)


def test_where_only_the_end_is_of_interest_lines_are_not_traced():
    seen = []
    with following(_loop.__code__, lambda frame, event: seen.append(event), lines=False):
        _loop()
    assert seen == ["call", "return"]


def _loop():
    for _ in range(10):
        pass


def test_where_two_changes_make_it_right_both_are_shown():
    """A power too many in one line, or a root that is missing in the next: the numbers cannot tell."""
    report = gradcheck(standardized, R((5, 3)))
    assert report.other_repair
    shown = {report.repair[3], report.other_repair[3]}
    assert "second = first * 0.5 / (np.sqrt(v + 0.1))" in shown
    assert "Or this one, at" in report.explain()


def test_where_one_of_two_changes_makes_a_right_variable_wrong_the_other_is_shown():
    """ds is the slope in s: the power in its line is not too many."""
    report = gradcheck(standardized_by_name, R((5, 3)))
    assert report.repair[2] == "dv = ds * 0.5 / (v + 0.1)"
    assert not report.other_repair


def relu_forward(x):
    return np.maximum(x, 0), x


def relu_backward(dout, x):
    return dout * (x > 0)


def test_a_backward_that_never_runs_is_noted():
    class Net:
        def __init__(self):
            self.W = R((4, 3))

        def forward(self, x):
            a, self.first = relu_forward(x)
            self.h, self.second = relu_forward(a @ self.W)
            self.a = a
            return self.h

        def backward(self, dout):
            dz = relu_backward(dout, self.second)
            self.dW = self.a.T @ dz
            return dz @ self.W.T

    report = gradcheck(Net(), R((5, 4)))
    assert any(note.startswith("the backward of relu_forward (called at") for note in report.notes), report


def dice(z, target):
    p = 1 / (1 + np.exp(-z))
    return (p * target).sum(), lambda d: d * target * p * (1 - p)


def scaled_dice(x, s):
    y, back_scale = scaled(x, s)
    value, back_dice = dice(y, np.arange(12.0).reshape(y.shape))

    def backward(d):
        dx, ds = back_scale(back_dice(d))
        return 2 * dx, ds

    return value, backward


def test_a_constant_of_a_step_needs_no_gradient():
    report = gradcheck(scaled_dice, R((4, 3)), R(3))
    assert report.wrong_step is None
    assert "too few" not in report.explain()


# Mistakes of three more authors ----------------------------------------------------------------------------------------


def pixels(image, points):
    """Of pixels that several points share, only one gradient is added; f is made for points (N, 2)."""
    r, c = np.abs(points[:, 0]).astype(int) % image.shape[1], np.abs(points[:, 1]).astype(int) % image.shape[2]
    weight = np.sin(points[:, 0] + 2 * points[:, 1])

    def backward(dy):
        dimage = np.zeros_like(image)
        dimage[:, r, c] += (dy * weight[:, None]).T
        dpoints = np.zeros_like(points)
        slope = (dy * image[:, r, c].T).sum(1) * np.cos(points[:, 0] + 2 * points[:, 1])
        dpoints[:, 0], dpoints[:, 1] = slope, 2 * slope
        return dimage, dpoints

    return image[:, r, c].T * weight[:, None], backward


def softmax_in_logs(z):
    """The sum is missing in log-softmax's backward."""
    y = z - np.log(np.exp(z).sum())

    def backward(dy):
        p = np.exp(y)
        return dy - p * dy

    return y, backward


def spectrum(x, w):
    """A complex conjugate is missing."""
    W = np.fft.fft(w)

    def backward(dy):
        dx = np.fft.ifft(np.fft.fft(dy) * W).real
        dw = np.fft.ifft(np.fft.fft(dy) * np.conj(np.fft.fft(x))).real
        return dx, dw

    return np.fft.ifft(np.fft.fft(x) * W).real, backward


def running_mean(x, w):
    """A cumulative sum goes back from the end."""
    return np.cumsum(x * w, axis=1), lambda dy: (np.cumsum(dy, axis=1) * w, (np.cumsum(dy[:, ::-1], axis=1)[:, ::-1] * x).sum(0))


def decaying(x, a, b):
    """h is multiplied by its decay before what is added to it has been seen."""
    h, hs = np.zeros(x.shape[1]), []
    for t in range(len(x)):
        hs.append(h)
        h = a * h + b * x[t]

    def backward(dh):
        dx, da, db = np.zeros_like(x), np.zeros_like(a), np.zeros_like(b)
        for t in reversed(range(len(x))):
            da += dh * hs[t]
            dh = dh * a
            dx[t] = dh * b
            db += dh * x[t]
        return dx, da, db

    return h, backward


def crossed(x, W):
    """The layer's input is xs[k], and x only in the first round."""
    xs, y = [], x
    for k in range(len(W)):
        xs.append(y)
        y = np.tanh(y @ W[k])
    ys = [*xs[1:], y]

    def backward(d):
        dW = np.zeros_like(W)
        for k in reversed(range(len(W))):
            da = d * (1 - ys[k] ** 2)
            dW[k] = x.T @ da
            d = da @ W[k].T
        return d, dW

    return y, backward


def shared_start(x, w):
    """dy itself must not be added to."""
    y = x + np.sin(x) * w

    def backward(dy):
        dx = dy
        dw = (dy * np.sin(x)).sum(0)
        dx = dy * np.cos(x) * w
        return dx, dw

    return y, backward


def costs(D, gamma=0.7):
    """The cost of the next cell, D[i, j], belongs where that of this one is; and one weight is not divided by gamma."""
    y = np.zeros((len(D), D.shape[1]))
    for i in range(1, len(D)):
        for j in range(1, D.shape[1]):
            y[i, j] = np.exp((D[i, j] - D[i - 1, j - 1]) / gamma)

    def backward(dy):
        dD = np.zeros_like(D)
        for i in range(1, len(D)):
            for j in range(1, D.shape[1]):
                e = np.exp(D[i, j] - D[i - 1, j - 1])
                dD[i, j] += dy[i, j] * e / gamma
                dD[i - 1, j - 1] -= dy[i, j] * e / gamma
        return dD

    return y, backward


def scattered(x):
    """Two indices are off by one, both at once."""
    y = x[1:, 1:] * x[:-1, :-1]

    def backward(dy):
        dx = np.zeros_like(x)
        for i in range(1, len(x)):
            for j in range(1, x.shape[1]):
                dx[i, j] += dy[i - 1, j - 1] * x[i - 1, j - 1]
                dx[i - 1, j - 1] += dy[i - 1, j - 1] * x[i - 1, j - 1]
        return dx

    return y, backward


def leaky_scores(x, w):
    """The derivative of the leaky ReLU is forgotten."""
    z = x @ w
    y = np.where(z > 0, z, 0.2 * z)

    def backward(dy):
        dz = dy
        return np.outer(dz, w), x.T @ dz

    return y, backward


def turned(x, angle):
    """A rotation goes back by the opposite angle."""
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[:, 0], x[:, 1]

    def backward(dy):
        da, db = dy[:, 0], dy[:, 1]
        dangle = (-da * (a * s + b * c) + db * (a * c - b * s)).sum()
        return np.stack([da * c - db * s, da * s + db * c], axis=1), dangle

    return np.stack([a * c - b * s, a * s + b * c], axis=1), backward


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (pixels, [R((2, 3, 4)), 3 * R((9, 2))], "np.add.at(dimage, np.s_[:, r, c], (dy * weight[:, None]).T)"),
    (softmax_in_logs, [R(5)], "return dy - p * dy.sum()"),
    (spectrum, [R(5), R(5)], "np.conj(W)"),
    (running_mean, [R((2, 4)), R(4)], "np.flip(np.cumsum(np.flip(dy, 1), 1), 1) * w"),
    (decaying, [R((4, 3)), R(3), R(3)], "…  dh = dh * a"),
    (crossed, [R((3, 4)), R((3, 4, 4))], "dW[k] = xs[k].T @ da"),
    (shared_start, [R((3, 4)), R(4)], "dx = dx + dy * np.cos(x) * w"),
    (costs, [R((3, 4))], "/ gamma)"),
    (scattered, [R((3, 4))], "* x[i, j]"),
    (leaky_scores, [R((5, 3)), R(3)], "np.where(z > 0, 1.0, 0.2)"),
    (turned, [R((5, 2)), np.array(0.7)], "(-s)"),
], ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip
def test_one_change_of_three_more_authors_mistakes(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert report.verdict == "FAIL"
    assert right in report.repair[3], report


def filtered(x, w, b):
    """Each of F filters of N signals has a bias, whose gradient is a mean over N where it should be a sum."""
    N, F = len(x), len(w)
    y = x[:, None] * w[:, None] + b[:, None]

    def backward(dy):
        return (dy * w[:, None]).sum(1), (dy * x[:, None]).sum((0, 2)), dy.sum((0, 2)) / N

    return y.reshape(N, F, -1), backward


def test_by_which_of_two_equal_sizes_to_multiply_is_found_out():
    """N = F = 2 here, and larger arrays with N = F, too, would be right with F."""
    report = gradcheck(filtered, R((2, 3)), R(2), R(2))
    assert report.verdict == "FAIL"
    assert "F" not in report.repair[3], report


def rows_of_a_list(E, ids):
    """A power of 2 where 3 is right, and B is 3: a list of ids has no other sizes at which one could try."""
    e = E[np.array(ids)]
    B, r = len(ids), ((e * e).mean(-1, keepdims=True) + 1) ** -0.5

    def backward(dy):
        dE, de = np.zeros_like(E), dy * r - e * r**2 * (dy * e).mean(-1, keepdims=True)
        np.add.at(dE, np.array(ids), de * (B / B))
        return dE

    return e * r, backward


def test_a_size_that_is_the_same_everywhere_explains_nothing():
    report = gradcheck(rows_of_a_list, R((5, 4)), [1, 4, 0])
    assert report.verdict == "FAIL"
    assert not report.repair or "r**B" not in report.repair[3], report


def leap(p, v, a):
    """Two outputs in a tuple; its backward takes two gradients."""
    w = v + a
    return (p + w, w), lambda dp, dw: (dp, dp + dw, dp + dw)


def pull(p, k):
    return -k * p, lambda dy: (-k * dy, (dy * p).sum(0))     # the sign of dk is wrong


def orbit(p, v, k):
    backs = []
    for _ in range(2):
        a, back = pull(p, k)
        (p, v), leap_back = leap(p, v, a)
        backs.append((back, leap_back))

    def backward(dp):
        dv, dk = np.zeros_like(v), np.zeros_like(k)
        for back, leap_back in reversed(backs):
            dp, dv, da = leap_back(dp, dv)
            d, dk_here = back(da)
            dp, dk = dp + d, dk + dk_here
        return dp, dv, dk

    return p, backward


def test_a_step_with_two_outputs_in_a_tuple_is_checked_like_any_other():
    assert gradcheck(leap, R((3, 2)), R((3, 2)), R((3, 2)))
    assert gradcheck(lambda x: ((x, 2 * x), lambda d: d[0] + 2 * d[1]), R(3))
    report = gradcheck(orbit, R((3, 2)), R((3, 2)), R(2))
    assert report.wrong_step.name == "pull"


class ByColumns:
    """The gradient of W is written column by column; nothing that stands in the class is what is missing."""

    def __init__(self, rng):
        self.W = rng.standard_normal((4, 3))

    def forward(self, x):
        self.x = x
        return np.sin(x @ self.W)

    def backward(self, dout):
        slope = np.cos(self.x @ self.W)
        self.dW = np.zeros_like(self.W)
        for k in range(3):
            self.dW[:, k] += self.x.T @ (dout[:, k] * np.exp(slope[:, k]))
        return (dout * slope) @ self.W.T


def test_a_line_that_writes_a_part_of_a_gradient_is_among_the_lines():
    report = gradcheck(ByColumns(np.random.default_rng(0)), R((2, 4)))
    assert any("self.dW[:, k] +=" in line for line in report.suspects), report.suspects


def test_the_condition_of_the_wrong_lines_is_among_them():
    def clipped(x, w, c):
        def backward(dy):
            dx, dw = np.zeros_like(x), (dy * np.maximum(x - c[0], 0)).sum()
            for i in range(len(x)):
                if x[i] > c[1]:                          # should be c[0]: nothing else is like it
                    dx[i] = dy[i] * w
            return dx, dw, np.array([-(dy * w * (x > c[0])).sum(), 0.0])

        return np.maximum(x - c[0], 0) * w, backward

    report = gradcheck(clipped, np.array([0.5, -0.7, 1.2, 0.1, 2.0]), np.array(1.3), np.array([0.0, 1.0]))
    assert report.verdict == "FAIL"
    assert report.repair or any("if x[i] > c[1]" in line for line in report.suspects)


def elu(z, alpha=0.8):
    """The derivative below 0 is alpha·exp(z), not alpha·(exp(z) − 1)."""
    below = alpha * (np.exp(np.minimum(z, 0)) - 1)
    return np.where(z > 0, z, below), lambda dy: dy * np.where(z > 0, 1.0, below)


def product(a, b):
    return a @ b, lambda dy: (dy @ b.T, a.T @ dy)


def elu_of_a_product(a, b):
    z, back_product = product(a, b)
    y, back_elu = elu(z)
    return y, lambda dy: back_product(back_elu(dy))


def test_steps_are_looked_at_where_the_whole_was_wrong():
    a, b = np.array([[0.5, 0.3], [0.9, 0.2]]), np.array([[-1.0], [0.3]])
    for seed in range(8):                                # with some, all of a @ b is positive at the generic point
        report = gradcheck(elu_of_a_product, a, b, seed=seed)
        assert report.wrong_step is not None, report
        assert report.wrong_step.name == "elu", report


def doubled(x):
    return 2 * x, lambda dy: 2 * dy


def residual(x):
    """What comes through the residual path is not given to the last backward."""
    a, back_first = doubled(x)
    b, back_second = doubled(np.sin(a))
    y = np.sin(a) * b

    def backward(dy):
        d_direct = dy * b
        d_doubled = back_second(dy * np.sin(a)) * np.cos(a)
        d_residual = d_direct * np.cos(a)  # noqa: F841, this is the mistake
        return back_first(d_doubled)

    return y, backward


def test_a_term_is_missing_from_what_a_function_is_given():
    report = gradcheck(residual, R((3, 4)))
    assert "back_first(d_doubled + d_residual)" in report.repair[3], report


def noisy(x, w, noise=None):
    return x * w + noise * w, lambda dy: (dy * w, (dy * (x + noise)).sum(0))


def test_an_array_given_by_name_without_a_gradient_is_not_tested():
    x, w, noise = R((4, 3)), R(3), R((4, 3))
    report = gradcheck(noisy, x, w, noise=noise)
    assert report.verdict == "NOT TESTED", report
    assert not report.findings
    assert [t.name for t in report.tensors if t.verdict == "PASS"] == ["x", "w"]
    assert "noise, which was given by name: not tested; if it is data, gradcheck(lambda x: noisy(" in str(report)
    assert gradcheck(lambda x, w: noisy(x, w, noise=noise), x, w).ok


def entropy(z):
    """log p + 1 for log p + H."""
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    H = -(p * np.log(p)).sum(-1, keepdims=True)
    return H[:, 0], lambda dy: -dy[:, None] * p * (np.log(p) + 1)


def test_a_number_is_replaced_not_multiplied():
    _, words, _, after = gradcheck(entropy, R((3, 4))).repair
    assert words == "H belongs where 1 is"
    assert after.endswith("(np.log(p) + H)")


def test_where_a_change_is_shown_nothing_is_guessed():
    def mean_of_rows(x):
        return x.mean(0), lambda dy: np.broadcast_to(dy / (2 * len(x)), x.shape).copy()

    report = gradcheck(mean_of_rows, R((4, 3)))
    assert report.repair, report
    assert "the 2 of a square" in report.tensors[0].perhaps
    assert "Perhaps" not in str(report)
    assert "→ Everywhere 2 × too small.\n" in str(report)


def contrast(S):
    """The softmax of the columns with the sums of the rows; P + Q does not tell which of the two is wrong."""
    rows, columns = (np.log(np.exp(S).sum(axis, keepdims=True)) for axis in (1, 0))
    loss = rows.sum() + columns.sum()

    def backward(dloss):
        P = np.exp(S - rows)
        Q = np.exp(S - rows)
        return dloss * (P + Q)

    return loss, backward


def test_both_lines_in_which_a_name_may_be_wrong_are_shown():
    report = gradcheck(contrast, R((4, 4)))
    shown = [report.repair, report.other_repair]
    assert {words for _, words, _, _ in shown} == {"columns belongs where rows is"}, report
    assert {after for _, _, _, after in shown} == {"P = np.exp(S - columns)", "Q = np.exp(S - columns)"}


def whiten(L, r):
    """Two mistakes, so that no change is right. One that was tried let grad call itself, with ever larger arrays."""
    a = np.linalg.solve(np.tril(L), r)

    def grad(da):
        dr = np.linalg.solve(np.tril(L), da)
        dL = -np.tril(np.outer(a, dr))
        return dL, dr

    return a, grad


def test_no_change_lets_a_backward_call_itself():
    with judged(whiten, [R((5, 5)) + 5 * np.eye(5), R(5)], None, "whiten", 0, None) as (_, _, evidence):
        evidence.back_to_the_point()
        tried = [change.after for _, change in candidates(evidence, [], {})]
    assert any("a @ dr" in line or "outer(dr, a)" in line for line in tried)
    assert [line for line in tried if "grad(" in line and "def grad" not in line] == []


def with_noise(K, log_noise):
    return K + np.exp(log_noise) * np.eye(len(K)), lambda dy: (dy, np.reshape(np.trace(dy), log_noise.shape))


def tilted(scores, first, second):
    """A pair that occurs several times loses only one 1/B."""
    p = np.exp(scores) / np.exp(scores).sum()

    def backward(dloss=1.0):
        dscores = p.copy()
        dscores[first, second] -= 1.0 / len(first)
        return dloss * dscores

    return -np.log(p[first, second]).mean(), backward


def neighbours(alpha, h):
    def backward(d):
        return np.matmul(d, h.transpose(0, 2, 1)), np.matmul(alpha, d)

    return np.matmul(alpha, h), backward


def flow(x, W):
    """y and the logarithm of the determinant, whose gradient is left out."""
    s = np.tanh(x @ W)

    def backward(dy, dlogdet):
        ds = dy * x * np.exp(s)
        da = ds * (1 - s * s)
        return dy * np.exp(s) + da @ W.T, x.T @ da

    return x * np.exp(s), s.sum(1), backward


def peak(heat):
    """The softmax of a picture, over both of its axes."""
    e = np.exp(heat - heat.max((2, 3), keepdims=True))
    p = e / e.sum((2, 3), keepdims=True)
    return p, lambda dy: p * (dy - (p * dy).sum(axis=3, keepdims=True))


@pytest.mark.parametrize(("f", "inputs", "right"), [
    (with_noise, [R((3, 3)), R(1)], "* np.exp(log_noise)"),
    (tilted, [R((3, 3)), np.array([0, 1, 0, 2, 0]), np.array([1, 1, 1, 0, 2])], "np.add.at(dscores, (first, second), -"),
    (neighbours, [R((2, 4, 4)), R((2, 4, 3))], "np.matmul(alpha.swapaxes(-1, -2), d)"),
    (flow, [R((5, 3)), R((3, 3))], "+ dlogdet[:, None]"),
    (peak, [R((2, 1, 3, 4))], "axis=(2, 3)"),
], ids=["with_noise", "tilted", "neighbours", "flow", "peak"])  # fmt: skip
def test_the_change(f, inputs, right):
    report = gradcheck(f, *inputs)
    assert report.repair, report
    assert right in report.repair[3]


class Convolution:
    """The graph's matrix comes first, and has no gradient."""

    def __init__(self):
        self.W, self.dW = R((3, 3)), np.zeros((3, 3))

    def forward(self, A, x):
        self.A, self.x = A, x
        return A @ x @ self.W

    def backward(self, dy):
        self.dW = (self.A @ self.x).T @ dy
        return self.A.T @ (dy @ self.W.T)


def test_a_gradient_belongs_to_the_input_that_has_its_shape():
    report = gradcheck(Convolution(), R((5, 5)), R((5, 3)))
    assert report, report
    assert report.notes == ["the backward returns no gradient of A: not checked"]


def heads(x, Wqkv, count=2):
    """Divided by √D, where √d belongs; here D is d²."""
    B, T, D = x.shape
    d = D // count
    q, k, v = (z.reshape(B, T, count, d).swapaxes(1, 2) for z in np.split(x @ Wqkv, 3, axis=-1))
    S = q @ k.swapaxes(-1, -2) / np.sqrt(d)

    def backward(dS):
        dS = dS / np.sqrt(D)
        dq, dk = dS @ k, dS.swapaxes(-1, -2) @ q
        dqkv = [z.swapaxes(1, 2).reshape(B, T, D) for z in (dq, dk, np.zeros_like(v))]
        dz = np.concatenate(dqkv, axis=-1)
        return dz @ Wqkv.T, np.einsum("btd,bte->de", x, dz)

    return S, backward


def test_sizes_grow_together_with_their_multiples():
    _, words, _, after = gradcheck(heads, R((2, 3, 4)), R((4, 12))).repair
    assert words == "d belongs where D is"
    assert after == "dS = dS / np.sqrt(d)"


def gates(x):
    i, f, g = np.split(x, 3, axis=1)
    return i * f + g, lambda dy: np.hstack((dy * f, dy, dy * i))


def test_arrays_that_are_joined_are_no_axes():
    _, words, _, after = gradcheck(gates, R((4, 6))).repair
    assert words == "two arrays are joined in the wrong order"
    assert "np.hstack((dy * f, dy * i, dy))" in after


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus_less_x(x, a):
    y = np.log1p(np.exp(x)) - x
    return a * y, lambda dy: (dy * a * sigmoid(x), dy * y)


def test_a_helper_is_changed_only_where_no_change_of_the_backward_will_do():
    _, words, _, after = gradcheck(softplus_less_x, R((3, 4)), R((3, 4))).repair
    assert words == "a 1 is missing"
    assert "dy * a * (sigmoid(x) - 1)" in after


def mean_of_some(z, keep):
    B, T, _ = z.shape
    n = keep.sum()
    return (z * z * keep[..., None]).sum() / n, lambda dloss: 2 * z * keep[..., None] * dloss / (B * T)


def mean_without_padding(x, W, keep):
    n, z = keep.sum(), x @ W

    def backward(dloss):
        dz = dloss * np.exp(z)
        dz -= dloss
        dz /= n
        return dz @ W.T, x.T @ dz

    return ((np.exp(z) - z) * keep[:, None]).sum() / n, backward


@pytest.mark.parametrize(("f", "inputs", "said", "right"), [
    (mean_of_some, [R((2, 3, 2)), np.array([[True, False, True], [True, True, False]])], "n belongs where B * T is",
     "2 * z * keep[..., None] * dloss / n"),
    (mean_without_padding, [R((4, 3)), R((3, 2)), np.array([True, False, True, True])], "a factor is missing, keep[:, None]",
     "dz = dz / n * keep[:, None]"),
], ids=["the count", "the mask"])  # fmt: skip
def test_what_a_quotient_lacks(f, inputs, said, right):
    _, words, _, after = gradcheck(f, *inputs).repair
    assert words == said
    assert right in after


def running(x, a):
    """The state is kept after it has changed."""
    h, kept = np.zeros(x.shape[1]), []
    for t in range(len(x)):
        h = a * h + x[t]
        kept.append(h)

    def backward(dh):
        da = np.zeros_like(a)
        dx = np.zeros_like(x)
        for t in reversed(range(len(x))):
            dx[t] = dh
            da += dh * kept[t]
            dh = dh * a
        return dx, da

    return h, backward


def test_two_lines_are_shown_as_two():
    _, words, before, after = gradcheck(running, R((4, 3)), R(3)).repair
    assert words == "two lines are in the wrong order"
    assert (before, after) == ("h = a * h + x[t]; kept.append(h)", "kept.append(h); h = a * h + x[t]")


def clusters(x, ids):
    """The last group is not the first: min is too much."""
    y = np.zeros((3, x.shape[1]))
    np.add.at(y, ids, x)
    return y, lambda dy: dy[np.minimum(ids, 1)]


def test_what_is_too_much_is_left_out():
    _, words, _, after = gradcheck(clusters, R((5, 2)), np.array([0, 2, 1, 2, 0])).repair
    assert words == "minimum is too much"
    assert after.endswith("dy[ids]")


def leaky_gate(x, gamma):
    """The pattern of x, where that of γ·x belongs: of two sums one is wrong here, and both at the generic point."""
    z = gamma * x

    def backward(dy):
        dz = dy * np.where(x > 0, 1.0, 0.1)
        return dz * gamma, (dz * x).sum(0)

    return np.where(z > 0, z, 0.1 * z), backward


@pytest.mark.parametrize("seed", range(4))
def test_places_that_differ_from_point_to_point_are_not_told(seed):
    x = np.random.default_rng(seed).standard_normal((4, 2))
    report = gradcheck(leaky_gate, x, np.array([-1.0, 1.0]), seed=seed)
    wrong = [(c.wrong_entries, c.index) for c in report.tensor("gamma").comparisons]
    assert ("A single entry is wrong" in report.explain()) == (wrong[0] == wrong[1] and wrong[0][0] == 1)


def graph_step(A, x):
    return A @ x, lambda dy: A.T @ dy                    # A is data: there is no gradient of it


def graph_layer(A, x, W):
    h, h_backward = graph_step(A, x)
    return h @ W, lambda dy: (None, h_backward(dy @ W), h.T @ dy)


def test_a_right_step_without_a_gradient_of_its_first_input_is_not_accused():
    report = gradcheck(graph_layer, R((5, 5)), R((5, 3)), R((3, 3)))
    assert not report                                    # of A the whole gives None
    assert report.wrong_step is None or report.wrong_step.name != "graph_step", report
    assert "expected (5, 5) as A has" not in report.explain()


class Bounded:
    """A bound as a method: the array is what stands before it, and not its first argument."""

    def forward(self, x):
        self.x = x
        return np.exp(x)

    def backward(self, dy):
        return dy * np.exp(self.x.clip(-0.5, 0.5))


def test_a_method_that_bounds_too_much_is_left_out():
    _, words, _, after = gradcheck(Bounded(), R((4, 3))).repair
    assert words == "clip is too much"
    assert after == "return dy * np.exp(self.x)"

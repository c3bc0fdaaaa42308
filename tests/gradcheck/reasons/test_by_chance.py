"""What is right by chance is not shown: with few wrong entries, for one value of an option, or with equal sizes."""

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.measuring.elsewhere import with_other_options
from mini_tf.gradcheck.measuring.subject import Subject

import numpy as np
import pytest

R = np.random.default_rng(5).standard_normal


def huber(a, b, delta=0.8):
    """Few entries are wrong: those where a − b is below −delta; and there a is mostly negative, too."""
    r = a - b
    near = np.abs(r) <= delta

    def backward(dloss):
        da = dloss * np.where(near, r, delta)
        return da, -da

    return np.where(near, r * r / 2, delta * (np.abs(r) - delta / 2)), backward


@pytest.mark.parametrize("seed", range(8))
def test_few_wrong_entries(seed):
    rng = np.random.default_rng(seed)
    report = gradcheck(huber, *rng.standard_normal((2, 6, 2)), seed=seed)
    assert not report
    assert not report.repair or "np.sign(r)" in report.repair[3]


class MeanOfSquares:
    """The mean of k × k entries, divided by k on the way back: k is 2, as much as there are images."""

    def __init__(self, k=2):
        self.k = k

    def forward(self, x):
        B, H, W = x.shape
        return x.reshape(B, H // self.k, self.k, W // self.k, self.k).mean(axis=(2, 4))

    def backward(self, dout):
        k = self.k
        return dout.repeat(k, axis=1).repeat(k, axis=2) / k


def test_an_option_is_named():
    report = gradcheck(MeanOfSquares(), R((2, 4, 6)))
    assert report.repair[3] == "return dout.repeat(k, axis=1).repeat(k, axis=2) / k / k"
    assert "a factor 1/self.k is missing" in report.tensors[0].perhaps
    assert "square" not in report.explain()


def test_another_option_is_tried_and_taken_back():
    pooling = MeanOfSquares()
    subject = Subject(pooling, [R((2, 4, 6))], None)
    ((arrays, option),) = with_other_options(subject, np.random.default_rng(0))
    assert option == ("self.k", 3)
    assert arrays["x"].shape == (3, 6, 9)
    assert pooling.k == 2
    assert subject.inputs[0].shape == (2, 4, 6)

    subject = Subject(largest, [R((3, 8))], None)
    ((arrays, option),) = with_other_options(subject, np.random.default_rng(0))
    assert (option, arrays["x"].shape) == (("size", 3), (3, 12))
    assert subject.names == ["x"]
    assert subject.forward()[0].shape == (3, 4)


def largest(x, size=2):
    """Of two entries the larger one is above their mean. Of more, several may be."""
    parts = x.reshape(len(x), -1, size)

    def backward(dy):
        mask = parts > 0
        return (mask * dy[..., None]).reshape(x.shape)

    return parts.max(2), backward


def gated(x, W, V):
    """The derivative of the sigmoid, for tanh."""
    a, g = np.tanh(x @ W), 1 / (1 + np.exp(-(x @ V)))

    def backward(dy):
        da = dy * g * a * (1 - a)
        dg = dy * a * g * (1 - g)
        return da @ W.T + dg @ V.T, x.T @ da, x.T @ dg

    return a * g, backward


def gated_other_way_round(x, W):
    g = 1 / (1 + np.exp(-(x @ W)))

    def backward(dy):
        da = dy * (1 - g**2)
        return da @ W.T, x.T @ da

    return g, backward


def log_sum(x):
    """The sum over the other axis."""
    e = np.exp(x)
    total = e.sum(axis=1, keepdims=True)

    def backward(dy):
        return dy[:, None] * e / e.sum(axis=0)

    return np.log(total)[:, 0], backward


def rescaled(x, W):
    """A mean over two axes, of which nothing comes back but the sum."""
    B, C, height, width = x.shape
    s = x.mean(axis=(2, 3)) @ W

    def backward(dy):
        ds = (dy * x).sum(axis=(2, 3))
        dx = dy * s[:, :, None, None]
        dW = x.mean(axis=(2, 3)).T @ ds
        dmean = ds @ W.T
        return dx + dmean[:, :, None, None], dW

    return x * s[:, :, None, None], backward


def bag(table, ids, mask):
    """Padding gets a gradient, too."""

    def backward(dy):
        dtable = np.zeros_like(table)
        for b in range(len(ids)):
            for t in range(ids.shape[1]):
                dtable[ids[b, t]] += dy[b]
        return dtable, None, None

    return (table[ids] * mask[..., None]).sum(1), backward


def bilinear(x, W, z):
    def backward(ds):
        return ds[:, None] * (z @ W.T), x.T @ z, ds[:, None] * (x @ W)

    return ((x @ W) * z).sum(1), backward


IDS, MASK = np.array([[1, 0, 3], [2, 2, 1]]), np.array([[True, True, False], [True, False, False]])
REPAIRED = {
    largest: ([R((3, 8))], "the mask is not where the maximum is", "mask = parts == parts.max(axis=-1, keepdims=True)"),
    gated: ([R((2, 3)), R((3, 4)), R((3, 4))], "a comes from tanh: its derivative is 1 − a²", "dy * g * (1 - a ** 2)"),
    gated_other_way_round: ([R((2, 3)), R((3, 4))], "g comes from a sigmoid: its derivative is g·(1 − g)", "dy * g * (1 - g)"),
    log_sum: ([R((4, 5))], "it runs over the wrong axis, and keepdims=True is missing", "e.sum(axis=1, keepdims=True)"),
    rescaled: ([R((2, 4, 3, 3)), R((4, 4))], "a factor is missing, 1/(height·width)", "/ (height * width)"),
    bag: ([R((4, 3)), IDS, MASK], "a factor is missing, mask[b, t]", "dy[b] * mask[b, t]"),
    bilinear: ([R((4, 3)), R((3, 5)), R((4, 5))], "a factor is missing, ds", "(x.T * ds) @ z"),
}  # fmt: skip


@pytest.mark.parametrize("f", REPAIRED, ids=lambda f: f.__name__)
def test_the_change_that_makes_it_right(f):
    inputs, words, right = REPAIRED[f]
    report = gradcheck(f, *inputs)
    assert not report
    assert report.repair, report
    assert report.repair[1] == words
    assert right in report.repair[3]


def test_the_upstream_gradient_has_the_learners_name():
    report = gradcheck(lambda x: (3 * x, lambda dout: 3 * np.ones(x.shape)), R((2, 3)))
    assert "It is the same whatever dout is: dout, the upstream gradient, is not used." in report.explain()

    def leaky(x):
        def backward(grad):
            dx = grad
            dx[x < 0] *= 0.1
            return dx

        return np.where(x < 0, 0.1 * x, x), backward

    explained = gradcheck(leaky, R((4, 5))).explain()
    assert "backward wrote into grad" in explained
    assert ": dx[x < 0] *= 0.1): make a copy first, dx = grad.copy()" in explained


def svm_loss(W, X, t):
    """A loss with its gradient: the lines of the loss are right, because they say what is wanted."""
    N = len(X)
    scores = X @ W
    margins = np.maximum(0, scores - scores[np.arange(N), t][:, None] + 1)
    margins[np.arange(N), t] = 0
    loss = margins.sum() / N
    dscores = (margins > 0).astype(float)
    dscores[np.arange(N), t] -= 1
    dW = X.T @ dscores / N
    return loss, dW


def test_lines_of_the_loss_are_not_suspects():
    report = gradcheck(svm_loss, R((4, 3)), R((6, 4)), np.array([0, 1, 2, 1, 0, 2]))
    lines = [line.partition("  ")[2] for line in report.suspects]
    assert lines == ["dscores = (margins > 0).astype(float)", "dscores[np.arange(N), t] -= 1", "dW = X.T @ dscores / N"]


def triplet(a, p, n, margin=0.5):
    """A 2 is missing, which is 1/margin by chance."""
    dp, dn = a - p, a - n
    v = (dp**2).sum(1) - (dn**2).sum(1) + margin

    def backward(dloss=1.0):
        on = (v > 0)[:, None] * dloss / len(a)
        return on * (dp - dn), -2 * on * dp, 2 * on * dn

    return np.maximum(v, 0).mean(), backward


def test_another_fraction_is_tried_too():
    report = gradcheck(triplet, R((6, 3)), R((6, 3)), R((6, 3)))
    assert report.tensor("a").diagnosis == "Everywhere 2 × too small."
    assert report.repair[3] == "return 2 * (on * (dp - dn)), -2 * on * dp, 2 * on * dn"


def all_rows_together(x):
    """Squares, whose dy is summed over the rows, too, and tripled: of one row, 1/3 makes it right."""
    return (x * x).sum(1), lambda dy: 6 * x * dy.sum()


def test_what_is_right_for_one_example_is_tried_with_more():
    report = gradcheck(all_rows_together, R((1, 4)))
    assert not report
    assert not report.repair
    assert not report.tensor("x").diagnosis              # "3 × too large" holds for one row only

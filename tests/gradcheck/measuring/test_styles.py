"""Other people's styles: pairs, objects, losses with gradients. Right ones pass, wrong ones fail, nothing is skipped in silence."""

from types import SimpleNamespace

from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.measuring.brought import Machine
from mini_tf.gradcheck.measuring.naming import gradient_of, is_gradient_name
from mini_tf.gradcheck.measuring.returned import in_order, places_by_shape
from mini_tf.gradcheck.measuring.styles import in_contract, partner
from mini_tf.gradcheck.planting.selftest import self_test
from mini_tf.layers import LayerNorm

import numpy as np
import pytest


def affine_forward(x, w, b):
    return x @ w + b, (x, w)


def affine_backward(dout, cache):
    x, w = cache
    return dout @ w.T, x.T @ dout, dout.sum(0)


def scale_forward(x, s):
    return s * x, (x, s)


def scale_backward(dout, cache):
    x, s = cache
    return s * dout * 2, (dout * x).sum()


def tanh_forward(x):
    """It keeps nothing: the backward takes x again."""
    return np.tanh(x)


def tanh_backward(dout, x):
    return dout * (1 - np.tanh(x) ** 2)


def power(x, p=3):
    return x**p, (x, p)


def d_power(dout, cache):
    x, p = cache
    return dout * p * x ** (p - 1)


def step_forward(x, h, W):
    new = np.tanh(x + h @ W)
    return new, new * x, (x, h, W, new)


def step_backward(dnew, dproduct, cache):
    x, h, W, new = cache
    dnew = dnew + dproduct * x
    da = dnew * (1 - new**2)
    return da + dproduct * new, da @ W.T, h.T @ da


def squared_forward(scores, targets):
    error = scores - targets
    return (error**2).sum(), error


def squared_backward(cache):
    """That of a loss takes no dloss: it is 1."""
    return 2 * cache, -2 * cache


def svm_loss(W, X, y):
    scores = X @ W
    rows = np.arange(len(y))
    margins = np.maximum(0, scores - scores[rows, y][:, None] + 1)
    margins[rows, y] = 0
    d = (margins > 0) * 1.0
    d[rows, y] = -d.sum(1)
    return margins.sum() / len(y), X.T @ d / len(y)


def two_outputs(x):
    return np.sin(x), x * x, lambda dsin, dsquare: dsin * np.cos(x) + 2 * dsquare * x


class Linear:
    """Weights and gradients are attributes."""

    def __init__(self, n, m, rng):
        self.W, self.b = rng.standard_normal((n, m)), np.zeros(m)
        self.dW = self.db = None

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout):
        self.dW, self.db = self.x.T @ dout, dout.sum(0)
        return dout @ self.W.T


class Doubled(Linear):
    """dW is wrong, and of b there is none: the mistake that once passed."""

    def backward(self, dout):
        self.dW = 2 * self.x.T @ dout
        return dout @ self.W.T


class WithoutDb(Linear):
    def backward(self, dout):
        self.dW = self.x.T @ dout
        return dout @ self.W.T


class InDicts:
    """params and grads; gradients add up; the backward returns nothing."""

    def __init__(self, rng):
        self.params = {"W1": rng.standard_normal((4, 5)), "W2": rng.standard_normal((5, 3))}
        self.grads = {name: np.zeros_like(W) for name, W in self.params.items()}

    def forward(self, X):
        self.cache = X, np.maximum(X @ self.params["W1"], 0)
        return self.cache[1] @ self.params["W2"]

    def backward(self, dout):
        X, h = self.cache
        self.grads["W2"] += h.T @ dout
        self.grads["W1"] += X.T @ (dout @ self.params["W2"].T * (h > 0))

    def loss(self, X, y):
        self.grads = {name: np.zeros_like(W) for name, W in self.params.items()}
        error = self.forward(X) - y
        self.backward(2 * error)
        return (error**2).sum(), self.grads


class Net:
    """Objects in a list, called, and an array that is not learned."""

    def __init__(self, rng):
        self.layers = [Linear(4, 5, rng), Linear(5, 3, rng)]
        self.table = rng.standard_normal(5)

    def __call__(self, x):
        self.hidden = np.tanh(self.layers[0].forward(x) + self.table)
        return self.layers[1].forward(self.hidden)

    def backward(self, dout):
        return self.layers[0].backward(self.layers[1].backward(dout) * (1 - self.hidden**2))


class Model(Linear):
    """It begins with its loss, and backward() takes nothing."""

    def loss(self, x, y):
        self.error = Linear.forward(self, x) - y
        return (self.error**2).sum()

    def backward(self):
        return Linear.backward(self, 2 * self.error)


class OnlyItsLoss:
    def __init__(self, rng):
        self.model = Model(4, 3, rng)

    def loss(self, x, y):
        return self.model.loss(x, y)

    def backward(self):
        self.model.backward()


class Exp:
    """As PyTorch's functions are written."""

    @staticmethod
    def forward(ctx, x, W):
        y = np.exp(x) @ W
        ctx.save_for_backward(x, W)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, W = ctx.saved_tensors
        return dy @ W.T * np.exp(x), np.exp(x).T @ dy


RIGHT = {
    "a pair": lambda rng: (affine_forward, [rng.standard_normal(s) for s in ((2, 4), (4, 3), 3)]),
    "a pair as a tuple": lambda rng: ((affine_forward, affine_backward), [rng.standard_normal(s) for s in ((2, 4), (4, 3), 3)]),
    "no cache": lambda rng: (tanh_forward, [rng.standard_normal((2, 3))]),
    "other names": lambda rng: (power, [rng.standard_normal((2, 3)), 2]),
    "several outputs": lambda rng: (step_forward, [rng.standard_normal(s) for s in ((2, 3), (2, 3), (3, 3))]),
    "several outputs, closure": lambda rng: (two_outputs, [rng.standard_normal((2, 3))]),
    "a loss without dloss": lambda rng: (squared_forward, [rng.standard_normal((2, 3)), rng.standard_normal((2, 3))]),
    "an object": lambda rng: (Linear(4, 3, rng), [rng.standard_normal((2, 4))]),
    "its method": lambda rng: (Linear(4, 3, rng).forward, [rng.standard_normal((2, 4))]),
    "static methods": lambda rng: (Exp, [rng.standard_normal((2, 4)), rng.standard_normal((4, 3))]),
}


@pytest.mark.parametrize("style", RIGHT)
def test_right_backwards_pass(style, rng):
    f, inputs = RIGHT[style](rng)
    report = gradcheck(f, *inputs)
    assert report, report
    floats = [x for x in inputs if isinstance(x, np.ndarray)]
    assert len(report.tensors) == len(floats) + (2 if "object" in style or style[-6:] == "method" else 0)


def in_a_tuple_forward(x, w):
    return (x @ w, np.tanh(x)), (x, w)


def in_a_tuple_backward(dz, dt, cache):
    x, w = cache
    return dz @ w.T + dt * (1 - np.tanh(x) ** 2), x.T @ dz


def and_back_in_one_backward(dout, cache):
    return in_a_tuple_backward(*dout, cache)


@pytest.mark.parametrize("back", [in_a_tuple_backward, and_back_in_one_backward])
def test_several_outputs_in_a_tuple_of_their_own(back, rng):
    x, w = rng.standard_normal((2, 3)), rng.standard_normal((3, 4))
    report = gradcheck((in_a_tuple_forward, back), x, w)
    assert report, report
    assert len(report.tensors) == 2
    wrong = gradcheck((in_a_tuple_forward, lambda dout, cache: in_a_tuple_backward(dout[0], 0 * dout[1], cache)), x, w)
    assert [t.verdict for t in wrong.tensors] == ["FAIL", "PASS"]


class Classifier:
    """softmax does not see a number that is added to all its scores; nor does batch norm one that is added to a channel"""

    def __init__(self, rng, factor=1.0):
        self.W, self.b, self.c = rng.standard_normal((4, 3)), np.zeros(3), rng.standard_normal(4)
        self.factor, self.dW, self.db, self.dc = factor, None, None, None

    def loss(self, x, labels):
        self.labels, h = labels, x + self.c
        self.h = h - h.mean(axis=0)
        z = self.h @ self.W + self.b
        e = np.exp(z - z.max(axis=1, keepdims=True))
        self.p = e / e.sum(axis=1, keepdims=True)
        return -np.log(self.p[np.arange(len(x)), labels]).mean()

    def backward(self):
        dz = self.p.copy()
        dz[np.arange(len(dz)), self.labels] -= 1
        dz /= len(dz)
        self.dW, self.db = self.h.T @ dz, self.factor * dz.sum(axis=0)
        dh = dz @ self.W.T
        self.dc = (dh - dh.mean(axis=0)).sum(axis=0)


def test_a_bias_before_a_softmax_or_a_normalization_is_checked(rng):
    x, labels = rng.standard_normal((5, 4)), np.array([0, 2, 1, 1, 0])
    report = gradcheck(Classifier(rng), x, labels)
    assert report, report
    assert [t.name for t in report.tensors] == ["W", "b", "c"]
    wrong = gradcheck(Classifier(rng, factor=2.0), x, labels)
    assert [t.verdict for t in wrong.tensors] == ["PASS", "FAIL", "PASS"]


def test_a_loss_with_its_gradient(rng):
    report = gradcheck(svm_loss, rng.standard_normal((4, 3)), rng.standard_normal((5, 4)), np.array([0, 2, 1, 1, 0]))
    assert report
    assert [t.name for t in report.tensors] == ["W"]
    assert report.notes == ["the backward returns no gradient of X: not checked"]


class TwoLetters:
    """Weights B and b: their gradients differ by a capital only."""

    def __init__(self, rng):
        self.B, self.b, self.grads = rng.standard_normal((4, 3)), rng.standard_normal(3), {}

    def forward(self, x):
        self.x = x
        return x @ self.B + self.b

    def backward(self, dout):
        self.grads = {"B": self.x.T @ dout, "b": dout.sum(0)}
        return dout @ self.B.T


def test_names_that_differ_by_a_capital_only(rng):
    net, x = TwoLetters(rng), rng.standard_normal((2, 4))
    assert gradcheck(net, x)
    assert gradcheck(lambda x, B, b: (x @ B + b, lambda dy: {"db": dy.sum(0), "dB": x.T @ dy, "dx": dy @ B.T}), x, net.B, net.b)
    assert gradient_of("a", {"grad_A": 1, "grad_a": 2}) == 2
    assert gradient_of("a", {"grad_A": 1}) == 1
    assert gradient_of("A", {"da": 1}) == 1
    assert gradient_of("c", {"da": 1}) is None


def test_a_model_that_begins_with_its_loss(rng):
    x, y = rng.standard_normal((2, 4)), rng.standard_normal((2, 3))
    for model in (OnlyItsLoss(rng), OnlyItsLoss(rng).loss, Model(4, 3, rng).loss):
        report = gradcheck(model, x, y)
        assert report, report
        assert {t.name.rpartition(".")[2] for t in report.tensors} - {"x"} == {"W", "b"}
    wrong = OnlyItsLoss(rng)
    wrong.model.__class__ = type("Wrong", (Model,), {"backward": lambda self: Linear.backward(self, self.error)})
    assert gradcheck(wrong, x, y).verdict == "FAIL"


def test_options_have_their_names(rng):
    x = rng.standard_normal((2, 3))
    assert gradcheck(power, x, p=2)
    assert gradcheck((power, d_power), x, p=4)
    assert gradcheck(ops.layer_norm, x, np.ones(3), np.zeros(3), eps=0.1)
    with pytest.raises(UserError, match=r"q=2: power\(x, p\) does not take it; try gradcheck\(lambda x: power\(x, …\), x\)"):
        gradcheck(power, x, q=2)
    with pytest.raises(UserError, match="was given it twice"):
        gradcheck(power, x, 2, p=2)

    def by_name(x, *, factor):
        return factor * x, lambda dy: factor * dy

    with pytest.raises(UserError, match=r"by_name\(x\) takes it by name only; try gradcheck\(lambda x: by_name"):
        gradcheck(by_name, x, factor=2)


def test_weights_in_dicts_and_in_objects_in_a_list(rng):
    report = gradcheck(InDicts(rng), rng.standard_normal((2, 4)))
    assert report
    assert [t.name for t in report.tensors] == ["params.W1", "params.W2"]
    report = gradcheck(InDicts(rng).loss, rng.standard_normal((2, 4)), rng.standard_normal((2, 3)))
    assert report
    assert [t.name for t in report.tensors] == ["params.W1", "params.W2"]


def test_what_was_not_looked_at_is_not_tested_and_the_note_says_what_to_do(rng):
    x = rng.standard_normal((2, 4))
    report = gradcheck(Net(rng), x)
    assert report.verdict == "NOT TESTED"
    assert [t.name for t in report.tensors if t.verdict != "PASS"] == ["table"]
    assert "if it is not learned, name what is: params=[…]" in report.explain()
    names = [t.name for t in report.tensors if t.name != "table" and t.name != "x"]
    assert gradcheck(Net(rng), x, params=names)
    assert gradcheck(WithoutDb(4, 3, rng), x).verdict == "NOT TESTED"
    assert gradcheck(Doubled(4, 3, rng), x).verdict == "FAIL"
    assert [t.name for t in gradcheck(Net(rng), x, params=["W"]).tensors] == ["x", "layers.0.W", "layers.1.W"]
    assert "Net has no array 'V'; there are: layers.0.W" in gradcheck(Net(rng), x, params=["V"]).explain()


class Aliased:
    """One array under two names, of which the forward uses the second; and a mask."""

    def __init__(self, rng):
        self.weights = rng.standard_normal((4, 3))
        self.inner = Linear(4, 3, rng)
        self.inner.W = self.weights
        self.keep = np.array([1.0, 0.0, 1.0])

    def forward(self, x):
        return self.inner.forward(x) * self.keep

    def backward(self, dout):
        dx = self.inner.backward(dout * self.keep)
        self.weights_grad = self.inner.dW
        return dx


def test_an_array_with_two_names_and_a_mask(rng):
    report = gradcheck(Aliased(rng), rng.standard_normal((2, 4)))
    assert report
    assert [t.name for t in report.tensors] == ["x", "weights", "inner.b"]


class Named:
    """It keeps its input under the name of the argument, which a second forward finds there."""

    def __init__(self, x):
        self.x = x

    def forward(self, x):
        self.x = x
        return np.tanh(x)

    def backward(self, dout):
        return dout * (1 - np.tanh(self.x) ** 2)


def test_gradients_by_name_and_an_array_named_as_an_input(rng):
    def scaled(x, w):
        return x * w, lambda dy: {"w": dy * x, "dx": dy * w}

    assert gradcheck(scaled, rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    report = gradcheck(Named(rng.standard_normal((5, 2))), rng.standard_normal((2, 3)))
    assert report
    assert [t.name for t in report.tensors] == ["x"]


def test_a_broken_promise_alone_asks_for_no_change_of_the_gradients(rng):
    def in_place(x):
        def backward(dy):
            dy *= x > 0
            return dy

        return np.maximum(x, 0), backward

    report = gradcheck(in_place, rng.standard_normal((2, 3)))
    assert "backward wrote into dy" in report.explain()
    assert report.repair == []


class Adds(Linear):
    """Its gradients add up, from one backward to the next."""

    def __init__(self, n, m, rng):
        super().__init__(n, m, rng)
        self.dW, self.db = np.zeros((n, m)), np.zeros(m)

    def backward(self, dout):
        self.dW += self.x.T @ dout
        self.db += dout.sum(0)
        return dout @ self.W.T


class Running:
    """A state that the forward replaces."""

    def __init__(self):
        self.mean = np.zeros(3)

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return 2 * x

    def backward(self, dout):
        return 2 * dout


def test_objects_that_have_run_before_or_that_keep_a_state(rng):
    layer, x = Adds(4, 3, rng), rng.standard_normal((2, 4))
    layer.forward(x)
    layer.backward(rng.standard_normal((2, 3)))
    before = layer.dW.copy()
    assert gradcheck(layer, x)
    assert np.array_equal(layer.dW, before)
    assert gradcheck(Running(), rng.standard_normal((2, 3)))
    net = InDicts(rng)
    net.forward(x)
    assert gradcheck(net, x)


def test_whole_numbers_are_not_passed_over_in_silence(rng):
    report = gradcheck(affine_forward, np.arange(8).reshape(2, 4), rng.standard_normal((4, 3)), np.zeros(3))
    assert "x has whole numbers, so its gradient was not tested: try x.astype(float)" in report.notes


class Rounded(Linear):
    def backward(self, dout):
        dx = super().backward(dout)
        self.db = self.db.astype(np.float32)
        return dx.astype(int)


def test_the_dtypes_of_an_objects_gradients_are_seen_as_they_are(rng):
    explained = gradcheck(Rounded(4, 3, rng), rng.standard_normal((2, 4))).explain()
    assert "dx has dtype int64, expected float64" in explained
    assert "db has dtype float32, expected float64" in explained


def test_the_self_test_needs_a_backward(rng):
    with pytest.raises(UserError, match="this loss comes with its gradients"):
        self_test(svm_loss, rng.standard_normal((4, 3)), rng.standard_normal((5, 4)), np.array([0, 2, 1, 1, 0]))


class Middle:
    """The mistake is in the middle; gradients are stored in attributes and in a dict."""

    def __init__(self, rng):
        self.W, self.params, self.grads = rng.standard_normal((4, 5)), {"V": rng.standard_normal((5, 3))}, {}

    def forward(self, x):
        self.x, self.z = x, x @ self.W
        self.a = np.tanh(self.z)
        return self.a @ self.params["V"]

    def backward(self, dout):
        self.grads["V"] = self.a.T @ dout
        da = dout @ self.params["V"].T
        dz = da * np.cos(self.z) ** 2 * 0.3
        self.dW = self.x.T @ dz
        return dz @ self.W.T


def test_the_lines_are_those_that_the_wrong_gradients_come_from(rng):
    report = gradcheck(Middle(rng), rng.standard_normal((2, 4)))
    lines = [line.partition("  ")[2] for line in report.suspects]
    assert "dz = da * np.cos(self.z) ** 2 * 0.3" in lines
    assert "self.grads['V'] = self.a.T @ dout" not in lines


def test_a_class_is_refused_in_a_sentence(rng):
    assert "Linear is a class: give an object of it, as in gradcheck(Linear(…), x)" in gradcheck(Linear, rng.standard_normal((2, 4))).explain()


def test_the_learners_object_stays_as_it_is(rng):
    layer = Linear(4, 3, rng)
    W = layer.W.copy()
    assert gradcheck(layer, rng.standard_normal((2, 4)))
    assert vars(layer).keys() == {"W", "b", "dW", "db"}
    assert np.array_equal(layer.W, W)
    assert layer.dW is None


def test_a_wrong_one_fails_with_its_own_names_lines_and_the_one_change(rng):
    report = gradcheck(scale_forward, rng.standard_normal((2, 3)), np.array(1.5))
    assert [t.verdict for t in report.tensors] == ["FAIL", "PASS"]
    assert report.repair[2:] == ["return s * dout * 2, (dout * x).sum()", "return s * dout, (dout * x).sum()"]
    assert "test_styles.py" in report.place


def test_bugs_are_planted_in_pairs_and_objects(rng):
    for f, inputs in (RIGHT["a pair"](rng), RIGHT["an object"](rng)):
        tested = self_test(f, *inputs)
        assert tested.caught
        assert not tested.missed


def test_ops_layers_and_the_contract_stay_as_they_are(rng):
    layer, x = LayerNorm(4), rng.standard_normal((2, 4))
    assert in_contract(layer, [x]) is layer
    assert in_contract(ops.softmax, [x]) is ops.softmax
    plain = lambda x: (2 * x, lambda dy: 2 * dy)         # noqa: E731
    assert in_contract(plain, [x]) is plain
    assert isinstance(in_contract(Linear(4, 3, rng), [x]), Machine)
    assert in_contract(SimpleNamespace(backward=3), [x]).backward == 3


@pytest.mark.parametrize(
    ("said", "name", "is_one"),
    [
        ("dW", "W", True), ("d_W", "W", True), ("W_grad", "W", True), ("grad_W", "W", True), ("gW", "W", True),
        ("dLdW", "W", True), ("dW1", "W", False), ("db", "W", False), ("deltaW", "W", True), ("W", "W", True),
    ],
)  # fmt: skip
def test_names_of_gradients(said, name, is_one):
    assert is_gradient_name(said, name) == is_one


def test_of_a_loss_the_numbers_are_those_that_the_learner_prints(rng):
    """Its gradients come by themselves: there is no dloss to multiply them with."""

    def ridge(w, X, t):
        r = X @ w - t
        return 0.5 * r @ r, X.T @ r + 0.1 * w            # the penalty is not in the loss

    w, X, t = rng.standard_normal(3), rng.standard_normal((5, 3)), rng.standard_normal(5)
    given = gradcheck(ridge, w, X, t).tensor("w").comparisons[0]
    assert given.point == "given"
    assert given.yours == ridge(w, X, t)[1][given.index]


def test_a_gradient_that_fits_nowhere_is_given_to_one_input_only():
    inputs = [np.ones((2, 3)), np.ones((4, 4)), np.ones(5)]
    gradients = np.zeros((2, 3)), np.zeros(7)

    def f(a, b, c):
        return a

    assert places_by_shape(gradients, inputs) == []
    assert places_by_shape(gradients[:1], inputs[::-1]) == [2]
    first, second, third = in_order(gradients, [], inputs, f)
    assert first is gradients[0]
    assert second is gradients[1]
    assert third is None


class Gate:
    """y = (x W) · σ(x Wg): Wg is a weight of its own, and no gradient of W."""

    def __init__(self, W, Wg):
        self.W, self.Wg = W, Wg

    def forward(self, x):
        self.x, self.h = x, x @ self.W
        self.g = 1 / (1 + np.exp(-(x @ self.Wg)))
        return self.h * self.g

    def backward(self, dy):
        dh, dz = dy * self.g, dy * self.h * self.g * (1 - self.g)
        self.dW, self.dWg = self.x.T @ dh, self.x.T @ dz
        return dh @ self.W.T + dz @ self.Wg.T


class GateOfDicts:
    """The same, with its weights and gradients in dicts."""

    def __init__(self, W, Wg):
        self.params, self.grads = {"Wg": Wg, "W": W}, {}

    def forward(self, x):
        self.inner = Gate(self.params["W"], self.params["Wg"])
        return self.inner.forward(x)

    def backward(self, dy):
        dx = self.inner.backward(dy)
        self.grads = {"Wg": self.inner.dWg, "W": self.inner.dW}
        return dx


class WrongGate(Gate):
    def backward(self, dy):
        dx = super().backward(dy)
        self.dWg = 2 * self.dWg
        return dx


@pytest.mark.parametrize("of", [Gate, GateOfDicts, WrongGate])
@pytest.mark.parametrize("shape", [(3, 3), (3, 4)])
def test_the_weight_of_a_gate_is_no_gradient(of, shape, rng):
    report = gradcheck(of(rng.standard_normal(shape), rng.standard_normal(shape)), rng.standard_normal((2, 3)))
    verdicts = {t.name.rpartition(".")[2]: t.verdict for t in report.tensors}
    assert verdicts == {"x": "PASS", "W": "PASS", "Wg": "FAIL" if of is WrongGate else "PASS"}


def test_a_gradient_of_another_shape_is_still_a_gradient(rng):
    """dW, which something has left as (1, 4), is no weight of its own."""
    gate = Gate(rng.standard_normal((3, 4)), rng.standard_normal((3, 4)))
    gate.dW = np.zeros((1, 4))
    report = gradcheck(gate, rng.standard_normal((2, 3)))
    assert [t.name.rpartition(".")[2] for t in report.tensors] == ["x", "W", "Wg"]


class Dropped:
    """Inverted dropout: its mask of zeros and 1/keep is no weight, but a W that begins as ½·I is."""

    def __init__(self, W, mask):
        self.W, self.mask = W, mask

    def forward(self, x):
        self.x = x
        return (x @ self.W) * self.mask

    def backward(self, dy):
        dz = dy * self.mask
        self.dW = self.x.T @ dz
        return dz @ self.W.T


def test_a_mask_of_dropout_is_no_weight(rng):
    mask = np.array([[1, 0, 1], [0, 1, 1]]) / 0.7
    report = gradcheck(Dropped(0.5 * np.eye(3), mask), rng.standard_normal((2, 3)))
    assert {t.name.rpartition(".")[2]: t.verdict for t in report.tensors} == {"x": "PASS", "W": "PASS"}


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def dsigmoid(a):
    return a * (1 - a)                                   # of a = sigmoid(z): the derivative, and no backward


def squash(x):
    return np.tanh(x)


def dsquash(dy, y):
    return dy * (1 - y**2)


def test_a_derivative_is_no_backward():
    assert partner(sigmoid) is None
    assert partner(squash) is dsquash


def two_layers(x, W, V):
    h = sigmoid(x @ W)

    def backward(dy):
        dh = dy @ V.T
        dz = dh * dsigmoid(h)
        return 2 * dz @ W.T, x.T @ dz, h.T @ dy          # the 2 is wrong

    return h @ V, backward


def test_no_derivative_is_accused_as_a_step(rng):
    report = gradcheck(two_layers, *map(rng.standard_normal, ((5, 4), (4, 3), (3, 2))))
    assert report.wrong_step is None
    assert report.repair[3] == "return dz @ W.T, x.T @ dz, h.T @ dy"


def built(rng):
    """A network made by a function, whose weights, gradients and layers are in closures."""
    W, V, grads = rng.standard_normal((4, 3)), rng.standard_normal((3, 2)), {}

    def linear(x, M, name):
        def back(dy):
            grads[name] = x.T @ dy
            return dy @ M.T

        return x @ M, back

    def squashed(a):
        h = np.tanh(a)
        return h, lambda dh: dh * (1 - h)                # its square is forgotten

    def net(x):
        a, first_back = linear(x, W, "W")
        h, squash_back = squashed(a)
        y, second_back = linear(h, V, "V")

        def backward(dy):
            return first_back(squash_back(second_back(dy)))

        return y, backward

    return net


def test_weights_and_steps_in_closures(rng):
    report = gradcheck(built(rng), rng.standard_normal((5, 4)))
    assert {t.name: t.verdict for t in report.tensors} == {"x": "FAIL", "W": "FAIL", "V": "PASS"}
    assert report.wrong_step.name == "squashed"


def test_gradients_that_nobody_can_place_are_not_tested(rng):
    hidden = SimpleNamespace(M=rng.standard_normal((4, 3)))

    def by_name(x):
        return x @ hidden.M, lambda dy: {"x": dy @ hidden.M.T, "dW_0": x.T @ dy, "dy": dy}

    report = gradcheck(by_name, rng.standard_normal((5, 4)))
    assert report.verdict == "NOT TESTED"
    assert "the backward returns 'dW_0', and nothing is called so: not tested" in report.explain()


def test_a_mask_that_counts_may_fail_when_it_is_moved(rng):
    """Whether y depends on the mask is tried by moving it, and then the forward raises."""
    lengths = np.array([3, 2, 1])

    def last_one(x, mask):
        rows, last = np.arange(3), mask.sum(1).astype(int) - 1

        def backward(dy):
            dx = np.zeros_like(x)
            dx[rows, last] = dy
            return dx

        return x[rows, last], backward

    mask = (np.arange(3) < lengths[:, None]).astype(float)
    assert gradcheck(last_one, rng.standard_normal((3, 3)), mask=mask)


class Lists:
    """Weights in two lists; the loss comes with two lists of gradients, whose names say little."""

    def __init__(self, rng, factor=1.0):
        sizes = (4, 5), (5, 2)
        self.weights, self.biases = [rng.standard_normal(size) for size in sizes], [rng.standard_normal(m) for _, m in sizes]
        self.factor = factor

    def back_from(self, x, target):
        a = [x]
        for W, b in zip(self.weights, self.biases):
            a.append(np.tanh(a[-1] @ W + b))
        nabla_b, nabla_w = [None, None], [None, None]
        delta = a[-1] - target
        for k in (1, 0):
            delta = delta * (1 - a[k + 1] ** 2)
            nabla_b[k], nabla_w[k] = self.factor * delta.sum(0), a[k].T @ delta
            delta = delta @ self.weights[k].T
        return ((a[-1] - target) ** 2).sum() / 2, nabla_b, nabla_w

    def loss(self, x, target):
        return self.back_from(x, target)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "PASS"), (2.0, "FAIL")])
def test_lists_of_gradients_that_come_with_a_loss(factor, verdict, rng):
    report = gradcheck(Lists(rng, factor).loss, rng.standard_normal((3, 4)), rng.standard_normal((3, 2)))
    assert {t.name: t.verdict for t in report.tensors} == {
        "weights.0": "PASS", "weights.1": "PASS", "biases.0": verdict, "biases.1": verdict,
    }  # fmt: skip


def test_a_function_that_gives_gradients_alone_is_refused_in_words(rng):
    def gradients(x):
        return [x, x[0]], [x]                            # ragged

    assert "the function returned 2 things (list, list), expected y, backward" in gradcheck(
        gradients, rng.standard_normal((3, 4))).explain()  # fmt: skip


def model_forward(X, parameters):
    A, caches = X, []
    for k in (1, 2):
        caches.append((A, parameters[f"W{k}"]))
        A = np.tanh(parameters[f"W{k}"] @ A + parameters[f"b{k}"])
        caches[-1] += (A,)
    return A, caches


def model_backward(A, Y, caches):
    grads, dA = {}, A - Y
    for k in (2, 1):
        before, W, A = caches[k - 1]
        dZ = dA * (1 - A**2)
        grads[f"dW{k}"], grads[f"db{k}"] = dZ @ before.T, dZ.sum(1, keepdims=True)
        grads[f"dA{k - 1}"] = dA = W.T @ dZ
    return grads


def cost_and_gradients(X, Y, parameters):
    A, caches = model_forward(X, parameters)
    return ((A - Y) ** 2).sum() / 2, model_backward(A, Y, caches)


def test_gradients_on_the_way_may_be_among_those_of_the_weights(rng):
    """dA0 and dA1 are no weights' gradients, and need not be placed."""
    shapes = {"W1": (5, 4), "b1": (5, 1), "W2": (2, 5), "b2": (2, 1)}
    given = rng.standard_normal((4, 3)), rng.standard_normal((2, 3)), {n: rng.standard_normal(s) for n, s in shapes.items()}
    report = gradcheck(cost_and_gradients, *given)
    assert {t.name: t.verdict for t in report.tensors} == dict.fromkeys([f"parameters.{n}" for n in shapes], "PASS")
    said = gradcheck(model_forward, given[0], given[2]).explain()
    assert "it cannot be told what to give model_backward(A, Y, caches)" in said
    assert "check a function that returns the loss and its gradients" in said


class Kept:
    """It returns nothing: what comes out is kept in self.output, what goes back in self.dinputs."""

    def __init__(self, rng, factor=1.0):
        self.weights, self.biases, self.factor = rng.standard_normal((4, 3)), rng.standard_normal((1, 3)), factor

    def forward(self, inputs):
        self.inputs, self.output = inputs, np.tanh(inputs @ self.weights + self.biases)

    def backward(self, dvalues):
        dz = dvalues * (1 - self.output**2)
        self.dweights, self.dbiases = self.inputs.T @ dz, dz.sum(0, keepdims=True)
        self.dinputs = self.factor * dz @ self.weights.T


class Stepping:
    """Its backward takes a learning rate, and changes the weights at once."""

    def __init__(self, rng, factor=1.0):
        self.weights, self.bias, self.factor = rng.standard_normal((4, 3)), rng.standard_normal(3), factor

    def forward(self, x):
        self.x = x
        return x @ self.weights + self.bias

    def backward(self, output_gradient, learning_rate):
        input_gradient = self.factor * output_gradient @ self.weights.T
        self.weights -= learning_rate * self.x.T @ output_gradient
        self.bias -= learning_rate * output_gradient.sum(0)
        return input_gradient


@pytest.mark.parametrize(("cls", "names"), [
    (Kept, ["inputs", "weights", "biases"]), (Stepping, ["x", "weights", "bias"])])  # fmt: skip
def test_objects_that_keep_what_others_return_and_objects_that_make_a_step(cls, names, rng):
    x, machine = rng.standard_normal((5, 4)), cls(rng)
    before = machine.weights.copy()
    assert {t.name: t.verdict for t in gradcheck(machine, x).tensors} == dict.fromkeys(names, "PASS")
    np.testing.assert_array_equal(machine.weights, before)
    assert not hasattr(machine, "output")
    report = gradcheck(cls(rng, factor=2.0), x)
    assert {t.name: t.verdict for t in report.tensors} == dict.fromkeys(names, "PASS") | {names[0]: "FAIL"}


class UsesNewWeights(Stepping):
    def backward(self, output_gradient, learning_rate):
        super().backward(output_gradient, learning_rate)
        return output_gradient @ self.weights.T          # of the weights after the step


def test_a_gradient_through_weights_that_have_been_changed_already_is_wrong(rng):
    report = gradcheck(UsesNewWeights(rng), rng.standard_normal((5, 4)))
    assert {t.name: t.verdict for t in report.tensors} == {"x": "FAIL", "weights": "PASS", "bias": "PASS"}


class Asking(Kept):
    def backward(self, dvalues, y_true):
        super().backward(dvalues)


def test_what_an_objects_backward_cannot_be_given_is_said(rng):
    assert "it cannot be told what to give backward(dvalues, y_true)" in gradcheck(
        Asking(rng), rng.standard_normal((5, 4))).explain()  # fmt: skip

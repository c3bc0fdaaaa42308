"""What cannot be judged is NOT TESTED, with a sentence that helps: who obeys it passes."""

from types import SimpleNamespace

from mini_tf.errors import UserError
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.report import EXIT_CODES

import numpy as np
import pytest

from .contracts import edited, normal


def refused(report, sentence):
    """The report, which is NOT TESTED, and says so"""
    assert report.verdict == "NOT TESTED", report
    assert not report
    assert report.exit_code == EXIT_CODES["NOT TESTED"] == 2
    assert not report.findings
    assert sentence in report.explain()
    return report


def passes(report):
    assert report.verdict == "PASS", report
    assert report.exit_code == 0


X, X33, W33 = normal((4, 3)), *normal((3, 3), (3, 3), seed=8)


# What is given -----------------------------------------------------------------------------------------------------------


def square(x):
    return x * x, lambda dy: 2 * x * dy


class Linear:
    def __init__(self):
        self.W = normal((3, 2))

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, dy):
        self.dW = self.x.T @ dy
        return dy @ self.W.T

    def loss(self, x, t):
        e = self.forward(x) - t
        return 0.5 * (e**2).sum(), self.x.T @ e


def test_a_class_in_place_of_an_object():
    sentence = "Linear is a class: give an object of it, gradcheck(Linear(…), x); or its static methods, gradcheck((Linear.forward,"
    refused(judge(Linear, X), sentence)
    passes(judge(Linear(), X))


def test_arrays_of_integers_lists_and_numbers_that_are_not_finite():
    refused(judge(square, np.arange(3)), "there is no floating array to check (x is int64): try .astype(float)")
    passes(judge(square, np.arange(3).astype(float)))
    refused(judge(square, [1.0, 2.0]), "x is a list of numbers, expected an array: np.array(x, dtype=float)")
    passes(judge(square, np.array([1.0, 2.0], dtype=float)))
    refused(judge(square, np.array([1, np.nan])), "x has 1 of 2 entries that are not finite: give it others")
    with np.errstate(divide="ignore"):
        report = judge(lambda x: (np.log(x), lambda dy: dy / x), np.array([0.0, 1.0]))
    refused(report, "the forward gave 1 of 2 values that are not finite (NaN or infinite): give it inputs where it is defined")
    passes(judge(lambda x: (np.log(x), lambda dy: dy / x), np.array([0.5, 1.0])))
    refused(judge(lambda: (np.float64(1), lambda dy: None)), "there is no floating array to check")
    passes(judge(square, 3.0))


def weighted(x, weights):
    return x * np.array(weights), lambda dy: dy * np.array(weights)


def test_a_list_that_is_a_constant_is_given_by_its_name():
    refused(judge(weighted, X, [1.0, 2.0, 3.0]), "or give it by name, weights=weights, if it is a constant")
    passes(judge(weighted, X, weights=[1.0, 2.0, 3.0]))
    passes(judge(lambda x, lengths: square(x), X, [3, 4]))               # whole numbers are no weights


def noisy(x):
    mask = np.random.default_rng().random(x.shape) < 0.5
    return x * mask, lambda dy: dy * mask


def test_a_forward_that_is_random():
    refused(judge(noisy, X), "two different results for the same inputs: is it random? Give it its mask as an input, mask=mask")
    passes(judge(lambda x, mask: (x * mask, lambda dy: dy * mask), X, mask=np.array([1.0, 0, 2])))


class Tensor:
    def __init__(self, data):
        self.data = data

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)

    def __getitem__(self, k):
        return Tensor(self.data[k])

    def __len__(self):
        return len(self.data)


def of_tensors(x):
    return Tensor(x.data**2), lambda dy: Tensor(2 * x.data * dy.data)


def test_objects_that_look_like_arrays():
    sentence = "y is one Tensor, expected a floating array or a number; of a tensor object give its array"
    refused(judge(lambda x: of_tensors(Tensor(x)), X), sentence)
    refused(judge(of_tensors, Tensor(X)), sentence)

    def with_arrays(x):
        y, backward = of_tensors(Tensor(x))
        return y.data, lambda dy: backward(Tensor(dy)).data

    passes(judge(with_arrays, X))


def test_functions_that_return_something_else():
    expected = "expected one of these: y, backward = f(…); loss, grads = f(…), which may be a method, net.loss; an object with"
    refused(judge(np.tanh, X), f"tanh returned one ndarray, {expected}")
    refused(judge(lambda x: (x, None), X), f"returned 2 things (ndarray, NoneType), {expected}")
    refused(judge(SimpleNamespace(go=square), X), "SimpleNamespace can neither be called, nor has it forward and backward")
    refused(judge((square,), X), "1 things (function) came, expected two functions: gradcheck((forward, backward), …)")
    refused(judge(lambda x: 1 / 0, X), "the function raised ZeroDivisionError")
    refused(judge((lambda x: x, lambda dy: dy[7, 7]), X), "it raised IndexError")
    refused(judge(lambda x: (x > 0, lambda dy: dy), X), "y has dtype bool, expected float64, which all tensors have")
    refused(judge(lambda x: (x[:0], lambda dy: 0 * x), X), "y is empty, its shape is (0, 3): there is nothing to differentiate")
    refused(judge(lambda x: (x.astype("f"), lambda dy: dy), X), "y has dtype float32, expected float64, which all tensors have")


def test_a_loss_for_each_sample():
    def losses(x):
        return (x**2).sum(1), 2 * x / len(x)

    refused(judge(losses, X), "if the first are losses, one for each sample, return their .mean() or .sum()")
    passes(judge(edited(_losses, "(x**2).sum(1)", "(x**2).sum(1).mean()"), X))
    pair = (lambda x: (x**2).sum(1)), lambda x: 2 * x / len(x)
    refused(judge(pair, X), "is it the gradient of their mean, or of their sum? Say so: gradcheck((lambda …: f(…).mean(), backward)")
    passes(judge((lambda x: pair[0](x).mean(), pair[1]), X))


def _losses(x):
    return (x**2).sum(1), 2 * x / len(x)


def test_what_a_backward_takes_in_another_order():
    def forward(x, W):
        return x @ W, (x, W)

    def backward(cache, dout):
        x, W = cache
        return dout @ W.T, x.T @ dout

    def by_name_only(*, saved, dout):
        return backward(saved, dout)

    W = normal((3, 2))
    sentence = "was given dout, then the cache: if it takes them in another order, write gradcheck((forward, lambda dout, cache: backward("
    refused(judge((forward, backward), X, W), sentence)
    passes(judge((forward, lambda dout, cache: backward(cache, dout)), X, W))
    sentence = "it cannot be told what to give by_name_only(*, saved, dout): dy comes first, then the cache, and inputs by their names"
    refused(judge((forward, by_name_only), X, W), sentence)
    passes(judge((forward, lambda dout, cache: by_name_only(saved=cache, dout=dout)), X, W))


# Blanks of an exercise ----------------------------------------------------------------------------------------------------


def filled(x, W):
    h = np.tanh(x @ W)

    def backward(dy):
        dz = dy * (1 - h * h)
        dx = dz @ W.T
        dW = x.T @ dz
        return dx, dW

    return h, backward


@pytest.mark.parametrize(("part", "sentence"), [
    ("x.T @ dz", "dW is still `...`: a blank to fill"), ("dy * (1 - h * h)", "`dz` is still `...`, a blank to fill first"),
    ("np.tanh(x @ W)", "y is still `...`: a blank to fill"), ("h, backward", "returned `...`: a blank to fill first"),
])  # fmt: skip
def test_blanks(part, sentence):
    refused(judge(edited(filled, part, "..."), X, normal((3, 2))), sentence)
    passes(judge(filled, X, normal((3, 2))))


# Whose gradient it is -----------------------------------------------------------------------------------------------------


class WithPositions(Linear):
    def __init__(self):
        self.W, self.pe, self.frequencies = normal((3, 2), (4, 3), 3)

    def forward(self, x):
        self.h = x + self.pe * self.frequencies
        return self.h @ self.W

    def backward(self, dy):
        self.dW = self.h.T @ dy
        return dy @ self.W.T


def test_arrays_that_may_be_constants():
    report = refused(judge(WithPositions(), X), "no gradient of pe, frequencies was found (looked for dpe and its like")
    assert [t.name for t in report.tensors] == ["x", "W"]
    assert "constants=['pe', 'frequencies']" in report.refusals[0]
    passes(judge(WithPositions(), X, constants=["pe", "frequencies"]))
    passes(judge(WithPositions(), X, params=["W"]))
    wrong = edited(WithPositions, "self.h.T @ dy", "2 * self.h.T @ dy")
    assert judge(wrong(), X).verdict == "FAIL"           # what can be judged is judged
    refused(judge(WithPositions(), X, constants=["positions"]), "constants: there is no array 'positions'; there are: x, W, pe, frequencies")


class Elsewhere(Linear):
    def backward(self, dy):
        self.kept = {"of W": self.x.T @ dy}
        return dy @ self.W.T


def test_a_gradient_that_no_rule_finds():
    report = refused(judge(Elsewhere(), X), "Is the gradient elsewhere? grads={'W': 'path.to.its.gradient'}")
    assert [t.name for t in report.tensors] == ["x"]
    passes(judge(Elsewhere(), X, grads={"W": "kept['of W']"}))
    assert judge(edited(Elsewhere, "self.x.T @ dy", "self.x.T @ dy / 2")(), X, grads={"W": "kept['of W']"}).verdict == "FAIL"
    refused(judge(Elsewhere(), X, grads={"V": "kept"}), "grads: there is no array 'V'; there are: x, W")
    refused(judge(Elsewhere(), X, params=["V"]), "params: there is no floating array 'V': W")


def test_a_missing_name_in_a_dict():
    def f(x, W):
        return x @ W, lambda dy: {"dx": dy @ W.T, "weights": x.T @ dy}

    refused(judge(f, X, normal((3, 2))), "weights came back by name: which are the gradients of W?")
    passes(judge(f, X, normal((3, 2)), grads={"W": "weights"}))


class TwoPlaces(Linear):
    def backward(self, dy):
        self.dW, self.grad_W = self.x.T @ dy, np.zeros_like(self.W)
        return dy @ self.W.T


def test_two_candidates():
    refused(judge(TwoPlaces(), X), "two arrays may be the gradient of W: dW and grad_W. Say which: grads={'W': 'dW'}")
    passes(judge(TwoPlaces(), X, grads={"W": "dW"}))
    assert judge(TwoPlaces(), X, grads={"W": "grad_W"}).verdict == "FAIL"


def test_a_method_whose_gradient_has_no_name():
    t = normal((4, 2))
    sentence = "one gradient came back without names, and may be those of the inputs, x, t, or of W. Say whose: grads=['W']"
    report = refused(judge(Linear().loss, X, t), sentence)
    assert "or what is data: constants=['W']" in report.refusals[0]
    passes(judge(Linear().loss, X, t, grads=["W"]))
    assert judge(Linear().loss, X, t, constants=["W"]).verdict == "FAIL"         # it is none of x


def test_a_loss_whose_gradients_have_another_order_than_its_inputs():
    def loss(W, V):
        dW, dV = 2 * W, 3 * V**2
        return (W**2).sum() + (V**3).sum(), dV, dW

    report = refused(judge(loss, X33, W33), "what comes back, dV, dW, has another order than W, V")
    assert "grads=['V', 'W']" in report.refusals[0]
    passes(judge(loss, X33, W33, grads=["V", "W"]))
    assert judge(loss, X33, W33, grads=["W", "V"]).verdict == "FAIL"


def test_gradients_of_a_list_that_come_one_after_another():
    def loss(x, t, params):
        e = x @ params[0] + params[1] - t
        return 0.5 * (e**2).sum(), x.T @ e, e.sum(0)

    given = X33, W33, [normal((3, 3)), normal(3)]
    refused(judge(loss, *given), "inputs, x, t, or of params.0, params.1. Say whose: grads=['params.0', 'params.1']")
    passes(judge(loss, *given, grads=["params.0", "params.1"]))


def test_lists_of_numbers_and_other_things_in_place_of_a_gradient():
    refused(judge(edited(_lists, "2 * W", "(2 * W).tolist()"), X), "dW is a list of numbers, expected an array: np.array(dW)")
    refused(judge(edited(_lists, "2 * W", '"2 W"'), X), "dW is one str, expected an array of shape (4, 3)")
    passes(judge(_lists, X))


def _lists(W):
    return (W**2).sum(), 2 * W


def test_an_object_that_cannot_be_copied():
    class Locked(Linear):
        def __deepcopy__(self, memo):
            raise TypeError("it has a lock")

    layer = Locked()
    refused(judge(layer, X), "Locked cannot be copied (it has a lock). Give its methods, and weights as inputs: gradcheck((lambda")
    passes(judge((lambda x: layer.forward(x), lambda dy: layer.backward(dy)), X))


@pytest.mark.parametrize("options", [{"budget": 0}, {"budget": 2.5}, {"seed": -1}, {"seed": "x"}, {"seed": None}])
def test_numbers_that_cannot_be_meant_raise(options):
    with pytest.raises(UserError, match=rf"{next(iter(options))} is .*, expected a whole number of at least"):
        judge(square, X, **options)

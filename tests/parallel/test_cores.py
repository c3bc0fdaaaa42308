"""Two threads that take half of a batch each compute what one does with the whole batch."""

import threading

from mini_tf import cores
from mini_tf.errors import UserError
from mini_tf.layers import Layer, Linear, clear_gradients
from mini_tf.models import GPT, GPT2, Classifier, MaskedWordModel
from mini_tf.ops.op import watching
from mini_tf.parallel import SINGLE, join, two_cores
from mini_tf.parallel.two_cores import TwoCoreTraining
from mini_tf.training import Adam, Training
from mini_tf.training.masking import MaskedPassages
from mini_tf.training.text_batches import TextBatch
from tests import tiny
from tests.parallel.test_same_numbers import columns
from tests.parallel.worker import in_double_precision

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

c, n = 30, 8
SMALL = {"T": 6, "L": 1, "H": 2, "m": 4, "f": 8, "dropout": 0.3}


pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def always(monkeypatch):
    """However little there is to do"""
    monkeypatch.setattr(two_cores, "LEAST_WORK", 0)


def vectors():
    return np.random.default_rng(1).standard_normal((c, n))


def texts(B=7):
    rng = np.random.default_rng(2)
    ids = rng.integers(0, c, (B, 6))
    ids[0, 3:] = ids[-1, 1:] = -1
    return TextBatch(ids, rng.integers(0, 3, B))


def passages():
    rng = np.random.default_rng(2)
    return next(MaskedPassages([rng.integers(1, c, size) for size in rng.integers(5, 7, 60)], c, 40, 0.3))


MODELS = {
    "classifier": (lambda: Classifier(vectors(), classes=3, blocks=1, k=6, word_dropout=0.2, **SMALL), texts),
    "GPT": (lambda: GPT(vectors(), **SMALL), lambda: np.random.default_rng(2).integers(0, c, (5, 7))),
    "GPT2": (lambda: GPT2(vectors(), **SMALL), lambda: np.random.default_rng(2).integers(0, c, (5, 7))),
    "masked words": (lambda: MaskedWordModel(vectors(), **SMALL), passages),
}


def loss_of(model, batch, rng=None, kind=TwoCoreTraining):
    return kind(model, iter([]), Adam(), rng=rng).loss(batch)


def shares(model, batch):
    return TwoCoreTraining(model, iter([]), Adam()).shares(batch)


def results(kind, model, batch, rng):
    """The loss, the gradients, and the next random number"""
    model.clear_gradients()
    loss, backward = loss_of(model, batch, rng, kind)
    backward()
    gradients = {name: p.grad for name, p in model.parameters().items()}
    return float(loss), gradients, None if rng is None else rng.random()


@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_loss_gradients_and_random_numbers(name, dropout, always):
    model, batch = (make() for make in MODELS[name])
    for p in model.parameters().values():
        p.data = np.random.default_rng(3).standard_normal(p.data.shape) * 0.5
    assert [rows for rows, _ in shares(model, batch)] == [slice(0, len(batch) // 2), slice(len(batch) // 2, len(batch))]
    whole, halves, again = (
        results(kind, model, batch, np.random.default_rng(4) if dropout else None)
        for kind in (Training, TwoCoreTraining, TwoCoreTraining)
    )
    assert halves[0] == pytest.approx(whole[0], rel=1e-13)
    assert halves[2] == whole[2]
    for parameter, right in whole[1].items():
        np.testing.assert_allclose(halves[1][parameter], right, rtol=1e-10, atol=1e-14, err_msg=parameter)
        np.testing.assert_array_equal(again[1][parameter], halves[1][parameter])
    assert again[0] == halves[0]


@pytest.mark.parametrize("name", tiny.NAMES)
def test_every_preset_learns_the_same(name, always, tmp_path, monkeypatch):
    monkeypatch.setattr(Training, "__init__", in_double_precision)
    split = []
    monkeypatch.setattr(cores, "all_at_once", lambda *given, f=cores.all_at_once: split.append(True) or f(*given))
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            tiny.train(name, tmp_path / str(threads) / name)
        assert bool(split) == (threads == 2 and name not in ("ngram", "recurrent"))
    one, two = (columns(tmp_path / threads, name) for threads in "12")
    for key in one:
        np.testing.assert_allclose(two[key], one[key], rtol=0, atol=1e-12, err_msg=key)


def test_both_halves_are_worked_on_at_the_same_time(always, monkeypatch):
    both, loss = threading.Barrier(2, timeout=600), Classifier.loss
    model, batch = (make() for make in MODELS["classifier"])

    def meet(self, rows, rng=None):
        both.wait()                                      # breaks unless two threads come here
        assert cores.blas_threads() == 1
        return loss(self, rows, rng)

    monkeypatch.setattr(Classifier, "loss", meet)
    loss_of(model, batch)[1]()
    assert cores.blas_threads() == 2


def test_where_it_would_take_longer_the_batch_stays_whole(monkeypatch):
    model, batch = (make() for make in MODELS["classifier"])
    assert shares(model, batch) == [(slice(None), 1.0)]            # too little to do
    monkeypatch.setattr(two_cores, "LEAST_WORK", 0)
    assert len(shares(model, batch)) == 2
    assert len(shares(model, texts(1))) == 1
    with watching(lambda op, run, *inputs, **options: run(*inputs, **options)):
        assert len(shares(model, batch)) == 1
    with threadpool_limits(1, "blas"):
        assert len(shares(model, batch)) == 1
    monkeypatch.setattr(cores, "blas_threads", lambda: 4)
    assert len(shares(model, batch)) == 1
    monkeypatch.undo()
    monkeypatch.setattr(two_cores, "LEAST_WORK", 0)
    monkeypatch.setattr(two_cores, "MOST_PARAMETERS", 10)
    assert len(shares(model, batch)) == 1                          # too much to add up


def test_a_half_without_predictions_stays_with_the_other(always):
    model, batch = (make() for make in MODELS["masked words"])
    first = batch.targets[: len(batch) // 2]
    first[...] = -1
    assert len(shares(model, batch)) == 1
    first[0, 0] = 2
    assert [weight for _, weight in shares(model, batch)] == pytest.approx([1 / (batch.targets != -1).sum(), 1 - 1 / (batch.targets != -1).sum()])


def test_an_error_in_a_half_arrives_and_no_gradient_stays(always, monkeypatch):
    model, batch = (make() for make in MODELS["classifier"])
    with pytest.raises(ValueError, match="ids have shape"):
        loss_of(model, TextBatch(np.zeros((4, 9), int), np.zeros(4, int)))
    loss = Classifier.loss

    def failing(self, rows, rng=None):
        value, backward = loss(self, rows, rng)

        def then(dloss=1.0):
            backward(dloss)
            raise MemoryError(f"{len(rows)} rows")

        return value, then

    monkeypatch.setattr(Classifier, "loss", failing)
    with pytest.raises(MemoryError, match="[34] rows"):
        loss_of(model, batch)
    assert all(p.grad is None for p in model.parameters().values())
    assert cores.blas_threads() == 2


def test_a_backward_without_dloss_is_told(always):
    class Sum(Layer):
        def __init__(self):
            self.linear = Linear(2, 1, np.random.default_rng(0), dtype=np.float64)

        def loss(self, batch, rng=None):
            y, backward = self.linear(batch)
            return y.mean(), lambda: backward(np.full(y.shape, 1 / y.size))

    with pytest.raises(UserError, match="the backward of Sum.loss takes no argument; that of a part of a batch needs dloss"):
        loss_of(Sum(), np.ones((4, 2)))


def test_who_is_not_started_by_mpiexec_gets_them():
    assert join() is SINGLE
    assert type(SINGLE.training(MODELS["GPT"][0](), iter([]), Adam())) is TwoCoreTraining


def test_gradients_of_a_parameter_that_is_used_twice(always):
    model = GPT(vectors(), **SMALL | {"dropout": 0.0})                   # its table is the readout, too
    batch = np.random.default_rng(5).integers(0, c, (6, 7))
    model.clear_gradients()
    for kind in (Training, TwoCoreTraining):
        for _ in range(2):                                               # gradients of two batches add up
            loss_of(model, batch, kind=kind)[1]()
        if kind is Training:
            right = {name: p.grad for name, p in model.parameters().items()}
            clear_gradients(model.parameters())
    for name, p in model.parameters().items():
        np.testing.assert_allclose(p.grad, right[name], rtol=1e-10, atol=1e-14, err_msg=name)

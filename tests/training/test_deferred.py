"""Steps on a GPU whose losses are read later: the same training as with losses read at once, and no waiting."""

from mini_tf.backend import array_module, to_device_of, to_host
from mini_tf.layers import Layer, Parameter
from mini_tf.models import LanguageTransformer
from mini_tf.training import SGD, Adam, RandomWindows, Training, Watcher, fit
from mini_tf.training.deferred import READ_EVERY
from mini_tf.training.guard import NotFinite
from tests.kernels.simulator import gpu_of_strict, to_gpu  # noqa: F401
from tests.strict import counting, strict

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
STEPS = 2 * READ_EVERY + 5


class Line(Layer):
    """loss = mean (w·x − 1)², whose numbers are not finite if those of the batch x are not"""

    def __init__(self, move):
        self.w, self.T = Parameter(move(np.full(3, 0.5, np.float32))), 0

    def loss(self, batch, rng=None):
        x = to_device_of(batch, self.w.data)
        error = self.w.data * x - 1

        def backward():
            self.w.accumulate(2 / 3 * error * x)

        return (error * error).mean(), backward


class Numbers:
    """Batches of numbers, with infinity in the batch after `bad` others; bad = "gradient": only its square is infinite"""

    def __init__(self, bad=None, number=np.inf):
        self.done, self.bad, self.number = 0, bad, number

    def __iter__(self):
        return self

    def __next__(self):
        self.done += 1
        x = np.random.default_rng(self.done).standard_normal(3).astype(np.float32)
        x[0] = self.number if self.done - 1 == self.bad else x[0]
        return x

    def state(self):
        return {"done": self.done}

    def restore(self, state):
        self.done = state["done"]


def _line(move, clip=1.0, **options):
    return Training(Line(move), Numbers(**options), Adam(0.1), clip=clip, rng=np.random.default_rng(0))


def _transformer(move, seed=0):
    table = np.random.default_rng(seed).standard_normal((9, 4)).astype(np.float32)
    model = LanguageTransformer(table, T=5, L=1, H=2, m=2, readout="vec", causal=True)
    for parameter in model.parameters().values():
        parameter.data = move(parameter.data)
    return Training(model, RandomWindows(np.arange(60) % 9, 5, 4), Adam(0.01), clip=0.5)


@pytest.mark.parametrize("make", [_line, _transformer])
def test_the_same_training_as_with_losses_read_at_once(make, to_gpu):  # noqa: F811
    late, at_once = make(to_gpu), make(to_gpu)
    returned = [late.one_step(defer=True)[0] for _ in range(STEPS)]
    losses = [at_once.one_step()[0] for _ in range(STEPS)]
    assert returned[0] == returned[READ_EVERY - 1] == pytest.approx(losses[0], rel=1e-5)
    assert returned[READ_EVERY] == pytest.approx(losses[READ_EVERY], rel=1e-4)
    late.settle()
    np.testing.assert_allclose(late.since["losses"], losses, rtol=1e-4)
    assert (late.step, late.since["words"]) == (at_once.step, at_once.since["words"])
    assert late.optimizer.memory["t"] == at_once.optimizer.memory["t"]
    for name, parameter in late.parameters.items():
        np.testing.assert_allclose(to_host(parameter.data), to_host(at_once.parameters[name].data), rtol=1e-3, atol=1e-5)


def test_a_step_that_is_not_observed_waits_for_nothing(gpu_of_strict):  # noqa: F811
    training = _line(strict)
    for _ in range(2):
        training.one_step(defer=True)                     # the first loss of all is read, to be shown
    with counting() as counts:
        for _ in range(READ_EVERY - 2):
            training.one_step(defer=True)
    assert counts["waits"] == 0
    with counting() as counts:
        training.one_step(defer=True)
    assert counts["waits"] == 1                          # for sixteen losses


@pytest.mark.parametrize("bad", [0, 1, 3, READ_EVERY, READ_EVERY + 7, 2 * READ_EVERY - 1])
@pytest.mark.parametrize("number", [np.inf, np.float32(1e30)], ids=["loss", "gradient"])
def test_the_step_that_is_not_finite_is_found_again(bad, number, to_gpu):  # noqa: F811
    late, at_once = (_line(to_gpu, bad=bad, number=number) for _ in range(2))
    messages = []
    for training, options in ((late, {"defer": True}), (at_once, {})):
        with pytest.raises(NotFinite, match=rf"at step {bad + 1}, expected a number") as error:
            for _ in range(STEPS):
                training.one_step(**options)
            training.settle()
        messages.append(str(error.value))
    assert messages[0].split()[:4] == messages[1].split()[:4]
    (arrays, numbers), (others, expected) = late.state(), at_once.state()
    for name, x in arrays.items():
        same = to_host(others[name]) if name in others else 0            # a mean that has not moved yet
        np.testing.assert_allclose(to_host(x), same, rtol=1e-4, atol=1e-6, err_msg=name)
    for name in ("step", "batches", "rng"):
        assert numbers[name] == expected[name], name
    assert numbers["counts"].get("t", {}) == expected["counts"].get("t", {})
    assert len(numbers["since"]["losses"]) == bad
    late.batches.bad = None                              # the training goes on, as if nothing had been
    late.one_step(defer=True)
    late.settle()
    assert late.step == bad + 1


def test_fit_reads_all_losses_of_a_row(to_gpu):  # noqa: F811
    seen, training = [], _line(to_gpu)
    history = fit(training, STEPS, lambda: 1.0, every=20, watcher=Watcher(lambda step, loss: seen.append((step, loss))))
    at_once = _line(to_gpu)
    losses = [at_once.one_step()[0] for _ in range(STEPS)]
    assert [row["step"] for row in history.rows] == [20, STEPS]
    assert history.rows[0]["train_loss"] == pytest.approx(np.mean(losses[:20]), rel=1e-5)
    assert history.rows[1]["train_loss"] == pytest.approx(np.mean(losses[20:]), rel=1e-5)
    assert [step for step, _ in seen] == list(range(1, STEPS + 1))
    assert all(isinstance(loss, float) for _, loss in seen)


def test_a_state_has_the_losses_that_were_deferred(to_gpu):  # noqa: F811
    training = _line(to_gpu)
    for _ in range(5):
        training.one_step(defer=True)
    assert len(training.state()[1]["since"]["losses"]) == 5


def test_what_cannot_be_deferred_is_read_at_once(gpu_of_strict):  # noqa: F811
    for training in (_line(np.array), Training(Line(strict), Numbers(), SGD(0.1))):
        losses = [training.one_step(defer=True)[0] for _ in range(3)]
        assert training.deferred is None
        assert training.since["losses"] == losses
    doubles = _line(lambda x: strict(x.astype(np.float64)))
    doubles.one_step(defer=True)
    assert doubles.deferred is None
    assert array_module(doubles.model.w.data).__name__ == "strict_library"

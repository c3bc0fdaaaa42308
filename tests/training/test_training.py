"""Optimizers, batches, the loop, checkpoints and run folders."""

import os
import signal
import threading
from contextlib import contextmanager
from functools import partial

from mini_tf import progress
from mini_tf.errors import UserError
from mini_tf.experiment import PointerTransformer
from mini_tf.layers import Layer, Parameter
from mini_tf.models import FixedWindowModel, LanguageTransformer, RecurrentModel
from mini_tf.training import (
    SGD,
    Adam,
    AdamW,
    ConsecutiveWindows,
    RandomWindows,
    Schedule,
    Training,
    Watcher,
    clip_gradients,
    fit,
    load_checkpoint,
    mean_loss,
    save_checkpoint,
    split_words,
    windows_ending_at,
)
from mini_tf.training.run import Run

import numpy as np
import pytest


def _parameter(rng, shape=(3, 5), dtype=np.float64):
    p = Parameter(rng.standard_normal(shape).astype(dtype))
    p.grad = rng.standard_normal(shape).astype(dtype)
    return p


# --- optimizers


def test_sgd_is_its_formula(rng):
    p = _parameter(rng)
    before, g = p.data.copy(), p.grad.copy()
    optimizer = SGD(0.1, momentum=0.9)
    optimizer.step({"p": p})
    optimizer.step({"p": p})
    np.testing.assert_allclose(p.data, before - 0.1 * g - 0.1 * 1.9 * g)
    np.testing.assert_array_equal(p.grad, g)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_is_its_formula(weight_decay, rng):
    p = _parameter(rng)
    data, m, v = p.data.copy(), 0, 0
    optimizer = AdamW(0.01, weight_decay=weight_decay) if weight_decay else Adam(0.01)
    for t in range(1, 5):
        p.grad = g = rng.standard_normal(p.data.shape)
        optimizer.step({"p": p})
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        data = data - 0.01 * weight_decay * data
        data = data - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(p.data, data, rtol=1e-10)


def test_only_the_named_parameters_decay(rng):
    parameters = {name: _parameter(rng) for name in ("W", "b")}
    before = {name: p.data.copy() for name, p in parameters.items()}
    optimizer = AdamW(0.01, weight_decay=0.1, only=["W"])
    for p in parameters.values():
        p.grad = np.zeros_like(p.data)
    optimizer.step(parameters)
    np.testing.assert_allclose(parameters["W"].data, 0.999 * before["W"], rtol=1e-12)
    np.testing.assert_array_equal(parameters["b"].data, before["b"])


@pytest.mark.parametrize("optimizer", [Adam, AdamW])
def test_adams_kernel_agrees_with_its_formula(optimizer, rng):
    """The float32 kernel agrees with the formula: for one entry, an odd number, and enough for several threads."""
    for shape in [(1,), (7, 11), (1, 50_001)]:
        fused, plain = _parameter(rng, shape, np.float32), Parameter(np.empty(0))
        plain.data = fused.data.astype(np.float64)
        by_kernel, by_formula = optimizer(0.01), optimizer(0.01)
        for _ in range(3):
            fused.grad = rng.standard_normal(shape, dtype=np.float32)
            plain.grad = fused.grad.astype(np.float64)
            by_kernel.step({"p": fused})
            by_formula.step({"p": plain})
        np.testing.assert_allclose(fused.data, plain.data, rtol=1e-5, atol=1e-6)


def test_adam_never_works_outside_its_arrays(rng):
    """A parameter replaced by a larger one, or made read-only, is an error, as in the formula."""
    for grown in (np.zeros(24, np.float32), np.zeros((3, 5), np.float32)):
        p, optimizer = _parameter(rng, (10,), np.float32), Adam(0.01)
        optimizer.step({"p": p})
        p.data, p.grad = grown, grown + 1
        with pytest.raises(ValueError, match=r"adam: m has shape \(10,\), expected"):
            optimizer.step({"p": p})
    p = _parameter(rng, (10,), np.float32)
    p.data.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        Adam(0.01).step({"p": p})
    p = _parameter(rng, (7, 5), np.float32)
    p.grad = np.ones(5, np.float32)
    with pytest.raises(ValueError, match=r"adam: g has shape \(5,\), expected .* as in p"):
        Adam(0.01).step({"p": p})


def test_adam_with_beta_almost_1(rng):
    """1 − β is computed in double precision: in single precision it would be 0 here, and v would stay 0."""
    p = _parameter(rng, (10,), np.float32)
    before = p.data.copy()
    Adam(0.01, betas=(0.9, 1 - 1e-8)).step({"p": p})
    np.testing.assert_allclose(p.data, before - 0.01 * np.sign(p.grad), atol=1e-5)


def test_adam_moves_a_parameter_that_is_a_transposed_array(rng):
    p = Parameter(rng.standard_normal((3, 5), dtype=np.float32).T)
    before, p.grad = p.data.copy(), np.ones((5, 3), np.float32)
    Adam(0.01).step({"p": p})
    np.testing.assert_allclose(p.data, before - 0.01, atol=1e-6)


def test_fixed_parameters_and_those_without_gradient_stay(rng):
    fixed, unused = _parameter(rng), _parameter(rng)
    fixed.trainable, unused.grad = False, None
    before = fixed.data.copy(), unused.data.copy()
    for optimizer in (SGD(), Adam(), AdamW()):
        optimizer.step({"fixed": fixed, "unused": unused})
    np.testing.assert_array_equal(fixed.data, before[0])
    np.testing.assert_array_equal(unused.data, before[1])


def test_float32_stays_float32(rng):
    p = Parameter(np.ones(4, np.float32))
    p.grad = np.ones(4, np.float32)
    for optimizer in (SGD(momentum=0.5), Adam(), AdamW()):
        optimizer.step({"p": p})
    assert p.data.dtype == np.float32


def test_adam_counts_the_steps_of_each_parameter(rng):
    """A parameter that rarely has a gradient moves as if there were no batches without one."""
    often, seldom = Parameter(np.zeros(3)), Parameter(np.zeros(3))
    optimizer = Adam(0.1)
    for step in range(8):
        often.grad = np.ones(3)
        seldom.grad = np.ones(3) if step % 4 == 0 else None
        optimizer.step({"often": often, "seldom": seldom})
    np.testing.assert_allclose(often.data, -0.8)
    np.testing.assert_allclose(seldom.data, -0.2)


# --- batches


def test_the_split_is_in_time_order_and_each_word_is_predicted_once():
    ids = np.arange(1000)
    train, validation, test = split_words(ids, T=10)
    assert train.tolist() == list(range(855))
    assert validation.tolist() == list(range(845, 900))
    assert test.tolist() == list(range(890, 1000))       # predicted: 900 … 999, the last tenth


@pytest.mark.parametrize("T", [1, 2, 8, 32])
def test_each_part_has_a_window_or_the_corpus_is_refused(T):
    assert all(len(part) >= T + 1 for part in split_words(np.arange(2 * T + 25), T))
    with pytest.raises(UserError, match=rf"the corpus has {T + 1} words, too few"):
        split_words(np.arange(T + 1), T)


def test_windows_are_consecutive_words_each_once_a_round():
    batches = RandomWindows(np.arange(100, 130), T=3, batch=9, seed=0)
    one_round = np.concatenate([next(batches) for _ in range(3)])
    assert one_round.shape == (27, 4)
    assert (np.diff(one_round, axis=1) == 1).all()
    assert sorted(one_round[:, -1]) == list(range(103, 130))
    another = np.concatenate([next(batches) for _ in range(3)])
    assert sorted(another[:, -1]) == list(range(103, 130))
    assert not np.array_equal(one_round, another)


def test_a_batch_larger_than_the_text_is_the_whole_text():
    assert next(RandomWindows(np.arange(6), T=3, batch=50, seed=0)).shape == (3, 4)
    with pytest.raises(UserError, match="has 3 tokens, expected more than T = 3"):
        RandomWindows(np.arange(3), T=3, batch=5)


# --- the loop


class Slope(Layer):
    """loss = mean (w·x − 2x)²: falls to 0 at w = 2"""

    def __init__(self):
        self.w = Parameter(np.zeros(1))
        self.T = 0

    def loss(self, batch, rng=None):
        error = (self.w.data - 2) * batch

        def backward():
            self.w.accumulate(np.array([2 * (error * batch).mean()]))

        return (error * error).mean(), backward


def _ones():
    while True:
        yield np.ones(4)


def test_fit_trains_and_calls_its_watcher():
    model, steps, rows = Slope(), [], []
    history = fit(
        Training(model, _ones(), SGD(0.1)), steps=50, validate=lambda: model.loss(np.ones(4))[0], every=20,
        watcher=Watcher(lambda step, loss: steps.append(step), lambda row, best: rows.append((row["step"], best))),
    )  # fmt: skip
    assert model.w.data == pytest.approx(2, abs=1e-3)
    assert steps == list(range(1, 51))
    assert rows == [(20, True), (40, True), (50, True)]
    assert history.stopped == "finished"
    assert history.best_step == 50
    assert history.best_validation_loss == history.rows[-1]["validation_loss"]
    assert set(history.rows[0]) == {
        "step", "train_loss", "validation_loss", "learning_rate", "seconds", "words_per_second",
        "gradient_norm", "update_ratio", "dead_relus", "gradient_norm w",
    }  # fmt: skip
    assert model.w.grad is None


def test_fit_stops_early_and_keeps_the_best_parameters():
    model = Slope()
    losses = iter([3.0, 1.0, 2.0, 2.0, 2.0, 0.0])
    seen = []
    history = fit(
        Training(model, _ones(), SGD(0.01)), steps=100, every=10, patience=3,
        validate=lambda: seen.append(model.w.data.copy()) or next(losses),
    )  # fmt: skip
    assert history.stopped == "early"
    assert [row["step"] for row in history.rows] == [10, 20, 30, 40, 50]
    assert history.best_step == 20
    np.testing.assert_array_equal(model.w.data, seen[1])
    assert seen[1] != seen[-1]


def test_ctrl_c_ends_after_the_step_and_keeps_what_was_learned():
    model, done = Slope(), []

    def on_step(step, loss):
        done.append(step)
        if step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    history = fit(Training(model, _ones(), SGD(0.1)), steps=1000, validate=lambda: 1.0, watcher=Watcher(on_step))
    assert history.stopped == "interrupted"
    assert done == list(range(1, 8))
    assert history.rows[-1]["step"] == 7
    assert model.w.data > 0
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_works_outside_the_main_thread():
    histories = []
    thread = threading.Thread(
        target=lambda: histories.append(fit(Training(Slope(), _ones(), SGD(0.1)), steps=3, validate=lambda: 1.0))
    )
    thread.start()
    thread.join()
    assert histories[0].stopped == "finished"


def test_a_loss_that_is_not_finite_is_an_error_with_advice():
    with pytest.raises(UserError, match=r"the loss became (inf|nan) at step \d+.*smaller learning rate"), np.errstate(
        over="ignore", invalid="ignore"
    ):
        fit(Training(Slope(), _ones(), SGD(1e200)), steps=50, validate=lambda: 1.0)


class Flawed(Slope):
    def __init__(self, loss):
        super().__init__()
        self.loss = loss


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Training(Flawed(lambda batch, rng: 0.5), _ones(), SGD()).one_step(),
         "Flawed.loss returned 0.5, expected two things: return loss, backward"),
        (lambda: Training(Flawed(lambda batch, rng: (0.5, None)), _ones(), SGD()).one_step(),
         r"Flawed.loss returned \(0.5, None\), expected two things: return loss, backward"),
        (lambda: Training(Flawed(lambda batch: None), _ones(), SGD()),
         r"Flawed.loss does not take \(batch, rng\), expected loss\(self, batch, rng=None\): rng is for dropout"),
        (lambda: Training(Layer(), _ones(), SGD()), r"Layer has no loss, expected a loss\(self, batch, rng=None\)"),
        (lambda: Training(Slope(), [np.ones(4)], SGD()), "the batches are a list, expected an endless iterator"),
        (lambda: Adam(lr=1e-3), "Adam takes learning_rate=…, betas=…, eps=…, got lr"),
    ],
)  # fmt: skip
def test_what_a_training_cannot_use_is_said_in_a_sentence(build, message):
    with pytest.raises(UserError, match=message):
        build()


def test_fit_without_a_watcher_shows_a_progress_bar(monkeypatch):
    notes = []

    @contextmanager
    def bar(what, total):
        yield lambda done, note="": notes.append((what, done, total, note))

    monkeypatch.setattr(progress, "progress_bar", bar)
    fit(Training(Slope(), _ones(), SGD(0.1)), steps=2, validate=lambda: 1.0)
    assert [note[:3] for note in notes] == [("training", 1, 2), ("training", 2, 2)]
    assert notes[0][3].startswith("loss ")
    assert "tokens/s" not in notes[0][3]                  # nobody knows how many words a batch of numbers has
    model = _tiny()
    fit(Training(model, RandomWindows(np.arange(40) % 6, model.T, 4), SGD(0.1)), steps=1, validate=lambda: 1.0)
    assert notes[-1][3].endswith(" tokens/s")


def test_warm_up_and_decay_shape_the_learning_rate():
    rates = []
    optimizer = SGD(1.0)
    fit(
        Training(Slope(), _ones(), optimizer, Schedule(warm_up=4, steps=10)), steps=10, every=1, validate=lambda: 1.0,
        watcher=Watcher(on_row=lambda row, best: rates.append(row["learning_rate"])),
    )  # fmt: skip
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert all(a > b for a, b in zip(rates[3:], rates[4:]))
    assert rates[-1] == pytest.approx(0.05)


def _tiny(seed=0, **options):
    table = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
    settings = {"T": 3, "L": 1, "H": 2, "m": 2, "readout": "vec"} | options
    return LanguageTransformer(table, seed=seed, **settings)


def test_windows_end_where_enough_words_stand_before():
    ids = np.arange(10)
    assert windows_ending_at(ids, [4, 9], 4).tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert windows_ending_at(ids, np.arange(0), 4).shape == (0, 5)
    for ends in ([3], [4, 10], [-1]):                    # numpy would read negative indices from the end of the text
        with pytest.raises(UserError, match="expected 4 to 9: each needs T = 4 words before it"):
            windows_ending_at(ids, ends, 4)


def test_mean_loss_predicts_each_word_once():
    model = _tiny()
    model.A.W.data = np.random.default_rng(0).standard_normal(model.A.W.data.shape).astype(np.float32)
    ids = np.random.default_rng(2).integers(0, 6, 20)
    each = [float(model.next_word_loss(windows_ending_at(ids, [end], 3))) for end in range(3, 20)]
    assert mean_loss(model, ids) == pytest.approx(np.mean(each), rel=1e-5)
    assert mean_loss(model, ids, most=1) == pytest.approx(each[0], rel=1e-5)
    assert mean_loss(model, ids, most=2) == pytest.approx((each[0] + each[-1]) / 2, rel=1e-5)


def test_windows_apart_predict_each_word_once_in_a_round():
    ids, T = np.arange(60), 5
    batches = RandomWindows(ids, T, 4, apart=T)
    cuts = set()
    for _ in range(9):
        windows = np.concatenate([next(batches), next(batches)])             # a round: 8 of its 11 windows
        assert (np.diff(windows) == 1).all()
        assert len(np.unique(windows[:, 1:])) == windows[:, 1:].size
        cuts.add(int(windows[0, 0]) % T)
    assert len(cuts) > 1                                 # and the next round is cut elsewhere


def test_training_with_clipped_gradients_takes_small_steps():
    start = _tiny().parameters()["A.W"].data.copy()
    moved = {}
    for clip in (None, 1e-3):
        model = _tiny()
        batches = RandomWindows(np.arange(40) % 6, model.T, 4)
        fit(Training(model, batches, SGD(1.0), clip=clip), steps=1, validate=lambda: 0)
        moved[clip] = np.abs(model.parameters()["A.W"].data - start).max()
    assert moved[None] > 10 * moved[1e-3] > 0


# --- checkpoints


@pytest.mark.parametrize(
    "options",
    [{}, {"positions": [0.5, 1.0]}, {"readout": "shared", "causal": True, "tied": True, "layer_norm": True}, {"readout": "average"}],
)
def test_a_checkpoint_brings_back_the_same_model(tmp_path, options):
    model = _tiny(**options)
    for p in model.parameters().values():
        p.data = np.asfortranarray(np.random.default_rng(3).standard_normal(p.data.shape).astype(np.float32))
    save_checkpoint(tmp_path / "m.safetensors", model)
    again = load_checkpoint(tmp_path / "m.safetensors")
    ids = np.array([[1, 2, 3]])
    np.testing.assert_allclose(again.logits(ids), model.logits(ids), rtol=1e-4)
    for name, p in model.parameters().items():
        np.testing.assert_array_equal(again.parameters()[name].data, p.data)
    assert again.config == model.config
    trainable = {name: p.trainable for name, p in model.parameters().items()}
    assert {name: p.trainable for name, p in again.parameters().items()} == trainable


@pytest.mark.parametrize(
    "build",
    [
        partial(FixedWindowModel, T=3, k=5, composition="mean", activation="relu", dropout=0.1),
        partial(RecurrentModel, k=5, T=3, activation="relu"),
        partial(PointerTransformer, T=3, L=1, H=2, m=2, f=5),
    ],
)
def test_every_model_has_checkpoints(tmp_path, build):
    rng = np.random.default_rng(3)
    model = build(rng.standard_normal((6, 4)).astype(np.float32))
    for p in model.parameters().values():
        p.data = rng.standard_normal(p.data.shape).astype(np.float32)
    save_checkpoint(tmp_path / "m.safetensors", model)
    again = load_checkpoint(tmp_path / "m.safetensors")
    ids = rng.integers(0, 6, 20)
    np.testing.assert_allclose(again.log_probabilities(ids), model.log_probabilities(ids), rtol=1e-5)
    assert again.config == model.config
    assert type(again) is type(model)


def test_a_checkpoint_of_a_device_model_holds_host_arrays(tmp_path):
    from tests.strict import strict

    model = _tiny()
    expected = model.logits(np.array([[1, 2, 3]]))
    for p in model.parameters().values():
        p.data = strict(p.data)
    save_checkpoint(tmp_path / "m.safetensors", model)
    np.testing.assert_array_equal(load_checkpoint(tmp_path / "m.safetensors").logits(np.array([[1, 2, 3]])), expected)


def test_a_checkpoint_of_another_configuration_is_refused(tmp_path):
    save_checkpoint(tmp_path / "m.safetensors", _tiny())
    with pytest.raises(UserError, match="another configuration: H = 2 there, 1 here"):
        load_checkpoint(tmp_path / "m.safetensors", _tiny(H=1))
    other = _tiny(seed=5)
    assert load_checkpoint(tmp_path / "m.safetensors", other) is other
    np.testing.assert_array_equal(other.parameters()["A.W"].data, _tiny().parameters()["A.W"].data)


def test_another_vocabulary_is_refused(tmp_path):
    save_checkpoint(tmp_path / "m.safetensors", _tiny())
    larger = LanguageTransformer(np.zeros((7, 4), np.float32), T=3, L=1, H=2, m=2, readout="vec")
    with pytest.raises(UserError, match=r"embedding.table is \(6, 4\), expected \(7, 4\)"):
        load_checkpoint(tmp_path / "m.safetensors", larger)


def test_files_that_are_not_checkpoints_are_refused(tmp_path):
    from safetensors.numpy import save_file

    with pytest.raises(UserError, match="there is no file .* expected a model"):
        load_checkpoint(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("not a model")
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        load_checkpoint(tmp_path / "text.safetensors")
    with pytest.raises(UserError, match="is a folder, expected a model"):
        load_checkpoint(tmp_path)
    save_file({"a": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="is damaged, or not a file of mini_tf: it has no checksum"):
        load_checkpoint(tmp_path / "other.safetensors")
    save_checkpoint(tmp_path / "m.safetensors", _tiny())
    whole = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="is damaged: its content does not match its checksum"):
        load_checkpoint(tmp_path / "m.safetensors")


@pytest.mark.gpu
def test_a_gpu_models_checkpoint_opens_on_the_cpu(tmp_path):
    model = _tiny()
    expected = model.logits(np.array([[1, 2, 3]]))
    save_checkpoint(tmp_path / "m.safetensors", model.to("gpu"))
    np.testing.assert_allclose(load_checkpoint(tmp_path / "m.safetensors").logits(np.array([[1, 2, 3]])), expected)


# --- run folders


def test_new_runs_take_the_next_free_name_and_never_overwrite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = Run.new(name="quick")
    assert str(first.folder) == os.path.join("runs", "quick")
    first.write_json("config.json", {})
    assert Run.new(name="quick").folder.name == "quick-2"
    first.close()
    with pytest.raises(UserError, match="is not empty; a run never overwrites one"):
        Run.new("runs/quick")
    with pytest.raises(UserError, match="cannot be made: File exists"):
        Run.new("runs/quick/config.json")


def test_folders_that_are_no_runs_are_refused(tmp_path):
    with pytest.raises(UserError, match="there is no folder"):
        Run.open(tmp_path / "none")
    with pytest.raises(UserError, match="is not a run folder: it has no config.json"):
        Run.open(tmp_path)


def test_damaged_runs_are_refused(tmp_path):
    from mini_tf.text import Vocabulary

    run = Run(tmp_path)
    run.save_config({}, Vocabulary("abcdef"))
    run.save_model(_tiny())
    model, vocabulary = Run.open(tmp_path).load()
    assert vocabulary.words == list("abcdef")
    run.write_json("vocabulary.json", list("abc"))
    with pytest.raises(UserError, match="belongs to another vocabulary"):
        Run.open(tmp_path).load()
    (tmp_path / "vocabulary.json").write_text("[")
    with pytest.raises(UserError, match="cannot be read"):
        Run.open(tmp_path).load()


def test_metrics_and_curves_are_written(tmp_path):
    run = Run(tmp_path)
    rows = [{"step": s, "train_loss": 9.0 / s, "validation_loss": 9.5 / s} for s in (1, 2, 3)]
    run.save_metrics(rows)
    assert (tmp_path / "metrics.csv").read_text().splitlines()[:2] == ["step,train_loss,validation_loss", "1,9.0,9.5"]
    run.save_figure("curves.png", "curves", rows, {"uniform": 9.568, "unigram": 6.06, "test": 5.4})
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(os.listdir(tmp_path)) == ["curves.png", "metrics.csv"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SGD(-1), "the learning rate is -1, expected"),
        (lambda: Adam(float("nan")), "the learning rate is nan"),
        (lambda: SGD(0.1, momentum=1), "momentum is 1, expected at least 0 and less than 1"),
        (lambda: Adam(1e-3, (0.9, 1)), r"betas are \(0.9, 1\), expected two numbers"),
        (lambda: Adam(1e-3, (1.0, 0.9)), "betas are"),
        (lambda: Adam(eps=0.0), "eps is 0.0, expected"),
        (lambda: AdamW(weight_decay=-0.1), "weight_decay is -0.1, expected"),
        (lambda: Training(Slope(), _ones(), SGD(0.1), clip=-1), "clip is -1, expected"),
        (lambda: Training(Slope(), _ones(), SGD(0.1), clip=float("nan")), "clip is nan, expected"),
        (lambda: clip_gradients({}, 0), "most is 0, expected"),
        (lambda: fit(Training(Slope(), _ones(), SGD(0.1)), 3, lambda: 1.0, every=0), "every is 0, expected"),
        (lambda: fit(Training(Slope(), _ones(), SGD(0.1)), 3, lambda: 1.0, patience=0), "patience is 0, expected"),
        (lambda: split_words(np.arange(99), 3, test=0.0), "test is 0.0, expected a share"),
        (lambda: split_words(np.arange(99), 3, validation=1), "validation is 1, expected a share"),
        (lambda: RandomWindows(np.arange(99), 0, 2), "T is 0, expected"),
        (lambda: RandomWindows(np.arange(99), 3, 2, apart=0), "apart is 0, expected"),
        (lambda: ConsecutiveWindows(np.arange(99), 0, 2), "T is 0, expected"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(build, message):
    with pytest.raises(UserError, match=message):
        build()


@pytest.mark.skipif(os.name == "nt", reason="has no pipes among its files")
def test_places_where_no_run_can_be_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    os.mkfifo("pipe")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    for name, message in {
        "file": "file cannot be made: File exists", "file/x": "cannot be made: Not a directory",
        "pipe": "pipe cannot be made: File exists", "dangling": "dangling cannot be made: File exists",
        "loop": "loop cannot be made", "x" * 256: "cannot be made: File name too long", "a\0b": "cannot be made",
    }.items():  # fmt: skip
        with pytest.raises(UserError, match=message):
            Run.new(name)
        with pytest.raises(UserError, match="^there is no folder|is not a run folder"):
            Run.resume(name)
    with Run.new("x" * 255) as run:                      # the longest name that there is
        run.write_json("config.json", {})
    (tmp_path / "runs").write_text("a file where the folder for runs should be")
    with pytest.raises(UserError, match="runs.quick cannot be made: Not a directory"):
        Run.new(name="quick")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file", "loop", "pipe", "runs", "x" * 255]


def test_a_run_to_which_nothing_was_written_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Run.new(name="quick"):
        assert os.listdir("runs") == ["quick"]
    with Run.new("a/b/c"):
        pass
    os.mkdir("mine")
    with Run.new("mine"):
        pass
    assert os.listdir(tmp_path) == ["mine"]              # what was there before stays

"""The recurrent model: gradients through time, the carried state, reading, training, bad input."""

import math

from mini_tf.decoding import continuations, generate, greedy
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.examples import generic
from mini_tf.models import CarriedState, RecurrentModel
from mini_tf.training import Adam, ConsecutiveWindows, Training, clip_gradients, fit

import numpy as np
import pytest

c, n, k, T = 6, 3, 4, 5
ARRAYS = {"tanh": 1, "relu": 1, "lstm": 2, "gru": 1}                     # of k entries, that make a layer's state
DEPTHS = [(cell, L) for cell in ARRAYS for L in (1, 2)]


def make(rng, **options):
    model = RecurrentModel(rng.standard_normal((c, n)), k=k, T=T, **options)
    generic(model, rng)
    return model


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("train_embeddings", [True, False])
def test_gradients_through_time(activation, train_embeddings, rng):
    model = make(rng, activation=activation, train_embeddings=train_embeddings)
    batch = rng.integers(0, c, (2, T + 1))
    assert gradcheck(lambda: model.loss(batch), params=model.parameters())


def test_gradients_from_a_state_that_is_given(rng):
    """The state is a constant, and h_0 is not used."""
    model, state = make(rng), rng.standard_normal((2, k))
    batch = rng.integers(0, c, (2, T + 1))
    parameters = model.parameters()
    del parameters["recurrent.h0"]
    assert gradcheck(lambda: model.loss(batch, state=state), params=parameters)
    _, backward = model.loss(batch, state=state)
    backward()
    assert model.recurrent.h0.grad is None


@pytest.mark.parametrize(("activation", "f"), [("tanh", np.tanh), ("relu", lambda a: np.maximum(a, 0))])
def test_the_formula(activation, f, rng):
    model = make(rng, activation=activation)
    p = {name: parameter.data for name, parameter in model.parameters().items()}
    ids, h = rng.integers(0, c, (1, 3)), p["recurrent.h0"]
    for t in range(3):
        h = f(p["embedding.table"][ids[0, t]] @ p["recurrent.Wx"] + h @ p["recurrent.Wh"] + p["recurrent.b"])
        np.testing.assert_allclose(model.logits_after_each(ids)[0, t], h @ p["readout.W"] + p["readout.b"])


@pytest.mark.parametrize(("cell", "L"), DEPTHS)
def test_the_state_is_a_row_of_all_arrays(cell, L, rng):
    """From the learned start, given as a state, the model computes the same; only the learned one gets a gradient."""
    model = make(rng, cell=cell, L=L)
    batch = rng.integers(0, c, (2, T + 1))
    loss, _, last = model.loss_and_state(batch)
    again, backward, last_again = model.loss_and_state(batch, state=model.start(2))
    assert float(again) == float(loss)
    assert last.shape == (2, ARRAYS[cell] * L * k)
    np.testing.assert_array_equal(last, last_again)
    backward()
    assert [name for name, p in model.parameters().items() if p.grad is None] == [
        name for name in model.parameters() if name.endswith(("h0", "start"))
    ]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_two_layers_are_pytorchs(cell, rng):
    torch = pytest.importorskip("torch")
    model = make(rng, cell=cell, L=2)
    layers = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](n, k, 2, batch_first=True, dtype=torch.float64)
    for number, layer in enumerate([model.recurrent, *model.above]):
        b, b_g = layer.b.data, np.zeros(layer.b.data.size)
        b_g[-k:] = layer.b_g.data if cell == "gru" else 0
        for name, weights in (("weight_ih", layer.Wx.data.T), ("weight_hh", layer.Wh.data.T), ("bias_ih", b), ("bias_hh", b_g)):
            getattr(layers, f"{name}_l{number}").data = torch.tensor(weights.copy())
    ids, start = rng.integers(0, c, (2, T)), rng.standard_normal((2, model.start(1).size))
    h, last, _ = model.read_on(ids, start)
    arrays = torch.tensor(start.reshape(2, 2, -1, k))                    # text, layer, array
    given = [arrays[:, :, part].swapaxes(0, 1).contiguous() for part in range(arrays.shape[2])]
    theirs, their_last = layers(torch.tensor(model.embedding.table.data[ids]), tuple(given) if cell == "lstm" else given[0])
    np.testing.assert_allclose(h, theirs.detach().numpy(), atol=1e-12)
    their_last = torch.stack([*their_last] if cell == "lstm" else [their_last]).detach().numpy()
    np.testing.assert_allclose(last, their_last.transpose(2, 1, 0, 3).reshape(2, -1), atol=1e-12)


def test_the_earlier_name_of_cell(rng):
    """A model saved before there was `cell` has its activation, and the same parameters."""
    E = rng.standard_normal((c, n))
    before, now = RecurrentModel(E, k=k, activation="relu"), RecurrentModel(E, k=k, cell="relu")
    batch = rng.integers(0, c, (2, T + 1))
    assert before.parameters().keys() == now.parameters().keys() == {
        "embedding.table", "recurrent.h0", "recurrent.Wx", "recurrent.Wh", "recurrent.b", "readout.W", "readout.b",
    }
    before.readout.W.data = now.readout.W.data = rng.standard_normal((k, c))
    assert float(before.loss(batch)[0]) == float(now.loss(batch)[0])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_what_is_carried_is_saved_and_restored(cell, rng):
    model = make(rng, cell=cell, L=2)
    ids = rng.integers(0, c, (2, 2 * T + 1))
    carried, restored = CarriedState(model), CarriedState(model)
    carried.loss(ids[:, : T + 1])
    restored.restore(carried.state())
    assert float(restored.loss(ids[:, T:])[0]) == float(carried.loss(ids[:, T:])[0])


def test_the_loss_of_an_untrained_model_is_ln_c(rng):
    model = RecurrentModel(rng.standard_normal((c, n)), k=k, T=T)
    assert float(model.loss(rng.integers(0, c, (2, T + 1)))[0]) == pytest.approx(math.log(c))


@pytest.mark.parametrize(("cell", "L"), DEPTHS)
def test_pieces_with_a_carried_state_have_the_loss_of_the_whole_text(cell, L, rng):
    model = make(rng, cell=cell, L=L)
    ids = rng.integers(0, c, (2, 3 * T + 1))
    whole, _ = model.loss(ids)
    carried = CarriedState(model)
    pieces = [carried.loss(ids[:, first : first + T + 1])[0] for first in range(0, 3 * T, T)]
    assert np.mean(pieces) == pytest.approx(float(whole))
    assert pieces[1] != pytest.approx(float(model.loss(ids[:, T : 2 * T + 1])[0]))       # from h_0 it differs


@pytest.mark.parametrize(("cell", "L"), DEPTHS)
def test_gradients_of_a_piece_stop_where_it_begins(cell, L, rng):
    """The second piece's gradients are those of a piece that starts from a constant."""
    model = make(rng, cell=cell, L=L)
    ids = rng.integers(0, c, (2, 2 * T + 1))
    carried = CarriedState(model)
    carried.loss(ids[:, : T + 1])
    state = carried.carried.copy()
    carried.loss(ids[:, T:])[1]()
    ours = {name: p.grad for name, p in model.parameters().items()}
    model.clear_gradients()
    model.loss(ids[:, T:], state=state)[1]()
    for name, parameter in model.parameters().items():
        np.testing.assert_array_equal(ours[name], parameter.grad)


def test_a_batch_that_does_not_go_on_starts_from_h0(rng):
    model = make(rng)
    carried = CarriedState(model)
    ids = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    carried.loss(ids)
    elsewhere = np.array([[3, 1, 2, 3], [1, 2, 1, 0]])           # the first row goes on, the second does not
    assert float(carried.loss(elsewhere)[0]) == float(model.loss(elsewhere)[0])
    other_size = elsewhere[:1]
    assert float(carried.loss(other_size)[0]) == float(model.loss(other_size)[0])


def test_every_anew_th_batch_starts_from_h0(rng):
    model = make(rng)
    ids = rng.integers(0, c, (2, 4 * T + 1))
    pieces = [ids[:, first : first + T + 1] for first in range(0, 4 * T, T)]
    carried, twice = CarriedState(model), CarriedState(model, anew=2)
    on, anew = ([float(some.loss(piece)[0]) for piece in pieces] for some in (carried, twice))
    assert anew[:2] == on[:2]
    assert anew[2] == float(model.loss(pieces[2])[0])
    assert anew[2] != on[2]


@pytest.mark.parametrize(("cell", "L"), DEPTHS)
def test_a_reader_keeps_the_state(cell, L, rng):
    model = make(rng, cell=cell, L=L)
    ids = rng.integers(0, c, 9)
    read = model.reader().read
    np.testing.assert_allclose(read(ids[:0]), model.logits(ids[None, :0]))
    np.testing.assert_allclose(read(ids[:4]), model.logits(ids[None, :4]))
    np.testing.assert_allclose(read(ids[4:5]), model.logits(ids[None, :5]))
    np.testing.assert_allclose(read(ids[5:]), model.logits(ids[None]))
    words, p = continuations(model, ids, c)
    assert sorted(words.tolist()) == list(range(c))
    assert p.sum() == pytest.approx(1)
    assert list(p) == sorted(p, reverse=True)


@pytest.mark.parametrize(("cell", "L"), DEPTHS[:2] + DEPTHS[4:])      # relu's states overflow
def test_log_probabilities_read_the_text_once(cell, L, rng):
    model = make(rng, cell=cell, L=L)
    ids = rng.integers(0, c, 600)                        # longer than one piece
    log_p = model.log_probabilities(ids)
    assert log_p.shape == (600,)
    for t in (0, 1, 2, 255, 256, 257, 599):
        z = model.logits(ids[None, :t])[0]
        assert log_p[t] == pytest.approx(z[ids[t]] - np.log(np.exp(z).sum()))
    for start in (0, 1, 256, 257, 400, 599, 600):
        np.testing.assert_allclose(model.log_probabilities(ids, start), log_p[start:])
    assert model.log_probabilities(ids[:0]).shape == (0,)
    assert model.mean_loss(ids) == pytest.approx(-log_p[T:].mean())
    assert model.mean_loss(ids, most=7) == pytest.approx(-log_p[T : T + 7].mean())


def test_it_learns_what_no_short_window_could(rng):
    """A word at the start of each line decides its end, six words later."""
    lines = [[w, 2, 2, 2, 2, 2, w + 3] for w in rng.integers(0, 2, 400)]
    ids = np.concatenate(lines)
    model = RecurrentModel(rng.standard_normal((c, n)), k=24, T=14)
    batches = ConsecutiveWindows(ids, 14, 16)
    fit(Training(CarriedState(model), batches, Adam(0.02), clip=1.0), steps=400, validate=lambda: 0, every=400)
    p = np.exp(model.log_probabilities(ids))
    assert np.median(p[6::7]) > 0.95
    assert list(generate(model, ids[: 7 * 3 + 1], 6, greedy)) == [2, 2, 2, 2, 2, ids[21] + 3]


def test_clipping_keeps_the_direction(rng):
    model = make(rng)
    batch = rng.integers(0, c, (2, T + 1))
    model.loss(batch)[1]()
    parameters = model.parameters()
    before = np.concatenate([p.grad.ravel() for p in parameters.values()])
    held = parameters["recurrent.Wh"].grad
    kept = held.copy()
    norm = clip_gradients(parameters, 0.1)
    after = np.concatenate([p.grad.ravel() for p in parameters.values()])
    assert norm == pytest.approx(np.linalg.norm(before))
    np.testing.assert_allclose(after, before * (0.1 / norm))
    np.testing.assert_array_equal(held, kept)            # not changed: someone else may hold it
    assert clip_gradients(parameters, 10.0) == pytest.approx(0.1)
    np.testing.assert_array_equal(np.concatenate([p.grad.ravel() for p in parameters.values()]), after)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "sigmoid"}, "activation 'sigmoid' is unknown, expected one of tanh, relu"),
        ({"cell": "rnn"}, "cell 'rnn' is unknown, expected one of tanh, relu, lstm, gru"),
        ({"L": 0}, "L is 0, expected a whole number"),
    ],
)
def test_bad_options(options, message, rng):
    with pytest.raises(UserError, match=message):
        make(rng, **options)
    with pytest.raises(UserError, match="k is 0, expected a whole number"):
        RecurrentModel(rng.standard_normal((c, n)), k=0)


def test_bad_input(rng):
    model = make(rng)
    with pytest.raises(ValueError, match=r"windows have shape \(2, 1\), expected \(B, T \+ 1\)"):
        model.loss(np.zeros((2, 1), dtype=int))
    with pytest.raises(UserError, match=r"id 6, expected ids from 0 to 5"):
        model.log_probabilities(np.array([6]))
    with pytest.raises(UserError, match=r"start is 3, expected 0 to 2"):
        model.log_probabilities(np.array([1, 2]), 3)
    model.recurrent.Wh.data[0, 0] = np.nan
    with pytest.raises(UserError, match=r"not numbers \(NaN\)"):
        model.log_probabilities(np.arange(3))


def test_consecutive_windows(rng):
    ids = np.arange(23)
    batches = ConsecutiveWindows(ids, 3, 2)
    first, second, third, fourth = (next(batches) for _ in range(4))
    assert first.tolist() == [[0, 1, 2, 3], [11, 12, 13, 14]]
    assert second.tolist() == [[3, 4, 5, 6], [14, 15, 16, 17]]
    assert third.tolist() == [[6, 7, 8, 9], [17, 18, 19, 20]]
    assert fourth.tolist() == [[1, 2, 3, 4], [12, 13, 14, 15]]           # after the pieces' end: from the start, one word on
    with pytest.raises(UserError, match=r"has 7 tokens, expected at least 8: a window of T \+ 1 = 4 tokens in each of 2"):
        ConsecutiveWindows(ids[:7], 3, 2)

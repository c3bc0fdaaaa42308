"""The language transformer: its options, its readouts, masking, training, bad input."""

import itertools
import math

from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.examples import generic
from mini_tf.layers.embedding import ABSENT
from mini_tf.models import LanguageTransformer
from mini_tf.training.optimizers import Adam
from tests.cases import cases
from tests.strict import StrictArray, strict

import numpy as np
import pytest

c, n, T = 9, 4, 3


def make(rng, **options):
    settings = {"T": T, "L": 2, "H": 2, "m": 3} | options
    return LanguageTransformer(rng.standard_normal((c, n)), **settings)


def windows(rng, B=2):
    return rng.integers(0, c, (B, T + 1))


SWITCHES = ("causal", "layer_norm", "positions", "scaled_attention", "train_embeddings")


def _all_options():
    for readout in ("average", "vec", "shared"):
        for on in itertools.product([False, True], repeat=5):
            options = dict(zip(SWITCHES, on)) | {"readout": readout}
            options["positions"] = "geometric" if options["positions"] else None
            if readout == "shared" and not options["causal"] or readout == "average" and options["train_embeddings"]:
                continue
            yield options
            if readout == "shared":
                yield options | {"tied": True}


ALL = list(_all_options())
FEW = [options for options in ALL if sum(bool(options[name]) for name in SWITCHES) == 4]


@pytest.mark.parametrize("options", cases(FEW, [options for options in ALL if options not in FEW]), ids=lambda o: "-".join(str(v) for v in o.values()))
def test_every_combination_of_options_has_right_gradients(options, rng):
    model = LanguageTransformer(rng.standard_normal((5, 4)), T=3, L=1, H=2, m=2, **options)
    parameters = generic(model, rng)
    batch = np.array([[0, 3, 3, 2], [4, 1, 0, 1]])
    report = gradcheck(lambda: model.loss(batch), params=parameters)
    assert report
    trainable = {name for name, p in parameters.items() if p.trainable}
    assert {t.name for t in report.tensors} == trainable
    assert ("trunk.embedding.table" in trainable) == options["train_embeddings"]


def test_the_loss_of_an_untrained_model_is_ln_c(rng):
    for readout in ("vec", "shared"):
        loss, _ = make(rng, readout=readout, causal=True).loss(windows(rng))
        assert float(loss) == pytest.approx(math.log(c), rel=1e-6)


def test_shapes_of_logits(rng):
    ids = rng.integers(0, c, (2, T))
    assert make(rng, readout="vec").logits(ids).shape == (2, c)
    assert make(rng, readout="average").logits(ids).shape == (2, c)
    assert make(rng, readout="shared", causal=True).logits(ids).shape == (2, c)
    assert make(rng, readout="shared", causal=True).logits_after_each(ids).shape == (2, T, c)


def test_parameter_counts_are_the_labs(rng):
    model = make(rng, readout="vec", H=2, m=3, L=2)
    sizes = {name: p.data.size for name, p in model.parameters().items()}
    assert sizes.pop("trunk.embedding.table") == c * n
    assert sizes.pop("A.W") == T * n * c
    assert sum(sizes.values()) == 2 * 4 * n * 2 * 3      # L layers of Q, K, V, W for H heads, and nothing else


def test_the_loss_of_vec_is_its_cross_entropy_on_the_word_after_the_history(rng):
    model = make(rng, readout="vec")
    generic(model, rng)
    batch = windows(rng)
    logits = model.logits(batch[:, :-1])
    expected = np.mean([np.log(np.exp(z).sum()) - z[w] for z, w in zip(logits, batch[:, -1])])
    assert float(model.loss(batch)[0]) == pytest.approx(expected)
    assert float(model.next_word_loss(batch)) == pytest.approx(expected)


def test_the_loss_of_average_is_the_error_of_the_mean_output(rng):
    model = make(rng, readout="average")
    batch = windows(rng)
    Phi, _ = model.trunk(batch[:, :-1])
    expected = ((Phi.mean(1) - model.trunk.embedding.table.data[batch[:, -1]]) ** 2).mean()
    assert float(model.loss(batch)[0]) == pytest.approx(expected)


def test_the_logits_of_average_rank_words_by_distance(rng):
    model = make(rng, readout="average")
    ids = rng.integers(0, c, (2, T))
    prediction = model.trunk(ids)[0].mean(1)
    distance = ((prediction[:, None] - model.trunk.embedding.table.data) ** 2).sum(-1)
    np.testing.assert_allclose(model.logits(ids), -distance, rtol=1e-9, atol=1e-9)


def test_the_loss_of_shared_counts_every_position(rng):
    model = make(rng, readout="shared", causal=True)
    generic(model, rng)
    batch = windows(rng)
    z = model.logits_after_each(batch[:, :-1]).reshape(-1, c)
    each = np.log(np.exp(z).sum(-1)) - z[np.arange(len(z)), batch[:, 1:].reshape(-1)]
    assert float(model.loss(batch)[0]) == pytest.approx(each.mean())
    assert float(model.next_word_loss(batch)) == pytest.approx(each.reshape(2, T)[:, -1].mean())


def test_without_positions_the_transformer_does_not_know_the_order(rng):
    ids, order = rng.integers(0, c, (1, T)), [2, 0, 1]
    model = make(rng)
    Phi, moved = model.trunk(ids)[0], model.trunk(ids[:, order])[0]
    np.testing.assert_allclose(moved, Phi[:, order], rtol=1e-10)
    with_positions = make(rng, positions="geometric")
    assert not np.allclose(with_positions.trunk(ids[:, order])[0], with_positions.trunk(ids)[0][:, order])


def test_a_causal_model_does_not_see_the_future(rng):
    model = make(rng, causal=True, positions="geometric", layer_norm=True)
    ids = rng.integers(0, c, (1, T))
    changed = ids.copy()
    changed[0, -1] = (ids[0, -1] + 1) % c
    before, after = model.trunk(ids)[0], model.trunk(changed)[0]
    np.testing.assert_array_equal(after[:, :-1], before[:, :-1])
    assert not np.allclose(after[:, -1], before[:, -1])


def test_short_prompts_of_a_shared_model_are_its_first_positions(rng):
    model = make(rng, readout="shared", causal=True, positions="geometric")
    generic(model, rng)
    ids = rng.integers(0, c, (2, T))
    for length in (1, 2, 3):
        np.testing.assert_allclose(
            model.logits(ids[:, :length]), model.logits_after_each(ids)[:, length - 1], rtol=1e-9
        )


def test_absent_words_are_masked_in_a_causal_model(rng):
    """Absent words are put before a short prompt; in a causal model without positions they change nothing."""
    model = make(rng, readout="vec", causal=True)
    padded, _ = model.trunk(np.array([[ABSENT, 4, 7]]))
    alone, _ = model.trunk(np.array([[4, 7]]))
    np.testing.assert_allclose(padded[:, 1:], alone, rtol=1e-10)
    assert not padded[:, 0].any()


@pytest.mark.parametrize("readout", ["average", "vec", "shared"])
def test_prompts_of_every_length_give_finite_scores(readout, rng):
    model = make(rng, readout=readout, causal=True, layer_norm=True, positions="fourier")
    generic(model, rng)
    for length in range(T + 1):
        scores = model.logits(rng.integers(0, c, (2, length)))
        assert scores.shape == (2, c)
        assert np.isfinite(scores).all()
    with pytest.raises(ValueError, match="histories of 4 words, expected at most T = 3"):
        model.logits(rng.integers(0, c, (2, T + 1)))


def test_the_same_seed_gives_the_same_model(rng):
    table = rng.standard_normal((c, n))
    a, b, other = (LanguageTransformer(table, T=T, L=1, H=1, m=2, seed=seed) for seed in (1, 1, 2))
    name = "trunk.layers.0.attention.query.W"
    np.testing.assert_array_equal(a.parameters()[name].data, b.parameters()[name].data)
    assert not np.array_equal(a.parameters()[name].data, other.parameters()[name].data)


def test_a_model_memorizes_a_text(rng):
    model = LanguageTransformer(
        rng.standard_normal((c, 8)).astype(np.float32), T=4, L=2, H=2, m=4, readout="shared", causal=True,
        layer_norm=True, positions="geometric", train_embeddings=True,
    )  # fmt: skip
    text = np.array([0, 1, 2, 3, 1, 4, 5, 6, 7, 8])      # after 1 comes 2 or 4: the word before decides
    batch = text[np.arange(6)[:, None] + np.arange(5)]
    optimizer = Adam(0.02)
    for _ in range(150):
        model.clear_gradients()
        loss, backward = model.loss(batch)
        backward()
        optimizer.step(model.parameters())
    assert float(model.next_word_loss(batch)) < 0.05
    assert all(p.data.dtype == np.float32 for p in model.parameters().values())


@pytest.mark.parametrize("readout", ["average", "vec", "shared"])
def test_a_model_trains_on_a_library_that_is_not_numpy(readout, rng):
    """Steps on strict arrays equal steps on NumPy's: arrays are never mixed, and nothing is computed on the host."""
    options = {
        "readout": readout, "causal": True, "layer_norm": True, "positions": "geometric", "dropout": 0.3,
        "train_embeddings": readout != "average", "tied": readout == "shared",
    }  # fmt: skip
    table = rng.standard_normal((c, n))
    batch = windows(rng)
    batch[0, 0] = ABSENT
    results = []
    for place in (np.array, strict):
        model = LanguageTransformer(table, T=T, L=2, H=2, m=3, **options)
        for parameter in model.parameters().values():
            parameter.data = place(parameter.data)
        optimizer = Adam(0.01)
        for _ in range(2):
            model.clear_gradients()
            loss, backward = model.loss(place(batch), np.random.default_rng(0))      # ids may be on either side
            backward()
            optimizer.step(model.parameters())
        results.append((float(loss), model))
    (loss, host), (strict_loss, device) = results
    assert strict_loss == pytest.approx(loss, rel=1e-9)
    for name, parameter in device.parameters().items():
        assert isinstance(parameter.data, StrictArray), name
        np.testing.assert_allclose(parameter.data.get(), host.parameters()[name].data, rtol=1e-6, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("readout", ["average", "vec", "shared"])
def test_a_model_trains_the_same_on_cpu_and_gpu(readout, rng):
    table = rng.standard_normal((c, n))
    batch = windows(rng)
    losses = []
    for device in ("cpu", "gpu"):
        model = LanguageTransformer(table, T=T, L=2, H=2, m=3, readout=readout, causal=True, layer_norm=True).to(device)
        optimizer = Adam(0.01)
        for _ in range(5):
            model.clear_gradients()
            loss, backward = model.loss(batch)
            backward()
            optimizer.step(model.parameters())
        losses.append(float(loss))
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


BAD = {
    "T of 0": ({"T": 0}, "T is 0, expected a whole number of at least 1"),
    "T of 2.5": ({"T": 2.5}, "T is 2.5, expected a whole number"),
    "H of 0": ({"H": 0}, "H is 0"),
    "m below 1": ({"m": -1}, "m is -1"),
    "L below 0": ({"L": -1}, "L is -1, expected a whole number of at least 0"),
    "unknown readout": ({"readout": "sum"}, "readout 'sum' is unknown, expected one of average, vec, shared"),
    "shared without mask": ({"readout": "shared"}, "needs causal=True"),
    "average that moves its targets": ({"readout": "average", "train_embeddings": True}, "needs fixed embeddings"),
    "tied vec": ({"readout": "vec", "tied": True}, "tied=True needs readout 'shared'"),
    "dropout of 1": ({"dropout": 1.0}, "dropout is 1.0"),
    "unknown positions": ({"positions": "learned"}, "'learned' is unknown"),
    "wrong number of frequencies": ({"positions": [1.0]}, r"positions are \[1.0\], expected geometric, fourier, or n/2 = 2 finite numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_named(case, rng):
    options, message = BAD[case]
    with pytest.raises(UserError, match=message):
        make(rng, **options)


def test_odd_n_and_tables_of_a_wrong_shape(rng):
    with pytest.raises(UserError, match="n is 3, expected an even n"):
        LanguageTransformer(rng.standard_normal((c, 3)), T=T, positions="geometric")
    with pytest.raises(UserError, match=r"embeddings have shape \(9,\)"):
        LanguageTransformer(rng.standard_normal(c), T=T)


def test_windows_of_another_length_are_named(rng):
    with pytest.raises(ValueError, match=r"windows have shape \(2, 3\), expected \(B, 4\)"):
        make(rng).loss(rng.integers(0, c, (2, T)))


def test_the_backward_frees_its_memory_and_says_so_when_called_again(rng):
    _, backward = make(rng).loss(windows(rng))
    backward()
    with pytest.raises(RuntimeError, match="call the forward again"):
        backward()

"""Masked words: which are hidden, what the loss counts, and that padding changes nothing."""

from mini_tf.errors import UserError
from mini_tf.models import MaskedWordModel
from mini_tf.models.masked import MASK, MaskedBatch, hide_words
from mini_tf.training import load_checkpoint, save_checkpoint

import numpy as np
import pytest

c, n = 11, 8
SIZES = {"T": 6, "L": 2, "H": 2, "m": 4, "f": 12}
IDS = np.array([[3, MASK, 5, 3, 9, 4], [MASK, 2, 7, -1, -1, -1], [-1] * 6])
TARGETS = np.array([[-1, 8, 5, -1, -1, -1], [6, -1, -1, -1, -1, -1], [-1] * 6])


def masked_model(**options):
    """A MaskedWordModel in float64 with random parameters, none of them 0 or 1."""
    rng = np.random.default_rng(3)
    made = MaskedWordModel(rng.standard_normal((c, n)), **SIZES | options)
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.5
    return made


def gradients(model, batch):
    model.clear_gradients()
    loss, backward = model.loss(batch)
    backward()
    return float(loss), {name: parameter.grad for name, parameter in model.parameters().items()}


def assert_same(found, expected):
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    for name, gradient in found[1].items():
        np.testing.assert_allclose(gradient, expected[1][name], rtol=1e-9, atol=1e-12, err_msg=name)


# The loss -----------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_a_loop_over_the_hidden_words():
    model = masked_model()
    Phi = model.trunk(IDS)[0]
    logits = Phi @ model.trunk.embedding.table.data.T + model.A.b.data               # all of them: (B, T, c)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    lost = [-log_p[i, t, TARGETS[i, t]] for i in range(3) for t in range(6) if TARGETS[i, t] >= 0]
    assert len(lost) == 3
    assert model.loss(MaskedBatch(IDS, TARGETS))[0] == pytest.approx(np.mean(lost), rel=1e-12)


def test_a_word_that_is_not_hidden_has_no_loss():
    """With one more target the loss is another; without it, what is true there cannot matter, for it is not given."""
    model, more = masked_model(), TARGETS.copy()
    more[0, 4] = 9
    alone = np.where(more == 9, 9, -1)
    losses = [float(model.loss(MaskedBatch(IDS, targets))[0]) for targets in (TARGETS, alone, more)]
    assert losses[2] == pytest.approx((3 * losses[0] + losses[1]) / 4, rel=1e-12)
    assert losses[2] != pytest.approx(losses[0], rel=1e-3)


def test_logits_elsewhere_change_nothing(monkeypatch):
    """Φ is changed where no word is hidden: the loss stays, and no gradient comes from there."""
    model = masked_model()
    expected = float(model.loss(MaskedBatch(IDS, TARGETS))[0])
    trunk, came = model.trunk, []

    def changed(ids, rng=None):
        Phi, _ = trunk(ids, rng)
        return np.where((TARGETS >= 0)[..., None], Phi, 1e3), came.append

    monkeypatch.setattr(model, "trunk", changed)
    loss, backward = model.loss(MaskedBatch(IDS, TARGETS))
    backward()
    assert float(loss) == expected
    assert (came[0][TARGETS < 0] == 0).all()
    assert (np.abs(came[0][TARGETS >= 0]).max(-1) > 1e-6).all()


def test_padding_changes_neither_loss_nor_gradients():
    model = masked_model()
    short = MaskedBatch(IDS[:2], TARGETS[:2])                                        # without the text of padding
    assert_same(gradients(model, MaskedBatch(IDS, TARGETS)), gradients(model, short))
    one = gradients(model, MaskedBatch(IDS[:1], TARGETS[:1]))
    two = gradients(model, MaskedBatch(IDS[1:2, :3], TARGETS[1:2, :3]))              # without padding
    mean = {name: (2 * one[1][name] + two[1][name]) / 3 for name in one[1]}
    assert_same(gradients(model, short), ((2 * one[0] + two[0]) / 3, mean))


def test_words_on_both_sides_are_seen_and_padding_is_not(rng):
    model, ids = masked_model(), np.array([3, MASK, 5, 4])
    before = model.log_probabilities(ids, 1)
    for place in (0, 2, 3):
        other = ids.copy()
        other[place] = 8
        assert np.abs(model.log_probabilities(other, 1)[1:] - before[1:]).max() > 1e-6
    np.testing.assert_allclose(model.log_probabilities(np.r_[ids, -1, -1], 1)[1:], before[1:], rtol=1e-12)


def test_log_probabilities_are_normalized_and_never_the_mask():
    model = masked_model()
    log_p = model.log_probabilities(np.array([3, MASK, 5]), 1)
    assert log_p.shape == (c,)
    assert log_p[MASK] == -np.inf
    assert np.exp(log_p).sum() == pytest.approx(1, rel=1e-12)
    logits = model.A(model.trunk(np.array([[3, MASK, 5]]))[0])[0][0, 1]
    np.testing.assert_allclose(np.diff(log_p[1:]), np.diff(logits[1:]), rtol=1e-9, atol=1e-12)


def test_an_untrained_model_knows_the_frequencies():
    counts = np.array([0, 50, 0, *range(1, 9)])
    model = MaskedWordModel(np.zeros((c, n)), counts, **SIZES)
    p = np.exp(model.log_probabilities(np.array([4, MASK]), 1))
    np.testing.assert_allclose(p[1:], (counts[1:] + 0.5) / (counts[1:] + 0.5).sum(), rtol=1e-9)


def test_dropout_needs_an_rng():
    model, batch = masked_model(dropout=0.4), MaskedBatch(IDS, TARGETS)
    assert model.loss(batch)[0] == masked_model().loss(batch)[0]
    drawn = [float(model.loss(batch, np.random.default_rng(seed))[0]) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_checkpoint_gives_the_same_model(tmp_path):
    model = masked_model()
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == model.config
    assert again.loss(MaskedBatch(IDS, TARGETS))[0] == model.loss(MaskedBatch(IDS, TARGETS))[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"T": 0}, "T is 0"), ({"L": 0}, "L is 0"), ({"H": -1}, "H is -1"), ({"m": 1.5}, "m is 1.5"), ({"f": 0}, "f is 0"),
        ({"dropout": 1.0}, "dropout is 1.0"), ({"embeddings": np.zeros(4)}, r"embeddings have shape \(4,\)"),
        ({"frequencies": np.ones(3)}, r"frequencies have shape \(3,\), expected \(11,\)"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options, message):
    with pytest.raises(UserError, match=message):
        MaskedWordModel(**{"embeddings": np.ones((c, n))} | SIZES | options)


@pytest.mark.parametrize("shape", [(2, 7), (3,)])
def test_too_many_words(shape):
    with pytest.raises(ValueError, match=r"expected \(B, at most T = 6\)"):
        masked_model().loss(MaskedBatch(np.ones(shape, int), np.ones(shape, int)))


# Hiding -------------------------------------------------------------------------------------------------


def within(count, total, p):
    """True if a count is no more than 5 standard deviations from what is expected of independent draws."""
    return abs(count - total * p) < 5 * (total * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_the_shares_of_hidden_words(rng, share):
    vocabulary = 1000                                    # so that a random word is hardly ever the true one
    ids = rng.integers(1, vocabulary, (400, 300))
    ids[:, 250:] = -1
    batch = hide_words(ids, vocabulary, rng, share)
    chosen, words = batch.targets >= 0, 400 * 250
    assert within(chosen.sum(), words, share)
    masked = (batch.ids == MASK) & chosen
    same = (batch.ids == ids) & chosen
    random = chosen & ~masked & ~same
    for kind, p in ((masked, 0.8), (random, 0.1), (same, 0.1)):
        assert within(kind.sum(), chosen.sum(), p)
    assert len(np.unique(batch.ids[random])) > 0.6 * min(vocabulary, random.sum())   # any word, and not one and the same
    by_place = chosen[:, :250].mean(0)
    assert (np.abs(by_place - share) < 5 * (share * (1 - share) / 400) ** 0.5).all()


def test_what_is_not_chosen_stays(rng):
    ids = rng.integers(1, 50, (30, 20))
    ids[:, 15:] = -1
    before = ids.copy()
    batch = hide_words(ids, 50, rng)
    chosen = batch.targets >= 0
    np.testing.assert_array_equal(ids, before)                                       # not written into
    np.testing.assert_array_equal(batch.targets[chosen], ids[chosen])
    np.testing.assert_array_equal(batch.ids[~chosen], ids[~chosen])
    assert (batch.targets[~chosen] == -1).all()
    assert not chosen[:, 15:].any()                                                  # padding is never chosen
    assert batch.ids.dtype == batch.targets.dtype == np.int64
    assert (len(batch), batch.size, np.size(batch)) == (30, 450, 450)


def test_at_least_one_word_is_chosen():
    ids = np.array([[-1, -1, 4]])
    for seed in range(20):
        batch = hide_words(ids, 9, np.random.default_rng(seed), 0.01)
        assert batch.targets.tolist() == [[-1, -1, 4]]
    assert (hide_words(np.full((3, 4), 5), 9, np.random.default_rng(0), 1.0).targets == 5).all()


def test_a_random_word_is_never_the_mask(rng):
    batch = hide_words(rng.integers(1, 3, (100, 50)), 3, rng, 1.0)
    assert within((batch.ids == MASK).sum(), 5000, 0.8)


def test_the_generator_decides(rng):
    ids = rng.integers(1, 50, (8, 20))
    one, same, other = (hide_words(ids, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.ids, same.ids)
    np.testing.assert_array_equal(one.targets, same.targets)
    assert (one.targets != other.targets).any()


@pytest.mark.parametrize(("ids", "share"), [([[1, 2]], 0), ([[1, 2]], 1.1), ([[1, 2]], -0.1), ([[-1, -1]], 0.15)])
def test_nothing_to_hide(rng, ids, share):
    with pytest.raises(UserError, match="expected 0 < share ≤ 1 and at least one word"):
        hide_words(np.array(ids), 9, rng, share)

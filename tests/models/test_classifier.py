"""The Classifier: what padding and order change, what it looks at, and where it may start from."""

from itertools import permutations

from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import log_softmax
from mini_tf.models import GPT, Classifier
from mini_tf.models.saliency import record_attention, saliency
from mini_tf.training import load_checkpoint, save_checkpoint
from mini_tf.training.text_batches import TextBatch
from tests.cases import cases

import numpy as np
import pytest

c, n, classes = 9, 8, 3
SIZES = {"classes": classes, "T": 6, "L": 2, "H": 2, "m": 4, "f": 12, "k": 10}
VARIANTS = {
    "attention": {},
    "bag": {"L": 0, "positions": None},
    "no positions": {"positions": None},
    "learned positions": {"positions": "learned"},
    "[CLS]": {"pool": "first"},
    "[CLS], learned positions": {"pool": "first", "positions": "learned"},
    "causal": {"causal": True},
    "causal, learned positions": {"causal": True, "positions": "learned", "blocks": 0},
    "two blocks": {"blocks": 2, "L": 1},
}
IDS = np.array([[3, 4, 5, 3, 0, 8], [6, 2, -1, -1, -1, -1], [1, 7, 2, -1, -1, -1], [-1] * 6])
LENGTHS = [6, 2, 3, 0]
every_variant = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)


def classifier(**options):
    """A Classifier in float64 with random parameters, none of them 0 or 1."""
    rng = np.random.default_rng(3)
    made = Classifier(rng.standard_normal((c, n)), **SIZES | options)
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.5
    return made


def gradients(model, batch):
    model.clear_gradients()
    loss, backward = model.loss(batch)
    backward()
    return float(loss), {name: parameter.grad for name, parameter in model.parameters().items()}


def same(one, other):
    return np.allclose(one, other, rtol=1e-9, atol=1e-12)


# Padding ------------------------------------------------------------------------------------------------


@every_variant
def test_an_untrained_classifier_guesses_evenly(rng, options):
    model = Classifier(rng.standard_normal((c, n)), **SIZES | options)
    assert model.loss(TextBatch(IDS, np.array([0, 1, 2, 1])))[0] == pytest.approx(np.log(classes), rel=1e-12)
    assert (model.logits(IDS) == 0).all()


@every_variant
def test_a_text_does_not_depend_on_its_batch(options):
    model = classifier(**options)
    together = model.logits(IDS)
    assert together.shape == (4, classes)
    assert not same(together[0], together[1])
    for i, length in enumerate(LENGTHS[:3]):
        assert same(model.logits(IDS[i : i + 1, :length])[0], together[i])
    assert same(model.logits(IDS[[2, 3, 1]][:, :4]), together[[2, 3, 1]])


@every_variant
def test_padding_changes_no_gradient(options):
    model, labels = classifier(**options), np.array([0, 2, 1])
    loss, together = gradients(model, TextBatch(IDS[:3], labels))
    alone = [gradients(model, TextBatch(IDS[i : i + 1, : LENGTHS[i]], labels[i : i + 1])) for i in range(3)]
    assert loss == pytest.approx(np.mean([loss for loss, _ in alone]), rel=1e-12)
    for name, gradient in together.items():
        parts = [part[name] for _, part in alone]
        np.testing.assert_allclose(gradient, np.mean(parts, axis=0), rtol=1e-8, atol=1e-12, err_msg=name)


@every_variant
def test_a_text_of_nothing_but_padding_is_finite(options):
    model = classifier(**options)
    assert np.isfinite(model.logits(IDS[3:])).all()
    loss, found = gradients(model, TextBatch(IDS[3:], np.array([1])))
    assert np.isfinite(loss)
    assert all(np.isfinite(gradient).all() for gradient in found.values())
    assert (found["trunk.embedding.table"] == 0).all()


def test_no_word_sees_padding_whatever_its_vector():
    """The vectors of padding are given as garbage: a mask on the queries instead of the keys would let it in."""
    for options in VARIANTS.values():
        model = classifier(**options)
        x, present = model.trunk.embedding(IDS)[0], IDS >= 0
        garbage = np.where(present[..., None], x, 50.0)
        logits, backward = model.from_vectors(garbage, present)
        assert same(logits[:3], model.logits(IDS)[:3]), options
        dx = backward(np.ones_like(logits))
        assert (dx[~present] == 0).all(), options
        assert (np.abs(dx[present]).max(-1) > 0).all(), options


# Order --------------------------------------------------------------------------------------------------


def logits_of_all_orders(model):
    return np.concatenate([model.logits(np.array([order])) for order in permutations([3, 4, 5, 8])])


@pytest.mark.parametrize("options", [{"L": 0, "positions": None}, {"positions": None}, {"positions": None, "pool": "first"}])
def test_without_positions_order_does_not_matter(options):
    found = logits_of_all_orders(classifier(**options))
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_bag_with_positions_is_still_a_bag(positions):
    found = logits_of_all_orders(classifier(L=0, positions=positions))
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"positions": "learned"}, {"pool": "first"}, {"positions": None, "causal": True}])
def test_attention_with_positions_sees_the_order(options):
    """A causal one needs none: each word sees another number of words."""
    found = logits_of_all_orders(classifier(**options))
    assert len(np.unique(found.round(9), axis=0)) == 24


def test_a_causal_word_sees_no_later_word():
    model, other = classifier(causal=True), IDS[:1].copy()
    other[0, 3] = 1
    before, after = (model.trunk(ids)[0] for ids in (IDS[:1], other))
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert (np.abs(after[:, 3:] - before[:, 3:]).max(-1) > 1e-6).all()
    both = classifier()
    assert (np.abs(both.trunk(other)[0] - both.trunk(IDS[:1])[0]).max(-1) > 1e-6).all()


def test_cls_is_one_word_more():
    model = classifier(pool="first", positions="learned")
    assert model.trunk.positions.P.data.shape == (7, n)
    assert model.cls.v.data.shape == (n,)
    before = model.logits(IDS)
    model.cls.v.data = -model.cls.v.data
    assert (np.abs(model.logits(IDS) - before).max(-1) > 1e-6).all()
    assert classifier().cls is None


# Training -----------------------------------------------------------------------------------------------


def test_dropout_needs_an_rng():
    plain, batch = classifier(), TextBatch(IDS, np.array([0, 1, 2, 1]))
    expected = float(plain.loss(batch)[0])
    assert plain.loss(batch, np.random.default_rng(1))[0] == expected
    for options in ({"dropout": 0.4}, {"word_dropout": 0.4}):
        model = classifier(**options)
        assert model.loss(batch)[0] == expected
        drawn = [float(model.loss(batch, np.random.default_rng(seed))[0]) for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]


def test_word_vectors_can_stay_as_they_are():
    model = classifier(train_embeddings=False)
    _, found = gradients(model, TextBatch(IDS, np.array([0, 1, 2, 1])))
    assert found.pop("trunk.embedding.table") is None
    assert all(np.abs(gradient).max() > 0 for gradient in found.values())


@pytest.mark.parametrize("options", cases([*VARIANTS.values()][:2], [*VARIANTS.values()][2:]))
def test_the_gradient_of_the_words_vectors(rng, options):
    model, present = classifier(**{"L": 1} | options), IDS[1:] >= 0
    x = model.trunk.embedding(IDS[1:])[0]
    assert gradcheck(lambda x: model.from_vectors(x, present), x, params={})       # those are in test_false_alarms.py


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_a_checkpoint_gives_the_same_model(options, tmp_path):
    model = classifier(**options)
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == model.config
    np.testing.assert_array_equal(again.logits(IDS), model.logits(IDS))


def test_it_starts_from_a_language_model(rng):
    sizes = {name: SIZES[name] for name in ("T", "L", "H", "m", "f")}
    gpt = GPT(rng.standard_normal((c, n)), **sizes)
    for parameter in gpt.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.5
    model = classifier(causal=True)
    assert model.start_from(gpt) is model
    np.testing.assert_array_equal(model.trunk(IDS[:2])[0], gpt.trunk(IDS[:2])[0])
    model.trunk.embedding.table.data *= 2                # a copy: the GPT keeps its own
    assert not same(model.trunk(IDS[:2])[0], gpt.trunk(IDS[:2])[0])


@pytest.mark.parametrize("options", [{"L": 1}, {"L": 3}, {"f": 5}, {"m": 3}, {"H": 4, "m": 2}, {"positions": "learned"}], ids=str)
def test_it_does_not_start_from_a_model_of_other_sizes(rng, options):
    """H = 4 and m = 2 make matrices of the same shapes as H = 2 and m = 4, and are another model all the same."""
    gpt = GPT(rng.standard_normal((c, n)), **{name: SIZES[name] for name in ("T", "L", "H", "m", "f")})
    model = classifier(**options)
    before = model.logits(IDS)
    with pytest.raises(UserError, match="start_from: .* give both the same n, T, L, H, m, f and positions"):
        model.start_from(gpt)
    np.testing.assert_array_equal(model.logits(IDS), before)


# Looking ------------------------------------------------------------------------------------------------


@every_variant
@pytest.mark.parametrize("chosen", [None, 0])
def test_saliency_is_the_slope_of_the_log_probability(options, chosen):
    model, ids, h = classifier(**options), IDS[0, :5], 1e-6
    found = saliency(model, ids, chosen)
    x, present = model.trunk.embedding(ids[None])[0], np.ones((1, 5), dtype=bool)
    log_p = log_softmax(model.from_vectors(x, present)[0])[0]
    np.testing.assert_allclose(found.log_p, log_p, rtol=1e-12)
    assert found.p.sum() == pytest.approx(1, rel=1e-12)
    assert found.chosen == (log_p.argmax() if chosen is None else chosen)

    def slope(direction):
        """of ln p_k along a change of the vectors"""
        ends = [log_softmax(model.from_vectors(x + step * direction, present)[0])[0, found.chosen] for step in (h, -h)]
        return (ends[0] - ends[1]) / (2 * h)

    unit = np.eye(5 * n).reshape(5, n, 1, 5, n)
    dx = np.array([[slope(unit[t, i]) for i in range(n)] for t in range(5)])
    np.testing.assert_allclose(found.norm, np.linalg.norm(dx, axis=1), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.contribution, (dx * x[0]).sum(-1), rtol=1e-5, atol=1e-8)
    assert (found.norm > 1e-4).all()
    assert all(parameter.grad is None for parameter in model.parameters().values())


@every_variant
def test_attention_that_was_seen(options):
    model = classifier(**options)
    before = model.logits(IDS)
    found = record_attention(lambda: model.logits(IDS))
    words = 7 if model.cls is not None else 6
    assert [A.shape for A in found] == [(4, 2, words, words)] * model.config["L"]
    first = words - 6                                    # [CLS] is always there
    for A in found:
        sums = A.sum(-1)
        assert ((np.abs(sums - 1) < 1e-12) | (sums == 0)).all()
        np.testing.assert_allclose(sums[:3], 1)          # only in a text of nothing but padding a query sees nothing
        assert (A[..., first:].swapaxes(1, 3)[IDS < 0] == 0).all()
        if model.config["causal"]:
            assert (np.triu(A, 1) == 0).all()
    np.testing.assert_array_equal(model.logits(IDS), before)


# What does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 0}, "classes is 0"), ({"T": 0}, "T is 0"), ({"L": -1}, "L is -1"), ({"H": 0}, "H is 0"),
        ({"m": 0.5}, "m is 0.5"), ({"k": 0}, "k is 0"), ({"blocks": -1}, "blocks is -1"),
        ({"positions": "cosine"}, "positions 'cosine' is unknown"), ({"pool": "max"}, "pool 'max' is unknown, expected one of mean, first"),
        ({"dropout": 1}, "dropout is 1, expected"), ({"pool": "first", "causal": True}, "would see no word; use pool='mean'"),
        ({"pool": "first", "L": 0}, r"\[CLS\] would see no word"), ({"embeddings": np.ones((4, 3))}, "n is 3, expected an even n"),
        ({"embeddings": np.ones(4)}, r"embeddings have shape \(4,\)"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options, message):
    with pytest.raises(UserError, match=message):
        Classifier(**{"embeddings": np.ones((c, n))} | SIZES | options)


@pytest.mark.parametrize("shape", [(2, 7), (3,), (1, 2, 3)])
def test_too_many_words(shape):
    with pytest.raises(ValueError, match=r"expected \(B, at most T = 6\)"):
        classifier().logits(np.ones(shape, dtype=int))

"""The twin that writes words of a text: it gives what the layer's formula gives, runs where it may, and nowhere else."""

from mini_tf import kernels, ops
from mini_tf.kernels import binding, decode_layer, decode_loop
from mini_tf.layers import KVCache, Linear, TransformerLayer
from mini_tf.ops.op import replaced, watching
from mini_tf.twins import check_writing

import numpy as np
import pytest

n, H, m, T = 6, 2, 4, 5


@pytest.fixture
def runs(monkeypatch):
    """A list that gets True each time that the loop has written."""
    done, loop = [], decode_loop.decode.machine_code

    def count(*arguments):
        done.append(loop(*arguments))
        return done[-1]

    monkeypatch.setitem(vars(decode_loop.decode), "machine_code", count)
    return done


def a_layer(rng, dtype=np.float32, **options):
    layer = TransformerLayer(n, H, m, rng, dtype=dtype, **{"norm": "after", "f": 7} | options)
    for parameter in layer.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape).astype(dtype)
    return layer


def decode(layer, x, cache=None):
    """y of the words of one text x (1, T′, n), one after another"""
    cache = cache or KVCache(T)
    return np.concatenate([layer.decode(x[:, t : t + 1], cache) for t in range(x.shape[1])], axis=1)


def text(rng, words=T, dtype=np.float32):
    return rng.standard_normal((1, words, n)).astype(dtype)


def by_the_formula(layer, x):
    causal = np.tri(x.shape[1], dtype=bool)
    with kernels.reference_only():
        return layer(x, causal)[0]


def test_every_variant_of_the_layer(rng, runs):
    assert check_writing(rng) == []
    assert len(runs) == 3 * 2 * 5 * 5 * 4                    # norms, relu or not, branches, variants, calls
    assert all(runs)


def test_a_wrong_twin_is_found(rng, monkeypatch):
    monkeypatch.setattr(decode_layer, "EPS", np.float32(1e-3))
    assert any("with the twins of TransformerLayer.decode, " in finding for finding in check_writing(rng))


def test_texts_side_by_side_and_much_at_once_go_by_the_formula(rng, runs, monkeypatch):
    layer, x = a_layer(rng), rng.standard_normal((2, 3, n)).astype(np.float32)
    np.testing.assert_allclose(decode(layer, x), by_the_formula(layer, x), rtol=1e-4, atol=1e-5)
    assert runs == []
    cache = KVCache(T)
    with monkeypatch.context() as few:
        few.setattr(decode_layer, "SMALL", 2 * n * H * m - 1)
        layer.decode(x[:1, :2], cache)
        assert runs == []
        layer.decode(x[:1, 2:], cache)
        assert runs == [True]
    np.testing.assert_allclose(cache.contents()[0].shape, (1, H, 3, m))
    first = layer.decode(x[:1], KVCache(T))
    assert runs == [True, True]
    np.testing.assert_allclose(first, by_the_formula(layer, x[:1]), rtol=1e-4, atol=1e-5)


def test_other_numbers_and_shapes_go_by_the_formula(rng, runs):
    x = text(rng)
    double = a_layer(rng, np.float64)
    np.testing.assert_allclose(decode(double, x.astype(np.float64)), by_the_formula(double, x.astype(np.float64)), rtol=1e-9)
    mixed = a_layer(rng)
    mixed.attention.query.W.data = mixed.attention.query.W.data.astype(np.float64)
    np.testing.assert_allclose(decode(mixed, x), by_the_formula(mixed, x), rtol=1e-4, atol=1e-5)
    negative = a_layer(rng, scale=-1.0)
    np.testing.assert_allclose(decode(negative, x), by_the_formula(negative, x), rtol=1e-4, atol=1e-5)
    assert not any(runs)


@pytest.mark.parametrize("name", ["attention.query.W", "attention.output.W", "attention_norm.gamma", "feed_forward.inner.b",
                                  "feed_forward.outer.W", "feed_forward_norm.beta"])  # fmt: skip
def test_a_wrong_shape_is_told_by_the_formula(name, rng):
    layer, x = a_layer(rng), text(rng)
    parameter = layer.parameters()[name]
    parameter.data = parameter.data[:-1].copy()
    with pytest.raises(ValueError, match="expected"):
        decode(layer, x)


def test_the_memory_has_room_for_T_words(rng):
    layer, cache = a_layer(rng), KVCache(T)
    decode(layer, text(rng), cache)
    with pytest.raises(ValueError, match="6 words, expected at most T = 5; forget some first"):
        decode(layer, text(rng, 1), cache)
    assert not np.isnan(cache.key).any()


def test_watchers_see_the_ops(rng, runs):
    layer, x, seen = a_layer(rng), text(rng), []

    def watch(op, run, *inputs, **options):
        seen.append(op.name)
        return run(*inputs, **options)

    with watching(watch):
        decode(layer, x)
    assert runs == []
    assert seen.count("attention") == T
    with replaced({ops.relu: lambda x: (0 * x, None)}):
        other = decode(layer, x)
    assert np.abs(other - by_the_formula(layer, x)).max() > 1e-3
    with kernels.reference_only():
        decode(layer, x)
    assert runs == []


def test_what_is_put_in_place_of_a_part_runs(rng, runs, monkeypatch):
    class Doubled(Linear):
        def __call__(self, x):
            y, backward = super().__call__(x)
            return 2 * y, backward

    x, layer = text(rng), a_layer(rng)
    layer.attention.output.__class__ = Doubled
    right = by_the_formula(layer, x)
    np.testing.assert_allclose(decode(layer, x), right, rtol=1e-4, atol=1e-5)
    layer, linear = a_layer(rng), Linear.__call__
    monkeypatch.setattr(Linear, "__call__", lambda self, x: linear(self, 2 * x))
    np.testing.assert_allclose(decode(layer, x), by_the_formula(layer, x), rtol=1e-4, atol=1e-5)
    assert runs == []


def test_an_edit_of_any_part_shows(rng, runs, monkeypatch):
    held = binding.FINGERPRINTS[binding.name_of(decode_layer.DECODING)]
    assert held == binding.fingerprints(decode_layer.DECODING)
    x, layer = text(rng), a_layer(rng)
    for name in ("MultiHeadAttention.across", "layer_norm", "distance_bias"):
        monkeypatch.setitem(held, name, "as it was before")
        kernels.forget(decode_layer.DECODING)
        with pytest.warns(kernels.FormulaEdited, match=f"TransformerLayer.decode uses {name}, which was edited: the formula runs"):
            decode(layer, x)
        monkeypatch.undo()
        kernels.forget(decode_layer.DECODING)
    assert runs == []


def test_weights_that_change_in_place_are_seen(rng, runs):
    layer, x = a_layer(rng), text(rng)
    decode(layer, x)
    for parameter in layer.parameters().values():
        parameter.data *= 0.5
    np.testing.assert_allclose(decode(layer, x), by_the_formula(layer, x), rtol=1e-4, atol=1e-5)
    assert len(runs) == 2 * T

"""Reading a text word by word gives the same scores as reading it all at once."""

from functools import partial

from mini_tf.decoding import generate, greedy
from mini_tf.experiment import PointerTransformer
from mini_tf.models import GPT, GPT2, FixedWindowModel, LanguageTransformer
from mini_tf.models.reading import CachedReader, WindowReader
from tests.models.test_devices import made_strict

import numpy as np
import pytest

c, n, T = 30, 6, 8
CAUSAL = {"readout": "shared", "causal": True}
WITH_MEMORY = {
    "shared": partial(LanguageTransformer, T=T, L=2, H=2, m=4, **CAUSAL),
    "shared, every option": partial(
        LanguageTransformer, T=T, L=2, H=3, m=5, layer_norm=True, scaled_attention=True, positions="geometric", tied=True, **CAUSAL
    ),
    "GPT": partial(GPT, T=T, L=2, H=2, m=3, f=7),
    "GPT2": partial(GPT2, T=T, L=2, H=2, m=3, f=7),
    "GPT2, no biases": partial(GPT2, T=T, L=2, H=2, m=3, f=7, bias=False),
    "pointer": partial(PointerTransformer, T=T, L=2, H=2, m=3, f=5),
    "pointer, no layers": partial(PointerTransformer, T=T, L=0, H=2, m=3, f=5),
}
WITHOUT = {
    "vec": partial(LanguageTransformer, T=T, L=2, H=2, m=4, readout="vec", layer_norm=True),
    "vec, causal": partial(LanguageTransformer, T=T, L=1, H=2, m=4, readout="vec", causal=True, positions="fourier"),
    "average": partial(LanguageTransformer, T=T, L=1, H=2, m=4, readout="average"),
    "shared, no layers": partial(LanguageTransformer, T=T, L=0, H=2, m=4, **CAUSAL),
    "fixed window": partial(FixedWindowModel, T=T, k=5),
}


def make(build, rng, dtype=np.float64):
    model = build(rng.standard_normal((c, n)).astype(dtype))
    for parameter in model.parameters().values():
        parameter.data[...] = rng.standard_normal(parameter.data.shape) / 2
    return model


def near(found, expected, dtype=np.float64):
    assert found.shape == expected.shape == (1, c)
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("build", WITH_MEMORY.values(), ids=WITH_MEMORY)
def test_with_memory(build, dtype, rng):
    """Until words are forgotten, the scores are those after all words; then, those after the remembered words."""
    model, ids = make(build, rng, dtype), rng.integers(0, c, 40)
    reader = model.reader()
    assert isinstance(reader, CachedReader)
    near(reader.read(ids[:0]), model.logits(ids[None, :0]), dtype)
    near(reader.read(ids[:3]), model.logits(ids[None, :3]), dtype)
    near(reader.read(ids[3:5]), model.logits(ids[None, :5]), dtype)
    remembered, seen = 5, []
    for t in range(5, 40):
        remembered = remembered + 1 if remembered < T else T // 2 + 1
        near(reader.read(ids[t : t + 1]), model.logits(ids[None, t + 1 - remembered : t + 1]), dtype)
        seen.append(remembered)
    assert set(seen) == set(range(T // 2 + 1, T + 1))    # always more than half of T words


@pytest.mark.parametrize("build", WITH_MEMORY.values(), ids=WITH_MEMORY)
def test_a_prompt_longer_than_the_memory(build, rng):
    model, ids = make(build, rng), rng.integers(0, c, 20)
    reader = model.reader()
    near(reader.read(ids), model.logits(ids[None, -T:]))
    near(reader.read(ids[:1]), model.logits(np.concatenate([ids[-(T // 2) :], ids[:1]])[None]))


@pytest.mark.parametrize("build", WITHOUT.values(), ids=WITHOUT)
def test_without_memory_the_window_rolls(build, rng):
    model, ids = make(build, rng), rng.integers(0, c, 20)
    reader = model.reader()
    assert isinstance(reader, WindowReader)
    near(reader.read(ids[:0]), model.logits(ids[None, :0]))
    for t in range(20):
        near(reader.read(ids[t : t + 1]), model.logits(ids[None, max(t + 1 - T, 0) : t + 1]))


@pytest.mark.parametrize("build", [WITH_MEMORY["GPT"], WITH_MEMORY["pointer"]])
def test_a_library_that_is_not_numpy(build, rng):
    host = make(build, rng)
    written = list(generate(host, np.arange(3), 12, greedy))
    assert list(generate(made_strict(host), np.arange(3), 12, greedy)) == written


def test_several_texts_may_be_read_side_by_side(rng):
    model, ids = make(WITH_MEMORY["pointer"], rng), rng.integers(0, c, (3, 5))
    cache = model.new_cache()
    model.read(ids[:, :2], cache)
    np.testing.assert_allclose(model.read(ids[:, 2:], cache), model.logits(ids), rtol=1e-9)


def test_memory_has_room_for_T_words(rng):
    model = make(WITH_MEMORY["pointer"], rng)
    with pytest.raises(ValueError, match="9 words, expected at most T = 8; forget some first"):
        model.read(np.zeros((1, 9), int), model.new_cache())

"""llama2.c's files: read and written by the format's rules, held against an independent reader."""

import os
import struct
from pathlib import Path

from mini_tf.decoding import generate, greedy
from mini_tf.errors import UserError
from mini_tf.models import Llama
from mini_tf.pretrained import export_llama2c, load_llama
from mini_tf.text.tokenizers import open_tokenizer

import numpy as np
import pytest

c, n, T = 23, 24, 9
SIZES = {"T": T, "L": 2, "H": 4, "G": 2, "m": 6, "f": 20}
DATA = Path(os.environ.get("MINI_TF_SHARED", Path(__file__).parents[3] / "shared")) / "data"


def a_model(rng, **options):
    model = Llama(0.5 * rng.standard_normal((c, n)).astype("f4"), **SIZES | options)
    for p in model.parameters().values():
        p.data = (p.data + 0.3 * rng.standard_normal(p.data.shape)).astype(np.float32)
    return model


def logits_by_the_format(path, ids):
    """The logits after each word, in plain NumPy, one word at a time, as llama2.c's run.c reads and computes them."""
    data = path.read_bytes()
    n, f, L, H, G, c, T = struct.unpack("<7i", data[:28])
    numbers = iter(np.split(np.frombuffer(data, "<f4", offset=28), 1)[0].astype(float).tolist())

    def take(*shape):
        return np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)

    m = n // H
    E, norm_1 = take(abs(c), n), take(L, n)
    Q, K, V, O = take(L, n, n), take(L, G * m, n), take(L, G * m, n), take(L, n, n)
    norm_2, W1, W2, W3, norm = take(L, n), take(L, f, n), take(L, n, f), take(L, f, n), take(n)
    take(2, T, m // 2)
    A = E if c > 0 else take(-c, n)
    assert next(numbers, None) is None

    def rms(x, gamma):
        return gamma * x / np.sqrt((x * x).mean() + 1e-5)

    def turned(x, t):
        pairs = x.reshape(-1, m // 2, 2) @ np.array([1, 1j])             # a rotation is a product of complex numbers
        pairs = pairs * np.exp(1j * t / 10000 ** (2 * np.arange(m // 2) / m))
        return np.stack([pairs.real, pairs.imag], axis=-1).reshape(-1, m)

    keys, values, logits = [[] for _ in range(L)], [[] for _ in range(L)], []
    for t, word in enumerate(ids):
        x = E[word]
        for k in range(L):
            z = rms(x, norm_1[k])
            query = turned(Q[k] @ z, t)
            keys[k].append(turned(K[k] @ z, t))
            values[k].append((V[k] @ z).reshape(G, m))
            heads = []
            for h in range(H):
                scores = np.array([query[h] @ key[h // (H // G)] for key in keys[k]]) / np.sqrt(m)
                weights = np.exp(scores - scores.max())
                heads.append(sum(w * v[h // (H // G)] for w, v in zip(weights / weights.sum(), values[k])))
            x = x + O[k] @ np.concatenate(heads)
            z = rms(x, norm_2[k])
            gate = W1[k] @ z
            x = x + W2[k] @ (gate / (1 + np.exp(-gate)) * (W3[k] @ z))
        logits.append(A @ rms(x, norm))
    return np.array(logits)


@pytest.mark.parametrize("options", [{}, {"tied": False}, {"G": 0}], ids=str)
def test_logits_are_those_of_the_format(options, tmp_path, rng):
    model, ids = a_model(rng, **options), rng.integers(0, c, T)
    export_llama2c(model, tmp_path / "model.bin")
    read = load_llama(tmp_path / "model.bin")
    assert read.config == model.config | {"G": SIZES["H"] if options.get("G") == 0 else SIZES["G"]}
    for name, p in model.parameters().items():
        np.testing.assert_array_equal(read.parameters()[name].data, p.data, err_msg=name)
    expected = logits_by_the_format(tmp_path / "model.bin", ids)
    np.testing.assert_allclose(read.logits_after_each(ids[None])[0], expected, rtol=1e-4, atol=1e-5)


def test_writing_word_by_word_gives_the_same(rng):
    """With cached keys and values, also beyond T words."""
    model, ids = a_model(rng), rng.integers(0, c, 3)
    reader, text = model.reader(), ids
    logits = reader.read(ids)
    for _ in range(T - 3):
        np.testing.assert_allclose(logits[0], model.logits_after_each(text[None])[0, -1], rtol=1e-3, atol=1e-4)
        text = np.append(text, greedy(logits))
        logits = reader.read(text[-1:])
    assert len(list(generate(model, ids, 2 * T, greedy))) == 2 * T


def test_what_the_format_cannot_say(tmp_path, rng):
    for options in ({"base": 500.0}, {"eps": 1e-6}, {"m": 4}):
        with pytest.raises(UserError, match="llama2.c's format expects base = 10000, eps = 1e-05 and H·m = n"):
            export_llama2c(a_model(rng, **options), tmp_path / "model.bin")
    assert list(tmp_path.iterdir()) == []


CUT = "it is cut off, or another format"
BAD = {
    "nothing": (lambda data: b"", "has 0 bytes, expected a model in llama2.c's format"),
    "a few bytes": (lambda data: data[:20], "has 20 bytes, expected a model in llama2.c's format"),
    "cut off": (lambda data: data[:-1], CUT),
    "longer": (lambda data: data + b"more", CUT),
    "a text": (lambda data: b"Once upon a time, there was a little girl named Lily.", "does not fit|first numbers"),
    "version 1": (lambda data: b"ak42" + data[4:], "first numbers|cut off"),
    "no heads": (lambda data: data[:12] + bytes(4) + data[16:], "H is 0, expected a whole number"),
    "too many heads of keys": (lambda data: data[:16] + struct.pack("<i", 3) + data[20:], "which does not fit"),
    "NaN": (lambda data: data[:-8] + np.float32(np.nan).tobytes() + data[-4:], "numbers that are not finite"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case, tmp_path, rng):
    damage, sentence = BAD[case]
    path = tmp_path / "model.bin"
    export_llama2c(a_model(rng), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=sentence) as error:
        load_llama(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_there_is_no_such_file(tmp_path):
    with pytest.raises(UserError, match="there is no file .*; expected a model in llama2.c's format"):
        load_llama(tmp_path / "absent.bin")


STORY = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."


def test_stories260K_tells_the_published_story():
    if not (DATA / "stories260K.bin").exists():
        pytest.skip(f"there is no stories260K.bin in {DATA}")
    model = load_llama(DATA / "stories260K.bin")
    assert model.parameter_count() == 260_032
    vocabulary = open_tokenizer(DATA / "tok512.bin", model.c)
    text = vocabulary.decode(generate(model, [vocabulary.first], 200, greedy))
    assert text.startswith(STORY)
    assert text.endswith("Lily didn't want to help her mom, so she")

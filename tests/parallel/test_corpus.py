"""Corpora that several processes read and count, each its part."""

import json
import random
import sys

from mini_tf.data import read_corpus
from mini_tf.errors import UserError
from mini_tf.models import NGramModel
from mini_tf.parallel import SINGLE, corpus
from mini_tf.parallel.corpus import read_part
from mini_tf.text import Vocabulary, cooccurrence, tokenize
from tests.parallel.mpi import needs_mpi, run, work

import numpy as np
import pytest
from scipy import sparse


def corpus_of(kind):
    """Bytes of a text with something difficult in it"""
    draw = random.Random(3)
    lines = [" ".join(draw.choices(["the", "king", "O'er", "été", "шах", "王", ",", "!"], k=draw.randrange(9))) for _ in range(90)]
    return {
        "plain": "\n".join(lines).encode() + b"\n",
        "windows, with a mark, no last line end": b"\xef\xbb\xbf" + "\r\n".join(lines).encode(),
        "one line": " ".join(lines).encode(),
        "long first line": (" ".join(lines * 3) + "\n" + "\n".join(lines[:20])).encode(),
        "three words": b"to be or",
        "a mark, tiny": b"\xef\xbb\xbfto\nbe",
    }[kind]


class One:
    """A process of several, for the part of a file that it reads: nobody else is there."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def everybody(self, value):
        return [value]


@pytest.mark.parametrize("piece", [1, 7, 1 << 22])
@pytest.mark.parametrize("kind", ["plain", "windows, with a mark, no last line end", "one line", "long first line", "three words", "a mark, tiny"])
def test_the_parts_of_a_file_are_the_file(kind, piece, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "PIECE", piece)
    path = tmp_path / "corpus.txt"
    path.write_bytes(corpus_of(kind))
    whole = read_corpus(path)
    for size in (1, 2, 3, 5, 40):
        parts = ["".join(corpus._texts(path, rank, size)) for rank in range(size)]
        assert "".join(parts) == whole
    vocabulary, ids = read_part(path, SINGLE)
    assert vocabulary.words == Vocabulary(tokenize(whole)).words
    np.testing.assert_array_equal(ids, vocabulary.encode(tokenize(whole)))
    assert ids.dtype == np.int32


@needs_mpi
@pytest.mark.parametrize(("n", "kind"), [(2, "plain"), (3, "windows, with a mark, no last line end"), (4, "long first line"), (4, "three words")])
def test_counts_are_those_of_one_process(n, kind, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(corpus_of(kind))
    work(n, "counts", tmp_path / "counts", path)
    tokens = tokenize(read_corpus(path))
    vocabulary = Vocabulary(tokens)
    ids = vocabulary.encode(tokens)
    assert json.loads((tmp_path / "counts" / "words.json").read_text()) == [vocabulary.words, len(ids)]
    found, expected = sparse.load_npz(tmp_path / "counts" / "C.npz"), cooccurrence(ids, len(vocabulary), 10)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    grams = np.load(tmp_path / "counts" / "grams.npz")
    for k, level in enumerate(NGramModel(4, len(vocabulary), "modified-kneser-ney").fit(ids).levels):
        for name in ("key", "share", "rest"):
            np.testing.assert_array_equal(grams[f"{k}{name}"], getattr(level, name))


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="the limit on a process's memory is set, and measured, as on Linux")
def test_a_corpus_too_large_for_one_process(tmp_path):
    """With at most 130 MB beyond what the program itself takes."""
    draw, path = random.Random(1), tmp_path / "corpus.txt"
    lines = [" ".join(draw.choices([f"w{i}" for i in range(300)], k=9)) for _ in range(500)]
    path.write_text("".join(draw.choice(lines) + "\n" for _ in range(180_000)), encoding="utf-8")
    code, _, err = run(1, "-m", "tests.parallel.worker", "counts", tmp_path / "one", path, 130)
    assert code == 1
    assert "MemoryError" in err
    work(3, "counts", tmp_path / "three", path, 130)
    words, total = json.loads((tmp_path / "three" / "words.json").read_text())
    assert (len(words), total) == (301, 1_800_000)


@pytest.mark.parametrize(("content", "message"), [
    (None, "there is no file"), (b"", "is empty|no words"), (b"% $ @", "has no words in it"), (b"fine\n\xff\n", "byte 0xff at offset 5, in line 2"),
])  # fmt: skip
def test_what_cannot_be_read(content, message, tmp_path):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_part(path, SINGLE)

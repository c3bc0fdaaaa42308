"""Corpora of the user's own, good and bad."""

import os
from pathlib import Path

from mini_tf.data import read_labelled, read_pairs
from mini_tf.data.corpus import read_corpus
from mini_tf.errors import UserError

import pytest


def written(tmp_path, data):
    path = tmp_path / "corpus.txt"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\ntwo\n", "one\ntwo\n"),
        ("œuvre — 詩\n".encode(), "œuvre — 詩\n"),
        (b"\xef\xbb\xbfone\n", "one\n"),
        (b"one\r\n\r\ntwo\r\n", "one\n\ntwo\n"),
        (b"no line end", "no line end"),
    ],
    ids=["plain", "beyond ASCII", "byte order mark", "Windows line ends", "no last line end"],
)
def test_text_is_read(tmp_path, data, text):
    assert read_corpus(written(tmp_path, data)) == text


def test_a_name_may_be_a_string(tmp_path):
    assert read_corpus(str(written(tmp_path, b"one"))) == "one"


@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", b"\xef\xbb\xbf"], ids=["empty", "blank", "only a mark"])
def test_a_file_without_words_is_refused(tmp_path, data):
    path = written(tmp_path, data)
    with pytest.raises(UserError, match="(is empty|nothing but white space); a corpus needs words") as raised:
        read_corpus(path)
    assert str(path) in str(raised.value)


def test_the_offset_of_a_byte_that_is_not_utf8(tmp_path):
    with pytest.raises(UserError, match=r"byte 0xe9 at offset 6, in line 1, does not fit.*iconv -f LATIN1 -t UTF-8"):
        read_corpus(written(tmp_path, b"\xef\xbb\xbfcaf\xe9 noir"))
    with pytest.raises(UserError, match=r"byte 0xe9 at offset 9, in line 3, does not fit"):
        read_corpus(written(tmp_path, b"one\r\n\ncaf\xe9\nnoir"))


def test_a_picture_is_not_to_be_converted(tmp_path):
    with pytest.raises(UserError, match="is not a text: it has bytes of value 0.*; a corpus is a text file") as raised:
        read_corpus(written(tmp_path, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"))
    assert "iconv" not in str(raised.value)


def test_utf16_is_recognised(tmp_path):
    with pytest.raises(UserError, match="byte 0xff at offset 0, .*iconv -f UTF-16 -t UTF-8"):
        read_corpus(written(tmp_path, b"\xff\xfe" + "one".encode("utf-16-le")))


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="there is no file .*nowhere.txt"):
        read_corpus(tmp_path / "nowhere.txt")


def test_a_folder(tmp_path):
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\); a corpus is one text file"):
        read_corpus(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read(tmp_path):
    path = written(tmp_path, b"one")
    path.chmod(0)
    with pytest.raises(UserError, match=r"cannot be read \(Permission denied\)"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\0b\n", "a\0b\n"),
        ("\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\n".encode(), "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\n"),
        (b"x" * 1_000_000, "x" * 1_000_000),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\re", "a\x0bb\x0cc\u2028d\re"),
    ],
    ids=["character 0", "from right to left", "a word of a million letters", "other line separators"],
)
def test_unusual_texts_are_read_as_they_are(tmp_path, data, text):
    assert read_corpus(written(tmp_path, data)) == text


def test_half_a_surrogate_pair_is_not_utf8(tmp_path):
    with pytest.raises(UserError, match="byte 0xed at offset 1"):
        read_corpus(written(tmp_path, b"a\xed\xa0\x80b"))


@pytest.mark.parametrize("read", [read_corpus, read_pairs, read_labelled])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), r"file cannot be read \(Is a directory\)"),
        (lambda path: path.write_bytes(b"\n\r\n\n"), "file has nothing but white space"),
        (lambda path: None, "there is no file file"),
    ],
    ids=["folder", "only line breaks", "nothing"],
)
def test_what_is_no_text_is_named(tmp_path, monkeypatch, read, make, message):
    monkeypatch.chdir(tmp_path)
    make(Path("file"))
    with pytest.raises(UserError, match=message):
        read("file")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs pipes with names")
def test_a_pipe_that_someone_writes_into_is_read(tmp_path):
    """As in mini-tf train --corpus <(zcat text.gz)"""
    read_end, write_end = os.pipe()
    os.write(write_end, b"to be\n")
    os.close(write_end)
    try:
        assert read_corpus(f"/dev/fd/{read_end}") == "to be\n"
    finally:
        os.close(read_end)

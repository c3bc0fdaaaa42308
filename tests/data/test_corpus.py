"""Corpora of the user's own, good and bad."""

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


def test_utf16_is_recognised(tmp_path):
    with pytest.raises(UserError, match="byte 0xff at offset 0, .*iconv -f UTF-16 -t UTF-8"):
        read_corpus(written(tmp_path, b"\xff\xfe" + "one".encode("utf-16-le")))


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="there is no file .*nowhere.txt"):
        read_corpus(tmp_path / "nowhere.txt")


def test_a_folder(tmp_path):
    with pytest.raises(UserError, match="is a folder; a corpus is one text file"):
        read_corpus(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(UserError, match=r"cannot be read \(Permission denied\)"):
        read_corpus(written(tmp_path, b"one"))

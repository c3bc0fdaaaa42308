"""llama2.c's tokenizer.bin: the pieces of its run.c, the file there and back, and files that are none."""

import math
import struct
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.text import LlamaVocabulary, open_tokenizer
from mini_tf.text.llama2c import BOS, BYTE_PIECES, BYTES, EOS

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

OFFICIAL = Path(__file__).parents[3] / "shared/data/tok512.bin"
SPECIAL = ["<unk>", "\n<s>\n", "\n</s>\n", *BYTE_PIECES]
TEXTS = st.text("ab <0x0A>\n", max_size=30) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def vocabulary_of(pieces):
    """A vocabulary of pieces with scores, {piece: score}"""
    return LlamaVocabulary([*SPECIAL, *pieces], [0.0] * len(SPECIAL) + list(pieces.values()))


SMALL = vocabulary_of({" ": -9, "a": -8, "b": -7, "ab": -1, " ab": -2, "ba": -3, "é": -4, "aba": -5})


def ids_in_c(vocabulary, text):
    """The ids as run.c finds them: it looks at all pairs for each merge."""
    ids = []
    for character in " " + text if text else "":
        known = vocabulary.index.get(character)
        ids += [byte + BYTES for byte in character.encode()] if known is None else [known]
    while True:
        best, place = -1e10, None
        for i in range(len(ids) - 1):
            merged = vocabulary.index.get(vocabulary.words[ids[i]] + vocabulary.words[ids[i + 1]])
            if merged is not None and vocabulary.scores[merged] > best:
                best, place, found = vocabulary.scores[merged], i, merged
        if place is None:
            return ids
        ids[place : place + 2] = [found]


def test_pieces_with_higher_scores_are_merged_first():
    assert SMALL.split("ab abba") == [" ab", " ab", "ba"]
    assert SMALL.split("aé😀") == [" ", "a", "é", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    assert SMALL.split("") == []
    assert SMALL.encode(["<0x0A>", "ab"]).tolist() == [BYTES + 10, SMALL.index["ab"]]
    assert (SMALL.first, SMALL.end) == (BOS, EOS)


@given(TEXTS, st.dictionaries(st.text("ab<0xA> ", min_size=1, max_size=5), st.integers(-4, 4)))
@example("aab", {" ": 0, "a": 0, "aa": 1, "ab": 1})
def test_ids_are_those_of_run_c_for_any_pieces_and_scores(text, pieces):
    vocabulary = vocabulary_of({piece: score for piece, score in pieces.items() if piece not in SPECIAL} | {" ": 0})
    ids = vocabulary.encode(vocabulary.split(text)).tolist()
    assert ids == ids_in_c(vocabulary, text)


@given(st.text(max_size=30))
@example(" a\r\n  😀 e\u0301\0<s><0x0A>")
def test_any_text_survives_the_round_trip(text):
    ids = SMALL.encode(SMALL.split(text))
    assert SMALL.decode(ids) == text
    assert SMALL.decode([BOS, *ids, EOS]) == text


def test_a_text_begins_without_the_space_and_comes_as_it_is_written():
    assert list(SMALL.stream(["\n<s>\n", " ab", " ab", "\n</s>\n", " ab"])) == ["", "ab", " ab", "", "ab"]
    assert list(SMALL.stream(["a", "<0xC3>", "<0xA9>", "b", "<0xC3>"])) == ["a", "", "é", "b", "", "�"]


def test_the_file_there_and_back(tmp_path):
    SMALL.save(tmp_path / "tokenizer.bin")
    data = (tmp_path / "tokenizer.bin").read_bytes()
    assert data[:4] == struct.pack("<i", 6)
    assert data[4:17] == struct.pack("<fi5s", 0, 5, b"<unk>")
    again = open_tokenizer(tmp_path / "tokenizer.bin", len(SMALL))
    assert again.content == SMALL.content == LlamaVocabulary.of(SMALL.content).content


@pytest.mark.skipif(not OFFICIAL.exists(), reason="needs llama2.c's tok512.bin")
def test_the_official_file(tmp_path):
    """The ids are what llama2.c's run.c gives, compiled."""
    vocabulary = open_tokenizer(OFFICIAL, 512)
    assert vocabulary.encode(vocabulary.split("Once upon a time")).tolist() == [403, 407, 261, 378]
    vocabulary.save(tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == OFFICIAL.read_bytes()


def piece(data, length=None, score=0.0):
    return struct.pack("<fi", score, len(data) if length is None else length) + data


GOOD = struct.pack("<i", 6) + b"".join(piece(each.encode()) for each in SPECIAL)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "pieces 3 to 258 are not <0x00> to <0xFF>"), (GOOD[:-3], "it ends within piece 258: it is truncated"),
        (GOOD[:-10], "it ends within piece 258"), (GOOD + piece(b"abcdefg"), "piece 259 has 7 bytes, expected 1 to 6"),
        (GOOD + piece(b"", -5), "piece 259 has -5 bytes"), (GOOD + piece(b""), "piece 259 has 0 bytes"),
        (GOOD + piece(b"a\xff"), "piece 259 is not UTF-8"), (GOOD + piece(b"<unk>"), "have '<unk>' twice"),
        (GOOD + piece(b"a", score=math.nan), "expected a finite number for each"),
        (GOOD[:4] + piece(b"a") + GOOD[4:], "pieces 3 to 258"), (b"PK\x03\x04 is a zip file, really", "piece 0 has"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, data, message):
    (tmp_path / "tok.bin").write_bytes(data)
    with pytest.raises(UserError, match=f"tok.bin cannot be read: .*{message}"):
        open_tokenizer(tmp_path / "tok.bin")


@pytest.mark.parametrize(
    "content", [None, 7, [], {"pieces": SMALL.words}, SMALL.content | {"a": 1}, SMALL.content | {"pieces": None},
                SMALL.content | {"pieces": [*SMALL.words[:-1], 7]}, SMALL.content | {"scores": None},
                SMALL.content | {"scores": SMALL.scores[1:]}, SMALL.content | {"scores": [*SMALL.scores[1:], "1"]}],
)  # fmt: skip
def test_what_vocabulary_json_cannot_hold(content):
    with pytest.raises(UserError, match="expected"):
        LlamaVocabulary.of(content)


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda end: GOOD + end))
def test_files_of_any_bytes(data):
    try:
        vocabulary = LlamaVocabulary.read(data)
    except UserError:
        return
    assert vocabulary.decode(vocabulary.encode(vocabulary.split("aé b"))) == "aé b"

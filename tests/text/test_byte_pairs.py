"""Byte-pair encoding: what is learned and how it is applied, against plain counting and Hugging Face's tokenizers."""

import json
from collections import Counter
from itertools import pairwise

from mini_tf.errors import UserError
from mini_tf.text import BytePairVocabulary, shakespeare
from mini_tf.text.byte_pairs import CHARACTER, CHUNK, learned_merges

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

TEXT = "low low low low low lower lower never never, 1024 1024 low's\n\n  never 😀😀 été été"
ANY_TEXT = st.text(max_size=60) | st.text("aé'’-.,\n\r\t ½²_١שם\u0301\u200b\ud800\0 s", max_size=60)
SMALL = BytePairVocabulary.learn(TEXT, 280)


@pytest.fixture(scope="module")
def play():
    """The first plays of the lab's corpus, and 400 pieces of them"""
    text = shakespeare()[:150_000]
    return text, BytePairVocabulary.learn(text, 400)


def test_a_text_is_cut_before_each_word_and_nothing_is_lost():
    assert CHUNK.findall("It's my lord's, isn't_it?  No 12\n\n A") == [
        "It", "'s", " my", " lord", "'s", ",", " isn", "'t", "_", "it", "?", " ", " No", " 12", "\n\n", " A",
    ]  # fmt: skip
    assert CHUNK.findall("a \n b  ") == ["a", " \n", " b", "  "]


@given(ANY_TEXT)
def test_every_character_is_in_a_chunk(text):
    assert "".join(CHUNK.findall(text)) == text


def test_each_byte_is_a_character_that_json_and_a_reader_see():
    assert len(set(CHARACTER.values())) == 256
    assert all(len(each) == 1 and each.isprintable() and not each.isspace() for each in CHARACTER.values())
    assert [CHARACTER[byte] for byte in b"A! \n\t\xa0\xff"] == ["A", "!", "Ġ", "Ċ", "ĉ", "ł", "ÿ"]


def test_the_example_of_the_docstring():
    merges = list(learned_merges(Counter({"low": 5, "lower": 2, "never": 1}), 259))
    assert merges == [("l", "o"), ("lo", "w"), ("e", "r")]
    vocabulary = BytePairVocabulary(merges)
    assert vocabulary.words[256:] == ["lo", "low", "er"]
    assert vocabulary.split("lower never") == ["low", "er", "Ġ", "n", "e", "v", "er"]


def test_learning_ends_where_no_pair_occurs_twice():
    assert len(BytePairVocabulary.learn("abab", 1000)) == 256 + 1        # abab: ab twice, then (ab, ab) once
    assert len(BytePairVocabulary.learn("", 300)) == len(BytePairVocabulary.learn(TEXT, 256)) == 256


def plain_merges(text, size):
    """Count all pairs anew for each merge."""
    chunks = Counter(CHUNK.findall(text))
    pieces = {chunk: [CHARACTER[byte] for byte in chunk.encode()] for chunk in chunks}
    words, merges = list(CHARACTER.values()), []
    while len(words) < size:
        counts = Counter()
        for chunk, times in chunks.items():
            for pair in pairwise(pieces[chunk]):
                counts[pair] += times
        if not counts or max(counts.values()) < 2:
            break
        best = min(counts, key=lambda pair: (-counts[pair], words.index(pair[0]), words.index(pair[1])))
        merges.append(best)
        if "".join(best) not in words:
            words.append("".join(best))
        for chunk, old in pieces.items():
            new = []
            for piece in old:
                new[-1:] = [new[-1] + piece] if new and (new[-1], piece) == best else [*new[-1:], piece]
            pieces[chunk] = new
    return merges


@settings(max_examples=60)
@given(st.text("ab é", max_size=60) | st.lists(st.sampled_from(["aaa", "abab", "aba", "b"]), max_size=20).map(" ".join))
@example("aaaa aaaaa aaaaaa")
def test_counting_incrementally_learns_the_same_merges(text):
    assert list(learned_merges(Counter(CHUNK.findall(text)), 270)) == plain_merges(text, 270)


@given(ANY_TEXT)
@example(" a\r\n  😀 e\u0301\0")
def test_any_text_survives_the_round_trip_and_nothing_is_unknown(text):
    pieces = SMALL.split(text)
    ids = SMALL.encode(pieces)
    assert len(ids) == len(pieces)
    expected = text.encode("utf-8", "surrogatepass").decode(errors="replace")
    assert SMALL.decode(ids) == SMALL.join(pieces) == expected
    again = BytePairVocabulary.of(json.loads(json.dumps(SMALL.content)))
    assert again.words == SMALL.words
    assert again.split(text) == pieces


def test_characters_come_whole():
    bytes_only = BytePairVocabulary([])
    pieces = bytes_only.split("é😀")
    assert list(bytes_only.stream(pieces)) == ["", "é", "", "", "", "😀"]
    assert list(bytes_only.stream(pieces[:4])) == ["", "é", "", "", "�"]
    assert bytes_only.decode([bytes_only.index[piece] for piece in pieces[1:3]]) == "��"


def test_pieces_of_shakespeare(play):
    text, vocabulary = play
    assert len(vocabulary) == 400
    pieces = vocabulary.split(text)
    assert vocabulary.split("Then the king\n") == ["The", "n", "Ġthe", "Ġ", "k", "ing", "Ċ"]
    assert len(pieces) < 0.6 * len(text)
    assert vocabulary.join(pieces) == text


def hugging_faces(vocabulary=None):
    """A byte-level BPE in the package `tokenizers`, of our merges or untrained, cut by its own regular expression"""
    tokenizers = pytest.importorskip("tokenizers")
    merges = {} if vocabulary is None else {"vocab": vocabulary.index, "merges": list(vocabulary.ranks)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(**merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return made


def test_the_package_tokenizers_learns_the_same_merges(play):
    text, vocabulary = play
    tokenizers, made = pytest.importorskip("tokenizers"), hugging_faces()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, min_frequency=2, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator([text], trainer)
    assert made.get_vocab() == vocabulary.index


def test_the_package_tokenizers_finds_the_same_ids(play):
    text, vocabulary = play
    made = hugging_faces(vocabulary)
    for part in (text[:20_000], TEXT):
        assert made.encode(part).ids == vocabulary.encode(vocabulary.split(part)).tolist()

    # Its letters and numbers are Unicode's \p{L} and \p{N}; Python's [^\W\d_] has ½ and Ⅷ among the letters. And
    # U+001C to U+001F are white space in Python only.
    same = st.characters(exclude_categories=["Cs", "Cn", "Co", "No", "Nl"], exclude_characters="\x1c\x1d\x1e\x1f")

    @given(st.text(same, max_size=40) | st.lists(st.sampled_from(text[:3000].split(" ")), max_size=9).map(" ".join))
    def agree(part):
        assert made.encode(part).ids == vocabulary.encode(vocabulary.split(part)).tolist()

    agree()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "None, expected a list of pairs"), (["a"], r"\['a'\], expected a list of pairs"), (7, "7, expected a list"),
        (["a b c"], "expected a list of pairs"), ([["a", "b"]], "expected a list of pairs"), ([7], "expected a list"),
        (["ab c"], r"\('ab', 'c'\) is no pair of bytes, or of earlier pieces"), (["a  b"], "expected a list"),
        (["bc a", "b c"], r"\('bc', 'a'\) is no pair of bytes"), ("ab", "expected a list of pairs"),
    ],
)  # fmt: skip
def test_what_are_no_merges(content, message):
    with pytest.raises(UserError, match=message):
        BytePairVocabulary.of(content)


@pytest.mark.parametrize("size", [255, 100_001, 300.0, "300", True])
def test_sizes_that_are_none(size):
    with pytest.raises(UserError, match="size is"):
        BytePairVocabulary.learn("a", size)

"""Words to integers and back (Task 6.1)."""

from mini_tf.errors import UserError
from mini_tf.text import SentenceVocabulary, Vocabulary, join, remarks_on, spaced, tokenize
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SPECIAL

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

QUOTES = """If by your art, my dearest father, you have put the wild waters in this roar, allay them.
Sir, are not you my father?"""


def test_words_punctuation_and_line_breaks_are_words():
    assert tokenize("Sir, are not you my father?\n") == ["Sir", ",", "are", "not", "you", "my", "father", "?", "\n"]
    assert tokenize("o'er-hang; 'tis “so”…") == ["o'er", "-", "hang", ";", "tis", "“", "so", "”", "…"]
    assert tokenize("") == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("so happy 😀 #win", "so happy 😀 # win"), ("a + b = c @me", "a + b = c @ me"), ("don’t", "don’t"),
        ("cafe\u0301 e\u0301te\u0301", "café été"), ("नमस्ते दुनिया", "नमस्ते दुनिया"), ("ภาษาไทยดี", "ภาษาไทยดี"),
        ("天气好。我们走，吧", "天气好 。 我们走 ， 吧"), ("(“a”) 50 %", "( “ a ” ) 50 %"), ("'tis & $ \u0301", "tis"),
    ],
)  # fmt: skip
def test_every_character_is_in_a_word(text, tokens):
    assert tokenize(text) == tokens.split()
    assert tokenize(join(tokenize(text))) == tokenize(text)


def test_what_is_left_out_is_said():
    text = "'tis 'twas rock & roll"
    assert remarks_on(text, tokenize(text)) == ["left out, as in Lab 6: 2 ', 1 &"]
    assert remarks_on("so happy 😀", tokenize("so happy 😀")) == []


def test_a_text_without_spaces_is_named():
    text = "。".join(chr(0x4E00 + i) * (2 + i % 5) for i in range(400))
    assert remarks_on(text, tokenize(text))[0].startswith("note: 400 of 799 words occur only once: is this text written")


def test_the_labs_two_quotes_have_24_different_words_and_father_is_the_eighth():
    vocabulary = Vocabulary(token for token in tokenize(QUOTES) if token != "\n")
    assert len(vocabulary) == 24
    assert vocabulary.index["father"] + 1 == 8
    assert vocabulary.index[","] + 1 == 5


def test_index_and_word_are_inverse():
    vocabulary = Vocabulary(tokenize(QUOTES))
    ids = vocabulary.encode(tokenize(QUOTES))
    assert ids.dtype == np.int64
    assert [vocabulary.words[i] for i in ids] == tokenize(QUOTES)
    assert vocabulary.decode(ids) == QUOTES
    assert "father" in vocabulary
    assert "mother" not in vocabulary


@given(st.text(st.sampled_from("ab1'.,!?;:- \n\t“”’(é_\u0301#😀。"), max_size=60))
def test_joined_words_are_the_same_words_again(text):
    tokens = tokenize(text)
    assert tokenize(join(tokens)) == tokens


@given(st.lists(st.sampled_from(["a", "b", "o'er", ",", ".", "-", "\n", "?"]), max_size=20), st.integers(0, 20))
def test_join_only_ever_appends(tokens, cut):
    assert join(tokens).startswith(join(tokens[:cut]))


def test_words_are_spaced_as_they_come():
    """Each as soon as it is there, and without a look at all the words before it."""
    given = iter(["\n", "a", "b", ",", "-", "c"])
    pieces = spaced(given)
    assert next(pieces) == "\n"
    assert next(pieces) == "a"
    assert next(given) == "b"
    assert list(pieces) == [",", "-", "c"]
    assert "".join(spaced(["a", "b", ",", "-", "c"])) == join(["a", "b", ",", "-", "c"]) == "a b,-c"


def test_unknown_words_are_named_with_their_neighbours():
    vocabulary = Vocabulary(tokenize(QUOTES))
    with pytest.raises(UserError, match=r"the vocabulary of 25 words lacks 2 words: .*'fathers' \(near: father.*'xyzzy'.*--unknown skip"):
        vocabulary.encode(["my", "fathers", "xyzzy"])
    assert vocabulary.decode(vocabulary.encode(["my", "xyzzy", "father"], unknown="skip")) == "my father"
    with pytest.raises(UserError, match="unknown='drop' is not an option"):
        vocabulary.encode([], unknown="drop")


def test_a_vocabulary_from_its_list_of_words():
    again = Vocabulary.of(["b", "a", ","])
    assert again.words == ["b", "a", ","]
    assert again.encode(["a", ","]).tolist() == [1, 2]
    assert len(Vocabulary.of([])) == 0
    assert SentenceVocabulary.of([*SPECIAL, "tom"], ["tom"]).names == {"tom"}
    assert ClassVocabulary.of([*SPECIAL, "good"], ["no", "yes"]).class_ids(["yes"]).tolist() == [1]


NO_LISTS_OF_WORDS = [
    ("a text", "are 'a text', expected a list of strings"), (None, "are None"), ({"a": 1}, r"are \{'a': 1\}"),
    (7, "are 7"), (["a", 1], "have 1 among them, expected strings"), (["a", None], "have None among them"),
    ([["a"]], r"have \['a'\] among them"), (["a", "b", "a"], "have 'a' twice, expected each once"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), NO_LISTS_OF_WORDS)
def test_what_is_no_list_of_words_is_refused(words, message):
    """As a damaged file of a run may have it: else all ids after a repeated word would stand for other words."""
    with_special = [*SPECIAL, *words] if isinstance(words, list) else words
    for read in (lambda: Vocabulary.of(words), lambda: SentenceVocabulary.of(with_special),
                 lambda: ClassVocabulary.of(with_special)):  # fmt: skip
        with pytest.raises(UserError, match=f"the words {message}"):
            read()
    with pytest.raises(UserError, match=f"the names {message}"):
        SentenceVocabulary.of(SPECIAL, words)
    with pytest.raises(UserError, match=f"the classes {message}"):
        ClassVocabulary.of(SPECIAL, words)


def test_an_iterator_of_words_is_encoded_whole():
    assert Vocabulary(["a", "b"]).encode(iter(["b", "a"])).tolist() == [1, 0]


@pytest.mark.parametrize("ids", [[0.0], [[0]], 0, "a", [True], [0, [1]], [10**30], None])
def test_what_is_no_row_of_ids_is_refused(ids):
    for vocabulary in (Vocabulary(["a", "b"]), SentenceVocabulary([["a"]])):
        with pytest.raises(UserError, match="ids have shape .*expected integers in one row"):
            vocabulary.decode(ids)


def test_very_long_unknown_words_are_named_in_short():
    with pytest.raises(UserError, match="1 word") as raised:
        Vocabulary(tokenize(QUOTES)).encode(["x" * 1_000_000])
    assert len(str(raised.value)) < 300


def test_ids_beyond_the_vocabulary_are_named():
    with pytest.raises(UserError, match="id 2 is not in the vocabulary, expected 0 to 1"):
        Vocabulary(["a", "b"]).decode([0, 2])


def test_the_labs_corpus_has_the_labs_numbers_and_survives_the_round_trip(lab_corpus):
    tokens, vocabulary, ids = lab_corpus
    assert len(tokens) == 292_072
    assert len(vocabulary) == 14_295
    assert [vocabulary.words[i] for i in ids] == tokens
    assert tokenize(vocabulary.decode(ids)) == tokens

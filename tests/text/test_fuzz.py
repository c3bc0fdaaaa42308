"""Any Unicode through words and back; co-occurrence against plain counting; corpora of any bytes."""

from mini_tf.data import read_corpus, read_labelled, read_pairs
from mini_tf.errors import UserError
from mini_tf.text import (
    SentenceVocabulary,
    Vocabulary,
    cooccurrence,
    eigenvector_embeddings,
    join,
    join_sentence,
    spaced,
    split_sentence,
    tokenize,
)
from mini_tf.text.sentences import SPECIAL

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=100)
ANY_TEXT = st.text(st.characters(), max_size=80) | st.text("aé'’-.,\n\t ½²_١שם\u0301\u200b\ud800\0", max_size=80)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True, scope="module")
def empty_folder(tmp_path_factory):
    """The tests run in an empty folder, which has to be empty afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("fuzz")
        patch.chdir(folder)
        yield
        assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("file") / "text.csv"


@FEW
@given(ANY_TEXT)
@example("\ud800 a\0b '")
def test_words_of_any_text_survive_the_round_trip(text):
    tokens = tokenize(text)
    assert tokenize(join(tokens)) == tokens
    assert "".join(spaced(iter(tokens))) == join(tokens)
    vocabulary = Vocabulary(tokens)
    ids = vocabulary.encode(tokens)
    assert ids.dtype == np.int64
    assert [vocabulary.words[i] for i in ids] == tokens
    assert vocabulary.decode(ids) == join(tokens)
    assert Vocabulary.of(vocabulary.words).index == vocabulary.index


@FEW
@given(ANY_TEXT, ANY_TEXT)
def test_prompts_of_any_text(corpus, prompt):
    vocabulary, tokens = Vocabulary(tokenize(corpus)), tokenize(prompt)
    known = [token for token in tokens if token in vocabulary]
    assert [vocabulary.words[i] for i in vocabulary.encode(tokens, unknown="skip")] == known
    if len(known) < len(tokens):
        with pytest.raises(UserError, match="the vocabulary of .* lacks "):
            vocabulary.encode(tokens)


@FEW
@given(ANY_TEXT, st.sampled_from(["french", "english"]))
def test_sentences_of_any_text(text, language):
    words = split_sentence(text, language)
    assert split_sentence(" ".join(words), language) == words
    assert isinstance(join_sentence(words, language=language), str)
    vocabulary = SentenceVocabulary([words])
    assert vocabulary.decode(vocabulary.encode(words)) == words


@FEW
@given(ANYTHING, ANYTHING)
def test_vocabularies_from_anything(words, ids):
    for read in (Vocabulary.of, SentenceVocabulary.of, lambda words: SentenceVocabulary.of(SPECIAL, words)):
        try:
            vocabulary = read(words)
        except UserError:
            continue
        assert len(set(vocabulary.words)) == len(vocabulary)
    try:
        text = Vocabulary(["a", "b"]).decode(ids)
    except UserError:
        return
    assert set(text) <= set("ab ")


@FEW
@given(
    st.integers(1, 6).flatmap(lambda c: st.tuples(st.just(c), st.lists(st.integers(0, c - 1), max_size=30))),
    st.integers(1, 20),
)
def test_cooccurrence_equals_plain_counting(c_and_ids, half):
    c, ids = c_and_ids
    expected = np.zeros((c, c), int)
    for t, i in enumerate(ids):
        for j in ids[max(t - half, 0) : t + half + 1]:
            expected[i, j] += 1
    np.testing.assert_array_equal(cooccurrence(ids, c, 2 * half).toarray(), expected)


@FEW
@given(st.lists(st.integers(-2, 4), max_size=8), ANYTHING, ANYTHING)
def test_cooccurrence_of_anything(ids, size, window):
    for arguments in ((np.array(ids, int), size), (np.array(ids, int), 4, window)):
        if any(type(number) is int and number > 100 for number in arguments[1:]):
            continue                                     # would be right, and take long
        try:
            C = cooccurrence(*arguments)
        except UserError:
            continue
        assert (C != C.T).nnz == 0


@FEW
@given(st.integers(2, 12).flatmap(lambda c: st.tuples(st.just(c), st.lists(st.integers(0, c - 1), max_size=30))))
def test_eigenvectors_of_any_short_text(c_and_ids):
    c, ids = c_and_ids
    C = cooccurrence(np.array(ids, dtype=np.int64), c, 4)
    try:
        values, V = eigenvector_embeddings(C, c - 1)
    except UserError:
        assert not ids
        return
    expected = np.linalg.eigvalsh(C.toarray())[::-1][: c - 1]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * expected[0])
    np.testing.assert_allclose(V.T @ V, np.eye(c - 1), atol=1e-10)


@FEW
@given(st.binary(max_size=40) | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b'text,label\n"a\0","b\n')
@example(b"\xff\xfea\0")
@example(b"\t\n\t")
def test_files_of_any_bytes(file, data):
    file.write_bytes(data)
    for read, kind in ((read_corpus, str), (read_pairs, list), (read_labelled, list)):
        try:
            found, message = read(file), None
        except UserError as error:
            found, message = None, str(error)
        assert isinstance(found, kind) if message is None else str(file) in message

"""Co-occurrence counts, compared with a double loop over the corpus in plain Python."""

import sys
from collections import Counter

import mini_tf.text.cooccurrence  # noqa: F401  (loads the module; the package has the function under its name)
from mini_tf.errors import UserError
from mini_tf.kernels.compiling import Loop
from mini_tf.text import cooccurrence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

module = sys.modules["mini_tf.text.cooccurrence"]
corpora = st.integers(1, 8).flatmap(
    lambda size: st.tuples(st.lists(st.integers(0, size - 1), max_size=40), st.just(size)))
windows = st.sampled_from([2, 4, 10, 60, 10**9])


def reference(ids, size, window):
    """The formula as written: a centre t, a neighbour t + u, a product of two indicators."""
    pairs = Counter()
    for t in range(len(ids)):
        for s in range(max(t - window // 2, 0), min(t + window // 2 + 1, len(ids))):
            pairs[ids[t], ids[s]] += 1
    C = np.zeros((size, size), dtype=np.int64)
    for (i, j), count in pairs.items():
        C[i, j] = count
    return C


@given(corpora, windows)
def test_equals_plain_python(corpus, window):
    ids, size = corpus
    C = cooccurrence(np.array(ids, dtype=np.int64), size, window)
    np.testing.assert_array_equal(C.toarray(), reference(ids, size, window))


@pytest.mark.parametrize(("ids", "expected"), [
    ([], [[0, 0], [0, 0]]),
    ([1], [[0, 0], [0, 1]]),
    ([0, 1], [[1, 1], [1, 1]]),
    ([0, 0, 0], [[9, 0], [0, 0]]),         # 3 words, each in the windows of all 3
])
def test_small_corpora_by_hand(ids, expected):
    np.testing.assert_array_equal(cooccurrence(np.array(ids, dtype=int), 2).toarray(), expected)


def test_empty_vocabulary():
    assert cooccurrence(np.array([], dtype=int), 0).shape == (0, 0)


@given(corpora, windows, st.integers(1, 9))
def test_blocks_count_like_the_whole(corpus, window, block):
    """The same with many small blocks and pieces; in real use they are millions of words long."""
    ids, size = corpus
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        patch.setattr(module, "PIECE", block)
        np.testing.assert_array_equal(cooccurrence(ids, size, window).toarray(), reference(ids, size, window))


@pytest.fixture(scope="module")
def zipf():
    """50,000 words of a vocabulary of 2,000, a few of them very frequent, as in a language."""
    return np.random.default_rng(0).zipf(1.3, 50_000) % 2000


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_any_number_of_threads_counts_the_same(zipf, threads, monkeypatch):
    expected = sum_of_shifts(zipf, 2000, 10)
    monkeypatch.setattr(module, "PIECE", 1000)
    monkeypatch.setattr(module, "thread_count", lambda: threads)
    assert_same(cooccurrence(zipf, 2000), expected)


def test_symmetric_sorted_int64(zipf):
    C = cooccurrence(zipf, 2000)
    assert isinstance(C, sparse.csr_array)
    assert C.dtype == np.int64
    assert C.has_canonical_format
    assert C.data.min() > 0                                                       # no zeros stored
    assert (C - C.T).nnz == 0
    assert (C.diagonal() >= np.bincount(zipf, minlength=2000)).all()
    assert C.sum() == 11 * len(zipf) - 2 * (5 + 4 + 3 + 2 + 1)                    # windows cut at both ends


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64, ">i4"])
def test_any_integer_type_even_read_only_and_strided(dtype):
    ids = np.array([1, 9, 0, 9, 2, 9, 1, 9], dtype=dtype)[::2]
    ids.flags.writeable = False
    np.testing.assert_array_equal(cooccurrence(ids, 3, 2).toarray(), reference([1, 0, 2, 1], 3, 2))
    assert ids.tolist() == [1, 0, 2, 1]


def test_memory_follows_the_pairs_not_the_square_of_the_vocabulary():
    C = cooccurrence(np.array([0, 399_999, 5, 0]), 400_000)                       # c² entries would take 1.3 TB
    assert C.shape == (400_000, 400_000)
    assert C.nnz == 9
    assert C[0, 0] == 4


def test_many_blocks_add_up(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 300)
    ids = np.random.default_rng(1).integers(0, 300, 20_000)                       # 66 blocks
    assert_same(cooccurrence(ids, 300), sum_of_shifts(ids, 300, 10))


@pytest.mark.parametrize("window", [1, 7])
def test_window_must_be_even(window):
    with pytest.raises(UserError, match=rf"window is {window}, expected an? (even|whole) number"):
        cooccurrence(np.array([0, 1]), 2, window)


@pytest.mark.parametrize(("given_", "message"), [
    ({"window": 10.0}, "window is 10.0, expected a whole number of at least 2"),
    ({"window": True}, "window is True"),
    ({"window": "10"}, "window is '10'"),
    ({"window": 0}, "window is 0, expected a whole number of at least 2"),
    ({"size": None}, "size is None"),
    ({"size": -1}, "size is -1"),
    ({"size": 2**31}, "size is 2147483648"),
])
def test_sizes_that_do_not_fit(given_, message):
    with pytest.raises(UserError, match=message):
        cooccurrence(**{"ids": np.array([0, 1]), "size": 2, **given_})


@pytest.mark.parametrize(("ids", "message"), [
    (np.array([0, 1, 5, 6]), "word 2 has the id 5, expected ids from 0 to 2"),
    (np.array([0, -1]), "word 1 has the id -1"),
    ([0, 1, 2, 3], "word 3 has the id 3"),
    (np.array([2**40 + 1]), f"word 0 has the id {2**40 + 1}"),                    # not taken modulo 2³²
    (np.array([2**64 - 1], dtype=np.uint64), "has the id 18446744073709551615"),
    (np.array([1.0, 2.0]), "dtype float64"),
    (np.array([True, False]), "bool"),
    (np.array(["to", "be"]), r"dtype <U2, expected integers.*vocabulary\.encode"),
    (np.array([[0, 1], [1, 0]]), r"shape \(2, 2\)"),
    (7, r"shape \(\)"),
    ("to be", r"shape \(\)"),
])
def test_ids_that_do_not_fit(ids, message):
    with pytest.raises(UserError, match=message):
        cooccurrence(ids, 3)


def test_counts_where_no_cache_can_be_written(monkeypatch):
    """As in an installation that belongs to another user, with no home folder."""
    import numba

    njit = numba.njit

    def refuses(*signature, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*signature, **options)

    monkeypatch.setattr(numba, "njit", refuses)
    for loop in ("sort_by_word", "count_rows"):
        fresh = Loop(getattr(module, loop).python, getattr(module, loop).signature)
        monkeypatch.setattr(module, loop, fresh)
    np.testing.assert_array_equal(cooccurrence(np.array([0, 1, 0]), 2).toarray(), [[4, 2], [2, 1]])


def test_the_loops_are_plain_python(monkeypatch):
    """A reader can step through them: uncompiled, they count the same."""
    for loop in ("sort_by_word", "count_rows"):
        monkeypatch.setattr(module, loop, getattr(module, loop).python)
    ids = np.random.default_rng(2).integers(0, 5, 60)
    np.testing.assert_array_equal(cooccurrence(ids, 5, 6).toarray(), reference(ids.tolist(), 5, 6))


def test_the_labs_corpus(lab_corpus):
    words, vocabulary, ids = lab_corpus
    C = cooccurrence(ids, len(vocabulary))

    assert C.shape == (14_295, 14_295)
    assert C.sum() == 11 * 292_072 - 30
    assert (C - C.T).nnz == 0
    assert (C.diagonal() >= np.bincount(ids)).all()
    for centre, neighbour in [("king", "king"), ("my", "lord"), ("lord", "my"), ("\n", "\n"), ("\n", "king")]:
        count = sum(words[max(t - 5, 0):t + 6].count(neighbour) for t, word in enumerate(words) if word == centre)
        assert count > 0
        i, j = vocabulary.encode([centre, neighbour])
        assert C[i, j] == count, (centre, neighbour)


def sum_of_shifts(ids, size, window):
    """C in another way: the corpus paired with itself shifted by u, for each u; SciPy adds up repeated pairs."""
    C = sparse.csr_array((size, size), dtype=np.int64)
    for u in range(-(window // 2), window // 2 + 1):
        here, there = ids[max(-u, 0):len(ids) - max(u, 0)], ids[max(u, 0):len(ids) - max(-u, 0)]
        C = C + sparse.coo_array((np.ones(len(here), dtype=np.int64), (here, there)), shape=(size, size)).tocsr()
    return C


def assert_same(C, expected):
    assert C.shape == expected.shape
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(C, part), getattr(expected, part), err_msg=part)

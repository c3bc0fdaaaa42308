"""Eigenvectors, compared with NumPy's decomposition of the whole matrix; and what they keep of a word."""

import sys
from functools import cache

import mini_tf.text.eigenvectors  # noqa: F401
from mini_tf.errors import UserError
from mini_tf.text import cooccurrence, eigenvector_embeddings
from mini_tf.text.eigenvectors import captured_energy, pca_coefficients, reconstruct, word_energies

import numpy as np
import pytest
from scipy import sparse

module = sys.modules["mini_tf.text.eigenvectors"]


def language(c, words=20_000, seed=0):
    """Words of a made-up corpus: a few very frequent, most of them rare."""
    return np.random.default_rng(seed).zipf(1.2, words) % c


@cache
def decomposed(c):
    C = cooccurrence(language(c), c)
    return C, *np.linalg.eigh(C.toarray().astype(float))


@pytest.fixture(scope="module")
def ids():
    return language(600)


@pytest.fixture(scope="module")
def C(ids):
    return cooccurrence(ids, 600)           # large enough for Lanczos


@pytest.fixture(scope="module")
def embeddings(C):
    """embeddings(n): the n eigenvalues and eigenvectors of C, computed once for each n"""
    return cache(lambda n: eigenvector_embeddings(C, n))


@pytest.mark.parametrize(("c", "n"), [
    (2, 1), (5, 1), (5, 4), (60, 10), (500, 16),      # decomposed as a dense array
    (501, 1), (501, 3), (501, 64),                    # Lanczos
    (501, 250), (501, 251), (501, 500),               # the border between them, and nearly all
])
def test_equals_numpy(c, n):
    C, every_value, every_V = decomposed(c)
    values, V = eigenvector_embeddings(C, n)

    assert values.shape == (n,)
    assert V.shape == (c, n)
    assert values.dtype == V.dtype == np.float64
    scale = every_value.max()
    np.testing.assert_allclose(values, every_value[::-1][:n], rtol=0, atol=1e-12 * scale)
    assert (np.diff(values) <= 1e-12 * scale).all()
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-10)
    assert np.linalg.norm(C @ V - V * values, axis=0).max() < 1e-12 * scale

    gaps = -np.diff(every_value[::-1], prepend=np.inf, append=-np.inf)    # before each value, and after the last
    alone = np.minimum(gaps[:-1], gaps[1:])[:n] > 1e-3 * scale                    # otherwise any rotation is as good
    overlap = np.abs((V * every_V[:, ::-1][:, :n]).sum(axis=0))
    np.testing.assert_allclose(overlap[alone], 1, atol=1e-8)                      # the same directions, up to sign


def test_largest_by_value_not_by_magnitude():
    values, _ = eigenvector_embeddings(np.diag([-9.0, 1.0, 2.0, -7.0]), 2)
    assert values.tolist() == [2, 1]


def test_negative_values_are_never_taken_before_positive_ones_by_lanczos():
    diagonal = np.concatenate([np.arange(1, 301), -2.0 * np.arange(1, 401)])
    values, _ = eigenvector_embeddings(sparse.diags_array(diagonal).tocsr(), 4)
    np.testing.assert_allclose(values, [300, 299, 298, 297])


def test_repeated_eigenvalues():
    C = sparse.diags_array(np.repeat([3.0, 1.0], 400)).tocsr()
    values, V = eigenvector_embeddings(C, 5)
    np.testing.assert_allclose(values, 3)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-12)


def sentence(seed, words):
    """The co-occurrence matrix of a short text of its own words"""
    return cooccurrence(np.random.default_rng(seed).integers(0, words, 40), words, window=4).toarray()


@pytest.mark.parametrize(("C", "n"), [
    (np.kron(np.eye(350), [[0, 1], [1, 0]]), 20),                 # 350 eigenvalues are 1, 350 are −1
    (np.kron(np.eye(350), [[0, 1], [1, 0]]), 300),
    (np.kron(np.eye(120), sentence(0, 6)), 200),                  # 120 texts alike, without a word in common
    (np.kron(np.eye(120), sentence(1, 6)), 200),
    (np.kron(np.eye(180), sentence(0, 4)), 200),
    (np.ones((700, 700)) - np.eye(700), 20),                      # one is 699, the others −1: all words are neighbours
    (-np.eye(600), 20),
    (np.diag(np.repeat([2.0, 0.0], [30, 570])), 60),
    (np.diag(np.repeat([3.0, 1.0, 0.0, -1.0], [132, 97, 137, 135])), 235),      # ARPACK alone leaves out all of the 0
    (np.diag(np.repeat([0.0, -3.0], [300, 301])), 20),
])
def test_every_copy_of_a_repeated_eigenvalue_is_found(C, n):
    expected = np.linalg.eigvalsh(C)[::-1][:n]
    values, V = eigenvector_embeddings(sparse.csr_array(C), n)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * abs(C).max())
    np.testing.assert_allclose(V.T @ V, np.eye(n), atol=1e-10)


@pytest.mark.parametrize("lost", [0, 3])
def test_an_eigenvector_that_one_iteration_misses_is_found_by_the_next(C, lost, monkeypatch):
    expected = eigenvector_embeddings(C, 12)
    eigsh, calls = module.eigsh, []

    def forgetful(A, k, **options):
        calls.append(k)
        if len(calls) > 1:
            return eigsh(A, k, **options)
        values, V = eigsh(A, k + 1, **options)                    # the first time, without one of the largest
        return np.delete(values, k - lost), np.delete(V, k - lost, axis=1)

    monkeypatch.setattr(module, "eigsh", forgetful)
    values, V = eigenvector_embeddings(C, 12)
    np.testing.assert_allclose(values, expected[0])
    np.testing.assert_allclose(V, expected[1], atol=1e-9)


@pytest.mark.parametrize("n", [4, 300])
def test_the_same_every_time(C, embeddings, n):
    first, second = embeddings(n), eigenvector_embeddings(C.copy(), n)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_the_same_every_time_where_eigenvalues_repeat():
    """The iteration runs out of directions and draws new ones at random."""
    pairs_of_twins = sparse.csr_array(np.kron(np.eye(300), np.ones((2, 2))))      # 300 eigenvalues are 2, 300 are 0
    first, second = eigenvector_embeddings(pairs_of_twins, 5), eigenvector_embeddings(pairs_of_twins, 5)
    np.testing.assert_allclose(first[0], 2)
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize("n", [20, 300])
def test_the_entry_of_largest_magnitude_is_positive(embeddings, n):
    _, V = embeddings(n)
    largest = V[np.abs(V).argmax(axis=0), np.arange(n)]
    assert (largest > 0).sum() >= n - 2              # a tie up to rounding may go to the first
    assert (V.max(axis=0) >= (1 - 1e-6) * -V.min(axis=0)).all()


def test_a_tie_goes_to_the_first_entry():
    _, V = eigenvector_embeddings(np.array([[1.0, -1.0], [-1.0, 1.0]]), 1)        # (1, −1)/√2 or its opposite
    np.testing.assert_allclose(V[:, 0], [0.5**0.5, -(0.5**0.5)])


def test_rows_lie_together_in_memory(embeddings):
    """Rows are looked up as embeddings, and safetensors stores only C-contiguous arrays as they are."""
    values, V = embeddings(4)
    assert V.flags.c_contiguous
    assert values.flags.c_contiguous


def test_the_matrix_is_left_alone(C):
    before = C.copy()
    eigenvector_embeddings(C, 3)
    assert C.dtype == np.int64
    np.testing.assert_array_equal(C.data, before.data)


@pytest.mark.parametrize(("C", "n", "message"), [
    (np.ones((2, 3)), 1, r"shape \(2, 3\).*square"),
    (np.ones(3), 1, r"shape \(3,\).*square"),
    (np.array([[1, 2], [0, 1]]), 1, r"not symmetric: C\[0, 1\] is 2 and C\[1, 0\] is 0.*C\.T"),
    (np.zeros((3, 3)), 1, "only zeros"),
    (sparse.csr_array((600, 600), dtype=np.int64), 1, "only zeros"),
    (np.array([[1, np.nan], [np.nan, 1]]), 1, "not a number"),
    (np.array([[np.inf, 0], [0, 1]]), 1, "infinite"),
    (np.eye(3), 3, "n is 3, of 3 words.*n < 3"),
    (np.eye(3), 0, "n is 0"),
    (np.eye(3), -1, "n is -1"),
    (np.eye(3), 2.0, "n is 2.0, expected a whole number"),
])
def test_bad_input(C, n, message):
    with pytest.raises(UserError, match=message):
        eigenvector_embeddings(C, n)


def test_rounding_is_not_asymmetry():
    C = np.array([[1.0, 0.1 + 0.2], [0.3, 1.0]])
    assert eigenvector_embeddings(C, 1)[0] == pytest.approx(1.3)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-150, 1e150, 1e300])
def test_the_size_of_the_entries_does_not_matter(size):
    """Lanczos iteration takes norms, whose squares would underflow or overflow."""
    B = np.random.default_rng(0).standard_normal((600, 600))
    values, V = eigenvector_embeddings(B + B.T, 5)
    scaled, scaled_V = eigenvector_embeddings((B + B.T) * size, 5)
    np.testing.assert_allclose(scaled / size, values, rtol=1e-10)
    np.testing.assert_allclose(scaled_V, V, atol=1e-8)


def test_eigenvalues_close_together_are_found_as_eigh_finds_them(monkeypatch):
    """Of a negative definite matrix the largest eigenvalues lie close together near 0: the iteration would go on and on."""
    B = np.random.default_rng(0).standard_normal((700, 700))
    calls, dense = [], module._dense
    monkeypatch.setattr(module, "_dense", lambda C, n: calls.append(n) or dense(C, n))
    values, _ = eigenvector_embeddings(-B @ B.T, 2)
    assert calls == [2]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(-B @ B.T)[:-3:-1], atol=1e-8)


def test_a_wrong_decomposition_is_not_returned(C, monkeypatch):
    eigsh = module.eigsh

    def inaccurate(*arguments, **options):
        if not options.get("return_eigenvectors", True):
            return eigsh(*arguments, **options)
        values, V = eigsh(*arguments, **options)
        return values * (1 + 1e-6), V

    monkeypatch.setattr(module, "eigsh", inaccurate)
    with pytest.raises(np.linalg.LinAlgError, match="expected at most 1e-8"):
        eigenvector_embeddings(C, 4)


@pytest.mark.parametrize("n", [1, 7, 64])
def test_mean_energy_over_types_is_n_by_c(embeddings, ids, n):
    """The trace of V Vᵀ is n, whatever the corpus; weighted by how often words occur, the mean is far above n/c."""
    _, V = embeddings(n)
    assert word_energies(V).sum() == pytest.approx(n)
    assert captured_energy(V) == pytest.approx(n / 600)
    counts = np.bincount(ids, minlength=600)
    assert captured_energy(V, counts) == pytest.approx((word_energies(V)[ids]).mean())
    assert captured_energy(V, counts) > 5 * n / 600
    assert captured_energy(V, np.full(600, 3)) == pytest.approx(n / 600)


def test_weighted_energy_by_hand():
    V = np.array([[1, 0], [0, 0.6], [0, 0.8]])                                    # energies 1, 0.36, 0.64
    np.testing.assert_allclose(word_energies(V), [1, 0.36, 0.64])
    assert captured_energy(V) == pytest.approx(2 / 3)
    assert captured_energy(V, [7, 2, 1]) == pytest.approx((7 + 0.72 + 0.64) / 10)


def test_reconstruction(embeddings):
    _, V = embeddings(40)
    words = np.array([3, 0, 599])
    e = np.eye(600)[words]                                                        # (3, c)
    np.testing.assert_allclose(pca_coefficients(V, words), e @ V)
    np.testing.assert_allclose(reconstruct(V, words), e @ V @ V.T)
    error = ((e - reconstruct(V, words)) ** 2).sum(axis=1)
    np.testing.assert_allclose(error, 1 - word_energies(V)[words], atol=1e-12)
    assert pca_coefficients(V, 5).shape == (40,)
    assert reconstruct(V, 5).shape == (600,)


def test_nearly_all_eigenvectors_recover_nearly_everything():
    C = cooccurrence(language(50), 50)
    _, V = eigenvector_embeddings(C, 49)
    assert captured_energy(V) == pytest.approx(49 / 50)


@pytest.mark.parametrize("ids", [-1, 4, [0, 4], 0.0, [True], "word"])
def test_words_outside_the_vocabulary(ids):
    with pytest.raises(UserError, match="expected integers in 0 … 3"):
        reconstruct(np.eye(4)[:, :2], ids)


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, -1, 0], [0, 0, 0, 0], 1])
def test_counts_that_do_not_fit(counts):
    with pytest.raises(UserError, match=r"expected \(4,\)"):
        captured_energy(np.eye(4)[:, :2], counts)


def test_vectors_the_wrong_way_round():
    with pytest.raises(UserError, match=r"shape \(2, 4\).*transpose"):
        word_energies(np.eye(4)[:2])


def test_the_labs_corpus_keeps_n_by_c_of_its_different_words_and_most_of_its_text(lab_corpus):
    _, vocabulary, ids = lab_corpus
    C = cooccurrence(ids, len(vocabulary))
    values, V = eigenvector_embeddings(C, 64)
    assert np.linalg.norm(C @ V - V * values, axis=0).max() <= 1e-8 * values[0]
    assert captured_energy(V) == pytest.approx(64 / 14_295) == pytest.approx(0.00448, abs=5e-6)
    assert captured_energy(V, np.bincount(ids)) > 0.5

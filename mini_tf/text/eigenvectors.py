"""Eigenvector embeddings of words, and how much of a word they keep (principal component analysis).

C is the co-occurrence matrix of c words, the columns of V (c, n) are its first n eigenvectors, and e_i is the
one-hot vector of word i: a one in place i, zeros elsewhere. Then

    x_i = Vᵀ e_i        the embedding of word i: row i of V, n numbers instead of c
    ẽ_i = V x_i         word i reconstructed from its embedding; ẽ_i = e_i only if all c eigenvectors are kept

Source: ESE-2000 Lab 6, Task 6.3 and its section on principal component analysis.
"""

from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

SMALL, MEDIUM = 500, 10_000          # words: up to SMALL, C is decomposed whole; up to MEDIUM, if iterating fails


def eigenvector_embeddings(C: sparse.sparray | Array, n: int) -> tuple[Array, Array]:
    """The n largest eigenvalues of C and their eigenvectors.

    C v_k = λ_k v_k,   λ_1 ≥ λ_2 ≥ … ≥ λ_n,   ‖v_k‖ = 1

    C (c, c) symmetric, a SciPy sparse array or a NumPy array; 1 ≤ n < c
    →  λ (n,),  V (c, n), both float64: column k of V is eigenvector k, row i is the embedding of word i

    The same C always gives the same V: the iteration starts from a fixed vector, and of an eigenvector's two
    possible signs, the one is taken that makes its entry of largest magnitude positive. (Where an eigenvalue
    repeats, any orthonormal basis of its eigenvectors is as good as another.) The λ are sorted by value, not by
    magnitude: C has negative eigenvalues too, and they come last.

    Lanczos iteration (ARPACK, through SciPy) on the sparse C takes the memory of C in float64 and 3.5 times that
    of V; see `_lanczos`. A matrix that is small, or of which at least half of the eigenvectors are wanted, or whose
    iteration does not converge, is decomposed as a dense (c, c) array.

    Raises UserError if C is not square, symmetric and finite or has only zeros, and if n is out of range;
    LinAlgError if some ‖C v_k − λ_k v_k‖ exceeds 1e-8 of max_i Σ_j |C_ij|, which no |λ| exceeds: what is returned
    has been checked, also that no larger eigenvalue is left out.

    Source: ESE-2000 Lab 6, Task 6.3, which takes n = 256. (It calls V "n × n" in one place; V is c × c with all
    the eigenvectors, c × n with the first n.)
    """
    C = _checked_matrix(C)      # float64, converted once: an int64 matrix would be converted for every product
    c = C.shape[0]
    check_whole(n=n)
    if n >= c:
        raise UserError(f"n is {n}, of {c} words; expected n < {c}, fewer dimensions than there are words: try a "
                        "corpus with more different words, or a smaller n (mini-tf train --set n=…)")  # fmt: skip

    scale = 2.0 ** (np.frexp(abs(C).max())[1] - 1)       # a power of 2, so that no digit is lost: squares of entries
    C = C / scale                                        # below 1e-154 are 0, those of 1e155 are infinite
    try:
        values, V = _dense(C, n) if c <= max(SMALL, 2 * n) else _lanczos(C, n)
    except ArpackNoConvergence:                          # eigenvalues that lie close together
        if c > MEDIUM:
            raise
        values, V = _dense(C, n)

    values, V = values[::-1].copy(), _with_fixed_signs(V[:, ::-1])
    worst, bound = np.linalg.norm(C @ V - V * values, axis=0).max(), _bound(C)
    if not worst <= 1e-8 * bound:
        raise np.linalg.LinAlgError(
            f"‖C v − λ v‖ is {worst:.1e} for one of the {n} eigenvectors; expected at most 1e-8 of the largest sum of "
            f"a row of |C|, {bound:.1e}. Try a smaller n, or check that the entries of C differ less wildly in size")
    return values * scale, V


def _dense(C, n):
    """As `_lanczos`, from all of C"""
    c = C.shape[0]
    return eigh(C.toarray(), subset_by_index=(c - n, c - 1))


def _lanczos(C, n):
    """The n largest eigenvalues of C, ascending, and their eigenvectors; one that repeats, as often as it repeats.

    Lanczos iteration combines start, C·start, C²·start, …, which have only one direction for each different eigenvalue:
    it may miss the other eigenvectors of one that repeats. So what it found is taken out,

        A = C + 2·bound·I − V·diag(λ + 2·bound)·Vᵀ,    bound = max_i Σ_j |C_ij| ≥ |every eigenvalue of C|

    and it starts again from another vector, until nothing above λ_n is left. A has the eigenvectors of C: those found
    with the eigenvalue 0, the others with λ + 2·bound, which is far from 0, where ARPACK's test of convergence fails.
    """
    random = np.random.default_rng(0)
    c, bound = C.shape[0], _bound(C)
    values, V = np.empty(0), np.empty((c, 0))
    most = 100 if c <= MEDIUM else None                  # restarts
    A = LinearOperator(C.shape, lambda x: C @ x + 2 * bound * x - V @ ((values + 2 * bound) * (V.T @ x)), dtype=C.dtype)

    def largest(k, **options):
        start = random.standard_normal(c)
        start -= V @ (V.T @ start)
        # Where eigenvalues repeat, the iteration runs out of directions and draws new ones at random: seeded, too.
        # A basis of 1.5 k vectors, not SciPy's 2 k: the fastest of those measured at k = 64 and 256.
        return eigsh(A, k, which="LA", v0=start, ncv=max(20, 3 * k // 2), maxiter=most, rng=random, **options)

    more = n
    while True:
        try:
            found, new_V = largest(more)
        except ArpackError as error:     # of so few different eigenvalues it cannot find so many at once
            if isinstance(error, ArpackNoConvergence) and c <= MEDIUM:
                raise
            if more == 1:
                raise np.linalg.LinAlgError(f"ARPACK finds no eigenvector of C {C.shape}: {error}") from None
            more //= 2
            continue
        values, V = np.append(values, found - 2 * bound), np.hstack([V, new_V])
        order = np.argsort(values, kind="stable")[-n:]
        values, V = values[order], V[:, order]
        if len(values) == n:
            # Five digits show whether anything is left, in a fraction of the time.
            tol = max(1e-5 * abs(values[0]) / (values[0] + 2 * bound), 1e-14)
            left = largest(1, tol=tol, return_eigenvectors=False)[0] - 2 * bound
            if left <= values[0] + 1e-10 * bound:
                return values, V
            more = 1


def _bound(C):
    """max_i Σ_j |C_ij|, which no |λ| exceeds"""
    return abs(C).sum(axis=0).max()


def pca_coefficients(V: Array, ids: ArrayLike) -> Array:
    """y_ik = v_kᵀ e_i = V_ik, the first n coefficients of word i in the eigenvector basis

    V (c, n), ids (…) integers in 0 … c − 1  →  y (…, n): e_i is one-hot, so y_i is row i of V.
    With n < c these are the embeddings x_i. Raises UserError for a word outside the vocabulary.
    """
    V, ids = _checked_vectors(V), np.asarray(ids)
    if ids.dtype.kind not in "iu" or (ids.size and not 0 <= ids.min() <= ids.max() < len(V)):
        raise UserError(f"got the word ids {ids}; expected integers in 0 … {len(V) - 1}, one for each row of V "
                        f"{V.shape}: try the vocabulary that C was counted with")
    return V[ids]


def reconstruct(V: Array, ids: ArrayLike) -> Array:
    """ẽ_i = V Vᵀ e_i, what the first n eigenvectors recover of word i

    V (c, n), ids (…)  →  ẽ (…, c). The error is ‖e_i − ẽ_i‖² = 1 − ‖ẽ_i‖² = 1 − Σ_k V_ik².
    """
    return pca_coefficients(V, ids) @ V.T


def word_energies(V: Array) -> Array:
    """‖ẽ_i‖² = Σ_k V_ik², the part of ‖e_i‖² = 1 that the first n eigenvectors keep, 0 to 1

    V (c, n)  →  (c,). The sum over all words is the trace of V Vᵀ, which is n whatever the corpus.
    """
    V = _checked_vectors(V)
    return (V * V).sum(axis=1)


def captured_energy(V: Array, counts: ArrayLike | None = None) -> float:
    """The mean of ‖ẽ_i‖² = Σ_k V_ik² over the words of the vocabulary, or over those of the corpus

    V (c, n)  →  n/c: every distinct word counts once, and the mean does not depend on the corpus.
    V (c, n), counts (c,), how often each word occurs  →  Σ_i counts_i ‖ẽ_i‖² / Σ_i counts_i

    Raises UserError if counts do not fit V, are negative or all zero.

    The lab says that ẽ_i ≈ e_i for most word vectors. For most distinct words this is not so: with n = 256 and
    c = 14,295 the first mean is 0.018. The second is 0.71 on the lab's corpus: frequent words make up most of a
    text, and the eigenvectors of the largest eigenvalues represent them best.
    """
    energies = word_energies(V)
    if counts is None:
        return float(energies.mean())
    counts = np.asarray(counts)
    if counts.shape != energies.shape or counts.min() < 0 or not counts.sum() > 0:
        raise UserError(f"counts have shape {counts.shape}; expected {energies.shape}, how often each word "
                        "occurs, none of them negative and not all zero: try np.bincount(ids, minlength=len(V))")
    return float(energies @ counts / counts.sum())


def _with_fixed_signs(V):
    """V with signs that make each column's entry of largest magnitude positive; in a tie, up to rounding, the first."""
    magnitude = np.abs(V)
    largest = np.argmax(magnitude >= (1 - 1e-6) * magnitude.max(axis=0), axis=0)       # (n,)
    return np.ascontiguousarray(V * np.sign(V[largest, np.arange(V.shape[1])]))


def _checked_matrix(C):
    if len(C.shape) != 2 or C.shape[0] != C.shape[1]:
        raise UserError(f"C has shape {C.shape}; expected a square matrix, as from cooccurrence(ids, size)")
    C = sparse.csr_array(C, dtype=np.float64)
    if not np.isfinite(C.data).all():
        raise UserError("C has entries that are infinite or not a number; expected counts, or finite functions of them")
    if not C.data.any():
        raise UserError("C has only zeros: no word occurs near another. Count a corpus that has words in it")
    difference = abs(C - C.T).tocoo()
    if difference.data.max(initial=0) > 1e-12 * abs(C).max():
        i, j = (int(index[difference.data.argmax()]) for index in difference.coords)
        raise UserError(f"C is not symmetric: C[{i}, {j}] is {C[i, j]:g} and C[{j}, {i}] is {C[j, i]:g}. "
                        "Eigenvectors here need C = Cᵀ: try (C + C.T) / 2")
    return C


def _checked_vectors(V):
    V = np.asarray(V)
    if V.ndim != 2 or V.shape[0] < V.shape[1]:
        raise UserError(f"V has shape {V.shape}; expected (c, n) with a row for each word and n ≤ c: "
                        "try the second result of eigenvector_embeddings, or its transpose")
    return V

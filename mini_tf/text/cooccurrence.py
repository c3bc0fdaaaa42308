"""The co-occurrence matrix of a corpus: which words occur near which, and how often.

Every pair of neighbours is counted once, by the later word of the two. With i, j word ids, w_t the t-th
word of the corpus and u the distance back from it,

    S_ij = Σ_t Σ_{u=1}^{W/2} 1(w_t = i) · 1(w_{t−u} = j),        C = S + Sᵀ + diag(count of each word)

S has each pair as seen from its later word, Sᵀ the same pairs as seen from the earlier word, and the
diagonal counts each word as its own neighbour. `cooccurrence` cuts the corpus into blocks and adds up
their S, `count_pairs` counts one block on all processor cores, and the two loops at the top of the file
do the counting. They are ordinary Python; Numba compiles them to machine code on first use. Where it cannot,
SciPy adds up sparse matrices instead.
"""

from concurrent.futures import ThreadPoolExecutor

from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.kernels.compiling import compiled, why_uncompiled
from mini_tf.kernels.threads import thread_count
from mini_tf.metrics import checked_ids
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

BLOCK = 1 << 21     # words counted at a time: some 40 MB of working memory, about what fits into the caches
PIECE = 1 << 18     # pairs a thread counts before it takes the next piece: a few milliseconds of work


# uint32 for words and positions: half the memory traffic of int64, and Numba need not check for negative indices.
@compiled("void(uint32[::1], int64, int64[::1], uint32[::1])")
def sort_by_word(words: Array, first: int, ends: Array, positions: Array) -> None:
    """Write the positions t ≥ `first` of each word i to positions[starts[i]:starts[i + 1]], in ascending order.

    The second half of a counting sort. `ends` comes in as starts[1:], where each word's positions end.
    They are filled in from the back, which counts it down to starts[:-1].
    """
    for t in range(len(words) - 1, first - 1, -1):
        i = words[t]
        ends[i] -= 1
        positions[ends[i]] = t


@compiled("int64(uint32[::1], int64[::1], uint32[::1], int64, int64, int64, int64[::1], int32[::1], int64[::1], "
          "int64[::1])")
def count_rows(
    words: Array, starts: Array, positions: Array, row: int, stop: int, reach: int, counter: Array, columns: Array,
    counts: Array, lengths: Array,
) -> int:  # fmt: skip
    """Count the rows `row` … `stop` − 1 of S; return how many entries they have.

    Row by row, `columns` gets the ids j that occur within `reach` words before word i, `counts` how often
    each does, and lengths[i] how many there are. `counter` is the current row as a dense array, a number for
    each word of the vocabulary: all zeros at the start, and again at the end.
    """
    used = 0
    for i in range(row, stop):
        begin = used
        for t in positions[starts[i]:starts[i + 1]]:
            for j in words[t - min(t, reach):t]:
                if counter[j] == 0:         # the first time in this row
                    columns[used] = j
                    used += 1
                counter[j] += 1

        for k in range(begin, used):
            j = columns[k]
            counts[k] = counter[j]
            counter[j] = 0
        lengths[i] = used - begin
    return used


def count_pairs(words: Array, first: int, size: int, reach: int) -> sparse.csr_array:
    """Sᵀ (size, size) of one block.

    words (block,) uint32; those before position `first` belong to the previous block and count only as
    neighbours. Threads take the rows of S in pieces of about PIECE pairs and share nothing that they write
    to, so S is the same for any number of threads. SciPy transposes by a counting sort, which leaves the
    columns of each row in ascending order: such matrices are quick to add.
    """
    if why_uncompiled():
        return _pairs_by_scipy(words, first, size, reach)
    starts = np.concatenate([[0], np.cumsum(np.bincount(words[first:], minlength=size))])        # (size + 1,)
    positions = np.empty(len(words) - first, dtype=np.uint32)
    sort_by_word(words, first, starts[1:].copy(), positions)

    pairs = starts * min(reach, len(words))                                        # at most so many before each row
    step = max(PIECE, size)                                                        # clearing a counter costs `size`
    cuts = np.unique(np.searchsorted(pairs, np.arange(0, pairs[-1], step)))        # the first row of each piece
    lengths = np.zeros(size, dtype=np.int64)

    def piece(row, stop):
        room = np.minimum(np.diff(pairs[row:stop + 1]), size).sum()
        columns, counts = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64)
        used = count_rows(words, starts, positions, row, stop, reach,
                          np.zeros(size, dtype=np.int64), columns, counts, lengths)
        return columns[:used].copy(), counts[:used].copy()

    with ThreadPoolExecutor(thread_count()) as pool:
        columns, counts = zip(*pool.map(piece, cuts, [*cuts[1:], size]))

    starts = np.concatenate([[0], np.cumsum(lengths)])
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)          # SciPy takes that of the larger
    S = sparse.csr_array((np.concatenate(counts), np.concatenate(columns), starts), shape=(size, size))
    return S.T.tocsr()


def _pairs_by_scipy(words, first, size, reach):
    """Sᵀ of one block, where nothing can be compiled: a sparse matrix for each distance u, added up; it is slower."""
    S_T = sparse.csr_array((size, size), dtype=np.int64)
    for u in range(1, min(reach, len(words) - 1) + 1):
        t = np.arange(max(first, u), len(words))
        ones = np.ones(len(t), dtype=np.int64)
        S_T = S_T + sparse.coo_array((ones, (words[t - u], words[t])), shape=(size, size)).tocsr()
    S_T.sort_indices()
    return S_T


def cooccurrence(ids: ArrayLike, size: int, window: int = 10) -> sparse.csr_array:
    """How often word j stands in a window of W + 1 words whose centre is word i.

    C_ij = Σ_t 1(w_t = i) · Σ_{u=−W/2}^{W/2} 1(w_{t+u} = j)

    The sum includes the centre (u = 0), so C_ii is the count of word i plus twice the number of pairs of its
    occurrences that are at most W/2 words apart. Windows end where the corpus does. C is symmetric, and exact.

    ids (words,) integers in 0 … size − 1
    size  c, the number of words in the vocabulary
    window  W, even and at least 2; it may be longer than the corpus
    →  C (c, c), csr_array of int64, each row's columns in ascending order

    Time grows with words · W. Memory: about 50 bytes per nonzero entry of C, 60 per word of the vocabulary, and
    80 MB for the block of some 2 million words that is being counted; never c².

    Raises UserError for ids that are not integers, not one-dimensional or outside the vocabulary (it names the
    first), and for a window or a size that is out of range.

    Source: ESE-2000 Lab 6, Task 6.2. Its printed formula has "=" between the two sums, where a product is meant,
    and w_u for the neighbour w_{t+u}.
    """
    check_whole(0, 2**31 - 1, size=size)
    check_whole(2, window=window)
    if window % 2:
        raise UserError(f"window is {window}, expected an even number, half of it on either side of a word: "
                        f"try {window + 1}")  # fmt: skip
    words, reach = checked_ids(ids, size, "cooccurrence"), window // 2
    length = max(BLOCK, size)      # every block costs time in proportion to the vocabulary, too
    S_T = sparse.csr_array((size, size), dtype=np.int64)
    for start in range(0, len(words), length):
        first = min(start, reach)
        S_T = S_T + count_pairs(words[start - first : start + length].astype(np.uint32), first, size, reach)
    occurrences = sparse.diags_array(np.bincount(words, minlength=size), dtype=np.int64).tocsr()
    return (S_T + occurrences) + S_T.T.tocsr()

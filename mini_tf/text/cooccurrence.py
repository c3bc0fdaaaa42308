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

import operator
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from mini_tf.errors import UserError
from mini_tf.kernels.compiling import compiled, why_uncompiled
from mini_tf.kernels.threads import thread_count
from mini_tf.types import Array

import numpy as np
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


def count_pairs(words: Array, first: int, size: int, reach: int, threads: int) -> tuple[sparse.csr_array, Array]:
    """Sᵀ of one block, and how often each word occurs in it: csr_array (size, size), array (size,).

    words (block,) uint32; those before position `first` belong to the previous block and count only as
    neighbours. Threads take the rows of S in pieces of about PIECE pairs and share nothing that they write
    to, so S is the same for any number of threads. SciPy transposes by a counting sort, which leaves the
    columns of each row in ascending order: such matrices are quick to add.
    """
    occurrences = np.bincount(words[first:], minlength=size)
    if why_uncompiled():
        return _pairs_by_scipy(words, first, size, reach), occurrences
    starts = np.concatenate([[0], np.cumsum(occurrences)])                         # (size + 1,)
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

    with ThreadPoolExecutor(threads) as pool:
        columns, counts = zip(*pool.map(piece, cuts, [*cuts[1:], size]))

    ends = np.cumsum(lengths)
    index = np.int32 if ends[-1] < 2**31 else np.int64
    S = sparse.csr_array((np.concatenate(counts), np.concatenate(columns, dtype=index),
                          np.concatenate([[0], ends], dtype=index, casting="unsafe")), shape=(size, size))
    return S.T.tocsr(), occurrences


def _pairs_by_scipy(words, first, size, reach):
    """Sᵀ of one block, where nothing can be compiled: a sparse matrix for each distance u, added up; it is slower."""
    S_T = sparse.csr_array((size, size), dtype=np.int64)
    for u in range(1, min(reach, len(words) - 1) + 1):
        t = np.arange(max(first, u), len(words))
        ones = np.ones(len(t), dtype=np.int64)
        S_T = S_T + sparse.coo_array((ones, (words[t - u], words[t])), shape=(size, size)).tocsr()
    S_T.sort_indices()
    return S_T


def cooccurrence(
    ids: Array | Iterable[Array], size: int, window: int = 10, threads: int | None = None
) -> sparse.csr_array:
    """How often word j stands in a window of W + 1 words whose centre is word i.

    C_ij = Σ_t 1(w_t = i) · Σ_{u=−W/2}^{W/2} 1(w_{t+u} = j)

    The sum includes the centre (u = 0), so C_ii is the count of word i plus twice the number of pairs of its
    occurrences that are at most W/2 words apart. Windows end where the corpus does. C is symmetric, and exact.

    ids (words,) integers in 0 … size − 1; or an iterable of such arrays, for a corpus that does not fit in
        memory: windows reach from one array into the next, as if the arrays had been joined
    size  c, the number of words in the vocabulary
    window  W, even and at least 2; it may be longer than the corpus
    threads  default: as many as Numba uses (NUMBA_NUM_THREADS); the result is the same for any number
    →  C (c, c), csr_array of int64, each row's columns in ascending order

    Time grows with words · W. Memory: about 50 bytes per nonzero entry of C, 60 per word of the vocabulary, and
    80 MB for the block of some 4 million words that is being counted; never c².

    Raises UserError for ids that are not integers, not one-dimensional or outside the vocabulary (it names the
    first), and for a window, a size or a number of threads that is out of range.

    Source: ESE-2000 Lab 6, Task 6.2. Its printed formula has "=" between the two sums, where a product is meant,
    and w_u for the neighbour w_{t+u}.
    """
    reach, size, threads = _checked_sizes(window, size, threads)
    occurrences = np.zeros(size, dtype=np.int64)
    sums = []           # Sᵀ of the blocks so far, added up so that each sum has over twice the entries of the next
    for words, first in _blocks(ids, size, reach):
        S_T, new = count_pairs(words, first, size, reach, threads)
        occurrences += new
        while sums and sums[-1].nnz <= 2 * S_T.nnz:    # add sums of like size: a long one is not copied for every block
            S_T = sums.pop() + S_T
        sums.append(S_T)

    S_T = reduce(operator.add, reversed(sums), sparse.csr_array((size, size), dtype=np.int64))
    return (S_T + sparse.diags_array(occurrences, dtype=np.int64).tocsr()) + S_T.T.tocsr()


def _blocks(ids, size, reach):
    """Yield (words, first): the corpus in blocks, each preceded by the last `reach` words of the block before.

    words (first + new,) uint32: words[:first] are those repeated words, and new is BLOCK to 2·BLOCK, in the last
    block perhaps less.
    """
    length = max(BLOCK, size)      # every block costs time in proportion to the vocabulary, too
    block, new, seen = [np.zeros(0, dtype=np.uint32)], 0, 0
    for chunk in [ids] if isinstance(ids, np.ndarray) or not hasattr(ids, "__iter__") else ids:
        chunk = np.asarray(chunk)
        if chunk.ndim != 1:
            raise UserError(f"word ids have shape {chunk.shape} after {seen:,} words; expected an array with one "
                            "dimension, or an iterable of such arrays: for a list of numbers, try np.array(ids)")
        for start in range(0, len(chunk), length):
            part = _checked_ids(chunk[start:start + length], size, seen)
            block.append(part)
            new += len(part)
            seen += len(part)
            if new >= length:
                words = np.concatenate(block)
                yield words, len(block[0])
                block, new = [words[-reach:].copy()], 0
    if new:
        yield np.concatenate(block), len(block[0])


def _checked_ids(part, size, seen):
    if part.dtype.kind not in "iu":
        raise UserError(f"word ids are integers; got {part.dtype}, the first is {part[0]} at word {seen:,}. "
                        "Encode the words with a Vocabulary, or try ids.astype(int)")
    if part.min() < 0 or part.max() >= size:
        t = int(np.argmax((part < 0) | (part >= size)))
        raise UserError(f"word id {part[t]} at word {seen + t:,} is outside the vocabulary, 0 … {size - 1}: "
                        "try the size of the vocabulary that made the ids")
    return part.astype(np.uint32)


def _checked_sizes(window, size, threads):
    """W/2, c and the number of threads, or a UserError that says which is out of range."""
    given = {"window": window, "size": size, "threads": thread_count() if threads is None else threads}
    try:
        window, size, threads = (operator.index(value) for value in given.values())
    except TypeError:
        raise UserError(f"window, size and threads are integers; got {given}") from None
    if window < 2 or window % 2:
        raise UserError(f"window is {window}; expected an even number of at least 2, half of it on either side "
                        f"of a word: try {max(2, window + window % 2)}")
    if not 0 <= size < 2**31:
        raise UserError(f"size is {size}; expected the number of words in the vocabulary: try len(vocabulary)")
    if threads < 1:
        raise UserError(f"threads is {threads}; expected at least 1, or None for all")
    return window // 2, size, threads

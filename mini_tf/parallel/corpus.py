"""A corpus that several processes read and count in parts: for texts larger than the memory of one."""

import os
from array import array

from mini_tf.data.corpus import read_corpus
from mini_tf.errors import UserError
from mini_tf.models.ngram import NGramModel, count_grams
from mini_tf.parallel.single_process import SingleProcess
from mini_tf.text.cooccurrence import cooccurrence
from mini_tf.text.tokens import Vocabulary, tokenize
from mini_tf.types import Array, PathLike

import numpy as np
from scipy import sparse

PIECE = 1 << 22          # bytes read at a time


def read_part(path: PathLike, group: SingleProcess) -> tuple[Vocabulary, Array]:
    """(vocabulary, ids): the Vocabulary of the whole corpus, and the words of this process's part of it, int32.

    The file, UTF-8, is cut at ends of lines into parts of about equal size. Put together in the order of the processes,
    the parts are the ids of the corpus that one process would read, and the vocabulary is the same, too. No process
    holds more than the ids of its part, the vocabulary, and 4 MB of the text.
    Raises UserError for a file that cannot be read, on all processes: see read_corpus.
    """
    words, ids = {}, array("i")
    failure = None
    try:
        for text in _texts(path, group.rank, group.size):
            ids.extend(words.setdefault(token, len(words)) for token in tokenize(text))
    except (OSError, UnicodeDecodeError, UserError) as error:
        failure = str(error) if isinstance(error, UserError) else _explained(path)
    for rank, text in enumerate(group.everybody(failure)):
        if text is not None:
            raise UserError(f"process {rank}: {text}" if group.size > 1 else text)
    vocabulary = Vocabulary(word for part in group.everybody(list(words)) for word in part)
    if not len(vocabulary):
        raise UserError(f"{path} has no words in it; a corpus needs some, so name another file")
    number = np.array([vocabulary.index[word] for word in words], dtype=np.int32)
    return vocabulary, number[np.frombuffer(ids, dtype=np.int32)] if len(ids) else np.zeros(0, dtype=np.int32)


def cooccurrence_of_parts(ids: Array, size: int, window: int, group: SingleProcess) -> sparse.csr_array:
    """`cooccurrence` of the whole corpus, on every process; ids are this process's part of it.

    With the words before, as far as windows reach, a part has its own pairs, those across the seam, and the pairs among
    the words before, which are not its own.
    """
    before = words_before(ids, window // 2, group)
    own = cooccurrence(np.concatenate([before, ids]), size, window) - cooccurrence(before, size, window)
    C = sparse.csr_array(group.total(own))
    C.eliminate_zeros()
    C.sort_indices()
    return C


def fit_parts(model: NGramModel, ids: Array, group: SingleProcess) -> NGramModel:
    """model.fit of the whole corpus, on every process; ids are this process's part of it."""
    known = words_before(ids, model.order - 1, group)
    words = np.concatenate([known, ids]).astype(np.int64)

    def put_together(part):
        keys, counts, shorter = map(np.concatenate, zip(*group.everybody(part)))
        key, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return key, np.bincount(number, weights=counts).astype(np.int64), shorter[first]

    return model.fit_counts(count_grams(words, model.order, model.size, len(known), put_together))


def words_before(ids: Array, most: int, group: SingleProcess) -> Array:
    """The last words, `most` or as many as there are, before this process's part of a corpus."""
    ends = group.everybody(ids[max(len(ids) - most, 0) :])
    before = np.concatenate([ids[:0], *ends[: group.rank]])
    return before[max(len(before) - most, 0) :]


def _texts(path, rank, size):
    """Yield the lines that begin in this process's part of the file, some at a time, as text."""
    with open(path, "rb") as file:
        begin = 3 if file.read(3) == b"\xef\xbb\xbf" else 0                     # a byte order mark
        length = os.fstat(file.fileno()).st_size - begin
        first, stop = (begin + length * part // size for part in (rank, rank + 1))
        file.seek(max(first - 1, begin))
        if first > begin:
            file.readline()                              # the rest of a line that began before; or just its end
        while file.tell() < stop:
            piece = file.read(min(PIECE, stop - file.tell()))
            if not piece.endswith(b"\n"):
                piece += file.readline()                 # the rest of its last line
            yield piece.decode("utf-8").replace("\r\n", "\n")


def _explained(path):
    """What `read_corpus` says of a file that cannot be read."""
    try:
        read_corpus(path)
    except UserError as error:
        return str(error)
    return f"{path} cannot be read; check its name, and that nobody is writing to it"

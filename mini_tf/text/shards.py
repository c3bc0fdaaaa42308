"""A corpus that several processes read, each its part of the file: for texts larger than the memory of one."""

import os
from array import array

from mini_tf.data.corpus import read_corpus
from mini_tf.errors import UserError
from mini_tf.parallel.alone import Alone
from mini_tf.text.tokens import Vocabulary, tokenize
from mini_tf.types import Array, PathLike

import numpy as np

PIECE = 1 << 22          # bytes read at a time


def read_part(path: PathLike, team: Alone) -> tuple[Vocabulary, Array]:
    """(vocabulary, ids): the Vocabulary of the whole corpus, and the words of this process's part of it, int32.

    The file, UTF-8, is cut at ends of lines into parts of about equal size. Put together in the order of the processes,
    the parts are the ids of the corpus that one process would read, and the vocabulary is the same, too. No process
    holds more than the ids of its part, the vocabulary, and 4 MB of the text.
    Raises UserError for a file that cannot be read, on all processes: see read_corpus.
    """
    words, ids = {}, array("i")
    failure = None
    try:
        for text in _texts(path, team.rank, team.size):
            ids.extend(words.setdefault(token, len(words)) for token in tokenize(text))
    except (OSError, UnicodeDecodeError, UserError) as error:
        failure = str(error) if isinstance(error, UserError) else _explained(path)
    for rank, text in enumerate(team.everybody(failure)):
        if text is not None:
            raise UserError(f"process {rank}: {text}" if team.size > 1 else text)
    vocabulary = Vocabulary(word for part in team.everybody(list(words)) for word in part)
    if not len(vocabulary):
        raise UserError(f"{path} has no words in it; a corpus needs some, so name another file")
    number = np.array([vocabulary.index[word] for word in words], dtype=np.int32)
    return vocabulary, number[np.frombuffer(ids, dtype=np.int32)] if len(ids) else np.zeros(0, dtype=np.int32)


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

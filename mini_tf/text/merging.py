"""What tokenizers that merge pairs share: the merging, and the decoding of bytes that come piece by piece."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush


def merge(pieces: list[str], rank: Callable[[str, str], float | None]) -> list[str]:
    """Merge neighbours, always the pair of the lowest rank, the leftmost of equals, until no pair has a rank.

    rank(left, right) is None for a pair that is not merged.
    merge(["l", "o", "w", "e", "r"], rank) → ["low", "er"]  if "lo", "low" and "er" are pieces, learned in this order
    With the pairs in a heap and the pieces in a linked list, n pieces take O(n log n) steps.
    """
    pieces, n = list(pieces), len(pieces)
    before, after = list(range(-1, n - 1)), list(range(1, n + 1))
    ranks = ((rank(pieces[i], pieces[i + 1]), i) for i in range(n - 1))
    heap = [(r, i, pieces[i], pieces[i + 1]) for r, i in ranks if r is not None]
    heapify(heap)
    while heap:
        _, i, left, right = heappop(heap)
        j = after[i]
        if j == n or pieces[i] != left or pieces[j] != right:        # one of them has been merged since
            continue
        pieces[i], pieces[j] = left + right, ""
        after[i] = after[j]
        if after[i] < n:
            before[after[i]] = i
        for k in (before[i], i):                                     # the new piece's two pairs
            if k >= 0 and after[k] < n and (r := rank(pieces[k], pieces[after[k]])) is not None:
                heappush(heap, (r, k, pieces[k], pieces[after[k]]))
    return [piece for piece in pieces if piece]


def utf8(text: str) -> bytes:
    """A text's bytes. Half of a surrogate pair is no character; its three bytes are read as �."""
    return text.encode("utf-8", "surrogatepass")


def text_of(parts: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of each part of some UTF-8 as it comes; a character waits until all its bytes are there.

    What is not UTF-8 is read as �. One more string may follow after the last part.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in parts:
        yield decoder.decode(part)
    if rest := decoder.decode(b"", final=True):
        yield rest

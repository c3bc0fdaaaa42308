"""Byte-pair encoding: pieces of words, learned from a text by merging those that most often stand side by side.

At first every byte is a piece. Then, again and again, the most frequent pair of neighbours becomes a new piece. In a
text that has "low" five times, "lower" twice and "never" once:

    l·o, 7 times:  lo w, lo w e r        lo·w, 7 times:  low, low e r        e·r, 3 times:  low er, n e v er        …

Frequent words soon become one piece, rare ones stay several; and since all 256 bytes are pieces, no text has unknown
ones. Pairs are merged only within a chunk, see CHUNK, so that no piece spans two words.
Source: Sennrich, Haddow, Birch 2016, arXiv:1508.07909; of bytes: Radford et al. 2019, GPT-2
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar, Self

from mini_tf.checks import check_whole, shown
from mini_tf.errors import UserError
from mini_tf.text.merging import merge, text_of, utf8
from mini_tf.text.tokens import Vocabulary

Pair = tuple[str, str]
LEAST_PIECES, MOST_PIECES = 256, 100_000         # sizes of a vocabulary: the bytes; more would take long to learn

# A word with the space before it, and likewise a number, or other characters; the 's of it's is a chunk of its own. Of
# several spaces, the last goes with what follows: (?!\S) keeps \s+ from taking it. Every character is in one chunk.
CHUNK = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

# Each byte is written as a visible character: that of Latin-1, or one from Ā on. A space is Ġ, a line break is Ċ.
SEEN = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
BYTES = [*SEEN, *(byte for byte in range(256) if byte not in SEEN)]              # in the order of their ids
CHARACTER = {byte: chr(byte if byte in SEEN else 256 + i - len(SEEN)) for i, byte in enumerate(BYTES)}
BYTE = {ord(character): byte for byte, character in CHARACTER.items()}


class BytePairVocabulary(Vocabulary):
    """The 256 bytes, and the pieces made by merges, in the order in which they were learned.

    vocabulary = BytePairVocabulary.learn(text, 512)
    vocabulary.split("No, my lord")                      # ["No", ",", "Ġmy", "Ġlord"]
    vocabulary.decode(vocabulary.encode(["Ġmy"]))        # " my"

    merges  pairs of pieces
    Raises UserError for a pair whose parts are not pieces yet.
    """

    kind: ClassVar[str] = "byte pairs"
    unit: ClassVar[str] = "piece"

    def __init__(self, merges: Iterable[Pair]):
        super().__init__(CHARACTER.values())
        self.ranks: dict[Pair, int] = {}                 # of a pair: its place in the order of learning
        self.chunks: dict[str, list[str]] = {}           # their pieces, of those that have been split
        for pair in merges:
            if not all(piece in self.index for piece in pair):
                raise UserError(f"{shown(pair)} is no pair of bytes, or of earlier pieces")
            self.ranks[pair] = len(self.ranks)
            self.index.setdefault("".join(pair), len(self.index))        # two pairs may make the same piece
        self.words = list(self.index)

    @classmethod
    def learn(cls, text: str, size: int) -> Self:
        """The vocabulary of `size` pieces learned from a text; of fewer, once no pair occurs twice.

        Raises UserError unless size is 256 to 100,000.
        """
        check_whole(LEAST_PIECES, MOST_PIECES, size=size)
        return cls(learned_merges(Counter(CHUNK.findall(text)), size))

    @property
    def content(self) -> Any:
        return [" ".join(pair) for pair in self.ranks]

    @classmethod
    def of(cls, content: Any) -> Self:
        """The vocabulary whose `.content` this is: ["Ġ t", "h e", …]. Raises UserError for anything else."""
        try:
            pairs = [each.split(" ") for each in content]
            return cls([(left, right) for left, right in pairs])
        except (TypeError, AttributeError, ValueError) as error:
            raise UserError(f"the merges are {shown(content)}, expected a list of pairs of pieces ({error})") from None

    def split(self, text: str) -> list[str]:
        """The pieces of a text: in each chunk, pairs are merged in the order in which they were learned."""
        pieces = []
        for chunk in CHUNK.findall(text):
            if chunk not in self.chunks:
                self.chunks[chunk] = merge(characters_of(chunk), lambda left, right: self.ranks.get((left, right)))
            pieces += self.chunks[chunk]
        return pieces

    def stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """What each piece adds to the text"""
        return text_of(bytes(map(BYTE.__getitem__, map(ord, token))) for token in tokens)


def characters_of(chunk: str) -> list[str]:
    """The bytes of a chunk, each as its character"""
    return [CHARACTER[byte] for byte in utf8(chunk)]


def learned_merges(chunks: Counter[str], size: int) -> Iterator[Pair]:
    """Yield the merges learned from the chunks of a text, each the most frequent pair, until there are `size` pieces.

    Of equally frequent pairs, the one with the smaller ids comes first. All pairs are counted once; after a merge, only
    those in chunks that had the merged pair are recounted. A heap gives the most frequent pair.
    """
    ids = {character: i for i, character in enumerate(CHARACTER.values())}
    pieces, times = [characters_of(chunk) for chunk in chunks], list(chunks.values())
    counts, places = Counter[Pair](), defaultdict[Pair, set[int]](set)               # places: numbers of chunks
    for k, chunk in enumerate(pieces):
        for pair in pairwise(chunk):
            counts[pair] += times[k]
            places[pair].add(k)

    def entry(pair):
        return -counts[pair], ids[pair[0]], ids[pair[1]], pair

    heap = [entry(pair) for pair in counts]
    heapify(heap)
    while heap and len(ids) < size:
        count, *_, pair = heappop(heap)
        if -count != counts[pair]:                       # its count has changed since it was put there
            heappush(heap, entry(pair))
            continue
        if counts[pair] < 2:
            return
        yield pair
        new = "".join(pair)
        ids.setdefault(new, len(ids))
        changed = set()
        for k in places.pop(pair):
            for old in pairwise(pieces[k]):
                counts[old] -= times[k]
            pieces[k] = merged(pieces[k], pair)
            for now in pairwise(pieces[k]):
                counts[now] += times[k]
                if new in now:
                    places[now].add(k)
                    changed.add(now)
        for now in changed:
            heappush(heap, entry(now))


def merged(pieces: list[str], pair: Pair) -> list[str]:
    """The pieces, with every occurrence of the pair, from left to right, as one piece"""
    result: list[str] = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] += piece
        else:
            result.append(piece)
    return result

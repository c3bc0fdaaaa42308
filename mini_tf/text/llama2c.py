"""tokenizer.bin, the tokenizer of llama2.c: pieces with scores, as SentencePiece learns them.

The file, little-endian: int32 the length in bytes of the longest piece; then, for each piece, float32 its score, int32
its length, and its bytes. Pieces 0 to 2 are <unk>, the start and the end of a text; pieces 3 to 258, <0x00> … <0xFF>,
stand for single bytes.
Source: Karpathy 2023, llama2.c; Kudo and Richardson 2018, SentencePiece, arXiv:1808.06226
"""

import math
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

from mini_tf.checks import is_number, shown
from mini_tf.errors import UserError
from mini_tf.files import replacing
from mini_tf.text.merging import merge, text_of, utf8
from mini_tf.text.tokens import Vocabulary, distinct_words
from mini_tf.types import PathLike

BOS, EOS, BYTES = 1, 2, 3            # ids: start of a text, end of a text, byte 0
BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]
HEAD = struct.Struct("<fi")          # of a piece: score, length


class LlamaVocabulary(Vocabulary):
    """The pieces of llama2.c's tokenizer, and how it cuts a text into them.

    A space is put before the text. Each character starts as a piece or, if it is none, as its bytes. Then, again and
    again, two neighbours are merged: those that together make the piece with the highest score.

    vocabulary = LlamaVocabulary.read("tok512.bin")
    vocabulary.split("Once upon")                        # [" Once", " upon"]

    pieces  strings, in the order of their ids
    scores  a number for each
    Raises UserError unless the pieces are all different and numbers 3 to 258 are those of the 256 bytes.
    """

    kind: ClassVar[str] = "llama2.c"
    unit: ClassVar[str] = "piece"
    first = BOS
    end = EOS

    def __init__(self, pieces: Sequence[str], scores: list[float]):
        super().__init__(distinct_words(pieces, "the pieces"))
        if self.words[BYTES : BYTES + 256] != BYTE_PIECES:
            raise UserError("pieces 3 to 258 are not <0x00> to <0xFF>, expected those of llama2.c's tokenizer")
        finite = isinstance(scores, list) and all(is_number(score) and math.isfinite(score) for score in scores)
        if not finite or len(scores) != len(pieces):
            raise UserError(f"the scores are {shown(scores)}, expected a finite number for each piece")
        self.scores = scores
        self.score_of = dict(zip(self.words, scores))
        self.neighbours = {pair for piece in self.words for pair in pairwise(piece)}     # of characters, in a piece
        self.merged: dict[tuple[str, ...], list[str]] = {}

    @property
    def content(self) -> Any:
        return {"pieces": self.words, "scores": self.scores}

    @classmethod
    def of(cls, content: Any) -> Self:
        """The vocabulary whose `.content` this is. Raises UserError for anything else."""
        if not isinstance(content, dict) or content.keys() != {"pieces", "scores"}:
            raise UserError(f"the tokenizer is {shown(content)}, expected its pieces and scores")
        return cls(content["pieces"], content["scores"])

    @classmethod
    def read(cls, data: bytes) -> Self:
        """The vocabulary in a file's bytes. Raises UserError if it is no such file, or only part of one."""
        pieces: list[str] = []
        scores: list[float] = []
        place, longest = 4, int.from_bytes(data[:4], "little", signed=True)
        while place < len(data):
            what = f"piece {len(pieces)}"
            if place + HEAD.size > len(data):
                raise UserError(f"it ends within {what}: it is truncated, or no tokenizer of llama2.c")
            score, length = HEAD.unpack_from(data, place)
            place += HEAD.size + length
            if not 0 < length <= longest:
                raise UserError(f"{what} has {length:,} bytes, expected 1 to {longest:,}: no tokenizer of llama2.c")
            if place > len(data):
                raise UserError(f"it ends within {what}: it is truncated, or no tokenizer of llama2.c")
            try:
                pieces.append(data[place - length : place].decode())
            except UnicodeDecodeError:
                raise UserError(f"{what} is not UTF-8: it is no tokenizer of llama2.c") from None
            scores.append(score)
        return cls(pieces, scores)

    def save(self, path: PathLike) -> None:
        """Write the file that llama2.c reads. Raises NotWritten."""
        pieces = list(map(utf8, self.words))
        parts = [struct.pack("<i", max(map(len, pieces)))]
        parts += [HEAD.pack(score, len(piece)) + piece for piece, score in zip(pieces, self.scores)]
        with replacing(path) as temporary:
            temporary.write_bytes(b"".join(parts))

    def split(self, text: str) -> list[str]:
        """The pieces of a text, the same as those of llama2.c's run.c

        Nothing is ever merged across two characters that no piece has side by side. So the text is cut there, and each
        distinct part between two cuts is merged only once.
        """
        if not text:
            return []
        symbols = [symbol for character in " " + text for symbol in self._symbols(character)]
        cuts = [i for i, (a, b) in enumerate(pairwise(symbols), 1) if (a[-1], b[0]) not in self.neighbours]
        parts = (tuple(symbols[start:stop]) for start, stop in pairwise([0, *cuts, len(symbols)]))
        return [piece for part in parts for piece in self._merge(part)]

    def _symbols(self, character):
        return [character] if character in self.index else [BYTE_PIECES[byte] for byte in utf8(character)]

    def _merge(self, symbols):
        if symbols not in self.merged:
            self.merged[symbols] = merge(list(symbols), self._rank)
        return self.merged[symbols]

    def _rank(self, left, right):
        score = self.score_of.get(left + right)
        return None if score is None else -score

    def stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """What each piece adds to the text. The first one loses the space that `split` put there."""
        return text_of(self._bytes_of(tokens))

    def _bytes_of(self, tokens):
        begins = True
        for token in tokens:
            if token in (self.words[BOS], self.words[EOS]):
                begins = True
                yield b""
                continue
            byte = BYTE.fullmatch(token)
            written = bytes.fromhex(byte[1]) if byte else utf8(token)
            yield written.removeprefix(b" ") if begins else written
            begins = False

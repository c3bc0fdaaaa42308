"""From text to words to integers, and back."""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

from mini_tf.checks import shown
from mini_tf.errors import UserError, counted
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike

LEFT_OUT = "'&$"                     # what the lab's tokenizer drops; ' only where it is not inside a word
NO_SPACE_BEFORE = set(".,!?;:-\n)]}”…%")
NO_SPACE_AFTER = set("-\n([{“")
UNSPACED = 300, 0.45                 # more words, and a larger share that occurs once: no spaces?


def tokenize(text: str) -> list[str]:
    """Split a text into words as the lab does; every other character that is not a space is a word, too.

    "Sir, are not you my father?" → ["Sir", ",", "are", "not", "you", "my", "father", "?"]
    "so happy 😀 #win" → ["so", "happy", "😀", "#", "win"]
    As in the lab, & and $ are left out, and so is an apostrophe that is not inside a word. Accents and vowel signs stay
    with their letters: the text is first normalized to Unicode's form NFC.
    Source: ESE-2000 Lab 6, Task 6.1. The lab's corpus has 292,072 words, 14,295 of them distinct.
    """
    text = unicodedata.normalize("NFC", text)
    # \w does not match combining marks. Few texts have any, so the pattern names those of this text.
    marks = "" if text.isascii() else "".join(c for c in set(text) if unicodedata.category(c)[0] == "M")
    letter = rf"[\w{re.escape(marks)}]"
    return re.findall(rf"\w{letter}*(?:['’]\w{letter}*)?|\n|[^\s{LEFT_OUT}{re.escape(marks)}]", text)


def remarks_on(text: str, tokens: list[str]) -> list[str]:
    """Sentences about what `tokenize` left out of a text, and one if the text seems to be written without spaces."""
    left = Counter(unicodedata.normalize("NFC", text)) - Counter("".join(tokens))
    missing = sorted(((count, c) for c, count in left.items() if not c.isspace()), reverse=True)
    found = []
    if missing:
        listed = ", ".join(f"{count:,} {c}" for count, c in missing[:5])
        found.append(f"left out, as in Lab 6: {listed}{', …' if len(missing) > 5 else ''}")
    once = sum(count == 1 for count in Counter(tokens).values())
    if len(tokens) > UNSPACED[0] and once > UNSPACED[1] * len(tokens):
        found.append(f"note: {once:,} of {len(tokens):,} words occur only once: is this text written without spaces? "
                     "Put a space between its words, or train on characters: --tokenizer characters")  # fmt: skip
    return found


def join(tokens: Iterable[str]) -> str:
    """Words as a text that reads well. Splitting it gives the same words: tokenize(join(tokens)) == tokens."""
    return "".join(spaced(tokens))


def spaced(tokens: Iterable[str]) -> Iterator[str]:
    """Yield each word with the space that belongs before it, as it comes: for a text that is still being written."""
    after = "\n"                                         # no space at the start of the text
    for token in tokens:
        space = token not in NO_SPACE_BEFORE and after not in NO_SPACE_AFTER
        yield " " + token if space else token
        after = token


class Vocabulary:
    """The c distinct words of a corpus, numbered 0 … c − 1 in order of first appearance.

    vocabulary = Vocabulary(tokenize(text))
    ids = vocabulary.encode(vocabulary.split("my father"))       # integer array
    vocabulary.decode(ids)                                       # "my father"

    A vocabulary knows how its texts are cut into tokens, and joined again: here words. Subclasses cut them differently,
    and say what a token is called, `unit`. The texts of some pretrained models begin and end with tokens of their own:
    `first`, `end` are their ids, or None. `kind` and `content` are what vocabulary.json says of it: `of` reads it back.
    """

    kind: ClassVar[str] = "words"
    unit: ClassVar[str] = "word"
    first: int | None = None
    end: int | None = None

    def __init__(self, tokens: Iterable[str]):
        self.words = list(dict.fromkeys(tokens))
        self.index = {word: i for i, word in enumerate(self.words)}

    def __repr__(self):
        some = ", ".join([*map(shown, self.words[:8]), *["…"][: len(self.words) > 8]])
        return f"{type(self).__name__} of {len(self.words):,} {self.unit}s: {some}"

    @property
    def content(self) -> Any:
        """All of it, as JSON holds it"""
        return self.words

    @classmethod
    def of(cls, words: list[str]) -> Self:
        """The vocabulary whose list `.words` is this one, as read from a file.

        Raises UserError for anything but a list of different strings.
        """
        vocabulary = cls([])
        vocabulary.words = distinct_words(words)
        vocabulary.index = {word: i for i, word in enumerate(vocabulary.words)}
        return vocabulary

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self.index

    def split(self, text: str) -> list[str]:
        """The tokens of a text"""
        return tokenize(text)

    def stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """Yield, for each token as it comes, what it adds to the text; for a text that is still being written.

        What a token adds may be "": part of a character. One more string may follow after the last token.
        """
        return spaced(tokens)

    def join(self, tokens: Iterable[str]) -> str:
        """The text of tokens"""
        return "".join(self.stream(tokens))

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """The words that are not in the vocabulary, each once, in order of first appearance."""
        return list(dict.fromkeys(token for token in tokens if token not in self.index))

    def encode(self, tokens: Iterable[str], unknown: str = "error") -> Array:
        """The ids of the words, int64. Raises UserError naming unknown words; unknown="skip" leaves them out."""
        tokens = list(tokens)                            # they are read twice
        if unknown not in ("error", "skip"):
            raise UserError(f"unknown={unknown!r} is not an option, expected 'error' or 'skip'")
        missing = self.unknown(tokens)
        if missing and unknown == "error":
            raise UserError(self._explain(missing))
        return np.array([self.index[token] for token in tokens if token in self.index], dtype=np.int64)

    def decode(self, ids: ArrayLike | Iterator[int]) -> str:
        """The text that the ids stand for; of words, with spaces where a reader expects them.

        Raises UserError for what is not a row of ids, and for an id that is not in the vocabulary.
        """
        return self.join(self._word(i) for i in row_of_ids(ids))

    def _word(self, i):
        if not 0 <= i < len(self.words):
            raise UserError(f"id {i} is not in the vocabulary, expected 0 to {len(self.words) - 1}")
        return self.words[i]

    def _explain(self, missing):
        named = []
        for word in missing[:5]:
            near = difflib.get_close_matches(word, self.words, n=3, cutoff=0.6) if len(word) < 100 else []
            named.append(shown(word) + (f" (near: {', '.join(near)})" if near else ""))
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return (
            f"the vocabulary of {len(self)} {self.unit}s lacks {counted(len(missing), self.unit)}: "
            f"{', '.join(named)}{more}. Choose known {self.unit}s, or leave the unknown ones out: "
            "--unknown skip, in Python unknown='skip'"
        )


def distinct_words(words: Sequence[str], what: str = "the words") -> list[str]:
    """The list of words itself. Raises UserError unless it is a list of strings, none of them twice.

    what: the subject of the messages, which is plural
    """
    if not isinstance(words, (list, tuple)):
        raise UserError(f"{what} are {shown(words)}, expected a list of strings")
    seen = set()
    for word in words:
        if not isinstance(word, str):
            raise UserError(f"{what} have {shown(word)} among them, expected strings")
        if word in seen:
            raise UserError(f"{what} have {shown(word)} twice, expected each once")
        seen.add(word)
    return list(words)


def row_of_ids(ids: ArrayLike | Iterator[int]) -> list[int]:
    """Ids as a list of integers. Raises UserError for other shapes and dtypes."""
    try:
        ids = np.asarray(list(ids) if isinstance(ids, Iterator) else ids)        # generate() is an iterator
    except ValueError:                                   # lists of different lengths
        ids = np.asarray(None)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise UserError(f"ids have shape {ids.shape} and dtype {ids.dtype}, expected integers in one row")
    return ids.tolist()

"""French and English sentences to words and back, and the vocabulary of a translator."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Self

from mini_tf.checks import check_whole, shown
from mini_tf.errors import UserError, counted
from mini_tf.layers.embedding import ABSENT
from mini_tf.text.tokens import Vocabulary, distinct_words, row_of_ids
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike

SOS, EOS, UNK = 0, 1, 2                                  # start of sentence, end of sentence, unknown word
SPECIAL = ["[SOS]", "[EOS]", "[UNK]"]

# Other characters for the same mark, and characters that cannot be seen: soft hyphen, zero-width space, byte order mark
ALIKE = str.maketrans("’ʼ‘‐‑«»“”„", "'''--\"\"\"\"\"", "\u00ad\u200b\u2060\ufeff")
LETTERS = r"[\w\u0300-\u036f]+"                          # or digits; with the accents that have no letter of their own
NUMBER = r"\d+(?:[.,:]\d+)+"                             # 2.30, 3,000, 10:15; plain ones are LETTERS
WORD = {
    # l' of l'homme; aujourd'hui is one word
    "french": rf"aujourd'hui(?!\w)|{LETTERS}'?",
    # don't, o'clock, boys'
    "english": rf"{LETTERS}(?:'{LETTERS})*(?:(?<=s)')?",
}
TOKEN = {language: re.compile(rf"-?(?:{NUMBER}|{word})|\S") for language, word in WORD.items()}

NO_SPACE_BEFORE = set(".,!?;:…%)")
NO_SPACE_AFTER = set("($")
END = set(".!?")
ELISION = re.compile(r"-?(?:s|\w*[^\Ws])'")             # l', qu', -t'; but not boys': only the elision s' ends in s'
I_WORD = re.compile(r"i(?:'(?:m|ve|ll|d))?")


def split_sentence(sentence: str, language: str) -> list[str]:
    """The words of a sentence, in lower case; a punctuation mark or another symbol is a word, too.

    language="french":   "Qu'avez-vous dit à l'homme ?" → ["qu'", "avez", "-vous", "dit", "à", "l'", "homme", "?"]
    language="english":  "Don't pay twenty-one dollars." → ["don't", "pay", "twenty", "-one", "dollars", "."]

    What French leaves out before an apostrophe is a word of its own (aujourd'hui stays one); English contractions are
    one word. What follows a hyphen is a word that begins with it. Numbers such as 2.30, 3,000 and 10:15 are one word.
    Unicode is composed (NFC); all apostrophes are ', all double quotation marks ", all spaces alike, and characters
    that cannot be seen are dropped.
    Words joined by spaces are split into the same words again: split(" ".join(split(s))) == split(s).
    Raises UserError for another language, and for what is not a string.
    """
    if language not in TOKEN:
        raise UserError(f"language is {language!r}, expected {' or '.join(map(repr, TOKEN))}")
    if not isinstance(sentence, str):
        raise UserError(f"the sentence is {sentence!r}, expected a string")
    return TOKEN[language].findall(unicodedata.normalize("NFC", _plain(sentence).lower()))


def _plain(sentence):
    return unicodedata.normalize("NFC", sentence.translate(ALIKE))


def names_in(sentences: Iterable[str], language: str) -> set[str]:
    """The words, in lower case, that mostly have a capital within sentences: {"tom", "boston", "monday"}

    sentences  strings. `join_sentence` gives these words their capital again.
    """
    capitalized, lower_case = Counter[str](), Counter[str]()
    for sentence in sentences:
        words = TOKEN[language].findall(_plain(sentence))
        for before, word in zip(words, words[1:]):
            if before not in END and before != '"':
                (capitalized if word[0].isupper() else lower_case)[word.lower()] += 1
    return {word for word, times in capitalized.items() if times > lower_case[word]}


def join_sentence(words: Iterable[str], names: Collection[str] = frozenset(), language: str = "english") -> str:
    """The words of a sentence as a reader expects them:  ["i", "don't", "know", "."] → "I don't know."

    No space before . , ! ? ; : … % ) and a hyphenated part, none after ( $ and an elision (l'); a pair of quotation
    marks encloses what is between them. A capital for the first word, the first after . ! ?, and English I, I'm, I've,
    I'll, I'd, and for names, which are in lower case: see `names_in`. In French, a space before ? ! ; :
    """
    english = language == "english"
    no_space_before = NO_SPACE_BEFORE if english else NO_SPACE_BEFORE - set("?!;:")
    pieces = []
    first, quoted, glued = True, False, True             # the next word begins a sentence, is quoted, follows directly
    for word in words:
        closes = word == '"' and quoted
        if not (glued or closes or word in no_space_before or re.match(r"-\w", word)):
            pieces.append(" ")
        is_word = re.match(r"-?\w", word)
        capital = (first and is_word) or word in names or (english and I_WORD.fullmatch(word))
        pieces.append(word[0].upper() + word[1:] if capital else word)
        first = not is_word and (first or word in END)
        quoted ^= word == '"'
        glued = word in NO_SPACE_AFTER or bool(ELISION.fullmatch(word)) or (word == '"' and quoted)
    return "".join(pieces)


class SentenceVocabulary(Vocabulary):
    """The words of one language: [SOS] = 0, [EOS] = 1, [UNK] = 2, then the words, the most frequent first.

    sentences  lists of words
    least      how often a word has to occur to get an id of its own; rarer ones are read as [UNK]

    Words that occur equally often stand in order of first appearance.
    vocabulary = SentenceVocabulary([["je", "suis", "là"], ["je", "vois"]])
    vocabulary.encode(["je", "dors"])                    # [3, 2]
    Raises UserError for sentences that are not lists of words, and for least < 1.
    """

    names: frozenset[str] = frozenset()                  # printed with a capital: see `names_in`

    def __init__(self, sentences: Iterable[list[str]], least: int = 1):
        check_whole(least=least)
        count = Counter[str]()
        for sentence in sentences:
            count.update(_checked(sentence))
        super().__init__([*SPECIAL, *(word for word, times in count.most_common() if times >= least)])

    @classmethod
    def of(cls, words: list[str], names: Sequence[str] = ()) -> Self:
        """The vocabulary whose list `.words` is this one, as read from a file, and whose `.names` are these.

        Raises UserError for anything but lists of different strings, the words beginning with the special ones.
        """
        vocabulary = super().of(words)
        if vocabulary.words[: len(SPECIAL)] != SPECIAL:
            raise UserError(
                f"the words begin {shown(vocabulary.words[:3])}, expected {SPECIAL}: the .words of a vocabulary"
            )
        vocabulary.names = frozenset(distinct_words(names, "the names"))
        return vocabulary

    def unknown(self, words: Iterable[str]) -> list[str]:
        """The words that have no id of their own, each once, in order of first appearance."""
        return super().unknown(_checked(words))

    def encode(self, words: Iterable[str]) -> Array:  # type: ignore[override]   # it has an id for every word
        """The ids of the words, int64, one for each: words that it does not know are [UNK] = 2."""
        return np.array([self.index.get(word, UNK) for word in _checked(words)], dtype=np.int64)

    def decode(self, ids: ArrayLike | Iterator[int]) -> list[str]:  # type: ignore[override]   # join_sentence takes it
        """The list of words that the ids stand for, up to the first [EOS] or padding (−1), without [SOS].

        Raises UserError for an id that is not in the vocabulary.
        """
        words = []
        for i in row_of_ids(ids):
            if i in (EOS, ABSENT):
                break
            if i != SOS:
                words.append(self._word(i))
        return words


def unknown_said(words: Sequence[str]) -> str:
    """A note on words that the model does not know; ten are named"""
    named = ", ".join(words[:10]) + " …" * bool(words[10:])
    return f"{counted(len(words), 'unknown word')}, read as [UNK]: {named}"


def padded(sentences: Sequence[Sequence[int] | Array]) -> Array:
    """Lists of ids as one array (B, longest), int64: the ids of each sentence, then padding, ABSENT = −1."""
    ids = np.full((len(sentences), max(map(len, sentences))), ABSENT, dtype=np.int64)
    for row, sentence in zip(ids, sentences):
        row[: len(sentence)] = sentence
    return ids


def _checked(words):
    """The words, unless they are a text: its characters would be taken for words."""
    if isinstance(words, str):
        raise UserError(f"the words are the text {words[:60]!r}, expected a list of words: use split_sentence first")
    return words

"""From text to words to integers, and back."""

import difflib
import re

from mini_tf.errors import UserError

import numpy as np

TOKEN = re.compile(r"\w+(?:'\w+)?|[.,!?;:\-]|\n")
NO_SPACE_BEFORE = set(".,!?;:-\n")
NO_SPACE_AFTER = set("-\n")


def tokenize(text):
    """Split a text into words as the lab does; punctuation marks and line breaks are words, the rest is dropped.

    "Sir, are not you my father?" → ["Sir", ",", "are", "not", "you", "my", "father", "?"]
    Source: ESE-2000 Lab 6, Task 6.1. The lab's corpus has 292,072 words, 14,295 of them distinct.
    """
    return TOKEN.findall(text)


def join(tokens):
    """Words as a text that reads well. Splitting it gives the same words: tokenize(join(tokens)) == tokens."""
    return "".join(spaced(tokens))


def spaced(tokens):
    """Yield each word with the space that belongs before it, as it comes: for a text that is still being written."""
    after = "\n"                                         # no space at the start of the text
    for token in tokens:
        space = token not in NO_SPACE_BEFORE and after not in NO_SPACE_AFTER
        yield " " + token if space else token
        after = token


class Vocabulary:
    """The c distinct words of a corpus, numbered 0 … c − 1 in order of first appearance.

    vocabulary = Vocabulary(tokenize(text))
    ids = vocabulary.encode(tokenize("my father"))       # integer array
    vocabulary.decode(ids)                               # "my father"
    """

    def __init__(self, tokens):
        self.words = list(dict.fromkeys(tokens))
        self.index = {word: i for i, word in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self.index

    def unknown(self, tokens):
        """The words that are not in the vocabulary, each once, in order of first appearance."""
        return list(dict.fromkeys(token for token in tokens if token not in self.index))

    def encode(self, tokens, unknown="error"):
        """The ids of the words, int64. Raises UserError naming unknown words; unknown="skip" leaves them out."""
        if unknown not in ("error", "skip"):
            raise UserError(f"unknown={unknown!r} is not an option, expected 'error' or 'skip'")
        missing = self.unknown(tokens)
        if missing and unknown == "error":
            raise UserError(self._explain(missing))
        return np.array([self.index[token] for token in tokens if token in self.index], dtype=np.int64)

    def decode(self, ids):
        """The text that the ids stand for, with spaces where a reader expects them."""
        return join(self._word(i) for i in np.asarray(ids).tolist())

    def _word(self, i):
        if not 0 <= i < len(self.words):
            raise UserError(f"id {i} is not in the vocabulary, expected 0 to {len(self.words) - 1}")
        return self.words[i]

    def _explain(self, missing):
        named = []
        for word in missing[:5]:
            near = difflib.get_close_matches(word, self.words, n=3, cutoff=0.6)
            named.append(f"{word!r}" + (f" (near: {', '.join(near)})" if near else ""))
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        return (
            f"{len(missing)} word(s) are not among the {len(self)} of the vocabulary: {', '.join(named)}{more}. "
            "Choose known words, or leave the unknown ones out: --unknown skip, in Python unknown='skip'"
        )

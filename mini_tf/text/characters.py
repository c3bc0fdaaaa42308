"""Texts cut into characters."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from mini_tf.text.tokens import Vocabulary


class CharacterVocabulary(Vocabulary):
    """The different characters of a text, spaces and line breaks among them, in order of first appearance.

    vocabulary = CharacterVocabulary("hello")
    vocabulary.decode(vocabulary.encode("hole"))         # "hole"
    """

    kind: ClassVar[str] = "characters"
    unit: ClassVar[str] = "character"

    def split(self, text: str) -> list[str]:
        """The characters of a text"""
        return list(text)

    def stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """The characters themselves"""
        return iter(tokens)

"""The sentences: one short function for each pattern, with what may fill its slots above it.

A function gives the French with its words apart ("je aime le ami de le roi"); spelling.py joins what French joins.
"""

from mini_tf.data.french.choices import Either
from mini_tf.data.french.patterns import (
    being,
    clauses,
    intentions,
    numbers,
    orders,
    past,
    places,
    present,
    pronouns,
    questions,
    reflexive,
)
from mini_tf.data.french.patterns.pattern import PATTERNS

__all__ = ["GRAMMAR", "PATTERNS"]

# A pattern is in PATTERNS once its file is imported.
SECTIONS = (
    present, questions, past, intentions, pronouns, reflexive, being, numbers, places, clauses, orders,
)  # fmt: skip
GRAMMAR = Either(*PATTERNS.values())

"""The sentences: one short function for each pattern, with what may fill its slots above it.

A function gives the parts of a sentence in order, each in both languages: a Pair, a Phrase or a Place. Empty words may
be among them, and words are left apart ("je aime le ami", "a owl"); spelling.py joins what is to be joined.
"""

from mini_tf.data.french.choices import Either
from mini_tf.data.french.patterns import (
    being,
    clauses,
    numbers,
    orders,
    past,
    places,
    present,
    pronouns,
    questions,
    reflexive,
)

# In another order, a seed would draw other sentences.
SECTIONS = (past, pronouns, being, clauses, numbers, orders, places, present, questions, reflexive)
PATTERNS = {
    name: value.sentences
    for section in SECTIONS for name, value in vars(section).items() if hasattr(value, "sentences")
}  # fmt: skip
GRAMMAR = Either(*PATTERNS.values())

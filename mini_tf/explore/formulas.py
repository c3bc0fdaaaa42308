"""What a docstring explains: its formulas typeset, the words around them, and the rest as it is written.

A line is cut at its wide blanks. A piece is a formula if the grammar of mathml.py takes it whole, words may follow it
("y = x·W, row by row"). A line in which something with a sign such as = is refused stays text: none is typeset in half.
"""

import re
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from mini_tf.explore.mathml import RELATIONS, Names, mathml

WIDE = re.compile(r" {2,}")
CUT = re.compile(r"[,;:.] | \(| over | at ")             # where a formula may end and words begin
OPERATION = re.compile("[·−√Σ/]")                        # "loss = mean over rows of −ln p" has no words after mean
LETTER = r"[^\W\d_]\u0302?"
ALIASES = re.compile(rf"\b({LETTER}(?:, {LETTER})*) (?:is|are) (`\w+`(?:, `\w+`)*)")     # Q, K are `query`, `key`


class Explained(NamedTuple):
    """A docstring's formulas, each a line of HTML, and the rest of it, text."""

    formulas: list[str]
    text: str


def explained(doc: str, names: Iterable[str] = ()) -> Explained:
    """A docstring, Explained. A letter that stands for one of the code's names has it as data-name."""
    lines = doc.split("\n")
    known, formulas, text, before = Names(names, _aliases(doc)), list[str](), list[str](), ""
    for line, following in zip(lines, [*lines[1:], ""]):
        html = _line(line, known)
        if _runs_on(before, line) or (_runs_on(line, following) and _line(following, known) is None):
            html = None
        if html is None and ALIASES.search(line) and not _has_relation(line) and "→" not in line:
            html = _in_words(line)
        if html is None:
            text.append(line)
            before = line
            continue
        if before.endswith(":") and not _has_relation(before):                       # it introduces the formula
            formulas.append(f"<p>{_in_words(text.pop())}</p>")
        formulas.append(f'<p class="apart">{html}</p>' if line.startswith("    ") else f"<p>{html}</p>")
        before = ""
    return Explained(formulas, re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip())


def _aliases(doc):
    """{letter: name in the code} as a docstring says it: Q, K are `query`, `key`"""
    found = {}
    for letters, codes in ALIASES.findall(doc):
        found |= dict(zip(letters.split(", "), re.findall(r"\w+", codes)))
    return found


def _line(line, names):
    """A line as HTML, its formulas typeset; None if it has none, or if one is refused"""
    html, has_formula = [], False
    for piece in WIDE.split(line.strip()):
        formula, words = _first_formula(piece, names, line.startswith("    ") and not html)
        if _has_relation(words) or (not formula and _has_relation(piece)):
            return None
        html += [one for one in (formula, _in_words(words)) if one]
        has_formula |= bool(formula)
    return " ".join(html) if has_formula else None


def _runs_on(line, following):
    """True if a sentence goes on in the next line: there, what looks like a formula is a part of it"""
    return (line[-1:].isalpha() or line.endswith(",")) and "→" not in line and following.strip()[:1].islower()


def _first_formula(piece, names, alone):
    """(the formula that a piece begins with, in HTML, the words after it)"""
    body = piece.rstrip(",;:.")
    for end in (len(body), *(cut.start() for cut in reversed(list(CUT.finditer(body))))):
        words = piece[end:].strip()
        if (math := mathml(body[:end], names, alone)) and not (words[:1].isalpha() and OPERATION.search(words)):
            mark = words[:1] if words[:1] in (",", ";", ":", ".") else ""
            return f'<span class="math">{math}{mark}</span>', words[len(mark) :].strip()
    return "", piece


def _has_relation(text):
    return any(sign in text for sign in RELATIONS)


def _in_words(text):
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text.strip()))
    return f'<span class="words">{marked}</span>' if marked else ""

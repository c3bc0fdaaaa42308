"""Formulas in plain letters as MathML: y = γ·x̂ + β.

    formula    relation {"," relation}             relation   sum {"=" sum}, also ← ≤ … and others
    sum        product {"+" product}               product    factor {"·" factor}, with "/" a fraction
    factor     Σ_j product, log factor, √x, ∂x; or a number, a name, (…), […], ‖…‖ with what is attached to it:
               x_j, x_{t−1}, x², x^(−i), xᵀ, x′, f(x), x[i]
"""

import re
from collections.abc import Iterable
from html import escape
from typing import NamedTuple
from unicodedata import name as unicode_name

RELATIONS = "=", "←", "+=", "−=", "≤", "≥", "<", ">", "≠", "≈", "∝"
CONNECTIVES = "where", "else", "if", "for", "and"
FUNCTIONS = "log", "ln", "exp", "tanh", "cos", "sin", "max", "min", "erf"            # log p needs no parentheses
PAIRS = {"(": ")", "[": "]", "‖": "‖", "⌊": "⌋"}
SUMS = {"Σ": "∑", "Π": "∏"}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ′", "0123456789−T′"))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789"))
PLAIN = {"-": "−", "*": "·", "@": "·"}                   # of learners' docstrings
TOKEN = re.compile(
    r" *(\d+(?:\.\d+)?|[A-Za-z]{3,}(?:-[A-Za-z]{3,})+|d?[Α-ΟΡΤ-Ωα-ωℓ]\u0302?|[A-Za-z]+\d*\u0302?|[+−]=|\S)"
)  # a number, feed-forward, γ or dγ or x̂, dx or h0, +=
WORD = re.compile(r"[A-Za-zΑ-Ωα-ωℓ]")
SUBSCRIPTED = re.compile("<msub( [^>]*)?>(<mi>.</mi><m[in]>[^<]*</m[in]>)</msub>")
APPLIED = "<mo>&#x2061;</mo>"


class Refused(Exception):
    """The grammar does not take this text."""


class Names:
    """Which letter of a formula is which name of the code: x is x, or self.x; γ is gamma, dγ is dgamma."""

    def __init__(self, names: Iterable[str] = (), aliases: dict[str, str] | None = None):
        self.names, self.aliases = set(names), aliases or {}

    def code(self, letters: str) -> str | None:
        """The name in the code, or None"""
        gradient, stem = ("d", letters[1:]) if letters[0] == "d" and len(letters) > 1 else ("", letters)
        english = unicode_name(stem, "").split()[-1:] if len(stem) == 1 and not stem.isascii() else []
        spoken = [one.lower() if stem.islower() else one.capitalize() for one in english]
        candidates = [letters, *(gradient + one for one in (*spoken, self.aliases.get(stem)) if one)]
        return next((code for one in candidates for code in (one, f"self.{one}") if code in self.names), None)

    def is_gradient(self, letters: str) -> bool:
        """True for dx, dγ, dlogits; not for distance"""
        stem = letters[1:]
        return letters[0] == "d" and (len(stem.rstrip("\u0302")) == 1 or bool({stem, f"self.{stem}"} & self.names))


def mathml(text: str, names: Names, alone: bool = False) -> str | None:
    """A formula as MathML, or None. alone: it needs no sign such as =, only an operation"""
    reader = _Reader(text, names)
    try:
        html = reader.formula()
    except (Refused, RecursionError):
        return None
    if not reader.relations and not (alone and re.search("[·+−/√∘]", text)):
        return None
    left, equals, _ = text.partition(" =")
    code = names.code(left) or names.code(left.partition("_")[0]) if equals and left.isidentifier() else None
    makes = f' data-makes="{code}"' if code else ""
    return f'<math displaystyle="true" alttext="{escape(text)}"{makes}>{html}</math>'


def _row(*parts):
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _fenced(opened, inner):
    """What stands between parentheses: without a fraction, these are no taller than letters, and sums are small"""
    small = "" if "<mfrac" in inner else ' stretchy="false"'
    style = ' displaystyle="false"' if small and ("∑" in inner or "∏" in inner) else ""
    return f"<mrow{style}><mo{small}>{opened}</mo>{inner}<mo{small}>{PAIRS[opened]}</mo></mrow>"


class _Node(NamedTuple):
    html: str
    inner: str = ""                                      # without the parentheses around it

    @property
    def bare(self):
        return self.inner or self.html


class _Reader:
    """Reads a formula from left to right: each method takes one part of it."""

    def __init__(self, text, names):
        found = list(TOKEN.finditer(text))
        self.tokens = [PLAIN.get(one[1], one[1]) for one in found] + [""]
        self.touching = [not one[0].startswith(" ") for one in found] + [False]
        self.names, self.place, self.relations, self.in_script = names, 0, 0, False

    def take(self, *expected):
        """The next token, if it is one of these; else "" """
        token = self.tokens[self.place]
        found = token if token in expected else ""
        self.place += bool(found)
        return found

    def follows(self, *expected):
        """True if one of these follows without a blank"""
        return self.touching[self.place] and self.tokens[self.place] in expected

    def formula(self):
        parts = [self.relation()]
        while self.tokens[self.place]:
            known, comma, word = self.relations, self.take(","), self.take(*CONNECTIVES)
            if not comma and not word:
                raise Refused
            parts += [f"<mtext>{comma}&nbsp;{word}{'&nbsp;' * bool(word)}</mtext>", self.relation()]
            if not word and self.relations == known:     # y = 0, empty
                raise Refused
        return _row(*parts)

    def relation(self):
        parts = [self.sum()]
        while sign := self.take(*RELATIONS, "…", "|"):
            self.relations += sign in RELATIONS
            parts += [f"<mo>{escape(sign)}</mo>", self.sum()]
        return _row(*parts)

    def sum(self):
        sign = self.take("−", "+")
        parts = [f'<mo form="prefix">{sign}</mo>'] if sign else []
        parts.append(self.product().html)
        while sign := self.take("−", "+"):
            parts += [f"<mo>{sign}</mo>", self.product().html]
        return _row(*parts)

    def product(self):
        parts = [self.factor()]
        while sign := self.take("·", "∘", "×", "/"):
            if sign == "/" and not self.in_script:
                above = parts[0].bare if len(parts) == 1 else _row(*(one.html for one in parts))
                parts = [_Node(f"<mfrac>{above}{self.factor().bare}</mfrac>")]
            else:
                parts += [_Node(f"<mo>{sign}</mo>"), self.factor()]
        return parts[0] if len(parts) == 1 else _Node(_row(*(one.html for one in parts)))

    def factor(self):
        if sign := self.take(*SUMS):
            return _Node(_row(self.attached(_Node(f"<mo>{SUMS[sign]}</mo>"), "munder").html, self.product().html))
        if self.take("∂"):
            return _Node(_row("<mi>∂</mi>", self.factor().html))
        if self.take("√"):
            return _Node(f"<msqrt>{self.attached(self.atom()).bare}</msqrt>")
        if function := self.take(*FUNCTIONS):
            base = self.attached(_Node(f"<mi>{function}</mi>"), "munder" if function in ("max", "min") else "msub")
            if self.tokens[self.place - 1] == ")":
                return base
            return _Node(_row(base.html, APPLIED, '<mspace width=".17em"></mspace>', self.factor().html))
        return self.attached(self.atom())

    def atom(self):
        token, self.place = self.tokens[self.place], self.place + bool(self.tokens[self.place])
        if token[:1].isdigit():
            following = self.tokens[self.place]
            if self.touching[self.place] and WORD.match(following):
                return _Node(_row(f"<mn>{token}</mn>", "<mo>&#x2062;</mo>", self.attached(self.atom()).html))
            return _Node(f"<mn>{token}</mn>")
        if token in PAIRS:
            inner = self.items(PAIRS[token])
            return _Node(_fenced(token, inner), inner if token == "(" else "")
        if token == "½":
            return _Node("<mfrac><mn>1</mn><mn>2</mn></mfrac>")
        if token in ("…", "∞"):
            return _Node(f"<mi>{token}</mi>")
        if not token or not WORD.match(token) or token in CONNECTIVES:
            raise Refused
        return _Node(self.name(token))

    def name(self, letters):
        code, plain = self.names.code(letters), letters.rstrip("\u0302")
        if self.names.is_gradient(plain):
            html = _row('<mi mathvariant="normal">d</mi>', _letters(plain[1:], False))
        else:
            html = _letters(plain, self.follows("("))
        if plain != letters:
            html = f"<mover>{html}<mo>^</mo></mover>"
        return re.sub(r"^<\w+", rf'\g<0> data-name="{code}"', html) if code else html

    def attached(self, node, below="msub"):
        """What has been read, with its subscript and power, and what it is applied to"""
        while True:
            start = self.place
            lower = self.lower()
            code = self.names.code("".join(LOWERED.get(one, one) for one in self.tokens[start - 1 : self.place]))
            upper, html = self.upper(), node.html
            if lower and code:                           # b_g has a name of its own: it is not b
                html = re.sub(' data-name="[^"]*"', "", html)
            if upper and not lower and (pair := SUBSCRIPTED.fullmatch(html)):        # of Whᵀ: T above h
                node = _Node(f"<msubsup{pair[1] or ''}>{pair[2]}{upper}</msubsup>")
            elif lower or upper:
                tag = f"{below}sup" if lower and upper else below if lower else "msup"
                named = f' data-name="{code}"' if lower and code else ""
                node = _Node(f"<{tag}{named}>{html}{lower}{upper}</{tag}>")
            elif self.follows("(", "["):
                opened = self.take("(", "[")
                node = _Node(_row(html, APPLIED * (opened == "("), _fenced(opened, self.items(PAIRS[opened]))))
            else:
                return node

    def lower(self):
        if self.take("_"):
            return self.script()
        digits = ""
        while digit := self.take(*LOWERED):
            digits += LOWERED[digit]
        return digits and f"<mn>{digits}</mn>"

    def upper(self):
        parts = []
        while sign := self.take("^", *RAISED):
            mark = RAISED.get(sign, "")
            parts.append(self.script() if sign == "^" else f"<mn>{mark}</mn>" if mark.isdigit() else
                         '<mi mathvariant="normal">T</mi>' if mark == "T" else f"<mo>{mark}</mo>")     # fmt: skip
        return _row(*parts) if parts else ""

    def script(self):
        """A subscript or power: t, ij, 2i, {t−1}, (−2i/m); in it fractions are written with a slash"""
        before, self.in_script = self.in_script, True
        if opened := self.take("{", "("):
            html = self.items("}" if opened == "{" else ")")
        else:
            token, self.place = self.tokens[self.place], self.place + 1
            if token.isdigit():
                html = f"<mn>{token}</mn>"
            elif WORD.match(token):
                html = _row(*(f"<mi>{one}</mi>" for one in token)) if len(token) <= 3 else f"<mi>{token}</mi>"
            else:
                raise Refused
        self.in_script = before
        return html

    def items(self, close):
        """What stands between parentheses, up to the one that closes"""
        known, parts = self.relations, [self.relation()]
        while not self.take(close):
            if self.take(","):
                parts.append('<mo separator="true">,</mo>')
            elif close in "]}":                          # [a_i a_f], {j allowed}
                parts.append('<mspace width=".5em"></mspace>')
            else:
                raise Refused
            parts.append(self.relation())
        self.relations = known
        return _row(*parts)


def _letters(letters, is_function):
    """x in italics; W1 and Wx with a subscript; the name of a function upright"""
    if parts := re.fullmatch(r"([A-Za-z])(\d+)|([A-Z])([a-z])", letters):
        base, lower = (one for one in parts.groups() if one)
        return f"<msub><mi>{base}</mi>{f'<mn>{lower}</mn>' if lower.isdigit() else f'<mi>{lower}</mi>'}</msub>"
    return f"<mi>{letters}</mi>" if is_function or len(letters) == 1 else f'<mi class="word">{letters}</mi>'

"""How French and English spell words that meet: elision, contraction, a or an. And numbers in words."""

import re

# A vowel, the pronoun y, or an h, but not the h aspiré of the words listed: le hibou, la hache; nor onze: le onze.
VOWEL = re.compile(r"(?!onze)(?:[aàâeéèêiîoôuœ]|y\b|h(?!ibou|érisson|amster|ache|amac|arpe|aricot|ongrie|uit))", re.I)
ELISION = re.compile(rf"\b(j|d|l|n|m|t|s|qu)(?:e|(?<=\bl)a) (?={VOWEL.pattern})", re.I)
CONTRACTIONS = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}
AN = re.compile(r"\ba (?=[aeio]|hour|u(?!ni|se))")

# Before a vowel, in the singular: cet ami, mon amie, un vieil ami.
LIAISON = {"ce": "cet", "ma": "mon", "ta": "ton", "beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}


def before_vowel(word: str) -> bool:
    """Whether an article before `word` loses its vowel: l'homme, l'âne, but le hibou, le onze."""
    return VOWEL.match(word) is not None


def french(words: str, mark: str = ".") -> str:
    """A French sentence: "je aime le ami de le roi" → "J'aime l'ami du roi."

    The elision comes first, so that "de le ami" becomes "de l'ami" and is left alone by the contraction.
    """
    words = ELISION.sub(r"\1'", _single_spaced(words))
    words = re.sub(r"\b(à|de) les?(?= )", lambda found: CONTRACTIONS[found[0]], words)
    return words[0].upper() + words[1:] + (mark if mark == "." else " " + mark)


def english(words: str, mark: str = ".") -> str:
    """An English sentence: "I see a owl" → "I see an owl." """
    words = AN.sub("an ", _single_spaced(words))
    return words[0].upper() + words[1:] + mark


def _single_spaced(words):
    """What a pattern left empty, such as a time, leaves no second space; and there is none before a comma."""
    return " ".join(words.split()).replace(" ,", ",")


def possessive(owner: str, plural: bool) -> str:
    """my brother → my brother's, my brothers → my brothers', the children → the children's"""
    return owner + ("'" if plural and owner.endswith("s") else "'s")


FRENCH_UNITS = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf"
).split()
FRENCH_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante", 8: "quatre-vingt"}
ENGLISH_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
ENGLISH_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def french_number(n: int, gender: str = "m") -> str:
    """0 … 99 in words: 21 vingt et un (vingt et une with a feminine noun), 71 soixante et onze, 80 quatre-vingts.

    The tens 70 and 90 do not exist: one counts on from 60 and from 80, up to 79 and 99.
    """
    if n < 20:
        return "une" if n == 1 and gender == "f" else FRENCH_UNITS[n]
    ten, unit = divmod(n, 10)
    if ten in (7, 9):
        ten, unit = ten - 1, unit + 10
    if unit == 0:
        return FRENCH_TENS[ten] + "s" * (ten == 8)
    link = " et " if unit in (1, 11) and ten != 8 else "-"
    return f"{FRENCH_TENS[ten]}{link}{'une' if unit == 1 and gender == 'f' else FRENCH_UNITS[unit]}"


def english_number(n: int) -> str:
    """0 … 99 in words: 21 twenty-one"""
    if n < 20:
        return ENGLISH_UNITS[n]
    ten, unit = divmod(n, 10)
    return ENGLISH_TENS[ten] + (f"-{ENGLISH_UNITS[unit]}" if unit else "")

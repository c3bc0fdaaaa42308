"""Numbers, ages, times and degrees."""

from mini_tf.data.french.choices import Either
from mini_tf.data.french.lexicon import (
    CITIES,
    COUNTRIES,
    HAVE,
    NOUNS,
    PRONOUNS,
    STATES,
    VERBS,
    Noun,
    Pair,
    Phrase,
    Place,
    Verb,
)
from mini_tf.data.french.patterns.pattern import ADULTS, THIRD, TIMES, after, pattern
from mini_tf.data.french.phrases import ASKABLE, BE, HAS, SUBJECTS, asks, counted, goes_on
from mini_tf.data.french.spelling import english_number, french_number

__all__ = ["age"]


@pattern(SUBJECTS, [HAVE], range(2, 100), NOUNS["pet"] + NOUNS["text"])
@pattern(SUBJECTS, VERBS["goods"][:4], range(2, 100), NOUNS["food"] + NOUNS["thing"])
def counts(subject: Phrase, verb: Verb, n: int, noun: Noun) -> Pair:
    """Ma tante a vingt et une poules. My aunt has twenty-one hens."""
    fr, en = counted(n, noun)
    return f"{subject.fr} {verb.present[subject.person]} {fr}", f"{subject.en} {goes_on(subject.person, verb)} {en}"


@pattern(ADULTS, range(18, 100))
def age(subject: Phrase, n: int) -> Pair:
    """Elle a vingt et un ans. She is twenty-one years old."""
    return (
        f"{subject.fr} {HAVE.present[subject.person]} {french_number(n)} ans",
        f"{subject.en} {BE[subject.person]} {english_number(n)} years old",
    )


@pattern(Either(ASKABLE, THIRD), mark="?")
def how_old(subject: Phrase) -> Pair:
    """Quel âge a ton frère ? How old is your brother?"""
    have = HAVE.present[subject.person]
    fr = asks(have, subject) if subject in PRONOUNS else f"{have} {subject.fr}"
    return f"quel âge {fr}", f"how old {BE[subject.person]} {subject.en}"


@pattern([("il est", "it is"), ("maintenant, il est", "now it is")], TIMES)
def clock(start: Pair, time: Pair) -> Pair:
    """Il est quatre heures moins dix. It is ten to four."""
    return f"{start[0]} {time[0]}", f"{start[1]} {time[1]}"


TRAINS = [
    ("le train", "the train"),
    ("le premier train", "the first train"),
    ("le dernier train", "the last train"),
    ("l'avion", "the plane"),
]


@pattern(TRAINS, CITIES, TIMES, [("part", "leaves"), ("arrive", "arrives")])
def train(what: Pair, city: Place, time: Pair, does: Pair) -> Pair:
    """Le train pour Paris part à midi. The train to Paris leaves at noon. Le train de Paris arrive à midi."""
    way = ("pour", "to") if does[0] == "part" else ("de", "from")
    return (
        f"{what[0]} {way[0]} {city.name} {does[0]} à {time[0]}",
        f"{what[1]} {way[1]} {city.en} {does[1]} at {time[1]}",
    )


@pattern(range(-12, 36), CITIES, [("", ""), ("aujourd'hui", "today"), ("ce matin", "this morning")])
def degrees(n: int, place: Place, time: Pair) -> Pair:
    """Il fait zéro degré à Oslo aujourd'hui. It is zero degrees in Oslo today."""
    fr, en = after([time])[0]
    minus = ("moins ", "minus ") if n < 0 else ("", "")
    return (
        f"il fait {minus[0]}{french_number(abs(n))} degré{'s' * (abs(n) > 1)} {place.there}{fr}",
        f"it is {minus[1]}{english_number(abs(n))} degree{'s' * (n not in (1, -1))} in {place.en}{en}",
    )


@pattern(ADULTS, STATES, Either(CITIES, COUNTRIES), range(2, 42))
def since(subject: Phrase, verb: Verb, place: Place, n: int) -> Pair:
    """Ma sœur habite à Lyon depuis vingt ans. My sister has lived in Lyon for twenty years."""
    return (
        f"{subject.fr} {verb.present[subject.person]} {place.there} depuis {french_number(n)} ans",
        f"{subject.en} {HAS[subject.person]} {verb.done} in {place.en} for {english_number(n)} years",
    )

"""Numbers, ages, times and degrees."""

from mini_tf.data.french.choices import Together
from mini_tf.data.french.lexicon import AVOIR, CITIES, NOTHING, NOUNS, VERBS, Noun, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.patterns.pattern import ADULTS, ASKED, HOURS, LIVED_IN, Parts, maybe, pattern
from mini_tf.data.french.phrases import SUBJECTS, counted
from mini_tf.data.french.spelling import english_number, french_number
from mini_tf.data.french.verb_phrases import BE, HAS, conjugated, progressive, verb_first


@pattern(SUBJECTS, [AVOIR], range(2, 100), NOUNS["pet"] + NOUNS["text"])
@pattern(SUBJECTS, VERBS["goods"][:4], range(2, 100), NOUNS["food"] + NOUNS["thing"])
def counts(subject: Phrase, verb: Verb, n: int, noun: Noun) -> Parts:
    """Ma tante a vingt et une poules. My aunt has twenty-one hens."""
    return progressive(subject, verb), counted(n, noun)


@pattern(ADULTS, range(18, 100))
def age(subject: Phrase, n: int) -> Parts:
    """Elle a vingt et un ans. She is twenty-one years old."""
    years = Pair(f"{french_number(n)} ans", f"{english_number(n)} years old")
    return Pair(conjugated(subject, AVOIR), f"{subject.en} {BE[subject.person]}"), years


@pattern(ASKED, mark="?")
def how_old(subject: Phrase) -> Parts:
    """Quel âge a ton frère ? How old is your brother?"""
    return (Pair(f"quel âge {verb_first(subject, AVOIR)}", f"how old {BE[subject.person]} {subject.en}"),)


@pattern([Pair("il est", "it is"), Pair("maintenant, il est", "now it is")], HOURS)
def clock(start: Pair, time: Pair) -> Parts:
    """Il est quatre heures moins dix. It is ten to four."""
    return start, time


TRAINS = pairs("""
    le train = the train, le premier train = the first train, le dernier train = the last train, l'avion = the plane
""")
RUNS = [Together(*pairs("pour = to, part = leaves")), Together(*pairs("de = from, arrive = arrives"))]


@pattern(TRAINS, CITIES, HOURS, RUNS)
def train(what: Pair, city: Place, time: Pair, way: Pair, runs: Pair) -> Parts:
    """Le train pour Paris part à midi. The train to Paris leaves at noon. Le train de Paris arrive à midi."""
    return what, way, city, runs, Pair("à", "at"), time


@pattern(range(-12, 36), CITIES, maybe("aujourd'hui = today, ce matin = this morning"))
def degrees(n: int, city: Place, time: Pair) -> Parts:
    """Il fait zéro degré à Oslo aujourd'hui. It is zero degrees in Oslo today."""
    minus, n = Pair("moins", "minus") if n < 0 else NOTHING, abs(n)
    fr, en = f"{french_number(n)} degré{'s' * (n > 1)}", f"{english_number(n)} degree{'s' * (n != 1)}"
    return Pair("il fait", "it is"), minus, Pair(fr, en), city.there, time


@pattern(ADULTS, VERBS["state"], LIVED_IN, range(2, 42))
def since(subject: Phrase, verb: Verb, place: Place, n: int) -> Parts:
    """Ma sœur habite à Lyon depuis vingt ans. My sister has lived in Lyon for twenty years."""
    lives = Pair(conjugated(subject, verb), f"{subject.en} {HAS[subject.person]} {verb.done}")
    return lives, place.there, Pair(f"depuis {french_number(n)} ans", f"for {english_number(n)} years")

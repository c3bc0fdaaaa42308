"""The words of the grammar, from words.toml, with all their forms; and what words have in common."""

from typing import NamedTuple

from mini_tf.data.french.choices import Together
from mini_tf.data.french.inflection import WORDS, english_forms, feminine, french_forms, french_plural, with_s


class Pair(NamedTuple):
    """The same in French and in English."""

    fr: str
    en: str


NOTHING, NOT = Pair("", ""), Pair("pas", "not")


class Noun(NamedTuple):
    fr: str
    fr_plural: str
    gender: str                                          # "m" or "f"
    en: str
    en_plural: str


class Adjective(NamedTuple):
    m: str
    f: str
    m_plural: str
    f_plural: str
    en: str
    en_more: str = ""                                    # the comparative: "taller"


class Verb(NamedTuple):
    fr: str                                              # the infinitive
    present: tuple[str, ...]                             # je, tu, il, nous, vous, ils
    participle: str
    en: str                                              # the plain form
    third: str
    past: str
    done: str
    ing: str
    state: bool                                          # "I see", never "I am seeing"
    etre: bool                                           # il est allé, not "il a allé"


class Phrase(NamedTuple):
    """A noun phrase or a pronoun in both languages, as a subject or an object."""

    fr: str
    en: str
    person: int                                          # 0 je, 1 tu, 2 il, 3 nous, 4 vous, 5 ils
    gender: str
    after_not: Pair = NOTHING                            # (ne … pas) de pommes, (not) any apples
    after_never: Pair = NOTHING                          # (ne … jamais) de pommes, (never) apples
    after_often: Pair = NOTHING                          # (souvent) des pommes, (often) apples
    in_question: Pair = NOTHING                          # des pommes ? any apples?


class Place(NamedTuple):
    fr: str
    en: str
    there: Pair                                          # au Canada, in Canada
    towards: Pair                                        # au Canada, (to) Canada


def pairs(table: str) -> list[Pair]:
    """ "hier = yesterday, demain = tomorrow" → [Pair("hier", "yesterday"), Pair("demain", "tomorrow")]"""
    return [Pair(*(" ".join(side.split()) for side in entry.split("="))) for entry in table.split(",")]


def _nouns(table):
    nouns = []
    for fr, en in pairs(table):
        word, gender = fr[:-2], fr[-1]
        nouns.append(Noun(word, french_plural(word), gender, en, with_s(en)))
    return nouns


def _adjectives(table):
    """ "vieux/vieille = old/older": the feminine if it is irregular; the comparative where it is needed"""
    adjectives = []
    for fr, en in pairs(table):
        m, _, f = fr.partition("/")
        f = f or feminine(m)
        adjectives.append(Adjective(m, f, french_plural(m), french_plural(f), *en.split("/")))
    return adjectives


# "I see", never "I am seeing"; some here because "I am finding a key" is rare
STATES = "want see find lose forget understand hear like love prefer hate think know hope believe say can have".split()
WITH_ETRE = "aller arriver partir rentrer rester revenir sortir tomber venir".split()


def _verbs(table):
    """Of "look for" the first word has forms, and what follows it stays: looks for, looked for."""
    verbs = []
    for infinitive, en in pairs(table):
        verb = infinitive.removeprefix("se ").removeprefix("s'")
        base, *after = en.split()
        forms = [" ".join([form, *after]) for form in (base, *english_forms(base))]
        etre = verb != infinitive or verb in WITH_ETRE   # reflexive verbs take être, too
        verbs.append(Verb(verb, *french_forms(verb), *forms, base in STATES, etre))
    return verbs


NOUNS = {kind: _nouns(table) for kind, table in WORDS["nouns"].items()}
MASSES = {kind: _nouns(table) for kind, table in WORDS["masses"].items()}

COLOURS, SIZES, QUALITIES, TRAITS, FEELINGS = (_adjectives(table) for table in WORDS["adjectives"].values())
COLOURS += [Adjective("orange", "orange", "orange", "orange", "orange")]     # named after a thing, it never changes
FURS = [colour for colour in COLOURS if colour.en in ("black", "white", "grey", "brown")]
BETTER, *YOUTH = _adjectives("meilleur = better, petit = little, jeune = young")

# kind: (the few that stand before the noun, those after it, those after it that one before may go with)
ADJECTIVES = {
    "person": (
        _adjectives("jeune = young, vieux/vieille = old"),
        [trait for trait in TRAITS if trait.en in "patient careful curious brave generous polite shy".split()],
        [trait for trait in TRAITS if trait.en in ("patient", "brave", "shy")],
    ),
    "pet": (SIZES[:4], FURS, FURS),
    "wild": (SIZES[:4], _adjectives("dangereux = dangerous, sauvage = wild"), []),
    "food": (
        SIZES[:2] + _adjectives("bon/bonne = good"),
        _adjectives("frais/fraîche = fresh, délicieux = delicious, froid = cold"),
        [],
    ),
    "thing": (SIZES, QUALITIES + COLOURS, COLOURS),
    "text": (SIZES[3:5], QUALITIES[:3] + QUALITIES[-1:], []),
    "letter": (
        SIZES[2:5] + _adjectives("long/longue = long, court = short"),
        _adjectives("intéressant = interesting, amusant = funny, difficile = difficult, célèbre = famous"),
        [],
    ),
    "clothes": (SIZES, COLOURS + QUALITIES[2:4], COLOURS),
    "vehicle": (SIZES, COLOURS + QUALITIES[2:5], COLOURS),
    "sight": (SIZES, _adjectives("célèbre = famous, calme = quiet, moderne = modern"), []),
}

# "vieille fille" and "vieux garçon" are people who never married.
NEVER_OLD = ("boy", "girl", "child")

VERBS = {kind: _verbs(table) for kind, table in WORDS["verbs"].items()}
AVOIR, ETRE, ALLER, VENIR, CONNAITRE = _verbs("avoir = have, être = be, aller = go, venir = come, connaître = know")
SEE, HEAR, LOOK_FOR = _verbs("voir = see, entendre = hear, chercher = look for")

PRONOUNS = [
    Phrase("je", "I", 0, "m"), Phrase("tu", "you", 1, "m"), Phrase("il", "he", 2, "m"), Phrase("elle", "she", 2, "f"),
    Phrase("nous", "we", 3, "m"), Phrase("vous", "you", 4, "m"), Phrase("ils", "they", 5, "m"),
    Phrase("elles", "they", 5, "f"),
]  # fmt: skip
SPEAKERS = [Phrase("je", "I", 0, "f"), Phrase("nous", "we", 3, "f")]      # women; only where the French shows it
NAMES = [Phrase(name, name, 2, "f") for name in ("Alice", "Emma", "Hélène", "Julie", "Marie", "Sophie")]
NAMES += [Phrase(name, name, 2, "m") for name in ("Antoine", "Émile", "Martin", "Olivier", "Paul", "Victor")]


def _places(kind, at):
    """à Paris; en France, en Italie; but à le Canada, à les Pays-Bas, which become au Canada, aux Pays-Bas"""
    places = []
    for fr, en in pairs(WORDS["places"][kind]):
        there = f"à {fr}"
        if kind == "countries" and fr.startswith(("la ", "l'")):         # those with l' here are feminine
            there = "en " + fr.removeprefix("la ").removeprefix("l'")
        places.append(Place(fr, en, Pair(there, f"{at} {en}"), Pair(there, en)))
    return places


CITIES, COUNTRIES, SITES = _places("cities", "in"), _places("countries", "in"), _places("sites", "at")

PAST_TIMES, OFTEN, MONTHS = (pairs(table) for table in WORDS["adverbials"].values())
PAST_TIMES.append(NOTHING)
# The adverb stands where the two parts meet: "il fait souvent froid", "it is often cold".
WEATHER = [Together(*pairs(table)) for table in (
    "il fait = it is, froid = cold", "il fait = it is, chaud = hot", "il fait = the weather is, beau = fine",
    "il y a = it is, du vent = windy", "il y a = it is, du brouillard = foggy", "il pleut = it, = rains",
    "il neige = it, = snows",
)]  # fmt: skip

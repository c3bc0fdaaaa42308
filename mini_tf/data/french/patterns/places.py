"""Whose it is, and where."""

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import NOTHING, Noun, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.patterns.pattern import POLARITY, THERE, Parts, maybe, pattern
from mini_tf.data.french.phrases import LE, MINE, SUBJECTS, THIS, UN, counted, noun_phrase, nouns, owned
from mini_tf.data.french.verb_phrases import BE, copula, habitual, preterite, progressive


@pattern(Either(*(owned(kind) for kind in ("thing", "pet", "clothes", "vehicle", "text"))))
def this_is(thing: Phrase) -> Parts:
    """Ce sont les livres de mon frère. These are my brother's books."""
    return Pair("ce sont", "these are") if thing.person == 5 else Pair("c'est", "this is"), thing


FOUND = Either(*(
    each(Together, verbs, owned(kind)) for kind, verbs in [
        ("thing", lexicon.VERBS["thing"][:6]), ("vehicle", lexicon.VERBS["vehicle"]), ("pet", lexicon.VERBS["animal"]),
        ("text", lexicon.VERBS["text"]),
    ]
))  # fmt: skip


@pattern(lexicon.PRONOUNS, FOUND, POLARITY)
def past_with_owner(subject: Phrase, verb: Verb, thing: Phrase, no: Pair) -> Parts:
    """J'ai trouvé la clé du professeur. I found the teacher's key."""
    return preterite(subject, verb, no), thing


INSIDE = ("house", "garden", "castle", "museum", "church", "hotel", "village", "factory")
PREPOSITIONS = pairs("""
    dans = in, sur = on, sous = under, devant = in front of, derrière = behind, à côté de = next to, près de = near,
    loin de = far from
""")


def _places(prepositions, kind, words, determiners):
    chosen = [noun for noun in lexicon.NOUNS[kind] if noun.en in words]
    return each(Together, prepositions, each(noun_phrase, determiners, [False], chosen))


OUTDOORS = Either(
    _places(PREPOSITIONS[:1], "sight", INSIDE, [LE, THIS]),
    _places(PREPOSITIONS[3:], "sight", ("tower", *INSIDE), [LE, THIS]),
)
INDOORS = Either(
    _places(PREPOSITIONS[:1], "thing", ("bag", "box", "basket", "suitcase"), [LE, THIS, *MINE]),
    _places(PREPOSITIONS[1:3], "thing", ("table", "chair"), [LE, THIS, *MINE]),
)
LIVING = ("pet", "wild", "person")
SMALL = ("food", "text", "clothes")


@pattern(Either(*(nouns(kind, [UN]) for kind in LIVING)), OUTDOORS)
@pattern(Either(*(nouns(kind, [UN]) for kind in SMALL)), INDOORS)
def there_is(thing: Phrase, preposition: Pair, place: Phrase) -> Parts:
    """Il y a un hibou derrière l'église. There is an owl behind the church."""
    return Pair("il y a", f"there {BE[thing.person]}"), thing, preposition, place


@pattern(Either(*(nouns(kind, [UN]) for kind in LIVING)), OUTDOORS)
@pattern(Either(*(nouns(kind, [UN]) for kind in SMALL)), INDOORS)
def there_is_not(thing: Phrase, preposition: Pair, place: Phrase) -> Parts:
    """Il n'y a pas de pommes sur la table. There are no apples on the table."""
    no_thing = Pair(thing.after_not.fr, f"no {thing.after_never.en.removeprefix('a ')}")
    return Pair("il n'y a pas", f"there {BE[thing.person]}"), no_thing, preposition, place


@pattern(nouns("sight", [UN]), OUTDOORS[1], mark="?")
@pattern(nouns("pet", [UN]), OUTDOORS, mark="?")
def is_there(thing: Phrase, preposition: Pair, place: Phrase) -> Parts:
    """Y a-t-il un hôtel près de la tour ? Is there a hotel near the tower?"""
    return Pair("y a-t-il", f"{BE[thing.person]} there"), thing.in_question, preposition, place


@pattern(Either(nouns("pet", [LE, *MINE]), nouns("wild", [LE]), nouns("person", [LE])), OUTDOORS)
@pattern(Either(*(nouns(kind, [LE, *MINE]) for kind in SMALL)), INDOORS)
def it_is_there(thing: Phrase, preposition: Pair, place: Phrase) -> Parts:
    """Mon chapeau est sur la table. My hat is on the table."""
    return copula(thing), preposition, place


@pattern(range(2, 100), lexicon.NOUNS["pet"] + lexicon.NOUNS["wild"] + lexicon.NOUNS["person"], OUTDOORS)
@pattern(range(2, 100), [noun for kind in SMALL for noun in lexicon.NOUNS[kind]], INDOORS)
def there_are(n: int, noun: Noun, preposition: Pair, place: Phrase) -> Parts:
    """Il y a quatre-vingts moutons dans le jardin. There are eighty sheep in the garden."""
    return Pair("il y a", "there are"), counted(n, noun), preposition, place


@pattern(SUBJECTS, THERE, maybe("demain = tomorrow, aujourd'hui = today"))
def going_there(subject: Phrase, place: Place, time: Pair) -> Parts:
    """Nous allons aux États-Unis. We are going to the United States."""
    return progressive(subject, lexicon.ALLER), Pair("", "to"), place.towards, time


@pattern(SUBJECTS, lexicon.COUNTRIES + lexicon.CITIES, POLARITY)
def comes_from(subject: Phrase, place: Place, no: Pair) -> Parts:
    """Elle vient du Japon. She comes from Japan."""
    name = place.fr.removeprefix("la ").removeprefix("l'")  # only le and les stay: de France, du Japon
    return habitual(subject, lexicon.VENIR, no), Pair(f"de {name}", f"from {place.en}")


COLD, HOT = ("in January", "in December", "in winter"), ("in July", "in August", "in summer")


def _in_season(weather, month):
    start, end = weather
    if start.fr == "il neige":
        return month.en in COLD
    return month.en not in {"chaud": COLD, "froid": HOT}.get(end.fr, ())


IN_SEASON = [
    Together(*weather, month) for weather in lexicon.WEATHER for month in lexicon.MONTHS if _in_season(weather, month)
]


@pattern(IN_SEASON, [NOTHING, *lexicon.OFTEN], lexicon.CITIES)
def weather(start: Pair, end: Pair, month: Pair, adverb: Pair, city: Place) -> Parts:
    """Il fait souvent froid à Oslo en hiver. It is often cold in Oslo in winter."""
    return start, adverb, end, city.there, month

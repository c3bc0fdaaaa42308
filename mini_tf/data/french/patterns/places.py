"""Whose it is, and where."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import (
    CITIES,
    COUNTRIES,
    HAVE,
    MONTHS,
    NOUNS,
    OFTEN,
    PREPOSITIONS,
    PRONOUNS,
    VERBS,
    WEATHER,
    Noun,
    Pair,
    Phrase,
    Place,
    Verb,
)
from mini_tf.data.french.patterns.intentions import ALLER, VENIR
from mini_tf.data.french.patterns.pattern import ETRE, THERE, after, pattern, together
from mini_tf.data.french.phrases import BE, DO, LE, MINE, SUBJECTS, THIS, UN, counted, noun_phrase, nouns, owned


@pattern(Either(owned("thing"), owned("pet"), owned("clothes"), owned("vehicle"), owned("text")))
def this_is(thing: Phrase) -> Pair:
    """Ce sont les livres de mon frère. These are my brother's books."""
    if thing.person == 5:
        return f"ce sont {thing.fr}", f"these are {thing.en}"
    return f"c'est {thing.fr}", f"this is {thing.en}"


@pattern(PRONOUNS, Either(
    each(together, VERBS["thing"][:6], owned("thing")), each(together, VERBS["vehicle"], owned("vehicle")),
    each(together, VERBS["animal"], owned("pet")), each(together, VERBS["text"], owned("text")),
), [False, True])  # fmt: skip
def past_with_owner(subject: Phrase, pair: tuple[Verb, Phrase], negated: bool) -> Pair:
    """J'ai trouvé la clé du professeur. I found the teacher's key."""
    verb, thing = pair
    have = HAVE.present[subject.person]
    if negated:
        return (
            f"{subject.fr} ne {have} pas {verb.participle} {thing.fr}",
            f"{subject.en} did not {verb.base} {thing.en}",
        )
    return f"{subject.fr} {have} {verb.participle} {thing.fr}", f"{subject.en} {verb.past} {thing.en}"


INSIDE = ("house", "garden", "castle", "museum", "church", "hotel", "village", "factory")


def _where(preposition, place):
    return f"{preposition[0]} {place.fr}", f"{preposition[1]} {place.en}"


def _places(prepositions, kind, words, determiners):
    singulars = [(noun, (), ()) for noun in NOUNS[kind] if noun.en in words]
    return each(_where, prepositions, each(noun_phrase, determiners, [False], singulars))


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
def there_is(thing: Phrase, place: Pair) -> Pair:
    """Il y a un hibou derrière l'église. There is an owl behind the church."""
    return f"il y a {thing.fr} {place[0]}", f"there {BE[thing.person]} {thing.en} {place[1]}"


@pattern(Either(*(nouns(kind, [UN]) for kind in LIVING)), OUTDOORS)
@pattern(Either(*(nouns(kind, [UN]) for kind in SMALL)), INDOORS)
def there_is_not(thing: Phrase, place: Pair) -> Pair:
    """Il n'y a pas de pommes sur la table. There are no apples on the table."""
    return (
        f"il n'y a pas {thing.fr_not} {place[0]}",
        f"there {BE[thing.person]} no {thing.en_bare.removeprefix('a ')} {place[1]}",
    )


@pattern(nouns("sight", [UN]), OUTDOORS[1], mark="?")
@pattern(nouns("pet", [UN]), OUTDOORS, mark="?")
def is_there(thing: Phrase, place: Pair) -> Pair:
    """Y a-t-il un hôtel près de la tour ? Is there a hotel near the tower?"""
    en = thing.en if thing.person == 2 else thing.en_not
    return f"y a-t-il {thing.fr} {place[0]}", f"{BE[thing.person]} there {en} {place[1]}"


@pattern(Either(nouns("pet", [LE, *MINE]), nouns("wild", [LE]), nouns("person", [LE])), OUTDOORS)
@pattern(Either(*(nouns(kind, [LE, *MINE]) for kind in SMALL)), INDOORS)
def it_is_there(thing: Phrase, place: Pair) -> Pair:
    """Mon chapeau est sur la table. My hat is on the table."""
    return f"{thing.fr} {ETRE[thing.person]} {place[0]}", f"{thing.en} {BE[thing.person]} {place[1]}"


@pattern(range(2, 100), NOUNS["pet"] + NOUNS["wild"] + NOUNS["person"], OUTDOORS)
@pattern(range(2, 100), [noun for kind in SMALL for noun in NOUNS[kind]], INDOORS)
def there_are(n: int, noun: Noun, place: Pair) -> Pair:
    """Il y a quatre-vingts moutons dans le jardin. There are eighty sheep in the garden."""
    fr, en = counted(n, noun)
    return f"il y a {fr} {place[0]}", f"there are {en} {place[1]}"


@pattern(SUBJECTS, THERE, [("", ""), ("demain", "tomorrow"), ("aujourd'hui", "today")])
def going_there(subject: Phrase, place: Place, time: Pair) -> Pair:
    """Nous allons aux États-Unis. We are going to the United States."""
    fr, en = after([time])[0]
    return (
        f"{subject.fr} {ALLER[subject.person]} {place.there}{fr}",
        f"{subject.en} {BE[subject.person]} going to {place.en}{en}",
    )


@pattern(SUBJECTS, COUNTRIES + CITIES, [False, True])
def comes_from(subject: Phrase, place: Place, negated: bool) -> Pair:
    """Elle vient du Japon. She comes from Japan."""
    name = place.name.removeprefix("la ").removeprefix("l'")  # only le and les stay: de France, du Japon
    come = VENIR[subject.person]
    if negated:
        return f"{subject.fr} ne {come} pas de {name}", f"{subject.en} {DO[subject.person]} not come from {place.en}"
    return f"{subject.fr} {come} de {name}", f"{subject.en} come{'s' * (subject.person == 2)} from {place.en}"


SEASONABLE = [
    (kind, month)
    for kind in WEATHER
    for month in MONTHS
    if not (kind[1] == "chaud" and month[1] in ("in January", "in December", "in winter"))
    and not (kind[1] == "froid" and month[1] in ("in July", "in August", "in summer"))
    and (kind[0] != "il neige" or month[1] in ("in January", "in December", "in winter"))
]


@pattern(SEASONABLE, [("", ""), *OFTEN], CITIES)
def weather(kind_and_month: tuple[list[str], Pair], adverb: Pair, place: Place) -> Pair:
    """Il fait souvent froid à Oslo en hiver. It is often cold in Oslo in winter."""
    (fr_start, fr_end, en_start, en_end), month = kind_and_month
    fr = [fr_start, adverb[0], fr_end, place.there, month[0]]
    en = [en_start, adverb[1], en_end, f"in {place.en}", month[1]]
    return " ".join(filter(None, fr)), " ".join(filter(None, en))

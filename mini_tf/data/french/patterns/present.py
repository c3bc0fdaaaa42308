"""The present and its negations, habits and likings."""

from mini_tf.data.french.lexicon import (
    CITIES,
    COUNTRIES,
    DOING_ALONE,
    MASSES,
    NOUNS,
    OFTEN,
    SITES,
    VERBS,
    Pair,
    Phrase,
    Place,
    Scene,
    Verb,
)
from mini_tf.data.french.patterns.pattern import HEAR, SCENES, SEE, pattern
from mini_tf.data.french.phrases import DO, LE, SUBJECTS, goes_on, goes_on_not, habit


@pattern(SCENES)
def present(scene: Scene) -> Pair:
    """Marie lit le journal. Marie is reading the newspaper."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} {verb.present[subject.person]} {thing.fr}",
        f"{subject.en} {goes_on(subject.person, verb)} {thing.en}",
    )


@pattern(SCENES)
def not_present(scene: Scene) -> Pair:
    """Je ne vois pas les chats noirs. I do not see the black cats."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} ne {verb.present[subject.person]} pas {thing.fr_not}",
        f"{subject.en} {goes_on_not(subject.person, verb)} {thing.en_not}",
    )


@pattern(SCENES, [("plus", "no longer"), ("jamais", "never")])
def no_longer_or_never(scene: Scene, word: Pair) -> Pair:
    """Il n'achète plus de pain. He no longer buys bread."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} ne {verb.present[subject.person]} {word[0]} {thing.fr_not}",
        f"{subject.en} {word[1]} {habit(subject.person, verb)} {thing.en_bare}",
    )


@pattern(SUBJECTS, [SEE, HEAR], [("rien", "nothing"), ("personne", "nobody")], SITES)
def nothing(subject: Phrase, verb: Verb, word: Pair, place: Place) -> Pair:
    """Je ne vois rien au marché. I see nothing at the market."""
    return (
        f"{subject.fr} ne {verb.present[subject.person]} {word[0]} {place.there}",
        f"{subject.en} {habit(subject.person, verb)} {word[1]} {place.at} {place.en}",
    )


@pattern(SCENES, OFTEN)
def often(scene: Scene, adverb: Pair) -> Pair:
    """Je mange souvent des pommes. I often eat apples."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} {verb.present[subject.person]} {adverb[0]} {thing.fr}",
        f"{subject.en} {adverb[1]} {habit(subject.person, verb)} {thing.en_bare}",
    )


GENERIC = [
    (f"les {noun.fr_plural}", noun.en_plural) for kind in ("pet", "wild", "food") for noun in NOUNS[kind]
] + [
    (f"{LE[noun.gender == 'f']} {noun.fr}", noun.en) for mass in MASSES.values() for noun in mass
]  # fmt: skip


@pattern(SUBJECTS, VERBS["like"], GENERIC)
def likes(subject: Phrase, verb: Verb, thing: Pair) -> Pair:
    """Ma sœur aime le fromage. My sister likes cheese."""
    return (
        f"{subject.fr} {verb.present[subject.person]} {thing[0]}",
        f"{subject.en} {habit(subject.person, verb)} {thing[1]}",
    )


@pattern(SUBJECTS, GENERIC)
def likes_not(subject: Phrase, thing: Pair) -> Pair:
    """Je n'aime pas les huîtres. I do not like oysters."""
    like = VERBS["like"][0]
    return (
        f"{subject.fr} ne {like.present[subject.person]} pas {thing[0]}",
        f"{subject.en} {DO[subject.person]} not {like.base} {thing[1]}",
    )


def _sensible(verb, place):
    """Whether one may well do that there."""
    if verb.base == "swim":
        return place.en in ("the beach", "the swimming pool")
    return (
        place in COUNTRIES
        if verb.base == "travel"
        else place not in SITES or verb.base in ("sing", "work", "study", "laugh")
    )


@pattern(
    SUBJECTS, [(v, place) for v in DOING_ALONE for place in [*CITIES, *COUNTRIES, *SITES] if _sensible(v, place)], OFTEN
)
def often_somewhere(subject: Phrase, doing: tuple[Verb, Place], adverb: Pair) -> Pair:
    """Ils dansent souvent à Paris. They often dance in Paris."""
    verb, place = doing
    return (
        f"{subject.fr} {verb.present[subject.person]} {adverb[0]} {place.there}",
        f"{subject.en} {adverb[1]} {habit(subject.person, verb)} {place.at} {place.en}",
    )

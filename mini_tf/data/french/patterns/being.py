"""To be, to compare, and what French says with avoir."""

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import NOTHING, Adjective, Pair, Phrase, Verb, pairs
from mini_tf.data.french.patterns.pattern import DEEDS, GOERS, POLARITY, Parts, pattern
from mini_tf.data.french.patterns.pronouns import STRESSED
from mini_tf.data.french.phrases import KIN, LE, MINE, PEOPLE, SUBJECTS, THIS, agreed, nouns, owned
from mini_tf.data.french.verb_phrases import BE, conjugated, copula

VERY = pairs("très = very, trop = too, vraiment = really, assez = quite")      # "pas assez" is not "not quite"
GROUPS = {
    "thing": lexicon.QUALITIES,
    "clothes": lexicon.QUALITIES[2:4] + lexicon.SIZES[:4],
    "vehicle": lexicon.QUALITIES[:4] + lexicon.SIZES[:4],
    "sight": lexicon.SIZES[:4] + lexicon.SIZES[5:],
}
OWNED = {kind: adjectives for kind, adjectives in GROUPS.items() if kind != "sight"}


@pattern(Either(*(each(Together, nouns(kind, [LE, THIS], adjectives=False), a) for kind, a in GROUPS.items())), VERY)
@pattern(Either(*(each(Together, owned(kind, adjectives=False), a) for kind, a in OWNED.items())), VERY)
def thing_is(thing: Phrase, adjective: Adjective, very: Pair) -> Parts:
    """Les chemises de ma tante sont très belles. My aunt's shirts are very beautiful."""
    return copula(thing), very, agreed(adjective, thing)


@pattern(GOERS, lexicon.FEELINGS, VERY[:3], POLARITY)
def feels(subject: Phrase, feeling: Adjective, very: Pair, no: Pair) -> Parts:
    """Mes sœurs ne sont pas très contentes. My sisters are not very happy."""
    return copula(subject, no), very, agreed(feeling, subject)


OTHERS = Either(PEOPLE, [Phrase(*pronoun, 2, "") for pronoun in STRESSED])
COMPARED = pairs("plus = more, aussi = as, moins = less")


def _compared(thing, comparison, adjective, other):
    """plus grand … que: taller than; aussi: as tall as; moins: less patient than, but not as tall as"""
    if comparison.en == "more":
        en = f"{adjective.en_more} than"
    elif comparison.en == "less" and adjective.en_more.startswith("more"):
        en = f"less {adjective.en} than"
    else:
        en = f"{'not' if comparison.en == 'less' else ''} as {adjective.en} as"
    return copula(thing), Pair(f"{comparison.fr} {agreed(adjective, thing).fr} que", en), other


@pattern(Either(lexicon.NAMES, KIN), OTHERS, lexicon.TRAITS, COMPARED)
def person_compared(subject: Phrase, other: Phrase, trait: Adjective, comparison: Pair) -> Parts:
    """Marie est plus grande que le facteur. Marie is taller than the postman."""
    return _compared(subject, comparison, trait, other)


@pattern(Either(*(
    each(Together, nouns(kind, [LE, THIS], False), nouns(kind, MINE, False), adjectives, COMPARED)
    for kind, adjectives in OWNED.items()
)))  # fmt: skip
def thing_compared(thing: Phrase, other: Phrase, adjective: Adjective, comparison: Pair) -> Parts:
    """Cette valise est plus lourde que mon sac. This suitcase is heavier than my bag."""
    return _compared(thing, comparison, adjective, other)


@pattern(nouns("food", [LE, THIS], False), nouns("food", MINE, False))
def better(thing: Phrase, other: Phrase) -> Parts:
    """Cette poire est meilleure que ta pomme. This pear is better than your apple."""
    return copula(thing), agreed(lexicon.BETTER, thing), Pair("que", "than"), other


HAVING = pairs("faim = hungry, soif = thirsty, froid = cold, sommeil = sleepy, raison = right, tort = wrong")


def _has(subject, adverb=NOTHING):
    """elle a souvent (faim), she is often (hungry)"""
    return Pair(conjugated(subject, lexicon.AVOIR, adverb.fr), f"{subject.en} {BE[subject.person]} {adverb.en}")


@pattern(SUBJECTS, HAVING[:4], pairs("maintenant = now, ce matin = this morning, aujourd'hui = today"), POLARITY)
def hungry(subject: Phrase, state: Pair, time: Pair, no: Pair) -> Parts:
    """Les enfants n'ont pas faim maintenant. The children are not hungry now."""
    return _has(subject, no), state, time


@pattern(SUBJECTS, HAVING, pairs("souvent = often, pas souvent = not often, pas toujours = not always, jamais = never"))
def often_hungry(subject: Phrase, state: Pair, adverb: Pair) -> Parts:
    """Mon oncle n'a jamais tort. My uncle is never wrong."""
    return _has(subject, adverb), state


def _has_need(subject, fr, en):
    """elle a besoin de, she needs; elle a envie de, she feels"""
    return Pair(f"{conjugated(subject, lexicon.AVOIR)} {fr}", f"{subject.en} {en}{'s' * (subject.person == 2)}")


@pattern(SUBJECTS, nouns("wild", [LE, THIS]))
def afraid(subject: Phrase, animal: Phrase) -> Parts:
    """Ma tante a peur du loup. My aunt is afraid of the wolf."""
    return _has(subject), Pair("peur de", "afraid of"), animal


@pattern(SUBJECTS, Either(*(nouns(kind, [LE, THIS, *MINE]) for kind in ("thing", "vehicle", "text"))))
def needs(subject: Phrase, thing: Phrase) -> Parts:
    """J'ai besoin du marteau. I need the hammer."""
    return _has_need(subject, "besoin de", "need"), thing


@pattern(DEEDS)
def feels_like(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Elle a envie de manger une pomme. She feels like eating an apple."""
    return _has_need(subject, "envie de", "feel"), Pair(verb.fr, f"like {verb.ing}"), thing

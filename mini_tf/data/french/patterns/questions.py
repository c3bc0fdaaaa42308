"""Questions, by inversion and with est-ce que."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import DOING_ALONE, HAVE, NOUNS, PRONOUNS, VERBS, Noun, Pair, Phrase, Scene, Verb
from mini_tf.data.french.patterns.pattern import (
    ASKED_EVENTS,
    ASKED_SCENES,
    ETRE,
    PAST,
    SCENES,
    THIRD,
    pattern,
    together,
)
from mini_tf.data.french.phrases import ALL, ASKABLE, BE, DO, LE, MINE, UN, asked, asks, nouns, past_participle

__all__ = ["who"]


@pattern(ASKED_SCENES, mark="?")
def question(scene: Scene) -> Pair:
    """Vois-tu le chat ? Do you see the cat? Marie mange-t-elle une pomme ? Is Marie eating an apple?"""
    subject, verb, thing = scene
    return f"{asks(verb.present[subject.person], subject)} {thing.fr}", f"{asked(subject, verb)} {thing.en_not}"


@pattern(SCENES, mark="?")
def question_est_ce_que(scene: Scene) -> Pair:
    """Est-ce que tu vois le chat ? Do you see the cat?"""
    subject, verb, thing = scene
    return (
        f"est-ce que {subject.fr} {verb.present[subject.person]} {thing.fr}",
        f"{asked(subject, verb)} {thing.en_not}",
    )


@pattern(ASKED_EVENTS, PAST, mark="?")
def question_past(scene: Scene, time: Pair) -> Pair:
    """A-t-elle acheté une robe hier ? Did she buy a dress yesterday?"""
    subject, verb, thing = scene
    return (
        f"{asks(HAVE.present[subject.person], subject)} {verb.participle} {thing.fr}{time[0]}",
        f"did {subject.en} {verb.base} {thing.en_not}{time[1]}",
    )


@pattern(Either(ASKABLE, THIRD), Either(nouns("pet", [UN, *MINE]), nouns("thing", [UN, LE, *MINE]),
                                          nouns("vehicle", [UN, *MINE])),
         mark="?")  # fmt: skip
def question_have(subject: Phrase, thing: Phrase) -> Pair:
    """A-t-il un chien ? Does he have a dog?"""
    return f"{asks(HAVE.present[subject.person], subject)} {thing.fr}", f"{asked(subject, HAVE)} {thing.en_not}"


HOW_MANY = [noun for kind in ("pet", "thing", "clothes", "vehicle", "text") for noun in NOUNS[kind]]


@pattern(Either(ASKABLE, THIRD), HOW_MANY, mark="?")
def how_many(subject: Phrase, noun: Noun) -> Pair:
    """Combien de chats a ton frère ? How many cats does your brother have?"""
    if subject in PRONOUNS:
        fr = asks(HAVE.present[subject.person], subject)
    else:
        fr = f"{HAVE.present[subject.person]} {subject.fr}"
    return f"combien de {noun.fr_plural} {fr}", f"how many {noun.en_plural} {DO[subject.person]} {subject.en} have"


@pattern(
    Either(ASKABLE, THIRD),
    [("pourquoi", "why"), ("où", "where")],
    DOING_ALONE,
    [("", ""), ("hier", "yesterday")],
    mark="?",
)
def why_or_where(subject: Phrase, word: Pair, verb: Verb, time: Pair) -> Pair:
    """Pourquoi Marie rit-elle ? Why is Marie laughing? Où as-tu dormi hier ? Where did you sleep yesterday?"""
    if time[0]:
        return (
            f"{word[0]} {asks(HAVE.present[subject.person], subject)} {verb.participle} hier",
            f"{word[1]} did {subject.en} {verb.base} yesterday",
        )
    return f"{word[0]} {asks(verb.present[subject.person], subject)}", f"{word[1]} {asked(subject, verb)}"


EATEN = {"food": "food", "thing": "thing", "letter": "letter", "clothes": "clothes"}
WHO_DID = Either(*(each(together, VERBS[verbs], nouns(kind, ALL)) for verbs, kind in EATEN.items()))


@pattern(WHO_DID, PAST, mark="?")
def who(pair: tuple[Verb, Phrase], time: Pair) -> Pair:
    """Qui a mangé la pomme ? Who ate the apple?"""
    verb, thing = pair
    return f"qui a {verb.participle} {thing.fr}{time[0]}", f"who {verb.past} {thing.en}{time[1]}"


WHERE = Either(*(each(together, VERBS[verbs], nouns(kind, [LE])) for verbs, kind in EATEN.items()))


@pattern(WHERE, Either(ASKABLE, THIRD), PAST, mark="?")
def where_are_those(pair: tuple[Verb, Phrase], subject: Phrase, time: Pair) -> Pair:
    """Où sont les pommes que tu as achetées ? Where are the apples that you bought?

    The participle agrees with an object that stands before it.
    """
    verb, thing = pair
    return (
        f"où {ETRE[thing.person]} {thing.fr} que {subject.fr} {HAVE.present[subject.person]} "
        f"{past_participle(verb.participle, thing)}{time[0]}",
        f"where {BE[thing.person]} {thing.en} that {subject.en} {verb.past}{time[1]}",
    )

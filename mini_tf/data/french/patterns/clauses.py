"""Sentences of two clauses."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import (
    DOING_ALONE,
    FEELINGS,
    HAVE,
    KNOW,
    NAMES,
    OFTEN,
    PRONOUNS,
    VERBS,
    WEATHER,
    Adjective,
    Pair,
    Phrase,
    Scene,
    Verb,
)
from mini_tf.data.french.patterns.pattern import ETRE, THIRD, pattern, together
from mini_tf.data.french.phrases import (
    ASKABLE,
    BE,
    KIN,
    LE,
    OWNERS,
    SUBJECTS,
    UN,
    agreed,
    asked,
    asks,
    goes_on,
    habit,
    masses,
    nouns,
    scenes,
)


def _clause(scene):
    subject, verb, thing = scene
    return (
        f"{subject.fr} {verb.present[subject.person]} {thing.fr}",
        f"{subject.en} {goes_on(subject.person, verb)} {thing.en}",
    )


def _past_clause(scene):
    subject, verb, thing = scene
    return (
        f"{subject.fr} {HAVE.present[subject.person]} {verb.participle} {thing.fr}",
        f"{subject.en} {verb.past} {thing.en}",
    )


HEARSAY = scenes(Either(PRONOUNS[2:], THIRD), lambda verb: verb.base != "want", adjectives=False)


@pattern(PRONOUNS, VERBS["say"], each(_clause, HEARSAY))
@pattern(PRONOUNS, VERBS["say"], each(_past_clause, HEARSAY))
def thinks_that(subject: Phrase, verb: Verb, clause: Pair) -> Pair:
    """Je pense qu'elle lit le journal. I think that she is reading the newspaper."""
    return (
        f"{subject.fr} {verb.present[subject.person]} que {clause[0]}",
        f"{subject.en} {habit(subject.person, verb)} that {clause[1]}",
    )


@pattern(Either(PRONOUNS, NAMES), FEELINGS, each(_past_clause, HEARSAY))
def because(subject: Phrase, feeling: Adjective, clause: Pair) -> Pair:
    """Paul est inquiet parce qu'il a perdu la clé. Paul is worried because he lost the key."""
    return (
        f"{subject.fr} {ETRE[subject.person]} {agreed(feeling, subject)} parce que {clause[0]}",
        f"{subject.en} {BE[subject.person]} {feeling.en} because {clause[1]}",
    )


WHEN = Either(
    each(together, SUBJECTS, VERBS["drink"][:1], masses("drink")),
    each(together, SUBJECTS, VERBS["text"][:1], nouns("text", [UN], adjectives=False)),
    each(together, SUBJECTS, VERBS["clothes"][:2], nouns("clothes", [UN], adjectives=False)),
)


@pattern(WEATHER, WHEN, OFTEN)
def when(kind: list[str], scene: Scene, adverb: Pair) -> Pair:
    """Quand il pleut, je lis souvent des livres. When it rains, I often read books."""
    subject, verb, thing = scene
    return (
        f"quand {' '.join(filter(None, kind[:2]))}, {subject.fr} {verb.present[subject.person]} {adverb[0]} {thing.fr}",
        f"when {' '.join(filter(None, kind[2:]))}, "
        f"{subject.en} {adverb[1]} {habit(subject.person, verb)} {thing.en_bare}",
    )


@pattern(nouns("pet", [LE]), [verb for verb in DOING_ALONE if verb.base in ("sleep", "swim", "run")], OWNERS)
def the_one_that_sleeps(animal: Phrase, verb: Verb, owner: Phrase) -> Pair:
    """Le chien qui dort est à mon oncle. The dog that is sleeping belongs to my uncle."""
    belongs = "belong" if animal.person == 5 else "belongs"
    return (
        f"{animal.fr} qui {verb.present[animal.person]} {ETRE[animal.person]} à {owner.fr}",
        f"{animal.en} that {goes_on(animal.person, verb)} {belongs} to {owner.en}",
    )


@pattern(Either(ASKABLE, NAMES, KIN), nouns("person", [LE]), DOING_ALONE, mark="?")
def knows_the_one_who_sings(subject: Phrase, person: Phrase, verb: Verb) -> Pair:
    """Connais-tu l'homme qui chante ? Do you know the man who is singing?"""
    return (
        f"{asks(KNOW.present[subject.person], subject)} {person.fr} qui {verb.present[person.person]}",
        f"{asked(subject, KNOW)} {person.en} who {goes_on(person.person, verb)}",
    )

"""Pronouns before the verb: me, te, le, la, nous, vous, les, leur; and after prepositions."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import (
    DOING_ALONE,
    HAVE,
    NAMES,
    OFTEN,
    PRONOUNS,
    SITES,
    VERBS,
    Pair,
    Phrase,
    Place,
    Verb,
)
from mini_tf.data.french.patterns.past import LATELY
from mini_tf.data.french.patterns.pattern import LOOK_FOR, PAST, SEE, after, pattern, together
from mini_tf.data.french.phrases import ALL, BE, DO, KIN, LE, MINE, OWNERS, THIS, goes_on, habit, nouns, past_participle
from mini_tf.data.french.spelling import possessive

__all__ = ["STRESSED"]

ME = [
    ("me", "me", (0, 3)),
    ("te", "you", (1, 4)),
    ("nous", "us", (0, 3)),
    ("vous", "you", (1, 4)),
    ("les", "them", (5,)),
]
HELPS = [
    (subject, pronoun, verb)
    for subject in PRONOUNS + NAMES
    for pronoun in ME
    for verb in VERBS["people"]
    if subject.person not in pronoun[2]
]


@pattern(HELPS, [*(("", *adverb) for adverb in OFTEN), ("ne ", "plus", "no longer"), ("ne ", "jamais", "never")])
def helps_them(who: tuple, adverb: tuple[str, str, str]) -> Pair:
    """Elle nous aide souvent. She often helps us. Elle ne m'écoute plus. She no longer listens to me."""
    subject, pronoun, verb = who
    return (
        f"{subject.fr} {adverb[0]}{pronoun[0]} {verb.present[subject.person]} {adverb[1]}",
        f"{subject.en} {adverb[2]} {habit(subject.person, verb)} {pronoun[1]}",
    )


@pattern([who for who in HELPS if who[2].base in ("wait for", "help", "see", "look for")], SITES)
def helps_them_there(who: tuple, place: Place) -> Pair:
    """Ils t'attendent à la gare. They are waiting for you at the station."""
    subject, pronoun, verb = who
    return (
        f"{subject.fr} {pronoun[0]} {verb.present[subject.person]} {place.there}",
        f"{subject.en} {goes_on(subject.person, verb)} {pronoun[1]} {place.at} {place.en}",
    )


@pattern(HELPS, LATELY, [False, True])
def helped_them(who: tuple, time: Pair, negated: bool) -> Pair:
    """Il les a vus hier. He saw them yesterday."""
    subject, pronoun, verb = who
    them = Phrase("", "", 5 if pronoun[0] in ("nous", "vous", "les") else 2, "m")
    have = HAVE.present[subject.person]
    participle = past_participle(verb.participle, them)
    if negated:
        return (
            f"{subject.fr} ne {pronoun[0]} {have} pas {participle}{time[0]}",
            f"{subject.en} did not {verb.base} {pronoun[1]}{time[1]}",
        )
    return f"{subject.fr} {pronoun[0]} {have} {participle}{time[0]}", f"{subject.en} {verb.past} {pronoun[1]}{time[1]}"


# with the English pronoun for one of them, masculine and feminine
SOUGHT = Either(
    *(each(together, nouns(kind, [LE, *MINE]), [("it", "it")]) for kind in ("thing", "clothes", "pet", "text")),
    *(each(together, people, [("him", "her")]) for people in (nouns("person", [LE, THIS]), KIN)),
)


@pattern(Either(PRONOUNS, NAMES), SOUGHT)
def looks_for_but_does_not_see(subject: Phrase, sought: tuple[Phrase, Pair]) -> Pair:
    """Je cherche ma sœur, mais je ne la vois pas. I am looking for my sister, but I do not see her.

    What le and la mean is decided by the noun before them: it, him or her.
    """
    thing, it = sought
    again = subject
    if subject not in PRONOUNS:
        again = PRONOUNS[3 if subject.gender == "f" else 2]
    feminine = thing.gender == "f"
    le, it = ("les", "them") if thing.person == 5 else ("la" if feminine else "le", it[feminine])
    person = subject.person
    return (
        f"{subject.fr} {LOOK_FOR.present[person]} {thing.fr}, mais {again.fr} ne {le} {SEE.present[person]} pas",
        f"{subject.en} {BE[person]} looking for {thing.en}, but {again.en} {DO[person]} not see {it}",
    )


GIFTS = Either(nouns("thing", ALL), nouns("clothes", ALL), nouns("text", ALL))
TO_THEM = [
    (subject, pronoun, verb)
    for subject in PRONOUNS + NAMES
    for pronoun in [*ME[:-1], ("leur", "them", ())]
    for verb in VERBS["give"]
    if subject.person not in pronoun[2]
]


@pattern(TO_THEM, GIFTS)
def gives_them(who: tuple, thing: Phrase) -> Pair:
    """Tu leur montres un livre. You are showing them a book."""
    subject, pronoun, verb = who
    return (
        f"{subject.fr} {pronoun[0]} {verb.present[subject.person]} {thing.fr}",
        f"{subject.en} {goes_on(subject.person, verb)} {pronoun[1]} {thing.en}",
    )


@pattern(TO_THEM, GIFTS, [("", ""), ("hier", "yesterday")])
def gave_them(who: tuple, thing: Phrase, time: Pair) -> Pair:
    """Elle m'a donné un livre. She gave me a book."""
    subject, pronoun, verb = who
    fr, en = after([time])[0]
    return (
        f"{subject.fr} {pronoun[0]} {HAVE.present[subject.person]} {verb.participle} {thing.fr}{fr}",
        f"{subject.en} {verb.past} {pronoun[1]} {thing.en}{en}",
    )


@pattern(PRONOUNS, VERBS["give"], GIFTS, OWNERS)
def gave_to(subject: Phrase, verb: Verb, thing: Phrase, owner: Phrase) -> Pair:
    """J'ai prêté mon stylo au voisin. I lent my pen to the neighbour."""
    return (
        f"{subject.fr} {HAVE.present[subject.person]} {verb.participle} {thing.fr} à {owner.fr}",
        f"{subject.en} {verb.past} {thing.en} to {owner.en}",
    )


@pattern(PRONOUNS, [verb for verb in DOING_ALONE if verb.base not in ("travel", "swim", "run")], Either(NAMES, KIN))
def at_home(subject: Phrase, verb: Verb, host: Phrase) -> Pair:
    """Nous dormons chez mon oncle. We are sleeping at my uncle's house."""
    return (
        f"{subject.fr} {verb.present[subject.person]} chez {host.fr}",
        f"{subject.en} {goes_on(subject.person, verb)} at {possessive(host.en, host.person == 5)} house",
    )


STRESSED = [
    ("moi", "me", (0, 3)), ("toi", "you", (1, 4)), ("lui", "him", (2,)), ("elle", "her", (2,)),
    ("nous", "us", (0, 3)), ("vous", "you", (1, 4)), ("eux", "them", (5,)), ("elles", "them", (5,)),
]  # fmt: skip
TOGETHER = [
    (subject, verb, preposition, them)
    for subject in PRONOUNS
    for verb in DOING_ALONE[1:]
    for preposition in [("avec", "with"), ("sans", "without")]
    for them in STRESSED
    if subject.person not in them[2]
]


@pattern(TOGETHER, PAST)
def with_them(who: tuple, time: Pair) -> Pair:
    """Nous avons dansé avec eux hier. We danced with them yesterday."""
    subject, verb, preposition, them = who
    return (
        f"{subject.fr} {HAVE.present[subject.person]} {verb.participle} {preposition[0]} {them[0]}{time[0]}",
        f"{subject.en} {verb.past} {preposition[1]} {them[1]}{time[1]}",
    )

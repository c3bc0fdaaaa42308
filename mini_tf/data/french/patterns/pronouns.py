"""Pronouns before the verb: me, te, le, la, nous, vous, les, leur; and after prepositions."""

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import NOT, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.patterns.pattern import LATELY, POLARITY, Parts, maybe, pattern
from mini_tf.data.french.phrases import ALL, KIN, LE, MINE, OWNERS, THIS, nouns
from mini_tf.data.french.spelling import possessive
from mini_tf.data.french.verb_phrases import habitual, preterite, progressive

I, YOU, HE, THEY = (0, 3), (1, 4), (2,), (5,)            # persons: nobody helps himself here


def _others(pronouns, verbs):
    """(subject, verb, pronoun), where the pronoun is somebody else."""
    return [
        Together(subject, verb, pronoun)
        for subject in lexicon.PRONOUNS + lexicon.NAMES
        for pronoun, same in pronouns
        for verb in verbs
        if subject.person not in same
    ]


ME = list(zip(pairs("me = me, te = you, nous = us, vous = you"), (I, YOU, I, YOU)))
HELPS = _others([*ME, (Pair("les", "them"), THEY)], lexicon.VERBS["people"])


@pattern(HELPS, lexicon.OFTEN + pairs("plus = no longer, jamais = never"))
def helps_them(subject: Phrase, verb: Verb, pronoun: Pair, adverb: Pair) -> Parts:
    """Elle nous aide souvent. She often helps us. Elle ne m'écoute plus. She no longer listens to me."""
    return (habitual(subject, verb, adverb, pronoun),)


@pattern([who for who in HELPS if who[1].en in ("wait for", "help", "see", "look for")], lexicon.SITES)
def helps_them_there(subject: Phrase, verb: Verb, pronoun: Pair, place: Place) -> Parts:
    """Ils t'attendent à la gare. They are waiting for you at the station."""
    return progressive(subject, verb, pronoun=pronoun), place.there


@pattern(HELPS, LATELY, POLARITY)
def helped_them(subject: Phrase, verb: Verb, pronoun: Pair, time: Pair, no: Pair) -> Parts:
    """Il les a vus hier. He saw them yesterday."""
    plural = pronoun.fr in ("nous", "vous", "les")
    return preterite(subject, verb, no, pronoun, Phrase(*pronoun, 5 if plural else 2, "m")), time


# with the English pronoun for one of them, masculine and feminine
SOUGHT = Either(
    *(each(Together, nouns(kind, [LE, *MINE]), [("it", "it")]) for kind in ("thing", "clothes", "pet", "text")),
    *(each(Together, people, [("him", "her")]) for people in (nouns("person", [LE, THIS]), KIN)),
)


@pattern(Either(lexicon.PRONOUNS, lexicon.NAMES), SOUGHT)
def looks_for_but_does_not_see(subject: Phrase, thing: Phrase, it: tuple[str, str]) -> Parts:
    """Je cherche ma sœur, mais je ne la vois pas. I am looking for my sister, but I do not see her.

    What le and la mean is decided by the noun before them: it, him or her.
    """
    again = subject if subject in lexicon.PRONOUNS else lexicon.PRONOUNS[3 if subject.gender == "f" else 2]
    feminine = thing.gender == "f"
    pronoun = Pair("les", "them") if thing.person == 5 else Pair("la" if feminine else "le", it[feminine])
    sees_not = habitual(again, lexicon.SEE, NOT, pronoun)
    return progressive(subject, lexicon.LOOK_FOR), thing, Pair(", mais", ", but"), sees_not


GIFTS = Either(nouns("thing", ALL), nouns("clothes", ALL), nouns("text", ALL))
GIVES = _others([*ME, (Pair("leur", "them"), ())], lexicon.VERBS["give"])


@pattern(GIVES, GIFTS)
def gives_them(subject: Phrase, verb: Verb, pronoun: Pair, thing: Phrase) -> Parts:
    """Tu leur montres un livre. You are showing them a book."""
    return progressive(subject, verb, pronoun=pronoun), thing


@pattern(GIVES, GIFTS, maybe("hier = yesterday"))
def gave_them(subject: Phrase, verb: Verb, pronoun: Pair, thing: Phrase, time: Pair) -> Parts:
    """Elle m'a donné un livre. She gave me a book."""
    return preterite(subject, verb, pronoun=pronoun), thing, time


@pattern(lexicon.PRONOUNS, lexicon.VERBS["give"], GIFTS, OWNERS)
def gave_to(subject: Phrase, verb: Verb, thing: Phrase, owner: Phrase) -> Parts:
    """J'ai prêté mon stylo au voisin. I lent my pen to the neighbour."""
    return preterite(subject, verb), thing, Pair("à", "to"), owner


INDOORS = [verb for verb in lexicon.VERBS["alone"] if verb.en not in ("travel", "swim", "run")]


@pattern(lexicon.PRONOUNS, INDOORS, Either(lexicon.NAMES, KIN))
def at_home(subject: Phrase, verb: Verb, host: Phrase) -> Parts:
    """Nous dormons chez mon oncle. We are sleeping at my uncle's house."""
    return progressive(subject, verb), Pair(f"chez {host.fr}", f"at {possessive(host.en, host.person == 5)} house")


STRESSED = pairs("moi = me, toi = you, lui = him, elle = her, nous = us, vous = you, eux = them, elles = them")
WITH_THEM = [
    Together(subject, verb, preposition, them)
    for subject in lexicon.PRONOUNS
    for verb in lexicon.VERBS["alone"][1:]
    for preposition in pairs("avec = with, sans = without")
    for them, same in zip(STRESSED, (I, YOU, HE, HE, I, YOU, THEY, THEY))
    if subject.person not in same
]


@pattern(WITH_THEM, lexicon.PAST_TIMES)
def with_them(subject: Phrase, verb: Verb, preposition: Pair, them: Pair, time: Pair) -> Parts:
    """Nous avons dansé avec eux hier. We danced with them yesterday."""
    return preterite(subject, verb), preposition, them, time

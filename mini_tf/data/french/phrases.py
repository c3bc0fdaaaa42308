"""Parts of sentences: noun phrases with all their agreement, subjects, and who does what to what."""

from collections.abc import Callable, Sequence

from mini_tf.data.french.choices import Either, Product, each
from mini_tf.data.french.lexicon import (
    ADJECTIVES,
    MASSES,
    NAMES,
    NEVER_OLD,
    NOUNS,
    PRONOUNS,
    VERBS,
    Adjective,
    Noun,
    Pair,
    Phrase,
    Verb,
)
from mini_tf.data.french.spelling import LIAISON, before_vowel, english_number, french_number, possessive

__all__ = [
    "ALL", "ASKABLE", "BE", "DO", "HAS", "KIN", "LE", "MINE", "OURS", "OWNERS", "PEOPLE", "SUBJECTS", "THIS", "UN",
    "WAS", "agreed", "asked", "asks", "counted", "goes_on", "goes_on_not", "habit", "masses", "noun_phrase", "nouns",
    "owned", "past_participle", "scenes",
]  # fmt: skip

# French masculine, feminine, plural, English singular, plural
LE = ("le", "la", "les", "the", "the")
UN = ("un", "une", "des", "a", "some")
SOME = ("de le", "de la", "", "some", "")                # the partitive: du pain, "some bread"
THIS = ("ce", "cette", "ces", "this", "these")
MINE = [
    ("mon", "ma", "mes", "my", "my"), ("ton", "ta", "tes", "your", "your"), ("notre", "notre", "nos", "our", "our"),
    ("votre", "votre", "vos", "your", "your"), ("leur", "leur", "leurs", "their", "their"),
]  # fmt: skip
OURS = [MINE[0], MINE[2], MINE[4]]                       # to say to both tu and vous
ALL = Either([LE, UN], [THIS, *MINE])

# je, tu, il, nous, vous, ils
BE = ("am", "are", "is", "are", "are", "are")
WAS = ("was", "were", "was", "were", "were", "were")
HAS = ("have", "have", "has", "have", "have", "have")
DO = ("do", "do", "does", "do", "do", "do")


def _described(kind, adjectives):
    """(noun, adjectives before it, adjectives after it) for the nouns of a kind"""
    if not adjectives:
        return [(noun, (), ()) for noun in NOUNS[kind]]
    before, after, both = ADJECTIVES[kind]
    ways = [((a,), ()) for a in before] + [((), (b,)) for b in after]
    ways += [((a,), (b,)) for a in before for b in both]
    return [
        (noun, before, after)
        for noun in NOUNS[kind]
        for before, after in ways
        if not (noun.en in NEVER_OLD and before and before[0].en == "old")
    ]


def noun_phrase(
    determiner: tuple[str, ...], plural: bool, described: tuple[Noun, Sequence[Adjective], Sequence[Adjective]]
) -> Phrase:
    """The phrase, with agreement: LE, True, (chat, [petit], [noir]) → les petits chats noirs, the small black cats"""
    noun, before, after = described
    form = 2 * plural + (noun.gender == "f")
    words = [a[form] for a in before] + [noun[plural]]
    article = determiner[2 if plural else noun.gender == "f"]
    traits, colours = [a.en for a in after if a.en_more], [a.en for a in after if not a.en_more]
    en = " ".join([*traits, *[a.en for a in before], *colours, noun[3 + plural]])    # a shy old man, a small red car
    if determiner is UN and plural and before:
        article = "de"                                   # de beaux livres, never "des beaux livres"
    words.insert(0, article)
    if not plural:
        words = [LIAISON[a] if a in LIAISON and before_vowel(b) else a for a, b in zip(words, [*words[1:], ""])]
    words += [a[form] for a in after]
    fr = " ".join(words)
    fr_not, en_not, en_bare = fr, f"{determiner[3 + plural]} {en}", f"{determiner[3 + plural]} {en}"
    if determiner is UN or determiner is SOME:
        fr_not = f"de {' '.join(words[1:])}"
        en_not, en_bare = (f"any {en}", en) if plural or determiner is SOME else (f"a {en}", f"a {en}")
    return Phrase(fr, f"{determiner[3 + plural]} {en}", 5 if plural else 2, noun.gender, fr_not, en_not, en_bare)


def nouns(
    kind: str, determiners: Either | list[tuple[str, ...]], adjectives: bool = True,
    numbers: tuple[bool, ...] = (False, True),
) -> Product | Either:  # fmt: skip
    """All noun phrases of a kind; with `adjectives`, half of those drawn have some."""
    plain = each(noun_phrase, determiners, numbers, _described(kind, False))
    return Either(plain, each(noun_phrase, determiners, numbers, _described(kind, True))) if adjectives else plain


def masses(kind: str) -> Product | Either:
    """du pain, le pain, notre pain"""
    described = [(noun, (), ()) for noun in MASSES[kind]]
    return each(noun_phrase, Either([SOME], [LE, THIS, *MINE]), [False], described)


def counted(n: int, noun: Noun) -> Pair:
    """21 and pomme → vingt et une pommes, twenty-one apples"""
    return f"{french_number(n, noun.gender)} {noun.fr_plural}", f"{english_number(n)} {noun.en_plural}"


KIN = nouns("kin", MINE, adjectives=False)
PEOPLE = nouns("person", [LE, THIS], adjectives=False)
SUBJECTS = Either(PRONOUNS, NAMES, KIN, PEOPLE)
OWNERS = Either(NAMES, KIN, nouns("person", [LE], adjectives=False))
ASKABLE = PRONOUNS[1:]                                   # je is not inverted


def _owned(thing, owner):
    """le petit chat de mon frère, my brother's small cat"""
    return Phrase(
        f"{thing.fr} de {owner.fr}",
        f"{possessive(owner.en, owner.person == 5)} {thing.en.removeprefix('the ')}",
        thing.person,
        thing.gender,
    )


def owned(kind: str, adjectives: bool = True, numbers: tuple[bool, ...] = (False, True)) -> Product | Either:
    return each(_owned, nouns(kind, [LE], adjectives, numbers), OWNERS)


def _tuple(*parts):
    return parts


def scenes(
    subjects: Either | list[Phrase], may: Callable[[Verb], bool] = lambda verb: True, adjectives: bool = True
) -> Either:
    """(subject, verb, object) that make sense together, with the verbs for which may(verb)."""
    objects = {
        "food": Either(nouns("food", ALL, adjectives), masses("food")),
        "drink": masses("drink"),
        "animal": Either(nouns("pet", ALL, adjectives), nouns("wild", [LE, UN, THIS], adjectives)),
        "sight": nouns("sight", [LE, UN, THIS], adjectives),
        **{kind: nouns(kind, ALL, adjectives) for kind in ("thing", "text", "letter", "clothes", "vehicle")},
    }
    goods = ("food", "thing", "text", "clothes", "vehicle")
    verbs = {k: list(filter(may, VERBS[k] + VERBS["goods"] * (k in goods))) for k in objects}
    return Either(
        *(each(_tuple, subjects, verbs[k], objects[k]) for k in objects),
        _meetings(subjects, list(filter(may, VERBS["people"]))),
    )


def _meetings(subjects, verbs):
    """Scenes with people: none of them meets himself."""
    if isinstance(subjects, Either):
        return Either(*(_meetings(way, verbs) for way in subjects))
    people = nouns("person", [LE, UN, THIS])
    others = people if subjects is KIN else KIN if subjects is PEOPLE else Either(people, KIN)
    return each(_tuple, subjects, verbs, others)


def agreed(adjective: tuple[str, ...], subject: Phrase) -> str:
    return adjective[2 * (subject.person > 2) + (subject.gender == "f")]


def past_participle(participle: str, subject: Phrase) -> str:
    """As it agrees after être: arrivé, arrivée, arrivés, arrivées"""
    participle += "e" * (subject.gender == "f")
    return participle if subject.person < 3 or participle.endswith("s") else participle + "s"


def inverted(form: str, pronoun: str) -> str:
    """vois-tu, a-t-il, voient-elles"""
    return f"{form}-t-{pronoun}" if pronoun in ("il", "elle") and form[-1] in "ae" else f"{form}-{pronoun}"


def asks(verb_form: str, subject: Phrase) -> str:
    """The inverted question in French: "vois-tu" for a pronoun, "Marie voit-elle" for any other subject."""
    if subject in PRONOUNS:
        return inverted(verb_form, subject.fr)
    pronoun = ("elle" if subject.gender == "f" else "il") + "s" * (subject.person == 5)
    return f"{subject.fr} {inverted(verb_form, pronoun)}"


def habit(person: int, verb: Verb) -> str:
    """eat or eats"""
    return verb.third if person == 2 else verb.base


def goes_on(person: int, verb: Verb) -> str:
    """is eating; but sees, which is a state"""
    return habit(person, verb) if verb.state else f"{BE[person]} {verb.ing}"


def goes_on_not(person: int, verb: Verb) -> str:
    return f"{DO[person]} not {verb.base}" if verb.state else f"{BE[person]} not {verb.ing}"


def asked(subject: Phrase, verb: Verb) -> str:
    """The question in English: is he eating, does he see"""
    if verb.state:
        return f"{DO[subject.person]} {subject.en} {verb.base}"
    return f"{BE[subject.person]} {subject.en} {verb.ing}"

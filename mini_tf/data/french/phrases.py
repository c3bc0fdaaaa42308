"""Noun phrases with all their agreement, the subjects of sentences, and who does what to what."""

from collections.abc import Callable, Sequence

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, Product, Together, each
from mini_tf.data.french.lexicon import Adjective, Noun, Pair, Phrase, Verb
from mini_tf.data.french.spelling import LIAISON, before_vowel, english_number, french_number, possessive

# Determiners: French masculine, feminine, plural, English singular, plural
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


def noun_phrase(
    determiner: tuple[str, ...], plural: bool, noun: Noun, before: Sequence[Adjective] = (),
    after: Sequence[Adjective] = (),
) -> Phrase:  # fmt: skip
    """The phrase, with agreement: LE, True, chat, [petit], [noir] → les petits chats noirs, the small black cats"""
    form = 2 * plural + (noun.gender == "f")
    article = "de" if determiner is UN and plural and before else determiner[min(form, 2)]    # de beaux livres
    words = [article, *(adjective[form] for adjective in before), noun[plural]]
    if not plural:
        words = [LIAISON.get(a, a) if before_vowel(b) else a for a, b in zip(words, [*words[1:], ""])]
    words += [adjective[form] for adjective in after]

    traits, colours = [a.en for a in after if a.en_more], [a.en for a in after if not a.en_more]
    en = " ".join([*traits, *[a.en for a in before], *colours, noun[3 + plural]])    # a shy old man, a small red car
    fr, full = " ".join(words), f"{determiner[3 + plural]} {en}"
    fr_not, en_not, en_bare = fr, full, full
    if determiner in (UN, SOME):
        fr_not = " ".join(["de", *words[1:]])
        if plural or determiner is SOME:
            en_not, en_bare = f"any {en}", en
    others = Pair(fr_not, en_not), Pair(fr_not, en_bare), Pair(fr, en_bare), Pair(fr, en_not)
    return Phrase(fr, full, 5 if plural else 2, noun.gender, *others)


def nouns(kind: str, determiners: Sequence[Sequence], adjectives: bool = True) -> Product | Either:
    """All noun phrases of a kind; with `adjectives`, half of those drawn have some."""
    plain = each(noun_phrase, determiners, [False, True], lexicon.NOUNS[kind])
    if not adjectives:
        return plain
    return Either(plain, each(noun_phrase, determiners, [False, True], _described(kind)))


def _described(kind):
    """The nouns of a kind, each with adjectives before it and after it."""
    before, after, both = lexicon.ADJECTIVES[kind]
    ways = [((a,), ()) for a in before] + [((), (b,)) for b in after]
    ways += [((a,), (b,)) for a in before for b in both]
    return [
        Together(noun, before, after)
        for noun in lexicon.NOUNS[kind]
        for before, after in ways
        if not (noun.en in lexicon.NEVER_OLD and before and before[0].en == "old")
    ]


def masses(kind: str) -> Product | Either:
    """du pain, le pain, notre pain"""
    return each(noun_phrase, Either([SOME], [LE, THIS, *MINE]), [False], lexicon.MASSES[kind])


def counted(n: int, noun: Noun) -> Pair:
    """21 and pomme → vingt et une pommes, twenty-one apples"""
    return Pair(f"{french_number(n, noun.gender)} {noun.fr_plural}", f"{english_number(n)} {noun.en_plural}")


def agreed(adjective: Adjective, subject: Phrase) -> Pair:
    """Marie → contente, happy; mes frères → contents, happy"""
    return Pair(adjective[2 * (subject.person > 2) + (subject.gender == "f")], adjective.en)


KIN = nouns("kin", MINE, adjectives=False)
PEOPLE = nouns("person", [LE, THIS], adjectives=False)
SUBJECTS = Either(lexicon.PRONOUNS, lexicon.NAMES, KIN, PEOPLE)
THIRD = Either(lexicon.NAMES, KIN, PEOPLE)                       # subjects that are not pronouns
OWNERS = Either(lexicon.NAMES, KIN, nouns("person", [LE], adjectives=False))
ASKABLE = lexicon.PRONOUNS[1:]                                   # je is not inverted


def owned(kind: str, adjectives: bool = True) -> Product | Either:
    """le petit chat de mon frère, my brother's small cat"""
    return each(_owned, nouns(kind, [LE], adjectives), OWNERS)


def _owned(thing, owner):
    en = f"{possessive(owner.en, owner.person == 5)} {thing.en.removeprefix('the ')}"
    return Phrase(f"{thing.fr} de {owner.fr}", en, thing.person, thing.gender)


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
    verbs = {k: list(filter(may, lexicon.VERBS[k] + lexicon.VERBS["goods"] * (k in goods))) for k in objects}
    return Either(
        *(each(Together, subjects, verbs[k], objects[k]) for k in objects),
        _meetings(subjects, list(filter(may, lexicon.VERBS["people"]))),
    )


def _meetings(subjects, verbs):
    """Scenes with people: none of them meets himself."""
    if isinstance(subjects, Either):
        return Either(*(_meetings(way, verbs) for way in subjects))
    people = nouns("person", [LE, UN, THIS])
    others = people if subjects is KIN else KIN if subjects is PEOPLE else Either(people, KIN)
    return each(Together, subjects, verbs, others)

"""A subject with its verb, in both languages at once: tense, aspect, negation, inversion, pronouns before the verb."""

from mini_tf.data.french.lexicon import AVOIR, ETRE, NOT, NOTHING, PRONOUNS, Pair, Phrase, Verb

# I, you, he or she, we, you, they
BE = ("am", "are", "is", "are", "are", "are")
WAS = ("was", "were", "was", "were", "were", "were")
HAS = ("have", "have", "has", "have", "have", "have")
DO = ("do", "do", "does", "do", "do", "do")

# With one of these, the verb has ne before it.
NEGATIVE = ("pas", "plus", "jamais", "rien", "personne")


def conjugated(subject: Phrase, verb: Verb, adverb: str = "", pronoun: str = "") -> str:
    """je vois, je les vois souvent, je ne les vois pas"""
    ne = "ne" if adverb.startswith(NEGATIVE) else ""
    return f"{subject.fr} {ne} {pronoun} {verb.present[subject.person]} {adverb}"


def past_participle(participle: str, agrees_with: Phrase) -> str:
    """arrivé, arrivée, arrivés, arrivées"""
    participle += "e" * (agrees_with.gender == "f")
    return participle if agrees_with.person < 3 or participle.endswith("s") else participle + "s"


def inverted(subject: Phrase, verb: Verb) -> str:
    """vois-tu, a-t-il; Marie voit-elle"""
    form = verb.present[subject.person]
    if subject in PRONOUNS:
        named, pronoun = "", subject.fr
    else:
        named, pronoun = subject.fr, ("elle" if subject.gender == "f" else "il") + "s" * (subject.person == 5)
    t = "-t" if pronoun in ("il", "elle") and form[-1] in "ae" else ""
    return f"{named} {form}{t}-{pronoun}"


def verb_first(subject: Phrase, verb: Verb) -> str:
    """After quel and combien: (quel âge) a ton frère, (quel âge) as-tu"""
    return inverted(subject, verb) if subject in PRONOUNS else f"{verb.present[subject.person]} {subject.fr}"


def progressive(subject: Phrase, verb: Verb, no: Pair = NOTHING, pronoun: Pair = NOTHING) -> Pair:
    """elle mange, she is eating; with NOT, she is not eating. But elle voit, she sees: that is a state."""
    if verb.state:
        return habitual(subject, verb, no, pronoun)
    en = f"{subject.en} {BE[subject.person]} {no.en} {verb.ing} {pronoun.en}"
    return Pair(conjugated(subject, verb, no.fr, pronoun.fr), en)


def habitual(subject: Phrase, verb: Verb, adverb: Pair = NOTHING, pronoun: Pair = NOTHING) -> Pair:
    """elle mange souvent, she often eats; with NOT, elle ne mange pas, she does not eat"""
    en = f"{adverb.en} {verb.third if subject.person == 2 else verb.en}"
    if adverb == NOT:
        en = f"{DO[subject.person]} not {verb.en}"
    return Pair(conjugated(subject, verb, adverb.fr, pronoun.fr), f"{subject.en} {en} {pronoun.en}")


def preterite(
    subject: Phrase, verb: Verb, no: Pair = NOTHING, pronoun: Pair = NOTHING, object_before: Phrase | None = None
) -> Pair:
    """elle a mangé, she ate; elle n'est pas venue, she did not come; elle s'est levée, she got up

    The participle agrees with the subject after être, and after avoir with an object that stands before it:
    les pommes que tu as achetées.
    """
    agrees_with = subject if verb.etre else object_before
    participle = past_participle(verb.participle, agrees_with) if agrees_with else verb.participle
    fr = f"{conjugated(subject, ETRE if verb.etre else AVOIR, no.fr, pronoun.fr)} {participle}"
    return Pair(fr, f"{subject.en} {f'did not {verb.en}' if no == NOT else verb.past} {pronoun.en}")


def perfect(subject: Phrase, verb: Verb, adverb: Pair) -> Pair:
    """elle a déjà mangé, she has already eaten"""
    fr = f"{conjugated(subject, AVOIR, adverb.fr)} {verb.participle}"
    return Pair(fr, f"{subject.en} {HAS[subject.person]} {adverb.en} {verb.done}")


def interrogative(subject: Phrase, verb: Verb) -> Pair:
    """mange-t-elle, is she eating; voit-elle, does she see"""
    first, last = (DO, verb.en) if verb.state else (BE, verb.ing)
    return Pair(inverted(subject, verb), f"{first[subject.person]} {subject.en} {last}")


def past_interrogative(subject: Phrase, verb: Verb) -> Pair:
    """a-t-elle mangé, did she eat; est-elle venue, did she come"""
    participle = past_participle(verb.participle, subject) if verb.etre else verb.participle
    fr = f"{inverted(subject, ETRE if verb.etre else AVOIR)} {participle}"
    return Pair(fr, f"did {subject.en} {verb.en}")


def copula(subject: Phrase, no: Pair = NOTHING) -> Pair:
    """elle est, she is; with NOT, elle n'est pas, she is not"""
    return Pair(conjugated(subject, ETRE, no.fr), f"{subject.en} {BE[subject.person]} {no.en}")


def was(subject: Phrase) -> str:
    return f"{subject.en} {WAS[subject.person]}"

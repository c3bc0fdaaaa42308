"""Sentences of two verbs: two clauses; what will be, what has just been, what one wants, can and must do."""

from collections.abc import Callable

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import NOTHING, Adjective, Pair, Phrase, Verb, pairs
from mini_tf.data.french.patterns.pattern import ASKED_DEEDS, DEEDS, EVENTS, POLARITY, Parts, pattern
from mini_tf.data.french.phrases import ASKABLE, KIN, LE, OWNERS, SUBJECTS, THIRD, UN, agreed, masses, nouns, scenes
from mini_tf.data.french.verb_phrases import (
    conjugated,
    copula,
    habitual,
    interrogative,
    perfect,
    preterite,
    progressive,
)

HEARSAY = scenes(Either(lexicon.PRONOUNS[2:], THIRD), lambda verb: verb.en != "want", adjectives=False)


@pattern(lexicon.PRONOUNS, lexicon.VERBS["say"], [progressive], HEARSAY)
@pattern(lexicon.PRONOUNS, lexicon.VERBS["say"], [preterite], HEARSAY)
def thinks_that(subject: Phrase, verb: Verb, tense: Callable, who: Phrase, does: Verb, thing: Phrase) -> Parts:
    """Je pense qu'elle lit le journal. I think that she is reading the newspaper."""
    return habitual(subject, verb), Pair("que", "that"), tense(who, does), thing


@pattern(Either(lexicon.PRONOUNS, lexicon.NAMES), lexicon.FEELINGS, HEARSAY)
def because(subject: Phrase, feeling: Adjective, who: Phrase, did: Verb, thing: Phrase) -> Parts:
    """Paul est inquiet parce qu'il a perdu la clé. Paul is worried because he lost the key."""
    return copula(subject), agreed(feeling, subject), Pair("parce que", "because"), preterite(who, did), thing


PASTIMES = Either(
    each(Together, SUBJECTS, lexicon.VERBS["drink"][:1], masses("drink")),
    each(Together, SUBJECTS, lexicon.VERBS["text"][:1], nouns("text", [UN], adjectives=False)),
    each(Together, SUBJECTS, lexicon.VERBS["clothes"][:2], nouns("clothes", [UN], adjectives=False)),
)


@pattern(lexicon.WEATHER, PASTIMES, lexicon.OFTEN)
def when(start: Pair, end: Pair, subject: Phrase, verb: Verb, thing: Phrase, adverb: Pair) -> Parts:
    """Quand il pleut, je lis souvent des livres. When it rains, I often read books."""
    return Pair("quand", "when"), start, end, Pair(",", ","), habitual(subject, verb, adverb), thing.after_often


def _relative(phrase, verb, qui, who):
    """le chien qui dort, the dog that is sleeping"""
    return progressive(phrase._replace(fr=f"{phrase.fr} {qui}", en=f"{phrase.en} {who}"), verb)


@pattern(nouns("pet", [LE]), [verb for verb in lexicon.VERBS["alone"] if verb.en in ("sleep", "swim", "run")], OWNERS)
def the_one_that_sleeps(animal: Phrase, verb: Verb, owner: Phrase) -> Parts:
    """Le chien qui dort est à mon oncle. The dog that is sleeping belongs to my uncle."""
    belongs = "belong to" if animal.person == 5 else "belongs to"
    return _relative(animal, verb, "qui", "that"), Pair(f"{lexicon.ETRE.present[animal.person]} à", belongs), owner


@pattern(Either(ASKABLE, lexicon.NAMES, KIN), nouns("person", [LE]), lexicon.VERBS["alone"], mark="?")
def knows_the_one_who_sings(subject: Phrase, person: Phrase, verb: Verb) -> Parts:
    """Connais-tu l'homme qui chante ? Do you know the man who is singing?"""
    return interrogative(subject, lexicon.CONNAITRE), _relative(person, verb, "qui", "who")


FUTURE_TIMES = pairs("""
    demain = tomorrow, ce soir = tonight, demain matin = tomorrow morning, la semaine prochaine = next week,
    l'année prochaine = next year, vendredi prochain = next Friday
""")


@pattern(EVENTS, [*FUTURE_TIMES, NOTHING])
def going_to(subject: Phrase, verb: Verb, thing: Phrase, time: Pair) -> Parts:
    """Nous allons visiter le château demain. We are going to visit the castle tomorrow."""
    return progressive(subject, lexicon.ALLER), Pair("", "to"), verb, thing, time


@pattern(EVENTS)
def has_just(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Paul vient d'ouvrir le livre. Paul has just opened the book."""
    en = perfect(subject, verb, Pair("", "just")).en
    return Pair(f"{conjugated(subject, lexicon.VENIR)} de {verb.fr}", en), thing


@pattern(lexicon.VERBS["modal"], DEEDS, POLARITY)
def wants_can_must(modal: Verb, subject: Phrase, verb: Verb, thing: Phrase, no: Pair) -> Parts:
    """Je veux acheter la table. I want to buy the table. Tu ne peux pas lire ce livre. You cannot read this book."""
    fr, en = habitual(subject, modal, no)
    if no.fr and modal.en != "want to":
        en = f"{subject.en} {'cannot' if modal.en == 'can' else 'must not'}"
    return Pair(fr, en), verb, thing.after_not if no.fr else thing


@pattern(lexicon.VERBS["modal"], ASKED_DEEDS, mark="?")
def question_can(modal: Verb, subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Peux-tu réparer mon vélo ? Can you repair my bicycle?"""
    fr, en = interrogative(subject, modal)
    return Pair(fr, f"can {subject.en}" if modal.en == "can" else en), verb, thing

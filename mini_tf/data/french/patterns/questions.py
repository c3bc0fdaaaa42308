"""Questions, by inversion and with est-ce que."""

from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import AVOIR, ETRE, NOUNS, PAST_TIMES, VERBS, Noun, Pair, Phrase, Verb, pairs
from mini_tf.data.french.patterns.pattern import ASKED, ASKED_EVENTS, ASKED_SCENES, SCENES, Parts, maybe, pattern
from mini_tf.data.french.phrases import ALL, LE, MINE, UN, nouns
from mini_tf.data.french.verb_phrases import BE, conjugated, interrogative, past_interrogative, preterite, verb_first


@pattern(ASKED_SCENES, mark="?")
def question(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Vois-tu le chat ? Do you see the cat? Marie mange-t-elle une pomme ? Is Marie eating an apple?"""
    return interrogative(subject, verb), thing.in_question


@pattern(SCENES, mark="?")
def question_est_ce_que(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Est-ce que tu vois le chat ? Do you see the cat?"""
    en = interrogative(subject, verb).en
    return Pair(f"est-ce que {conjugated(subject, verb)}", en), thing.in_question


@pattern(ASKED_EVENTS, PAST_TIMES, mark="?")
def question_past(subject: Phrase, verb: Verb, thing: Phrase, time: Pair) -> Parts:
    """A-t-elle acheté une robe hier ? Did she buy a dress yesterday?"""
    return past_interrogative(subject, verb), thing.in_question, time


OWN = Either(nouns("pet", [UN, *MINE]), nouns("thing", [UN, LE, *MINE]), nouns("vehicle", [UN, *MINE]))


@pattern(ASKED, OWN, mark="?")
def question_have(subject: Phrase, thing: Phrase) -> Parts:
    """A-t-il un chien ? Does he have a dog?"""
    return interrogative(subject, AVOIR), thing.in_question


@pattern(ASKED, [noun for kind in ("pet", "thing", "clothes", "vehicle", "text") for noun in NOUNS[kind]], mark="?")
def how_many(subject: Phrase, noun: Noun) -> Parts:
    """Combien de chats a ton frère ? How many cats does your brother have?"""
    has = Pair(verb_first(subject, AVOIR), interrogative(subject, AVOIR).en)
    return Pair(f"combien de {noun.fr_plural}", f"how many {noun.en_plural}"), has


@pattern(ASKED, pairs("pourquoi = why, où = where"), VERBS["alone"], maybe("hier = yesterday"), mark="?")
def why_or_where(subject: Phrase, word: Pair, verb: Verb, time: Pair) -> Parts:
    """Pourquoi Marie rit-elle ? Why is Marie laughing? Où as-tu dormi hier ? Where did you sleep yesterday?"""
    return word, past_interrogative(subject, verb) if time.fr else interrogative(subject, verb), time


KINDS = ("food", "thing", "letter", "clothes")


@pattern(Either(*(each(Together, VERBS[kind], nouns(kind, ALL)) for kind in KINDS)), PAST_TIMES, mark="?")
def who(verb: Verb, thing: Phrase, time: Pair) -> Parts:
    """Qui a mangé la pomme ? Who ate the apple?"""
    return Pair(f"qui a {verb.participle}", f"who {verb.past}"), thing, time


@pattern(Either(*(each(Together, VERBS[kind], nouns(kind, [LE])) for kind in KINDS)), ASKED, PAST_TIMES, mark="?")
def where_are_those(verb: Verb, thing: Phrase, subject: Phrase, time: Pair) -> Parts:
    """Où sont les pommes que tu as achetées ? Where are the apples that you bought?"""
    where = Pair(f"où {ETRE.present[thing.person]}", f"where {BE[thing.person]}")
    return where, thing, Pair("que", "that"), preterite(subject, verb, object_before=thing), time

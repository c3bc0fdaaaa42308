"""Reflexive verbs, and when one does them."""

from mini_tf.data.french.lexicon import NOT, NOTHING, VERBS, Pair, Phrase, Verb, pairs
from mini_tf.data.french.patterns.pattern import GOERS, HOURS, Parts, pattern
from mini_tf.data.french.phrases import SUBJECTS
from mini_tf.data.french.verb_phrases import habitual, preterite

SELF = [Pair(fr, "") for fr in ("me", "te", "se", "nous", "vous", "se")]


@pattern(SUBJECTS, VERBS["reflexive"], HOURS, [NOTHING, NOT, Pair("jamais", "never")])
def gets_up(subject: Phrase, verb: Verb, time: Pair, adverb: Pair) -> Parts:
    """Je me lève à sept heures et demie. I get up at half past seven."""
    return habitual(subject, verb, adverb, SELF[subject.person]), Pair("à", "at"), time


@pattern(GOERS, VERBS["reflexive"], HOURS, [*pairs("hier = yesterday, lundi dernier = last Monday"), NOTHING])
def got_up(subject: Phrase, verb: Verb, time: Pair, day: Pair) -> Parts:
    """Elle s'est levée à six heures hier. She got up at six o'clock yesterday."""
    return preterite(subject, verb, pronoun=SELF[subject.person]), Pair("à", "at"), time, day

"""Reflexive verbs, and when one does them."""

from mini_tf.data.french.lexicon import REFLEXIVES, Pair, Phrase, Verb
from mini_tf.data.french.patterns.past import GOERS
from mini_tf.data.french.patterns.pattern import ETRE, TIMES, after, pattern
from mini_tf.data.french.phrases import DO, SUBJECTS, habit, past_participle

SELF = ("me", "te", "se", "nous", "vous", "se")


@pattern(SUBJECTS, REFLEXIVES, TIMES, [("", "", ""), ("ne", "pas", "not"), ("ne", "jamais", "never")])
def gets_up(subject: Phrase, verb: Verb, time: Pair, no: tuple[str, str, str]) -> Pair:
    """Je me lève à sept heures et demie. I get up at half past seven."""
    person = subject.person
    fr = f"{SELF[person]} {verb.present[person]}"
    en = {"": habit(person, verb), "not": f"{DO[person]} not {verb.base}", "never": f"never {habit(person, verb)}"}[
        no[2]
    ]
    return f"{subject.fr} {f'ne {fr} {no[1]}' if no[1] else fr} à {time[0]}", f"{subject.en} {en} at {time[1]}"


@pattern(GOERS, REFLEXIVES, TIMES, [("hier", "yesterday"), ("lundi dernier", "last Monday"), ("", "")])
def got_up(subject: Phrase, verb: Verb, time: Pair, day: Pair) -> Pair:
    """Elle s'est levée à six heures hier. She got up at six o'clock yesterday."""
    fr, en = after([day])[0]
    return (
        f"{subject.fr} {SELF[subject.person]} {ETRE[subject.person]} "
        f"{past_participle(verb.participle, subject)} à {time[0]}{fr}",
        f"{subject.en} {verb.past} at {time[1]}{en}",
    )

"""What makes a function a sentence pattern, and slots that many patterns share."""

from collections.abc import Callable

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import NOT, NOTHING, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.phrases import ASKABLE, KIN, SUBJECTS, THIRD, scenes
from mini_tf.data.french.spelling import english, english_number, french, french_number

Parts = tuple[Pair | Phrase | Place | Verb, ...]         # of a sentence, each with .fr and .en


def pattern(*slots, mark: str = ".") -> Callable[[Callable], Callable]:
    """Set the function's `sentences`: all that it makes of the slots; those of several decorators are added up."""

    def register(function):
        ways = each(lambda *chosen: written(function(*chosen), mark), *slots)
        function.sentences = Either(function.sentences, ways) if hasattr(function, "sentences") else ways
        return function

    return register


def written(parts: Parts, mark: str = ".") -> tuple[str, str]:
    """The sentence in French and in English: its parts, each in both languages, one after another."""
    fr, en = " ".join(part.fr for part in parts), " ".join(part.en for part in parts)
    return french(fr, mark), english(en, mark)


def maybe(table: str) -> list[Pair]:
    """The pairs of the table, or nothing."""
    return [NOTHING, *pairs(table)]


POLARITY = [NOTHING, NOT]
ADULTS = Either(lexicon.PRONOUNS, lexicon.NAMES, KIN)                    # a boy is not ninety
ASKED = Either(ASKABLE, THIRD)
GOERS = Either(lexicon.PRONOUNS, lexicon.SPEAKERS, THIRD)                # where the French shows whether a woman speaks
SCENES = scenes(SUBJECTS)
ASKED_SCENES = scenes(ASKED)
EVENTS = scenes(SUBJECTS, lambda verb: verb.en != "want")                # what can be over: not wanting
ASKED_EVENTS = scenes(ASKED, lambda verb: verb.en != "want")
DEEDS = scenes(SUBJECTS, lambda verb: not verb.state)                    # what one can decide to do: not losing a key
ASKED_DEEDS = scenes(ASKABLE, lambda verb: not verb.state)
LATELY = [time for time in lexicon.PAST_TIMES if time.fr in ("hier", "hier soir", "ce matin", "lundi dernier")]
LIVED_IN = Either(lexicon.CITIES, lexicon.COUNTRIES)
THERE = Either(lexicon.CITIES, lexicon.COUNTRIES, lexicon.SITES)


def _hours():
    """une heure dix, ten past one, …; midi, minuit"""
    minutes = pairs("""
        cinq = five past, dix = ten past, et quart = a quarter past, vingt = twenty past,
        vingt-cinq = twenty-five past, et demie = half past, moins vingt-cinq = twenty-five to,
        moins vingt = twenty to, moins le quart = a quarter to, moins dix = ten to, moins cinq = five to
    """)
    hours = []
    for n in range(1, 12):
        fr, en = f"{french_number(n, 'f')} heure{'s' * (n > 1)}", english_number(n)
        hours += [Pair(fr, f"{en} o'clock"), *(Pair(f"{fr} {past.fr}", f"{past.en} {en}") for past in minutes)]
    return hours + pairs("midi = noon, minuit = midnight")


HOURS = _hours()

"""What makes a function a sentence pattern, and slots that many patterns share."""

from collections.abc import Callable

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import CITIES, COUNTRIES, FUTURE_TIMES, NAMES, PAST_TIMES, PRONOUNS, SITES, VERBS, Pair
from mini_tf.data.french.phrases import ASKABLE, KIN, PEOPLE, SUBJECTS, scenes
from mini_tf.data.french.spelling import english, english_number, french, french_number

__all__ = [
    "ADULTS", "ASKED_DEEDS", "ASKED_EVENTS", "ASKED_SCENES", "DEEDS", "ETRE", "EVENTS", "FUTURE", "HEAR", "LOOK_FOR",
    "PAST", "PATTERNS", "SCENES", "SEE", "THERE", "THIRD", "TIMES", "after", "pattern", "together",
]  # fmt: skip

PATTERNS = {}                                            # name: its sentences, a Product or an Either


def pattern(*slots, mark: str = ".") -> Callable[[Callable[..., Pair]], Callable[..., Pair]]:
    """Sentences that the function makes of the slots; more than one of these above a function: any of them."""

    def register(function):
        def sentence(*chosen):
            fr, en = function(*chosen)
            return french(fr, mark), english(en, mark)

        name = function.__name__
        ways = each(sentence, *slots)
        PATTERNS[name] = Either(PATTERNS[name], ways) if name in PATTERNS else ways
        return function

    return register


def after(pairs: list[Pair]) -> list[Pair]:
    """Words that may follow, with the space before them; none for the empty ones."""
    return [(f" {fr}" if fr else "", f" {en}" if en else "") for fr, en in pairs]


ETRE = ("suis", "es", "est", "sommes", "êtes", "sont")
ADULTS = Either(PRONOUNS, NAMES, KIN)                    # a boy is not ninety
THIRD = Either(NAMES, KIN, PEOPLE)                       # subjects that are not pronouns
SCENES = scenes(SUBJECTS)
ASKED_SCENES = scenes(Either(ASKABLE, THIRD))
EVENTS = scenes(SUBJECTS, lambda verb: verb.base != "want")           # what can be over: not wanting
ASKED_EVENTS = scenes(Either(ASKABLE, THIRD), lambda verb: verb.base != "want")
DEEDS = scenes(SUBJECTS, lambda verb: not verb.state)                 # what one can decide to do: not losing a key
ASKED_DEEDS = scenes(ASKABLE, lambda verb: not verb.state)
PAST = after(PAST_TIMES)
FUTURE = after(FUTURE_TIMES)
THERE = Either(CITIES, COUNTRIES, SITES)
TIMES = [
    (f"{french_number(hour, 'f')} heure{'s' * (hour > 1)}{fr}", en.format(english_number(hour)))
    for hour in range(1, 12)
    for fr, en in [
        ("", "{} o'clock"), (" cinq", "five past {}"), (" dix", "ten past {}"), (" et quart", "a quarter past {}"),
        (" vingt", "twenty past {}"), (" vingt-cinq", "twenty-five past {}"), (" et demie", "half past {}"),
        (" moins vingt-cinq", "twenty-five to {}"), (" moins vingt", "twenty to {}"),
        (" moins le quart", "a quarter to {}"), (" moins dix", "ten to {}"), (" moins cinq", "five to {}"),
    ]
] + [("midi", "noon"), ("minuit", "midnight")]  # fmt: skip

LOOK_FOR, SEE, HEAR = (
    next(verb for verbs in VERBS.values() for verb in verbs if verb.base == base)
    for base in ("look for", "see", "hear")
)


def together(*parts) -> tuple:
    """What fits together, as one slot."""
    return parts

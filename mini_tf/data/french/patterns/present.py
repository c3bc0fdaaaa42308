"""The present and its negations, habits and likings."""

from mini_tf.data.french import lexicon
from mini_tf.data.french.choices import Together
from mini_tf.data.french.lexicon import NOT, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.patterns.pattern import SCENES, Parts, pattern
from mini_tf.data.french.phrases import LE, SUBJECTS
from mini_tf.data.french.verb_phrases import habitual, progressive


@pattern(SCENES)
def present(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Marie lit le journal. Marie is reading the newspaper."""
    return progressive(subject, verb), thing


@pattern(SCENES)
def not_present(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Je ne vois pas les chats noirs. I do not see the black cats."""
    return progressive(subject, verb, NOT), thing.after_not


@pattern(SCENES, pairs("plus = no longer, jamais = never"))
def no_longer_or_never(subject: Phrase, verb: Verb, thing: Phrase, adverb: Pair) -> Parts:
    """Il n'achète plus de pain. He no longer buys bread."""
    return habitual(subject, verb, adverb), thing.after_never


@pattern(SUBJECTS, [lexicon.SEE, lexicon.HEAR], pairs("rien = nothing, personne = nobody"), lexicon.SITES)
def nothing(subject: Phrase, verb: Verb, word: Pair, place: Place) -> Parts:
    """Je ne vois rien au marché. I see nothing at the market."""
    return habitual(subject, verb, Pair(word.fr, "")), Pair("", word.en), place.there


@pattern(SCENES, lexicon.OFTEN)
def often(subject: Phrase, verb: Verb, thing: Phrase, adverb: Pair) -> Parts:
    """Je mange souvent des pommes. I often eat apples."""
    return habitual(subject, verb, adverb), thing.after_often


COUNTED = [noun for kind in ("pet", "wild", "food") for noun in lexicon.NOUNS[kind]]
NOT_COUNTED = [noun for nouns in lexicon.MASSES.values() for noun in nouns]
LIKABLE = [Pair(f"les {noun.fr_plural}", noun.en_plural) for noun in COUNTED]
LIKABLE += [Pair(f"{LE[noun.gender == 'f']} {noun.fr}", noun.en) for noun in NOT_COUNTED]


@pattern(SUBJECTS, lexicon.VERBS["like"], LIKABLE)
def likes(subject: Phrase, verb: Verb, thing: Phrase) -> Parts:
    """Ma sœur aime le fromage. My sister likes cheese."""
    return habitual(subject, verb), thing


@pattern(SUBJECTS, LIKABLE)
def likes_not(subject: Phrase, thing: Phrase) -> Parts:
    """Je n'aime pas les huîtres. I do not like oysters."""
    return habitual(subject, lexicon.VERBS["like"][0], NOT), thing


def _sensible(verb, place):
    """Whether one may well do that there."""
    if verb.en == "swim":
        return place.en in ("the beach", "the swimming pool")
    if verb.en == "travel":
        return place in lexicon.COUNTRIES
    return place not in lexicon.SITES or verb.en in ("sing", "work", "study", "laugh")


DOING_THERE = [
    Together(verb, place)
    for verb in lexicon.VERBS["alone"]
    for place in [*lexicon.CITIES, *lexicon.COUNTRIES, *lexicon.SITES]
    if _sensible(verb, place)
]


@pattern(SUBJECTS, DOING_THERE, lexicon.OFTEN)
def often_somewhere(subject: Phrase, verb: Verb, place: Place, adverb: Pair) -> Parts:
    """Ils dansent souvent à Paris. They often dance in Paris."""
    return habitual(subject, verb, adverb), place.there

"""The past: passé composé with avoir and être, imparfait."""

from mini_tf.data.french import lexicon
from mini_tf.data.french.lexicon import NOT, Adjective, Pair, Phrase, Place, Verb, pairs
from mini_tf.data.french.patterns.pattern import ASKED, EVENTS, GOERS, LATELY, LIVED_IN, POLARITY, THERE, Parts, pattern
from mini_tf.data.french.phrases import agreed
from mini_tf.data.french.verb_phrases import conjugated, past_interrogative, past_participle, perfect, preterite, was


@pattern(EVENTS, lexicon.PAST_TIMES)
def past(subject: Phrase, verb: Verb, thing: Phrase, time: Pair) -> Parts:
    """J'ai vendu la voiture bleue la semaine dernière. I sold the blue car last week."""
    return preterite(subject, verb), thing, time


@pattern(EVENTS, lexicon.PAST_TIMES)
def not_past(subject: Phrase, verb: Verb, thing: Phrase, time: Pair) -> Parts:
    """Il n'a pas acheté de pain. He did not buy any bread."""
    return preterite(subject, verb, NOT), thing.after_not, time


@pattern(EVENTS, pairs("jamais = never, déjà = already"))
def never_or_already(subject: Phrase, verb: Verb, thing: Phrase, adverb: Pair) -> Parts:
    """Elle n'a jamais lu ce livre. She has never read this book. Elle a déjà lu ce livre."""
    return perfect(subject, verb, adverb), thing.after_never if adverb.en == "never" else thing


@pattern(GOERS, lexicon.VERBS["move"], THERE, lexicon.PAST_TIMES)
def went(subject: Phrase, verb: Verb, place: Place, time: Pair) -> Parts:
    """Elles sont allées au Canada l'année dernière. They went to Canada last year."""
    return preterite(subject, verb), place.towards if verb.en.endswith(" to") else place.there, time


@pattern(GOERS, lexicon.VERBS["arrival"], LATELY, POLARITY)
def arrived(subject: Phrase, verb: Verb, time: Pair, no: Pair) -> Parts:
    """Elle est arrivée hier. She arrived yesterday."""
    return preterite(subject, verb, no), time


@pattern(ASKED, lexicon.VERBS["arrival"], LATELY, mark="?")
def did_they_arrive(subject: Phrase, verb: Verb, time: Pair) -> Parts:
    """Tes frères sont-ils arrivés hier ? Did your brothers arrive yesterday?"""
    return past_interrogative(subject, verb), time


@pattern(GOERS, LIVED_IN, lexicon.MONTHS)
def born(subject: Phrase, place: Place, month: Pair) -> Parts:
    """Ma cousine est née au Japon en hiver. My cousin was born in Japan in winter."""
    fr = f"{conjugated(subject, lexicon.ETRE)} {past_participle('né', subject)}"
    return Pair(fr, f"{was(subject)} born"), place.there, month


IMPARFAIT = ("ais", "ais", "ait", "ions", "iez", "aient")


@pattern(lexicon.PRONOUNS, lexicon.VERBS["state"][:1], LIVED_IN, lexicon.YOUTH[:1])
@pattern(lexicon.PRONOUNS, lexicon.VERBS["state"], LIVED_IN, lexicon.YOUTH[1:])
def used_to(subject: Phrase, verb: Verb, place: Place, age: Adjective) -> Parts:
    """Quand j'étais petit, j'habitais à Lyon. When I was little, I used to live in Lyon."""
    ending = IMPARFAIT[subject.person]
    stem = verb.present[3].removesuffix("ons")
    clause = Pair(f"quand {subject.fr} ét{ending}", f"when {was(subject)}")
    main = Pair(f", {subject.fr} {stem}{ending}", f", {subject.en} used to {verb.en}")
    return clause, agreed(age, subject), main, place.there

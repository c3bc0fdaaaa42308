"""The past: passé composé with avoir and être, imparfait."""

from mini_tf.data.french.choices import Either
from mini_tf.data.french.lexicon import (
    BORN,
    CITIES,
    COUNTRIES,
    HAVE,
    MONTHS,
    MOVES,
    PRONOUNS,
    SPEAKERS,
    STATES,
    Pair,
    Phrase,
    Place,
    Scene,
    Verb,
)
from mini_tf.data.french.patterns.pattern import ETRE, EVENTS, PAST, THERE, THIRD, pattern
from mini_tf.data.french.phrases import ASKABLE, HAS, WAS, asks, past_participle

__all__ = ["GOERS", "LATELY"]


@pattern(EVENTS, PAST)
def past(scene: Scene, time: Pair) -> Pair:
    """J'ai vendu la voiture bleue la semaine dernière. I sold the blue car last week."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} {HAVE.present[subject.person]} {verb.participle} {thing.fr}{time[0]}",
        f"{subject.en} {verb.past} {thing.en}{time[1]}",
    )


@pattern(EVENTS, PAST)
def not_past(scene: Scene, time: Pair) -> Pair:
    """Il n'a pas acheté de pain. He did not buy any bread."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} ne {HAVE.present[subject.person]} pas {verb.participle} {thing.fr_not}{time[0]}",
        f"{subject.en} did not {verb.base} {thing.en_not}{time[1]}",
    )


@pattern(EVENTS, [("ne", "jamais", "never"), ("", "déjà", "already")])
def never_or_already(scene: Scene, word: tuple[str, str, str]) -> Pair:
    """Elle n'a jamais lu ce livre. She has never read this book. Elle a déjà lu ce livre."""
    subject, verb, thing = scene
    ne = f"{word[0]} " if word[0] else ""
    return (
        f"{subject.fr} {ne}{HAVE.present[subject.person]} {word[1]} {verb.participle} "
        f"{thing.fr_not if ne else thing.fr}",
        f"{subject.en} {HAS[subject.person]} {word[2]} {verb.done} {thing.en_bare if ne else thing.en}",
    )


GOERS = Either(PRONOUNS, SPEAKERS, THIRD)
ARRIVALS = [
    ("arrivé", "arrive", "arrived"), ("parti", "leave", "left"), ("rentré", "come home", "came home"),
    ("sorti", "go out", "went out"), ("tombé", "fall", "fell"), ("venu", "come", "came"),
]  # fmt: skip
LATELY = [time for time in PAST if time[1] in (" yesterday", " last night", " this morning", " last Monday")]


@pattern(GOERS, MOVES, THERE, PAST)
def went(subject: Phrase, verb: Verb, place: Place, time: Pair) -> Pair:
    """Elles sont allées au Canada l'année dernière. They went to Canada last year."""
    en = verb.past if not verb.past.endswith(" in") else f"{verb.past[:-3]} {place.at}"
    return (
        f"{subject.fr} {ETRE[subject.person]} {past_participle(verb.participle, subject)} {place.there}{time[0]}",
        f"{subject.en} {en} {place.en}{time[1]}",
    )


@pattern(GOERS, ARRIVALS, LATELY, [False, True])
def arrived(subject: Phrase, verb: tuple[str, str, str], time: Pair, negated: bool) -> Pair:
    """Elle est arrivée hier. She arrived yesterday."""
    participle = past_participle(verb[0], subject)
    if negated:
        return (
            f"{subject.fr} ne {ETRE[subject.person]} pas {participle}{time[0]}",
            f"{subject.en} did not {verb[1]}{time[1]}",
        )
    return f"{subject.fr} {ETRE[subject.person]} {participle}{time[0]}", f"{subject.en} {verb[2]}{time[1]}"


@pattern(Either(ASKABLE, THIRD), ARRIVALS, LATELY, mark="?")
def did_they_arrive(subject: Phrase, verb: tuple[str, str, str], time: Pair) -> Pair:
    """Tes frères sont-ils arrivés hier ? Did your brothers arrive yesterday?"""
    return (
        f"{asks(ETRE[subject.person], subject)} {past_participle(verb[0], subject)}{time[0]}",
        f"did {subject.en} {verb[1]}{time[1]}",
    )


@pattern(GOERS, Either(CITIES, COUNTRIES), MONTHS)
def born(subject: Phrase, place: Place, month: Pair) -> Pair:
    """Ma cousine est née au Japon en hiver. My cousin was born in Japan in winter."""
    return (
        f"{subject.fr} {ETRE[subject.person]} {past_participle(BORN[0], subject)} {place.there} {month[0]}",
        f"{subject.en} {WAS[subject.person]} {BORN[1]} in {place.en} {month[1]}",
    )


WAS_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")


@pattern(PRONOUNS, STATES[:1], Either(CITIES, COUNTRIES), [("petit", "little")])
@pattern(PRONOUNS, STATES, Either(CITIES, COUNTRIES), [("jeune", "young")])
def used_to(subject: Phrase, verb: Verb, place: Place, age: Pair) -> Pair:
    """Quand j'étais petit, j'habitais à Lyon. When I was little, I used to live in Lyon."""
    ending = WAS_ENDINGS[subject.person]
    age_fr = past_participle(age[0], subject)
    stem = verb.present[3].removesuffix("ons")
    return (
        f"quand {subject.fr} ét{ending} {age_fr}, {subject.fr} {stem}{ending} {place.there}",
        f"when {subject.en} {WAS[subject.person]} {age[1]}, {subject.en} used to {verb.base} in {place.en}",
    )

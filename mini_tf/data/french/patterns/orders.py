"""Orders, and what one asks for politely."""

from mini_tf.data.french.choices import Either, Together, each
from mini_tf.data.french.lexicon import VERBS, Pair, Phrase, Verb
from mini_tf.data.french.patterns.pattern import Parts, pattern
from mini_tf.data.french.phrases import LE, OURS, THIS, nouns


def _imperative(verb, polite):
    """ferme, fermez: the tu form of verbs in -er (and ouvrir, offrir) loses its s"""
    form = verb.present[4 if polite else 1]
    return form.removesuffix("s") if form.endswith("es") else form


ORDERS = Either(*(
    each(Together, [verb for verb in VERBS[verbs] if not verb.state], objects)
    for verbs, objects in [
        ("goods", nouns("food", [LE, *OURS])),
        ("animal", nouns("wild", [LE, THIS])),
        ("people", nouns("person", [LE, THIS])),
        ("vehicle", nouns("vehicle", [LE, THIS])),
        *((kind, nouns(kind, [LE, THIS, *OURS])) for kind in ("thing", "text", "clothes")),
    ]
))  # fmt: skip


@pattern(ORDERS, [False, True], mark="!")
def order(verb: Verb, thing: Phrase, polite: bool) -> Parts:
    """Ouvre le livre ! Open the book!"""
    return Pair(_imperative(verb, polite), verb.en), thing


@pattern(ORDERS, [False, True], mark="!")
def order_not(verb: Verb, thing: Phrase, polite: bool) -> Parts:
    """Ne lavez pas la voiture ! Do not wash the car!"""
    return Pair(f"ne {_imperative(verb, polite)} pas", f"do not {verb.en}"), thing


@pattern(ORDERS, [False, True])
def please(verb: Verb, thing: Phrase, polite: bool) -> Parts:
    """Apporte le panier, s'il te plaît. Please bring the basket."""
    bring = Pair(_imperative(verb, polite), f"please {verb.en}")
    return bring, thing, Pair(f", s'il {'vous' if polite else 'te'} plaît", "")

"""Orders, and what one asks for politely."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import VERBS, Pair, Phrase, Verb
from mini_tf.data.french.patterns.pattern import pattern, together
from mini_tf.data.french.phrases import LE, OURS, THIS, nouns


def _imperative(verb, polite):
    """ferme, fermez: the tu form of verbs in -er (and ouvrir, offrir) loses its s"""
    if polite:
        return verb.present[4]
    form = verb.present[1]
    return form[:-1] if form.endswith("es") else form


ORDERS = Either(*(
    each(together, [verb for verb in VERBS[verbs] if not verb.state], objects)
    for verbs, objects in [
        ("goods", nouns("food", [LE, *OURS])),
        ("animal", nouns("wild", [LE, THIS])),
        ("people", nouns("person", [LE, THIS])),
        ("vehicle", nouns("vehicle", [LE, THIS])),
        *((kind, nouns(kind, [LE, THIS, *OURS])) for kind in ("thing", "text", "clothes")),
    ]
))  # fmt: skip


@pattern(ORDERS, [False, True], mark="!")
def order(what: tuple[Verb, Phrase], polite: bool) -> Pair:
    """Ouvre le livre ! Open the book!"""
    verb, thing = what
    return f"{_imperative(verb, polite)} {thing.fr}", f"{verb.base} {thing.en}"


@pattern(ORDERS, [False, True], mark="!")
def order_not(what: tuple[Verb, Phrase], polite: bool) -> Pair:
    """Ne lavez pas la voiture ! Do not wash the car!"""
    verb, thing = what
    return f"ne {_imperative(verb, polite)} pas {thing.fr}", f"do not {verb.base} {thing.en}"


@pattern(ORDERS, [False, True])
def please(what: tuple[Verb, Phrase], polite: bool) -> Pair:
    """Apporte le panier, s'il te plaît. Please bring the basket."""
    verb, thing = what
    return (
        f"{_imperative(verb, polite)} {thing.fr}, s'il {'vous' if polite else 'te'} plaît",
        f"please {verb.base} {thing.en}",
    )

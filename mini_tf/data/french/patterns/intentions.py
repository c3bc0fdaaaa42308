"""What will be, what has just been, what one wants, can and must do."""

from mini_tf.data.french.lexicon import MOVES, VERBS, Pair, Scene, Verb
from mini_tf.data.french.patterns.pattern import ASKED_DEEDS, DEEDS, EVENTS, FUTURE, pattern
from mini_tf.data.french.phrases import BE, DO, HAS, asks, habit

__all__ = ["ALLER", "VENIR"]

ALLER = MOVES[0].present
VENIR = ("viens", "viens", "vient", "venons", "venez", "viennent")


@pattern(EVENTS, FUTURE)
def going_to(scene: Scene, time: Pair) -> Pair:
    """Nous allons visiter le château demain. We are going to visit the castle tomorrow."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} {ALLER[subject.person]} {verb.infinitive} {thing.fr}{time[0]}",
        f"{subject.en} {BE[subject.person]} going to {verb.base} {thing.en}{time[1]}",
    )


@pattern(EVENTS)
def has_just(scene: Scene) -> Pair:
    """Paul vient d'ouvrir le livre. Paul has just opened the book."""
    subject, verb, thing = scene
    return (
        f"{subject.fr} {VENIR[subject.person]} de {verb.infinitive} {thing.fr}",
        f"{subject.en} {HAS[subject.person]} just {verb.done} {thing.en}",
    )


def _modal(verb, person, negated):
    if verb.base == "can":
        return "cannot" if negated else "can"
    if negated:
        return "must not" if verb.infinitive == "devoir" else f"{DO[person]} not {verb.base}"
    return habit(person, verb)


@pattern(VERBS["modal"], DEEDS, [False, True])
def wants_can_must(modal: Verb, scene: Scene, negated: bool) -> Pair:
    """Je veux acheter la table. I want to buy the table. Tu ne peux pas lire ce livre. You cannot read this book."""
    subject, verb, thing = scene
    form = modal.present[subject.person]
    form = f"ne {form} pas" if negated else form
    return (
        f"{subject.fr} {form} {verb.infinitive} {thing.fr_not if negated else thing.fr}",
        f"{subject.en} {_modal(modal, subject.person, negated)} {verb.base} {thing.en_not if negated else thing.en}",
    )


@pattern(VERBS["modal"], ASKED_DEEDS, mark="?")
def question_can(modal: Verb, scene: Scene) -> Pair:
    """Peux-tu réparer mon vélo ? Can you repair my bicycle?"""
    subject, verb, thing = scene
    can = f"can {subject.en}" if modal.base == "can" else f"{DO[subject.person]} {subject.en} {modal.base}"
    return (
        f"{asks(modal.present[subject.person], subject)} {verb.infinitive} {thing.fr}",
        f"{can} {verb.base} {thing.en}",
    )

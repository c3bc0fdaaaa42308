"""To be, to compare, and what French says with avoir."""

from mini_tf.data.french.choices import Either, each
from mini_tf.data.french.lexicon import FEELINGS, HAVE, NAMES, QUALITIES, SIZES, TRAITS, Adjective, Pair, Phrase, Scene
from mini_tf.data.french.patterns.past import GOERS
from mini_tf.data.french.patterns.pattern import DEEDS, ETRE, pattern, together
from mini_tf.data.french.patterns.pronouns import STRESSED
from mini_tf.data.french.phrases import BE, KIN, LE, MINE, PEOPLE, SUBJECTS, THIS, agreed, nouns, owned

VERY = [("très", "very"), ("trop", "too"), ("vraiment", "really"), ("assez", "quite")]  # "pas assez" is not "not quite"
GROUPS = {
    "thing": QUALITIES,
    "clothes": QUALITIES[2:4] + SIZES[:4],
    "vehicle": QUALITIES[:4] + SIZES[:4],
    "sight": SIZES[:4] + SIZES[5:],
}


@pattern(Either(*(each(together, nouns(kind, [LE, THIS], adjectives=False), a) for kind, a in GROUPS.items())), VERY)
@pattern(
    Either(*(each(together, owned(kind, adjectives=False), a) for kind, a in GROUPS.items() if kind != "sight")), VERY
)
def thing_is(pair: tuple[Phrase, Adjective], very: Pair) -> Pair:
    """Les chemises de ma tante sont très belles. My aunt's shirts are very beautiful."""
    thing, adjective = pair
    return (
        f"{thing.fr} {ETRE[thing.person]} {very[0]} {agreed(adjective, thing)}",
        f"{thing.en} {BE[thing.person]} {very[1]} {adjective.en}",
    )


@pattern(GOERS, FEELINGS, VERY[:3], [False, True])
def feels(subject: Phrase, feeling: Adjective, very: Pair, negated: bool) -> Pair:
    """Mes sœurs ne sont pas très contentes. My sisters are not very happy."""
    fr, en = ETRE[subject.person], BE[subject.person]
    fr, en = (f"ne {fr} pas", f"{en} not") if negated else (fr, en)
    return f"{subject.fr} {fr} {very[0]} {agreed(feeling, subject)}", f"{subject.en} {en} {very[1]} {feeling.en}"


OTHERS = Either(PEOPLE, [Phrase(fr, en, 2, "") for fr, en, _ in STRESSED])
COMPARED = [("plus", "more"), ("aussi", "as"), ("moins", "less")]


def _compared(comparison, adjective, form):
    """plus grand … que: taller than; aussi: as tall as; moins: less patient than, but not as tall as"""
    fr = f"{comparison[0]} {form} que"
    if comparison[1] == "more":
        return fr, f"{adjective.en_more} than"
    if comparison[1] == "as":
        return fr, f"as {adjective.en} as"
    return fr, f"less {adjective.en} than" if adjective.en_more.startswith("more") else f"not as {adjective.en} as"


@pattern(Either(NAMES, KIN), OTHERS, TRAITS, COMPARED)
def person_compared(subject: Phrase, other: Phrase, trait: Adjective, comparison: Pair) -> Pair:
    """Marie est plus grande que le facteur. Marie is taller than the postman."""
    fr, en = _compared(comparison, trait, agreed(trait, subject))
    return f"{subject.fr} {ETRE[subject.person]} {fr} {other.fr}", f"{subject.en} {BE[subject.person]} {en} {other.en}"


@pattern(Either(*(each(together, nouns(kind, [LE, THIS], False), nouns(kind, MINE, False), adjectives, COMPARED)
                  for kind, adjectives in GROUPS.items() if kind != "sight")))  # fmt: skip
def thing_compared(parts: tuple[Phrase, Phrase, Adjective, Pair]) -> Pair:
    """Cette valise est plus lourde que mon sac. This suitcase is heavier than my bag."""
    thing, other, adjective, comparison = parts
    fr, en = _compared(comparison, adjective, agreed(adjective, thing))
    return f"{thing.fr} {ETRE[thing.person]} {fr} {other.fr}", f"{thing.en} {BE[thing.person]} {en} {other.en}"


BETTER = ("meilleur", "meilleure", "meilleurs", "meilleures")


@pattern(nouns("food", [LE, THIS], False), nouns("food", MINE, False))
def better(thing: Phrase, other: Phrase) -> Pair:
    """Cette poire est meilleure que ta pomme. This pear is better than your apple."""
    return (
        f"{thing.fr} {ETRE[thing.person]} {agreed(BETTER, thing)} que {other.fr}",
        f"{thing.en} {BE[thing.person]} better than {other.en}",
    )


HAVING = [("faim", "hungry"), ("soif", "thirsty"), ("froid", "cold"), ("sommeil", "sleepy"),
          ("raison", "right"), ("tort", "wrong")]  # fmt: skip
NOW = [("maintenant", "now"), ("ce matin", "this morning"), ("aujourd'hui", "today")]


@pattern(SUBJECTS, HAVING[:4], NOW, [False, True])
def hungry(subject: Phrase, state: Pair, time: Pair, negated: bool) -> Pair:
    """Les enfants n'ont pas faim maintenant. The children are not hungry now."""
    have, be = HAVE.present[subject.person], BE[subject.person]
    have, be = (f"ne {have} pas", f"{be} not") if negated else (have, be)
    return f"{subject.fr} {have} {state[0]} {time[0]}", f"{subject.en} {be} {state[1]} {time[1]}"


@pattern(SUBJECTS, HAVING, [("", "souvent", "often"), ("ne", "pas souvent", "not often"),
                            ("ne", "pas toujours", "not always"),
                            ("ne", "jamais", "never")])  # fmt: skip
def often_hungry(subject: Phrase, state: Pair, adverb: tuple[str, str, str]) -> Pair:
    """Mon oncle n'a jamais tort. My uncle is never wrong."""
    ne = f"{adverb[0]} " if adverb[0] else ""
    return (
        f"{subject.fr} {ne}{HAVE.present[subject.person]} {adverb[1]} {state[0]}",
        f"{subject.en} {BE[subject.person]} {adverb[2]} {state[1]}",
    )


@pattern(SUBJECTS, nouns("wild", [LE, THIS]))
def afraid(subject: Phrase, animal: Phrase) -> Pair:
    """Ma tante a peur du loup. My aunt is afraid of the wolf."""
    return (
        f"{subject.fr} {HAVE.present[subject.person]} peur de {animal.fr}",
        f"{subject.en} {BE[subject.person]} afraid of {animal.en}",
    )


@pattern(
    SUBJECTS,
    Either(nouns("thing", [LE, THIS, *MINE]), nouns("vehicle", [LE, THIS, *MINE]), nouns("text", [LE, THIS, *MINE])),
)
def needs(subject: Phrase, thing: Phrase) -> Pair:
    """J'ai besoin du marteau. I need the hammer."""
    need = "needs" if subject.person == 2 else "need"
    return f"{subject.fr} {HAVE.present[subject.person]} besoin de {thing.fr}", f"{subject.en} {need} {thing.en}"


@pattern(DEEDS)
def feels_like(scene: Scene) -> Pair:
    """Elle a envie de manger une pomme. She feels like eating an apple."""
    subject, verb, thing = scene
    feel = "feels" if subject.person == 2 else "feel"
    return (
        f"{subject.fr} {HAVE.present[subject.person]} envie de {verb.infinitive} {thing.fr}",
        f"{subject.en} {feel} like {verb.ing} {thing.en}",
    )

"""The forms of words by rule: plurals, feminines, conjugated verbs. words.toml lists the irregular ones."""

import re
import tomllib
from pathlib import Path

WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
IRREGULAR = WORDS["irregular"]


def french_plural(word: str) -> str:
    """chat → chats, château → châteaux, cheval → chevaux, gris → gris"""
    if word.endswith(("s", "x")):
        return word
    if word.endswith("al"):
        return word.removesuffix("l") + "ux"
    return word + ("x" if word.endswith("eau") or word in ("hibou", "bijou") else "s")


def feminine(adjective: str) -> str:
    """noir → noire, rouge → rouge, curieux → curieuse, léger → légère"""
    for masculine, ending in (("e", "e"), ("eux", "euse"), ("er", "ère"), ("et", "ète")):
        if adjective.endswith(masculine):
            return adjective.removesuffix(masculine) + ending
    return adjective + "e"


# The three regular groups: the ending of the infinitive, those of the present, that of the past participle
GROUPS = {
    "er": ("e es e ons ez ent", "é"),
    "ir": ("is is it issons issez issent", "i"),
    "re": ("s s _ ons ez ent", "u"),
}


def french_forms(infinitive: str) -> tuple[tuple[str, ...], str]:
    """manger → ((mange, manges, mange, mangeons, mangez, mangent), mangé): the present and the past participle"""
    if infinitive in IRREGULAR["french"]:
        present, participle = IRREGULAR["french"][infinitive].split("; ")
        return tuple(present.split()), participle
    stem, group = infinitive[:-2], infinitive[-2:]
    endings, participle = GROUPS[group]
    je, tu, il, nous, vous, ils = endings.replace("_", "").split(" ")
    stressed = _stressed(stem) if group == "er" else stem
    soft = "e" if group == "er" and stem.endswith("g") else ""           # mangeons: the g stays soft
    present = (stressed + je, stressed + tu, stressed + il, stem + soft + nous, stem + vous, stressed + ils)
    return present, stem + participle


def _stressed(stem):
    """The stem of a verb in -er where the stress is on it: j'achète, tu préfères, elle essaie; but j'appelle"""
    if stem == "appel":
        return "appell"
    return re.sub("[eé](?=[lmnrtvg]$)", "è", re.sub("y$", "i", stem))


THIRD = {"be": "is", "can": "can", "have": "has"}
DOUBLED = ("forget", "get", "prefer", "put", "run", "swim", "travel")    # forgetting, travelled


def with_s(word: str) -> str:
    """The plural of a noun, or a verb with he or she: cats, boxes, stories; eats, watches, studies"""
    if word in IRREGULAR["plurals"]:
        return IRREGULAR["plurals"][word]
    if re.search("[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "sh", "ch", "x", "o")) else "s")


def english_forms(base: str) -> tuple[str, str, str, str]:
    """study → studies, studied, studied, studying: with he or she, the past, its participle, the -ing form"""
    doubled = base + base[-1] if base in DOUBLED else base
    regular = re.sub("([^aeiou])y$", r"\1i", doubled).removesuffix("e") + "ed"
    past, participle = IRREGULAR["english"].get(base, f"{regular} {regular}").split()
    stem = doubled if base in ("be", "see") else doubled.removesuffix("e")
    return THIRD.get(base, with_s(base)), past, participle, stem + "ing"

"""How a layer or a model shows itself: as a tree, with its parameters' shapes and the count of trainable parameters."""

import textwrap
from typing import TYPE_CHECKING, Any

from mini_tf.checks import shown

if TYPE_CHECKING:
    from mini_tf.layers.layer import Layer

WIDTH = 100                          # columns, at most


def tree(layer: "Layer") -> str:
    """The layer in one line, or, if it has layers inside, with a line for each of them.

    GPT(T=4, L=3, H=2, m=4, f=16, dropout=0.0): 3,320 trainable parameters
      trunk: Trunk                                            3,320
        embedding: Embedding                                  1,600  table (200, 8)
        layers.0 to layers.2, each: TransformerLayer            568
          …

    Neighbours that look the same are shown once, layers without parameters not at all. A parameter that is used twice
    is shown where it comes first, and then by its name; one that is not trained is "fixed".
    """
    options = getattr(layer, "config", None)
    arguments = [f"{name}={shown(value)}" for name, value in options.items()] if isinstance(options, dict) else []
    seen: dict[int, str] = {}
    own, inside = _own(layer, "", seen), _inside(layer, "", seen, "  ")
    learned = _learned(layer)
    name = f"{type(layer).__name__}({', '.join(arguments)})" if arguments else type(layer).__name__
    head = f"{name}: {f'{learned:,}' if learned else 'no'} trainable parameters"
    head = textwrap.fill(f"{head}  {own}".rstrip(), WIDTH, subsequent_indent="    ", break_long_words=False)
    widest = max((len(left) for left, _, _ in inside), default=0)
    lines = [f"{left:<{widest}}  {count:>13}  {text}".rstrip() for left, count, text in inside]
    return "\n".join([head, *(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines)])


def _inside(layer: "Layer", path: str, seen: dict[int, str], indent: str) -> list[tuple[str, str, str]]:
    """[(name and class, trainable parameters, own parameters)] of the layers inside that have some, outer first"""
    groups: list[tuple[list[str], Any]] = []             # (names of neighbours that look the same, how they look)
    members: list[tuple[str, Any]] = list(layer.own_members())
    for name, member in members:
        if not hasattr(member, "own_members") or not member.parameters():
            continue
        own = _own(member, f"{path}{name}.", seen)
        looks = type(member).__name__, _learned(member), own, _inside(member, f"{path}{name}.", seen, f"{indent}  ")
        if groups and groups[-1][1] == looks and _follows(groups[-1][0][-1], name):
            groups[-1][0].append(name)
        else:
            groups.append(([name], looks))
    rows = []
    for names, (kind, learned, own, inner) in groups:
        in_a_list = names[0].rpartition(".")[2].isdecimal()
        which = ", ".join(names) if not in_a_list or len(names) == 1 else f"{names[0]} to {names[-1]}"
        rows += [(f"{indent}{which}{', each' if len(names) > 1 else ''}: {kind}", f"{learned:,}", own), *inner]
    return rows


def _follows(before: str, name: str) -> bool:
    """True for layers.1 after layers.0, and for names without numbers"""
    (place, number), (new_place, new_number) = (one.rpartition(".")[::2] for one in (before, name))
    if number.isdecimal() and new_number.isdecimal():
        return place == new_place and int(new_number) == int(number) + 1
    return not (number.isdecimal() or new_number.isdecimal())


def _own(layer: "Layer", path: str, seen: dict[int, str]) -> str:
    """The layer's own parameters: "W (16, 64), b (64,)". seen: {id: path} of all parameters so far"""
    found = []
    for name, member in layer.own_members():
        if hasattr(member, "own_members"):                # a layer
            continue
        if id(member) in seen:
            found.append(f"{name} is {seen[id(member)]}")
            continue
        seen[id(member)] = f"{path}{name}"
        shape = getattr(member.data, "shape", "without data")            # of a layer that is half built
        found.append(f"{name} {shape}{'' if member.trainable else ' fixed'}")
    return ", ".join(found)


def _learned(layer: "Layer") -> int:
    """The number of trainable parameters; of a half-built layer, of those it has so far."""
    return sum(getattr(p.data, "size", 0) for p in layer.parameters().values() if p.trainable)

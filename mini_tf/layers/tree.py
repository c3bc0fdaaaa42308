"""What Python shows for a layer or a model: a tree of what is inside, with shapes, and with numbers to learn.
    >>> Linear(3, 4)
    Linear(W (3, 4), b (4,): 16 numbers to learn)

A layer with others inside gets a line for each of them. A parameter or layer that occurs a second time is named by its
first place, and not counted again. Equal neighbours in a list are shown once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mini_tf.layers.layer import Layer

WIDTH = 100                          # columns, at most
LEAST = 12                           # columns for what a line says of a layer, at least


def tree(layer: "Layer") -> str:
    """The layer in one line, if it has no others inside; else a line for each layer, and its numbers in a column.

    What cannot be shown, such as a layer that is half built, is shown as any object is. So this never raises.
    """
    try:
        about, rows, learned, fixed = _look_into(layer, "", {id(layer): "the whole"})
        name, count = type(layer).__name__, _count(learned, fixed)
        if not rows:
            return f"{name}({': '.join(filter(None, [', '.join(about), count]))})"
        return "\n".join([f"{name}: {count or 'nothing to learn'}", *_in_lines(about), *_in_columns(rows)])
    except Exception:
        return object.__repr__(layer)


def _look_into(layer, path, seen):
    """(about, rows, learned, fixed): words about a layer; rows (depth, name, kind, about, learned), one for each layer
    inside; and how many numbers there are in all that were not seen before, to learn and fixed.

    path   of the layer, with a dot at its end
    seen   {id of a layer or parameter: its path}, which grows
    """
    inside = list(layer.own_members())
    alone = not any(hasattr(member, "own_members") for _, member in inside)      # there are only parameters
    about, rows, learned, fixed, last = _settings(layer), [], 0, 0, None
    for name, member in inside:
        known = seen.get(id(member))
        seen.setdefault(id(member), f"{path}{name}")
        if not hasattr(member, "own_members"):           # a parameter
            size = 0 if known else member.data.size
            learned, fixed = learned + size * member.trainable, fixed + size * (not member.trainable)
            what = f"= {known}" if known else f"{tuple(member.data.shape)}{'' if member.trainable else ' fixed'}"
            if alone:
                about.append(f"{name} {what}")
            else:
                rows.append((0, name, "Parameter", [what], size * member.trainable))
            continue
        words, of_member, its, its_fixed = ([f"= {known}"], [], 0, 0) if known else (
            _look_into(member, f"{path}{name}.", seen))  # fmt: skip
        learned, fixed = learned + its, fixed + its_fixed
        of_list, _, number = name.rpartition(".")
        new = [(0, name, type(member).__name__, words, its), *((depth + 1, *row) for depth, *row in of_member)]
        this = of_list, new[0][2:], new[1:]
        if of_list and this == last:                     # as the one before it in the list
            first = rows[-len(new)]
            rows[-len(new)] = 0, f"{first[1].removesuffix(', each').split(' to ')[0]} to {number}, each", *first[2:]
        else:
            rows += new
        last = this
    return about, rows, learned, fixed


def _settings(layer):
    """["H=4", "m=16", "causal"]: a model's configuration, or a layer's attributes that are numbers, words or True"""
    attributes = vars(layer)
    config = attributes.get("config")
    given = config if isinstance(config, dict) else {k: v for k, v in attributes.items() if not k.startswith("_")}
    return [name if value is True else f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in given.items()
            if isinstance(value, (int, float, str)) and value is not False and len(str(value)) < 30]  # fmt: skip


def _count(learned, fixed):
    """"16 numbers to learn, 4 fixed"; "" if there are none"""
    to_learn = f"{learned:,} number{'' if learned == 1 else 's'} to learn" if learned or fixed else ""
    return f"{to_learn}, {fixed:,} fixed" if fixed else to_learn


def _in_lines(words):
    """The words, indented, in lines that are not too long"""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > WIDTH - 3:
            lines.append("")
        lines[-1] += f" {word}"
    return [f" {line}" for line in lines if line]


def _in_columns(rows):
    names = ["  " * (depth + 1) + name for depth, name, *_ in rows]
    kinds, counts = [row[2] for row in rows], [f"{row[4]:,}" if row[4] else "" for row in rows]
    abouts = [", ".join(row[3]) for row in rows]
    widths = [max(map(len, column)) for column in (names, kinds, counts)]
    room = max(LEAST, min(max(map(len, abouts)), WIDTH - sum(widths) - 6))
    abouts = [about if len(about) <= room else f"{about[: room - 1]}…" for about in abouts]
    return [f"{name:{widths[0]}}  {kind:{widths[1]}}  {about:{room}}  {count:>{widths[2]}}".rstrip()
            for name, kind, about, count in zip(names, kinds, abouts, counts)]  # fmt: skip

"""How reports write entries, numbers and lists."""

from collections.abc import Sequence


def entry(index: tuple[int, ...]) -> str:
    """The index of an entry as the report shows it: [0, 3]"""
    return f"[{', '.join(map(str, index))}]"


def number(x: float, digits: int = 6) -> str:
    """A number as the report shows it, and never -0"""
    return f"{x + 0.0:.{digits}g}"


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""

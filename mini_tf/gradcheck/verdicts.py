"""The three verdicts, that on a wrong step, and how entries and lists are written."""

from collections.abc import Sequence

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"
WRONG = "WRONG"                                          # of a step
STYLES = {PASS: "green", FAIL: "bold red", NOT_TESTED: "yellow"}         # of the terminal


def written(entry: tuple[int, ...]) -> str:
    """The index of an entry as the report shows it: [0, 3]."""
    return f"[{', '.join(map(str, entry))}]"


def listed(parts: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))

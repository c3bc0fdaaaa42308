"""The three verdicts, that on a wrong step, and how the index of an entry is written."""

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"
WRONG = "WRONG"                                          # of a step
STYLES = {PASS: "green", FAIL: "bold red", NOT_TESTED: "yellow"}         # of the terminal


def written(entry: tuple[int, ...]) -> str:
    """The index of an entry as the report shows it: [0, 3]."""
    return f"[{', '.join(map(str, entry))}]"

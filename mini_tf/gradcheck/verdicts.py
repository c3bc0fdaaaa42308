"""The three verdicts, and that on a step; how they and the index of an entry are written."""

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"
WRONG = "WRONG"                                          # of a step
STYLES = {PASS: "green", FAIL: "bold red", NOT_TESTED: "yellow"}         # of the terminal


def written(entry):
    """The index of an entry, as it is written: [0, 3]."""
    return f"[{', '.join(map(str, entry))}]"

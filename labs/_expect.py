"""A lab's expectations: each is printed next to what was measured, and marked as met or not.

    expect("different words", 14_295, len(vocabulary))
    expect("test loss, nats per word", about(5.46, within=0.05), loss, quick=below(9))
    expect("change of outputs before the changed word", at_most(0), abs(change).max())

A band, ± within, covers three seeds of a full run: `python tests/bench/lab_bands.py LAB` measures it again.
"""

import atexit
import json
import os
import sys
from collections import namedtuple

SAME = object()                         # --quick: expect the same
MET, MISSED, NOT_JUDGED = "✓", "✗", "·"
Record = namedtuple("Record", "what expected measured mark")
records = []                            # one for each expectation so far
QUICK = False                           # set by _common.quick_mode

Band = namedtuple("Band", "least most text strict", defaults=(False,))


def about(value, within):
    """From value − within to value + within."""
    return Band(value - within, value + within, "{middle} ± {within}")


def between(least, most):
    return Band(least, most, "{least} to {most}")


def at_least(least):
    return Band(least, float("inf"), "{least} or more")


def at_most(most):
    return Band(float("-inf"), most, "{most} or less")


def above(value):
    """Greater than value, by any amount."""
    return Band(value, float("inf"), "above {least}", strict=True)


def below(value):
    """Less than value, by any amount."""
    return Band(float("-inf"), value, "below {most}", strict=True)


def expect(what, expected, measured, quick=SAME, form=None):
    """Print what is expected and what was measured: "✓" in front if it is met, "✗" if it is not.

    what      the quantity, with its unit
    expected  a number, a text or a truth value that has to be met exactly; or a band: about(…), below(…) and so on
    quick     what to expect with --quick instead; None: nothing, because it is too short for this claim
    form      a format for numbers, such as "{:.1%}"
    """
    judged = True
    if QUICK and quick is not SAME:
        judged, expected = quick is not None, expected if quick is None else quick
    mark = (MET if _is_met(expected, measured) else MISSED) if judged else NOT_JUDGED
    expected_text, measured_text = _in_words(expected, form), _number(measured, form)
    note = {MET: "", MISSED: "   ← not met", NOT_JUDGED: "   (in a full run)"}[mark]
    print(f"  {mark} {what:<48} expected {expected_text:<16} measured {measured_text}{note}")
    record = Record(what, expected_text, measured_text, mark)
    records.append(record)
    if path := os.environ.get("MINI_TF_EXPECTATIONS"):      # collects them over several runs
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record._asdict() | {"value": _plain(measured)}) + "\n")


def _is_met(expected, measured):
    if isinstance(expected, Band):
        least, most, _, strict = expected                # NaN is in no band
        return bool(least < measured < most if strict else least <= measured <= most)
    return bool(expected == measured)


def _in_words(expected, form):
    if not isinstance(expected, Band):
        return _number(expected, form)
    least, most, text, _ = expected
    numbers = {"least": least, "most": most, "middle": (least + most) / 2, "within": (most - least) / 2}
    return text.format(**{name: _number(number, form) for name, number in numbers.items() if f"{{{name}}}" in text})


def _number(value, form):
    if form:
        return form.format(value)
    if isinstance(value, (bool, str)) or str(value) in ("True", "False"):      # NumPy's truth values, too
        return {"True": "yes", "False": "no"}.get(str(value), str(value))
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _plain(value):
    return value if isinstance(value, (bool, str)) else float(value)


@atexit.register
def summary():
    """The last line of a lab: how many of its expectations were met."""
    judged = [record for record in records if record.mark != NOT_JUDGED]
    missed = [record.what for record in judged if record.mark == MISSED]
    if judged and hasattr(sys, "last_value"):            # an exception has ended the script, or a notebook's cell
        names = f": {'; '.join(missed)}" if missed else ""
        print("\nStopped early, by an error. Expectations so far: "
              f"{len(judged) - len(missed)} met, {len(missed)} missed{names}")         # fmt: skip
    elif missed:
        print(f"\n{len(missed)} of {len(judged)} expectations not met: {'; '.join(missed)}")
    elif judged:
        print(f"\nAll {len(judged)} expectations met.")

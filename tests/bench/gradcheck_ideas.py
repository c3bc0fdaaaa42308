"""What each idea of the gradient checker is worth: leave it out, and count the planted bugs that are then missed.

    python tests/bench/gradcheck_ideas.py               the verdict: bugs that pass, right functions that fail
    python tests/bench/gradcheck_ideas.py --reasons     what a report says, with and without other sizes

Bugs are those of mini_tf/gradcheck/planting/bugs.py, right functions those of mini_tf/gradcheck/examples.py, at a generic
point and as layers begin: γ = 1, β and biases 0. In brackets: bugs that are found by a broken promise alone.
"""

import argparse
import sys
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

from mini_tf.gradcheck import gradcheck, judge
from mini_tf.gradcheck.adapters import signature_of
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.first_checker import is_right
from mini_tf.gradcheck.measure import slopes
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.gradcheck.report import FAIL, Directions
from mini_tf.gradcheck.weights import is_float

import numpy as np

JUDGE = "mini_tf.gradcheck.verdict"
BEGINS = {"gamma": 1.0, "beta": 0.0, "b": 0.0}           # as layers begin


def fixed(phi, x, entries, h=1e-6, tolerance=1e-4):
    """Central differences with one step, and one tolerance for all entries: what most checkers have"""
    flat, found = x.reshape(-1), []
    for i in entries:
        at = slopes._moved(phi, [(flat, i, 1.0)])
        found.append((at(h)[0] - at(-h)[0]) / (2 * h))
    found = np.array(found)
    return slopes.Slopes(found, np.full(len(found), tolerance * np.abs(found).max(initial=0)), np.zeros(len(found), bool))


BUGS_ALONE, AS_LAYERS_BEGIN, RIGHT_ONES = "bugs", "begins", "right"
LEFT_OUT = {                                             # {idea: (what is put in its place, what is counted)}
    "nothing left out": ([], (BUGS_ALONE, AS_LAYERS_BEGIN, RIGHT_ONES)),
    "random dy: ones": ([patch(f"{JUDGE}.random_dy", lambda y, *_: np.ones(np.shape(y)) if np.ndim(y) else 1.0)], (BUGS_ALONE,)),
    "generic and far points": (
        [patch(f"{JUDGE}._move_to_generic_point", lambda *_: False)], (BUGS_ALONE, AS_LAYERS_BEGIN)),
    "far points": ([patch(f"{JUDGE}.FAR_POINTS", 0)], (BUGS_ALONE, AS_LAYERS_BEGIN)),
    "uncertainty: h = 1e-6, tolerance 1e-4": ([patch("mini_tf.gradcheck.measure.evidence.slopes_of_entries", fixed)], (BUGS_ALONE, RIGHT_ONES)),
    "kinks": ([patch("mini_tf.gradcheck.measure.slopes.BEND", np.inf)], (BUGS_ALONE, RIGHT_ONES)),
    "2 entries of each tensor, no directions": (
        [patch(f"{JUDGE}.BUDGET", 2), patch(f"{JUDGE}.LEAST", 2), patch(f"{JUDGE}.COUNT", 0),
         patch(f"{JUDGE}.judge_directions", lambda *_: Directions(0, 0, 0.0))], (BUGS_ALONE,)),
    "2 entries of each tensor, ten directions": (
        [patch(f"{JUDGE}.BUDGET", 2), patch(f"{JUDGE}.LEAST", 2), patch(f"{JUDGE}.COUNT", 0)], (BUGS_ALONE,)),
}  # fmt: skip


def made(name, begins=False):
    """(f, inputs, params) of an example; begins: its γ, β and biases as layers begin"""
    f, inputs, params = EXAMPLES[name](np.random.default_rng(0))
    if begins:
        inputs = [np.full_like(x, BEGINS[n]) if n in BEGINS and is_float(x) else x for n, x in zip(signature_of(f).names, inputs)]
        for path, p in params.items():
            if path.rpartition(".")[2] in BEGINS:
                p.data = np.full_like(p.data, BEGINS[path.rpartition(".")[2]])
    return f, inputs, params


def all_of(what):
    """(bug or None, name of its example, (f, inputs, params)) one by one, while the bug is planted"""
    for bug in EXAMPLES if what == RIGHT_ONES else BUGS:
        name = getattr(bug, "example", bug)
        with planted(bug) if what != RIGHT_ONES else nullcontext():
            yield name, made(name, what == AS_LAYERS_BEGIN)


def floating_only(f, inputs, params, dtype=float):
    """(g, arrays): f as a function of its floating inputs and its parameters, for the first checker"""
    arrays = [x.astype(dtype) for x in inputs if is_float(x)] + [p.data.astype(dtype) for p in params.values()]

    def g(*arrays):
        rest = iter(arrays)
        given = [next(rest) if is_float(x) else x for x in inputs]
        for p in params.values():
            p.data, p.grad = next(rest), None
        y, backward = f(*given)

        def back(dy):
            came = backward(dy)
            came = came if isinstance(came, tuple) else (came,)
            return (*(g for g, x in zip(came, inputs) if is_float(x)), *(p.grad for p in params.values()))

        return np.asarray(y), back

    return g, arrays


def first_checker_says(f, inputs, params, dtype):
    """Its answer; an exception, as for a gradient that is None, counts as a wrong one"""
    g, arrays = floating_only(f, inputs, params, dtype)
    try:
        return is_right(g, *arrays)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        return False


def verdicts():
    """Print the table of the verdict."""
    columns = {BUGS_ALONE: "bugs that pass", AS_LAYERS_BEGIN: "as layers begin", RIGHT_ONES: "right ones that fail"}
    print(f"{len(BUGS)} bugs, {len(EXAMPLES)} right functions\n{'left out':<44}" + "".join(f"{one:>22}" for one in columns.values()))
    for dtype in (np.float64, np.float32):
        counts = [sum(first_checker_says(*case, dtype) != (what == RIGHT_ONES) for _, case in all_of(what)) for what in columns]
        print(f"{f'all but first_checker.py, {dtype.__name__}':<44}" + "".join(f"{count:>22}" for count in counts), flush=True)
    for idea, (patches, counted) in LEFT_OUT.items():
        print(f"{idea:<44}", end="", flush=True)
        for what in columns:
            print(f"{_missed(patches, what) if what in counted else '':>22}", end="", flush=True)
        print()


def _missed(patches, what):
    """How many bugs pass, and how many are found by promises alone; how many right functions fail"""
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        reports = [judge(f, *inputs, params=params, name=name) for name, (f, inputs, params) in all_of(what)]
    found = Counter(map(_found_by, reports))
    return (sum(found.values()) - found["nothing"]) if what == RIGHT_ONES else f"{found['nothing']} ({found['promises']})"


def _found_by(report):
    """By which of its parts a report fails"""
    if any(c.wrong for t in report.tensors for c in t.comparisons):
        return "slopes"
    return "promises" if report.findings else "float32" if report.verdict == FAIL else "nothing"


@contextmanager
def at_one_size():
    """Inside the block, no reason is tried at other sizes."""
    with ExitStack() as stack:
        for name, module in [*sys.modules.items()]:
            if name.startswith("mini_tf.gradcheck.explain") and hasattr(module, "other_sizes"):
                stack.enter_context(patch.object(module, "other_sizes", lambda _: []))
        yield


def reasons():
    """Print how many bugs get which answer, and how many get another change without other sizes."""
    answers = Counter()
    for bug in BUGS:
        with planted(bug):
            first = _answer(bug)
            with at_one_size():
                second = _answer(bug)
        answers.update([first[0], *(["another change without other sizes"] if second[1] not in ("", first[1]) else [])])
        print(f"  {bug.name:<60}{first[0]:<28}{first[1]}" + (f"   BY CHANCE {second[1]}" if second[1] not in ("", first[1]) else ""),
              flush=True)  # fmt: skip
    for answer, count in answers.most_common():
        print(f"{count:>5}  {answer}")


def _answer(bug):
    """(what the report says, the change it shows)"""
    f, inputs, params = made(bug.example)
    report = gradcheck(f, *inputs, params=params, name=bug.example)
    step, report = report.wrong_step, report.wrong_step.report if report.wrong_step else report
    words = [*filter(None, [t.diagnosis for t in report.tensors])]
    said = ["change"] * bool(report.changes) + ["words"] * bool(words) + ["finding"] * bool(report.findings)
    said = said or ["lines"] * bool(report.suspects)
    return ("step: " if step else "") + (", ".join(said) or "nothing"), report.changes[0].after if report.changes else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reasons", action="store_true")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        reasons() if parser.parse_args().reasons else verdicts()

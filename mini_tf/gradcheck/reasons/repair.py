"""One change that makes a wrong backward right, searched for among small changes of its source.

This is the self-test the other way round: each change is made, run, and its gradients are compared with the measured
slopes. A change is shown only if all gradients then agree: at both points, and with arrays of other sizes.
"""

import ast
import inspect
import time
import warnings
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.elsewhere import elsewhere, other_draws
from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, Evidence
from mini_tf.gradcheck.measuring.slopes import Phi
from mini_tf.gradcheck.measuring.styles import Brought
from mini_tf.gradcheck.planting.editing import (
    closure_of,
    function_of,
    rebuilt,
    recompiled,
    running_as,
    source_of,
    statement_around,
)
from mini_tf.gradcheck.planting.mutations import Source
from mini_tf.gradcheck.reasons.changes import SIZE, UNDONE, changes, changes_of_what_is_kept, is_atom
from mini_tf.gradcheck.reasons.theirs import following, is_theirs, parts_of
from mini_tf.trace import place

import numpy as np

SOON = 2000              # changes of the backward that are tried before those of what the forward keeps
SECONDS = 8.0            # of processor time, for the whole search
NUMBERS = np.ndarray, np.generic, float, int


def find_repair(evidence: Evidence, lines: Collection[int] = ()) -> list[str]:
    """[place, what is wrong, the line as it is, the line as it would be right].

    lines     numbers of suspected lines, which are tried first
    [] if no single change does it, or there is no source. Every change runs in a fresh forward, on copies, because many
    changes write where they should not.
    """
    deadline = time.process_time() + SECONDS
    if not _measured(evidence) or time.process_time() >= deadline:
        return []
    texts = {}                                           # file -> its text
    for part, change in _candidates(evidence, set(lines), texts):
        if time.process_time() > deadline:
            break
        try:
            with warnings.catch_warnings():              # of what Python thinks of the change
                warnings.simplefilter("ignore")
                code = _code_of(part, change, texts)
        except (SyntaxError, StopIteration):
            continue
        if not _makes_right(evidence, part, code):
            continue
        if _needs_other_sizes(change) and not any(_other_sizes(evidence, other) for other in elsewhere(evidence)):
            continue                                     # the size of another axis may be the same by chance
        if all(_makes_right(other, part, code) for find in (elsewhere, other_draws) for other in find(evidence)):
            where = place(part.function.__code__.co_filename, change.line)
            return [where, UNDONE.get(change.name, change.name), change.before, change.after]
    return []


def _needs_other_sizes(change):
    before, after = SIZE.findall(change.before), SIZE.findall(change.after)
    return any(size not in before for size in after)


def _other_sizes(evidence, other):
    """True if every size of an axis is another one there."""
    pairs = [(x, other.everything[name]) for name, x in evidence.everything.items() if isinstance(x, np.ndarray)]
    return all(n != m for x, y in pairs for n, m in zip(x.shape, y.shape) if n > 1)


def _code_of(part, change, texts):
    """The changed code of part.runs. Only the statement of the file that it stands in is compiled."""
    text = texts[part.runs.__code__.co_filename]
    first, last = statement_around(text, part.runs.__code__.co_firstlineno)
    return recompiled(part.runs, change.text, (first, last + change.text.count("\n") - text.count("\n")))


def _candidates(evidence, lines, texts):
    """[(Part, Mutation)] to try: first in the suspected lines, then in the rest of the backward, then what is kept."""
    found, kept = [], []
    for part in parts_of(evidence):
        try:
            text, node = source_of(part.function)
        except ValueError:                               # UserError: written in C, or at a prompt
            continue
        if any(isinstance(one, ast.While) for one in ast.walk(node)):
            continue                                     # changed, it might never end
        texts[part.function.__code__.co_filename] = text
        atoms, source = _atoms(evidence, part, node), Source(text)
        if part.is_forward:
            kept += [(part, change) for change in changes_of_what_is_kept(source, node, atoms)]
        else:
            found += [(part, change) for change in changes(source, node, atoms)]
    found.sort(key=lambda one: one[1].line not in lines)     # a stable sort: the likeliest stay first
    return found[:SOON] + kept + found[SOON:]


def _measured(evidence):
    """Measure the slopes of tensors whose gradients could not be compared. False if that costs too much."""
    missing = {name: x for name, x in evidence.subject.tensors.items() if name not in evidence.slopes}
    if any(x.size > AFFORDABLE for x in missing.values()):
        return False
    if missing:
        evidence.back_to_the_point()
        phi = Phi(evidence.subject, evidence.dy, evidence.patterns)
        for name, x in missing.items():
            evidence.measure(name, phi, np.arange(x.size))
    return True


# Running a changed function -------------------------------------------------------------------------------------------


def _makes_right(evidence, part, code):
    """True if y stays as it is, and all gradients agree with the measured slopes, when part.runs runs this code."""
    subject = evidence.subject
    evidence.back_to_the_point(copies=True)
    for p in subject.params.values():
        p.grad = None
    dy = evidence.another_dy
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if part.runs is function_of(evidence.backward) and not isinstance(subject.f, Brought):
                gradients = subject.named(rebuilt(function_of(subject.forward()[1]), code)(dy))
            else:
                with running_as(part.runs, code):
                    y, backward = subject.forward()
                    if not np.array_equal(y, evidence.y):
                        return False
                    gradients = subject.named(backward(dy))
        return all(evidence.agrees(name, gradients.get(name)) for name in evidence.slopes)
    except FAILURES:                                    # most changes make no sense
        return False
    finally:
        evidence.back_to_the_point()


# What the arrays are ------------------------------------------------------------------------------------------------


def _atoms(evidence, part, node):
    """{text: value} of the names, attributes and indices in a function that stand for arrays, numbers, functions.

    Their values are those at the function's end. Of numbers that are equal, and the same wherever the function was
    run, none: one would be right by chance.
    """
    found = _values(evidence, part, node)
    arrays = {text: x for text, x in found.items() if isinstance(x, NUMBERS) and not isinstance(x, bool)}
    numbers = {text: (float(x),) for text, x in arrays.items() if not np.ndim(x)}
    if len(set(numbers.values())) < len(numbers):
        for other in elsewhere(evidence):
            there = _values(other, part, node)
            numbers = {text: (*known, _number(there.get(text))) for text, known in numbers.items()}
        evidence.back_to_the_point()
    how_many = Counter(numbers.values())
    by_chance = {text for text, known in numbers.items() if how_many[known] > 1 and len(set(known)) == 1}
    arrays = {text: x for text, x in arrays.items() if text not in by_chance}
    functions = {text: g for text, g in found.items() if inspect.isfunction(g) and is_theirs(g)}
    masks_first = sorted(arrays.items(), key=lambda item: (np.asarray(item[1]).dtype != bool, item[0]))
    return dict(masks_first) | dict(sorted(functions.items()))


def _number(x):
    return float(x) if isinstance(x, NUMBERS) and not np.ndim(x) else None


def _values(evidence, part, node):
    """{text: value} of all that has a value at the end of a function, at the evidence's point"""
    evidence.back_to_the_point()
    values = _locals_at_the_end(evidence, part.runs.__code__) | closure_of(part.function)
    values |= _locals_at_the_end(evidence, part.function.__code__)
    texts = [ast.unparse(one) for one in ast.walk(node) if is_atom(one)] + list(values)
    found = {}
    for text in texts:
        try:
            found[text] = eval(text, part.function.__globals__, values)      # a name, attributes, constant indices
        except FAILURES:
            continue
    for name, value in values.items():                   # what else could stand there: self.W for self.b, cache["x"]
        if isinstance(value, dict):
            found |= {f"{name}[{key!r}]".replace("'", '"'): x for key, x in value.items() if isinstance(key, str)}
        elif name == "self":
            found |= {f"self.{own}": x for own, x in vars(value).items()}
    return found


def _locals_at_the_end(evidence, code):
    """{name: value} of what is local to this code when it returns, in one run, forward and back."""
    found = {}

    def see(frame, event):
        if event in ("return", "exception"):
            found.update(frame.f_locals)

    with suppress(*FAILURES), following(code, see):
        _, backward = evidence.subject.forward()
        backward(evidence.another_dy)
    return found

"""One change that makes a wrong backward right, searched for among small changes of its source.

This is the self-test the other way round: each change is made, run, and its gradients are compared with the measured
slopes. A change is shown only if all gradients then agree: at both points, and with arrays of other sizes.
"""

import ast
import inspect
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.elsewhere import apart, elsewhere, larger_still, other_draws, with_masks_that_scale
from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, CLOSE, Evidence
from mini_tf.gradcheck.measuring.slopes import Phi
from mini_tf.gradcheck.planting.editing import recompiled, source_of
from mini_tf.gradcheck.reasons.atoms import values_of
from mini_tf.gradcheck.reasons.candidates import candidates
from mini_tf.gradcheck.reasons.changes import AS_IN_THE_FORWARD, RARE, UNDONE
from mini_tf.gradcheck.reasons.inside import Inner, same, states_with
from mini_tf.gradcheck.reasons.kinds.formulas import SIZE
from mini_tf.gradcheck.reasons.running import gradients_with, made_right
from mini_tf.gradcheck.reasons.theirs import following
from mini_tf.trace import place

import numpy as np

NONE = MappingProxyType({})
SECONDS = 8.0            # of processor time, for the whole search
MANY = 4                 # changes together
TRIED_AGAIN = 20         # changes that make some gradients right, but not all
ANOTHER = 1.0            # for another repair, where the first takes something away
LEAST = 4.0              # and for trying changes, however long it took to find out which to try
TAKES_AWAY = re.compile(r"a power too many|sqrt is too much")
DIVIDES = re.compile(r"a factor is missing, 1/[^\W\d]\w*$")
SYMMETRIC = re.compile(r"is missing, \w+\.T$")          # dD + dD.T
CENTRES = re.compile(r"mean is not taken away|as a mean ")           # twice is as good as once
MINUS = re.compile(r"a term is missing, −\w+$")         # − dc, of dc = d * (1 − z), where d * z has lost its z
OF_AXIS = re.compile(r"a factor is missing, \S*shape\[")              # where another line divides by another size
# A change of these kinds may make up for a mistake in another line: a second one is looked for, too.
KINDS = TAKES_AWAY, DIVIDES, CENTRES, SYMMETRIC, MINUS, OF_AXIS
MADE_UP_FOR = re.compile("|".join([*(kind.pattern for kind in KINDS), " belongs where "]))
CHANCY = re.compile(f"{RARE.pattern}|{CENTRES.pattern}")              # too general to be shown where others stay wrong
ADDS = re.compile(r"by the square")                      # or by the square root
FOR_A_NUMBER = re.compile(r"(\w+) belongs where \d")
FACTOR = re.compile(r"a factor is missing, ([^\W\d]\w*)")
WORD = re.compile(r"[A-Za-z_]\w*")
ROWS = re.compile(r"np\.arange\(len\([\w.]+\)\)")       # each row's own, however many there are
OPTION = re.compile(r"pad|strid|step|dilat|lag|shift|offset", re.I)      # what is no size
ONE_MORE = re.compile(r"^(\S+) \+ 1 belongs where \1 is$")
OF_NUMBERS = re.compile(r"^([^\W\d][\w.]*) belongs where ([^\W\d][\w.]*) is$")
SIMPLE = 2, 3, 4, 5, 10, 100         # ratios of two constants, by chance
NUMBERS_SOMEWHERE = re.compile(           # self.mark, axes[1]
    r"(?<![\w.])[A-Za-z_]\w*(?:\.(?!size\b)[A-Za-z_]\w*|\[\d\])(?![\w.(\[])"
)
ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*")
KEY = re.compile(r"""\["(\w+)"\]""")


class Found(NamedTuple):
    """A repair, the names of the gradients that it makes right, another repair in another line; several for all.

    A repair is [place, what is wrong, the line as it is, the line as it would be right], or [] if there is none.
    """

    repair: list[str]
    made_right: list[str]
    another: list[str]
    together: list[list[str]]


def find_repair(
    evidence: Evidence, lines: Sequence[Collection[int]] = (), inside: Mapping[str, Inner] = NONE,
    missing: Collection[str] = (),
) -> Found:  # fmt: skip
    """What makes a wrong backward right.

    lines     [numbers of suspected lines, of less suspected ones, …], in the order in which they are tried
    inside    the backward's variables (see `measured_inside`): a change that makes another value of one that is right
              makes up for a mistake elsewhere
    missing   those that are right, and do not come back through the variable of the forward that they belong to
    Where no single change makes all gradients right: several that do it together, or the one that makes most of them
    right. Another one is looked for where the first may make up for what is wrong in another line: if it leaves a
    gradient wrong inside (one that does not is better), or is of such a kind (MADE_UP_FOR). Every
    change runs in a fresh forward, on copies, because many changes write where they should not.
    """
    began = time.process_time()
    if not _measured(evidence) or time.process_time() >= began + SECONDS:
        return Found([], [], [], [])
    elsewhere(evidence)                                  # it may take long, and is not what the search is timed for
    texts, in_part = {}, []                              # file -> its text; changes that make some gradients right
    to_try = candidates(evidence, lines, texts, missing)
    deadline = max(began + SECONDS, time.process_time() + LEAST)
    wrong = [name for name in evidence.slopes if name not in evidence.right]
    first, first_part, mended, told, another = None, None, False, [], []
    for part, change in to_try:
        if time.process_time() > deadline:
            break
        if first is not None and mended and not _is_another(first, change, part is first_part):
            continue
        try:
            with warnings.catch_warnings():              # of what Python thinks of the change
                warnings.simplefilter("ignore")
                code = recompiled(part.runs, change.text, texts[part.runs.__code__.co_filename])
        except (SyntaxError, StopIteration):
            continue
        right = made_right(evidence, part, code)
        if len(right) < len(evidence.slopes):
            more = right > set(evidence.right) and bool(evidence.gradients)          # than came back
            suspected = not lines or change.line in lines[-1]
            few = 2 * len(right - {*evidence.right}) < len(wrong)        # of a rule of a tape, which serves them all
            by_chance = CHANCY.search(change.name) or (part.is_handed and few)
            if more and suspected and not by_chance and not _of_what_is_returned(change):
                in_part.append((part, change, code, right - set(evidence.right)))
            continue
        if _is_right_everywhere(evidence, part, change, code, right):
            states = states_with(evidence, part, code)
            if not _leaves(states, inside):
                continue
            mends = _mends(states, inside, evidence) and _leaves_dy(evidence, part, code) and all(
                made_right(other, part, code) >= {*other.slopes} for other in with_masks_that_scale(evidence))
            if first is None:
                first, first_part, mended, told = change, part, mends, _told(evidence, part, change)
                makes_up = MADE_UP_FOR.search(told[1])
                if mends and not makes_up:
                    return Found(told, wrong, [], [])
                deadline = time.process_time() + ANOTHER
            elif mends and not mended and not CENTRES.search(change.name):
                return Found(_told(evidence, part, change), wrong, [], [])
            elif makes_up and not another and _is_another(first, change, part is first_part):
                another = _told(evidence, part, change)
                if mended:
                    break
    if first is not None and another and OF_AXIS.search(first.name):     # the other one is a mistake people make
        return Found(another, wrong, told, [])
    if first is not None:
        return Found(told, wrong, another, [])
    in_part.sort(key=lambda one: (-len(one[3]), one[1].before.startswith("return")))     # dx = dy * w, where dx is made
    certain = any(_other_sizes(evidence, other) for other in elsewhere(evidence)) if in_part else False
    together = _together(evidence, in_part, texts, inside) if certain else []
    for part, change, code, right in in_part[:TRIED_AGAIN] if certain and not together else ():
        if not _is_right_everywhere(evidence, part, change, code, right):
            continue
        if _leaves(states_with(evidence, part, code), inside) and _does_no_harm(evidence, part, code):
            return Found(_told(evidence, part, change), [name for name in wrong if name in right], [], [])
    return Found([], [], [], together)


def _does_no_harm(evidence, part, code):
    """True if no gradient that stays wrong is further from the slopes with a change than without it"""
    changed = gradients_with(evidence, part, code) or {}

    def distance(gradients, name):
        g, slopes = gradients.get(name), evidence.slopes[name]
        return np.abs(g - slopes).sum() if np.shape(g) == slopes.shape else np.inf

    return all(distance(changed, name) <= 1.001 * distance(evidence.gradients, name) for name in evidence.wrong)


def _together(evidence, in_part, texts, inside):
    """[repair] of changes in one function, each of which makes other gradients right, and together all; or []

    Those of one kind are tried first: three sums, each of which is set where it should add up.
    """
    kinds = [kind for kind, count in Counter(change.name for _, change, *_ in in_part).items() if count > 1]
    for kind in [*kinds, None]:
        part, chosen, covered = None, [], set()
        for other, change, _, right in in_part:
            beside = all(change.end <= one.start or one.end <= change.start for one in chosen)
            if kind in (None, change.name) and part in (None, other) and right - covered and beside:
                part, covered = other, covered | right
                chosen.append(change)
        for count in range(2, min(len(chosen), MANY) + 1):
            first = sorted(chosen[:count], key=lambda change: change.start)
            code, changed = _with_all(part, first, texts[part.runs.__code__.co_filename])
            right = code and made_right(evidence, part, code) >= {*evidence.slopes}
            right = right and all(_is_right_everywhere(evidence, part, one, code, evidence.slopes) for one in first)
            if right and _leaves(states_with(evidence, part, code), inside):
                return _told_together([_told(evidence, part, one) for one in first], first, changed)
    return []


def _with_all(part, changes, text):
    """(the code of a part with changes of its file's text, which come in their order, that text); None for no code"""
    ends = [(change.end, change.new) for change in changes]
    starts = [change.start for change in changes[1:]] + [len(text)]
    changed = text[: changes[0].start] + "".join(new + text[end:start] for (end, new), start in zip(ends, starts))
    try:
        return recompiled(part.runs, changed, text), changed
    except (SyntaxError, StopIteration):
        return None, changed


def _told_together(told, chosen, changed):
    """The repairs, those in one line as one. changed: the text with all of them"""
    in_line, lines = {}, changed.split("\n")
    for one, change in zip(told, chosen):
        in_line.setdefault(change.line, []).append(one)
    return [some[0] if len(some) == 1 else
            [some[0][0], "; ".join(dict.fromkeys(one[1] for one in some)), some[0][2], lines[line - 1].strip()]
            for line, some in in_line.items()]           # fmt: skip


def _of_what_is_returned(change):
    """True for a factor or a term of a bare name in `return dx, dW`: the mistake is where dW is made."""
    return change.before.startswith("return") and change.old.isidentifier() and change.name.startswith("a ")


def _is_another(first, change, there):
    """True for a change in another line that may be what was meant where `first` makes all right, too.

    there: whether it is in the same function
    """
    if DIVIDES.search(first.name):                       # it may make up for what the forward kept in place of another
        like_it = " belongs where " in change.name or change.name == first.name
    elif TAKES_AWAY.search(_words(first)):
        like_it = ADDS.search(change.name)
    elif MINUS.search(first.name):
        target, other = (one.before.partition("=")[0] for one in (first, change))
        like_it = change.name.startswith("a factor is missing") and target == other
    elif OF_AXIS.search(first.name):
        like_it = " belongs where " in change.name and SIZE.search(change.before)
    elif SYMMETRIC.search(first.name):
        like_it = change.name.startswith("a term is missing")
    elif CENTRES.search(first.name):
        like_it = not CENTRES.search(change.name)
    else:                                                # dstd = (dx * x).sum(), where the power of std is wrong
        twice = change.name.partition(" belongs where ")[0] in WORD.findall(change.before)       # keep h, and h again
        like_it = change.name in (first.name, "a number is wrong" if there else "") and not twice
    return change.line != first.line and bool(like_it) and not _of_what_is_returned(change)


def _words(change):
    return UNDONE.get(change.name, change.name)


def _told(evidence, part, change):
    where = place(part.function.__code__.co_filename, change.line)
    number, alike, factor = _number_of(change), [], FACTOR.fullmatch(change.name)
    if factor and factor[1] in evidence.options:         # a constant of the file: k for 4, where k has always been 4
        known = {other.options.get(factor[1]) for other in [evidence, *elsewhere(evidence)]}
        if len(known) == 1:
            number, alike = known.pop(), [factor[1]]
    if number is None and ONE_MORE.search(change.name):                  # S + 1, where a margin is 1
        number = 1
    if number is not None and not alike:                 # a 2 that may be D, which has always been 2
        _, node = source_of(part.function)
        others = [evidence, *elsewhere(evidence), *apart(evidence)]
        others = [other for other in others if number > 1 or other.option is None]       # where a margin is not 1
        points = [values_of(other, part, node) for other in others]
        evidence.back_to_the_point()
        set_here = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        kinds = (int, float) if number == 1 else (int,)
        known = {name: x for name, x in points[0].items() if ATTRIBUTE.fullmatch(name) and type(x) in kinds}
        tried = {name for name in evidence.options if "." not in name and number > 1}    # not self.dilation, if all …
        alike = [name for name in sorted(known.keys() - set_here - tried)
                 if all(values.get(name) == number for values in points)]                # fmt: skip
    other = f" ({number}, or {' or '.join(alike)}, which is {number} wherever it was tried)" if alike else ""
    after, text = change.after, source_of(part.function)[0]
    for key in KEY.findall(after):                       # s['length'], if the file has no "…" there
        after = after if f'["{key}"]' in text else after.replace(f'["{key}"]', f"['{key}']")
    return [where, _words(change) + other, change.before, after]


def _number_of(change):
    """The whole number above 1 that a change puts there, or None"""
    if change.name not in ("a number is wrong", "a factor is missing, 2"):
        return None
    new = Counter(re.findall(r"\b\d+\b", change.after)) - Counter(re.findall(r"\b\d+\b", change.before))
    return next((int(number) for number in new if int(number) > 1), None)


def _is_right_everywhere(evidence, part, change, code, names):
    """True if the change makes these gradients right with other arrays, sizes and options, too, and no others wrong."""
    if not AS_IN_THE_FORWARD.match(change.name) and _stands_by_chance(evidence, part, change):
        return False
    points = (other for find in (elsewhere, apart, larger_still, other_draws) for other in find(evidence))
    # A kernel grown to 5 × 5, of which f reads 3 × 3, has a wrong gradient there, whatever else is changed.
    return all(made_right(other, part, code) >=
               ({*names, *other.right} & other.slopes.keys()) - ({*evidence.right} - {*other.right})
               for other in points)  # fmt: skip


def _leaves(states, inside):
    """True if the variables of the backward that are right have the same values in the states with a change."""
    return all(any(same(x, y) for _, x in states[name] for _, y in inner.right)
               for name, inner in inside.items() if inner.right and name in states)  # fmt: skip


def _mends(states, inside, evidence):
    """True if a change makes right what is wrong inside: otherwise it may make up for it in a later line."""
    wrong = {name: inner for name, inner in inside.items() if not inner.right and inner.of not in evidence.slopes}
    return all(any(inner.fits(x) for _, x in states[name]) for name, inner in wrong.items() if name in states)


def _leaves_dy(evidence, part, code):
    """True unless the backward writes into dy with a change: g = dy, g += e may spoil what other lines read of dy."""
    return evidence.dy_stays or gradients_with(evidence, part, code, dy_must_stay=True) is not None


def _stands_by_chance(evidence, part, change):
    """True if a size in the changed text, such as B or x.shape[0], has been the same number wherever f was run.

    So it is of a number that is always 1, −1 or 0, such as the sign of a determinant.
    """
    text = ROWS.sub("", _changed_text(change))
    _, node = source_of(part.function)
    if (both := OF_NUMBERS.match(change.name)) and _are_in_proportion(evidence, part, node, *both.groups()):
        return True
    counters = {one.id for loop in ast.walk(node) if isinstance(loop, (ast.For, ast.comprehension))
                for one in ast.walk(loop.target) if isinstance(one, ast.Name)}  # fmt: skip
    after = ROWS.sub("", change.after)
    more = Counter(WORD.findall(after)) - Counter(WORD.findall(change.before))           # than the line had
    option = FOR_A_NUMBER.match(change.name)             # k for 2, where k has never been another number
    if option and option[1] in evidence.options:
        known = evidence.options[option[1]]
        return all(other.options.get(option[1]) == known for other in elsewhere(evidence))
    whole = {size for size in SIZE.findall(text) if not counters & {*WORD.findall(size)}}        # not len(part)
    whole |= {one for one in NUMBERS_SOMEWHERE.findall(after) if one not in change.before}
    sizes = ({*WORD.findall(text)} & more.keys() | whole) - {*evidence.options} - counters
    values = {name: x for name, x in values_of(evidence, part, node, sizes).items() if name in sizes}
    here = {name: x for name, x in values.items() if type(x) is int or (isinstance(x, float) and x in (-1, 0, 1))}
    there = [values_of(other, part, node, sizes) for other in elsewhere(evidence) + apart(evidence)] if here else []
    evidence.back_to_the_point()
    fixed = {size: x for size, x in here.items() if all(values.get(size, x) == x for values in there)}
    fixed = {size: x for size, x in fixed.items() if not _changes_between_calls(evidence, part, size)}
    return not all(_is_the_only(x, size, evidence, part, node, counters) for size, x in fixed.items())


def _are_in_proportion(evidence, part, node, one, other):
    """True for two constants that have been the same wherever f was run, one twice the other: l1 = 0.1 and l2 = 0.05"""
    points = [values_of(at, part, node) for at in [evidence, *elsewhere(evidence), *apart(evidence)]]
    evidence.back_to_the_point()
    pairs = {(values.get(one), values.get(other)) for values in points
             if isinstance(values.get(one), (int, float)) and isinstance(values.get(other), (int, float))}  # fmt: skip
    if len(pairs) != 1:
        return False
    x, y = pairs.pop()
    return bool(x and y) and any(abs(ratio / k - 1) < CLOSE for ratio in (x / y, y / x) for k in SIMPLE)


def _changes_between_calls(evidence, part, name):
    """True for a number that is not the same in all calls of a function: C, of the features of several layers"""
    seen = set()

    def see(frame, _):
        x = frame.f_locals.get(name)
        seen.update([x] if type(x) is int else [])

    with suppress(*FAILURES), following(part.function.__code__, see, lines=False):
        _, backward = evidence.subject.forward()
        backward(evidence.another_dy)
    evidence.back_to_the_point()
    return len(seen) > 1


def _is_the_only(number, name, evidence, part, node, counters):
    """True for a number that never changes, and that nothing else has here but counters of loops: m, the size of data
    where f is a function of theta alone; pad, where f is lambda x: conv(x, pad=1)
    """
    sizes = {size for x in evidence.everything.values() for size in np.shape(x)}
    known = values_of(evidence, part, node).items()
    others = [x for other, x in known if other != name and other.isidentifier() and other not in counters]
    evidence.back_to_the_point()
    alone = number not in sizes and number not in [x for x in others if isinstance(x, (int, float))]
    is_option = number > 0 and (name in inspect.signature(part.runs).parameters or OPTION.search(name))
    return (number > 2 or is_option) and name.isidentifier() and alone


def _changed_text(change):
    """What differs from the line as it was: of "/ np.sqrt(D)", where "/ D" was, "np.sqrt(D"."""
    before, after = change.before, change.after
    first = len(os.path.commonprefix([before, after]))
    last = len(os.path.commonprefix([before[first:][::-1], after[first:][::-1]]))
    while first and after[first - 1].isidentifier():     # whole words
        first -= 1
    return after[first : len(after) - last]


def _other_sizes(evidence, other):
    """True if every size of an axis is another one there."""
    pairs = [(x, other.everything[name]) for name, x in evidence.everything.items() if isinstance(x, np.ndarray)]
    return all(n != m for x, y in pairs for n, m in zip(x.shape, y.shape) if n > 1)


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

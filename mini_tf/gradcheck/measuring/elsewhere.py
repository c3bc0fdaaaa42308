"""The same function at other points: other numbers, other sizes, other options.

What explains a wrong gradient at one point may do so by chance: 8 is T, and B·T, and the number of words that count. So
every explanation is tried again at the other of the two points, with arrays of other sizes, and with another stride=2.
"""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import AFFORDABLE, FEW, Evidence
from mini_tf.gradcheck.measuring.points import random_dy
from mini_tf.gradcheck.measuring.slopes import Phi
from mini_tf.gradcheck.measuring.subject import Subject, is_float, is_zeros_and_ones, kind_of
from mini_tf.types import Array

import numpy as np

ENTRIES = 60             # measured of each tensor; all, if its gradient is wrong and that is affordable
LARGEST = 20_000         # entries in all; a larger subject is not made larger still
GROWTH = 1, 2            # of sizes, in turns: H + 1 = W − 1 must not be true of larger arrays, too
DRAWS = 6                # of other numbers, for a change that seems right everywhere else
OF_OTHER_SIGNS = 2       # and so many more
OPTIONS = 2              # of each kind, whole numbers such as stride=2 and others such as margin=0.5, are changed
AXIS = re.compile(r"axis|dim")
TINY = 1e-3              # options below that, such as eps, change too little
SCALE = 1.5              # of a mask


def elsewhere(evidence: Evidence, seed: int = 0) -> list[Evidence]:
    """[Evidence at the other point, if there is one, with larger arrays, with other options, if f takes them, and with
    what other calls of a step were given]
    """
    if evidence.others is None:
        rng, subject = np.random.default_rng((seed, 2)), evidence.subject
        try:
            evidence.back_to_the_point()
            points = [(evidence.other_point, None), (larger(subject, rng), None), *with_other_options(subject, rng)]
            points += [(arrays, None) for arrays in evidence.siblings]
            found = (_evidence_at(evidence, arrays, option, rng) for arrays, option in points if arrays)
            evidence.others = [other for other in found if other is not None]
        finally:
            evidence.back_to_the_point()
    return evidence.others


def other_draws(evidence: Evidence, seed: int = 0) -> list[Evidence]:
    """[Evidence at points of the same sizes]: arrays stretched, their rows in another order, so that others meet.

    Where a gradient is wrong in a few entries only, a wrong explanation may fit all of them by chance.
    """
    if evidence.draws is None:
        rng, subject = np.random.default_rng((seed, 3)), evidence.subject
        evidence.back_to_the_point()
        given, found = arrays_of(subject), []
        if len(subject.tensors) <= FEW and sum(x.size for x in given.values()) <= AFFORDABLE:
            points = [_grown(given, {}, rng, factors=(0.8, 1.6)) for _ in range(DRAWS)]
            others = [_with_other_signs(arrays, rng) for arrays in points[:OF_OTHER_SIGNS]]
            others += [_with_other_ids(arrays, subject, rng) for arrays in points[:OF_OTHER_SIGNS] if subject.ids]
            others += [_with_other_masks(arrays, subject, rng) for arrays in points[:OF_OTHER_SIGNS] if subject.masks]
            found = [_evidence_at(evidence, arrays, evidence.option, rng) for arrays in points + others]
        evidence.draws = [other for other in found if other is not None and other.is_finite]         # log(−x) is not
        evidence.back_to_the_point()
    return evidence.draws


def apart(evidence: Evidence, seed: int = 0) -> list[Evidence]:
    """[Evidence where axes of the same size have different ones]; [] where right gradients are then wrong."""
    if evidence.apart is None:
        rng = np.random.default_rng((seed, 4))
        evidence.back_to_the_point()
        evidence.apart = _where_right_ones_stay_right(evidence, of_different_sizes(evidence.subject, rng), rng)
    return evidence.apart


def larger_still(evidence: Evidence, seed: int = 0) -> list[Evidence]:
    """[Evidence with larger arrays, whose sizes grow by other steps]; [] where right gradients are then wrong.

    3 is half of 6, and 4 is half of 8, but 5 is not half of 12.
    """
    if evidence.larger_still is None:
        rng = np.random.default_rng((seed, 5))
        evidence.back_to_the_point()
        arrays = larger(evidence.subject, rng, GROWTH[::-1])
        evidence.larger_still = _where_right_ones_stay_right(evidence, arrays, rng)
    return evidence.larger_still


def with_masks_that_scale(evidence: Evidence) -> list[Evidence]:
    """[Evidence with 1.5 for 1 in masks of floats, as dropout has it]; [] if there is no mask, or right gradients fail.

    With 0 and 1 it cannot be told whether a backward multiplies by the mask, or only asks where it is 0.
    """
    if evidence.scaled is None:
        evidence.back_to_the_point()
        arrays = arrays_of(evidence.subject)
        masks = {name: SCALE * x for name, x in arrays.items() if is_float(x) and x.ndim and is_zeros_and_ones(x)}
        arrays = arrays | masks if masks else {}
        evidence.scaled = _where_right_ones_stay_right(evidence, arrays, np.random.default_rng(0))
    return evidence.scaled


def larger(subject: Subject, rng: np.random.Generator, growth: Sequence[int] = GROWTH) -> dict[str, Array]:
    """{name: array} with as many sizes changed as f accepts, one after the other; {} if it accepts none.

    All axes of one size grow together: they may have to be equal. Every size becomes another one. A size with which the
    backward fails, though it runs at the given one, stays: it may be the number of things that f spells out.
    growth: by how much, in turns
    """
    given = arrays_of(subject)
    sizes = sorted({size for x in given.values() for size in x.shape if size > 1})
    if not given or sum(x.size for x in given.values()) > LARGEST:
        return {}
    grown, runs = {}, _runs_back(subject)
    for size, more_by in zip(sizes, itertools.cycle(growth)):
        if size in grown:                                # with a smaller one
            continue
        multiples = [other for other in sizes if other > size and other % size == 0]         # 3·D, of q, k, v in one
        alone_or_not = [[], multiples] if multiples else [[]]
        for more, others in itertools.product((size + more_by, size + 1, 2 * size), alone_or_not):
            change = {size: more} | {other: other // size * more for other in others}
            if {*change.values()} & {*grown.values()}:
                continue
            arrays = _grown(given, grown | change, rng)
            accepted = _accepted(subject, arrays, runs)
            if accepted and not _is_unread(subject, given, arrays, _of_another_shape(subject)):
                grown |= change
                break
    batch_of_one = {(name, 0): GROWTH[1] for name, x in given.items() if x.ndim > 1 and len(x) == 1}
    if batch_of_one:                                     # what is right for one example may be wrong for two
        arrays = _grown(given, grown | batch_of_one, rng)
        if _accepted(subject, arrays, runs) and not _is_unread(subject, given, arrays, subject.tensors):
            grown |= batch_of_one
    arrays = _grown(given, grown, rng) if grown else {}
    _put(subject, given)
    return arrays


def of_different_sizes(subject: Subject, rng: np.random.Generator) -> dict[str, Array]:
    """{name: array} in which axes of the same size have different ones, where f accepts that; {} if it does nowhere.

    With 2 rows and 2 channels, nobody knows by which of them one should divide.
    """
    given = arrays_of(subject)
    places = [(name, axis) for name, x in given.items() for axis, size in enumerate(x.shape) if size > 1]
    sizes = Counter(given[name].shape[axis] for name, axis in places)
    if sum(x.size for x in given.values()) > LARGEST:
        return {}
    grown, runs = {}, _runs_back(subject)
    for name, axis in places:
        if sizes[given[name].shape[axis]] > 1:
            largest = max([*sizes, *grown.values()])
            for more in (largest + 2, largest + 1):      # by strides of 2 one more may be as good as none
                arrays = _grown(given, grown | {(name, axis): more}, rng)
                accepted = _accepted(subject, arrays, runs)
                accepted = accepted and not _is_known_by_another(subject, name, axis, given[name])
                if accepted and not _is_unread(subject, given, arrays, subject.tensors):
                    grown[name, axis] = more
                    break
    arrays = _grown(given, grown, rng) if grown else {}
    _put(subject, given)
    return arrays


def with_other_options(
    subject: Subject, rng: np.random.Generator
) -> list[tuple[dict[str, Array], tuple[str, float]]]:
    """[(arrays, (name, number))]: another number for some of those that f is given or takes by default.

    As a pooling of every 3 entries for 2, whose axes that 2 divides become half as long again; a margin of 0.65
    for 0.5; a padding of (2, 4) for (1, 2). Where a gradient then has another shape than its tensor, the number does
    not fit the arrays: the first 4 of 5 columns are no halves.
    """
    given, found = arrays_of(subject), []
    if sum(x.size for x in given.values()) > LARGEST:
        return []
    numbers = subject.options().items()
    whole = [(name, number) for name, number in numbers if type(number) is int and number > 0 and not AXIS.search(name)]
    others = [(name, number) for name, number in numbers if type(number) is float and abs(number) > TINY]
    runs, misfits = _runs_back(subject), {*_of_another_shape(subject)}
    tuples = [*subject.tuples().items()]
    for name, number in whole[:OPTIONS] + others[:OPTIONS] + tuples[: 2 * OPTIONS]:
        another, sizes = _another(number), {size for x in given.values() for size in x.shape if size}
        whole_parts = {size for size in sizes if type(number) is int and size % number == 0}
        grown = {size: size // number * another for size in whole_parts}
        subject.set_option((name, another))
        for change in ({}, grown):
            arrays = _grown(given, change, rng)
            accepted = _accepted(subject, arrays, runs) and (change or _is_an_option(subject))
            if accepted and set(_of_another_shape(subject)) <= misfits:
                found.append((arrays, (name, another)))
                break
        subject.set_option(None)
    _put(subject, given)
    return found


def _is_an_option(subject):
    """False for a number that an object keeps, and that y does not depend on: the size of one of its arrays."""
    if not subject.option[0].startswith("self."):
        return True
    with np.errstate(all="ignore"):
        y, option = np.asarray(subject.forward()[0]), subject.option
        subject.set_option(None)
        before = np.asarray(subject.forward()[0])
        subject.set_option(option)
    return not np.array_equal(y, before)


def _another(number):
    """3 for 2, 0.65 for 0.5, (2, 4) for (1, 2)"""
    if isinstance(number, tuple):
        return tuple(k + i for i, k in enumerate(number, 1))
    return number + 1 if type(number) is int else 1.3 * number


def arrays_of(subject: Subject) -> dict[str, Array]:
    """{name: array} of what has a shape, with and without a gradient"""
    everything = dict(zip(subject.names, subject.inputs)) | subject.tensors
    return {name: x for name, x in everything.items() if _shaped(x)}


def _put(subject, arrays):
    for name, x in arrays.items():
        subject.replace(name, x)


def _grown(given, grown, rng, factors=(0.6, 1.0)):
    """The arrays with other sizes, {size or (name, axis): another}: each repeated until it has its shape.

    Floats: times random factors, so that all differ, and in another order of rows; but zeros and ones stay: they may be
    a mask. Orders stay orders.
    """
    arrays = {}
    for name, x in given.items():
        shape = [grown.get((name, axis), grown.get(size, size)) for axis, size in enumerate(x.shape)]
        wide = np.pad(x, [(0, more - size) for more, size in zip(shape, x.shape)], mode="wrap")
        wide = rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1) if _is_order(x) else wide
        arrays[name] = wide if _stays(x) else rng.permutation(wide * rng.uniform(*factors, wide.shape))
    return arrays


def _with_other_signs(arrays, rng):
    return {name: x if _stays(x) else x * rng.choice([-1, 1], x.shape) for name, x in arrays.items()}


def _stays(x):
    """True for whole numbers, and for zeros and ones, which may be a mask."""
    return not is_float(x) or is_zeros_and_ones(x)


def _with_other_ids(arrays, subject, rng):
    """Integers that are no masks are drawn anew from the numbers that they have; of an order, another order."""
    ids = {name: x for name, x in arrays.items() if name in subject.ids}
    return arrays | {name: rng.permuted(x, axis=-1) if _is_order(x) else rng.choice(x.reshape(-1), x.shape)
                     for name, x in ids.items()}  # fmt: skip


def _is_order(x):
    """True for integers of which each row has every index once, as np.argsort gives them."""
    return kind_of(x) in ("i", "u") and x.shape[-1] > 2 and bool((np.sort(x, axis=-1) == np.arange(x.shape[-1])).all())


def _with_other_masks(arrays, subject, rng):
    """Of what masks let through, some is hidden, too: then other numbers of words count. No row becomes empty."""
    changed = {}
    for name in subject.masks:
        mask = arrays[name]
        hidden = (mask * (rng.random(mask.shape) < 0.7)).astype(mask.dtype)
        changed[name] = np.where(hidden.any(-1, keepdims=True), hidden, mask)
    return arrays | changed


def _accepted(subject, arrays, runs_back):
    _put(subject, arrays)
    return subject.is_defined() and _runs_back(subject) >= runs_back


def _is_unread(subject, given, arrays, names):
    """True if f takes no notice of what was added to one of these tensors: of a third column of points (N, 2)."""
    y = np.asarray(subject.forward()[0])
    for name in filter(arrays.__contains__, names):      # a number has no axes
        x = arrays[name]
        for axis, (size, more) in enumerate(zip(given[name].shape, x.shape)):
            if more > size:
                other = x.copy()
                other[(slice(None),) * axis + (slice(size, None),)] += 1.0
                _put(subject, {name: other})
                unread = subject.is_defined() and np.array_equal(np.asarray(subject.forward()[0]), y)
                _put(subject, {name: x})
                if unread:
                    return True
    return False


def _is_known_by_another(subject, name, axis, before):
    """True if a tensor's gradient has this size where the tensor has grown: the backward knows its size by another."""
    x, gradient = subject.tensors.get(name), _came_back(subject).get(name)
    return x is not None and np.shape(gradient) == (*x.shape[:axis], before.shape[axis], *x.shape[axis + 1 :])


def _of_another_shape(subject):
    """The names of the tensors whose gradient has another shape than they have."""
    came = _came_back(subject)
    return [name for name, x in subject.tensors.items() if came and np.shape(came.get(name)) != x.shape]


def _runs_back(subject):
    """True if the backward gives gradients here, right or wrong."""
    return bool(_came_back(subject))


def _came_back(subject):
    """{name: gradient} for dy = 1 everywhere; {} if the backward fails."""
    try:
        with np.errstate(all="ignore"):
            y = np.asarray(subject.forward()[0])
            return subject.run(np.ones(y.shape) if y.ndim else 1.0)
    except FAILURES:
        return {}


def _where_right_ones_stay_right(evidence, arrays, rng):
    """[Evidence at those arrays]; [] if there are none, or if right gradients are wrong there"""
    found = _evidence_at(evidence, arrays, evidence.option, rng) if arrays else None
    evidence.back_to_the_point()
    return [found] if found is not None and {*evidence.right} <= {*found.right} else []


def _evidence_at(evidence, arrays, option, rng):
    """The Evidence at those arrays, some entries of each tensor measured; None if f does not run there."""
    subject = evidence.subject
    subject.set_option(option)
    _put(subject, arrays)
    try:
        with np.errstate(all="ignore"):
            y, backward = subject.forward()
            y = np.asarray(y)
            found = Evidence(subject, y, backward, random_dy(y, rng, backward), {}, evidence.patterns, option)
            found.others = []
            phi = Phi(subject, found.dy, evidence.patterns)
            for name, x in subject.tensors.items():
                all_of_them = name in evidence.wrong and found.can_afford(x.size)
                entries = rng.choice(x.size, x.size if all_of_them else min(x.size, ENTRIES), replace=False)
                found.measure(name, phi, entries)
            found.back_to_the_point()
            found.gradients = _gradients(subject, found.dy)
        found.wrong = [name for name in found.slopes if not found.agrees(name, found.gradients.get(name))]
        found.right = [name for name in found.slopes if name not in found.wrong]
        return found
    except FAILURES:
        return None


def _gradients(subject, dy):
    try:
        return {name: np.asarray(g) for name, g in subject.run(dy).items() if g is not None}
    except FAILURES:                                    # a wrong backward may fail with other sizes
        return {}


def _shaped(x):
    return kind_of(x) in ("f", "b", "i", "u") and np.ndim(x) > 0

"""Whether a step that is wrong by itself is right for all that the model can give it.

A covariance is symmetric, and a Cholesky factor has zeros above its diagonal: a backward may count on that, and then be
wrong for other matrices, which never come. So the model's tensors θ are moved along random directions v. The step's
inputs x move with them, and its gradient dx is right where the model reaches if

    d/dh Σ dy·y(θ + h·v) = Σ dx · d/dh x(θ + h·v)

The gradients of the model depend on nothing else of dx.
"""

import math

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.points import random_dy
from mini_tf.gradcheck.measuring.styles import in_contract
from mini_tf.gradcheck.measuring.subject import FORMS, Subject, argument_names
from mini_tf.gradcheck.reasons.alone import alone, gradients_of_inputs
from mini_tf.gradcheck.reasons.theirs import calls_in, y_with
from mini_tf.trace import Call

import numpy as np

DIRECTIONS = 4
ENOUGH = 3               # of them must agree: one may cross a kink
STEP = 1e-3
EXACT = 1e-9             # the least uncertainty, relative to the slopes
NOISE = 1e-11            # of Σ |dy·y|
FIT = 1e-4               # relative: of slopes that are multiples of one another


def is_right_where_reached(subject: Subject, calls: list[Call], call: Call, seed: int) -> bool:
    """True if the gradients of a call are right along random directions in which the subject's tensors can move.

    calls   those of a run of the subject, `call` among them
    """
    rng, number = np.random.default_rng((seed, 5)), calls.index(call)
    before = dict(subject.tensors)
    try:
        with np.errstate(all="ignore"):
            return _agreeing(subject, calls, number, before, rng) >= ENOUGH
    except FAILURES:
        return False
    finally:
        for name, x in before.items():
            subject.replace(name, x)


def right_in_the_model(subject: Subject, call: Call, seed: int) -> dict[str, bool]:
    """{name of an input: True if what a call gave back for it is the slope of φ in it, moved inside the model}

    {} where nothing can be said. If all are right, the step is right together with what comes after it: a softmax whose
    backward begins behind cross-entropy.
    """
    rng = np.random.default_rng((seed, 7))
    try:
        with np.errstate(all="ignore"):
            y, backward = subject.forward()
            dy = random_dy(y, rng, backward)
            there = next(other for other in calls_in(subject, dy) if other.number == call.number)
            given = {k: np.asarray(g) for k, g in gradients_of_inputs(there)}
            if not any(map(np.any, given.values())):
                return {}
            noise = NOISE * np.abs(dy * y).sum()
            names = argument_names(in_contract(call.f, call.inputs), len(call.inputs))
            return {names[k]: _is_slope(subject, there, k, g, dy, noise, rng) for k, g in given.items()}
    except (*FAILURES, StopIteration):
        return {}


def explained_by_factors(subject: Subject, seed: int) -> bool:
    """True if some gradient of the subject is wrong, and each of them is a multiple of the right one"""
    rng, factors, before = np.random.default_rng((seed, 8)), [], dict(subject.tensors)
    try:
        y, backward = subject.forward()
        dy = random_dy(y, rng, backward)
        gradients = subject.run(dy)
        for name, x in before.items():
            pairs = []
            for _ in range(3):
                direction = rng.standard_normal(x.shape)

                def phi(h, name=name, x=x, direction=direction):
                    subject.replace(name, x + h * direction)
                    return np.sum(dy * subject.forward()[0])

                pairs.append((_slope(phi)[0], (np.asarray(gradients[name]) * direction).sum()))
            subject.replace(name, x)
            slopes, yours = np.array(pairs).T
            if yours.any() and slopes.any():
                factor = yours @ slopes / (slopes @ slopes)
                factors.append(factor if np.abs(yours - factor * slopes).max() < FIT * np.abs(yours).max() else None)
    except FAILURES:
        return True
    finally:
        for name, x in before.items():
            subject.replace(name, x)
    return None not in factors and any(abs(factor - 1) > FIT for factor in factors)


def _is_slope(subject, call, k, gradient, dy, noise, rng):
    """True if the gradient of a call's input number k is right along one of two random directions."""
    if gradient.shape != np.shape(call.inputs[k]) and gradient.size > 1:
        return False                                     # () for (1,) is what somebody else puts right
    for _ in range(2):
        direction = rng.standard_normal(call.inputs[k].shape)

        def phi(h, direction=direction):
            def move(inputs):
                return (*inputs[:k], inputs[k] + h * direction, *inputs[k + 1 :])

            return np.sum(dy * y_with(subject, call.number, move))

        slope, uncertainty = _slope(phi)
        yours = (gradient.reshape(direction.shape) * direction).sum()
        if abs(slope - yours) <= uncertainty + EXACT * (abs(slope) + abs(yours)) + noise:
            return True
    return False


def forms_kept(subject: Subject, calls: list[Call], call: Call, seed: int) -> dict[str, str]:
    """{name: form} of a call's matrices that have this form wherever the subject's tensors move them: "symmetric"."""
    rng, number = np.random.default_rng((seed, 6)), calls.index(call)
    before, seen = dict(subject.tensors), []
    try:
        for size in (0, STEP, STEP):
            for name, x in before.items():
                subject.replace(name, x + size * rng.standard_normal(x.shape))
            seen.append(dict(_subject_of(calls_in(subject)[number]).tensors))
    except (*FAILURES, IndexError):
        return {}
    finally:
        for name, x in before.items():
            subject.replace(name, x)
    first, *others = seen
    matrices = [name for name, x in first.items() if x.ndim > 1 and x.shape[-1] == x.shape[-2] > 1]
    moved = [name for name in matrices if all(_differ(there.get(name), first[name]) for there in others)]
    return {name: form for name in moved for form, put in reversed(FORMS.items())
            if all(np.allclose(there[name], put(there[name]), rtol=1e-12, atol=1e-14) for there in seen)}  # fmt: skip


def _differ(x, y):
    return np.shape(x) == y.shape and not np.array_equal(x, y)


def _agreeing(subject, calls, number, before, rng):
    """In how many directions the gradients agree with what y does; 0 if one has another shape than its tensor."""
    step = _subject_of(calls[number])
    with step.in_float64():
        y = np.asarray(step.forward()[0])
        dy = random_dy(y, rng)
        gradients = {name: np.asarray(g) for name, g in step.run(dy).items() if g is not None}
        tensors = dict(step.tensors)
    if any(g.shape != tensors[name].shape for name, g in gradients.items()):
        return 0
    noise, agreeing = NOISE * np.abs(dy * y).sum(), 0

    def parts_at(h, direction):
        """[Σ dy·y, Σ dx·x of each input] after a move by h"""
        for name, x in before.items():
            subject.replace(name, x + h * direction[name])
        moved = calls_in(subject)
        if [call.name for call in moved] != [call.name for call in calls]:
            raise ValueError("other steps are taken there")
        there = _subject_of(moved[number])
        with there.in_float64():
            xs = dict(there.tensors)
            return np.array([np.sum(dy * there.forward()[0]), *((g * xs[name]).sum() for name, g in gradients.items())])

    for _ in range(DIRECTIONS):
        direction = {name: rng.standard_normal(x.shape) for name, x in before.items()}
        (of_y, *of_inputs), uncertainty = _slope(lambda h, direction=direction: parts_at(h, direction))
        size = abs(of_y) + np.abs(of_inputs).sum()
        agreeing += abs(of_y - math.fsum(of_inputs)) <= uncertainty.sum() + EXACT * size + noise
    return agreeing


def _slope(f):
    """(the derivative of f at 0, by Richardson's differences; its uncertainty, by which those of other steps differ)"""
    wide, middle, narrow = ((f(h) - f(-h)) / (2 * h) for h in (STEP, STEP / 2, STEP / 4))
    rough, fine = (4 * middle - wide) / 3, (4 * narrow - middle) / 3
    return fine, np.abs(fine - rough)


def _subject_of(call):
    return Subject(*alone(call))

"""The blanks of lab 10b: slopes by differences, slope and scatter of a wrong gradient, the cosine of two gradients."""

from math import sqrt

from _blanks import Blank, both, same
from mini_tf import ops

import numpy as np


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def by_backward(f, inputs, h=None):
    """The gradients of the sum of y, from the backward of an op that is right"""
    y, backward = f(*inputs)
    returned = backward(np.ones_like(y))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return np.concatenate([np.ravel(d) for d in returned if d is not None])


def cube(x):
    return x * x * x, None


def leaves_inputs_alone(function):
    """A check: the inputs are unchanged afterwards"""
    x = drawn(4)
    before = x.copy()
    function(ops.tanh, [x])
    if not np.array_equal(x, before):
        print("FAIL  measured_slopes: an input has changed afterwards; restore the old value of each entry")
        return False
    return True


def slope_and_scatter_by_solver(wrong, right):
    """Least squares by NumPy's solver"""
    (slope,), *_ = np.linalg.lstsq(right[:, None], wrong, rcond=None)
    return slope, sqrt(sum((wrong - slope * right) ** 2) / sum(wrong**2))


def cosine_one_by_one(a, b, part):
    dot = a_a = b_b = 0.0
    for name in a:
        if part in name:
            for one, other in zip(a[name].flat, b[name].flat):
                dot, a_a, b_b = dot + one * other, a_a + one**2, b_b + other**2
    return dot / sqrt(a_a * b_b)


A = {"attention.W": drawn(3, 4), "attention.b": drawn(4), "readout.W": 10 * drawn(4, 2, seed=1)}
B = {name: value + 0.5 * drawn(*value.shape, seed=7) for name, value in A.items()}
RIGHT = drawn(20)

BLANKS = [
    Blank("measured_slopes", [
        "Go through the inputs, and through the entries of each: x.flat[i] reads and writes entry i, whatever the "
        "shape.",
        "Skip inputs that are not of floating point numbers: x.dtype.kind is 'f' for those that are.",
        "Write the entry plus h into x, and take the sum of f(*inputs)[0]; the same with minus h. The slope is the "
        "difference divided by the distance of the two points.",
        "Put the old value back before the next entry: keep it in a variable, as adding and subtracting h does not "
        "give exactly the same number.",
    ], both(
        same(by_backward, (ops.tanh, [drawn(3, 2)]), (ops.linear, [drawn(2, 3), drawn(3, 2), drawn(2)]),
             (ops.embedding, [drawn(5, 2), np.array([3, 1, 3])]), (ops.softmax, [drawn(2, 4)]), within=1e-7),
        same(lambda f, inputs, h: 3 * inputs[0] ** 2 + h**2, (cube, [drawn(5)], 0.1)),     # the central formula's error
        leaves_inputs_alone,
    )),
    Blank("slope_and_scatter", [
        "The slope·right nearest to wrong is a projection: slope = (wrong·right)/(right·right), with dot products.",
        "What is left, wrong − slope·right, has a length: np.linalg.norm. Divide it by the length of wrong.",
    ], same(slope_and_scatter_by_solver, (drawn(20, seed=1), RIGHT), (3 * RIGHT + 0.1, RIGHT),
            (RIGHT - 0.3 * RIGHT**2, RIGHT))),
    Blank("cosine", [
        "The cosine of two rows is their dot product divided by both lengths. So first make one long row of each "
        "gradient.",
        "Take the names that have `part` in them, in the same order for both; ravel() makes a row of any array, and "
        "np.concatenate one of many.",
        "_common's cosines(vectors) gives each row's cosine with each: the entry [0, 1] is that of the first two.",
    ], same(cosine_one_by_one, (A, B, ""), (A, B, "attention"), (A, B, "readout"), (A, A, ".b"))),
]  # fmt: skip

"""The blanks of lab 10c: a measured matrix, the residual of least squares, the residuals of many candidates at once."""

from _blanks import Blank, both, same

import numpy as np


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


A, B = drawn(6, 4), drawn(3, 2, seed=1)


def affine(value):
    """(2, 2) → (3, 2)"""
    return (A @ value.ravel()).reshape(3, 2) + B


def matrix_known(gradient, value):
    return A


def leaves_value_alone(function):
    """A check: the value is unchanged afterwards"""
    value = drawn(2, 2)
    before = value.copy()
    function(affine, value)
    if not np.array_equal(value, before):
        print("FAIL  measured_matrix: the value has changed afterwards; add to a copy of it")
        return False
    return True


def residual_by_projection(J, missing):
    """From the part of the missing gradient that is orthogonal to all columns"""
    U, sizes, _ = np.linalg.svd(J, full_matrices=False)
    U = U[:, sizes > 1e-10 * sizes.max()]
    return np.linalg.norm(missing - U @ (U.T @ missing)) / np.linalg.norm(missing)


def residuals_one_by_one(J, goal, V):
    found = []
    for v in V:
        g = J @ v
        (c,), *_ = np.linalg.lstsq(g[:, None], goal, rcond=None)
        found.append((np.linalg.norm(c * g - goal) / np.linalg.norm(goal), c))
    return tuple(map(np.array, zip(*found)))


FLAT = np.outer(drawn(6), drawn(4, seed=2))              # of rank 1, as for an expression inside a sum

BLANKS = [
    Blank("measured_matrix", [
        "Column j says what one more in entry j of the value adds to the gradient. What is the gradient without it?",
        "np.eye(value.size) has a row for each entry, with a single 1; give it the shape of value, and add it.",
        "The gradient may have any shape: ravel() makes a row of it. np.stack(…, axis=1) puts such rows side by "
        "side, as columns.",
    ], both(same(matrix_known, (affine, drawn(2, 2)), (affine, np.zeros((2, 2)))), leaves_value_alone)),
    Blank("least_residual", [
        "np.linalg.lstsq(J, missing) gives first the step for which J·step is nearest to what is missing.",
        "J may have columns that are multiples of each other, as for an expression inside a sum: rcond=1e-10 makes "
        "lstsq ignore what is only rounding.",
        "What is left is missing − J·step; take its length, relative to that of missing.",
    ], same(residual_by_projection, (A, drawn(6, seed=3)), (FLAT, drawn(6, seed=3)), (A, A @ drawn(4, seed=4)))),
    Blank("residuals", [
        "A row v of V changes the gradient by J·v. V @ J.T has that for all rows at once, a row of G each.",
        "For one row g, the best number is c = g·goal / g·g: least squares with a single unknown.",
        "(G * G).sum(1) has g·g of all rows. To multiply row by row, c needs another axis: c[:, None].",
        "Return two arrays: the lengths of c·g − goal, relative to that of goal, and the numbers c.",
    ], same(residuals_one_by_one, (A, drawn(6, seed=5), drawn(7, 4, seed=6)),
            (A, A @ drawn(4, seed=7), drawn(1, 4, seed=7)))),
]  # fmt: skip

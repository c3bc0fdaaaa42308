"""Steps that are right for the matrices that come, symmetric or triangular ones, and wrong for all others."""

from functools import partial

from mini_tf.gradcheck import gradcheck

import numpy as np
import pytest


def R(shape, seed=0):
    return np.random.default_rng((8, seed)).standard_normal(shape)


def kernel(X, scale):
    d = X[:, None] - X[None, :]
    K = np.exp(-scale * (d**2).sum(axis=-1))

    def backward(dK):
        G = dK * K
        dd = -2 * scale * G[:, :, None] * d
        return dd.sum(axis=1) - dd.sum(axis=0), -(G * (d**2).sum(axis=-1)).sum()

    return K, backward


def evidence(K, y, sign=-1.0):
    """½·yᵀK⁻¹y + ½·log det K by a Cholesky factor, which reads the lower triangle: K is a covariance."""
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(K, y)

    def backward(dloss):
        return 0.5 * dloss * (np.linalg.inv(K) + sign * np.outer(alpha, alpha)), dloss * alpha

    return 0.5 * y @ alpha + np.log(np.diag(L)).sum(), backward


def gaussian_process(X, y, scale, sign=-1.0, forgotten=False):
    K, kernel_back = kernel(X, scale)
    loss, back = evidence(K + 0.3 * np.eye(len(X)), y, sign)

    def backward(dloss):
        dK, dy = back(dloss)
        dX, dscale = kernel_back(dK)
        return dX, dy, dscale / 2 if forgotten else dscale

    return loss, backward


POINTS = R((5, 2)), R(5, 1), np.array(0.7)


def test_a_right_step_is_not_accused_of_other_matrices():
    assert not gradcheck(evidence, np.eye(5) + 0.1 * R((5, 5), 2), R(5))             # for which dK is wrong
    assert gradcheck(gaussian_process, *POINTS)
    report = gradcheck(partial(gaussian_process, forgotten=True), *POINTS)
    assert not report
    assert report.wrong_step is None, report
    assert "Its 2 steps are right by themselves" in report.explain()


def test_a_wrong_step_is_checked_for_the_matrices_that_come():
    report = gradcheck(partial(gaussian_process, sign=1.0), *POINTS)
    step = report.wrong_step
    assert step.name == "evidence", report
    words = "\n".join(step.words)
    assert "PASS       dy" in words                      # by itself, it is wrong for matrices that are not symmetric
    assert "K is always symmetric here" in words


def halved(L, y):
    """L⁻¹y, whose backward gives back to the lower triangle only"""
    z = np.linalg.solve(L, y)

    def backward(dz):
        dy = np.linalg.solve(L.T, dz)
        return -np.tril(np.outer(dy, z)), dy

    return z, backward


def whitened(A, y, factor=1.0):
    z, back = halved(np.tril(A) + 3 * np.eye(len(A)), y)

    def backward(dz):
        dA, dy = back(dz)
        return dA, factor * dy

    return z, backward


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_triangular_matrices(factor):
    report = gradcheck(partial(whitened, factor=factor), R((4, 4)), R(4, 1))
    assert report.ok == (factor == 1), report
    assert report.wrong_step is None
    assert "tril is too much" not in report.explain()

"""Changes that would never end are given up."""

import threading
import time

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.reasons.endless import TooLong, interrupted_after

import numpy as np
import pytest


def run_on():
    while True:
        pass


def test_what_does_not_end_is_interrupted_again_and_again():
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(TooLong), interrupted_after(0.1):
            run_on()
        assert time.monotonic() - began < 30
    time.sleep(0.6)                                      # nothing comes later


def test_what_ends_in_time_is_not_interrupted_later():
    with interrupted_after(0.1):
        pass
    time.sleep(0.6)


def test_it_works_in_any_thread():
    found = []

    def work():
        try:
            with interrupted_after(0.1):
                run_on()
        except TooLong as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with interrupted_after(600):
        thread.join(30)
    assert found


def test_a_change_that_numpy_never_comes_back_from_is_not_tried():
    """np.c_ has an item for every index: as an operand of @, it is asked for all of them."""
    def cost(W, V, x):
        a = np.c_[np.ones((len(x), 1)), x]
        h = np.c_[np.ones((len(x), 1)), np.tanh(a @ W.T)]
        d = h @ V.T

        def backward(dloss):
            dV = d.T @ h
            dW = ((d @ V[:, 1:]) * (1 - h[:, 1:] ** 2)).T @ a
            return dloss * (dW + W), dloss * (dV + V)        # the first columns are not in the penalty

        return 0.5 * (d**2).sum() + 0.5 * (W[:, 1:] ** 2).sum() + 0.5 * (V[:, 1:] ** 2).sum(), backward

    def of_weights(W, V):
        return cost(W, V, np.random.default_rng(2).standard_normal((6, 3)))

    rng = np.random.default_rng(1)
    began = time.process_time()
    report = gradcheck(of_weights, rng.standard_normal((4, 4)), rng.standard_normal((3, 5)))
    assert report.verdict == "FAIL"
    assert time.process_time() - began < 60

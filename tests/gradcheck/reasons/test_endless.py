"""Changes that would never end are given up."""

import threading
import time

from mini_tf.gradcheck.judge import judged
from mini_tf.gradcheck.reasons.candidates import candidates
from mini_tf.gradcheck.reasons.endless import TooLong, interrupted_after
from mini_tf.gradcheck.reasons.running import made_right
from mini_tf.gradcheck.reasons.theirs import Part

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


def cost(W, x):
    a = np.c_[np.ones(len(x)), x]
    d = a @ W
    dW = 2 * a.T @ d
    return 0.5 * (d**2).sum(), dW


def test_a_change_that_numpy_never_comes_back_from_is_not_tried():
    """np.c_ has an item for every index: as an operand of @, it is asked for all of them."""
    rng = np.random.default_rng(1)
    with judged(cost, [rng.standard_normal((4, 2)), rng.standard_normal((5, 3))], None) as (_, _, evidence):
        tried = [change.after for _, change in candidates(evidence, [], {})]
    assert "a = np.c_[np.ones(len(x)), x]" not in tried
    assert any("np.c_[" in after for after in tried)     # the line is changed in other ways
    assert "a = np.c_" not in tried


def test_a_change_that_never_ends_is_given_up():
    rng = np.random.default_rng(1)
    with judged(cost, [rng.standard_normal((4, 2)), rng.standard_normal((5, 3))], None) as (_, _, evidence):
        began = time.monotonic()
        assert made_right(evidence, Part(cost, cost), endless.__code__) == set()
        assert time.monotonic() - began < 60


def endless(W, x):
    while W is not None:
        pass

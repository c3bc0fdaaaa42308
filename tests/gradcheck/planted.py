"""The reports on the planted bugs, each made once for all tests that read it."""

from functools import cache
from unittest.mock import patch

from mini_tf.gradcheck import EXAMPLES, gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.gradcheck.reasons import repair

import numpy as np

BY_NAME = {bug.name: bug for bug in BUGS}


@cache
def report_on(name, seed=20, change=False):
    """gradcheck's Report on the example of the bug of that name, with the bug planted in it.

    change: look for the one change that makes it right, too, which takes most of the time
    """
    bug = BY_NAME[name]
    f, inputs, params = EXAMPLES[bug.example](np.random.default_rng(seed))
    seconds = {"SECONDS": 4.0, "LEAST": 1.0} if change else {"SECONDS": 0.0}    # found within 2, if at all
    with planted(bug), patch.multiple(repair, **seconds):
        return gradcheck(f, *inputs, params=params, name=bug.example)

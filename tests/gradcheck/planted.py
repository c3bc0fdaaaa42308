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
def report_on(name, seed=20):
    """gradcheck's Report on the example of the bug of that name, with the bug planted in it."""
    bug = BY_NAME[name]
    f, inputs, params = EXAMPLES[bug.example](np.random.default_rng(seed))
    with planted(bug), patch.multiple(repair, SECONDS=2.0, LEAST=1.0):      # found before, if at all
        return gradcheck(f, *inputs, params=params, name=bug.example)

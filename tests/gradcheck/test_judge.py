"""The quick look, which decides which steps of a model are looked at closely."""

from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.judge import seems_right
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted

import numpy as np
import pytest

BY_EXAMPLE = {name: [bug for bug in BUGS if bug.example == name] for name in sorted({bug.example for bug in BUGS})}


@pytest.mark.parametrize("name", BY_EXAMPLE)
def test_what_is_right_seems_right_and_no_planted_bug_does(name):
    def looks(seed):
        return seems_right(*EXAMPLES[name](np.random.default_rng(seed)))

    assert looks(0)
    for bug in BY_EXAMPLE[name]:
        with planted(bug):                               # two points: at one, an abs(…) too many may change nothing
            assert not (looks(0) and looks(1)), bug.name

"""Two models compared."""

import numpy as np


def same(one, other):
    assert one.config == other.config
    ours, theirs = one.parameters(), other.parameters()
    assert list(ours) == list(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name].data, theirs[name].data, err_msg=name)

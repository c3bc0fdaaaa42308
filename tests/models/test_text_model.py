"""What all neural language models have in common."""

from mini_tf.errors import UserError
from mini_tf.models import FixedWindowModel, RecurrentModel

import numpy as np
import pytest


@pytest.mark.parametrize("build", [FixedWindowModel, RecurrentModel])
def test_an_untrained_model_knows_the_frequencies(build):
    counts = np.array([8, 0, 3])
    model = build(np.zeros((3, 4)), counts, T=2, k=5)
    np.testing.assert_allclose(np.exp(model.log_probabilities(np.array([0, 1, 2]))), (counts + 0.5) / 12.5)
    with pytest.raises(UserError, match=r"frequencies have shape \(2,\), expected \(3,\)"):
        build(np.zeros((3, 4)), counts[:2])

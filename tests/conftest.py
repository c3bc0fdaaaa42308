"""What all tests share: random numbers that are the same every time, and the reason for skipping GPU tests."""

import numpy as np
import pytest

from mini_tf.backend import gpu_count


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def pytest_collection_modifyitems(items):
    gpus, why_not = gpu_count()
    if gpus:
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {why_not}"))

"""Several threads at once: they find what each would find alone, and everything is afterwards as it was."""

import sys
from concurrent.futures import ThreadPoolExecutor

from mini_tf import layers
from mini_tf.gradcheck import judge

import numpy as np


def test_threads_may_check_one_layer(rng):
    layer, x = layers.TransformerLayer(4, 1, 2, rng, norm="after"), rng.standard_normal((2, 3, 4))
    data = {name: p.data for name, p in layer.parameters().items()}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)                          # quick switches from one to the other
    try:
        with ThreadPoolExecutor(3) as threads:
            assert all(threads.map(lambda _: judge(layer, x, budget=5).ok, range(3)))
    finally:
        sys.setswitchinterval(interval)
    assert all(p.data is data[name] and p.data.dtype == np.float32 for name, p in layer.parameters().items())

"""Several threads at once: they find what each would find alone, and everything is afterwards as it was."""

import sys
import threading

from mini_tf import kernels, layers
from mini_tf.gradcheck import judge
from mini_tf.layers import Layer
from mini_tf.ops.op import watched
from mini_tf.trace import trace

import numpy as np
import pytest

from .contracts import normal


def at_once(*works):
    """[What each returned, or raised], all running at the same time, with quick switches from one to the other."""
    found, interval = [None] * len(works), sys.getswitchinterval()

    def run(k):
        try:
            found[k] = works[k]()
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(works))]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=600)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    return found


def methods():
    below = [Layer]
    for cls in below:
        below += cls.__subclasses__()
    return {(cls, name): method for cls in below for name, method in vars(cls).items() if callable(method)}


def small_layer(seed):
    rng = np.random.default_rng(seed)
    return layers.TransformerLayer(4, 1, 2, rng, norm="after"), rng.standard_normal((2, 3, 4))


def guarded(z):
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)

    def backward(dloss):
        dz = p / len(z)
        dz[:, 0] -= 1 / len(z)
        return dloss * dz

    return -np.log(p[:, 0] + 1e-7).mean(), backward


@pytest.mark.exhaustive
def test_checks_and_traces_at_the_same_time():
    def check():
        return bool(judge(*small_layer(0), budget=5))

    def names():
        layer, x = small_layer(1)
        with trace() as calls:
            layer(x)[1](x)
        return [call.name for call in calls]

    def constants():
        """Its code runs with other constants for a moment."""
        return judge(guarded, normal((4, 3))).notes

    works = check, names, constants, names, check, constants
    before, code, alone = methods(), guarded.__code__, [work() for work in works]
    assert at_once(*works) == alone
    assert alone[0] is True
    assert alone[2][0].startswith("agrees up to the 1e-07 in line")
    assert methods() == before
    assert guarded.__code__ is code
    assert not watched()
    assert kernels.switched_on()


def test_threads_may_check_one_layer():
    layer, x = small_layer(0)
    data = {name: p.data for name, p in layer.parameters().items()}
    assert all(at_once(*[lambda: bool(judge(layer, x, budget=5))] * 3))
    assert all(p.data is data[name] and p.data.dtype == np.float32 for name, p in layer.parameters().items())

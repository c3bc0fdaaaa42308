"""Several threads at once: they find what each would find alone, and everything is afterwards as it was."""

import sys
import threading
from contextlib import contextmanager

from mini_tf import kernels, layers, ops
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.layers import Layer
from mini_tf.ops import op as op_module
from mini_tf.trace import trace

import numpy as np
import pytest


@contextmanager
def quick_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def at_once(*works):
    """[What each returned, or raised], all running at the same time."""
    found = [None] * len(works)

    def run(k):
        try:
            found[k] = works[k]()
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=run, args=(k,), daemon=True) for k in range(len(works))]
    with quick_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
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


def test_checks_and_traces_at_the_same_time():
    def check(seed):
        layer, x = small_layer(seed)
        return lambda: bool(gradcheck(layer, x))

    def names(seed):
        layer, x = small_layer(seed)

        def traced():
            with trace() as calls:
                layer(x)[1](x)
            return [call.name for call in calls]

        return lambda: [traced() for _ in range(10)]

    before, code = methods(), ops.tanh.formula.__code__
    alone = names(0)()[0]
    bug = next(bug for bug in BUGS if bug.name == "tanh: 1 − y")

    def plant():
        for _ in range(10):
            with planted(bug):
                assert not gradcheck(ops.tanh, np.ones((2, 3)))

    found = at_once(check(0), names(1), plant, names(2), check(3))
    assert found[0] is found[4] is True
    assert found[2] is None
    assert found[1] == found[3] == [alone] * 10
    assert methods() == before
    assert ops.tanh.formula.__code__ is code
    assert op_module._watchers.get() == ()
    assert kernels.switched_on()


def test_threads_may_check_one_layer():
    layer, x = small_layer(0)
    data = {name: p.data for name, p in layer.parameters().items()}
    assert all(at_once(*[lambda: bool(gradcheck(layer, x))] * 3))
    assert all(p.data is data[name] and p.data.dtype == np.float32 for name, p in layer.parameters().items())


def test_a_trace_and_a_watcher_see_their_own_thread_only():
    layer, x = small_layer(0)
    single = x.astype(np.float32)
    seen, in_block, done = [], threading.Event(), threading.Event()

    def watch(op, run, *inputs, **options):
        seen.append(op.name)
        return run(*inputs, **options)

    def watching():
        with trace() as calls, op_module.watching(watch):
            in_block.set()
            done.wait(10)
            ops.tanh(x)
        return [call.name for call in calls]

    def working():
        in_block.wait(10)
        try:
            layer(single)
            return ops.softmax.chosen((single,), {}) is not ops.softmax.formula
        finally:
            done.set()

    assert at_once(watching, working) == [["tanh"], True]
    assert seen == ["tanh"]


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_traces_may_end_in_any_order(first_to_end):
    before = methods()
    traces = [trace(), trace()]
    events = [threading.Event(), threading.Event()]
    entered = threading.Barrier(3)

    def work(k):
        with traces[k]:
            entered.wait(10)
            events[k].wait(10)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    entered.wait(10)
    assert methods() != before
    for k in (first_to_end, 1 - first_to_end):
        events[k].set()
        threads[k].join(10)
    assert methods() == before

"""Traces and watchers see their own thread only, and may end in any order."""

import threading

from mini_tf import layers, ops
from mini_tf.layers import Layer
from mini_tf.ops.op import watching as watching_ops
from mini_tf.trace import trace

import numpy as np
import pytest

PATIENCE = 600           # seconds: only what hangs takes that long


def methods():
    below = [Layer]
    for cls in below:
        below += cls.__subclasses__()
    return {(cls, name): method for cls in below for name, method in vars(cls).items() if callable(method)}


def test_a_trace_and_a_watcher_see_their_own_thread_only():
    rng = np.random.default_rng(0)
    layer, x = layers.TransformerLayer(4, 1, 2, rng, norm="after"), rng.standard_normal((2, 3, 4))
    single, seen, in_block, done = x.astype(np.float32), [], threading.Event(), threading.Event()
    found = {}

    def watch(op, run, *inputs, **options):
        seen.append(op.name)
        return run(*inputs, **options)

    def watching():
        with trace() as calls, watching_ops(watch):
            in_block.set()
            done.wait(PATIENCE)
            ops.tanh(x)
        found["traced"] = [call.name for call in calls]

    def working():
        in_block.wait(PATIENCE)
        try:
            layer(single)
            found["twin"] = ops.softmax.implementation((single,), {}) is not ops.softmax.formula
        finally:
            done.set()

    threads = [threading.Thread(target=work, daemon=True) for work in (watching, working)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == {"traced": ["tanh"], "twin": True}
    assert seen == ["tanh"]


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_traces_may_end_in_any_order(first_to_end):
    before = methods()
    traces = [trace(), trace()]
    events = [threading.Event(), threading.Event()]
    entered = threading.Barrier(3)

    def work(k):
        with traces[k]:
            entered.wait(PATIENCE)
            events[k].wait(PATIENCE)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    entered.wait(PATIENCE)
    assert methods() != before
    for k in (first_to_end, 1 - first_to_end):
        events[k].set()
        threads[k].join(PATIENCE)
    assert methods() == before

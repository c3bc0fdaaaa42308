"""Twins under stress, against their formulas: arrays that are views of all kinds, many threads, forks.

Each test has a time limit, because what goes wrong with threads may wait forever.
"""

import os
import signal
import threading
import time

from mini_tf import kernels, ops
from mini_tf.ops import updates

import numpy as np
import pytest

SECONDS = 600            # until a test counts as hanging
FEW, MANY = 37, 2 ** 19 // 64 + 1            # rows: one thread's work, and enough to be shared among threads


def cases(rng, rows):
    """{name: (op, arrays, options)} with about that many rows of 64 numbers"""
    def normal(*shape):
        return rng.standard_normal(shape, dtype=np.float32)

    x, mask, ids = normal(rows, 64), rng.random((rows, 64)) < 0.7, rng.integers(0, 64, rows)
    batch = max(rows // 64, 1)
    heads = [normal(batch, 2, 32, 8) for _ in range(3)]
    return {
        "relu": (ops.relu, [x], {}), "gelu": (ops.gelu, [x], {}), "residual_relu": (ops.residual_relu, [x, x + 1], {}),
        "dropout": (ops.dropout, [x, mask], {"rate": 0.3}), "softmax": (ops.softmax, [x], {}),
        "masked_softmax": (ops.masked_softmax, [x, mask], {}), "layer_norm": (ops.layer_norm, [x, x[0], x[1]], {}),
        "linear": (ops.linear, [x, normal(64, 12), normal(12)], {}), "embedding": (ops.embedding, [normal(64, 20), ids], {}),
        "cross_entropy": (ops.cross_entropy, [x, ids], {"smoothing": 0.1}),
        "mean_pool": (ops.mean_pool, [x.reshape(1, rows, 64), mask[None, :, 0]], {}),
        "silu": (ops.silu, [x], {}), "swiglu": (ops.swiglu, [x, x + 1], {}), "rms_norm": (ops.rms_norm, [x, x[0]], {}),
        "rotary": (ops.rotary, [x], {}),
        "attention": (ops.attention, [*heads, np.tri(32, dtype=bool)], {"scale": 0.4, "bias": normal(2, 32, 32)}),
    }  # fmt: skip


def outcome(op, arrays, options):
    """[y, gradients] of a call, copied"""
    y, backward = op(*arrays, **options)
    dy = np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape) if y.ndim else 0.7
    gradients = backward(dy)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return [np.array(x) for x in (y, *gradients) if x is not None]


def by_formula(op, arrays, options):
    with kernels.reference_only():
        return outcome(op, arrays, options)


def near(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.shape == other.shape
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=3e-5 * max(np.abs(other).max(initial=0), 1))


# --- views

def with_gaps(x):
    wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype)
    wide[..., 1::3] = x
    return wide[..., 1::3]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x):
    return np.frombuffer(b"." + x.tobytes(), x.dtype, offset=1).reshape(x.shape)


def overlapping(x):
    """Rows that share memory: each begins one number after the one before."""
    if x.ndim < 2:
        return np.broadcast_to(x[:1], x.shape)
    flat = np.resize(x, x.shape[-2] + x.shape[-1])
    rows = np.lib.stride_tricks.sliding_window_view(flat, x.shape[-1])[: x.shape[-2]]
    return np.broadcast_to(rows, x.shape)


VIEWS = {
    "Fortran": np.asfortranarray, "backwards": lambda x: x[::-1, ...].copy()[::-1], "all backwards": lambda x: np.flip(np.flip(x).copy()),
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1), "with gaps": with_gaps,
    "read-only": read_only, "unaligned": unaligned, "overlapping": overlapping,
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape), "part": lambda x: np.pad(x, 3)[(slice(3, -3),) * x.ndim],
    "no rows": lambda x: x[::-1][:0] if x.ndim > 1 else x,
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", cases(np.random.default_rng(0), FEW))
def test_views(name, view, rng):
    op, arrays, options = cases(rng, FEW)[name]
    options = {k: VIEWS[view](x) if isinstance(x, np.ndarray) and view != "no rows" else x for k, x in options.items()}
    if view == "no rows":                                # weights and tables keep theirs
        if name == "cross_entropy":
            pytest.skip("no row: an error")
        whole = {"linear": [1, 2], "embedding": [0], "attention": [3]}.get(name, [])
        given = [x[..., :0] if name == "embedding" and i == 1 else x if i in whole else VIEWS[view](x) for i, x in enumerate(arrays)]
    else:
        given = [VIEWS[view](x) for x in arrays]
    before = [np.array(x) for x in given]
    near(outcome(op, given, options), by_formula(op, [np.array(x) for x in given], options))
    assert all(np.array_equal(x, was) for x, was in zip(given, before))


@pytest.mark.parametrize("view", ["Fortran", "backwards", "all backwards", "transposed", "with gaps", "part", "no rows"])
def test_adam_updates_views_in_place(view, rng):
    p, g, m, v = (VIEWS[view](x) for x in rng.standard_normal((4, 30, 20), dtype=np.float32) ** 2)
    expected = [np.array(x) for x in (p, g, m, v)]
    settings = 3, 0.01, (0.9, 0.99), 1e-8, 0.999
    updates.adam(p, g, m, v, *settings)
    with kernels.reference_only():
        updates.adam(*expected, *settings)
    near([p, g, m, v], expected)
    assert updates.sum_of_squares(g) == pytest.approx(float((expected[1] ** 2).sum()), rel=1e-4)


# --- threads and forks


def at_once(*works):
    """Run them in threads; what any of them raises is raised here, and so is waiting too long."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    deadline = time.monotonic() + SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    assert not any(thread.is_alive() for thread in threads), f"still running after {SECONDS} s"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("recycled", [False, True], ids=["", "in recycled memory"])
def test_threads_do_not_disturb_each_other(recycled, rng):
    """Each does all twins, large and small, in its own order; the results are always the same, bit for bit."""
    calls = [case for rows in (FEW, MANY) for case in cases(rng, rows).values()]
    expected = [outcome(*case) for case in calls]

    def work(seed):
        def all_of_them():
            for k in np.random.default_rng(seed).permutation(len(calls)):
                for found, right in zip(outcome(*calls[k]), expected[k]):
                    np.testing.assert_array_equal(found, right, err_msg=calls[k][0].name)

        if not recycled:
            return all_of_them

        def in_recycled_memory():
            with kernels.recycled_memory():
                all_of_them()

        return in_recycled_memory

    at_once(*map(work, range(4)))
    with kernels.reference_only():
        for case, found in zip(calls, expected):
            near(found, outcome(*case))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_while_other_threads_work(rng):
    """The child has the parent's arrays, but not its threads: it computes the same, and does not wait for them."""
    calls = list(cases(rng, MANY).values())
    expected = [outcome(*case) for case in calls]
    done = threading.Event()

    def work():
        with kernels.recycled_memory():
            while not done.is_set():
                outcome(*calls[0])
                outcome(*calls[4])

    def fork():
        try:
            for _ in range(4):
                child = os.fork()
                if child == 0:
                    right = False
                    try:
                        right = all(np.array_equal(a, b) for k in (0, 3, 4, 6) for a, b in zip(outcome(*calls[k]), expected[k]))
                    finally:
                        os._exit(0 if right else 1)
                assert exit_code(child) == 0
        finally:
            done.set()

    at_once(work, work, fork)


def exit_code(child):
    """Of a process, which is killed after a while"""
    for _ in range(SECONDS * 50):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "it hangs"

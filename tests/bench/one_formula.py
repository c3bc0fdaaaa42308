"""What a launch costs, and one formula three times: the softmax of NumPy, of CuPy, and as a kernel. Needs a GPU.

    python tests/bench/one_formula.py            prints the tables of labs/gpu.md

Host: what Python needs to start the work, measured over calls that nobody waits for. Whole: until the result is there,
of many calls in a row, so that the host works ahead: the larger of the host's time and the GPU's.
"""

import statistics
import time

from mini_tf import ops
from mini_tf.backend import to_device
from mini_tf.kernels import reference_only

import numpy as np

SHAPES = {"one row": (1, 64), "attention's scores in `quick`": (64 * 4 * 32, 32), "scores of all words": (2048, 14295)}
CALLS, ROUNDS = 100, 7


def times(call, wait):
    """(seconds of the host, seconds until the result is there), of a call: medians"""
    call()
    wait()
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        issued = time.perf_counter()
        wait()
        found.append(((issued - start) / CALLS, (time.perf_counter() - start) / CALLS))
    return tuple(map(statistics.median, zip(*found)))


def formula(z):
    with reference_only():
        return ops.softmax(z)[0]


def main():
    import cupy

    def wait():
        cupy.cuda.Device().synchronize()

    x, y = cupy.zeros(1, cupy.float32), cupy.zeros(1, cupy.float32)
    from mini_tf.kernels.gpu.launching import launch

    print("| a launch | host | whole |\n| --- | ---: | ---: |")
    for what, call in {
        "`x + y` in CuPy, of one number": lambda: x + y,
        "a kernel of mini_tf, of one number": lambda: launch("relu", 1, 32, x, 1, y),
        "`float(x)`: waiting for one number": lambda: float(x),
    }.items():
        host, whole = times(call, wait)
        print(f"| {what} | {1e6 * host:.1f} µs | {1e6 * whole:.1f} µs |")
    print("\n| softmax of | NumPy | CuPy: host, whole | the kernel: host, whole |\n| --- | ---: | ---: | ---: |")
    for what, shape in SHAPES.items():
        z = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        on_gpu = to_device(z, "gpu")
        numpys = statistics.median(_seconds(lambda z=z: formula(z)) for _ in range(ROUNDS))
        cells = [f"{1e6 * numpys:,.0f} µs"]
        for call in (formula, lambda z: ops.softmax(z)[0]):
            host, whole = times(lambda call=call, z=on_gpu: call(z), wait)
            cells.append(f"{1e6 * host:,.0f}, {1e6 * whole:,.0f} µs")
        print(f"| {what}, {' × '.join(f'{size:,}' for size in shape)} | {' | '.join(cells)} |")


def _seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""Twins of `ops/updates.py` for CuPy's float32 arrays: Adam for all parameters in one launch, their norm in another.

A launch costs a few microseconds whatever it does, and a model has dozens of parameters, so both kernels take a table
of all arrays: where they lie and how large they are. It travels with the launch itself, as one of its arguments.
Sums are added up in a fixed order: twice the same gradients give the same bits.

Nothing here waits for the device but `squares_of_all`, which gives numbers to the host. A `Record` is for steps whose
numbers are read later: the norm, which clips the gradients, and the loss stay on the device until then.
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from mini_tf import kernels
from mini_tf.backend import array_module
from mini_tf.types import Array

import numpy as np

if TYPE_CHECKING:
    from mini_tf.ops.op import Op

ROWS = 64                # arrays in a table; with all of them, a launch's arguments stay below CUDA's 4,096 bytes
THREADS = 256            # in a block
CHUNK = 4096             # entries that a block takes
LIBRARIES = {"cupy"}     # whose arrays the kernels take

TABLE = np.dtype([
    ("p", "u8", ROWS), ("g", "u8", ROWS), ("m", "u8", ROWS), ("v", "u8", ROWS), ("size", "i8", ROWS),
    ("first", "i4", ROWS), ("rate", "f4", ROWS), ("eps", "f4", ROWS), ("rows", "i4"),
], align=True)  # fmt: skip

SOURCE = f"""
struct Table {{
    float *p[{ROWS}]; const float *g[{ROWS}]; float *m[{ROWS}], *v[{ROWS}];
    long long size[{ROWS}];
    int first[{ROWS}];                                   // the block that begins with this array
    float rate[{ROWS}], eps[{ROWS}];
    int rows;
}};

__device__ int row_of(const Table &table, int block) {{
    int row = 0;
    while (row + 1 < table.rows && table.first[row + 1] <= block) row++;
    return row;
}}

// The sum over the threads of a block, in a fixed order; right in thread 0
__device__ double over_block(double x, double *room) {{
    room[threadIdx.x] = x;
    for (int half = {THREADS} / 2; half > 0; half /= 2) {{
        __syncthreads();
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    }}
    __syncthreads();
    return room[0];
}}

// partial[first_partial + block] = Σ g² of the block's entries. If `all` is not 0, the last block to finish adds up all
// partial sums: entry = (loss, Σ g²); stop becomes 1 if one of them is not finite.
extern "C" __global__ void squares(const Table table, double *partial, int first_partial, int all, const float *loss,
                                   double *entry, double *stop, unsigned int *finished) {{
    __shared__ double room[{THREADS}];
    __shared__ bool last;
    const int row = row_of(table, blockIdx.x);
    const long long start = (long long)(blockIdx.x - table.first[row]) * {CHUNK};
    const long long end = min(start + {CHUNK}, table.size[row]);
    const float *g = table.g[row];
    double sum = 0;
    for (long long i = start + threadIdx.x; i < end; i += {THREADS}) sum += (double)g[i] * g[i];
    sum = over_block(sum, room);
    if (threadIdx.x == 0) {{
        partial[first_partial + blockIdx.x] = sum;
        __threadfence();
        last = all > 0 && atomicAdd(finished, 1u) == gridDim.x - 1;
    }}
    __syncthreads();
    if (!last) return;
    __threadfence();
    double total = 0;
    for (int i = threadIdx.x; i < all; i += {THREADS}) total += ((volatile double *)partial)[i];
    total = over_block(total, room);
    if (threadIdx.x == 0) {{
        *finished = 0;
        entry[0] = *loss;
        entry[1] = total;
        if (!isfinite(entry[0]) || !isfinite(total)) *stop = 1;
    }}
}}

// Adam's step for every array of the table: with a record's entry, gradients are clipped to the norm `most`, if it is
// above 0, and nothing changes once stop is 1
extern "C" __global__ void adam(const Table table, float beta1, float beta2, float rest1, float rest2, float decay,
                                double most, const double *entry, const double *stop) {{
    if (stop && *stop) return;
    float factor = 1;
    if (entry && most > 0 && sqrt(entry[1]) > most) factor = most / sqrt(entry[1]);
    const int row = row_of(table, blockIdx.x);
    const long long start = (long long)(blockIdx.x - table.first[row]) * {CHUNK};
    const long long end = min(start + {CHUNK}, table.size[row]);
    const float rate = table.rate[row], eps = table.eps[row];
    const float *g = table.g[row];
    float *p = table.p[row], *m = table.m[row], *v = table.v[row];
    for (long long i = start + threadIdx.x; i < end; i += {THREADS}) {{
        const float slope = factor * g[i];
        const float mean = m[i] = beta1 * m[i] + rest1 * slope;
        const float square = v[i] = beta2 * v[i] + rest2 * slope * slope;
        p[i] = decay * p[i] - rate * mean / (sqrtf(square) + eps);
    }}
}}
"""


class Record:
    """The losses and the squared norms of some steps, on the device of `array`, until the host reads them.

    stop: 1 from the first step on in which one of the two is not finite; from there on, Adam changes nothing
    """

    def __init__(self, array: Array, steps: int):
        xp = array_module(array)
        self.entries, self.stop = xp.zeros((steps, 2)), xp.zeros(1)
        self.finished = xp.zeros(1, dtype=np.uint32)

    def read(self) -> np.ndarray:
        """(steps, 2): loss and Σ g² of each step, on the host. This waits for the device."""
        return self.entries.get()

    def begin_anew(self) -> None:
        self.stop[...] = 0


def runs_for(op: "Op", p: Array) -> bool:
    """True if the kernel of the op, adam or sum_of_squares, is to run for a model with such arrays as p."""
    on_gpu = array_module(p).__name__ in LIBRARIES and p.dtype == np.float32
    return on_gpu and kernels.twin_of(op) is not None


def contiguous(g: Array) -> Array:
    """The gradient as the kernels take it: float32, in C order; a copy only if it is not."""
    if g.dtype == np.float32 and g.flags.c_contiguous:
        return g
    return array_module(g).ascontiguousarray(g, dtype=np.float32)


def fit_together(p: Array, g: Array, m: Array, v: Array) -> bool:
    """True if the kernels can take these arrays: float32, of one shape, and those that they write to in C order."""
    same = p.shape == g.shape == m.shape == v.shape and p.dtype == m.dtype == v.dtype == np.float32
    return same and p.flags.c_contiguous and m.flags.c_contiguous and v.flags.c_contiguous


def adam_of_all(
    arrays: list[tuple[Array, Array, Array, Array]], counts: list[int], learning_rate: float,
    betas: tuple[float, float], eps: float, decay: float, record: Record | None = None, step: int = 0,
    most: float = 0.0,
) -> None:  # fmt: skip
    """`ops.updates.adam` for all (p, g, m, v), whose steps are counted in `counts`

    record, step: of a step whose loss and norm are on the device; its gradients are clipped to the norm `most`, if it
    is above 0
    """
    beta1, beta2 = betas
    # α·m̂/(√v̂ + ε) = rate·m/(√v + ε·correction), as in `cpu.py`
    corrections = [math.sqrt(1 - beta2**t) for t in counts]
    rates = [learning_rate * root / (1 - beta1**t) for root, t in zip(corrections, counts)]
    epsilons = [eps * root for root in corrections]
    numbers = [np.float32(x) for x in (beta1, beta2, 1 - beta1, 1 - beta2, decay)]
    late = (np.uint64(0), np.uint64(0)) if record is None else (record.entries[step], record.stop)
    for table, blocks, _ in _tables(arrays, rates, epsilons):
        launch("adam", blocks, THREADS, table, *numbers, np.float64(most), *late)


def squares_of_all(gradients: list[Array]) -> list[float]:
    """[Σ g², for each array]"""
    partial, firsts = _partial_sums(gradients)
    sums = partial.get()
    return [float(sums[first:last].sum()) for first, last in zip(firsts, [*firsts[1:], len(sums)])]


def note(record: Record, step: int, loss: Array, gradients: list[Array]) -> None:
    """Put the loss and Σ g² over all gradients into the record, as those of this step, without waiting."""
    _partial_sums(gradients, (loss, record.entries[step], record.stop, record.finished))


def _partial_sums(gradients, late=None):
    """(sums of squares of all blocks, the first block of each array)"""
    tables = list(_tables([(g, g, g, g) for g in gradients]))
    all_blocks = sum(blocks for _, blocks, _ in tables)
    partial, firsts, before = array_module(gradients[0]).empty(all_blocks), [], 0
    for k, (table, blocks, first) in enumerate(tables):
        firsts += [before + block for block in first]
        is_last = late is not None and k == len(tables) - 1
        finish = (np.int32(all_blocks), *late) if is_last else (np.int32(0), *[np.uint64(0)] * 4)
        launch("squares", blocks, THREADS, table, partial, np.int32(before), *finish)
        before += blocks
    return partial, firsts


def _tables(arrays, rates=(), epsilons=()) -> Iterable[tuple[np.ndarray, int, list[int]]]:
    """(table, blocks, first block of each array) of up to ROWS arrays at a time"""
    for start in range(0, len(arrays), ROWS):
        some = slice(start, start + ROWS)
        rows, table, blocks, firsts = arrays[some], np.zeros(1, TABLE), 0, []
        entry = table[0]
        for name, column in zip("pgmv", zip(*rows)):
            entry[name][: len(rows)] = [x.data.ptr for x in column]
        sizes = [p.size for p, *_ in rows]
        for size in sizes:
            firsts.append(blocks)
            blocks += -(-size // CHUNK)
        entry["size"][: len(rows)], entry["first"][: len(rows)] = sizes, firsts
        if rates:
            entry["rate"][: len(rows)], entry["eps"][: len(rows)] = rates[some], epsilons[some]
        entry["rows"] = len(rows)
        if blocks:
            yield table, blocks, firsts


def launch(kernel: str, blocks: int, threads: int, *arguments: Any) -> None:
    """Start a kernel on so many blocks of threads. Arguments are arrays, NumPy's numbers, and structs."""
    _kernel(kernel)((blocks,), (threads,), arguments)


@cache
def _kernel(name):
    from mini_tf.kernels import gpu_draws

    import cupy

    return cupy.RawModule(code=SOURCE + gpu_draws.SOURCE).get_function(name)

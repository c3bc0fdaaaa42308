"""Runs a kernel's CUDA source on the CPU: compiled as C++, the threads of a block one after the other.

Each thread is a context of its own, which gives the next one its turn at __syncthreads(). It is slow, and needs a C++
compiler; what it shows is that the source computes what its formula says, not that it is free of races.
"""

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.strict import StrictArray, launched

import numpy as np
import pytest

BEFORE = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <utility>
#include <vector>
#define __global__ static
#define __device__ static
#define __shared__ static
#define __forceinline__ inline
using std::min; using std::max; using std::isfinite;
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;
static std::vector<ucontext_t> threads;
static ucontext_t scheduler;
static unsigned current;
static std::vector<char> ended;
static std::function<void()> work;
static void __syncthreads() { swapcontext(&threads[current], &scheduler); }
static void __threadfence() {}
static uint64_t __umul64hi(uint64_t x, uint64_t y) { return (unsigned __int128)x * y >> 64; }
template <class T> T atomicAdd(T *sum, T x) { T before = *sum; *sum += x; return before; }
#define extern_kernel(name) extern "C" void launch_##name(unsigned grid, unsigned block, void **arguments) \\
    { run(grid, block, [=] { call(name, arguments); }); }

static void one_thread() { work(); ended[current] = 1; }

static void run(unsigned grid, unsigned block, std::function<void()> kernel) {
    const size_t room = 1 << 16;
    static std::vector<char> stacks;
    if (stacks.size() < block * room) stacks.resize(block * room);
    work = kernel; threads.resize(block); gridDim = {grid, 1, 1}; blockDim = {block, 1, 1};
    for (unsigned b = 0; b < grid; b++) {
        blockIdx = {b, 0, 0};
        ended.assign(block, 0);
        for (unsigned t = 0; t < block; t++) {
            getcontext(&threads[t]);
            threads[t].uc_stack.ss_sp = &stacks[t * room]; threads[t].uc_stack.ss_size = room;
            threads[t].uc_link = &scheduler;
            makecontext(&threads[t], one_thread, 0);
        }
        while (!std::all_of(ended.begin(), ended.end(), [](char e) { return e; }))
            for (current = 0; current < block; current++)
                if (!ended[current]) { threadIdx = {current, 0, 0}; swapcontext(&scheduler, &threads[current]); }
    }
}

template <class... A, size_t... I> void call_with(void (*f)(A...), void **a, std::index_sequence<I...>) {
    f(*(std::remove_const_t<A> *)a[I]...);
}
template <class... A> void call(void (*f)(A...), void **a) { call_with(f, a, std::index_sequence_for<A...>()); }
"""


@cache
def compiled(source: str, names: tuple[str, ...]) -> ctypes.CDLL:
    """A library with launch_NAME(grid, block, arguments) for each of these kernels of the source."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler, which runs kernels on the CPU")
    text = BEFORE + source.replace('extern "C" __global__', "__global__") + "".join(f"extern_kernel({n})\n" for n in names)
    folder = Path(tempfile.gettempdir()) / f"mini-tf-kernels-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    library = folder / "kernels.so"
    if not library.exists():
        folder.mkdir(exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder))
        (part / "kernels.cpp").write_text(text)
        command = [compiler, "-O1", "-std=c++20", "-shared", "-fPIC", "-w", "-o", part / "kernels.so", part / "kernels.cpp"]
        subprocess.run(command, check=True)
        (part / "kernels.so").rename(library)
    return ctypes.CDLL(str(library))


def run_on_cpu(library: ctypes.CDLL, name: str, blocks: int, threads: int, arguments: tuple) -> None:
    """Run a kernel; arguments are strict arrays, NumPy numbers, and structs as NumPy arrays of one entry."""
    launched()
    passed = [np.uint64(x.data.ptr) if isinstance(x, StrictArray) else x for x in arguments]
    passed = [np.ascontiguousarray(x) for x in passed]
    pointers = (ctypes.c_void_p * len(passed))(*[x.ctypes.data for x in passed])
    getattr(library, f"launch_{name}")(ctypes.c_uint(blocks), ctypes.c_uint(threads), pointers)


@pytest.fixture
def updates_on_strict(monkeypatch):
    """The kernels of gpu_updates and gpu_draws run for strict arrays."""
    from mini_tf.kernels import gpu_draws, gpu_updates

    library = compiled(gpu_updates.SOURCE + gpu_draws.SOURCE, ("squares", "adam", "keep"))
    monkeypatch.setattr(gpu_updates, "LIBRARIES", {"cupy", "strict_library"})
    monkeypatch.setattr(gpu_updates, "launch", lambda name, blocks, threads, *arguments: run_on_cpu(
        library, name, blocks, threads, arguments))  # fmt: skip

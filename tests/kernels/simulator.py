"""Runs the kernels of mini_tf/kernels/gpu on the CPU: the .cu files are compiled as C++, with simulated.cpp before them.

`simulated(monkeypatch)` has the twins for CuPy's arrays work on NumPy's instead. Types are checked more strictly than
on a GPU, which would take an array of another dtype, or an int for a float, and compute nonsense.
"""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from mini_tf import kernels as twins
from mini_tf.backend import to_device
from mini_tf.kernels import binding, gpu
from mini_tf.kernels.gpu import draws, launching, updates
from tests.strict import StrictArray, launched, strict

import numpy as np
import pytest

POINTERS = {"float*": np.float32, "bool*": np.bool_, "long long*": np.int64, "double*": np.float64}
STRUCTS = {"__grid_constant__ Table": updates.TABLE}
NUMBERS = {"long long": (int, ctypes.c_longlong), "double": (float, ctypes.c_double)}
KERNEL = re.compile(r"__global__ void (\w+)\(([^)]*)\)")


def simulated(monkeypatch):
    """The twins in `gpu` run their kernels here, on NumPy's arrays; returns a list of the names of what is launched.

    The test is skipped where there is no compiler.
    """
    names = []

    def launch(name, blocks, threads, *arguments):
        names.append(name)
        run(name, blocks, threads, *arguments)

    def product(A, B, A_transposed=False, B_transposed=False):
        assert A.flags.c_contiguous
        assert B.flags.c_contiguous
        names.append("product")
        return np.ascontiguousarray((A.T if A_transposed else A) @ (B.T if B_transposed else B))

    put_in(monkeypatch, launch=launch, product=product, empty=empty, address=lambda x: x.ctypes.data)
    monkeypatch.setattr(gpu, "HOST", ())
    return names


def put_in(monkeypatch, **ours):
    """Put functions in place of those of `launching`, wherever they are used; skips the test if nothing can be compiled."""
    kernels()
    for module in (gpu, updates, draws):
        for name in vars(module).keys() & ours.keys():
            monkeypatch.setattr(module, name, ours[name])


@pytest.fixture
def gpu_of_strict(monkeypatch):
    """The twins for CuPy's arrays run for strict arrays, too, which count the launches."""

    def launch(name, blocks, threads, *arguments):
        launched()
        run(name, blocks, threads, *[x._data if isinstance(x, StrictArray) else x for x in arguments])

    def product(A, B, A_transposed=False, B_transposed=False):
        launched()
        A, B = A._data.T if A_transposed else A._data, B._data.T if B_transposed else B._data
        return StrictArray(np.ascontiguousarray(A @ B))

    put_in(monkeypatch, launch=launch, product=product, empty=lambda shape, *dtype: StrictArray(empty(shape, *dtype)))
    monkeypatch.setitem(binding.TWINS, "strict_library", binding.TWINS["cupy"])
    twins._twins.clear()
    yield
    twins._twins.clear()


@pytest.fixture(params=["simulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def to_gpu(request):
    """A function that moves a host array to a GPU: the real one, or the strict array's"""
    if request.param == "gpu":
        return lambda x: to_device(x, "gpu")
    request.getfixturevalue("gpu_of_strict")
    return strict


def empty(shape, dtype=np.float32):
    """Full of NaN, so that an entry that no thread writes shows."""
    return np.full(shape, np.nan if dtype == np.float32 else True, dtype)


def run(name, blocks, threads, *arguments):
    """One launch. The arguments have to be of the very types that the kernel declares."""
    function, parameters = kernels()[name]
    assert len(arguments) == len(parameters), name
    assert threads % 32 == 0
    assert 32 <= threads <= 1024
    assert type(blocks) is int
    given = []
    for argument, following, parameter in zip(arguments, (*arguments[1:], None), parameters):
        kind, _, parameter_name = parameter.rpartition(" ")
        if kind in POINTERS:                             # an array that was left out is followed by a 0, which says so
            left_out = type(following) is int and following == 0
            assert left_out or argument.dtype == POINTERS[kind], f"{name}: {parameter_name} is of {argument.dtype}"
            given.append(ctypes.c_void_p(argument.ctypes.data))
        elif kind in STRUCTS:
            assert (argument.dtype, argument.shape) == (STRUCTS[kind], (1,))
            given.append(struct(argument.itemsize).from_buffer(argument))
        else:
            cls, of_c = NUMBERS[kind]
            assert type(argument) is cls, f"{name}: {parameter_name} is {argument!r}"
            given.append(of_c(argument))
    if blocks:
        function(blocks, threads, *given)


@cache
def struct(size):
    """ctypes' class of a struct of so many bytes, passed by value"""
    return type("Struct", (ctypes.Structure,), {"_fields_": [("eights", ctypes.c_longlong * (size // 8))]})


@cache
def kernels():
    """{name: (function(blocks, threads, …), its parameters, such as "long long n")}"""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler, g++ or clang++")
    found = {}
    text = [Path(__file__).with_name("simulated.cpp").read_text(encoding="utf-8"), launching.source()]
    for name, declared in KERNEL.findall(launching.source()):
        parameters = [" ".join(p.split()).removeprefix("const ") for p in declared.split(",")]
        names = ", ".join(p.rpartition(" ")[2] for p in parameters)
        text.append(
            f'extern "C" void run_{name}(unsigned blocks, unsigned threads, {declared})'
            f" {{ launch(blocks, threads, [&] {{ {name}({names}); }}); }}"
        )
        found[name] = parameters
    text = "\n".join(text)
    library = Path(tempfile.gettempdir()) / f"mini_tf_kernels_{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory() as folder:
            new = Path(folder) / "kernels.so"
            options = ["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(new)]
            subprocess.run([compiler, *options], input=text, text=True, check=True)
            new.replace(library)
    functions = ctypes.CDLL(str(library))
    return {name: (getattr(functions, f"run_{name}"), parameters) for name, parameters in found.items()}

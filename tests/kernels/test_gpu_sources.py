"""NVIDIA's compiler takes the kernels: NVRTC needs no GPU, only the package nvidia-cuda-nvrtc, or CUDA's toolkit."""

import ctypes
import ctypes.util
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

from mini_tf.kernels.gpu import launching
from tests.cases import cases
from tests.kernels.simulator import KERNEL, NUMBERS, POINTERS, STRUCTS

import pytest


def nvrtc():
    """The library; the test is skipped where there is none."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (spec.submodule_search_locations if spec else ())]
    found = [str(path) for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so.*"))]
    for name in filter(None, [*found, ctypes.util.find_library("nvrtc"), "/usr/local/cuda/lib64/libnvrtc.so"]):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc")


def compiled(source, architecture):
    """(NVRTC's result, 0 for success; what it says)"""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"-ftz=true"]          # as CuPy does
    result = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return result, log.value.decode()


@pytest.mark.parametrize("architecture", cases(["compute_75"], ["sm_90"]))
def test_nvrtc_compiles_all_kernels_without_a_warning(architecture):
    assert compiled(launching.source(), architecture) == (0, "")


def test_nvrtc_finds_an_error():
    result, log = compiled(launching.source().replace("__syncthreads();", "__syncthread();", 1), "sm_90")
    assert result != 0
    assert '"__syncthread" is undefined' in log


def test_kernels_take_what_a_launch_can_give():
    """Pointers to arrays; Python's int and float; structs: a parameter of another type would get nonsense."""
    for name, declared in KERNEL.findall(launching.source()):
        for parameter in declared.split(","):
            kind = " ".join(parameter.split()).removeprefix("const ").rpartition(" ")[0]
            assert kind in {*POINTERS, *NUMBERS, *STRUCTS}, f"{name}: {parameter}"
    assert len(KERNEL.findall(launching.source())) == len(re.findall("__global__", launching.source()))


def test_cupy_can_write_the_source_in_any_locale():
    assert launching.source().isascii()


class TwoGPUs:
    """What of CuPy a launch on the first of two GPUs needs"""

    class cuda:
        class runtime:
            getDevice, getDeviceCount = (lambda: 0), (lambda: 2)


def test_an_array_of_another_gpu_is_refused(monkeypatch):
    """Its address would mean nothing there."""
    first, second = (SimpleNamespace(data=SimpleNamespace(device_id=k)) for k in range(2))
    launched = []
    monkeypatch.setattr(launching, "_cupy", lambda: TwoGPUs)
    monkeypatch.setattr(launching, "_gpus", launching._gpus.__wrapped__)
    monkeypatch.setattr(launching, "_kernel", lambda name: lambda *given: launched.append(name))
    monkeypatch.setattr(launching, "device_of", lambda x: f"gpu:{x.data.device_id}")
    launching.launch("relu", 1, 32, first, 3, first)
    with pytest.raises(ValueError, match=r"relu: an array is on gpu:1, the current GPU is gpu:0, .*use_device\('gpu:1'\)"):
        launching.launch("relu", 1, 32, first, 3, second)
    assert launched == ["relu"]


def test_every_source_file_is_named():
    assert sorted(launching.SOURCES) == sorted(path.name for path in Path(launching.__file__).parent.glob("*.cu"))

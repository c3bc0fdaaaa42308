"""Numba's settings and its cache on disk: loops run, formulas run in their place, or a sentence says what is wrong."""

import os
import subprocess
import sys

import pytest


def python(code, **settings):
    return subprocess.run([sys.executable, "-c", code], env=os.environ | settings, capture_output=True, text=True)


@pytest.mark.parametrize("threads", ["0", "-2"])
def test_no_threads_are_refused_in_a_sentence(threads):
    run = python("import numpy as np; from mini_tf import ops; ops.relu(np.ones(3, np.float32))", NUMBA_NUM_THREADS=threads)
    assert run.stderr.splitlines()[-1] == (
        f"mini_tf.errors.UserError: NUMBA_NUM_THREADS is {threads}, expected at least 1; without it, all cores are used"
    )


@pytest.mark.parametrize(("value", "twins"), [("1", "False False"), ("0", "True True"), ("", "True True")])
def test_without_machine_code_the_formulas_run(value, twins):
    code = """
import numpy as np
from mini_tf import kernels, ops
first = kernels.twin_of(ops.softmax) is not None
with kernels.with_twins(even_if_edited=True):
    print(first, kernels.twin_of(ops.softmax) is not None)
assert ops.softmax(np.ones((2, 4), np.float32))[0].sum() == 2
"""
    run = python(code, NUMBA_DISABLE_JIT=value)
    assert run.stdout.strip() == twins, run.stderr


DAMAGE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import numpy as np
from written import add
from mini_tf.kernels.compiling import Loop

def added():
    y = np.ones(3, np.float32)
    loop = Loop(add, "void(f4[::1], f4)")
    compiled = loop.compile()
    loop(y, 2)
    assert y.tolist() == [3, 3, 3]
    return compiled

assert added()
assert not added()
cache = Path(sys.argv[1]) / "__pycache__"
flip = lambda data: bytes(byte ^ 16 * (place % 97 == 5) for place, byte in enumerate(data))
no_code = lambda data: data[: len(data) // 3] + bytes(len(data) // 3) + data[2 * len(data) // 3 :]
found = sorted(cache.glob("written.add*"))
assert [path.suffix for path in found] == [".nbc", ".nbi", ".sums"]
for path in found:
    for damage in (flip, no_code, lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"{}"):
        right = path.read_bytes()
        path.write_bytes(damage(right))
        assert added(), path
        assert not added(), path
    path.unlink()
    assert added() and not added(), path
print("all right")
"""


@pytest.mark.exhaustive
def test_a_damaged_cache_is_compiled_again(tmp_path):
    """Machine code with wrong bytes would end Python by a signal."""
    (tmp_path / "written.py").write_text("def add(y, x):\n    for i in range(y.size):\n        y[i] += x\n")
    run = subprocess.run([sys.executable, "-c", DAMAGE, tmp_path], capture_output=True, text=True)
    assert run.stdout == "all right\n", (run.returncode, run.stderr[-2000:])


IMPORTED = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from loop import double
compiled, y = double.compile(), np.ones(1, np.float32)
double(y)
print(compiled, y[0])
"""


def test_an_edit_of_an_imported_function_shows(tmp_path):
    """Numba itself would go on with the old machine code."""
    (tmp_path / "loop.py").write_text("from mini_tf.kernels.compiling import compiled\nfrom function import f\n\n"
                                      "@compiled('void(f4[::1])')\ndef double(y):\n    y[0] = f(y[0])\n")
    said = []
    for factor in (2, 2, 3, 3):
        (tmp_path / "function.py").write_text(f"from numba import njit\n\n@njit\ndef f(x):\n    return {factor} * x\n")
        run = subprocess.run([sys.executable, "-B", "-c", IMPORTED, tmp_path], capture_output=True, text=True)
        said.append(run.stdout.strip() or run.stderr)
    assert said == ["True 2.0", "False 2.0", "True 3.0", "False 3.0"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    code = "import numpy as np; from mini_tf import ops; print(ops.gelu(np.zeros(3, np.float32))[0].tolist())"
    run = python(code, NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert run.stdout == "[0.0, 0.0, 0.0]\n", run.stderr

"""Without Numba everything works, slower, and one warning says so."""

import os
import subprocess
import sys
from pathlib import Path

import mini_tf
from mini_tf.text.cooccurrence import cooccurrence

import numpy as np
import pytest

ROOT = Path(mini_tf.__file__).parent.parent
ABSENT = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"


def without_numba(code, **environment):
    """(stdout, stderr) of Python code in a process that has no Numba."""
    done = subprocess.run([sys.executable, "-c", ABSENT + code], capture_output=True, encoding="utf-8", check=True,
                          env=os.environ | {"PYTHONPATH": str(ROOT)} | environment)  # fmt: skip
    return done.stdout.strip(), done.stderr.strip()


CODE = """
import numpy as np
from mini_tf import kernels, ops
from mini_tf.kernels import threads
x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
for _ in range(3):
    y, backward = ops.softmax(x)
    dx = backward(x)
print(ops.softmax.implementation((x,), {}) is ops.softmax.formula, kernels.switched_on(), threads.thread_count() >= 1)
"""


def test_the_formulas_run_and_one_warning_says_so():
    out, err = without_numba(CODE)
    assert out == "True False True"
    assert err.count("WithoutNumba: Numba is not installed: the formulas run without their faster twins") == 1


def test_a_broken_numba_is_as_good_as_none(tmp_path):
    (tmp_path / "numba.py").write_text("raise OSError('Could not find/load shared object file')\n")
    done = subprocess.run([sys.executable, "-c", "import sys\n" + CODE], capture_output=True, encoding="utf-8", check=True,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})  # fmt: skip
    assert done.stdout.strip() == "True False True"
    assert "WithoutNumba: Numba cannot be loaded (Could not find/load shared object file): the formulas" in done.stderr


def test_the_twins_for_a_gpu_need_no_numba():
    code = "from mini_tf import kernels, ops; print(kernels.twin_of(ops.softmax, 'cupy').__module__)"
    assert without_numba(code) == ("mini_tf.kernels.gpu", "")


def test_who_switched_the_twins_off_is_not_warned():
    out, err = without_numba(CODE, MINI_TF_KERNELS="off", NUMBA_NUM_THREADS="3")
    assert out == "True False True"
    assert err == ""


def test_the_import_alone_says_nothing():
    assert without_numba("import mini_tf.ops, mini_tf.models, mini_tf.text, mini_tf.training, mini_tf.cli") == ("", "")


TRAIN = """
sys.argv = ["mini-tf", "train", "--corpus", "corpus.txt", "--run", "run", "--steps", "4", "--set", "n=8", "--set", "T=8"]
from mini_tf.cli import main
main()
"""


@pytest.mark.exhaustive
def test_a_training_gives_the_same_losses_and_one_note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "the fat cat ate a rat and then my lord said good morrow to his dear father , . ! \n".split(" ")
    order = np.random.default_rng(0).integers(0, len(words), 900)
    Path("corpus.txt").write_text(" ".join(words[i] for i in order), encoding="utf-8")
    out, err = without_numba(TRAIN)
    assert err == "note: Numba is not installed: the formulas run without their faster twins; try pip install --upgrade numba"
    with_it = subprocess.run([sys.executable, "-m", "mini_tf", "train", "--corpus", "corpus.txt", "--run", "other", "--steps", "4",
                              "--set", "n=8", "--set", "T=8"], capture_output=True, encoding="utf-8", check=True,
                             env=os.environ | {"PYTHONPATH": str(ROOT)}).stdout  # fmt: skip

    def losses(text):
        return [line for line in text.splitlines() if line.startswith(("step", "model", "guessing by word frequency"))]

    assert len(losses(out)) == 5
    assert losses(out) == losses(with_it)


def test_nothing_is_bound_where_nothing_can_be_compared():
    code = "from mini_tf.gradcheck.command import bind_twins\nfrom mini_tf.errors import UserError\ntry:\n    bind_twins(0)\n" \
           "except UserError as error:\n    print(error)"  # fmt: skip
    assert without_numba(code)[0] == "Numba cannot be loaded, so the twins cannot run, and nothing was compared or bound"


@pytest.mark.parametrize(("words", "size", "window"), [(0, 5, 4), (1, 1, 2), (7, 3, 2), (500, 20, 10), (500, 20, 2000)])
def test_co_occurrences_are_counted_alike(monkeypatch, words, size, window):
    ids = np.random.default_rng(words).integers(0, size, words)
    compiled = cooccurrence(ids, size, window)
    monkeypatch.setattr(sys.modules[cooccurrence.__module__], "why_uncompiled", lambda: "a test")
    monkeypatch.setattr(sys.modules[cooccurrence.__module__], "BLOCK", 64)               # seams between blocks, too
    plain = cooccurrence(ids, size, window)
    assert plain.dtype == compiled.dtype
    assert np.array_equal(plain.toarray(), compiled.toarray())
    assert plain.has_sorted_indices

"""A failed `assert gradcheck(…)` shows the report whole; in other projects nothing changes."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import numpy as np
from mini_tf.gradcheck import gradcheck

def twice(x):
    return 2 * x, lambda dy: 3 * dy

def test_wrong():
    assert gradcheck(twice, np.ones((2, 3)) * np.arange(3))

def test_not_tested():
    assert gradcheck(lambda x: x * 2, np.ones(3), name="half a function")

def test_something_else():
    bool(gradcheck(twice, np.ones(3)))
    assert 1 == 2
"""


def test_the_words_are_shown_whole_and_only_where_they_belong(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    pytest = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mini_tf_pytest", "-p", "no:cacheprovider", tmp_path],
        capture_output=True, encoding="utf-8", cwd=tmp_path,
    )  # fmt: skip
    assert pytest.returncode == 1
    assert pytest.stdout.count("gradcheck -----") == 2
    sections = pytest.stdout.split("gradcheck -----")[1:]
    assert "FAIL: gradients of twice" in sections[0]
    assert "off by 50 %" in sections[0]
    assert "NOT TESTED: gradients of half a function" in sections[1]
    assert "expected one of these: y, backward = f(…)" in sections[1]
    assert "3 failed" in pytest.stdout


def test_where_nothing_is_checked_mini_tf_is_not_even_imported(tmp_path):
    (tmp_path / "test_other.py").write_text(
        "import os, sys\n"
        "def test_fails():\n"
        "    assert 'mini_tf_pytest' in sys.modules\n"
        "    assert 'mini_tf' not in sys.modules and 'numpy' not in sys.modules\n"
        "    assert 'OPENBLAS_THREAD_TIMEOUT' not in os.environ\n"
        "    assert 1 == 2\n",
        encoding="utf-8",
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    pytest = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mini_tf_pytest", "-p", "no:cacheprovider", tmp_path],
        capture_output=True, encoding="utf-8", cwd=tmp_path,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parent.parent)},
    )  # fmt: skip
    assert "1 failed" in pytest.stdout
    assert "assert 1 == 2" in pytest.stdout

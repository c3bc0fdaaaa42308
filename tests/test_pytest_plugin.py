"""A failed `assert gradcheck(…)` shows the report whole."""

import subprocess
import sys

TESTS = """
import numpy as np
from mini_tf.gradcheck import gradcheck

def twice(x):
    return 2 * x, lambda dy: 3 * dy

def test_wrong():
    assert gradcheck(twice, np.ones((2, 3)) * np.arange(3))

def test_something_else():
    gradcheck(twice, np.ones(3))
    assert 1 == 2
"""


def test_the_words_are_shown_whole_and_only_where_they_belong(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    pytest = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mini_tf.pytest_plugin", "-p", "no:cacheprovider", tmp_path],
        capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=100,
    )  # fmt: skip
    assert pytest.returncode == 1
    assert pytest.stdout.count("gradcheck -----") == 1
    assert "Everywhere 1.5 × too large" in pytest.stdout
    assert "2 failed" in pytest.stdout

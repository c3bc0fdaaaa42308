"""What is printed while long work is under way."""

import io
import os
import re
import subprocess
import sys

from mini_tf import kernels, progress
from mini_tf.progress import prepare_kernels

import pytest
from rich.console import Console

CODE = "from mini_tf.progress import prepare_kernels; prepare_kernels()"


@pytest.mark.exhaustive
def test_the_first_compilation_is_announced_and_later_runs_load_it(tmp_path):
    """Machine code is cached on disk: compiled once, then loaded. (Without the folder, every process compiles.)"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert re.fullmatch(r"compiling \d+ kernels: this takes about half a minute, on the first run only\n", first)
    assert second == ""


def test_nothing_is_compiled_where_the_kernels_are_off(monkeypatch):
    monkeypatch.setattr(kernels, "every_loop", lambda: pytest.fail("compiled"))
    with kernels.reference_only():
        prepare_kernels()


@pytest.mark.parametrize(("notebook", "widgets", "quiet", "seen"), [
    (False, True, False, False), (True, True, False, True), (True, False, False, False), (True, True, True, False),
])  # fmt: skip
def test_a_bar_is_seen_in_a_notebook_that_has_widgets(monkeypatch, notebook, widgets, quiet, seen):
    made = []

    class Bar(progress.Progress):
        def __init__(self, *columns, disable, **options):
            made.append(not disable)
            super().__init__(*columns, disable=True, **options)

    monkeypatch.setattr(progress, "Progress", Bar)
    monkeypatch.setattr(progress.console, "is_jupyter", notebook)
    monkeypatch.setattr(progress.console, "quiet", quiet)
    monkeypatch.setattr(progress, "find_spec", lambda name: name if widgets else None)
    with progress.progress_bar("training", 3) as update:
        update(1, "loss 1.0")
    assert made == [seen]


@pytest.mark.parametrize("even", [True, False])
def test_the_time_left_is_shown_once_it_is_known(monkeypatch, even):
    """Before that, there is no "-:--:-- left"; where steps take unequal times, there is never a time left."""
    bars, seconds = [], iter(range(1000))                # each look at the clock is a second later

    class Bar(progress.Progress):
        def __init__(self, *columns, disable, **options):
            super().__init__(*columns, disable=True, get_time=lambda: next(seconds), **options)
            bars.append(self)

    def shown():
        page = Console(width=100, file=io.StringIO())
        page.print(bars[0].make_tasks_table(bars[0].tasks))
        return page.file.getvalue()

    monkeypatch.setattr(progress, "Progress", Bar)
    with progress.progress_bar("training", 9, even) as update:
        before = shown()
        for done in range(4):
            update(done, "loss 1.0")
        after = shown()
    assert "training" in before
    assert "-:--" not in before + after
    assert "left" not in before
    assert bool(re.search(r"· 0:00:\d\d left", after)) == even
    assert "left" in after or not even

"""What the labs expect is held by expect(…): its marks, its words, and that no claim is left without one."""

import json
import os
import re
import subprocess
import sys

import _expect
from _expect import about, above, at_least, at_most, below, between, expect
from tests.reader import LABS

import numpy as np
import pytest
from render import cells

PATHS = sorted(LABS.glob("[01]*.py"))


@pytest.fixture
def records(monkeypatch):
    monkeypatch.setattr(_expect, "records", [])
    monkeypatch.setattr(_expect, "QUICK", False)
    monkeypatch.delattr(sys, "last_value", raising=False)          # pytest sets it when a test has failed
    return _expect.records


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_no_expectation_without_its_check(path):
    """After a cell that says "Expect", one of the code cells up to the next that says it calls expect(…)."""
    waiting, unchecked = None, []
    for kind, start, cell in cells(path.read_text(encoding="utf-8")):
        if kind == "markdown" and re.search(r"\*\*[Ee]xpect", cell):
            unchecked += [waiting] if waiting else []
            waiting = start
        elif kind == "code" and re.search(r"\bexpect\(", cell):
            waiting = None
    unchecked += [waiting] if waiting else []
    assert unchecked == [], "Markdown cells, by their first line"


@pytest.mark.parametrize(("expected", "measured", "met"), [
    (3, 3, True), (3, 4, False), ("a", "a", True), ("a", "b", False), (True, np.bool_(True), True), (True, False, False),
    (about(5.46, within=0.05), 5.5, True), (about(5.46, within=0.05), 5.52, False), (about(1, 0.1), float("nan"), False),
    (above(0), 0, False), (above(0), 1e-9, True), (below(1), 1, False), (below(1), 0.9, True),
    (at_least(2), 2, True), (at_least(2), 1.9, False), (at_most(0), np.float32(0), True), (at_most(0), 1e-30, False),
    (between(1, 2), 2, True), (between(1, 2), 2.1, False), (below(1), float("nan"), False),
])  # fmt: skip
def test_marks(records, capsys, expected, measured, met):
    expect("what", expected, measured)
    assert records[0].mark == ("✓" if met else "✗")
    assert ("← not met" in capsys.readouterr().out) == (not met)


def test_words(records, capsys):
    expect("share", about(0.043, within=0.001), 0.0432, form="{:.1%}")
    expect("words", 14_295, 14_295)
    expect("loss", below(9), np.float32(8.5))
    expect("symmetric", True, np.bool_(True))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "✓ share expected 4.3% ± 0.1% measured 4.3%", "✓ words expected 14,295 measured 14,295",
        "✓ loss expected below 9 measured 8.5", "✓ symmetric expected yes measured yes",
    ]  # fmt: skip


def test_quick_has_bands_of_its_own(records, monkeypatch, capsys):
    monkeypatch.setattr(_expect, "QUICK", True)
    expect("same", 1, 1)
    expect("other", 1, 7, quick=above(5))
    expect("too short", 1, 7, quick=None)
    assert [record.mark for record in records] == ["✓", "✓", "·"]
    _expect.summary()
    assert "All 2 expectations met." in capsys.readouterr().out


def test_the_last_line_names_what_was_missed(records, capsys):
    expect("good", 1, 1)
    expect("bad", 1, 2)
    _expect.summary()
    assert "1 of 2 expectations not met: bad" in capsys.readouterr().out


@pytest.mark.parametrize(("measured", "last"), [(1, "2 met, 0 missed"), (2, "1 met, 1 missed: b")])
def test_a_lab_that_crashes_does_not_say_that_all_is_well(tmp_path, measured, last):
    lab = tmp_path / "lab.py"
    lab.write_text(f"from _expect import expect\nexpect('a', 1, 1)\nexpect('b', 1, {measured})\n1 / 0\n", encoding="utf-8")
    run = subprocess.run([sys.executable, lab], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(LABS)})
    assert run.returncode == 1
    assert "ZeroDivisionError" in run.stderr
    assert run.stdout.splitlines()[-1] == f"Stopped early, by an error. Expectations so far: {last}"


def test_records_are_kept_for_the_bench(records, monkeypatch, tmp_path):
    monkeypatch.setenv("MINI_TF_EXPECTATIONS", str(tmp_path / "records"))
    expect("loss", about(1, 0.1), np.float32(1.05))
    record = json.loads((tmp_path / "records").read_text(encoding="utf-8"))
    assert record["what"] == "loss"
    assert record["value"] == pytest.approx(1.05)

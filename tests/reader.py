"""Running a lab as a reader would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LABS = Path(__file__).parent.parent / "labs"


def lab_output(name, figures):
    """A fixture: what labs/NAME.py prints with --quick, run once for a file of tests; its figures are made anew."""

    @pytest.fixture(scope="module")
    def output(tmp_path_factory):
        return run_lab(name, tmp_path_factory.mktemp("elsewhere"), figures)

    return output


def run_lab(name, folder, figures=()):
    """What labs/NAME.py prints with --quick, started in some other folder. Fails with its last words if it does, and
    with those of its expectations that are not met.

    figures: those that it has to draw anew, and say so.

    One thread for products of matrices: on a machine with other work, OpenBLAS's threads wait for each other.
    """
    paths = [LABS / "figures" / f"{figure}.png" for figure in figures]
    for path in paths:
        path.unlink(missing_ok=True)
    lab = subprocess.run(
        [sys.executable, LABS / f"{name}.py", "--quick"], cwd=folder,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert lab.returncode == 0, lab.stderr[-3000:]
    assert "✗" not in lab.stdout, [line for line in lab.stdout.splitlines() if "✗" in line]
    for path in paths:
        png = path.read_bytes()
        assert png.startswith(b"\x89PNG")
        assert len(png) > 10_000
        assert f"figures/{path.name}" in lab.stdout
    return lab.stdout

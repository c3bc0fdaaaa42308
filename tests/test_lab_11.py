"""Lab 11 runs as one process and under mpiexec, and finds what it expects."""

import os

from tests.parallel.mpi import ENVIRONMENT, needs_mpi, run
from tests.reader import LABS, lab_output

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]
alone = lab_output("11_many_machines", ["11_ring", "11_memory"])


def look(output, expectations):
    """What the lab says, however many processes there are"""
    assert f"All {expectations} expectations met." in output
    assert output.count("the checker's verdict ") == 2
    assert "after step 6: process 0 has" + " 1.111" * 8 in output


def test_as_one_process(alone):
    look(alone, 11)
    assert "of which the processes take 15\n" in alone


@needs_mpi
@pytest.mark.exhaustive
def test_under_mpiexec(tmp_path):
    code, output, err = run(2, LABS / "11_many_machines.py", "--quick", cwd=tmp_path,
                            env=ENVIRONMENT | {"PYTHONIOENCODING": "utf-8", "PATH": os.environ["PATH"]})  # fmt: skip
    assert (code, err) == (0, "")
    look(output, 12)
    assert output.count("2. The ring") == 1              # the first process speaks
    assert "of which the processes take 7 8\n" in output
    assert "MPI, N = 2: difference from Allreduce" in output

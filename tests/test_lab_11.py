"""Lab 11 runs as one process and under mpiexec, and finds what it expects."""

import os
import re

from tests.parallel.mpi import ENVIRONMENT, needs_mpi, run
from tests.reader import LABS, lab_output

import pytest

pytestmark = pytest.mark.lab
alone = lab_output("11_many_machines", ["11_ring", "11_memory"])


def look(output, processes):
    """What the lab says, however many processes there are"""
    weighted, plain = re.findall(r"loss ([\d.]+)   the whole batch's ([\d.]+) .* gradcheck: (\w+)", output)
    assert weighted[0] == weighted[1]
    assert plain[0] != plain[1]
    assert weighted[2] == plain[2] == "PASS"
    assert "after step 6: process 0 has" + " 1.111" * 8 in output
    assert float(re.search(r"from the sum 1.111 on any of them: (\S+)", output)[1]) < 1e-12
    assert float(re.search(r"largest difference in 10 steps: (\S+)", output)[1]) < 1e-12
    assert f"= {2 / processes:.3f} p, expected 2/N = {2 / processes:.3f}" in output


def test_as_one_process(alone):
    look(alone, 1)
    assert "largest difference in 10 steps: 0.0e+00" in alone


@needs_mpi
def test_under_mpiexec(tmp_path):
    code, output, err = run(2, LABS / "11_many_machines.py", "--quick", cwd=tmp_path,
                            env=ENVIRONMENT | {"PYTHONIOENCODING": "utf-8", "PATH": os.environ["PATH"]})  # fmt: skip
    assert (code, err) == (0, "")
    look(output, 2)
    assert output.count("2. The ring") == 1              # the first process speaks
    assert float(re.search(r"largest difference from Allreduce (\S+)", output)[1]) < 1e-12

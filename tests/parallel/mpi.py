"""Starting several processes, for tests; they skip where there is no MPI."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(
    not (MPIEXEC and find_spec("mpi4py")), reason="needs mpi4py and mpiexec: pip install 'mini-tf[mpi]'"
)
# Open MPI refuses more processes than cores, and the superuser, unless told otherwise; MPICH does not look at these.
ENVIRONMENT = os.environ | {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "MPLBACKEND": "Agg",
}  # fmt: skip
ROOT = Path(__file__).parents[2]


def start(n, *command, **options):
    """The Popen of n processes that run a command of Python."""
    return subprocess.Popen(
        [MPIEXEC, "-n", str(n), sys.executable, *map(str, command)], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **{"cwd": ROOT, "env": ENVIRONMENT} | options,
    )  # fmt: skip


def run(n, *command, timeout=1000, **options):
    """(exit code, stdout, stderr) of n processes; they are killed if they hang."""
    processes = start(n, *command, **options)
    try:
        out, err = processes.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        processes.kill()
        out, err = processes.communicate()
        pytest.fail(f"{command} hung for {timeout} s: {out}{err}")
    return processes.returncode, out, err


def work(n, task, folder, *options):
    """n processes do a task of `worker.py`, without an error."""
    code, out, err = run(n, "-m", "tests.parallel.worker", task, folder, *options)
    assert code == 0, out + err

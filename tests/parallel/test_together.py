"""Several processes begin, speak and end together."""

import json
import signal
import subprocess
import sys
import time

from tests import tiny
from tests.cases import cases
from tests.parallel.mpi import ENVIRONMENT, MPIEXEC, ROOT, needs_mpi, run, start

import pytest

pytestmark = needs_mpi
KILLED = 9                           # rarely, mpiexec gives the signal with which it ended the other processes
TEXT = "To be, or not to be, that is the question:\nwhether 'tis nobler in the mind to suffer\n" * 60


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def train(n, corpus, *options):
    return run(n, "-m", "mini_tf", "train", "--preset", "window", "--corpus", corpus, "--steps", 4, *options)


@pytest.mark.parametrize(("how", "code", "message"), cases([("raises", 1, "process 1: Traceback")], [
    ("exits", 3, "process 1: ended with exit code 3, while the others went on"), ("killed", None, ""),
    ("leaves", 1, "process 1: ended with exit code 1, while the others went on"),
]))  # fmt: skip
def test_one_ends_all_in_the_middle_of_a_step(how, code, message, tmp_path):
    found, _, err = run(3, "-m", "tests.parallel.worker", "fails", tmp_path, how, 1)
    assert found != 0, err
    assert found in (code, KILLED) or code is None, err
    assert message in err
    assert err.count("process 1: ") == bool(message)
    tiny.train("quick", tmp_path / "run", every=2)       # what was kept goes on
    assert json.loads((tmp_path / "run" / "results.json").read_text())["steps"] == 12


def test_only_rank_0_writes_and_prints(corpus, tmp_path):
    code, out, err = train(3, corpus, "--run", tmp_path / "run")
    assert (code, err) == (0, "")
    assert out.count("training finished") == out.count("Saved in") == 1
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["machine"]["processes"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "run"]


@pytest.mark.parametrize(("options", "message"), cases([(["--preset", "nope"], "preset 'nope' is unknown")], [
    (["--presett", "quick"], "No such option"),
    (["--run", "full"], "the folder full is not empty"), (["--resume", "none"], "there is no folder none"),
    (["--preset", "pointer", "--set", "batch=2", "--corpus", "corpus.txt", "--run", "new"],
     "a batch has 2 rows, too few for 3 processes"),
]))  # fmt: skip
def test_what_is_wrong_is_said_once(options, message, corpus, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    environment = ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
    n = 3 if "3 processes" in message else 2
    code, out, err = run(n, "-m", "mini_tf", "train", *options, cwd=tmp_path, env=environment)
    assert code == 2
    assert (out + err).count(message) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("changed", "message"), cases([
    ("--seed 1", "process 1 has another settings than process 0: seed is 1 instead of 0"),
], [
    ("--steps 9", "process 1 has another settings than process 0: steps is 9 instead of 4"),
    ("--corpus other.txt", "process 1 has another data than process 0"),
    ("--no-sharded", "process 1 has another sharded than process 0: False instead of True"),
    ("--help", "process 1: ended, while the others went on"),
    ("--corpus nowhere.txt", "process 1: error: there is no file nowhere.txt"),
]))  # fmt: skip
def test_processes_that_differ(changed, message, corpus, tmp_path):
    (tmp_path / "other.txt").write_text(TEXT + "And more.\n", encoding="utf-8")
    command = f"{sys.executable} -m mini_tf train --corpus corpus.txt --steps 4 --run run"
    shell = f'if [ "${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" = 1 ]; then exec {command} {changed}; else exec {command}; fi'
    done = subprocess.run([MPIEXEC, "-n", "2", "sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True,
                          env=ENVIRONMENT | {"PYTHONPATH": str(ROOT)}, check=False)  # fmt: skip
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count(message) == 1
    assert not (tmp_path / "run").exists()


def test_other_commands_want_one_process():
    code, out, err = run(2, "-m", "mini_tf", "generate", "runs/none")
    assert (code, out) == (2, "")
    assert err.count("mini-tf generate runs on one process, and mpiexec started 2") == 1


@pytest.mark.exhaustive
def test_ctrl_c_keeps_the_run(corpus, tmp_path):
    """Here a signal to mpiexec, which hands it on. Open MPI kills soon after: then the last measurement is what is kept."""
    folder = tmp_path / "run"
    command = ("-m", "mini_tf", "train", "--preset", "window", "--corpus", corpus, "--steps", 100_000, "--run", folder)
    processes = start(2, *command, start_new_session=True)
    while not list(folder.glob("state/*")):
        assert processes.poll() is None, processes.communicate()
        time.sleep(0.05)
    processes.send_signal(signal.SIGINT)
    out, err = processes.communicate()
    step = max(int(path.stem[5:]) for path in folder.glob("state/*"))
    assert step >= 100
    if "Sending Ctrl-C" in out + err:                    # MPICH
        assert processes.returncode == 0
        assert out.count("interrupted: keeping the best model so far") == 1
        assert json.loads((folder / "results.json").read_text())["steps"] == step      # that of the signal


def test_a_script_that_fails_ends_all(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from mini_tf.parallel import join\ngroup = join()\nif group.rank == 1:\n    raise ValueError('no')\n"
                      "group.sum([1])\n")  # fmt: skip
    code, _, err = run(2, script, env=ENVIRONMENT | {"PYTHONPATH": str(ROOT)})
    assert code == 1
    assert err.count("ValueError: no") == 1


def test_without_mpi4py(tmp_path):
    """mpiexec starts processes that cannot find each other."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("raise ImportError('not here')")
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    code, out, err = run(2, "-m", "mini_tf", "train", env=environment)
    assert (code, out) == (2, "")
    assert err.count("mpi4py cannot be loaded (not here). Try pip install 'mini-tf[mpi]'") == 1


def test_without_mpiexec_nothing_is_imported():
    code = ("import sys, mini_tf.cli\nfrom mini_tf.parallel import join\nfrom mini_tf.training.language import prepare\n"
            "from mini_tf.parallel import SINGLE\nassert join() is SINGLE and join(True) is SINGLE\nassert 'mpi4py' not in sys.modules\n")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

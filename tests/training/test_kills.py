"""A training that is killed again and again, at any moment: it goes on, and ends as if nothing had been."""

import multiprocessing
import random
import shutil
import time

from mini_tf.training.archive import read_archive
from mini_tf.training.run import Run
from tests import tiny
from tests.cases import cases

import pytest


def live(name, folder, rescue):
    """What a process does that is about to be killed; it starts the training or goes on with it."""
    tiny.train(name, folder, rescue=rescue, steps=60, every=2)


def wait_for_a_state(process, run):
    """Until the process has written a state of its training, or ended"""
    before = Run(run).states() if run.exists() else []
    while process.is_alive() and not (run.exists() and Run(run).states() not in ([], before)):
        time.sleep(0.005)


@pytest.mark.parametrize("most", cases([8], [24]))
def test_a_training_survives_being_killed_at_any_moment(most, tmp_path):
    """SIGKILL, SIGTERM, and a folder that vanishes as if its disk were pulled out, at random times, many times in a row.

    Every other time the clock starts with the process, and the kill may come before anything is trained; in between it
    starts with the process's first state, so that on a machine of any speed many trainings are killed on their way.
    """
    tiny.train("quick", tmp_path / "whole", steps=60, every=2)
    expected = tiny.contents(tmp_path / "whole")
    start = time.perf_counter()
    tiny.train("quick", tmp_path / "again", steps=60, every=2)
    longest = time.perf_counter() - start                # that of a process that has its kernels already
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.tiny", "tests.prepared", "mini_tf.training.figures"])
    rng, kills, finished, went_on = random.Random(0), 0, 0, 0
    run, away = tmp_path / "run", tmp_path / "away"
    while kills < most or run.exists():
        process = processes.Process(target=live, args=("quick", run, tmp_path / "rescue" / str(kills)))
        process.start()
        how = None
        if kills == most:
            process.join()
        elif kills % 2:
            wait_for_a_state(process, run)
            process.join(rng.uniform(0, longest))
        else:
            process.join(rng.uniform(0.02, longest))
        if process.is_alive():
            how = ("kill", "terminate", "pull")[kills % 3]
            kills += 1
            if how == "pull" and run.exists():
                run.rename(away)
                process.join()
                shutil.rmtree(run, ignore_errors=True)   # of a process that found no folder, and began a new one
                away.rename(run)
            else:
                process.terminate() if how == "terminate" else process.kill()
                process.join()
        for path in run.glob("**/[!.]*.safetensors"):
            read_archive(path, "training" if path.parent.name == "state" else "model")
        if process.exitcode == 0 and how != "pull":
            assert tiny.contents(run) == expected
            finished += 1
            run.rename(tmp_path / f"done-{finished}")
        elif run.exists() and Run(run).states():
            went_on += 1
    rescued = list((tmp_path / "rescue").glob("*"))
    for folder in rescued:                               # what was in memory when the disk was pulled out goes on, too
        live("quick", folder, None)
        found = tiny.contents(folder)
        assert found == {name: content for name, content in expected.items() if name in found}
        assert {"model.safetensors", "metrics.csv", "results.json", "sample.txt"} <= set(found)
    assert went_on > most / 3
    assert finished >= 1
    assert rescued

"""A disk that is full, read-only or gone: the run says so, and what was learned is not lost."""

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.training.run import Run
from mini_tf.training.step import Training
from tests import tiny

import pytest


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """failing("metrics.csv", 2): from the second time on, that file of the folder `run` cannot be written"""
    replace = Path.replace

    def fail(name, time):
        seen = []

        def replaced(self, to):
            if to.match(name) and "run" in [parent.name for parent in to.parents]:
                seen.append(to)
                if len(seen) >= time:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return replace(self, to)

        monkeypatch.setattr(Path, "replace", replaced)

    return fail


@pytest.mark.parametrize(
    ("name", "time", "step"),
    [("metrics.csv", 2, 6), ("model.safetensors", 1, 3), ("state/step-6.safetensors", 1, 6), ("results.json", 1, 12),
     ("curves.png", 1, 12), ("sample.txt", 1, 12), ("moments/step-1.safetensors", 1, 1)],
)  # fmt: skip
def test_what_is_in_memory_is_rescued_and_goes_on(name, time, step, failing, tmp_path, monkeypatch):
    tiny.train("gpt", tmp_path / "whole")
    with monkeypatch.context():
        failing(name, time)
        with pytest.raises(UserError) as error:
            tiny.train("gpt", tmp_path / "run", rescue=tmp_path / "rescue")
        message = str(error.value)
    monkeypatch.undo()
    assert f"{os.path.basename(name)} cannot be written: No space left on device; " in message
    assert f"What was in memory, of step {step}, is now in {tmp_path / 'rescue'}: go on with " in message
    states = [number for number, _ in Run(tmp_path / "run").states()]
    assert f"the last state there is that of step {states[-1]}" in message if states else "no state is there" in message
    expected = tiny.contents(tmp_path / "whole")
    for folder in ("rescue", "run"):                     # the rescued folder goes on, and so does the old one, with room
        tiny.train("gpt", tmp_path / folder)
        found = tiny.contents(tmp_path / folder)
        assert found == {name: expected[name] for name in found}
        assert set(expected) - set(found) <= {"moments/step-0.safetensors", "moments/step-1.safetensors"}


def test_a_moment_that_cannot_be_written_does_not_cost_its_step_the_measurement(failing, tmp_path, monkeypatch):
    tiny.train("gpt", tmp_path / "whole", every=1)
    with monkeypatch.context():
        failing("moments/step-1.safetensors", 1)
        with pytest.raises(UserError, match="What was in memory, of step 1"):
            tiny.train("gpt", tmp_path / "run", rescue=tmp_path / "rescue", every=1)
    monkeypatch.undo()
    tiny.train("gpt", tmp_path / "rescue", every=1)
    assert tiny.contents(tmp_path / "rescue")["metrics.csv"] == tiny.contents(tmp_path / "whole")["metrics.csv"]


def test_without_a_folder_for_it_the_rescue_goes_to_a_temporary_one(failing, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    failing("metrics.csv", 3)
    with pytest.raises(UserError) as error:
        tiny.train("classify", tmp_path / "run")
    folder = re.search(r"is now in (\S+): go on", str(error.value))[1]
    assert folder.startswith(str(tmp_path / "mini-tf-rescue-"))
    assert Run(folder).states()[-1][0] == 9


def full_disk(**_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_rescue_that_fails_says_what_is_lost(failing, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    failing("metrics.csv", 2)
    with pytest.raises(UserError, match=r"of step 6, is now in .*mini-tf-rescue-"):
        tiny.train("fill", tmp_path / "other" / "run", rescue=tmp_path / "file")
    monkeypatch.setattr("tempfile.mkdtemp", full_disk)
    with pytest.raises(UserError, match=r"no state is there. What was in memory, of step 3, is lost: .*No space left on "
                                        r"device. Make room, and go on with"):  # fmt: skip
        tiny.train("fill", tmp_path / "run", rescue=tmp_path / "file")


@pytest.fixture
def disk(tmp_path):
    """disk(size) → a folder with a file system of its own, of that many bytes; skipped where it cannot be mounted"""
    mounted = []

    def mount(size, *options):
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("file systems cannot be mounted here")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@pytest.mark.exhaustive
def test_a_real_disk_that_is_full(disk, tmp_path):
    """Of every size from too small for anything to large enough."""
    tiny.train("window", tmp_path / "whole", pictures=True)
    expected = tiny.contents(tmp_path / "whole")
    needed = sum(path.stat().st_size for path in (tmp_path / "whole").rglob("*") if path.is_file())
    rescued = 0
    for part in (0.1, 0.25, 0.4, 0.6, 0.8, 0.95):
        run = disk(int(needed * part) // 4096 * 4096) / "run"
        rescue = tmp_path / f"rescue-{part}"
        with pytest.raises(UserError, match="No space left on device"):
            tiny.train("window", run, rescue=rescue, pictures=True)
        for path in run.rglob("*.safetensors"):
            assert path.stat().st_size > 0
        assert not list(run.rglob(".part-*"))
        if rescue.exists():
            rescued += 1
            tiny.train("window", rescue, pictures=True)
            found = tiny.contents(rescue)
            assert found == {name: expected[name] for name in found}
            assert "sample.txt" in found
    assert rescued >= 3


def test_a_disk_that_is_pulled_out(disk, tmp_path, monkeypatch):
    folder, one_step = disk("20m"), Training.one_step

    def step(self, **options):
        if self.step == 7:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return one_step(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "one_step", step)
        with pytest.raises(UserError, match=r"run has vanished; no state is there. What was in memory, of step 9, is now"):
            tiny.train("recurrent", folder / "run", rescue=tmp_path / "rescue")
    assert os.listdir(folder) == []                      # nothing was written to what lies below the mount point
    tiny.train("recurrent", tmp_path / "whole")
    tiny.train("recurrent", tmp_path / "rescue")
    found, expected = tiny.contents(tmp_path / "rescue"), tiny.contents(tmp_path / "whole")
    assert found == {name: expected[name] for name in found}


def test_a_read_only_disk_is_said_at_once(disk):
    with pytest.raises(UserError, match="run cannot be made: Read-only file system; choose another --run"):
        Run.new(disk("1m", "ro") / "run")

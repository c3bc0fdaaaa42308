"""Files are whole or not there."""

import errno
import multiprocessing
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.files import FolderLock, NotWritten, replacing, sweep, write_text

import pytest


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "one\n")
    write_text(path, "two\n")
    assert path.read_bytes() == b"two\n"
    assert os.listdir(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(error), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_suffix_is_kept_and_the_file_is_readable_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        with replacing(tmp_path / "figure.png") as temporary:
            assert temporary.suffix == ".png"
            temporary.write_bytes(b"png")
    finally:
        os.umask(before)
    assert (tmp_path / "figure.png").stat().st_mode & 0o777 == 0o644


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Else a power cut leaves an empty file under the good name."""
    done, fsync, replace = [], os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: done.append(("flush", os.fstat(handle).st_ino)) or fsync(handle))
    monkeypatch.setattr(Path, "replace", lambda self, to: done.append("rename") or replace(self, to))
    write_text(tmp_path / "a.txt", "new")
    assert done[:2] == [("flush", (tmp_path / "a.txt").stat().st_ino), "rename"]
    if os.name == "posix":
        assert done[2:] == [("flush", tmp_path.stat().st_ino)]


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_one_sentence_and_the_old_file_stays(tmp_path, monkeypatch):
    write_text(tmp_path / "a.txt", "old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(NotWritten, match=r"a.txt cannot be written: No space left on device"):
        write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="has no pipes among its files")
def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "file", tmp_path / "link")
    for name, message in {"": "it is a folder", "x" * 256: "File name too long",
                          "pipe/a": "File exists"}.items():  # fmt: skip
        with pytest.raises(NotWritten, match=message):
            write_text(tmp_path / name, "text")
    write_text(tmp_path / "link", "text")                # what the link leads to is written, and the link stays
    assert (tmp_path / "file").read_text() == "text"
    assert (tmp_path / "link").is_symlink()
    write_text(tmp_path / ("x" * 251 + ".txt"), "the longest name")


@pytest.mark.skipif(os.name == "nt", reason="has no pipes among its files")
def test_pipes_and_devices_are_written_to_and_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    os.symlink(pipe, link)
    for name in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write_text(name, "some → text\n")
        assert os.read(reader, 100).decode("utf-8") == "some → text\n"
        os.close(reader)
    assert pipe.is_fifo()
    assert link.is_symlink()
    write_text("/dev/null", "text")
    assert Path("/dev/null").is_char_device()
    if Path("/dev/full").exists():
        with pytest.raises(NotWritten, match="/dev/full cannot be written: No space left on device"):
            write_text("/dev/full", "text")
    with pytest.raises(ValueError), replacing("/dev/null") as temporary:
        raise ValueError
    assert not temporary.exists()


TO_STANDARD_OUTPUT = """
import sys
from mini_tf.files import is_standard_output, replacing, write_text
print("before")
assert is_standard_output(sys.argv[1])
write_text(sys.argv[1], "written →\\n")
print("after")
"""


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_gets_the_text_between_what_is_printed(tmp_path, name):
    """Through a pipe, and into a file, which is not replaced, and of which nothing is lost."""
    run = partial(subprocess.run, [sys.executable, "-c", TO_STANDARD_OUTPUT, name], cwd=tmp_path, check=True,
                  env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)})  # fmt: skip
    assert run(stdout=subprocess.PIPE).stdout.decode("utf-8").split() == ["before", "written", "→", "after"]
    with open(tmp_path / "out.txt", "wb") as file:
        run(stdout=file)
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").split() == ["before", "written", "→", "after"]
    assert not (tmp_path / "-").exists()


def own_and_wait(folder, connection):
    with FolderLock(folder):
        connection.send("mine")
        connection.recv()


def test_one_process_owns_a_folder_and_a_killed_one_none(tmp_path):
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=own_and_wait, args=(tmp_path, there))
    other.start()
    assert here.recv() == "mine"
    with pytest.raises(UserError, match=rf"another process .process {other.pid}. is writing to .*; wait until it"):
        FolderLock(tmp_path)
    other.kill()
    other.join()
    assert (tmp_path / ".lock").exists()
    with FolderLock(tmp_path), pytest.raises(UserError, match=f"another process .process {os.getpid()}. is writing to"):
        FolderLock(tmp_path)                                    # nor does this process get it twice
    assert not (tmp_path / ".lock").exists()
    FolderLock(tmp_path).release()


def test_a_folder_that_vanishes_is_not_made_anew(tmp_path):
    folder = tmp_path / "disk" / "run"
    folder.mkdir(parents=True)
    with FolderLock(folder):
        write_text(folder / "state" / "a.txt", "text")
        (tmp_path / "disk").rename(tmp_path / "away")
        with pytest.raises(NotWritten, match=r"a.txt cannot be written: the folder .*run has vanished"):
            write_text(folder / "state" / "a.txt", "text")
        assert not (tmp_path / "disk").exists()


def test_sweeping_removes_what_killed_processes_left(tmp_path):
    (tmp_path / "state").mkdir()
    for name in (".part-1.csv", "state/.part-2.safetensors", "metrics.csv"):
        (tmp_path / name).write_text("half")
    sweep(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["metrics.csv", "state"]

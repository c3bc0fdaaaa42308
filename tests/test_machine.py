"""What the machine refuses: a full disk behind standard output, names that are too long, a folder that has gone."""

import subprocess
import sys
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.machine import OutOfMemory, memory_said, refusals_said
from tests.cases import cases

import pytest

LONG = "a" * 3000
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device without space")


def run(*arguments, cwd=None, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    done = subprocess.run([sys.executable, "-m", "mini_tf", *map(str, arguments)], cwd=cwd, text=True, **streams)
    return done.returncode, done.stdout, done.stderr


@FULL
@pytest.mark.parametrize("arguments", cases([["presets"]], [(["doctor"],), (["--help"],), (["presets", "quick"],)]), ids=str)
def test_a_full_disk_behind_standard_output_is_said_in_a_sentence(arguments):
    with open("/dev/full", "w") as full:
        code, _, err = run(*arguments, stdout=full)
        assert code == 2
        assert "No space left on device" in err
        assert len(err.splitlines()) == 1
        code, _, _ = run(*arguments, stdout=full, stderr=full)
        assert code == 2


@FULL
def test_a_training_is_kept_though_nothing_can_be_printed(corpus, tmp_path):
    with open("/dev/full", "w") as full:
        code, _, err = run("train", "--corpus", corpus, "--run", tmp_path / "run", "--steps", 2, "--set", "n=8", stdout=full)
    assert code == 2
    assert "everything else was done" in err
    assert (tmp_path / "run" / "results.json").exists()


@pytest.mark.exhaustive
def test_whoever_reads_the_beginning_only_ends_no_training(corpus, tmp_path):
    arguments = ["train", "--corpus", corpus, "--run", tmp_path / "run", "--steps", 2, "--set", "n=8"]
    training = subprocess.Popen([sys.executable, "-m", "mini_tf", *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)  # fmt: skip
    training.stdout.close()
    _, err = training.communicate()
    assert training.returncode == 128 + 13, err
    assert err == b""
    assert (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [["labs", LONG], ["explore", LONG], ["gradcheck", f"{LONG}.py::f"], ["train", "--rescue", LONG], ["train", "--run", LONG],
     ["train", "--corpus", LONG], ["compare", "--run", LONG, "--steps", 1], ["compare", "--run", "/proc/nix", "--steps", 1],
     ["train", "--rescue", f"{__file__}/x"]],
    ids=lambda arguments: " ".join(map(str, arguments))[:20],
)  # fmt: skip
def test_a_name_that_cannot_be_is_refused(command, arguments, corpus):
    if arguments[0] == "compare":
        arguments = [*arguments, "--corpus", corpus]
    code, _, err = command(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_the_sentence_names_what_was_refused():
    with pytest.raises(UserError, match=r"^/nix/x cannot be used: No such file or directory"), refusals_said():
        Path("/nix/x").read_text()
    with pytest.raises(UserError, match=r"^the operating system refuses: No such file .* working directory that exists"), \
            refusals_said():  # fmt: skip
        raise FileNotFoundError(2, "No such file or directory")
    with pytest.raises(OutOfMemory, match=r"^the memory is full: Unable to allocate 9 GiB; .* smaller sizes$"), memory_said():
        raise MemoryError("Unable to allocate 9 GiB")


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "SOURCE_DATE_EPOCH"])
def test_an_environment_variable_that_is_no_number_is_named(command, monkeypatch, name):
    monkeypatch.setenv(name, "x")
    code, _, err = command("presets")
    assert code == 2
    assert f"{name} is 'x', expected a whole number" in err

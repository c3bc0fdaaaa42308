"""mini-tf train --resume and mini-tf doctor RUN, as a user types them; and the real program, stopped by signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from mini_tf.errors import Terminated
from mini_tf.files import FolderLock
from mini_tf.training.registry import PRESETS
from mini_tf.training.step import Training
from tests import tiny
from tests.cases import cases

import pytest

SOURCES = {"classify": "--table", "translate": "--pairs"}


@pytest.fixture
def mini_tf(command, monkeypatch, tmp_path):
    """mini_tf("train", …) → (exit code, stdout, stderr), in a folder with texts to learn from, with tiny presets"""
    for name in PRESETS:
        monkeypatch.setitem(PRESETS, name, tiny.preset(name))
    (tmp_path / "corpus").write_text("\n".join(tiny.lines(160)))
    (tmp_path / "pairs").write_text("\n".join(f"{english}\t{french}" for french, english in tiny.pairs()))
    rows = [f"{'even' if i % 2 else 'odd'},{line}" for i, line in enumerate(tiny.lines())]
    (tmp_path / "table").write_text("\n".join(["kind,words", *rows]))
    monkeypatch.chdir(tmp_path)
    return command


def source(name):
    option = SOURCES.get(name, "--corpus")
    return [option, option[2:], *(["--text", "words", "--label", "kind"] if option == "--table" else [])]


def stop_in(step, monkeypatch, number=signal.SIGTERM):
    one_step = Training.one_step

    def stops(self, **options):
        if self.step + 1 == step:
            os.kill(os.getpid(), number)
        return one_step(self, **options)

    monkeypatch.setattr(Training, "one_step", stops)


@pytest.mark.parametrize("name", cases(["quick"], ["classify", "translate", "fill"]))
def test_train_and_resume(name, mini_tf, monkeypatch, tmp_path):
    train = ["train", "--preset", name, *source(name), "--device", "cpu", "--seed", "3"]
    assert mini_tf(*train, "--run", "whole")[0] == 0
    with monkeypatch.context() as patch:
        stop_in(8, patch)
        code, out, err = mini_tf(*train, "--run", "run")
    assert code == 143
    assert "terminated: the training is saved, and goes on with: mini-tf train --resume run" in err
    code, out, err = mini_tf("doctor", "run")
    assert code == 0
    assert "saved up to step 8 of 12; if it no longer runs, go on with: mini-tf train --resume run" in " ".join(out.split())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")            # the text is found from any folder
    code, out, err = mini_tf("train", "--resume", "../run")
    assert code == 0, err
    assert "going on after step 8" in out
    assert tiny.contents("../run") == tiny.contents("../whole")
    code, out, err = mini_tf("train", "--resume", "../run")
    assert code == 0
    assert "is finished: there is nothing to resume" in err
    assert mini_tf("doctor", "../run")[0] == 0


def test_ctrl_c_can_be_gone_on_with(mini_tf, monkeypatch):
    with monkeypatch.context() as patch:
        stop_in(5, patch, signal.SIGINT)
        code, out, _ = mini_tf("train", *source("quick"), "--run", "run")
    assert code == 0
    assert "mini-tf train --resume run" in out
    assert json.loads(Path("run/results.json").read_text())["stopped"] == "interrupted"
    assert mini_tf("generate", "run", "--words", "3")[0] == 0
    assert mini_tf("train", "--resume", "run")[0] == 0
    assert mini_tf("train", *source("quick"), "--run", "whole")[0] == 0
    assert tiny.contents("run") == tiny.contents("whole")


def test_what_cannot_be_resumed_is_one_sentence(mini_tf, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        stop_in(8, patch)
        mini_tf("train", *source("quick"), "--run", "run")
    (tmp_path / "empty").mkdir()
    for arguments, message in {
        ("--resume", "none"): "there is no folder none",
        ("--resume", "corpus"): "corpus is not a run folder",
        ("--resume", "empty"): "is not a run folder: it has no config.json",
        ("--resume", "run", "--steps", "5"): "--steps was given with --resume",
        ("--resume", "run", "--preset", "gpt"): "--preset was given with --resume",
    }.items():
        code, _, err = mini_tf("train", *arguments)
        assert (code, message in err) == (2, True), err
        assert len(err.strip().splitlines()) == 1
    with FolderLock("run"):
        code, _, err = mini_tf("train", "--resume", "run")
        assert code == 2
        assert "is writing to" in err
    text = Path("corpus").read_text()
    Path("corpus").write_text(text + " more")
    assert f"run was trained on other data: put back what was in {tmp_path / 'corpus'}, or" in mini_tf("train", "--resume", "run")[2]
    Path("corpus").unlink()
    assert "corpus" in mini_tf("train", "--resume", "run")[2]
    Path("corpus").write_text(text)
    newest = Path("run/state/step-8.safetensors")
    newest.write_bytes(newest.read_bytes()[:-1])
    code, out, err = mini_tf("train", "--resume", "run")
    assert code == 0, err
    assert "note: run/state/step-8.safetensors is damaged" in out
    assert "going on after step 6" in out


def test_all_states_damaged_is_an_error(mini_tf, monkeypatch):
    with monkeypatch.context() as patch:
        stop_in(8, patch)
        mini_tf("train", *source("quick"), "--run", "run")
    for path in Path("run/state").iterdir():
        path.write_bytes(b"")
    code, _, err = mini_tf("train", "--resume", "run")
    assert code == 2
    assert "no state in run/state can be read" in err
    config = Path("run/config.json")
    config.write_text(config.read_text().replace('"T": 6', '"T": 7'))
    assert "config.json is damaged or was edited" in mini_tf("train", "--resume", "run")[2]
    assert mini_tf("doctor", "run")[0] == 1


def test_two_trainings_that_begin_together_take_two_folders(mini_tf, monkeypatch):
    mini_tf("train", *source("quick"))
    assert mini_tf("train", *source("quick"))[0] == 0
    assert sorted(os.listdir("runs")) == ["quick", "quick-2"]


PROGRAM = [sys.executable, "-m", "mini_tf"]


def start(tmp_path, *arguments, **options):
    """The real program, on a text for which it trains some seconds"""
    text = "\n".join(tiny.lines(3000))
    (tmp_path / "text").write_text(text)
    return subprocess.Popen(
        [*PROGRAM, "train", "--preset", "window", "--corpus", "text", *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def wait_for(path, program):
    while not path.exists():
        assert program.poll() is None, program.stderr.read()
        time.sleep(0.1)


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_the_real_program_is_terminated_and_goes_on(tmp_path):
    program = start(tmp_path, "--run", "run")
    wait_for(tmp_path / "run" / "metrics.csv", program)
    second = start(tmp_path, "--run", "run")             # a second one is told so
    assert second.wait() == 2
    assert "is writing to" in second.stderr.read()
    resumed = subprocess.run([*PROGRAM, "train", "--resume", "run"], cwd=tmp_path,
                             capture_output=True, text=True, check=False)  # fmt: skip
    assert resumed.returncode == 2
    assert "is writing to" in resumed.stderr
    program.send_signal(signal.SIGTERM)
    assert program.wait() == Terminated().code == 143
    assert "mini-tf train --resume run" in program.stderr.read()
    assert not list((tmp_path / "run").rglob(".part-*"))
    assert list((tmp_path / "run" / "state").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_a_closed_terminal_ends_a_training_whose_state_is_kept(tmp_path):
    program = start(tmp_path, "--run", "run")
    wait_for(tmp_path / "run" / "metrics.csv", program)
    program.send_signal(signal.SIGHUP)
    assert program.wait() == Terminated(signal.SIGHUP).code == 129
    assert list((tmp_path / "run" / "state").iterdir())


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As with nohup, or a job in the background of a shell."""
    program = start(tmp_path, "--run", "run", "--steps", "150",
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))  # fmt: skip
    wait_for(tmp_path / "run" / "moments" / "step-0.safetensors", program)
    for _ in range(3):
        program.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert program.wait() == 0, program.stderr.read()
    assert json.loads((tmp_path / "run" / "results.json").read_text())["stopped"] == "finished"

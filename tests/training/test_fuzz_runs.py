"""Run folders with damaged files: what is looked at, loaded or gone on with is right, or refused in one sentence."""

import json
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

from mini_tf.errors import Terminated, UserError
from mini_tf.training.run import Run
from mini_tf.training.run_report import report_of
from mini_tf.training.step import Training
from tests import tiny

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FILES = ["config.json", "vocabulary.json", "model.safetensors", "metrics.csv", "state/step-6.safetensors",
         "state/step-8.safetensors", "moments/step-0.safetensors"]  # fmt: skip
FUZZ = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
SHORT = {"steps": 10, "every": 3}


@dataclass
class Stopped:
    """A run folder that was stopped after 8 of 10 steps, and the files of one that was not"""

    folder: Path = field(repr=False)
    whole: dict = field(repr=False)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder, one_step = tmp_path_factory.mktemp("fuzz"), Training.one_step
    tiny.train("gpt", folder / "whole", **SHORT)

    def stops(self, **options):
        if self.step + 1 == 8:
            os.kill(os.getpid(), signal.SIGTERM)
        return one_step(self, **options)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Terminated):
        patch.setattr(Training, "one_step", stops)
        tiny.train("gpt", folder / "run", **SHORT)
    return Stopped(folder / "run", tiny.contents(folder / "whole"))


@st.composite
def damage(draw):
    """(file, function from its content to a damaged one)"""
    where = draw(st.floats(0, 1, exclude_max=True))
    texts = [b"", b"null", b"[]", b"{}", b"1e999", b"[" * 5000]
    new = draw(st.one_of(st.binary(min_size=1, max_size=9), st.sampled_from(texts)))
    how = draw(st.sampled_from(["flip", "cut", "insert", "all"]))

    def damaged(content):
        at = int(where * len(content))
        if how == "flip":
            return content[:at] + bytes([content[at] ^ 1 << len(new) % 8]) + content[at + 1 :]
        return {"cut": content[:at], "insert": content[:at] + new + content[at:], "all": new}[how]

    return draw(st.sampled_from(FILES)), damaged


def with_damage(stopped, folder, case):
    name, damaged = case
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stopped.folder, folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(damaged(content))
    return name, meaning(name, damaged(content)) != meaning(name, content)


def meaning(name, content):
    """The content; of JSON its value, which a space more between two words does not change"""
    try:
        return json.loads(content) if name.endswith(".json") else content
    except (ValueError, RecursionError):
        return content


@settings(max_examples=80, **FUZZ)
@given(case=damage())
def test_a_damaged_run_is_looked_at(stopped, tmp_path, case):
    name, changed = with_damage(stopped, tmp_path / "run", case)
    found = report_of(Run.find(tmp_path / "run"))
    assert all("\n" not in sentence for _, _, sentence in found)
    if changed and name not in ("metrics.csv", "moments/step-0.safetensors"):
        assert "bad" in [verdict for _, verdict, _ in found], found


@settings(max_examples=40, **FUZZ)
@given(case=damage())
def test_a_damaged_run_is_loaded_rightly_or_not_at_all(stopped, tmp_path, case):
    name, changed = with_damage(stopped, tmp_path / "run", case)
    if changed and name in ("config.json", "model.safetensors", "vocabulary.json"):
        with pytest.raises(UserError):
            Run.open(tmp_path / "run").load()
    else:
        assert Run.open(tmp_path / "run").load()[1].words == Run(stopped.folder).load()[1].words


@settings(max_examples=15, **FUZZ)
@given(case=damage())
def test_a_damaged_run_goes_on_exactly_or_not_at_all(stopped, tmp_path, case):
    name, changed = with_damage(stopped, tmp_path / "run", case)
    if changed and name == "config.json":
        with pytest.raises(UserError, match=r"config.json (is damaged|cannot be read)"):
            tiny.train("gpt", tmp_path / "run", **SHORT)
        return
    tiny.train("gpt", tmp_path / "run", **SHORT)
    found = tiny.contents(tmp_path / "run")
    assert [n for n in stopped.whole if n != name and found.get(n) != stopped.whole[n]] == []
    assert not list((tmp_path / "run").rglob(".part-*"))

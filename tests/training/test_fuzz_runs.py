"""Run folders with damaged files: what is looked at, loaded or gone on with is right, or refused in one sentence."""

import json
import os
import shutil
import signal
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from mini_tf.errors import Terminated, UserError
from mini_tf.training.run import Run
from mini_tf.training.run_report import report_of
from mini_tf.training.runner import train
from mini_tf.training.step import Training
from tests import tiny
from tests.conftest import examples

import numpy as np
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


@settings(max_examples=examples(80), **FUZZ)
@given(case=damage())
def test_a_damaged_run_is_looked_at(stopped, tmp_path, case):
    name, changed = with_damage(stopped, tmp_path / "run", case)
    found = report_of(Run.find(tmp_path / "run"))
    assert all("\n" not in sentence for _, _, sentence in found)
    if changed and name not in ("metrics.csv", "moments/step-0.safetensors"):
        assert "bad" in [verdict for _, verdict, _ in found], found


@settings(max_examples=examples(40), **FUZZ)
@given(case=damage())
def test_a_damaged_run_is_loaded_rightly_or_not_at_all(stopped, tmp_path, case):
    name, changed = with_damage(stopped, tmp_path / "run", case)
    if changed and name in ("config.json", "model.safetensors", "vocabulary.json"):
        with pytest.raises(UserError):
            Run.open(tmp_path / "run").load()
    else:
        assert Run.open(tmp_path / "run").load()[1].words == Run(stopped.folder).load()[1].words


@settings(max_examples=examples(15), **FUZZ)
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


# Forged files: whole, with a right checksum, but not what mini_tf writes --------------------------------------------

JUNK = [None, True, -1, 0, 2**70, 1.5, float("nan"), float("inf"), "", "x", [], {}, [[]], {"a": None}, "mini_tf.gradcheck",
        "float16", "Run", -(10**9), 10**9, ["x"] * 3]  # fmt: skip
ARCHIVES = ["model.safetensors", "state/step-8.safetensors", "moments/step-0.safetensors"]


def places_in(value, path=()):
    """The paths to everything in nested dicts and lists"""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from places_in(part, (*path, key))


def with_junk(value, path, junk):
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_junk(copy[path[0]], path[1:], junk)
    return copy


def forged(content, draw):
    """The file with something else in a place of its header or of an array, and with its checksum right again"""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    if draw(st.booleans()):
        about = json.loads(header["__metadata__"]["mini_tf"])
        path = draw(st.sampled_from(list(places_in(about))))
        header["__metadata__"]["mini_tf"] = json.dumps(with_junk(about, path, draw(st.sampled_from(JUNK))))
    elif draw(st.booleans()):
        path = draw(st.sampled_from([path for path in places_in(header) if path and path[0] != "__metadata__"]))
        header = with_junk(header, path, draw(st.sampled_from(JUNK)))
    else:
        start = 4 * draw(st.integers(0, len(data) // 4 - 1))
        data[start : start + 4] = np.float32(draw(st.sampled_from([np.nan, np.inf, -np.inf]))).tobytes()
    header["__metadata__"]["mini_tf_sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    whole = len(text).to_bytes(8, "little") + text + bytes(data)
    return whole.replace(b'"mini_tf_sha256":"' + b"0" * 64, b'"mini_tf_sha256":"' + sha256(whole).hexdigest().encode(), 1)


@settings(max_examples=examples(60), **FUZZ)
@given(data=st.data(), name=st.sampled_from(ARCHIVES))
def test_a_forged_file_is_refused_or_read_as_it_is(stopped, tmp_path, data, name):
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(stopped.folder, folder)
    path = folder / name
    path.write_bytes(forged(path.read_bytes(), data.draw))
    found = report_of(Run.find(folder))
    assert all("\n" not in sentence for _, _, sentence in found)
    try:
        for _, parameters in [*Run.find(folder).moments(), (0, Run.open(folder).load()[0].state())]:
            assert all(np.isfinite(x).all() for x in parameters.values())
        tiny.train("gpt", folder, **SHORT)
    except UserError:
        pass


def test_a_model_of_another_run_is_named(stopped, tmp_path):
    """Of the same text, so with the same vocabulary, and of the same sizes."""
    tiny.train("gpt", tmp_path / "other", learning_rate=2e-2, **SHORT)
    shutil.copytree(stopped.folder.parent / "whole", tmp_path / "run")
    for name in ("model.safetensors", "results.json"):
        before = (tmp_path / "run" / name).read_bytes()
        shutil.copy(tmp_path / "other" / name, tmp_path / "run" / name)
        found = report_of(Run.find(tmp_path / "run"))
        assert any(verdict == "bad" and "belongs to another run" in sentence for _, verdict, sentence in found), found
        (tmp_path / "run" / name).write_bytes(before)
    assert all(verdict != "bad" for _, verdict, _ in report_of(Run.find(tmp_path / "run")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "metrics.csv", "model.safetensors", "results.json"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(stopped, tmp_path, name):
    shutil.copytree(stopped.folder.parent / "whole", tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    os.mkfifo(tmp_path / "run" / name)
    try:
        found = report_of(Run.find(tmp_path / "run"))
    except UserError as error:
        found = [("run", "bad", str(error))]
    assert "bad" in [verdict for _, verdict, _ in found], found


@settings(max_examples=examples(12), deadline=None, **FUZZ)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
    | st.text(st.sampled_from("ab \n\t.é́😀。ﷺ\u200d\u202e\ufeff0'&\x00"), max_size=900)
)
def test_any_text_is_learned_from_or_refused(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("text")
    try:
        with Run.new(folder / "run") as run:
            train(tiny.preset("quick", steps=2, every=2), text, run, device="cpu")
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        model, vocabulary = Run.open(folder / "run").load()
        assert model.c == len(vocabulary) > 0
    shutil.rmtree(folder)

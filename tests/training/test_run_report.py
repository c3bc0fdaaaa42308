"""Is a run whole, and is its loss normal?"""

import json
from dataclasses import asdict

from mini_tf.training import expected_loss
from mini_tf.training.expected_loss import Band, as_text, band_of
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import Run
from mini_tf.training.run_report import report_of
from tests import tiny

import pytest
from scipy import stats

MEASURED = json.loads(expected_loss.FILE.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path):
    tiny.train("gpt", tmp_path / "run")
    return tmp_path / "run"


def verdicts(folder):
    return {what: verdict for what, verdict, _ in report_of(Run.find(folder))}


def sentences(folder):
    return {what: sentence for what, _, sentence in report_of(Run.find(folder))}


def test_a_finished_run_is_in_order(folder):
    assert verdicts(folder) == {"settings": "good", "model": "good", "training": "good", "losses": "", "gradients": "good"}
    found = sentences(folder)
    assert found["training"] == "finished after 12 steps"
    assert found["model"].startswith("GPT, ")
    assert "no expected range was measured for these settings" in found["losses"]


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors", "metrics.csv"])
def test_a_changed_byte_is_found(name, folder):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] = 255
    (folder / name).write_bytes(content)
    what = {"config.json": "settings", "metrics.csv": "measurements"}.get(name, "model")
    assert verdicts(folder)[what] == "bad"
    assert "damaged" in sentences(folder)[what]


def test_a_run_that_was_stopped_says_how_to_go_on(folder, tmp_path):
    (folder / "results.json").unlink()
    assert verdicts(folder)["training"] == ""
    assert sentences(folder)["training"].endswith(f"go on with: Run.resume({str(folder)!r}), and the same call")


@pytest.mark.parametrize("content", ["", "[]", "null", "{}", '{"steps": "x", "test": 1}', "[" * 99999])
def test_damaged_results_are_found(content, folder):
    (folder / "results.json").write_text(content)
    assert verdicts(folder)["measurements"] == "bad"
    assert "damaged" in sentences(folder)["measurements"]


def test_losses_are_compared_with_the_band(folder, monkeypatch):
    usual = Band(5, {3: (3.6, 0.5), 6: (3.5, 0.5)}, (3.4, 0.1))
    monkeypatch.setattr("mini_tf.training.run_report.band_of", lambda config: usual)
    assert verdicts(folder)["losses"] == "good"
    assert "in the expected range at all 2 measurements; at the last " in sentences(folder)["losses"]
    narrow = Band(5, {3: (0.5, 0.01), 6: (9.0, 0.01)}, (3.4, 0.1))
    monkeypatch.setattr("mini_tf.training.run_report.band_of", lambda config: narrow)
    assert verdicts(folder)["losses"] == "bad"
    assert "above the expected range at 2 of 2 measurements, first at step 3: " in sentences(folder)["losses"]
    assert "expected 0.450 to 0.550" in sentences(folder)["losses"]
    assert verdicts(folder)["test loss"] == "good"
    monkeypatch.setattr("mini_tf.training.run_report.band_of", lambda config: Band(5, {}, (0.5, 0.01)))
    assert verdicts(folder)["losses"] == ""
    assert verdicts(folder)["test loss"] == "bad"
    assert sentences(folder)["test loss"].endswith(", above the expected range: 0.450 to 0.550")


def test_the_limits_are_students():
    band = Band(5, {10: (2.0, 0.1)}, (1.0, 0.2))
    reach = stats.t(4).ppf(0.995) * 0.1 * (1 + 1 / 5) ** 0.5
    assert band.limits(10) == pytest.approx((2 - reach, 2 + reach))
    assert band.limits() == pytest.approx((1 - 2 * reach, 1 + 2 * reach))
    assert band.judge(2.2, 10) == "inside"
    assert band.judge(9.0, 10) == "above"
    assert band.judge(float("nan"), 10) == "above"
    assert band.judge(0.1, 10) == "below"
    assert band.judge(2.0, 20) is None
    assert as_text((1.23456, 2)) == "1.235 to 2.000"


def test_every_preset_has_a_band():
    assert MEASURED.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", MEASURED)
def test_each_band_is_of_the_preset_as_it_is_now(name):
    """Otherwise measure it again: tests/bench/bands.py"""
    preset = PRESETS[name]
    config = {"command": {"path": None, "shakespeare": "lab"}, "settings": asdict(preset) | {"seed": 7}}
    band = band_of(config)
    assert band.seeds == 5
    assert band.limits()[0] > 0
    assert set(band.validation) <= set(range(preset.every, preset.steps + 1))
    assert band_of({**config, "settings": config["settings"] | {"learning_rate": 1.0}}) is None
    assert band_of({**config, "command": {"path": "/my/text", "shakespeare": "lab"}}) is None
    assert band_of({**config, "command": {"path": None, "shakespeare": "complete"}}) is None
    assert band_of({**config, "command": {}}) is None

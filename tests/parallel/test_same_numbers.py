"""N processes compute what one process computes."""

import csv
import json

from mini_tf.training.archive import read_archive
from tests import tiny
from tests.cases import cases
from tests.parallel.mpi import needs_mpi, work
from tests.parallel.worker import other_models

import numpy as np
import pytest

pytestmark = needs_mpi
RUNS = [(1, ""), (2, ""), (3, "sharded")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """{(processes, options): folder} of all presets, and of the other models, trained in float64 when they are asked for"""

    class Trained(dict):
        def __missing__(self, key):
            n, options = key
            folder = self[key] = tmp_path_factory.mktemp(f"{n}{options}")
            work(n, "presets", folder, options)
            return folder

    return Trained()


SEVERAL = pytest.mark.parametrize(("n", "options"), cases(RUNS[1:2], RUNS[2:]))


def columns(folder, name):
    """{column: numbers} of a run's metrics, without times"""
    with open(folder / name / "metrics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key] or 0) for row in rows]) for key in rows[0] if "second" not in key}


@SEVERAL
@pytest.mark.parametrize("name", tiny.NAMES)
def test_every_preset(name, n, options, trained):
    one, several = (columns(trained[key], name) for key in (RUNS[0], (n, options)))
    assert len(one["train_loss"]) == 5
    assert one.keys() == several.keys()
    for key in one:
        np.testing.assert_allclose(several[key], one[key], rtol=0, atol=1e-12, err_msg=key)
    one, several = (read_archive(trained[key] / name / "model.safetensors", "model")[0] for key in (RUNS[0], (n, options)))
    for parameter in one:
        np.testing.assert_allclose(several[parameter], one[parameter], rtol=0, atol=1e-12, err_msg=parameter)


@SEVERAL
@pytest.mark.parametrize("name", other_models())
def test_the_other_models(name, n, options, trained):
    one, several = (json.loads((trained[key] / "losses.json").read_text())[name] for key in (RUNS[0], (n, options)))
    assert len(one) == 16
    np.testing.assert_allclose(several, one, rtol=0, atol=1e-12)


@pytest.mark.exhaustive
def test_a_run_that_was_stopped_is_the_same_to_the_last_bit_as_another_that_was_not(tmp_path):
    names, options = "quick,recurrent,translate", "float32 sharded"
    work(2, "presets", tmp_path / "one", options, names)
    work(2, "presets", tmp_path / "other", f"{options} stopped", names)
    assert all(list((tmp_path / "other" / name).glob("state/step-3.*")) for name in names.split(","))
    work(2, "presets", tmp_path / "other", f"{options} stopped", names)           # in its next step
    assert all(list((tmp_path / "other" / name).glob("state/step-4.*")) for name in names.split(","))
    work(2, "presets", tmp_path / "other", options, names)
    for name in names.split(","):
        one, other = (tiny.contents(tmp_path / folder / name) for folder in ("one", "other"))
        assert one.keys() == other.keys()
        assert [key for key in one if one[key] != other[key]] == []


@pytest.mark.parametrize(("before", "after"), cases([], [(2, 3), (3, 1)]))
def test_a_run_goes_on_with_another_number_of_processes(before, after, tmp_path, trained):
    names = "quick,recurrent,translate,fill"
    work(before, "presets", tmp_path, "stopped sharded" if before == 3 else "stopped", names)
    work(after, "presets", tmp_path, "", names)
    for name in names.split(","):
        one, other = columns(trained[RUNS[0]], name), columns(tmp_path, name)
        np.testing.assert_allclose(other["train_loss"], one["train_loss"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(other["validation_loss"], one["validation_loss"], rtol=0, atol=1e-12)

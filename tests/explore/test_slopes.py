"""The measured slopes shown with the gradients are right."""

import base64

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.explore.page_data import PageData
from mini_tf.explore.slopes import _chosen, measure_loss, measure_steps
from tests.explore.conftest import decoded, tiny_reading

import numpy as np
import pytest


def measured(about, of="op"):
    """(entries, slopes, uncertainties) of an array of a page"""
    found = about["measured"][of]
    slopes, uncertainties = (
        np.frombuffer(base64.b64decode(found[name]), form) for name, form in (("slopes", "<f8"), ("uncertainties", "<f4"))
    )
    if found["entries"] is None:                         # all of them
        return np.arange(len(slopes)), slopes, uncertainties
    return np.frombuffer(base64.b64decode(found["entries"]), "<i4"), slopes, uncertainties


@pytest.fixture(scope="module")
def pages():
    read = tiny_reading()
    pages = PageData(read.axes)
    recorder = pages.record(read.run)
    measure_steps(pages.store, read.run, recorder)
    read.run()
    measure_loss(pages.store, read.model.loss, [read.batch], read.model.parameters())
    pages.recorder, pages.read = recorder, read
    return pages


def test_every_measured_slope_agrees_with_the_backward(pages):
    judged = 0
    for about in pages.store.arrays:
        for of in about.get("measured", {}):
            entries, slopes, uncertainties = measured(about, of)
            yours = decoded(about).reshape(-1)[entries]
            size = np.abs(decoded(about)).max(initial=0)
            np.testing.assert_array_less(np.abs(yours - slopes), uncertainties + 2e-6 * size + 1e-12)
            judged += len(entries)
    assert judged > 1500


def test_almost_every_gradient_has_slopes(pages):
    gradients = {
        ref for line in pages.recorder.lines if line.frame.is_backward for name, ref, _ in line.made
        if isinstance(ref, int) and name.startswith("d") and len(pages.store.arrays[ref]["shape"]) > 1
    }  # fmt: skip
    without = [ref for ref in gradients if "measured" not in pages.store.arrays[ref]]
    assert len(without) <= 0.15 * len(gradients)


def test_variables_inside_an_op_have_slopes(pages):
    inside = [
        ref for line in pages.recorder.lines if line.frame.is_backward and line.frame.sheet.title == "attention"
        for name, ref, _ in line.made if name in ("dA", "dscores")
    ]  # fmt: skip
    assert len(inside) == 4
    assert all("measured" in pages.store.arrays[ref] for ref in inside)


def test_the_slope_of_the_loss_is_that_of_the_whole_model(pages):
    model, batch = pages.read.model, pages.read.batch
    pages.read.run()
    name, p = next((name, p) for name, p in model.parameters().items() if name.endswith("key.W"))
    about = pages.store.arrays[pages.store.refer(p.grad)]
    entries, slopes, _ = measured(about, "loss")
    assert len(entries) == 6
    before = p.data
    for entry, slope in zip(entries, slopes):
        losses = []
        for step in (1e-3, -1e-3):
            p.data = before.copy()
            p.data.flat[entry] += step
            losses.append(float(model.loss(batch)[0]))
        p.data = before
        assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(slope, rel=0.05, abs=2e-4), name


def test_slopes_of_an_op_at_a_kink_are_left_out():
    x = np.array([[1.0, -2.0, 0.0, 0.5]])
    about = explore(ops.relu, x).data["arrays"]
    gradient = next(a for a in about if "measured" in a)
    entries, _, _ = measured(gradient)
    assert entries.tolist() == [0, 1, 3]
    assert np.frombuffer(base64.b64decode(gradient["measured"]["op"]["kinks"]), "<i4").tolist() == [2]


def test_the_largest_entries_are_among_those_measured(rng):
    gradient, shown = rng.standard_normal((40, 50)), np.arange(500, 2000)
    chosen = _chosen(gradient, 200, rng, shown)
    assert len(set(chosen.tolist())) == 200
    largest = shown[np.argsort(-np.abs(gradient.reshape(-1)[shown]))[:100]]
    assert set(largest.tolist()) <= set(chosen.tolist()) <= set(shown.tolist())
    np.testing.assert_array_equal(_chosen(gradient, 1500, rng, shown), shown)


def test_every_entry_that_is_shown_is_measured(pages):
    """In a small model all entries that can be clicked have their slope."""
    for about in pages.store.arrays:
        if "measured" in about and "op" in about["measured"]:
            entries, slopes, _ = measured(about)
            kinks = np.frombuffer(base64.b64decode(about["measured"]["op"]["kinks"]), "<i4")
            assert len(slopes) == len(entries)
            assert len(entries) + len(kinks) == decoded(about).size

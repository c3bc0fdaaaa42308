"""What is recorded is what ran."""

import sys
import textwrap

from mini_tf import ops
from mini_tf.explore.arrays import Store
from mini_tf.explore.page_data import PageData, follows
from mini_tf.explore.recording import Recorder
from mini_tf.gradcheck.learner import load
from tests.explore.conftest import decoded, tiny_reading

import numpy as np
import pytest


def recorded(f, *inputs, dy=None):
    """(PageData, Recorder) of f(*inputs), and of its backward"""
    pages = PageData()

    def run(on_backward):
        y, backward = f(*inputs)
        on_backward()
        backward(np.ones_like(y) if dy is None else dy)

    return pages, pages.record(run)


def made(pages, recorder, name, backward=False):
    """[array] of everything of that name that was made, in order"""
    return [
        decoded(pages.store.arrays[ref]) for line in recorder.lines if line.frame.is_backward == backward
        for n, ref, _ in line.made if n == name and isinstance(ref, int) and line.frame.sheet.path != __file__
    ]  # fmt: skip


def learned(tmp_path, source, name="f"):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return load(f"{path}::{name}", ["x=3,4"])[0]


def test_every_line_of_an_op_has_what_numpy_gives(rng):
    x, gamma, beta, dy = rng.standard_normal((3, 5)), rng.standard_normal(5), rng.standard_normal(5), rng.standard_normal((3, 5))
    pages, recorder = recorded(ops.layer_norm, x, gamma, beta, dy=dy)
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    g, normal = dy * gamma, centred * r
    np.testing.assert_array_equal(made(pages, recorder, "centred")[0], centred)
    np.testing.assert_allclose(made(pages, recorder, "r")[0], r, rtol=1e-15)
    np.testing.assert_allclose(made(pages, recorder, "normal")[0], normal, rtol=1e-14)
    np.testing.assert_array_equal(made(pages, recorder, "g", backward=True)[0], g)
    dx = r * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
    for found in made(pages, recorder, "dx", backward=True):
        np.testing.assert_allclose(found, dx, rtol=1e-12)
    np.testing.assert_allclose(made(pages, recorder, "dgamma", backward=True)[0], (dy * normal).sum(0), rtol=1e-12)


def test_a_backward_knows_the_call_that_defined_it():
    read = tiny_reading()
    recorder = PageData(read.axes).record(read.run)
    backwards = [frame for frame in recorder.frames if frame.is_backward and frame.sheet.title == "linear"]
    forwards = [frame for frame in recorder.frames if not frame.is_backward and frame.sheet.title == "linear"]
    assert len(forwards) == len(backwards) == 9          # four of each attention, and the readout
    assert {frame.maker for frame in backwards} == set(forwards)
    for frame in backwards:
        assert frame.maker.variables["rows_x"] is frame.variables["rows_x"]


def test_lines_come_in_the_order_in_which_they_ran():
    read = tiny_reading()
    lines = PageData(read.axes).record(read.run).lines
    turn = next(number for number, line in enumerate(lines) if line.frame.is_backward)
    assert not any(line.frame.is_backward for line in lines[:turn])
    assert all(line.frame.is_backward for line in lines[turn:])
    assert [line.frame.sheet.title for line in lines if line.frame.sheet.title == "embedding"][-1:] == ["embedding"]
    assert lines[-1].frame.sheet.title in ("LanguageTransformer.loss", "chain_rule")


def test_loops_helpers_tuples_and_writes_into_arrays(tmp_path, rng):
    f = learned(tmp_path, '''
        import numpy as np

        def scaled(x, factor):
            return x * factor

        def f(x):
            total = np.zeros_like(x)
            for k in range(3):
                total += scaled(x, k)
            low, high = x.min(), x.max()
            pair = (x, total)
            total[0] = 0
            y = (
                total
                + 1
            )

            def backward(dy):
                dx = 3 * dy
                dx[0] = 0
                return dx

            return y, backward
        ''')  # fmt: skip
    x = rng.standard_normal((3, 4))
    pages, recorder = recorded(f, x)
    totals = made(pages, recorder, "total")
    want = [0 * x, 0 * x, x, 3 * x, np.vstack([0 * x[:1], 3 * x[1:]])]
    assert len(totals) == len(want)
    for found, expected in zip(totals, want):
        np.testing.assert_allclose(found, expected, atol=1e-15)
    assert len([frame for frame in recorder.frames if frame.written.name == "scaled"]) == 3
    np.testing.assert_array_equal(made(pages, recorder, "pair[1]")[0], totals[3])
    np.testing.assert_array_equal(made(pages, recorder, "y")[0], totals[4] + 1)
    texts = {name: ref["text"] for line in recorder.lines for name, ref, _ in line.made if isinstance(ref, dict)}
    assert float(texts["low"]) == pytest.approx(x.min(), rel=1e-8)
    assert texts["backward"] == "keeps nothing"


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_what_raises_is_recorded_up_to_its_line(tmp_path, rng, where):
    wrong = {"forward": ("y = x.reshape(5, 5)", "dx = dy"), "backward": ("y = 2 * x", "dx = dy @ dy")}[where]
    f = learned(tmp_path, f'''
        def f(x):
            a = x + 1
            {wrong[0]}

            def backward(dy):
                {wrong[1]}
                return dx

            return y, backward
        ''')  # fmt: skip
    before = sys.gettrace()
    pages, recorder = recorded(f, rng.standard_normal((3, 4)))
    assert sys.gettrace() is before
    assert isinstance(recorder.error, ValueError)
    failed = [line for line in recorder.lines if line.error and line.frame.sheet.path != __file__]
    assert len(failed) == 1
    assert failed[0].frame.sheet.source[failed[0].first - failed[0].frame.sheet.first].strip() == wrong[where == "backward"]
    assert "ValueError" in failed[0].error
    assert made(pages, recorder, "a")


def test_an_exception_that_is_caught_is_no_failure(tmp_path, rng):
    f = learned(tmp_path, '''
        def f(x):
            try:
                y = x.reshape(5, 5)
            except ValueError:
                y = 2 * x
            return y, lambda dy: 2 * dy
        ''')  # fmt: skip
    pages, recorder = recorded(f, rng.standard_normal((3, 4)))
    assert getattr(recorder, "error", None) is None
    assert len(made(pages, recorder, "y")) == 2          # assigned, and returned
    assert len(made(pages, recorder, "dx", backward=True)) == 1


def test_only_what_is_to_be_read_is_followed():
    assert follows(ops.softmax.formula.__code__)
    assert not follows(np.mean.__wrapped__.__code__ if hasattr(np.mean, "__wrapped__") else Recorder.on.__wrapped__.__code__)
    assert not follows(type(ops.softmax).__call__.__code__)
    assert follows(test_only_what_is_to_be_read_is_followed.__code__)


def test_a_store_keeps_each_array_once(rng):
    store, x = Store(), rng.standard_normal((3, 4))
    first = store.refer(x)
    assert store.refer(x.copy()) == first
    assert store.refer(x.astype(np.float32)) != first
    assert store.refer(x.reshape(4, 3)) != first
    assert store.refer(np.float64(0.25)) == {"text": "0.25"}
    assert store.refer((2, 3)) == {"text": "(2, 3)"}
    assert store.refer(object()) is None

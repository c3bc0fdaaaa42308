"""What a page holds of an array."""

from mini_tf.explore.arrays import LONGEST, MOST, Axes, Store, half, statistics
from mini_tf.gradcheck import Slopes
from tests.explore.conftest import decoded

import numpy as np
import pytest


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8, bool])
@pytest.mark.parametrize("shape", [(3,), (1, 4), (2, 3, 4), (2, 1, 3, 2), (0, 3)])
def test_small_arrays_are_whole(rng, dtype, shape):
    x = (5 * rng.standard_normal(shape)).astype(dtype)
    store = Store()
    about = store.arrays[store.refer(x)]
    assert "shown" not in about
    np.testing.assert_array_equal(decoded(about), x)
    assert about["shape"] == list(shape)
    assert about["dtype"] == np.dtype(dtype).name


def test_a_large_array_is_held_in_part_and_says_which(rng):
    axes = Axes({5000: "vocabulary"}, shown={"vocabulary": np.array([3, 70, 4999])})
    store, x = Store(axes), rng.standard_normal((200, 5000))
    about = store.arrays[store.refer(x)]
    rows, columns = about["shown"]
    assert columns == [3, 70, 4999]
    assert len(rows) <= LONGEST
    np.testing.assert_array_equal(decoded(about), x[np.ix_(rows, columns)])
    assert about["norm"] == pytest.approx(np.linalg.norm(x))         # of the whole array
    assert about["low"] == x.min()
    big = store.arrays[store.refer(rng.standard_normal((300, 300)))]
    assert decoded(big).size <= MOST


def test_coarse_arrays_keep_three_digits(rng):
    store, x = Store(), 1e-6 * rng.standard_normal((20, 30))
    store.coarse = True
    about = store.arrays[store.refer(x)]
    assert about["form"] == "f2"
    np.testing.assert_allclose(decoded(about), x, rtol=1e-3, atol=1e-4 * np.abs(x).max())
    assert half(np.array([np.nan, 2.0, np.inf]))["scale"] == 2.0


def test_statistics_leave_out_what_is_not_finite():
    found = statistics(np.array([3.0, 0.0, np.nan, -4.0, np.inf]))
    assert found == {"norm": 5.0, "low": -4.0, "high": 3.0, "zeros": 1, "bad": 2}
    assert statistics(np.array([np.nan]))["norm"] is None
    assert statistics(np.array([True, False]))["zeros"] == 1
    assert statistics(np.zeros((0, 3)))["low"] is None


def test_axes_are_named_by_their_sizes():
    axes = Axes({7: "word", 50: "vocabulary"}, heads=4, columns=8)
    assert axes.kinds((1, 7, 8)) == ["example", "word", "column"]
    assert axes.kinds((1, 4, 7, 7)) == ["example", "head", "word", "word"]
    assert axes.kinds((1, 4, 7, 3)) == ["example", "head", "word", ""]
    assert axes.kinds((50, 8)) == ["vocabulary", "column"]
    assert axes.kinds((7,)) == ["word"]
    as_many = Axes({}, heads=8, columns=8, words=8, m=3)      # words, heads and columns of one size
    assert as_many.kinds((1, 8, 8)) == ["example", "word", "column"]
    assert as_many.kinds((1, 8, 8, 8)) == ["example", "head", "word", "word"]


def test_slopes_belong_to_all_arrays_with_the_same_entries(rng):
    store, x = Store(), rng.standard_normal((3, 4))
    one, reshaped, other = store.refer(x), store.refer(x.reshape(12)), store.refer(x + 1)
    assert store.lacks_slopes(x)
    store.add_slopes(x, "dx", "op", np.array([2, 5]), Slopes(np.array([x[0, 2], 7.0]), np.array([1e-9, 1.0]), np.array([False, True])))
    assert not store.lacks_slopes(x)
    for number in (one, reshaped):
        measured = store.arrays[number]["measured"]["op"]
        assert decoded({"shape": [1], "form": "i4", "data": measured["entries"]}) == [2]
        assert decoded({"shape": [1], "form": "f8", "data": measured["slopes"]}) == [x[0, 2]]
        assert decoded({"shape": [1], "form": "i4", "data": measured["kinks"]}) == [5]
    assert "measured" not in store.arrays[other]


def test_slopes_that_disagree_belong_to_that_gradient_alone(rng):
    """With y = a − b a backward that returns dy, dy has the right da and a wrong db, in one and the same array."""
    store, dy = Store(), rng.standard_normal(3)
    number, entries, exact = store.refer(dy), np.arange(3), np.full(3, 1e-9)
    store.add_slopes(dy, "da", "op", entries, Slopes(dy, exact, np.zeros(3, bool)))
    store.add_slopes(dy, "db", "op", entries, Slopes(-dy, exact, np.zeros(3, bool)))
    measured = store.arrays[number]["measured"]["op"]
    np.testing.assert_array_equal(decoded({"shape": [3], "form": "f8", "data": measured["slopes"]}), dy)
    assert [(n, name) for n, name, _ in store.disagreeing] == [(number, "db")]

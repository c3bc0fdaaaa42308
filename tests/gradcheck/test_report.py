"""The report's sentences: how far a gradient is off, which finding comes first, what is said once."""

import json

from mini_tf.gradcheck import Report, gradcheck, judge
from mini_tf.gradcheck.report import WRONG, Change, Comparison, Precision, Step, TensorReport

import numpy as np
import pytest


def compared(yours, measured, point="given", wrong=1, judged=12):
    slopes = np.full(12, measured)
    return Comparison(point, 12, judged, 0, 0, wrong, 2.0 * wrong, (3,), yours, measured, 1e-9, np.full(12, yours), slopes)


@pytest.mark.parametrize(("yours", "measured", "off"), [
    (1.5, 1.0, "off by 50 %"), (1.364, 1.0, "off by 36 %"), (1.0004, 1.0, "off by 0.04 %"), (3.0, 1.0, "off by 200 %"),
    (2.0, -2.0, "of the other sign"), (251.0, 1.0, "251 times as large"), (-34.0, 1.0, "34 times as large and of the other sign"), (0.0, 1.0, "off by 100 %"), (1.0, 1e-12, "where 0 is right"), (np.nan, 1.0, "not a finite number"),
])  # fmt: skip
def test_how_far_it_is_off(yours, measured, off):
    assert compared(yours, measured).off == off


def test_what_is_wrong_comes_first():
    right, wrong = compared(1.0, 1.0, wrong=0), compared(1.5, 1.0)
    in_float32 = "wrong in float32, at [3]: yours is 1.5, in float64 1, off by {} rounding explains"
    for error, times in ((40.0, "40 times what"), (np.inf, "far more than")):
        precision = Precision("float32", error, (3,), 1.5, 1.0)
        t = TensorReport("x", (12,), [right], precision)
        assert t.sentence == f"{in_float32.format(times)}; in float64 right in 12 entries"
        assert t.verdict == "FAIL"
    t = TensorReport("x", (12,), [wrong], precision)
    assert t.sentence == f"{wrong.sentence}; {in_float32.format(times)}"
    assert TensorReport("x", (12,), [right]).verdict == "PASS"
    assert TensorReport("x", (12,), [compared(1.0, 1.0, wrong=0, judged=0)]).sentence == "not tested"


def test_several_changes_name_what_each_makes_right():
    changes = [Change("a.py:3", 3, "dx = dy", "dx = 2 * dy", "a factor is missing", ["x"]),
               Change("a.py:4", 4, "db = 0", "db = dy.sum(0)", "another value", ["W", "b"])]        # fmt: skip
    report = Report("f", changes=changes)
    assert report.repair is None
    assert list(map(str, report.lines())) == [
        "2 changes together make it right:",
        "One change makes dx right, at a.py:3: a factor is missing", "  now    dx = dy", "  right  dx = 2 * dy",
        "One change makes dW and db right, at a.py:4: another value", "  now    db = 0", "  right  db = dy.sum(0)",
    ]  # fmt: skip
    report.give_hints_only()
    assert "dy.sum" not in report.explain() + report.to_json()
    assert report.lines()[1].text == "One change makes dx right, at a.py:3: a factor is missing"
    assert report.lines()[2].text == "(--solution shows it)"


def test_what_the_given_point_hides_is_noted(rng):
    def scaled(x, gamma):
        return x * gamma, lambda dy: (dy, (dy * x).sum(0))

    note = "note: your numbers hide it: gamma is 1 everywhere"
    assert note in judge(scaled, rng.standard_normal((2, 3)), np.ones(3)).explain()
    report = Report("f", blind=dict.fromkeys("abcde", 0.0))
    assert [line.text for line in report.lines()] == ["a is 0, b is 0, c is 0 and 2 more are 0 or 1 everywhere: with these "
                                                      "numbers, a backward that forgets them passes"]    # fmt: skip


def test_json_has_plain_types_and_the_sentences(rng):
    step = Report("tanh", findings=["backward wrote into x"])
    report = gradcheck(lambda x: (x * x, lambda dy: np.where(dy == dy.max(), np.nan, 3 * dy * x)), rng.standard_normal((2, 3)))
    report.steps = [Step("tanh", "a.py:1", "b.py:2", WRONG, step)]
    found = json.loads(report.to_json())
    assert found["verdict"] == "FAIL"
    assert found["tensors"][0]["sentence"] == report.tensors[0].sentence
    assert found["tensors"][0]["points"][0]["yours"] == "nan"
    assert "gradient" not in found["tensors"][0]["points"][0]
    assert found["steps"][0]["report"]["verdict"] == "FAIL"

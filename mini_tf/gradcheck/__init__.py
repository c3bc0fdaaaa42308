"""Is a hand-written gradient right?  Compare it with finite differences.

    from mini_tf.gradcheck import gradcheck

    report = gradcheck(softmax, z)
    assert report                    # fails with the report's words
    print(report)

`README.md` beside this file tells how it works, beginning with a checker in thirty lines.
"""

from mini_tf.gradcheck.check import gradcheck, judge
from mini_tf.gradcheck.measure.slopes import Slopes, measured_slopes
from mini_tf.gradcheck.needs import settle
from mini_tf.gradcheck.report import Report, TensorReport
from mini_tf.gradcheck.subject import Subject

__all__ = ["Report", "Slopes", "Subject", "TensorReport", "gradcheck", "judge", "measured_slopes", "settle"]

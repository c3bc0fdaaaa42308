"""Is a hand-written gradient right?  Compare it with finite differences.

    from mini_tf.gradcheck import gradcheck

    report = gradcheck(softmax, z)
    assert report                    # fails with the report's words
    print(report)

`README.md` beside this file tells how it works, beginning with a checker in thirty lines.
"""

from typing import TYPE_CHECKING

from mini_tf.gradcheck.check import gradcheck, judge
from mini_tf.gradcheck.report import Report, TensorReport
from mini_tf.gradcheck.subject import Subject

if TYPE_CHECKING:
    from mini_tf.gradcheck.examples import EXAMPLES
    from mini_tf.gradcheck.selftest import SelfTest, self_test

__all__ = ["EXAMPLES", "Report", "SelfTest", "Subject", "TensorReport", "gradcheck", "judge", "self_test"]


def __getattr__(name):
    """The examples and the self-test load all of mini_tf: only when they are asked for."""
    from importlib import import_module

    modules = {"EXAMPLES": "examples", "SelfTest": "selftest", "self_test": "selftest"}
    if name in modules:
        return getattr(import_module(f"{__name__}.{modules[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")

"""Is a hand-written gradient right?  Compare it with finite differences.

    from mini_tf import ops
    from mini_tf.gradcheck import gradcheck

    report = gradcheck(ops.layer_norm, x, gamma, beta)
    assert report                    # fails with the report's words
    print(report)
"""

from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.planting import SelfTest, self_test
from mini_tf.gradcheck.report import Report, TensorReport

__all__ = ["EXAMPLES", "Report", "SelfTest", "TensorReport", "gradcheck", "self_test"]

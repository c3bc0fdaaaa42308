"""Dropout with its mask as an argument: an op draws no random numbers, so that its gradient can be checked."""

from mini_tf.ops.op import op
from mini_tf.types import Array, Backward, Gradients


@op("x (…), keep (…) bool")
def dropout(x: Array, keep: Array, rate: float) -> tuple[Array, Backward]:
    """y = x·keep / (1 − rate):  the share `rate` of entries is dropped, the rest are scaled up to keep the mean

    x (…), keep (…) bool, drawn True with probability 1 − rate  →  y (…)
    dx = dy·keep / (1 − rate);   None for the mask
    Raises ValueError unless 0 ≤ rate < 1.
    Source: Srivastava et al. 2014, JMLR 15
    """
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate is {rate}, expected 0 ≤ rate < 1")
    raised = 1 / (1 - rate)

    def backward(dy: Array) -> Gradients:                # keeps keep
        return dy * keep * raised, None

    return x * keep * raised, backward

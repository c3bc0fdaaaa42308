"""Losses: one number for a batch. Their backward takes dloss, which is 1 by default."""

import math

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import as_matrix, check_ids
from mini_tf.types import Array, Backward, Gradients


@op("logits (…, c), targets (…) int")
def cross_entropy(
    logits: Array, targets: Array, ignore: int | None = None, smoothing: float = 0.0
) -> tuple[float, Backward]:
    """loss = mean(−Σ_i q_i·log p_i) over rows, in nats,   p = softmax(logits),   q = (1 − ε)·onehot(target) + ε/c

    logits (…, c), targets (…) int  →  loss, a scalar;   ε is `smoothing`: at 0, the loss is −log p[target]
    dlogits = dloss·(p − q) / rows;   None for the targets

    Rows whose target is `ignore` do not count, neither in the mean nor in the gradient.
    Label smoothing, ε > 0, leaves every word a little probability, and so keeps the logits from growing forever.
    Softmax and logarithm are one op, because −log softmax(z)[i] = log Σ_j exp(z_j) − z_i stays accurate where
    softmax(z)[i] underflows to 0 and its logarithm would be −∞.
    Raises ValueError for targets outside 0 … c − 1, when no row counts, and unless 0 ≤ smoothing < 1.
    Source: ESE-2000 Lab 6, Task 6.7. The lab prints the objective to be minimised without its minus sign.
    Szegedy et al. 2015, arXiv:1512.00567, section 7 (label smoothing)
    """
    xp = array_module(logits)
    shape = logits.shape
    z, target = as_matrix(logits), targets.reshape(-1)   # (N, c), (N,)
    counted = xp.ones(target.shape, dtype=bool) if ignore is None else target != ignore
    rows = int(counted.sum())
    if rows == 0:
        raise ValueError(f"cross_entropy: none of the {target.size} targets counts, expected at least one")
    if not 0 <= smoothing < 1:
        raise ValueError(f"cross_entropy: smoothing is {smoothing}, expected 0 ≤ smoothing < 1")
    target = xp.where(counted, target, 0)
    check_ids("cross_entropy", "targets", target, shape[-1], "words")
    at_target = xp.arange(target.size), target

    shifted = z - z.max(-1, keepdims=True)
    e = xp.exp(shifted)
    total = e.sum(-1)                                    # (N,)
    expected = shifted[at_target]                        # Σ_i q_i·shifted_i
    if smoothing:
        expected = (1 - smoothing) * expected + smoothing * shifted.mean(-1)
    loss = xp.where(counted, xp.log(total) - expected, 0).sum() / rows

    def backward(dloss: float = 1.0) -> Gradients:       # keeps e, total, target, counted
        weight = (dloss / rows * counted).astype(e.dtype)            # (N,), 0 for the rows that do not count
        dz = e * (weight / total)[:, None]               # dloss·softmax/rows
        if smoothing:
            dz -= smoothing / shape[-1] * weight[:, None]
        dz[at_target] -= (1 - smoothing) * weight
        return dz.reshape(shape), None

    return loss, backward


@op("prediction (…), target (…)")
def mse(prediction: Array, target: Array) -> tuple[float, Backward]:
    """loss = mean((prediction − target)²) over all entries

    prediction (…), target (…)  →  loss, a scalar
    dprediction = dloss·2·(prediction − target)/entries,   dtarget = −dprediction

    The lab's loss sums over the n entries of a word and averages over words: it is n times this one.
    Raises ValueError when there is no entry.
    Source: ESE-2000 Lab 6, Task 6.5
    """
    difference = prediction - target
    entries = math.prod(difference.shape)
    if entries == 0:
        raise ValueError(f"mse: prediction has shape {prediction.shape}, expected at least one entry")

    def backward(dloss: float = 1.0) -> Gradients:       # keeps difference
        dprediction = (dloss * 2 / entries) * difference
        return dprediction, -dprediction

    return (difference * difference).mean(), backward

"""Copying: a mixture of two probabilities of a word, from the vocabulary and from the history."""

import math

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import check_ids
from mini_tf.types import Array, Backward, Gradients


@op("weights (…, Tq, Tk), words (…, Tk) int, targets (…, Tq) int")
def copied(weights: Array, words: Array, targets: Array) -> tuple[Array, Backward]:
    """y_t = Σ_j weights_tj·1(words_j = targets_t): the attention on occurrences of the target

    weights (…, Tq, Tk), words (…, Tk) int, targets (…, Tq) int  →  y (…, Tq)
    dweights_tj = dy_t·1(words_j = targets_t);   None for words and targets

    If each row of weights sums to 1, y_t is the probability of copying the target: the word at a place of the history
    that is drawn with these weights.
    Source: Vinyals, Fortunato, Jaitly 2015, arXiv:1506.03134; Merity et al. 2016, arXiv:1609.07843
    """
    same = words[..., None, :] == targets[..., :, None]  # (…, Tq, Tk)

    def backward(dy: Array) -> Gradients:                # keeps same
        return dy[..., None] * same, None, None

    return (weights * same).sum(-1), backward


@op("logits (…, c), gate (…), p_copy (…), targets (…) int")
def mixture_cross_entropy(logits: Array, gate: Array, p_copy: Array, targets: Array) -> tuple[float, Backward]:
    """loss = mean(−ln p) over rows, in nats,   p = g·softmax(logits)[target] + (1 − g)·p_copy,   g = sigmoid(gate)

    logits (…, c), gate (…), p_copy (…), targets (…) int  →  loss, a scalar
    r = g·softmax(logits)[target]/p,   the share of p that does not come from copying
    dlogits = r·(softmax(logits) − onehot(target)),   dgate = g − r,   dp_copy = −(1 − g)/p,   each times dloss/rows;
    None for the targets

    So the readout's gradient is scaled by r, its share in the prediction, and the gate moves towards r.
    Raises ValueError for targets outside 0 … c − 1, for negative p_copy, and when there is no row.
    Source: Merity et al. 2016, arXiv:1609.07843, with a gate in place of their sentinel
    """
    xp = array_module(logits)
    shape, c = targets.shape, logits.shape[-1]
    rows = math.prod(shape)
    if rows == 0:
        raise ValueError("mixture_cross_entropy: there is no target, expected at least one")
    check_ids("mixture_cross_entropy", "targets", targets, c, "words")
    if (p_copy < 0).any():
        raise ValueError(f"mixture_cross_entropy: p_copy has the entry {float(p_copy.min())}, expected probabilities")
    z, target = logits.reshape(rows, c), targets.reshape(rows)
    at_target = xp.arange(rows), target

    shifted = z - z.max(-1, keepdims=True)
    e = xp.exp(shifted)
    total = e.sum(-1)                                    # (rows,)
    # In logarithms, because each part of p may underflow. ln sigmoid(u) = −ln(1 + e⁻ᵘ)
    u, copy = gate.reshape(rows), p_copy.reshape(rows)
    ln_g, ln_not_g = -xp.logaddexp(0, -u), -xp.logaddexp(0, u)
    ln_own = ln_g + shifted[at_target] - xp.log(total)
    ln_copy = ln_not_g + xp.log(xp.maximum(copy, float(xp.finfo(copy.dtype).tiny)))          # for copy = 0, not −∞
    ln_p = xp.logaddexp(ln_own, ln_copy)                 # (rows,)
    r = xp.exp(ln_own - ln_p)

    def backward(dloss: float = 1.0) -> Gradients:       # keeps e, total, target, r, ln_g, ln_not_g, ln_p
        each = dloss / rows
        weight = each * r                                # (rows,)
        dz = e * (weight / total)[:, None]
        dz[at_target] -= weight
        dgate = each * (xp.exp(ln_g) - r)
        dp_copy = -each * xp.exp(ln_not_g - ln_p)
        return dz.reshape(*shape, c), dgate.reshape(shape), dp_copy.reshape(shape), None

    return -ln_p.mean(), backward
